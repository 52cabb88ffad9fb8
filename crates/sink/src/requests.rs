//! From trace ids to requests: which request of the load a span belongs to.
//!
//! The load generator makes its trace ids as [`unladen_trace`] says, so that the index can be had back without a table.

use unladen_trace::{MAX_INDEX, index_of, trace_low};

use crate::config::Requests;

impl Requests {
    /// Index of the request that started this trace; `None` if the load generator did not make the id. Senders that know
    /// only trace ids of 64 bits lose the tag; what is left must then do.
    pub fn index(&self, trace_id: &[u8; 16]) -> Option<u64> {
        let id = u128::from_be_bytes(*trace_id);
        let high = (id >> 64) as u64;
        if high != self.tag && high != 0 {
            return None;
        }
        let index = index_of(id as u64, self.key);
        (index <= MAX_INDEX).then_some(index)
    }

    /// The trace id of a request.
    pub fn trace_id(&self, index: u64) -> [u8; 16] {
        (u128::from(self.tag) << 64 | u128::from(trace_low(index, self.key))).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn index_comes_back(tag: u64, key: u64, index in 0..=MAX_INDEX) {
            let requests = Requests { tag, key };
            prop_assert_eq!(requests.index(&requests.trace_id(index)), Some(index));
        }
    }

    #[test]
    fn other_ids_have_no_index() {
        let requests = Requests { tag: 7, key: 99 };
        assert_eq!(requests.index(&Requests { tag: 8, key: 99 }.trace_id(5)), None, "another run's tag");
        assert_eq!(requests.index(&requests.trace_id(MAX_INDEX + 1)), None, "beyond any load");
        assert_eq!(requests.index(&Requests { tag: 7, key: 98 << 40 }.trace_id(5)), None, "another key");
    }

    #[test]
    fn a_trace_id_cut_to_64_bits_is_known() {
        let requests = Requests { tag: 7, key: 99 };
        let mut id = requests.trace_id(5);
        id[..8].fill(0);
        assert_eq!(requests.index(&id), Some(5));
        assert_eq!(requests.index(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]), None, "a 64-bit id of others");
    }
}
