//! How many traces are due in each part of a load.

use super::parts::Part;
use super::terms::{LedgerError, Sampling};

/// Standard deviations by which the number of traces that a random sampler keeps may differ from its share: beyond that,
/// chance explains it less than once in ten thousand runs.
const DEVIATIONS: f64 = 4.0;

/// Sets [`Part::due`].
pub(super) fn decide(parts: &mut [Part], sampling: Sampling, per_request: f64) -> Result<(), LedgerError> {
    if per_request == 0.0 {
        // Nothing is recorded at all, whatever the flags say.
        parts.iter_mut().for_each(|part| part.due = 0);
        return Ok(());
    }
    match sampling {
        Sampling::Flag => parts.iter_mut().for_each(|part| part.due = part.sampled.min(part.answered)),
        Sampling::Own(share) if (0.0..=1.0).contains(&share) => own(parts, share),
        Sampling::Own(_) => return Err(LedgerError::Share),
    }
    Ok(())
}

/// As many traces as arrived, unless that is more or less than chance allows; then the nearest number that is not. Traces
/// that are missing or too many are spread over the parts in proportion to how far each is from its share.
fn own(parts: &mut [Part], share: f64) {
    let answered: u64 = parts.iter().map(|part| part.answered).sum();
    // More traces than answered requests: the rest is of requests without an answer.
    let arrived: Vec<u64> = parts.iter().map(|part| part.arrived().min(part.answered)).collect();
    let total = arrived.iter().sum::<u64>() as f64;
    let mean = answered as f64 * share;
    let slack = DEVIATIONS * (mean * (1.0 - share)).sqrt();
    let due = total.max((mean - slack).ceil()).min((mean + slack).min(answered as f64).floor());

    let distance: Vec<f64> = parts
        .iter()
        .zip(&arrived)
        .map(|(part, arrived)| {
            let distance = part.answered as f64 * share - *arrived as f64;
            // Only parts that differ in the same direction as the whole take part.
            if due > total { distance.max(0.0) } else { (-distance).max(0.0) }
        })
        .collect();
    let sum: f64 = distance.iter().sum();
    let factor = if sum > 0.0 { (due - total) / sum } else { 0.0 };
    // Rounded so that the parts add up.
    let (mut exact, mut given) = (0.0, 0);
    for ((part, arrived), distance) in parts.iter_mut().zip(arrived).zip(distance) {
        exact += arrived as f64 + factor * distance;
        part.due = (exact.round().max(0.0) as u64).saturating_sub(given).min(part.answered);
        given += part.due;
    }
}
