//! From trace ids to requests: which request of the load a span belongs to, and how many spans each request has.
//!
//! The load generator writes its run's tag into the high 64 bits of a trace id, and `mix(index ^ key)` into the low
//! ones, so that ids look random to samplers and hash tables, yet the request's index can be had back without a table.
//! `mix` is the finalizer of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014),
//! a bijection; [`unmix`] is its inverse.

use crate::config::Requests;

/// Largest index taken for real. A low half that was not made by the load generator unmixes to an arbitrary number, which
/// is below this bound once in 4 billion times.
pub const MAX_INDEX: u64 = u32::MAX as u64;

/// Inverse of `0xbf58476d1ce4e5b9` modulo 2⁶⁴.
const INVERSE_1: u64 = 0x96de_1b17_3f11_9089;
/// Inverse of `0x94d049bb133111eb` modulo 2⁶⁴.
const INVERSE_2: u64 = 0x3196_42b2_d24d_8ec3;

/// The splitmix64 finalizer.
pub const fn mix(mut z: u64) -> u64 {
    z ^= z >> 30;
    z = z.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^= z >> 27;
    z = z.wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The inverse of [`mix`].
pub const fn unmix(mut z: u64) -> u64 {
    // `y = z ^ z >> s` is undone by xoring further shifts of y until they run off the end.
    z ^= z >> 31 ^ z >> 62;
    z = z.wrapping_mul(INVERSE_2);
    z ^= z >> 27 ^ z >> 54;
    z = z.wrapping_mul(INVERSE_1);
    z ^ (z >> 30 ^ z >> 60)
}

impl Requests {
    /// Index of the request that started this trace; `None` if the load generator did not make the id. Senders that know
    /// only trace ids of 64 bits lose the tag; what is left must then do.
    pub fn index(&self, trace_id: &[u8; 16]) -> Option<u64> {
        let id = u128::from_be_bytes(*trace_id);
        let high = (id >> 64) as u64;
        if high != self.tag && high != 0 {
            return None;
        }
        let index = unmix(id as u64) ^ self.key;
        (index <= MAX_INDEX).then_some(index)
    }

    /// The trace id of a request.
    pub fn trace_id(&self, index: u64) -> [u8; 16] {
        (u128::from(self.tag) << 64 | u128::from(mix(index ^ self.key))).to_be_bytes()
    }
}

/// Run-length encoding of the spans of every request from index 0: `(spans, how many requests in a row)`.
/// `counts` are `(index, spans)` in ascending order; indices left out have no span.
pub fn run_lengths(counts: impl IntoIterator<Item = (u64, u32)>) -> Vec<(u32, u64)> {
    let mut runs: Vec<(u32, u64)> = Vec::new();
    let mut push = |spans: u32, requests: u64| match runs.last_mut() {
        _ if requests == 0 => {}
        Some(last) if last.0 == spans => last.1 += requests,
        _ => runs.push((spans, requests)),
    };
    let mut next = 0;
    for (index, spans) in counts {
        push(0, index - next);
        push(spans, 1);
        next = index + 1;
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn mix_is_splitmix64() {
        // First outputs of the reference implementation for the seed 1234567 (state += golden gamma before each).
        let gamma = 0x9e37_79b9_7f4a_7c15_u64;
        let outputs: Vec<u64> = (1..=3).map(|n| mix(1_234_567_u64.wrapping_add(gamma.wrapping_mul(n)))).collect();
        assert_eq!(outputs, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    proptest! {
        #[test]
        fn unmix_undoes_mix(number: u64) {
            prop_assert_eq!(unmix(mix(number)), number);
        }

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

    #[test]
    fn runs_cover_gaps() {
        assert_eq!(run_lengths([]), []);
        assert_eq!(run_lengths([(0, 3), (1, 3), (2, 1), (5, 1), (6, 1)]), [(3, 2), (1, 1), (0, 2), (1, 2)]);
        assert_eq!(run_lengths([(MAX_INDEX, 1)]), [(0, MAX_INDEX), (1, 1)]);
    }
}
