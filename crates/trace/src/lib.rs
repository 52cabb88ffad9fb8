#![doc = include_str!("../README.md")]

/// Largest index taken for real. A low half that was not made by the load generator unmixes to an arbitrary number, which
/// is below this bound once in 4 billion times.
pub const MAX_INDEX: u64 = u32::MAX as u64;

/// Inverse of `0xbf58476d1ce4e5b9` modulo 2⁶⁴.
const INVERSE_1: u64 = 0x96de_1b17_3f11_9089;
/// Inverse of `0x94d049bb133111eb` modulo 2⁶⁴.
const INVERSE_2: u64 = 0x3196_42b2_d24d_8ec3;

/// The finalizer of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014,
/// with Stafford's variant 13 constants): a bijection on 64-bit numbers.
#[inline]
#[must_use]
pub const fn mix(mut z: u64) -> u64 {
    z ^= z >> 30;
    z = z.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^= z >> 27;
    z = z.wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The inverse of [`mix`].
#[inline]
#[must_use]
pub const fn unmix(mut z: u64) -> u64 {
    // `y = z ^ z >> s` is undone by xoring further shifts of y until they run off the end.
    z ^= (z >> 31) ^ (z >> 62);
    z = z.wrapping_mul(INVERSE_2);
    z ^= (z >> 27) ^ (z >> 54);
    z = z.wrapping_mul(INVERSE_1);
    z ^ (z >> 30) ^ (z >> 60)
}

/// The low half of the trace id of the request with this index, for the key of the run.
#[inline]
#[must_use]
pub const fn trace_low(index: u64, key: u64) -> u64 {
    mix(index ^ key)
}

/// The index of the request whose trace id ends in `trace_low`, for the key of the run.
#[inline]
#[must_use]
pub const fn index_of(trace_low: u64, key: u64) -> u64 {
    unmix(trace_low) ^ key
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
        fn every_index_comes_back(index: u64, key: u64) {
            prop_assert_eq!(index_of(trace_low(index, key), key), index);
            prop_assert_eq!(mix(unmix(index)), index);
            prop_assert_eq!(unmix(mix(index)), index);
        }
    }
}
