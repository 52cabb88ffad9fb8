//! Speaks to a running HotSpot JVM the way `jcmd` does, so that no JDK is needed: the JVM is asked by a file and SIGQUIT to
//! listen on a Unix socket, and is told there to load a native agent (OpenJDK's `attachListener_posix.cpp`).
//!
//! SIGQUIT ends a process that is no JVM, and a JVM with `-Xrs`: the caller makes sure of the first.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use unladen_linux::process::Identity;

/// How long a JVM may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// Loads a native agent into the JVM `pid` with these options, and returns what it answers.
///
/// # Errors
/// When the JVM does not listen, or the agent refuses.
pub(super) fn load(pid: u32, library: &str, options: &str) -> io::Result<()> {
    let inner = inner_pid(pid);
    let folder = PathBuf::from(format!("/proc/{pid}/root/tmp"));
    let socket = folder.join(format!(".java_pid{inner}"));
    if !socket.exists() {
        let request = folder.join(format!(".attach_pid{inner}"));
        File::create(&request)?;
        let listening = wait_for(pid, &socket);
        let _ = fs::remove_file(&request);
        listening?;
    }
    let mut stream = UnixStream::connect(&socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&request(&["load", library, "true", options]))?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    // The first line is the command's result, the second the agent's.
    match answer.lines().map(|line| line.trim_start_matches("return code: ")).find(|line| *line != "0") {
        None => Ok(()),
        Some(code) => Err(io::Error::other(format!("it answers {code}"))),
    }
}

fn wait_for(pid: u32, socket: &std::path::Path) -> io::Result<()> {
    let identity = Identity::of(pid).ok_or_else(|| io::Error::other("it has ended"))?;
    identity.signal(rustix::process::Signal::QUIT)?;
    let started = Instant::now();
    while !socket.exists() {
        if started.elapsed() > PATIENCE || !identity.is_alive() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not listen for tools"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Version 1 of the protocol: the version, the command and three arguments, each ended by a zero byte.
fn request(words: &[&str; 4]) -> Vec<u8> {
    let mut request = b"1\0".to_vec();
    for word in words {
        request.extend(word.as_bytes());
        request.push(0);
    }
    request
}

/// The PID that the process has in its own namespace.
fn inner_pid(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    pids.and_then(|pids| pids.split_whitespace().next_back()?.parse().ok()).unwrap_or(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_five_texts() {
        assert_eq!(request(&["load", "/a.so", "true", "start"]), b"1\0load\0/a.so\0true\0start\0");
        assert_eq!(inner_pid(std::process::id()), std::process::id());
    }
}
