//! The thread that reads all probes: on a grid of seconds around the window's start, and exactly at the window's end.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use unladen_journal::record::ProcessRecord;
use unladen_linux::clock::{own_cpu_ns, thread_cpu_ns};
use unladen_linux::{CpuSet, monotonic_ns};

use super::host::{Host, HostReader};
use super::network::{Network, Traffic};
use super::observation::{Cost, HOST, Live, Observation};
use super::remote::{RemoteSampler, Window, merge};
use super::scrape::{Scraped, Scraper};
use super::target::Target;
use super::timeline::Row;
use super::watch::{Place, Watch};

/// When to sample. Instants are of `CLOCK_MONOTONIC`, in ns.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Start of the window.
    pub window_start_ns: u64,
    /// End of the window.
    pub window_end_ns: u64,
    /// Time between two samples; a second unless a test wants otherwise.
    pub interval: Duration,
    /// CPUs of the instrument, to which the thread is bound.
    pub cpus: Option<CpuSet>,
}

/// A sampler at work. Dropping it stops it.
#[derive(Debug)]
pub struct Sampler {
    thread: Option<JoinHandle<Option<Observation>>>,
    /// Sending ends the window now; dropping it ends the thread without an observation.
    stop: Option<Sender<()>>,
    viewer: Viewer,
    /// What is watched by probes elsewhere, in the order of the targets.
    remote: Vec<RemoteSampler>,
}

/// The newest sample, for another thread to look at.
#[derive(Debug, Clone, Default)]
pub struct Viewer {
    newest: Arc<Mutex<Option<Live>>>,
}

impl Viewer {
    /// The newest sample; `None` before the first.
    #[must_use]
    pub fn latest(&self) -> Option<Live> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Live>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sampler {
    /// Starts the thread. Targets must be running. Samples are taken from now on (those before the window are for the
    /// timeline only), on the grid of the window's start.
    ///
    /// # Errors
    /// The system has no thread left, or a probe elsewhere does not answer.
    pub fn start(targets: Vec<Target>, schedule: Schedule) -> std::io::Result<Self> {
        let (targets, remote) = divide(targets, &schedule)?;
        let viewer = Viewer::default();
        let (stop, stopped) = channel();
        let view = viewer.clone();
        let window = (schedule.window_start_ns, schedule.window_end_ns);
        let ask = |target: &Target| {
            let endpoint = target.endpoint.clone()?;
            Some(Scraper::start(endpoint, window, schedule.cpus.clone()))
        };
        let scrapers = targets.iter().map(|target| ask(target).transpose()).collect::<Result<Vec<_>, _>>()?;
        let thread = std::thread::Builder::new()
            .name("probe".to_owned())
            .spawn(move || Observer::new(targets, schedule, scrapers, view).run(&stopped))?;
        Ok(Self { thread: Some(thread), stop: Some(stop), viewer, remote })
    }

    /// The newest sample, for another thread to look at.
    #[must_use]
    pub fn viewer(&self) -> Viewer {
        self.viewer.clone()
    }

    /// Waits for the window's end and returns everything. `None` if the thread was lost, which only a defect can cause.
    #[must_use]
    pub fn finish(mut self) -> Option<Observation> {
        let own = self.thread.take()?.join().ok()??;
        Some(merge(own, std::mem::take(&mut self.remote)))
    }

    /// Ends the window now, before its planned end, and returns everything. For work whose end is not known before.
    #[must_use]
    pub fn finish_now(self) -> Option<Observation> {
        // If the thread is gone already, the window has passed its planned end.
        let _ = self.stop.as_ref().map(|stop| stop.send(()));
        self.remote.iter().for_each(RemoteSampler::end);
        self.finish()
    }

    /// Whether the window has been observed to its end: [`Self::finish`] will not wait.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished) && self.remote.iter().all(RemoteSampler::is_finished)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The targets that this process watches, and those that probes elsewhere watch from now on.
fn divide(targets: Vec<Target>, schedule: &Schedule) -> std::io::Result<(Vec<Target>, Vec<RemoteSampler>)> {
    let (mut own, mut elsewhere) = (Vec::with_capacity(targets.len()), Vec::new());
    let window = Window {
        start_ns: schedule.window_start_ns,
        end_ns: schedule.window_end_ns,
        interval_ns: u64::try_from(schedule.interval.as_nanos()).unwrap_or(u64::MAX),
    };
    for (place, mut target) in targets.into_iter().enumerate() {
        match target.remote.take() {
            None => own.push(target),
            Some(remote) => {
                let service = target.service.clone();
                let started = RemoteSampler::start(place, target, &remote, window);
                elsewhere.push(started.map_err(|error| {
                    std::io::Error::other(format!(
                        "that of {service}, in its pod, does not answer ({error}). `unladen run --resume` continues the study"
                    ))
                })?);
            }
        }
    }
    Ok((own, elsewhere))
}

/// The machine and this process at one instant.
#[derive(Debug, Clone)]
struct HostEdge {
    at_ns: u64,
    host: Host,
    /// CPU time of this process, ns.
    own_ns: u64,
}

/// What the thread does.
struct Observer {
    schedule: Schedule,
    watches: Vec<Watch>,
    /// One place per target.
    scrapers: Vec<Option<Scraper>>,
    reader: HostReader,
    /// Since the window's start.
    network: Option<Network>,
    last_host: Option<(u64, Host)>,
    start_host: Option<HostEdge>,
    end_host: Option<HostEdge>,
    rows: Vec<Row>,
    vanished: Vec<(String, u32, f64)>,
    costs_ns: Vec<u64>,
    viewer: Viewer,
}

impl Observer {
    fn new(targets: Vec<Target>, schedule: Schedule, scrapers: Vec<Option<Scraper>>, viewer: Viewer) -> Self {
        Self {
            schedule,
            watches: targets.into_iter().map(Watch::new).collect(),
            scrapers,
            reader: HostReader::new(),
            network: None,
            last_host: None,
            start_host: None,
            end_host: None,
            rows: Vec::new(),
            vanished: Vec::new(),
            costs_ns: Vec::new(),
            viewer,
        }
    }

    /// Samples until the window's end; `None` when it was stopped before.
    fn run(mut self, stopped: &Receiver<()>) -> Option<Observation> {
        if let Some(cpus) = &self.schedule.cpus {
            // Off its CPUs it still measures; only what it costs falls elsewhere.
            let _ = cpus.bind_this_thread();
        }
        for (due_ns, place) in instants(&self.schedule, monotonic_ns()) {
            let wait = Duration::from_nanos(due_ns.saturating_sub(monotonic_ns()));
            match stopped.recv_timeout(wait) {
                Err(RecvTimeoutError::Timeout) => self.timed_sample(place),
                // Ended before it began, the window is nothing.
                Ok(()) if self.start_host.is_some() => {
                    self.schedule.window_end_ns = monotonic_ns();
                    self.timed_sample(Place::End);
                    break;
                }
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        Some(self.conclude())
    }

    /// A sample, and what it cost.
    fn timed_sample(&mut self, place: Place) {
        let before = thread_cpu_ns();
        self.sample(place);
        self.costs_ns.push(thread_cpu_ns() - before);
    }

    fn sample(&mut self, place: Place) {
        // CPU times first and close together; what takes longer comes after.
        let steps: Vec<_> = self.watches.iter_mut().map(|watch| watch.read_cpu(place)).collect();
        let at_ns = monotonic_ns();
        let own_ns = own_cpu_ns();
        let host = self.reader.read();
        let t_s = (at_ns as f64 - self.schedule.window_start_ns as f64) / 1e9;
        let mut live = Live { t_s, ..Live::default() };
        if let Some(host) = host {
            self.host_rows(at_ns, t_s, &host, &mut live);
            let edge = || Some(HostEdge { at_ns, host: host.clone(), own_ns });
            match place {
                Place::Start => self.start_host = edge(),
                Place::End => self.end_host = edge(),
                Place::Before | Place::Within => {}
            }
            self.last_host = Some((at_ns, host));
        }
        let pids: Vec<Vec<u32>> = self.watches.iter().map(Watch::pids).collect();
        let bytes = self.network_bytes(place, &pids);
        for (((watch, step), pids), bytes) in self.watches.iter_mut().zip(steps).zip(&pids).zip(bytes) {
            watch.network = bytes;
            let (process, newly_gone) = watch.read_rest(place, step, pids, t_s, &mut self.rows);
            if newly_gone {
                self.vanished.push((process.service.clone(), process.replica, t_s));
            }
            live.processes.push(process);
        }
        *self.viewer.lock() = Some(live);
    }

    /// Bytes of every target since the window's start; `None` before it.
    fn network_bytes(&mut self, place: Place, pids: &[Vec<u32>]) -> Vec<Option<Traffic>> {
        if place == Place::Start {
            let takers = self.watches.iter().map(|watch| watch.target.takes_telemetry()).collect();
            self.network = Some(Network::new(takers, None));
        }
        let Some(network) = &mut self.network else { return vec![None; pids.len()] };
        network.sample(pids, place == Place::Start);
        network.traffic()
    }

    fn host_rows(&mut self, at_ns: u64, t_s: f64, host: &Host, live: &mut Live) {
        let mut add = |metric: std::borrow::Cow<'static, str>, value: f64| {
            self.rows.push(Row { t_s, service: HOST.to_owned(), replica: 0, role: None, metric, value });
        };
        if let Some(bytes) = host.memory_available {
            add("memory_available".into(), bytes as f64);
        }
        let Some((before_ns, before)) = &self.last_host else { return };
        let elapsed_s = at_ns.saturating_sub(*before_ns) as f64 / 1e9;
        if elapsed_s <= 0.0 {
            return;
        }
        let step = host.window(before, elapsed_s, 0.0);
        live.host_busy = Some(step.busy_s / elapsed_s);
        live.host_steal = Some(step.steal_s / elapsed_s);
        add("busy_cores".into(), step.busy_s / elapsed_s);
        add("steal_cores".into(), step.steal_s / elapsed_s);
        if let Some(share) = step.cpu_pressure {
            add("cpu_pressure".into(), share);
        }
        for (core, (now, before)) in host.busy_s.iter().zip(&before.busy_s).enumerate() {
            add(format!("busy_core_{core}").into(), ((now - before) / elapsed_s).clamp(0.0, 1.0));
        }
    }

    /// Waits for the endpoints and puts what they said into the records and the timeline.
    fn scraped(&mut self, processes: &mut [ProcessRecord]) -> Vec<(String, u32, Scraped)> {
        let mut all = Vec::new();
        for ((scraper, watch), process) in self.scrapers.drain(..).zip(&self.watches).zip(processes) {
            let Some(mut scraped) = scraper.map(Scraper::finish) else { continue };
            process.extra.extend(scraped.numbers.iter().cloned());
            for (at_ns, metric, value) in std::mem::take(&mut scraped.samples) {
                let t_s = (at_ns as f64 - self.schedule.window_start_ns as f64) / 1e9;
                self.rows.push(Row { metric: metric.into(), ..watch.row(t_s, "", value) });
            }
            all.push((process.service.clone(), process.replica, scraped));
        }
        all
    }

    fn conclude(mut self) -> Observation {
        let window = (self.schedule.window_start_ns, self.schedule.window_end_ns);
        let host = match (&self.start_host, &self.end_host) {
            (Some(start), Some(end)) => {
                let used_ns: u64 = self.watches.iter().filter_map(|watch| watch.cpu_ns(window)).sum();
                let ours_s = (used_ns + end.own_ns.saturating_sub(start.own_ns)) as f64 / 1e9;
                let elapsed_s = end.at_ns.saturating_sub(start.at_ns) as f64 / 1e9;
                end.host.window(&start.host, elapsed_s, ours_s)
            }
            _ => Default::default(),
        };
        let lateness = self
            .watches
            .iter()
            .map(|watch| watch.lateness(window))
            .fold((0, 0), |worst, late| (worst.0.max(late.0), worst.1.max(late.1)));
        let mut processes: Vec<ProcessRecord> = self.watches.iter().map(|watch| watch.record(window)).collect();
        let scraped = self.scraped(&mut processes);
        let samples = u32::try_from(self.costs_ns.len()).unwrap_or(u32::MAX);
        Observation {
            processes,
            scraped,
            host,
            timeline: self.rows,
            vanished: self.vanished,
            lateness: (Duration::from_nanos(lateness.0), Duration::from_nanos(lateness.1)),
            cost: Cost {
                samples,
                cpu_us_per_sample: self.costs_ns.iter().sum::<u64>() as f64 / f64::from(samples.max(1)) / 1e3,
                cpu_us_dearest: self.costs_ns.iter().max().map_or(0.0, |&ns| ns as f64 / 1e3),
            },
            lost: None,
        }
    }
}

/// The instants of all samples: the window's start, every interval before (from now on) and after it, and the window's
/// end. A grid point too close to the end is left out, so that no two samples are nearer than half an interval.
fn instants(schedule: &Schedule, now_ns: u64) -> Vec<(u64, Place)> {
    let interval = u64::try_from(schedule.interval.as_nanos()).unwrap_or(u64::MAX).max(1_000_000);
    let (start, end) = (schedule.window_start_ns, schedule.window_end_ns);
    let lead = start.saturating_sub(now_ns) / interval;
    let mut instants: Vec<(u64, Place)> = (1..=lead).rev().map(|k| (start - k * interval, Place::Before)).collect();
    instants.push((start, Place::Start));
    let last = end.saturating_sub(interval / 2);
    let within = (1_u64..).map(|k| start.saturating_add(k.saturating_mul(interval))).take_while(|&at| at <= last);
    instants.extend(within.map(|at| (at, Place::Within)));
    instants.push((end.max(start), Place::End));
    instants
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn samples_stand_on_the_grid_of_the_windows_start_and_at_its_end() {
        let at = |start: u64, end: u64, now: u64| {
            let schedule =
                Schedule { window_start_ns: start, window_end_ns: end, interval: Duration::from_secs(1), cpus: None };
            instants(&schedule, now)
        };
        use Place::{Before, End, Start, Within};
        assert_eq!(
            at(10 * S, 13 * S, 7 * S + S / 2),
            vec![(8 * S, Before), (9 * S, Before), (10 * S, Start), (11 * S, Within), (12 * S, Within), (13 * S, End)]
        );
        // No sample right before the end, and none before a window that has begun.
        assert_eq!(at(10 * S, 12 * S + S / 4, 11 * S), vec![(10 * S, Start), (11 * S, Within), (12 * S + S / 4, End)]);
        assert_eq!(at(10 * S, 10 * S + S / 4, 10 * S), vec![(10 * S, Start), (10 * S + S / 4, End)]);
    }
}
