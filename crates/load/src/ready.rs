//! A plan that is ready to be run: checked, its target resolved, its requests put together. Nothing but the address (and, over gRPC,
//! the server's reflection) has been asked for anything yet.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Resource, Rlimit};

use crate::check::check;
use crate::engine::Shared;
use crate::error::LoadError;
use crate::gather::{self, Seconds};
use crate::grpc::{self, status};
use crate::h2::request::{Encoded, Fields};
use crate::histogram::{self, Histograms};
use crate::http1::request::Template;
use crate::merge;
use crate::network::{Network, within};
use crate::outcome::Outcome;
use crate::pace::{SECOND, Span, nanoseconds};
use crate::plan::{Pacing, Plan, Protocol, Replica};
use crate::record::Recorder;
use crate::script::Script;
use crate::sys;
use crate::target::{Address, Target};
use crate::tls::Tls;
use crate::warning;

/// Descriptors that the process needs besides its connections.
const OTHER_DESCRIPTORS: u64 = 64;

/// A load that is ready to be run.
pub(crate) struct Ready<'a> {
    pub(crate) plan: Plan,
    pub(crate) shared: Shared<'a>,
    pub(crate) template: Template,
    pub(crate) script: Option<Script>,
    /// This process's part of them.
    pub(crate) connections: usize,
    pub(crate) threads: usize,
    /// From the start of the warm-up to the end of the window, nanoseconds.
    length: u64,
}

impl<'a> Ready<'a> {
    /// Checks the plan, finds its target, puts its requests together.
    pub(crate) fn new(plan: &Plan, stop: &'a AtomicBool) -> Result<Self, LoadError> {
        let mut owned = plan.clone();
        if plan.grpc.is_some() {
            (owned.protocol, owned.method) = (Protocol::Http2, "POST".to_owned());
        }
        let plan = &owned;
        check(plan)?;
        let target = Target::parse(&plan.url)?;
        let template = Template::new(plan, &target)?;
        let script = Script::new(plan, &target)?;
        let (shard, shards) = plan.shard.map_or((0, 1), |shard| (u64::from(shard.number) - 1, u64::from(shard.of)));
        let own = |whole: u64| whole / shards + u64::from(shard < whole % shards);
        let connections = own(u64::from(plan.connections)) as usize;
        allow_descriptors(connections as u64 + OTHER_DESCRIPTORS);
        let addresses = addresses(plan, &target)?;
        let tls = if target.secure { Some(Tls::new(plan, &target)?) } else { None };
        let http2 = match plan.protocol {
            Protocol::Http1 => None,
            Protocol::Http2 => Some(encode(plan, &target, &mut template.clone(), &addresses[0], tls.as_ref())?),
        };
        let length = nanoseconds(plan.warmup_s) + nanoseconds(plan.window_s);
        let schedule = plan.pacing.schedule(length, plan.limit);
        let users = match &plan.pacing {
            Pacing::Users { think_s, rate, .. } => {
                plan.pacing.users().map(|profile| (profile, nanoseconds(*think_s), *rate))
            }
            _ => None,
        };
        let threads = plan.cores.len().clamp(1, connections.max(1));
        let slot = match plan.slot_us {
            Some(slot) => (slot * 1e3) as u64,
            None => schedule.as_ref().map_or(0, |schedule| schedule.slot_ns(threads as u64 * shards)),
        };
        let shared = Shared {
            addresses,
            tls,
            check: plan.check.clone(),
            method: plan.method.clone(),
            http2,
            grpc: plan.grpc.as_ref().map(status::wanted).transpose()?,
            streams: plan.streams as usize,
            timeout: nanoseconds(plan.timeout_s),
            connect_timeout: nanoseconds(plan.connect_timeout_s.unwrap_or(plan.timeout_s)),
            schedule,
            users,
            limit: plan.limit.map_or(u64::MAX, own),
            shard: (shard, shards),
            slot,
            spin: plan.spin,
            stop,
            end: AtomicU64::new(u64::MAX),
            iterations: AtomicU64::new(0),
            counter: AtomicU64::new(0),
        };
        Ok(Self { shared, template, script, connections, threads, length, plan: owned })
    }

    /// Room for the seconds of all threads.
    pub(crate) fn seconds(&self) -> Seconds {
        let names = self.script.as_ref().map_or(0, |script| script.steps().len());
        Seconds::new(self.threads, names, self.length.div_ceil(SECOND))
    }

    /// Adds up what the threads wrote down, and writes the files that the plan wants.
    pub(crate) fn conclude(
        &self,
        records: &[Recorder],
        seconds: Seconds,
        span: &Span,
    ) -> Result<(Outcome, Histograms), LoadError> {
        let plan = &self.plan;
        let target_rate = plan.pacing.mean_rate(nanoseconds(plan.warmup_s), self.length);
        let (mut outcome, histograms) =
            gather::outcome(records, seconds, span, target_rate, self.shared.slot, self.script.as_ref())?;
        outcome.shard = plan.shard;
        outcome.warnings = warning::warnings(&outcome, plan.spin);
        if let Some(folder) = &plan.out {
            write(folder, &outcome, &histograms, span.window_start)?;
        }
        Ok((outcome, histograms))
    }
}

/// Writes the histograms of a load into its folder, and of a shard its outcome; `window_start` is the window's, `CLOCK_MONOTONIC` ns.
pub(crate) fn write(
    folder: &Path,
    outcome: &Outcome,
    histograms: &Histograms,
    window_start: u64,
) -> Result<(), LoadError> {
    let since = sys::monotonic_ns().saturating_sub(window_start);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let started = now.saturating_sub(Duration::from_nanos(since));
    histogram::write(folder, histograms, started, Duration::from_secs_f64(outcome.duration_s))?;
    if outcome.shard.is_some() {
        merge::write(folder, outcome)?;
    }
    Ok(())
}

/// The request for HTTP/2.
fn encode(
    plan: &Plan,
    target: &Target,
    template: &mut Template,
    address: &Address,
    tls: Option<&Tls>,
) -> Result<Encoded, LoadError> {
    let scheme = if target.secure { "https" } else { "http" };
    let trace = plan.trace.as_ref().map(|trace| trace.header.name());
    let mut fields = Fields::of_http1(template.render(0).0, scheme, trace);
    if let Some(grpc) = &plan.grpc {
        let (path, body) = grpc::prepare(grpc, plan, target, address, tls)?;
        fields.set_path(&path);
        fields.for_grpc(body);
    }
    Ok(Encoded::new(&fields, plan.trace.clone()))
}

/// Where connections go, dealt round: at least one address.
fn addresses(plan: &Plan, target: &Target) -> Result<Vec<Address>, LoadError> {
    let open = |path: &Option<PathBuf>| path.as_deref().map(Network::open).transpose();
    if plan.replicas.is_empty() || target.unix.is_some() {
        return Ok(vec![choose(target, open(&plan.network)?)?]);
    }
    let of =
        |replica: &Replica| Ok(Address::Tcp(SocketAddr::new(replica.address, target.port), open(&replica.network)?));
    plan.replicas.iter().map(of).collect()
}

/// An address that accepts connections, if the name has several (`localhost` is often `::1` first, where nobody listens).
fn choose(target: &Target, network: Option<Network>) -> Result<Address, LoadError> {
    if let Some(path) = &target.unix {
        return Ok(Address::Unix(path.clone()));
    }
    let addresses = target.resolve()?;
    if let [only] = addresses[..] {
        return Ok(Address::Tcp(only, network));
    }
    let mut last = None;
    for address in addresses {
        match within(network.as_ref(), || TcpStream::connect_timeout(&address, Duration::from_secs(5))) {
            Ok(_) => return Ok(Address::Tcp(address, network)),
            Err(source) => last = Some(LoadError::Connect { address: address.to_string(), source }),
        }
    }
    Err(last.unwrap_or(LoadError::Thread))
}

/// Raises the process's own limit on open files, if it is too low and may be raised. If not, connecting says so.
fn allow_descriptors(wanted: u64) {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        let current = Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
        let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::plan::Shard;

    #[test]
    fn shards_give_every_replica_its_share_of_connections() {
        let stop = AtomicBool::new(false);
        for (of, connections, share) in [(1, 6, 2), (4, 6, 2), (6, 6, 2), (2, 12, 4)] {
            let mut counts: BTreeMap<String, u32> = BTreeMap::new();
            for number in 1..=of {
                let replica =
                    |last: u8| Replica { address: std::net::Ipv4Addr::new(127, 0, 0, last).into(), network: None };
                let plan = Plan {
                    connections,
                    replicas: [1, 2, 3].map(replica).to_vec(),
                    shard: Some(Shard { number, of }),
                    ..Plan::new("http://shop:80/")
                };
                let ready = Ready::new(&plan, &stop).expect("it is ready");
                for connection in 0..ready.connections {
                    *counts.entry(ready.shared.address(connection).to_string()).or_default() += 1;
                }
            }
            assert_eq!(counts.into_values().collect::<Vec<_>>(), [share; 3], "{of} shards");
        }
    }
}
