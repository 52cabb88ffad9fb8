//! What is kept of an answer that a plan looks at: its fields and the beginning of its body.

use crate::bodies::MAX_BODY;

/// What is particular about an answer that is waited for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wants {
    /// It has no body whatever its head says.
    pub(crate) bodiless: bool,
    /// Its fields and its body are kept.
    pub(crate) captured: bool,
}

/// Fields and body of an answer that was to be kept; empty for others.
#[derive(Debug, Clone, Default)]
pub(crate) struct Captured(pub(super) Option<Box<(Vec<u8>, Vec<u8>)>>);

impl Captured {
    /// Head and trailers as HTTP/1.1 would have them: a status line, then a line for each field.
    pub(crate) fn head(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |both| &both.0)
    }

    /// (The beginning of) the body, if it came in more than one frame.
    pub(crate) fn body(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |both| &both.1)
    }

    /// Keeps a part of the body, as far as it is looked at.
    #[inline]
    pub(super) fn add(&mut self, data: &[u8]) {
        if let Some(both) = &mut self.0 {
            let room = MAX_BODY - both.1.len().min(MAX_BODY);
            both.1.extend_from_slice(&data[..data.len().min(room)]);
        }
    }
}
