//! How a load was paced, in words for the head of a report.

use unladen_study::spec::{Arrival, Load};

use super::units;

/// `2,000 requests/s (open loop) over 16 connections`.
pub(super) fn words(load: &Load) -> String {
    let connections = match load.connections {
        1 => "1 connection".to_owned(),
        more => format!("{more} connections"),
    };
    let number = |number: f64| units::chosen("", number);
    let random = if load.arrival == Arrival::Poisson { " at random" } else { "" };
    let paced = if let Some(driver) = &load.driver {
        return format!("{} units of work by {driver}", units::count(load.work.unwrap_or(1)));
    } else if let Some(users) = &load.users {
        let rate = users.rate.map_or(String::new(), |rate| format!(", at most {} iterations/s", number(rate)));
        let users_are = if users.stages.is_empty() { "users" } else { "users at most" };
        format!("{} {users_are}, with pauses of {}{rate}", number(users.most()), users.think)
    } else if !load.stages.is_empty() {
        let stages = if load.stages.len() == 1 { "stage" } else { "stages" };
        format!("{} {stages} of rates{random} (open loop) over {connections}", load.stages.len())
    } else if let Some(rate) = load.rate {
        format!("{} requests/s{random} (open loop) over {connections}", number(rate))
    } else if let Some(count) = load.burst {
        format!("{} requests at once over {connections}", units::count(count))
    } else if let Some(file) = &load.replay {
        format!("the recorded gaps of {file} (open loop) over {connections}")
    } else {
        format!("closed loop over {connections}")
    };
    match load.requests {
        Some(requests) => format!("{} requests, {paced}", units::count(requests)),
        None => paced,
    }
}

#[cfg(test)]
mod tests {
    use unladen_journal::units::Time;
    use unladen_study::spec::{Stage, Users};

    use super::*;

    #[test]
    fn every_way_of_pacing_has_words() {
        let load = || Load::new("http://localhost/");
        let stage = Stage { duration: Time::seconds(5.0), target: 320.0 };
        let users = |rate| Users { count: 1.0, stages: vec![stage], think: Time::seconds(1.0), rate };
        for (load, expected) in [
            (load(), "closed loop over 16 connections"),
            (Load { rate: Some(2000.0), ..load() }, "2,000 requests/s (open loop) over 16 connections"),
            (
                Load { rate: Some(0.5), arrival: Arrival::Poisson, connections: 1, ..load() },
                "0.5 requests/s at random (open loop) over 1 connection",
            ),
            (Load { stages: vec![stage; 2], ..load() }, "2 stages of rates (open loop) over 16 connections"),
            (Load { users: Some(users(None)), ..load() }, "320 users at most, with pauses of 1s"),
            (
                Load { users: Some(users(Some(1000.0))), ..load() },
                "320 users at most, with pauses of 1s, at most 1,000 iterations/s",
            ),
            (Load { burst: Some(100_000), ..load() }, "100,000 requests at once over 16 connections"),
            (Load { requests: Some(5000), ..load() }, "5,000 requests, closed loop over 16 connections"),
            (
                Load { replay: Some("gaps.txt".to_owned()), ..load() },
                "the recorded gaps of gaps.txt (open loop) over 16 connections",
            ),
            (
                Load { driver: Some("pump".to_owned()), work: Some(1_000_000), ..load() },
                "1,000,000 units of work by pump",
            ),
        ] {
            assert_eq!(words(&load), expected);
        }
    }
}
