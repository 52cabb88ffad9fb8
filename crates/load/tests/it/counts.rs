//! Counts on both sides, the small version: servers of others that are on the machine count as many requests as the generator
//! says that they answered. `make bench-counts` does the same with a million each, and with Go and Java.
//!
//! nginx must be there (`make deps` installs it), as for the end-to-end tests; Node is asked if it is.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use unladen_load::plan::{Check, Pacing, Plan, Protocol, Tls};

use crate::certificates::write_pair;
use crate::engine::run;

/// Requests of each case.
const REQUESTS: u64 = 10_000;

/// A server process; dropping it ends it.
struct Server {
    child: Child,
    /// HTTP/1.1, HTTP/2 in the clear, TLS.
    ports: [u16; 3],
    folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where the servers' sources are.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/load/servers")
}

/// A folder with a certificate, and three free ports.
fn prepare() -> (tempfile::TempDir, [u16; 3]) {
    let folder = tempfile::tempdir().expect("a folder");
    write_pair(folder.path());
    let listeners = [(); 3].map(|()| std::net::TcpListener::bind("127.0.0.1:0").expect("a free port"));
    (folder, listeners.map(|listener| listener.local_addr().expect("bound").port()))
}

/// Starts a server and waits until it listens.
fn start(mut command: Command, folder: tempfile::TempDir, ports: [u16; 3]) -> Server {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Server { child: command.spawn().expect("starts"), ports, folder };
    let begun = Instant::now();
    for port in ports {
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{command:?} does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    server
}

/// nginx as one process, so that it ends as a whole.
fn nginx() -> Server {
    let (folder, ports) = prepare();
    let mut text = std::fs::read_to_string(sources().join("nginx/nginx.conf")).expect("its configuration");
    text = text.replace("worker_processes 1;", "master_process off;");
    text = text.replace("FOLDER", &folder.path().display().to_string());
    for (name, port) in ["HTTP1_PORT", "HTTP2_PORT", "TLS_PORT"].into_iter().zip(ports) {
        text = text.replace(name, &port.to_string());
    }
    let configuration = folder.path().join("nginx.conf");
    std::fs::write(&configuration, text).expect("written");
    let usual = Path::new("/usr/sbin/nginx");
    let mut command = Command::new(if usual.exists() { usual } else { Path::new("nginx") });
    command.arg("-p").arg(folder.path()).arg("-e").arg(folder.path().join("error.log")).arg("-c").arg(configuration);
    start(command, folder, ports)
}

/// Node, if it is there.
fn node() -> Option<Server> {
    Command::new("node").arg("--version").stdout(Stdio::null()).status().ok().filter(|status| status.success())?;
    let (folder, ports) = prepare();
    let mut command = Command::new("node");
    command.arg(sources().join("node/server.js")).args(ports.map(|port| port.to_string())).arg(folder.path());
    Some(start(command, folder, ports))
}

/// The servers' own counts of requests to a port so far.
fn lines_of_log(server: &Server, port: u16) -> u64 {
    let log = std::fs::read_to_string(server.folder.path().join("access.log")).unwrap_or_default();
    let wanted = format!("{port} 200");
    log.lines().filter(|line| **line == *wanted).count() as u64
}

/// See [`lines_of_log`].
fn counted_by_server(server: &Server, _: u16) -> u64 {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", server.ports[0])).expect("it listens");
    stream.write_all(b"GET /count HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("answered");
    text.lines().last().and_then(|line| line.trim().parse().ok()).expect("a number")
}

/// All cases of one server.
fn hold_counts(server: &Server, count: fn(&Server, u16) -> u64) {
    let [http1, http2, tls] = server.ports;
    for (scheme, port, protocol, connections, streams) in [
        ("http", http1, Protocol::Http1, 16, 1),
        ("http", http2, Protocol::Http2, 4, 16),
        ("https", tls, Protocol::Http1, 16, 1),
        ("https", tls, Protocol::Http2, 4, 16),
    ] {
        let before = count(server, port);
        let outcome = run(&Plan {
            pacing: Pacing::Closed,
            limit: Some(REQUESTS),
            protocol,
            connections,
            streams,
            warmup_s: 0.0,
            window_s: 600.0,
            timeout_s: 60.0,
            check: Check { status: Some(200), length: Some(5) },
            tls: Tls { insecure: true, ..Tls::default() },
            ..Plan::new(format!("{scheme}://127.0.0.1:{port}/"))
        });
        let details = format!("{scheme} {protocol:?}: {:?}", outcome.error_classes);
        assert_eq!((outcome.sent_total, outcome.requests, outcome.errors), (REQUESTS, REQUESTS, 0), "{details}");
        // A log is written a moment later.
        let begun = Instant::now();
        while count(server, port) - before < REQUESTS && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(count(server, port) - before, REQUESTS, "{details}");
    }
}

#[test]
fn servers_of_others_count_what_the_generator_says() {
    std::thread::scope(|scope| {
        scope.spawn(|| hold_counts(&nginx(), lines_of_log));
        scope.spawn(|| {
            if let Some(server) = node() {
                hold_counts(&server, counted_by_server);
            }
        });
    });
}
