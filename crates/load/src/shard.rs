//! Several processes for one load, without anybody who coordinates them: which part is whose, and when all begin.

use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::plan::Shard;
use crate::sys;

/// Why a text names no part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no part of a load: write its number and how many there are, as in 2/4")]
pub struct ShardError(String);

impl FromStr for Shard {
    type Err = ShardError;

    /// `2/4`.
    fn from_str(text: &str) -> Result<Self, ShardError> {
        let parse = || {
            let (number, of) = text.split_once('/')?;
            let shard = Self { number: number.trim().parse().ok()?, of: of.trim().parse().ok()? };
            (1..=shard.of).contains(&shard.number).then_some(shard)
        };
        parse().ok_or_else(|| ShardError(text.to_owned()))
    }
}

impl Shard {
    /// The part of a pod of an indexed Kubernetes Job: `index` is the value of `JOB_COMPLETION_INDEX`, from 0; `of` is the
    /// job's number of completions, which Kubernetes does not tell its pods.
    ///
    /// # Errors
    /// [`ShardError`] if the index is no number below `of`.
    pub fn of_job(index: &str, of: u32) -> Result<Self, ShardError> {
        let number: Option<u32> = index.trim().parse().ok().filter(|&index| index < of);
        number.map(|index| Self { number: index + 1, of }).ok_or_else(|| ShardError(format!("{index}/{of}")))
    }
}

/// The instant of [`crate::plan::Plan::start_at_ns`] that is a point of civil time, given since the Unix epoch: the way
/// machines agree on a start. `None`: it has passed. As exact as the machines' clocks agree.
#[must_use]
pub fn start_at(since_epoch: Duration) -> Option<u64> {
    let (now, monotonic) = (SystemTime::now(), sys::monotonic_ns());
    let until = (UNIX_EPOCH + since_epoch).duration_since(now).ok()?;
    Some(monotonic + u64::try_from(until.as_nanos()).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named_by_number_and_total() {
        assert_eq!("2/4".parse(), Ok(Shard { number: 2, of: 4 }));
        assert_eq!(Shard::of_job("0", 3), Ok(Shard { number: 1, of: 3 }));
        assert_eq!(Shard::of_job("2", 3), Ok(Shard { number: 3, of: 3 }));
        for text in ["", "2", "0/4", "5/4", "-1/4", "a/b"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
        assert!(Shard::of_job("3", 3).is_err() && Shard::of_job("", 3).is_err());
    }

    #[test]
    fn a_start_is_translated_and_one_in_the_past_is_none() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        let at = start_at(now + Duration::from_secs(10)).expect("to come");
        let ahead = at - sys::monotonic_ns();
        // Ten seconds less what passed since; the bound is for a machine that stands still for seconds.
        assert!((5_000_000_000..=10_000_000_000).contains(&ahead), "{ahead}");
        assert_eq!(start_at(now - Duration::from_secs(1)), None);
    }
}
