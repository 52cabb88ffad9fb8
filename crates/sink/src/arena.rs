//! Memory for what a decoder cannot leave in the message, such as text with escapes: filled while one message is decoded
//! and counted, then forgotten as a whole. There is one for the sink, because messages are counted one after another.

use bumpalo::Bump;

/// Memory kept for the next message.
const MAX_RETAINED: usize = 4 << 20;

/// The sink's one arena.
#[derive(Debug, Default)]
pub(crate) struct Arena(Bump);

impl Arena {
    /// Forgets the last message; gives memory back if it was a large one.
    pub(crate) fn clear(&mut self) {
        if self.0.allocated_bytes() > MAX_RETAINED {
            self.0 = Bump::new();
        } else {
            self.0.reset();
        }
    }

    /// To allocate from.
    pub(crate) fn bump(&self) -> &Bump {
        &self.0
    }
}
