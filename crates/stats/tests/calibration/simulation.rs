//! Simulated studies for the calibration: the noise of a host, slot after slot, and the orders in which variants meet it.
//!
//! All values are in per cent on the log scale. Nothing here is part of the crate: the noise models are a yardstick, chosen
//! to be worse than a good host and no worse than a bad one.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use unladen_stats::order;

/// Random numbers of the shapes that the models need.
pub(crate) struct Random {
    source: ChaCha8Rng,
    spare: Option<f64>,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { source: ChaCha8Rng::seed_from_u64(seed), spare: None }
    }

    pub(crate) fn uniform(&mut self) -> f64 {
        self.source.random()
    }

    pub(crate) fn seed(&mut self) -> u64 {
        self.source.random()
    }

    /// Standard normal, by Marsaglia's polar method.
    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (x, y) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(y * factor);
                return x * factor;
            }
        }
    }

    /// Student's t with 3 degrees of freedom, scaled to variance 1.
    pub(crate) fn heavy(&mut self) -> f64 {
        let square: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
        self.normal() / square.sqrt()
    }

    pub(crate) fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }
}

/// The noise of one run after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Model {
    /// 1 % normal, run by run.
    Quiet,
    /// Quiet, on a slope of 5 % (normal) from the first slot to the last and a first-order process of 2 %, ρ = 0.9.
    Drift,
    /// Drift with heavy tails, and with neighbours that come and go: + 6 % for 6 slots on average.
    Shared,
    /// Quiet, and 15 % of the runs are hit: exponential, 8 % on average, one-sided.
    Hits,
}

pub(crate) const MODELS: [Model; 4] = [Model::Quiet, Model::Drift, Model::Shared, Model::Hits];

impl Model {
    pub(crate) fn slots(self, slots: usize, random: &mut Random) -> Vec<f64> {
        let drifting = matches!(self, Self::Drift | Self::Shared);
        let slope = if drifting { 5.0 * random.normal() } else { 0.0 };
        let mut process = if drifting { 2.0 * random.normal() } else { 0.0 };
        let mut neighbours = self == Self::Shared && random.uniform() < 0.5;
        let mut values = Vec::with_capacity(slots);
        for slot in 0..slots {
            let mut value = if self == Self::Shared { random.heavy() } else { random.normal() };
            if drifting {
                value += slope * count(slot) / count(slots) + process;
                process = 0.9 * process + 2.0 * (1.0_f64 - 0.81).sqrt() * random.normal();
            }
            if self == Self::Shared {
                value += if neighbours { 6.0 } else { 0.0 };
                neighbours ^= random.uniform() < 1.0 / 6.0;
            }
            if self == Self::Hits && random.uniform() < 0.15 {
                value += 8.0 * random.exponential();
            }
            values.push(value);
        }
        values
    }
}

/// How the two variants of a study take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turns {
    /// All runs of one variant, then all of the other.
    Blocked,
    /// Baseline first in every round.
    BaselineFirst,
    /// Baseline first, then last, then first …
    Abba,
    /// By a coin in every round.
    Coin,
    /// As unladen does it.
    Balanced,
}

impl Turns {
    /// `(baseline, variant)` of each round. For [`Turns::Blocked`] the pairs mean nothing.
    pub(crate) fn rounds(self, slots: &[f64], random: &mut Random) -> Vec<(f64, f64)> {
        let rounds = slots.len() / 2;
        let orders = if self == Self::Balanced { order::balanced(2, rounds, random.seed()) } else { Vec::new() };
        let pair = |round: usize| {
            let (first, second) = (slots[2 * round], slots[2 * round + 1]);
            let baseline_first = match self {
                Self::Blocked => return (slots[round], slots[rounds + round]),
                Self::BaselineFirst => true,
                Self::Abba => round.is_multiple_of(2),
                Self::Coin => random.uniform() < 0.5,
                Self::Balanced => orders[round][0] == 0,
            };
            if baseline_first { (first, second) } else { (second, first) }
        };
        (0..rounds).map(pair).collect()
    }
}

/// The values of each variant, round by round, of a study with any number of variants in unladen's order.
pub(crate) fn rounds_of(variants: usize, rounds: usize, model: Model, random: &mut Random) -> Vec<Vec<f64>> {
    let slots = model.slots(variants * rounds, random);
    let orders = order::balanced(variants, rounds, random.seed());
    let in_order = |(order, slots): (&Vec<usize>, &[f64])| {
        let mut values = vec![0.0; variants];
        for (&variant, &value) in order.iter().zip(slots) {
            values[variant] = value;
        }
        values
    };
    orders.iter().zip(slots.chunks_exact(variants)).map(in_order).collect()
}

pub(crate) fn differences(rounds: &[(f64, f64)]) -> Vec<f64> {
    rounds.iter().map(|(baseline, variant)| variant - baseline).collect()
}

#[expect(clippy::cast_precision_loss, reason = "numbers of slots and runs")]
pub(crate) fn count(n: usize) -> f64 {
    n as f64
}
