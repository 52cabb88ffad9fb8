//! One question over HTTP/1.1 with a deadline: small, because an endpoint on the same machine needs no more.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Longest wait for any part of the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Most bytes that are read of an answer.
const MAX_BYTES: u64 = 16 << 20;

/// The body that `http://HOST:PORT/PATH` answers with.
///
/// # Errors
/// When it cannot be asked, does not answer in time, or answers with another status than 200.
pub fn get(url: &http::Uri, patience: Option<Duration>) -> io::Result<Vec<u8>> {
    let patience = patience.unwrap_or(PATIENCE);
    let odd = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let host = url.host().ok_or_else(|| odd("the URL names no host"))?;
    let mut last = odd("the name has no address");
    let addresses = (host.trim_matches(['[', ']']), url.port_u16().unwrap_or(80)).to_socket_addrs()?;
    let mut stream = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(connected) => {
                stream = Some(connected);
                break;
            }
            Err(error) => last = error,
        }
    }
    let Some(mut stream) = stream else { return Err(last) };
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    let authority = url.authority().map_or("", |authority| authority.as_str());
    // In one piece: a server may read but once.
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: unladen\r\nAccept: text/plain, */*;q=0.5\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(MAX_BYTES).read_to_end(&mut answer)?;
    body(&answer)
}

fn body(answer: &[u8]) -> io::Result<Vec<u8>> {
    let odd = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let head = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .ok_or_else(|| odd("what it answers is not HTTP".to_owned()))?;
    let (head, body) = (String::from_utf8_lossy(&answer[..head]), &answer[head + 4..]);
    let status = head.split(' ').nth(1).unwrap_or_default();
    if status != "200" {
        return Err(odd(format!("it answers {status}")));
    }
    let chunked = head.lines().any(|line| {
        let line = line.to_ascii_lowercase();
        line.strip_prefix("transfer-encoding:").is_some_and(|value| value.contains("chunked"))
    });
    if chunked { dechunked(body).ok_or_else(|| odd("its answer is cut short".to_owned())) } else { Ok(body.to_vec()) }
}

fn dechunked(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = body.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&body[..end]).ok()?;
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        body = &body[end + 2..];
        if size == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(body.get(..size)?);
        body = body.get(size.checked_add(2)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_come_whole_or_in_chunks_and_other_statuses_are_told() {
        let body = |answer: &str| body(answer.as_bytes()).map_err(|error| error.to_string());
        assert_eq!(body("HTTP/1.0 200 OK\r\n\r\nx 1\n"), Ok(b"x 1\n".to_vec()));
        let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nx 1\r\n2;a=b\r\n\n\n\r\n0\r\n\r\n";
        assert_eq!(body(chunks), Ok(b"x 1\n\n".to_vec()));
        assert_eq!(body(&chunks[..60]), Err("its answer is cut short".to_owned()));
        assert_eq!(body("HTTP/1.1 404 Not Found\r\n\r\n"), Err("it answers 404".to_owned()));
        assert_eq!(body("SSH-2.0\r\n"), Err("what it answers is not HTTP".to_owned()));
        for huge in ["fffffffffffffffe\r\nx", "ffffffffffffffff\r\nx", "\r\n", "-1\r\nx"] {
            assert_eq!(dechunked(huge.as_bytes()), None, "{huge}");
        }
    }
}
