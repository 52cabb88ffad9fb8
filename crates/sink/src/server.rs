//! The sink from its first listener to its summary. The one place with a clock and an event loop.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::watch;
use tokio::task::LocalSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use unladen_decode::span::Protocol;
use unladen_ledger::summary::{Event, Summary};

use crate::admin;
use crate::config::Config;
use crate::datagrams::Datagrams;
use crate::error::SinkError;
use crate::hub::Hub;
use crate::listen::{self, Connections};
use crate::store::{Store, shape};
use crate::tls::Tls;
use crate::{CA_FILE, datadog, xray};

/// Between two [`Event::Tick`]s.
const TICK: Duration = Duration::from_millis(100);
/// Between two [`Event::Live`]s.
const LIVE: Duration = Duration::from_secs(1);
/// How long open connections may finish their requests after the stop.
const GRACE: Duration = Duration::from_secs(1);
/// Step in which that is looked at.
const GRACE_STEP: Duration = Duration::from_millis(5);
/// How long it may take to store the datagrams that have come by then.
const LAST_DATAGRAMS: Duration = Duration::from_secs(5);

/// Receives spans until `stop` is ready, then writes the summary and returns it. Blocks the calling thread, on which
/// everything but the writing of spans happens. `stop` may use tokio: it is polled within a runtime, for the first time
/// before [`Event::Ready`], so that a signal handler it installs is in place by then.
///
/// # Errors
/// If an address cannot be listened at, or the folder of the span files cannot be written.
pub fn run(config: &Config, events: impl FnMut(Event), stop: impl Future<Output = ()>) -> Result<Summary, SinkError> {
    run_in(config, events, stop, mpsc::unbounded_channel().1)
}

/// [`run`]; listens at the same addresses in every network namespace that comes in, too.
pub(crate) fn run_in(
    config: &Config,
    events: impl FnMut(Event),
    stop: impl Future<Output = ()>,
    networks: UnboundedReceiver<PathBuf>,
) -> Result<Summary, SinkError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(SinkError::Runtime)?;
    LocalSet::new().block_on(&runtime, serve(config, events, stop, networks))
}

async fn serve(
    config: &Config,
    mut events: impl FnMut(Event),
    stop: impl Future<Output = ()>,
    mut networks: UnboundedReceiver<PathBuf>,
) -> Result<Summary, SinkError> {
    let mut stop = std::pin::pin!(stop);
    let mut listeners = Vec::new();
    let mut bound_at = Vec::new();
    let mut addresses = BTreeMap::new();
    for (&protocol, address) in &config.listen {
        let (listener, bound) = listen::bind(protocol.name(), *address).await?;
        addresses.insert(protocol.name().to_string(), bound);
        listeners.push((listener, protocol));
        bound_at.push((bound, protocol));
    }
    if listeners.is_empty() {
        return Err(SinkError::NothingToListenOn);
    }
    let admin = match config.admin {
        Some(address) => Some(listen::bind("admin", address).await?),
        None => None,
    };
    addresses.extend(admin.iter().map(|(_, bound)| ("admin".to_owned(), *bound)));
    let store = if config.store { Some(Store::start(config)?) } else { None };
    let hub = Rc::new(Hub::new(config, store));
    let committing = Rc::clone(&hub);
    tokio::task::spawn_local(async move { committing.keep_committing().await });
    let (stopping, stopped) = watch::channel(false);
    if let Some((listener, _)) = admin {
        let hub = Rc::clone(&hub);
        let serve = move |stream| admin::serve(Rc::clone(&hub), stream);
        tokio::task::spawn_local(listen::accept(listener, stopped.clone(), serve));
    }
    // Those who carry spans: what they have received is to be counted before the sink ends.
    let carriers = RefCell::new(Vec::new());
    // UDP on the port of the same number, which is all that senders are told.
    let receive_datagrams = |network: Option<&Path>, address: SocketAddr, protocol| -> std::io::Result<()> {
        let (hub, stopped) = (Rc::clone(&hub), stopped.clone());
        match protocol {
            Protocol::Datadog => {
                let socket = listen::bind_datagrams(network, address)?;
                tokio::task::spawn_local(datadog::receive_statsd(hub, socket, stopped));
            }
            Protocol::Xray => {
                let datagrams = Datagrams::bind(network, address)?;
                carriers.borrow_mut().push(tokio::task::spawn_local(xray::receive(hub, datagrams, stopped)));
            }
            _ => {}
        }
        Ok(())
    };
    for (address, protocol) in &bound_at {
        let name = match protocol {
            Protocol::Xray => "xray over UDP",
            _ => "datadog's DogStatsD over UDP",
        };
        let error = |source| SinkError::listen(name, *address, source);
        receive_datagrams(None, *address, *protocol).map_err(error)?;
    }
    let port = |protocol: Protocol| addresses.get(protocol.name()).map_or(0, SocketAddr::port);
    let about = datadog::About::new(port(Protocol::Datadog));
    let newrelic = config.listen.get(&Protocol::Newrelic);
    let tls = newrelic.map(|address| Tls::new(&config.out.join(CA_FILE), address.ip())).transpose()?;
    let connections = Connections::new(Rc::clone(&hub), stopped.clone(), config.max_connections, about)
        .with_newrelic(port(Protocol::Newrelic), tls);
    let accept = |listener, protocol| {
        let connections = connections.clone();
        let serve = move |stream| connections.clone().serve(stream, protocol);
        tokio::task::spawn_local(listen::accept(listener, stopped.clone(), serve));
    };
    for (listener, protocol) in listeners {
        accept(listener, protocol);
    }
    let listen_in = |network: &Path| -> std::io::Result<()> {
        for (address, protocol) in &bound_at {
            accept(listen::bind_in(network, *address)?, *protocol);
            receive_datagrams(Some(network), *address, *protocol)?;
        }
        Ok(())
    };
    let stopped_already = tokio::select! {
        biased;
        () = stop.as_mut() => true,
        () = std::future::ready(()) => false,
    };
    events(Event::Ready { addresses });
    if !stopped_already {
        watch_over(&hub, config.live, &mut events, stop, (&mut networks, &listen_in)).await;
    }

    stopping.send_replace(true);
    let deadline = Instant::now() + GRACE;
    while connections.open() > 0 && Instant::now() < deadline {
        sleep(GRACE_STEP).await;
    }
    for carrier in carriers.take() {
        // Longer only if the store fails, which says so below, or if datagrams never end.
        let _ = timeout(LAST_DATAGRAMS, carrier).await;
    }
    let (mut summary, store) = hub.close();
    if let Some(store) = store {
        summary.stored_bytes = store.finish().await?;
        if config.requests.is_some() {
            summary.shape = Some(shape(&config.out, &summary.spans_by_request)?);
        }
    }
    fs::create_dir_all(&config.out).map_err(SinkError::folder(&config.out))?;
    write_summary(&config.out, &summary)?;
    events(Event::Done(Box::new(summary.clone())));
    Ok(summary)
}

/// Ticks until the stop, or until the store fails.
async fn watch_over(
    hub: &Hub,
    is_live: bool,
    events: &mut impl FnMut(Event),
    mut stop: Pin<&mut impl Future<Output = ()>>,
    (networks, listen_in): (&mut UnboundedReceiver<PathBuf>, &impl Fn(&Path) -> std::io::Result<()>),
) {
    let mut lives = interval(LIVE);
    lives.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.as_mut() => return,
            _ = lives.tick(), if is_live => events(Event::Live(Box::new(hub.summary()))),
            Some(network) = networks.recv() => {
                let error = listen_in(&network).err().map(|error| error.to_string());
                events(Event::Listening { error });
            }
            _ = ticks.tick() => {
                if !hub.flush() {
                    return;
                }
                let (received, saved, quiet_ms) = hub.progress();
                events(Event::Tick { received, saved, quiet_ms });
            }
        }
    }
}

/// `DIR/summary.json`, whole or not at all.
fn write_summary(out: &Path, summary: &Summary) -> Result<(), SinkError> {
    let path = out.join("summary.json");
    let partial = out.join("summary.json.partial");
    let write = || {
        let mut file = BufWriter::new(File::create(&partial)?);
        serde_json::to_writer_pretty(&mut file, summary)?;
        file.write_all(b"\n")?;
        file.into_inner()?.sync_data()?;
        fs::rename(&partial, &path)
    };
    write().map_err(SinkError::folder(&path))
}
