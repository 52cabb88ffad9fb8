//! Whether a plan makes sense, before anything is connected.

use crate::error::LoadError;
use crate::pace::{Profile, Stage};
use crate::plan::{Pacing, Plan, Protocol, Shard};

/// Refuses pacing that makes no sense.
fn check_pacing(plan: &Plan) -> Result<(), LoadError> {
    let refuse = |field, value: String, remedy| Err(LoadError::Plan { field, value, remedy });
    let rate_is_good = |rate: f64| rate > 0.0 && rate <= 1e8;
    let check_stages = |field, from: f64, stages: &[Stage], most: f64| {
        let good = |value: f64| (0.0..=most).contains(&value);
        let bad = stages.iter().find(|stage| !good(stage.to) || !(0.0..=1e7).contains(&stage.seconds));
        match (bad, Profile::new(from, stages).most() > 0.0) {
            (None, true) if good(from) => Ok(()),
            (Some(stage), _) => refuse(field, format!("{stage:?}"), "write seconds and a value, neither negative"),
            (None, _) => refuse(field, from.to_string(), "write at least one value above 0"),
        }
    };
    match &plan.pacing {
        Pacing::Constant { rate } | Pacing::Poisson { rate, .. } if !rate_is_good(*rate) => {
            refuse("rate", rate.to_string(), "write requests per second, more than 0")
        }
        Pacing::Stages { from, stages, .. } => check_stages("stages", *from, stages, 1e8),
        Pacing::Replay { gaps_us }
            if !gaps_us.iter().all(|gap| (0.0..=1e12).contains(gap)) || gaps_us.iter().sum::<f64>() < 1.0 =>
        {
            refuse("gaps_us", format!("{} gaps", gaps_us.len()), "write microseconds, none negative, not all 0")
        }
        Pacing::Burst { count: 0 } => refuse("count", "0".to_owned(), "write how many requests, more than 0"),
        Pacing::Users { think_s, .. } if !(0.0..=1e6).contains(think_s) => {
            refuse("think_s", think_s.to_string(), "write seconds, 0 or more")
        }
        Pacing::Users { rate: Some(rate), .. } if !rate_is_good(*rate) => {
            refuse("rate", rate.to_string(), "write iterations per second, more than 0")
        }
        Pacing::Users { from, stages, .. } => {
            check_stages("users", *from, stages, 1e6)?;
            let most = Profile::new(*from, stages).most().ceil();
            let (room, remedy) = match plan.protocol {
                Protocol::Http1 => (f64::from(plan.connections), "every user needs one: write at least the most users"),
                Protocol::Http2 => (
                    f64::from(plan.connections) * f64::from(plan.streams),
                    "every user needs a stream: write at least the most users divided by the streams",
                ),
            };
            if most > room {
                return refuse("connections", plan.connections.to_string(), remedy);
            }
            Ok(())
        }
        Pacing::Constant { .. }
        | Pacing::Poisson { .. }
        | Pacing::Replay { .. }
        | Pacing::Burst { .. }
        | Pacing::Closed => Ok(()),
    }
}

/// Refuses numbers that make no sense.
pub(crate) fn check(plan: &Plan) -> Result<(), LoadError> {
    let refuse = |field, value: String, remedy| Err(LoadError::Plan { field, value, remedy });
    check_pacing(plan)?;
    if let Some(trace) = plan.trace.as_ref().filter(|trace| trace.samples_some() && !trace.header.tells_sampling()) {
        let remedy = "Pinpoint's headers have no flag for each request; write 0 or 1";
        return refuse("sampled", trace.sampled.to_string(), remedy);
    }
    let several = !plan.requests.is_empty() || !plan.values.is_empty();
    if plan.grpc.is_some() && plan.redirects > 0 {
        return refuse("redirects", plan.redirects.to_string(), "a gRPC call has none; leave it out");
    }
    if plan.grpc.is_some() && several {
        return refuse("requests", plan.requests.len().to_string(), "a gRPC call is the only request; leave them out");
    }
    if let Some(Shard { number, of }) = plan.shard
        && !(1..=of).contains(&number)
    {
        return refuse(
            "shard",
            format!("{number}/{of}"),
            "write the number of the part, from 1, and how many there are",
        );
    }
    if plan.shard.is_some_and(|shard| shard.of > plan.connections) {
        return refuse("connections", plan.connections.to_string(), "every shard needs at least one");
    }
    if plan.connections == 0 || plan.connections > 1_000_000 {
        return refuse("connections", plan.connections.to_string(), "write 1 to 1,000,000");
    }
    if plan.streams == 0 || plan.streams > 10_000 {
        return refuse("streams", plan.streams.to_string(), "write 1 to 10,000");
    }
    for (field, value, least) in [
        ("warmup_s", plan.warmup_s, 0.0),
        ("window_s", plan.window_s, 1e-3),
        ("timeout_s", plan.timeout_s, 1e-3),
        ("connect_timeout_s", plan.connect_timeout_s.unwrap_or(plan.timeout_s), 1e-3),
    ] {
        if !(value >= least && value <= 1e7) {
            return refuse(field, value.to_string(), "write seconds, at least a millisecond (the warm-up may be 0)");
        }
    }
    if let Some(slot) = plan.slot_us
        && !(0.0..=1e6).contains(&slot)
    {
        return refuse("slot_us", slot.to_string(), "write microseconds, 0 to 1,000,000");
    }
    if let Some(trace) = &plan.trace
        && !(0.0..=1.0).contains(&trace.sampled)
    {
        return refuse("sampled", trace.sampled.to_string(), "write a share, 0 to 1");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Trace, TraceHeader};

    #[test]
    fn only_a_header_with_a_flag_carries_a_share() {
        let refused = |header, sampled| {
            let trace = Some(Trace { header, tag: 1, key: 2, sampled });
            matches!(
                check(&Plan { trace, ..Plan::new("http://127.0.0.1/".to_owned()) }),
                Err(LoadError::Plan { field: "sampled", .. })
            )
        };
        assert!(refused(TraceHeader::Pinpoint, 0.5));
        assert!(!refused(TraceHeader::Pinpoint, 0.0) && !refused(TraceHeader::Pinpoint, 1.0));
        assert!(!refused(TraceHeader::W3c, 0.5) && refused(TraceHeader::W3c, 1.5));
    }
}
