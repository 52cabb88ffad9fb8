//! Requests of text: spans one after the other, with places in them where ids and times are stamped in.

use crate::batches::{Places, Stamp, Template};
use crate::values::{SpanParts, as_text};

/// Text in the making, and the places of the span at hand.
#[derive(Default)]
pub(crate) struct Text {
    out: String,
    places: Places,
}

impl Text {
    pub(crate) fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    pub(crate) fn place(&mut self, stamp: Stamp, length: usize) {
        self.places.places.push((self.out.len(), stamp));
        self.out.push_str(&"0".repeat(length));
    }

    /// `"key":value` for every attribute.
    pub(crate) fn members(&mut self, parts: &SpanParts, quoted: bool) {
        for (position, tag) in parts.2.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            let value = as_text(tag, quoted);
            let value = if quoted { value } else { format!("\"{value}\"") };
            // Elastic's agents write underscores where the name has dots.
            let key = if quoted { tag.key.replace('.', "_") } else { tag.key.clone() };
            self.put(&format!("{comma}\"{key}\":{value}"));
        }
    }
}

/// A request with these spans, three of a trace: what comes before them, between two, and after them. `one` writes a span and gets its
/// number within its trace, which is 0 for the root.
pub(crate) fn request(
    parts: &[SpanParts],
    [before, between, after]: [&str; 3],
    one: impl Fn(&mut Text, usize, &SpanParts),
) -> Template {
    let (mut text, mut template) = (Text::default(), Template::default());
    text.put(before);
    for (place, parts) in parts.iter().enumerate() {
        text.put(if place > 0 { between } else { "" });
        one(&mut text, place % 3, parts);
        template.spans.push(Places { is_root: place % 3 == 0, ..std::mem::take(&mut text.places) });
    }
    text.put(after);
    template.message = text.out.into_bytes();
    template
}
