//! Messages as tracers write them, for tests.

use rmp::encode::{write_array_len, write_bin, write_bool, write_f64, write_map_len, write_str, write_uint};

/// Written value by value.
#[derive(Default)]
pub(super) struct Message {
    /// What was written so far.
    pub(super) bytes: Vec<u8>,
    /// Texts that stand in a streamed message already: their numbers are written from then on.
    texts: Option<Vec<String>>,
}

impl Message {
    /// A text is written when it is new, else its number.
    pub(super) fn streamed() -> Self {
        Self { bytes: Vec::new(), texts: Some(vec![String::new()]) }
    }

    pub(super) fn map(&mut self, pairs: u32) -> &mut Self {
        write_map_len(&mut self.bytes, pairs).expect("memory");
        self
    }

    pub(super) fn array(&mut self, values: u32) -> &mut Self {
        write_array_len(&mut self.bytes, values).expect("memory");
        self
    }

    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        write_uint(&mut self.bytes, number).expect("memory");
        self
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        if let Some(texts) = &mut self.texts {
            if let Some(number) = texts.iter().position(|known| known == text) {
                return self.number(number as u64);
            }
            texts.push(text.to_owned());
        }
        write_str(&mut self.bytes, text).expect("memory");
        self
    }

    pub(super) fn truth(&mut self, truth: bool) -> &mut Self {
        write_bool(&mut self.bytes, truth).expect("memory");
        self
    }

    pub(super) fn real(&mut self, number: f64) -> &mut Self {
        write_f64(&mut self.bytes, number).expect("memory");
        self
    }

    pub(super) fn binary(&mut self, bytes: &[u8]) -> &mut Self {
        write_bin(&mut self.bytes, bytes).expect("memory");
        self
    }

    /// The fields that every span of a streamed message has.
    pub(super) fn span(
        &mut self,
        fields: u32,
        texts: [&str; 3],
        ids: [u64; 2],
        times: [u64; 2],
        failed: bool,
    ) -> &mut Self {
        self.map(8 + fields);
        for (field, text) in (1..).zip(texts) {
            self.number(field).text(text);
        }
        for (field, number) in (4..).zip([ids, times].concat()) {
            self.number(field).number(number);
        }
        self.number(8).truth(failed)
    }
}
