//! Where the readings of one run have their middle. What rounds say, with an interval, is [`crate::estimate`].

/// Of more values, only those Walsh averages are asked whose values lie near each other.
const MAX_VALUES: usize = 1_024;
/// How many positions apart they may lie.
const REACH: usize = 512;

/// The median of the Walsh averages, the means of all pairs (Hodges & Lehmann 1963): where symmetric noise has its middle, though some of the
/// values are far off on either side. `None` without values. Infinite values and those that are no numbers are sorted to the ends.
#[must_use]
pub fn pseudo_median(values: &[f64]) -> Option<f64> {
    let reach = if values.len() > MAX_VALUES { REACH } else { values.len() };
    let near = |(at, &one): (usize, &f64)| values[at..].iter().take(reach).map(move |&other| f64::midpoint(one, other));
    let mut averages: Vec<f64> = values.iter().enumerate().flat_map(near).collect();
    let half = averages.len() / 2;
    (!averages.is_empty()).then(|| *averages.select_nth_unstable_by(half, f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_do_not_move_it() {
        assert_eq!(pseudo_median(&[]), None);
        assert_eq!(pseudo_median(&[3.0]), Some(3.0));
        let mut values: Vec<f64> = (0..100).map(|at| f64::from(at % 5) - 2.0 + 7.0).collect();
        assert_eq!(pseudo_median(&values), Some(7.0));
        for at in [3, 30, 31, 60, 99] {
            values[at] = 1e6;
        }
        let found = pseudo_median(&values).expect("a middle");
        assert!((found - 7.0).abs() <= 0.5, "{found}");
    }

    #[test]
    fn many_values_are_weighed_with_their_neighbours() {
        let values: Vec<f64> = (0..5_000).map(|at| f64::from(at * 7 % 11)).collect();
        assert_eq!(pseudo_median(&values), Some(5.0));
    }
}
