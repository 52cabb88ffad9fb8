//! What receivers remember of their senders from one request to the next, within bounds.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Senders that are remembered: many times what any load needs. Beyond that all are forgotten.
const MAX_SENDERS: usize = 1_000;
/// Bytes of each part of a sender's name by which it is known.
const MAX_PART: usize = 32;

/// What is shared by all who ask for it.
type Shared<T> = Rc<RefCell<T>>;

/// Something of each sender, by the parts of its name.
#[derive(Debug, Default)]
pub(crate) struct PerSender<T>(RefCell<HashMap<Box<[u8]>, Shared<T>>>);

impl<T: Default> PerSender<T> {
    /// That of one sender.
    pub(crate) fn of(&self, name: &[&[u8]]) -> Shared<T> {
        let parts: Vec<&[u8]> = name.iter().map(|part| &part[..part.len().min(MAX_PART)]).collect();
        let mut senders = self.0.borrow_mut();
        if senders.len() >= MAX_SENDERS {
            senders.clear();
        }
        Rc::clone(senders.entry(parts.join(&b'^').into()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_are_told_apart_and_not_remembered_without_end() {
        let known = PerSender::<u64>::default();
        *known.of(&[b"pets", b"1"]).borrow_mut() = 7;
        assert_eq!((*known.of(&[b"pets", b"1"]).borrow(), *known.of(&[b"pets", b"2"]).borrow()), (7, 0));
        let long = [7; 100];
        *known.of(&[&long]).borrow_mut() = 9;
        assert_eq!(*known.of(&[&long[..MAX_PART]]).borrow(), 9);
        (0..MAX_SENDERS as u64).for_each(|number| drop(known.of(&[&number.to_le_bytes()])));
        assert_eq!(*known.of(&[b"pets", b"1"]).borrow(), 0);
        assert!(known.0.borrow().len() <= MAX_SENDERS);
    }
}
