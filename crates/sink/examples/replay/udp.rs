//! Datagrams. Nobody acknowledges them, so the sender looks how many bytes wait in the receiver's socket, and waits while they are many:
//! what it sent is then as good as taken. Only for receivers on this machine.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use crate::batches::Batches;
use crate::{Error, Outcome};

/// Bytes, as the kernel counts them, that may wait.
const WAITING: u64 = 1 << 20;
/// Datagrams between two looks.
const BURST: u64 = 64;
const PAUSE: Duration = Duration::from_micros(200);

/// Sends a number of datagrams, and waits until they are received.
pub(crate) async fn send_all(address: SocketAddr, batches: &Batches, requests: u64) -> Result<Outcome, Error> {
    let socket = UdpSocket::bind(if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
    socket.connect(address)?;
    let mut outcome = Outcome::default();
    for number in 0..requests {
        if number % BURST == 0 {
            until(address, WAITING).await?;
        }
        let datagram = batches.next();
        socket.send(&datagram)?;
        outcome.acknowledged += batches.spans() as u64;
        outcome.bytes += datagram.len() as u64;
    }
    until(address, 0).await?;
    Ok(outcome)
}

/// Waits until no more than so many bytes wait.
async fn until(address: SocketAddr, most: u64) -> Result<(), Error> {
    while waiting(address)? > most {
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Bytes that wait in the sockets of a port.
fn waiting(address: SocketAddr) -> Result<u64, Error> {
    let table = std::fs::read_to_string(if address.is_ipv4() { "/proc/net/udp" } else { "/proc/net/udp6" })?;
    let port = format!(":{:04X}", address.port());
    let queued = table.lines().filter_map(|row| {
        let columns: Vec<_> = row.split_ascii_whitespace().collect();
        let queue = columns.get(4)?.split_once(':')?.1;
        columns.get(1)?.ends_with(&port).then(|| u64::from_str_radix(queue, 16).ok())?
    });
    Ok(queued.sum())
}
