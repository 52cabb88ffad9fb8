//! The kernel's list of TCP sockets with their byte counters, over netlink: sock_diag(7).
//!
//! Two sockets: one asks for the list, the other is told when a socket is destroyed, with its last counters, so that
//! connections that are closed between two lists are not lost.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_recv_buffer_size_force, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with};

/// A TCP socket and its counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Socket {
    /// Names the socket for good.
    pub cookie: u64,
    /// Its inode, as in `/proc/PID/fd`; 0 before it is accepted and after it is closed.
    pub inode: u32,
    /// Port on this side.
    pub local_port: u16,
    /// Port on the other side.
    pub remote_port: u16,
    /// Bytes received since the connection was opened.
    pub received: u64,
    /// Bytes sent and acknowledged since the connection was opened.
    pub sent: u64,
}

/// The two netlink sockets.
#[derive(Debug)]
pub struct Diag {
    list: OwnedFd,
    destroyed: OwnedFd,
}

// Numbers of the kernel's headers: linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h, linux/tcp.h.
const TCPDIAG_GETSOCK: u16 = 18;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const REQUEST_AND_DUMP: u16 = 0x1 | 0x100 | 0x200;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const INET_DIAG_INFO: u16 = 2;
const HEADER: usize = 16;
const MESSAGE: usize = 72;
/// `tcpi_bytes_acked` and `tcpi_bytes_received` in `struct tcp_info`, since Linux 4.1.
const ACKED_AT: usize = 120;
const RECEIVED_AT: usize = 128;
/// Multicast groups of destroyed TCP sockets, IPv4 and IPv6.
const DESTROYED_GROUPS: u32 = 0b101;
/// Established, both FIN-WAITs, CLOSE-WAIT, LAST-ACK and CLOSING: what has counters.
const CONNECTED: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;
const LISTENING: u32 = 1 << 10;

impl Diag {
    /// Opens both sockets; from now on destroyed ones are told.
    ///
    /// # Errors
    /// The kernel has no `inet_diag` or does not allow it.
    pub fn open() -> io::Result<Self> {
        let open = |flags| socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(SOCK_DIAG));
        let list = open(SocketFlags::CLOEXEC)?;
        // The kernel answers within the call that asks; this only keeps a defect from hanging the probe.
        set_socket_timeout(&list, Timeout::Recv, Some(Duration::from_millis(200)))?;
        let destroyed = open(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        // Room for some 10,000 closed connections between two samples. Needs a privilege; without, the default holds fewer
        // and an overflow is noticed.
        let _ = set_socket_recv_buffer_size_force(&destroyed, 16 << 20);
        bind(&destroyed, &SocketAddrNetlink::new(0, DESTROYED_GROUPS))?;
        Ok(Self { list, destroyed })
    }

    /// All connected TCP sockets of this network namespace.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn connected(&self) -> io::Result<Vec<Socket>> {
        self.dump(CONNECTED)
    }

    /// All listening ones; their counters mean nothing.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn listening(&self) -> io::Result<Vec<Socket>> {
        self.dump(LISTENING)
    }

    /// Sockets that were destroyed since the last call, with their last counters.
    ///
    /// # Errors
    /// `ENOBUFS` when there were so many that some were not told.
    pub fn destroyed(&self) -> io::Result<Vec<Socket>> {
        let mut found = Vec::new();
        let mut buffer = vec![0_u8; 16 * 1024];
        loop {
            match recv(&self.destroyed, buffer.as_mut_slice(), RecvFlags::DONTWAIT) {
                Ok((length, _)) => {
                    parse(&buffer[..length], &mut found)?;
                }
                Err(error) if error == rustix::io::Errno::AGAIN => return Ok(found),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn dump(&self, states: u32) -> io::Result<Vec<Socket>> {
        let mut found = Vec::new();
        let mut buffer = vec![0_u8; 64 * 1024];
        send(&self.list, &request(states), SendFlags::empty())?;
        loop {
            let (length, _) = recv(&self.list, buffer.as_mut_slice(), RecvFlags::empty())?;
            if length == 0 || parse(&buffer[..length], &mut found)? {
                return Ok(found);
            }
        }
    }
}

/// A `nlmsghdr` with an `inet_diag_req`: the older of the two requests, because it covers IPv4 and IPv6 at once. A list
/// costs a walk over the kernel's whole table of connections (0.4 ms where it has 262,144 places), however few there are.
fn request(states: u32) -> Vec<u8> {
    const LENGTH: usize = HEADER + 60;
    let mut request = Vec::with_capacity(LENGTH);
    request.extend((LENGTH as u32).to_ne_bytes());
    request.extend(TCPDIAG_GETSOCK.to_ne_bytes());
    request.extend(REQUEST_AND_DUMP.to_ne_bytes());
    // Sequence number and port.
    request.extend([0; 8]);
    // Family and prefix lengths, which a list leaves open; then what is wanted of each socket.
    request.extend([0, 0, 0, 1 << (INET_DIAG_INFO - 1)]);
    // No socket in particular.
    request.extend([0; 48]);
    request.extend(states.to_ne_bytes());
    request.extend([0; 4]);
    request
}

/// Reads the messages of one datagram; true after the last one of a list.
fn parse(mut datagram: &[u8], found: &mut Vec<Socket>) -> io::Result<bool> {
    while datagram.len() >= HEADER {
        let length = u32_at(datagram, 0) as usize;
        let message = datagram.get(HEADER..length).unwrap_or_default();
        match u16_at(datagram, 4) {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let code = u32_at(message, 0).cast_signed();
                return Err(io::Error::from_raw_os_error(-code));
            }
            TCPDIAG_GETSOCK | SOCK_DIAG_BY_FAMILY => found.extend(socket(message)),
            _ => {}
        }
        datagram = datagram.get(aligned(length).max(HEADER)..).unwrap_or_default();
    }
    Ok(false)
}

/// An `inet_diag_msg` with its attributes.
fn socket(message: &[u8]) -> Option<Socket> {
    if message.len() < MESSAGE {
        return None;
    }
    let port = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
    let mut socket = Socket {
        cookie: u64::from(u32_at(message, 44)) | u64::from(u32_at(message, 48)) << 32,
        inode: u32_at(message, 68),
        local_port: port(4),
        remote_port: port(6),
        ..Socket::default()
    };
    let mut attributes = &message[MESSAGE..];
    while attributes.len() >= 4 {
        let length = usize::from(u16_at(attributes, 0));
        let value = attributes.get(4..length).unwrap_or_default();
        if u16_at(attributes, 2) == INET_DIAG_INFO && value.len() >= RECEIVED_AT + 8 {
            (socket.sent, socket.received) = (u64_at(value, ACKED_AT), u64_at(value, RECEIVED_AT));
        }
        attributes = attributes.get(aligned(length).max(4)..).unwrap_or_default();
    }
    Some(socket)
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|two| two.try_into().ok()).map_or(0, u16::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_datagram_that_ends_early_or_lies_about_its_length_is_no_danger() {
        let mut message = vec![0_u8; HEADER + MESSAGE];
        message[..4].copy_from_slice(&((HEADER + MESSAGE) as u32).to_ne_bytes());
        message[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        for cut in 0..=message.len() {
            let mut found = Vec::new();
            parse(&message[..cut], &mut found).expect("no error message is in it");
            assert_eq!(found.len(), usize::from(cut == message.len()), "{cut}");
        }
        for length in [0_u32, 1, 15, 16, 17, u32::MAX] {
            message[..4].copy_from_slice(&length.to_ne_bytes());
            parse(&message, &mut Vec::new()).expect("no error message is in it");
        }
    }

    #[test]
    fn a_loopback_connection_is_listed_with_its_bytes_and_told_when_destroyed() {
        let diag = Diag::open().expect("this kernel has inet_diag");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let mut client = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        let (mut server, _) = listener.accept().expect("a connection");
        client.write_all(&[1; 1000]).expect("bytes go");
        server.read_exact(&mut [0; 1000]).expect("bytes come");
        server.write_all(&[1; 300]).expect("bytes go");
        client.read_exact(&mut [0; 300]).expect("bytes come");

        let listed = diag.connected().expect("a list");
        let theirs = listed.iter().find(|socket| socket.local_port == port).expect("the server's side");
        let ours = listed.iter().find(|socket| socket.remote_port == port).expect("the client's side");
        assert_eq!((theirs.received, ours.received), (1000, 300));
        // TCP numbers the opening and the end of a connection like a byte each.
        assert!((1000..=1001).contains(&ours.sent) && (300..=301).contains(&theirs.sent), "{ours:?} {theirs:?}");
        assert!(ours.inode != 0 && theirs.inode != 0 && ours.cookie != theirs.cookie);
        assert!(diag.listening().expect("a list").iter().any(|socket| socket.local_port == port));

        let cookie = theirs.cookie;
        drop((client, server));
        let mut listed = Vec::new();
        for _ in 0..200 {
            listed.extend(diag.destroyed().expect("few were destroyed"));
            if listed.iter().any(|socket| socket.cookie == cookie) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let last = listed.iter().find(|socket| socket.cookie == cookie).expect("it was told");
        assert!((1000..=1001).contains(&last.received), "{last:?}");
    }
}
