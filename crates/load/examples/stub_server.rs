//! The server of `make bench-load`: one thread, one epoll set, a fixed reply of 101 bytes, and an exact count of requests.
//! It is as cheap as a server on sockets can be, so that the generator is what is measured. It reads heads only.
//!
//! Prints its port. On SIGTERM it prints a line of JSON: requests, connections, and how evenly requests arrived.
//! `--busy` never sleeps (a sleeping server makes the sender pay for waking it); `--frozen` does nothing in the first 200 ms
//! of every second; `--rate R` compares arrivals with a constant rate.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};

/// 101 bytes, as long as the heads of common services.
const REPLY: &[u8] =
    b"HTTP/1.1 200 OK\r\nServer: stub/1\r\nContent-Type: text/plain\r\nContent-Length: 15\r\n\r\nhello, unladen!";
/// Arrivals that are kept for the comparison.
const MAX_ARRIVALS: usize = 8 << 20;

/// A connection and how much of the empty line at the end of a head it has seen.
struct Peer {
    stream: TcpStream,
    matched: usize,
}

fn main() -> std::io::Result<()> {
    let options: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| options.iter().any(|option| option == name);
    let rate: Option<f64> =
        options.iter().position(|option| option == "--rate").and_then(|at| options.get(at + 1)?.parse().ok());
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&stop))?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    println!("{}", listener.local_addr()?.port());
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, epoll::EventData::new_u64(u64::MAX), epoll::EventFlags::IN)?;
    let (mut peers, mut buffer) = (Vec::<Option<Peer>>::new(), vec![0; 64 << 10]);
    let mut events = Vec::with_capacity(1024);
    let (mut requests, mut connections, mut arrivals) = (0u64, 0u64, Vec::new());
    let started = Instant::now();
    let wait = Timespec { tv_sec: 0, tv_nsec: if has("--busy") { 0 } else { 100_000_000 } };
    while !stop.load(Ordering::Relaxed) {
        events.clear();
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if has("--frozen") && !events.is_empty() {
            let phase = started.elapsed().subsec_nanos();
            std::thread::sleep(Duration::from_nanos(u64::from(200_000_000u32.saturating_sub(phase))));
        }
        for event in &events {
            let token = event.data.u64();
            if token == u64::MAX {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    connections += 1;
                    let data = epoll::EventData::new_u64(peers.len() as u64);
                    epoll::add(&epoll, &stream, data, epoll::EventFlags::IN)?;
                    peers.push(Some(Peer { stream, matched: 0 }));
                }
                continue;
            }
            let Some(place) = peers.get_mut(token as usize) else { continue };
            let Some(peer) = place else { continue };
            let taken = match peer.stream.read(&mut buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                Ok(taken) if taken > 0 => taken,
                Ok(_) | Err(_) => {
                    *place = None;
                    continue;
                }
            };
            let heads = peer.heads_in(&buffer[..taken]);
            requests += heads;
            if rate.is_some() && arrivals.len() < MAX_ARRIVALS {
                let at = started.elapsed().as_nanos() as f64;
                arrivals.extend((0..heads).map(|_| at));
            }
            for _ in 0..heads {
                if peer.stream.write(REPLY).ok() != Some(REPLY.len()) {
                    *place = None;
                    break;
                }
            }
        }
    }
    let mut line = serde_json::json!({"requests": requests, "connections": connections});
    if let Some(rate) = rate {
        let (p50, p99, burst) = evenness(&arrivals, rate);
        line["off_schedule_us"] = serde_json::json!({"p50": p50, "p99": p99});
        line["most_in_a_millisecond"] = burst.into();
    }
    println!("{line}");
    std::io::stdout().flush()
}

impl Peer {
    /// Heads that end in these bytes.
    fn heads_in(&mut self, bytes: &[u8]) -> u64 {
        let end = b"\r\n\r\n";
        // Nearly always: one whole head.
        if self.matched == 0
            && bytes.ends_with(end)
            && bytes.len() < 2048
            && bytes.windows(4).filter(|four| four == end).count() == 1
        {
            return 1;
        }
        let mut heads = 0;
        for &byte in bytes {
            self.matched = if byte == end[self.matched] { self.matched + 1 } else { usize::from(byte == end[0]) };
            if self.matched == end.len() {
                heads += 1;
                self.matched = 0;
            }
        }
        heads
    }
}

/// Median and 99th percentile of the distance between arrivals and a line of the given rate (µs), and most arrivals in a
/// millisecond. The line runs through the median of the arrivals.
fn evenness(arrivals: &[f64], rate: f64) -> (f64, f64, u64) {
    if arrivals.is_empty() {
        return (0.0, 0.0, 0);
    }
    let off: Vec<f64> = arrivals.iter().enumerate().map(|(index, at)| at - index as f64 * 1e9 / rate).collect();
    let quantile = |values: &mut Vec<f64>, share: f64| {
        values.sort_by(f64::total_cmp);
        values[((values.len() - 1) as f64 * share) as usize]
    };
    let middle = quantile(&mut off.clone(), 0.5);
    let mut distance: Vec<f64> = off.iter().map(|off| (off - middle).abs() / 1e3).collect();
    let (mut burst, mut from) = (0, 0);
    for to in 0..arrivals.len() {
        while arrivals[to] - arrivals[from] >= 1e6 {
            from += 1;
        }
        burst = burst.max(to - from + 1);
    }
    (quantile(&mut distance, 0.5), quantile(&mut distance, 0.99), burst as u64)
}
