//! Runs a load: checks the plan, starts a thread per core, lets them connect, gives the start, adds up.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Resource, Rlimit};

use crate::doubt;
use crate::engine::{Engine, Message, Shared};
use crate::error::LoadError;
use crate::gather::{self, Seconds};
use crate::grpc::Call;
use crate::h2::request::{Encoded, Fields};
use crate::histogram;
use crate::http1::request::Template;
use crate::merge;
use crate::network::{Network, within};
use crate::outcome::{Event, Outcome};
use crate::pace::{Profile, SECOND, Span, Stage, nanoseconds};
use crate::plan::{Pacing, Plan, Protocol, Shard};
use crate::record::Recorder;
use crate::script::Script;
use crate::sys;
use crate::target::{Address, Target};
use crate::tls::Tls;

/// From the last connection to the start, if the plan has no start: time for the threads to hear of it.
const HEAD_START_NS: u64 = 1_000_000;
/// Descriptors that the process needs besides its connections.
const OTHER_DESCRIPTORS: u64 = 64;

/// Runs a load to its end and returns what came back. Blocks; `events` is called on this thread with [`Event::Ready`] and, as
/// they pass, [`Event::Second`]s. Setting `stop` ends the load early: nothing is sent any more, answers are waited for up to
/// a second, and the outcome covers the window up to that instant.
///
/// # Errors
/// [`LoadError`] if the load could not run at all, or its histograms could not be written. Failing requests are no error.
pub fn run(plan: &Plan, events: &mut dyn FnMut(Event), stop: &AtomicBool) -> Result<Outcome, LoadError> {
    let mut plan = plan.clone();
    if plan.grpc.is_some() {
        (plan.protocol, plan.method) = (Protocol::Http2, "POST".to_owned());
    }
    let plan = &plan;
    check(plan)?;
    let target = Target::parse(&plan.url)?;
    let template = Template::new(plan, &target)?;
    let script = Script::new(plan, &target)?;
    let (shard, shards) = plan.shard.map_or((0, 1), |shard| (u64::from(shard.number) - 1, u64::from(shard.of)));
    let own = |whole: u64| whole / shards + u64::from(shard < whole % shards);
    let connections = own(u64::from(plan.connections)) as usize;
    allow_descriptors(connections as u64 + OTHER_DESCRIPTORS);
    let network = plan.network.as_deref().map(Network::open).transpose()?;
    let address = choose(&target, network)?;
    let tls = if target.secure { Some(Tls::new(plan, &target)?) } else { None };
    let http2 = match plan.protocol {
        Protocol::Http1 => None,
        Protocol::Http2 => Some(encode(plan, &target, &mut template.clone(), &address, tls.as_ref())?),
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
        address,
        tls,
        protocol: plan.protocol,
        check: plan.check.clone(),
        method: plan.method.clone(),
        http2,
        grpc: plan.grpc.as_ref().map(Call::wanted).transpose()?,
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
    let (records, seconds, span) = thread::scope(|scope| {
        let (messages, told) = mpsc::channel();
        let mut starts = Vec::new();
        let mut handles = Vec::new();
        for number in 0..threads {
            let (start, started) = mpsc::channel();
            starts.push(start);
            let (shared, messages) = (&shared, messages.clone());
            let work = (template.clone(), script.clone());
            let connections = connections / threads + usize::from(number < connections % threads);
            let core = plan.cores.get(number).copied();
            handles.push(
                scope.spawn(move || thread(shared, work, (number, threads), connections, core, messages, &started)),
            );
        }
        drop(messages);
        // An error drops the start channels, which ends the threads; the scope waits for them.
        let span = start(plan, &starts, &told)?;
        events(Event::Ready);
        let names = script.as_ref().map_or(0, |script| script.steps().len());
        let mut seconds = Seconds::new(threads, names, length.div_ceil(SECOND));
        for message in &told {
            match message {
                Message::Passed(part) => {
                    if let Some(second) = seconds.passed(part) {
                        events(Event::Second(second));
                    }
                }
                Message::Closed(part) => seconds.closed(part),
                Message::Connected(_) => {}
            }
        }
        let mut records = Vec::new();
        for handle in handles {
            if let Some(record) = handle.join().map_err(|_| LoadError::Thread)?? {
                records.push(record);
            }
        }
        Ok::<_, LoadError>((records, seconds, span))
    })?;
    let target_rate = plan.pacing.mean_rate(nanoseconds(plan.warmup_s), length);
    let (mut outcome, histograms) =
        gather::outcome(&records, seconds, &span, target_rate, shared.slot, script.as_ref())?;
    outcome.shard = plan.shard;
    outcome.doubts = doubt::doubts(&outcome, plan.spin);
    if let Some(folder) = &plan.out {
        let since = sys::monotonic_ns().saturating_sub(span.window_start);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started = now.saturating_sub(Duration::from_nanos(since));
        histogram::write(folder, &histograms, started, Duration::from_secs_f64(outcome.duration_s))?;
        if plan.shard.is_some() {
            merge::write(folder, &outcome)?;
        }
    }
    Ok(outcome)
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
        let call = Call::new(grpc, plan, target, address, tls)?;
        fields.set_path(&call.path);
        fields.for_grpc(call.body);
    }
    Ok(Encoded::new(&fields, plan.trace.clone()))
}

/// One thread: connects, waits for the start, runs. `None`: the start was called off.
fn thread(
    shared: &Shared<'_>,
    (template, script): (Template, Option<Script>),
    (number, threads): (usize, usize),
    connections: usize,
    core: Option<u32>,
    messages: Sender<Message>,
    started: &Receiver<Span>,
) -> Result<Option<Recorder>, LoadError> {
    let ready = sys::prepare_thread(core)
        .map_err(LoadError::system("pin a thread to its core"))
        .and_then(|()| {
            Engine::new(shared, template, script, (number as u64, threads as u64), connections, messages.clone())
        })
        .and_then(|mut engine| engine.connect_all().map(|()| engine));
    match ready {
        Ok(engine) => {
            // If nobody listens any more, no start will come either.
            let _ = messages.send(Message::Connected(Ok(())));
            drop(messages);
            let Ok(span) = started.recv() else { return Ok(None) };
            // A closed loop has no schedule to keep, and would take its core from everyone.
            if shared.schedule.is_some() {
                sys::go_ahead();
            }
            engine.run(span).map(Some)
        }
        Err(error) => {
            let _ = messages.send(Message::Connected(Err(error)));
            Ok(None)
        }
    }
}

/// Waits until all threads are connected, then gives the start.
fn start(plan: &Plan, starts: &[Sender<Span>], told: &Receiver<Message>) -> Result<Span, LoadError> {
    for _ in starts {
        match told.recv() {
            Ok(Message::Connected(result)) => result?,
            Ok(_) | Err(_) => return Err(LoadError::Thread),
        }
    }
    let now = sys::monotonic_ns();
    let at = plan.start_at_ns.unwrap_or(now + HEAD_START_NS);
    let span = Span::of(plan, at);
    // A start that has just passed costs the warm-up a little; one after the warm-up would falsify the window.
    if now >= span.window_start && now > at {
        return Err(LoadError::StartPassed { late_ms: (now - at) / 1_000_000 });
    }
    for start in starts {
        start.send(span).map_err(|_| LoadError::Thread)?;
    }
    Ok(span)
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
fn check(plan: &Plan) -> Result<(), LoadError> {
    let refuse = |field, value: String, remedy| Err(LoadError::Plan { field, value, remedy });
    check_pacing(plan)?;
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
