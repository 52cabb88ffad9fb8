//! Flow control of one stream or of a connection (RFC 9113, 5.2 and 6.9): what may still be sent either way.

/// Both windows of the protocol before anything is said, bytes.
pub const FIRST_WINDOW: u32 = 65_535;
/// The largest window there is, bytes.
pub const MAX_WINDOW: i64 = (1 << 31) - 1;

/// The two windows, bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Flow {
    /// What we may still send; below 0 after the other side has lowered its setting.
    send: i64,
    /// What the other side may still send.
    receive: i64,
    /// What has been taken off its hands since it was last told.
    taken: u32,
}

impl Flow {
    /// So much may be sent, and so much received.
    pub fn new(send: i64, receive: u32) -> Self {
        Self { send, receive: i64::from(receive), taken: 0 }
    }

    /// Bytes that may be sent at once.
    #[inline]
    pub fn room(&self) -> usize {
        self.send.max(0) as usize
    }

    /// So many bytes are sent; the caller has seen to it that there is room.
    #[inline]
    pub fn sent(&mut self, bytes: usize) {
        self.send -= bytes as i64;
    }

    /// What may be sent changes by so much. False: beyond the largest window there is.
    #[inline]
    #[must_use]
    pub fn grow(&mut self, change: i64) -> bool {
        self.send += change;
        self.send <= MAX_WINDOW
    }

    /// So many bytes have come. False: more than the window holds.
    #[inline]
    #[must_use]
    pub fn receive(&mut self, bytes: usize) -> bool {
        self.receive -= bytes as i64;
        self.receive >= 0
    }

    /// So many bytes that have come are out of the way: by how much the other side is to be told that its window grows, once that is
    /// half of `window`.
    #[inline]
    pub fn give(&mut self, bytes: usize, window: u32) -> Option<u32> {
        self.taken += bytes as u32;
        if self.taken < window / 2 {
            return None;
        }
        self.receive += i64::from(self.taken);
        Some(std::mem::take(&mut self.taken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_given_back_in_halves() {
        let mut flow = Flow::new(0, 100);
        assert!(flow.receive(100) && !flow.receive(1));
        let mut flow = Flow::new(0, 100);
        assert!(flow.receive(49));
        assert_eq!(flow.give(49, 100), None);
        assert!(flow.receive(51));
        assert_eq!(flow.give(1, 100), Some(50));
        assert!(flow.receive(50) && !flow.receive(1));
    }

    #[test]
    fn what_may_be_sent_has_a_limit_and_may_be_negative() {
        let mut flow = Flow::new(10, 0);
        flow.sent(10);
        assert!(flow.grow(-6));
        assert_eq!(flow.room(), 0);
        assert!(flow.grow(7));
        assert_eq!(flow.room(), 1);
        assert!(!flow.grow(MAX_WINDOW));
    }
}
