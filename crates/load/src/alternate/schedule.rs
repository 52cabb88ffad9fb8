//! Who has the load when. Pure: the order comes from the seed.

use std::iter::repeat_n;

use unladen_trace::mix;

use super::{Part, Turn};

/// How long the parts of an alternation are, for each target, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lengths {
    /// Before the measured turns.
    pub warmup_s: f64,
    /// Of the blocks together.
    pub window_s: f64,
    /// Of one block.
    pub block_s: f64,
    /// Whether each block that is measured is two turns, one after the other and equally long, and the blocks of a super-block last from two
    /// thirds of `block_s` to four thirds.
    pub in_halves: bool,
    /// Of the stretch in which a target has the load for itself, after the blocks; 0: there is none.
    pub alone_s: f64,
}

/// The turns of so many targets: super-blocks that warm up, super-blocks that are measured, then every target alone. In each
/// super-block every target has one block, in an order drawn anew, all of the same length. That of blocks in halves is drawn as well: what a
/// service does in rhythms of its own must not always fall into the same half. Blocks are made so much longer or shorter that a whole number of them fills the window.
#[must_use]
pub fn schedule(targets: usize, lengths: &Lengths, seed: u64) -> Vec<Turn> {
    let mut order = Order { seed, drawn: 0 };
    let mut turns = Vec::new();
    let mut group = 0;
    for (part, length_s) in [(Part::WarmUp, lengths.warmup_s), (Part::Block, lengths.window_s)] {
        let blocks = if length_s > 0.0 { (length_s / lengths.block_s).round().max(1.0) as u32 } else { 0 };
        let halves = if part == Part::Block && lengths.in_halves { 2 } else { 1 };
        let weights: Vec<f64> = (0..blocks).map(|_| if halves == 2 { order.weight() } else { 1.0 }).collect();
        let all: f64 = weights.iter().sum();
        for weight in weights {
            let length_s = length_s * weight / all / halves as f64;
            let turn = |target| Turn { target, length_s, part, group };
            turns.extend(order.draw(targets).into_iter().flat_map(|target| repeat_n(turn(target), halves)));
            group += 1;
        }
    }
    if lengths.alone_s > 0.0 {
        for target in order.draw(targets) {
            turns.push(Turn { target, length_s: lengths.alone_s, part: Part::Alone, group });
            group += 1;
        }
    }
    turns
}

/// Longest block over the shortest.
const LONGEST_OVER_SHORTEST: f64 = 2.0;

/// Random orders and lengths, one after the other.
struct Order {
    seed: u64,
    drawn: u64,
}

impl Order {
    fn draw(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        // Fisher-Yates. The remainder prefers low numbers by less than one in 2⁵⁰.
        for last in (1..count).rev() {
            order.swap(last, (self.random() % (last as u64 + 1)) as usize);
        }
        order
    }

    /// From 1 to [`LONGEST_OVER_SHORTEST`].
    fn weight(&mut self) -> f64 {
        1.0 + (LONGEST_OVER_SHORTEST - 1.0) * (self.random() as f64 / u64::MAX as f64)
    }

    fn random(&mut self) -> u64 {
        self.drawn += 1;
        mix(self.seed.wrapping_add(self.drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTHS: Lengths = Lengths { warmup_s: 0.3, window_s: 4.0, block_s: 0.1, in_halves: false, alone_s: 2.0 };

    #[test]
    fn every_target_has_one_block_in_every_super_block_and_its_whole_window() {
        let turns = schedule(3, &LENGTHS, 7);
        assert_eq!(turns.len(), 3 * (3 + 40 + 1));
        for group in turns.chunk_by(|one, next| one.group == next.group) {
            let mut targets: Vec<usize> = group.iter().map(|turn| turn.target).collect();
            targets.sort_unstable();
            assert!(targets == [0, 1, 2] || (group[0].part == Part::Alone && targets.len() == 1), "{group:?}");
        }
        let of = |target: usize, part: Part| -> f64 {
            turns.iter().filter(|turn| (turn.target, turn.part) == (target, part)).map(|turn| turn.length_s).sum()
        };
        for target in 0..3 {
            for (part, seconds) in [(Part::WarmUp, 0.3), (Part::Block, 4.0), (Part::Alone, 2.0)] {
                assert!((of(target, part) - seconds).abs() < 1e-9, "{part:?}");
            }
        }
    }

    #[test]
    fn orders_are_drawn_anew_and_come_back_with_their_seed() {
        let firsts = |seed: u64| -> Vec<usize> {
            let turns = schedule(3, &Lengths { window_s: 30.0, ..LENGTHS }, seed);
            let blocks = turns.into_iter().filter(|turn| turn.part == Part::Block);
            blocks.collect::<Vec<_>>().chunks(3).map(|group| group[0].target).collect()
        };
        assert_eq!(firsts(1), firsts(1));
        assert_ne!(firsts(1), firsts(2));
        // 300 draws: each target comes first 100 ± 8.2 times (one sigma); ±41 is five.
        for target in 0..3 {
            let count = firsts(1).into_iter().filter(|first| *first == target).count();
            assert!((59..=141).contains(&count), "{target} comes first {count} times of 300");
        }
    }

    #[test]
    fn halves_are_of_one_target_and_fill_the_window_with_blocks_of_drawn_lengths() {
        let turns = schedule(3, &Lengths { in_halves: true, ..LENGTHS }, 7);
        let blocks: Vec<Turn> = turns.into_iter().filter(|turn| turn.part == Part::Block).collect();
        assert_eq!(blocks.len(), 2 * 3 * 40);
        assert!(blocks.chunks(2).all(|halves| halves[0] == halves[1]));
        let supers: Vec<&[Turn]> = blocks.chunk_by(|one, next| one.group == next.group).collect();
        assert!(supers.iter().all(|it| it.iter().all(|turn| turn.length_s == it[0].length_s)));
        let lengths: Vec<f64> = supers.iter().map(|it| 2.0 * it[0].length_s).collect();
        assert!((lengths.iter().sum::<f64>() - 4.0).abs() < 1e-9);
        let (shortest, longest) =
            (lengths.iter().copied().fold(1.0, f64::min), lengths.iter().copied().fold(0.0, f64::max));
        // Of 40 lengths between 2/3 and 4/3 of 0.1 s.
        assert!((0.06..0.08).contains(&shortest) && (0.12..0.14).contains(&longest), "{shortest} {longest}");
    }

    #[test]
    fn a_window_holds_a_whole_number_of_blocks() {
        let turns =
            schedule(2, &Lengths { warmup_s: 0.0, window_s: 0.25, block_s: 0.1, in_halves: false, alone_s: 0.0 }, 1);
        assert_eq!(turns.len(), 2 * 3);
        assert!(turns.iter().all(|turn| (turn.length_s - 0.25 / 3.0).abs() < 1e-12 && turn.part == Part::Block));
        let short =
            schedule(2, &Lengths { warmup_s: 0.0, window_s: 0.02, block_s: 0.1, in_halves: false, alone_s: 0.0 }, 1);
        assert_eq!(short.len(), 2);
    }
}
