//! Which variant runs when: every round runs every variant once, in a random order that is balanced over the study.
//!
//! Balance takes the effect of the slot out (the second run of a round may find a warmer or a busier host); randomness
//! takes everything else out and is what makes the signed-rank interval exact. A fixed pattern such as ABBA has the
//! first and not the second: interference with its period turns into a difference.
//!
//! The balance costs a little of the exactness that a coin in every round would have. With an effect of the slot the
//! intervals err on the safe side (2.3 % false alarms for 5 %); if interference alternates from round to round and drowns
//! everything else, the false alarms of 12 rounds stay at 5 %, those of 6 rounds rise from 3 to 10 % (`tests/calibration`).

use rand::{RngExt, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

use crate::arithmetic::count;

/// Up to so many variants a round is drawn from all orders that keep the balance. Beyond it (the work doubles with every
/// variant) rounds come in blocks that run each variant once in each slot.
const MAX_DRAWN_VARIANTS: usize = 12;

/// The order of `variants` variants (0-based indices) in each of `rounds` rounds, drawn from `seed`; the same for the same
/// arguments, on every machine.
///
/// Over all rounds each variant comes first, second … last equally often, to within one. With two variants every balanced
/// sequence is equally likely, with more nearly so. The first rounds of a study that ends early are a sample without
/// replacement from such a sequence: still random, and roughly balanced.
#[must_use]
pub fn balanced(variants: usize, rounds: usize, seed: u64) -> Vec<Vec<usize>> {
    balanced_part(variants, rounds, seed, 0)
}

/// As [`balanced`], for the `part`-th stretch of rounds of one study. Part 0 is `balanced` itself; an extension from 12
/// to 24 rounds is part 1 with 12 rounds: balanced in itself, and independent of part 0.
#[must_use]
pub fn balanced_part(variants: usize, rounds: usize, seed: u64, part: u64) -> Vec<Vec<usize>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(part);
    if variants <= MAX_DRAWN_VARIANTS {
        drawn(variants, rounds, &mut random)
    } else {
        blocks(variants, rounds, &mut random)
    }
}

/// Rounds drawn as from an urn. `tickets[variant][slot]` says how often the variant still has to run in the slot. All variants and
/// all slots have as many tickets left as there are rounds left, so an order that uses available tickets only always
/// exists (Birkhoff 1946), and leaves an urn of the same kind behind.
fn drawn(variants: usize, rounds: usize, random: &mut ChaCha8Rng) -> Vec<Vec<usize>> {
    let mut tickets = vec![vec![rounds.checked_div(variants).unwrap_or(0); variants]; variants];
    for order in latin_square(variants, random).iter().take(rounds.checked_rem(variants).unwrap_or(0)) {
        for (slot, &variant) in order.iter().enumerate() {
            tickets[variant][slot] += 1;
        }
    }
    let mut orders = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let order = draw(&tickets, random);
        for (slot, &variant) in order.iter().enumerate() {
            tickets[variant][slot] -= 1;
        }
        orders.push(order);
    }
    orders
}

/// One order, with a probability proportional to the product over its slots of tickets^((variants−1)/variants).
///
/// The exponent makes balanced sequences equally likely: for two variants exactly (both variants of an order see the same number
/// of tickets, which must count once, not twice), for more in the limit of many rounds, where the number of ways to
/// go on from an urn is Gaussian in its tickets with the covariance of a random permutation matrix.
fn draw(tickets: &[Vec<usize>], random: &mut ChaCha8Rng) -> Vec<usize> {
    let variants = tickets.len();
    if variants == 0 {
        return Vec::new();
    }
    let exponent = 1.0 - 1.0 / count(variants);
    let most = count(tickets.iter().flatten().copied().max().unwrap_or(1).max(1));
    let weigh =
        |slots: &Vec<usize>| -> Vec<f64> { slots.iter().map(|&left| (count(left) / most).powf(exponent)).collect() };
    let weight: Vec<Vec<f64>> = tickets.iter().map(weigh).collect();
    // ways[set]: total weight of all ways to fill the first |set| slots with the variants of the set.
    let mut ways = vec![0.0; 1 << variants];
    ways[0] = 1.0;
    for set in 1_usize..1 << variants {
        let slot = set.count_ones() as usize - 1;
        ways[set] = members(set).map(|variant| ways[set & !(1 << variant)] * weight[variant][slot]).sum();
    }
    let mut order = vec![0; variants];
    let mut set = (1 << variants) - 1;
    for slot in (0..variants).rev() {
        let mut left = random.random::<f64>() * ways[set];
        let mut chosen = None;
        for variant in members(set) {
            let share = ways[set & !(1 << variant)] * weight[variant][slot];
            if share > 0.0 {
                chosen = Some(variant);
                left -= share;
                if left < 0.0 {
                    break;
                }
            }
        }
        // Some variant has a share, else the set would not have been reached; rounding at the upper end takes the last one.
        let variant = chosen.unwrap_or_else(|| set.trailing_zeros() as usize);
        order[slot] = variant;
        set &= !(1 << variant);
    }
    order
}

/// The variants of a set, a bit each.
fn members(set: usize) -> impl Iterator<Item = usize> {
    (0..usize::BITS as usize).filter(move |variant| set >> variant & 1 == 1)
}

/// Rounds in blocks of `variants`, each a Latin square of its own.
fn blocks(variants: usize, rounds: usize, random: &mut ChaCha8Rng) -> Vec<Vec<usize>> {
    let mut orders = Vec::with_capacity(rounds);
    while orders.len() < rounds {
        let left = rounds - orders.len();
        orders.extend(latin_square(variants, random).into_iter().take(left));
    }
    orders
}

/// As many orders as variants, each variant once in each slot: the cyclic square with rows, slots and variants shuffled.
fn latin_square(variants: usize, random: &mut ChaCha8Rng) -> Vec<Vec<usize>> {
    let mut shuffled = || {
        let mut indices: Vec<usize> = (0..variants).collect();
        indices.shuffle(random);
        indices
    };
    let (rows, slots, names) = (shuffled(), shuffled(), shuffled());
    rows.iter().map(|row| slots.iter().map(|slot| names[(row + slot) % variants]).collect()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_seed_stays_what_it_is() {
        // A journal records its seed: a new version of the generator must not draw another order from it.
        assert_eq!(balanced(3, 6, 42), [[1, 0, 2], [2, 0, 1], [0, 2, 1], [2, 1, 0], [0, 1, 2], [1, 2, 0]]);
    }

    #[test]
    fn nothing_to_order() {
        assert_eq!(balanced(0, 2, 1), [[], []] as [[usize; 0]; 2]);
        assert_eq!(balanced(3, 0, 1), Vec::<Vec<usize>>::new());
        assert_eq!(balanced(1, 2, 1), [[0], [0]]);
    }

    /// How often each outcome comes of 6,000 seeds.
    fn tally(draw: impl Fn(u64) -> Vec<Vec<usize>>) -> BTreeMap<Vec<Vec<usize>>, u32> {
        let mut tally = BTreeMap::new();
        for seed in 0..6_000 {
            *tally.entry(draw(seed)).or_insert(0) += 1;
        }
        tally
    }

    #[test]
    fn balanced_sequences_are_equally_likely() {
        // Two variants, six rounds: 20 sequences with three of each order. Three variants, three rounds: the 12 Latin squares.
        // Counts have standard deviations of 17 and 21; five of them are allowed.
        for (variants, rounds, sequences, each, allowed) in [(2, 6, 20, 300, 85), (3, 3, 12, 500, 107)] {
            let tally = tally(|seed| balanced(variants, rounds, seed));
            assert_eq!(tally.len(), sequences);
            for (sequence, times) in tally {
                assert!(times.abs_diff(each) <= allowed, "{sequence:?} came {times} times");
            }
        }
    }

    #[test]
    fn with_more_variants_every_order_comes_in_every_round() {
        // 24 orders of four variants, 250 times each in the first and in the last of eight rounds; five deviations of 15.5.
        for round in [0, 7] {
            let tally = tally(|seed| vec![balanced(4, 8, seed).swap_remove(round)]);
            assert_eq!(tally.len(), 24);
            assert!(tally.values().all(|times| times.abs_diff(250) <= 78), "round {round}: {tally:?}");
        }
    }

    #[test]
    fn parts_are_drawn_apart() {
        assert_eq!(balanced(2, 12, 7), balanced_part(2, 12, 7, 0));
        assert_ne!(balanced(2, 12, 7), balanced_part(2, 12, 7, 1));
        assert_ne!(balanced(2, 12, 7), balanced(2, 12, 8));
    }
}
