//! The HTTP/2 server of `bench/load/h2.sh`: one thread, one epoll set, cleartext, the same small answer to every request, and an
//! exact count. As cheap as a server on sockets can be, so that the generator is what is measured. It reads no header block and
//! keeps no window: clients that measure give more than it uses.
//!
//! Prints its port. On SIGTERM it prints a line of JSON: requests and connections.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{Timespec, epoll};

/// What a client sends before its first frame.
const PREFACE: usize = 24;
/// Bytes before a frame's payload.
const HEAD: usize = 9;
/// Status 200 and a content-length of 15, both without the dynamic table; then the body.
const ANSWER: [(u8, u8, &[u8]); 2] = [(1, 4, b"\x88\x0f\x0d\x0215"), (0, 1, b"hello, unladen!")];

/// A connection with what it has sent of its next frame.
struct Peer {
    stream: TcpStream,
    held: Vec<u8>,
    greeted: bool,
}

/// Appends a frame.
fn put(out: &mut Vec<u8>, kind: u8, flags: u8, stream: [u8; 4], payload: &[u8]) {
    let length = (payload.len() as u32).to_be_bytes();
    out.extend_from_slice(&[length[1], length[2], length[3], kind, flags]);
    out.extend_from_slice(&stream);
    out.extend_from_slice(payload);
}

impl Peer {
    /// Answers what is there; returns how many requests that were.
    fn answer(&mut self, input: &[u8], out: &mut Vec<u8>) -> u64 {
        self.held.extend_from_slice(input);
        let mut at = if self.greeted { 0 } else { PREFACE };
        if self.held.len() < at {
            return 0;
        }
        if !self.greeted {
            self.greeted = true;
            put(out, 4, 0, [0; 4], &[0, 3, 0, 0, 0x10, 0]);
        }
        let mut requests = 0;
        while let Some(head) = self.held.get(at..at + HEAD) {
            let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
            let Some(payload) = self.held.get(at + HEAD..at + HEAD + length) else { break };
            let stream = [head[5], head[6], head[7], head[8]];
            match (head[3], head[4]) {
                (1, _) => {
                    requests += 1;
                    for (kind, flags, payload) in ANSWER {
                        put(out, kind, flags, stream, payload);
                    }
                }
                (4, 0) => put(out, 4, 1, [0; 4], &[]),
                (6, 0) => put(out, 6, 1, [0; 4], payload),
                _ => {}
            }
            at += HEAD + length;
        }
        self.held.drain(..at);
        requests
    }
}

fn main() -> std::io::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&stop))?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    println!("{}", listener.local_addr()?.port());
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, epoll::EventData::new_u64(u64::MAX), epoll::EventFlags::IN)?;
    let (mut peers, mut buffer) = (Vec::<Option<Peer>>::new(), vec![0; 64 << 10]);
    let (mut events, mut out) = (Vec::with_capacity(1024), Vec::new());
    let (mut requests, mut connections) = (0u64, 0u64);
    let wait = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    while !stop.load(Ordering::Relaxed) {
        events.clear();
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let token = event.data.u64();
            if token == u64::MAX {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    let data = epoll::EventData::new_u64(peers.len() as u64);
                    epoll::add(&epoll, &stream, data, epoll::EventFlags::IN)?;
                    peers.push(Some(Peer { stream, held: Vec::new(), greeted: false }));
                    connections += 1;
                }
                continue;
            }
            let Some(place) = peers.get_mut(token as usize) else { continue };
            let Some(peer) = place else { continue };
            // Level-triggered: a read never waits. Answers are small, so that a write that waits is no harm.
            let served = match peer.stream.read(&mut buffer) {
                Ok(0) | Err(_) => false,
                Ok(taken) => {
                    out.clear();
                    requests += peer.answer(&buffer[..taken], &mut out);
                    peer.stream.write_all(&out).is_ok()
                }
            };
            if !served {
                // Closing takes it out of the epoll set.
                *place = None;
            }
        }
    }
    println!("{{\"requests\":{requests},\"connections\":{connections}}}");
    Ok(())
}
