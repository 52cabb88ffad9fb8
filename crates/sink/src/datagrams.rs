//! Datagrams that carry spans: a socket of UDP with room for a burst, and the kernel's count of those for which there was none.
//!
//! Nobody acknowledges a datagram, so its sender never learns of a loss. The kernel counts what it drops, for each socket, in its table of
//! them (`drops` in `/proc/net/udp`). Linux can also put the number beside each datagram, but then a burst whose end is lost counts only
//! when another datagram follows, and there is no other way to read it without unsafe code.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::net::SocketAddr;
use std::path::Path;

use rustix::fs::fstat;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use rustix::net::{RecvFlags, recv};
use tokio::net::UdpSocket;

use crate::listen;

/// Bytes of datagrams that may wait. The kernel counts more than they have: some 2 KiB for the smallest.
const ROOM: usize = 32 << 20;
/// Largest datagram of UDP.
const LARGEST: usize = 64 << 10;
/// Places in a row of the kernel's table.
const INODE: usize = 9;
const DROPS: usize = 12;

/// A socket that receives them.
#[derive(Debug)]
pub(crate) struct Datagrams {
    socket: UdpSocket,
    buffer: Vec<u8>,
    inode: u64,
    /// The kernel's sockets of UDP in the network of this one: to be read from its start each time.
    table: File,
    rows: String,
}

impl Datagrams {
    /// Binds an address, in another network namespace if one is named.
    pub(crate) fn bind(network: Option<&Path>, address: SocketAddr) -> io::Result<Self> {
        Self::with_room(network, address, ROOM)
    }

    /// The same with room for so many bytes, or a few more.
    pub(crate) fn with_room(network: Option<&Path>, address: SocketAddr, room: usize) -> io::Result<Self> {
        let socket = listen::bind_datagrams(network, address)?;
        // With the right CAP_NET_ADMIN as much as is wanted; without it as much as `net.core.rmem_max` allows.
        if set_socket_recv_buffer_size_force(&socket, room).is_err() {
            set_socket_recv_buffer_size(&socket, room)?;
        }
        // Of the thread, not of the process: only that one is in the other network while the file is opened.
        let open = || File::open(format!("/proc/thread-self/net/{}", if address.is_ipv4() { "udp" } else { "udp6" }));
        let table = network.map_or_else(open, |network| listen::within(network, open))?;
        let inode = fstat(&socket)?.st_ino;
        Ok(Self { socket, buffer: vec![0; LARGEST], inode, table, rows: String::new() })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> io::Result<&[u8]> {
        let length = self.socket.recv(&mut self.buffer).await?;
        Ok(&self.buffer[..length])
    }

    /// The next one, if it is there already, whether or not the event loop has heard of it.
    pub(crate) fn waiting(&mut self) -> Option<&[u8]> {
        let (length, _) = recv(&self.socket, &mut self.buffer[..], RecvFlags::DONTWAIT).ok()?;
        Some(&self.buffer[..length])
    }

    /// Where it is bound.
    #[cfg(test)]
    pub(crate) fn address(&self) -> SocketAddr {
        self.socket.local_addr().expect("a bound socket has an address")
    }

    /// A number of the socket that no other has.
    pub(crate) fn number(&self) -> u64 {
        self.inode
    }

    /// How many datagrams found no room in it, since it was bound; `None` if the kernel does not say so.
    pub(crate) fn dropped(&mut self) -> Option<u64> {
        self.rows.clear();
        self.table.rewind().ok()?;
        self.table.read_to_string(&mut self.rows).ok()?;
        let number = |row: &str, place| row.split_ascii_whitespace().nth(place)?.parse::<u64>().ok();
        let own = self.rows.lines().find(|row| number(row, INODE) == Some(self.inode))?;
        number(own, DROPS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_finds_no_room_is_counted() {
        for any in [SocketAddr::from(([127, 0, 0, 1], 0)), SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], 0))] {
            let mut datagrams = Datagrams::with_room(None, any, 1).expect("a socket");
            let address = datagrams.address();
            let sender = std::net::UdpSocket::bind(any).expect("a socket");
            let sent = 1_000;
            for _ in 0..sent {
                sender.send_to(&[7; 100], address).expect("sent");
            }
            assert_eq!(datagrams.next().await.expect("the first"), [7; 100]);
            let received = 1 + std::iter::from_fn(|| datagrams.waiting().map(drop)).count() as u64;
            assert!(received < sent, "all found room");
            assert_eq!(datagrams.dropped(), Some(sent - received));
        }
    }

    #[tokio::test]
    async fn there_is_room_for_a_burst() {
        let mut datagrams = Datagrams::bind(None, SocketAddr::from(([127, 0, 0, 1], 0))).expect("a socket");
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let address = datagrams.address();
        // Linux books 2.3 KiB for each, has room for 208 KiB unless told otherwise, and grants everybody twice that.
        for _ in 0..160 {
            sender.send_to(&[7; 1_000], address).expect("sent");
        }
        datagrams.next().await.expect("the first");
        assert_eq!(std::iter::from_fn(|| datagrams.waiting().map(<[u8]>::len)).collect::<Vec<_>>(), [1_000; 159]);
        assert_eq!(datagrams.dropped(), Some(0));
    }
}
