//! Texts with `{{name}}` in them, taken apart once and put together for every request.

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// As it is.
    Fixed(Vec<u8>),
    /// Stands for a value: its number among the script's names.
    Value(usize),
}

/// A text with values in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Text {
    pieces: Vec<Piece>,
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escape {
    /// As it is.
    None,
    /// In a head: what would end a line is percent-encoded.
    Header,
    /// In a path: what may not stand in one is percent-encoded.
    Path,
}

impl Text {
    /// Takes a text apart; `number_of` knows the names.
    ///
    /// # Errors
    /// The name that is not known, or the text of an opening brace that is not closed.
    pub(crate) fn parse(text: &[u8], mut number_of: impl FnMut(&str) -> Option<usize>) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.windows(2).position(|two| two == b"{{") {
            let Some(length) = rest[open + 2..].windows(2).position(|two| two == b"}}") else { break };
            let name = std::str::from_utf8(&rest[open + 2..open + 2 + length]).unwrap_or_default().trim();
            // JSON bodies hold `{{` too; only what can be a name is one.
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)) {
                push_fixed(&mut pieces, &rest[..open + 1]);
                rest = &rest[open + 1..];
                continue;
            }
            push_fixed(&mut pieces, &rest[..open]);
            pieces.push(Piece::Value(number_of(name).ok_or_else(|| name.to_owned())?));
            rest = &rest[open + 2 + length + 2..];
        }
        push_fixed(&mut pieces, rest);
        Ok(Self { pieces })
    }

    /// A text without values.
    pub(crate) fn fixed(text: Vec<u8>) -> Self {
        Self { pieces: if text.is_empty() { Vec::new() } else { vec![Piece::Fixed(text)] } }
    }

    /// Writes the text, with values from `write`.
    pub(crate) fn render(&self, into: &mut Vec<u8>, escape: Escape, mut write: impl FnMut(usize, &mut Vec<u8>)) {
        for piece in &self.pieces {
            match piece {
                Piece::Fixed(bytes) => into.extend_from_slice(bytes),
                Piece::Value(number) => {
                    let from = into.len();
                    write(*number, into);
                    if escape != Escape::None {
                        escape_tail(into, from, escape);
                    }
                }
            }
        }
    }
}

/// Adds bytes to the last piece, or as a new one.
fn push_fixed(pieces: &mut Vec<Piece>, bytes: &[u8]) {
    match pieces.last_mut() {
        _ if bytes.is_empty() => {}
        Some(Piece::Fixed(last)) => last.extend_from_slice(bytes),
        _ => pieces.push(Piece::Fixed(bytes.to_vec())),
    }
}

/// Percent-encodes what may not stand in a head, from a place on. Captured values come from a server: they must not be able
/// to end the line that they stand in.
pub(super) fn escape_tail(text: &mut Vec<u8>, from: usize, escape: Escape) {
    let bad = |byte: u8| match escape {
        Escape::None => false,
        Escape::Header => byte < b' ' || byte == 0x7f,
        Escape::Path => !(byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&byte)),
    };
    if !text[from..].iter().copied().any(bad) {
        return;
    }
    let tail = text.split_off(from);
    for byte in tail {
        if bad(byte) {
            text.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            text.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(text: &str, escape: Escape, value: &str) -> Result<String, String> {
        let text = Text::parse(text.as_bytes(), |name| (name == "id").then_some(0))?;
        let mut out = Vec::new();
        text.render(&mut out, escape, |_, out| out.extend_from_slice(value.as_bytes()));
        Ok(String::from_utf8(out).expect("text"))
    }

    #[test]
    fn values_stand_where_their_names_are() {
        for (text, rendered) in [
            ("", ""),
            ("plain", "plain"),
            ("/jobs/{{id}}", "/jobs/7"),
            ("{{ id }}{{id}}", "77"),
            (r#"{"a":{"b":{{id}}}}"#, r#"{"a":{"b":7}}"#),
            (r#"{{"a":1}}"#, r#"{{"a":1}}"#),
            ("{{id", "{{id"),
            ("{{{id}}}", "{7}"),
        ] {
            assert_eq!(render(text, Escape::None, "7").as_deref(), Ok(rendered), "{text}");
        }
        assert_eq!(render("/{{nobody}}", Escape::None, ""), Err("nobody".to_owned()));
    }

    #[test]
    fn values_cannot_break_out_of_a_head() {
        assert_eq!(render("X: {{id}}", Escape::Header, "a b\r\nY: c").as_deref(), Ok("X: a b%0D%0AY: c"));
        assert_eq!(render("/{{id}}", Escape::Path, "a b\r\n#ä").as_deref(), Ok("/a%20b%0D%0A%23%C3%A4"));
        assert_eq!(render("{{id}}", Escape::None, "a\r\n").as_deref(), Ok("a\r\n"));
    }
}
