//! A number that changes over time in straight lines: the rate of an open loop or the users of a closed one. Pure.

use serde::{Deserialize, Serialize};

/// A part of a load in which the rate, or the number of users, goes in a straight line to a new value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// How long it takes, seconds; 0 is a jump.
    pub seconds: f64,
    /// Value at its end.
    pub to: f64,
}

/// Why a text names no stages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no stages: write duration and value of each, as in 10s:100,30s:500,1m:0")]
pub struct StagesError(String);

impl Stage {
    /// Stages from a text: `10s:100,30s:500` goes to 100 in 10 s, then to 500 in 30 s. `0s:50` jumps. Durations are in ms, s,
    /// m or h.
    ///
    /// # Errors
    /// [`StagesError`] if it is not that.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, StagesError> {
        let one = |part: &str| {
            let (duration, to) = part.trim().split_once(':')?;
            let digits = duration.trim_end_matches(char::is_alphabetic);
            let factor = match &duration[digits.len()..] {
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
            let (seconds, to) = (digits.trim().parse::<f64>().ok()? * factor, to.trim().parse::<f64>().ok()?);
            let good = |value: f64| value.is_finite() && value >= 0.0;
            (good(seconds) && good(to)).then_some(Self { seconds, to })
        };
        text.split(',').map(one).collect::<Option<_>>().ok_or_else(|| StagesError(text.to_owned()))
    }
}

/// A straight piece.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    /// Seconds from the start of the load to its start.
    start: f64,
    /// How long it is; infinite for the last.
    seconds: f64,
    /// Value at its start.
    from: f64,
    /// Change per second.
    slope: f64,
    /// Area under everything before it.
    before: f64,
}

impl Piece {
    /// Area from its start to `seconds` later.
    fn area(&self, seconds: f64) -> f64 {
        self.from * seconds + self.slope * seconds * seconds / 2.0
    }
}

/// A value over time: straight pieces, and the last value ever after. Where stages end it does not fall to zero, since a load
/// ends by its window.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    pieces: Vec<Piece>,
}

impl Profile {
    /// The same value all the time.
    #[must_use]
    pub fn constant(value: f64) -> Self {
        Self::new(value, &[])
    }

    /// From a value at the start through stages.
    #[must_use]
    pub fn new(from: f64, stages: &[Stage]) -> Self {
        let (mut start, mut value, mut before) = (0.0, from, 0.0);
        let mut pieces = Vec::new();
        for stage in stages {
            if stage.seconds > 0.0 {
                let slope = (stage.to - value) / stage.seconds;
                let piece = Piece { start, seconds: stage.seconds, from: value, slope, before };
                before += piece.area(stage.seconds);
                start += stage.seconds;
                pieces.push(piece);
            }
            value = stage.to;
        }
        pieces.push(Piece { start, seconds: f64::INFINITY, from: value, slope: 0.0, before });
        Self { pieces }
    }

    /// Largest value that it takes.
    #[must_use]
    pub fn most(&self) -> f64 {
        self.pieces.iter().fold(0.0, |most, piece| {
            let end = if piece.seconds.is_finite() { piece.from + piece.slope * piece.seconds } else { piece.from };
            most.max(piece.from).max(end)
        })
    }

    /// Value at an instant, seconds from the start.
    #[must_use]
    pub fn at(&self, seconds: f64) -> f64 {
        let piece = self.pieces.partition_point(|piece| piece.start <= seconds).saturating_sub(1);
        self.pieces.get(piece).map_or(0.0, |piece| piece.from + piece.slope * (seconds - piece.start))
    }

    /// Area under it up to an instant: requests due by then, if it is a rate.
    #[must_use]
    pub fn area(&self, seconds: f64) -> f64 {
        let piece = self.pieces.partition_point(|piece| piece.start <= seconds).saturating_sub(1);
        self.pieces.get(piece).map_or(0.0, |piece| piece.before + piece.area(seconds - piece.start))
    }

    /// The instant at which the area under it reaches a value: the inverse of [`Profile::area`]. `None`: it never does.
    #[must_use]
    pub fn when_area(&self, area: f64) -> Option<f64> {
        let piece = self.pieces.partition_point(|piece| piece.before <= area).saturating_sub(1);
        let piece = self.pieces.get(piece)?;
        let rest = area - piece.before;
        if rest <= 0.0 {
            return (piece.from > 0.0 || piece.slope > 0.0).then_some(piece.start);
        }
        // The root of slope/2·t² + from·t = rest, in the form that does not cancel and holds for slope 0.
        let root = (piece.from * piece.from + 2.0 * piece.slope * rest).max(0.0).sqrt();
        let after = 2.0 * rest / (piece.from + root);
        after.is_finite().then(|| piece.start + after.min(piece.seconds))
    }

    /// First instant from `seconds` on at which it is more than a value. `None`: never again.
    #[must_use]
    pub fn when_above(&self, value: f64, seconds: f64) -> Option<f64> {
        for piece in &self.pieces {
            let end = piece.start + piece.seconds;
            if end <= seconds {
                continue;
            }
            let from = seconds.max(piece.start);
            if piece.from + piece.slope * (from - piece.start) > value {
                return Some(from);
            }
            if piece.slope > 0.0 {
                let crossing = piece.start + (value - piece.from) / piece.slope;
                if crossing < end {
                    return Some(crossing.max(from));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 0 to 100 in 10 s, 5 s at 100, down to 50 in 10 s, a jump to 10.
    fn profile() -> Profile {
        let stage = |seconds, to| Stage { seconds, to };
        Profile::new(0.0, &[stage(10.0, 100.0), stage(5.0, 100.0), stage(10.0, 50.0), stage(0.0, 10.0)])
    }

    #[test]
    fn stages_are_read_from_text() {
        let stage = |seconds, to| Stage { seconds, to };
        assert_eq!(
            Stage::parse_list("10s:100, 1.5m:500,0s:0,250ms:7").expect("good"),
            [stage(10.0, 100.0), stage(90.0, 500.0), stage(0.0, 0.0), stage(0.25, 7.0)]
        );
        for text in ["", "10s", "10:5", "10s:-5", "x:1", "10s:5,", "10d:5"] {
            let error = Stage::parse_list(text).expect_err(text).to_string();
            assert!(error.contains("10s:100,30s:500"), "{error}");
        }
    }

    #[test]
    fn values_and_areas_by_table() {
        for (seconds, value, area) in [
            (0.0, 0.0, 0.0),
            (5.0, 50.0, 125.0),
            (10.0, 100.0, 500.0),
            (12.0, 100.0, 700.0),
            (20.0, 75.0, 1437.5),
            (25.0, 10.0, 1750.0),
            (30.0, 10.0, 1800.0),
        ] {
            assert!((profile().at(seconds) - value).abs() < 1e-9, "value at {seconds}");
            assert!((profile().area(seconds) - area).abs() < 1e-9, "area at {seconds}");
        }
        assert_eq!(profile().most(), 100.0);
    }

    #[test]
    fn users_come_and_go() {
        // The 60th user (number 59) comes when there are more than 59, and goes on the way down.
        assert_eq!(profile().when_above(59.0, 0.0), Some(5.9));
        assert_eq!(profile().when_above(59.0, 12.0), Some(12.0));
        assert_eq!(profile().when_above(59.0, 24.0), None);
        assert_eq!(profile().when_above(9.5, 24.0), Some(24.0));
        assert_eq!(profile().when_above(9.5, 99.0), Some(99.0));
        assert_eq!(Profile::constant(3.0).when_above(3.0, 0.0), None);
    }

    #[test]
    fn nothing_comes_at_a_rate_of_nothing() {
        assert_eq!(Profile::constant(0.0).when_area(0.0), None);
        let ends = Profile::new(10.0, &[Stage { seconds: 2.0, to: 0.0 }]);
        assert_eq!(ends.when_area(5.0).map(|at| (at * 1e3).round()), Some(586.0));
        assert_eq!(ends.when_area(10.5), None);
    }

    proptest! {
        #[test]
        fn the_inverse_is_the_inverse(area in 0.0f64..5_000.0) {
            let at = profile().when_area(area).expect("the rate never ends");
            prop_assert!((profile().area(at) - area).abs() < 1e-6, "{at}");
        }

        #[test]
        fn instants_rise_with_the_area(area in 0.0f64..5_000.0, more in 0.0f64..10.0) {
            prop_assert!(profile().when_area(area + more) >= profile().when_area(area));
        }
    }
}
