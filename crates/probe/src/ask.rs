//! One question over HTTP/1.1 to a program that runs here: answered within a time, and with no more than so many bytes.
//!
//! The connection is made by the calling thread, in whose network namespace it then is.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

/// How much longer a body is waited for of which nobody wants to know anything: long enough that the server does not see its
/// connection reset in the midst of it.
const COURTESY: Duration = Duration::from_millis(20);

/// A question.
#[derive(Debug)]
pub struct Question<'a> {
    /// `http://HOST[:PORT]/PATH`.
    pub url: &'a Uri,
    /// JSON that is sent as `POST`; `None`: `GET`.
    pub json: Option<&'a str>,
    /// Media types that are understood.
    pub accept: &'static str,
    /// How long all of it may take.
    pub patience: Duration,
}

impl<'a> Question<'a> {
    /// For whatever there is at a URL.
    pub fn get(url: &'a Uri, patience: Duration) -> Self {
        Self { url, json: None, accept: "*/*", patience }
    }

    /// The whole answer, whatever its status.
    ///
    /// # Errors
    /// When nobody can be asked, or there is no whole answer in time; `InvalidData` if its body is longer than `longest`.
    pub fn ask(&self, longest: usize) -> io::Result<(StatusCode, Bytes)> {
        self.exchange(async |answer| {
            let status = answer.status();
            match Limited::new(answer.into_body(), longest).collect().await {
                Ok(body) => Ok((status, body.to_bytes())),
                Err(error) if error.is::<LengthLimitError>() => {
                    Err(odd(format!("its answer is longer than {} MiB", longest >> 20)))
                }
                Err(error) => Err(error.downcast_ref().map_or_else(|| io::Error::other(error.to_string()), told)),
            }
        })
    }

    /// The status of the answer, and the instant at which it was there. The body may have no end.
    ///
    /// # Errors
    /// When nobody can be asked, or does not answer in time.
    pub fn status(&self) -> io::Result<(StatusCode, Instant)> {
        self.exchange(async |answer| {
            let (status, at) = (answer.status(), Instant::now());
            let _ = tokio::time::timeout(COURTESY, Limited::new(answer.into_body(), 64 << 10).collect()).await;
            Ok((status, at))
        })
    }

    /// Asks, and gives the answer's head to `read`.
    fn exchange<T>(&self, read: impl AsyncFnOnce(Response<Incoming>) -> io::Result<T>) -> io::Result<T> {
        let authority = self.url.authority().ok_or_else(|| odd("the URL names no host".to_owned()))?;
        let address = format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(80));
        let begun = Instant::now();
        let stream = connect(&address, self.patience)?;
        let path = self.url.path_and_query().map_or("/", |path| path.as_str());
        let request = match self.json {
            Some(_) => Request::post(path),
            None => Request::get(path),
        };
        let request = request
            .header(header::HOST, authority.as_str())
            .header(header::USER_AGENT, "unladen")
            .header(header::ACCEPT, self.accept)
            .header(header::ACCEPT_ENCODING, "identity")
            .header(header::CONNECTION, "close");
        let request = match self.json {
            Some(json) => request.header(header::CONTENT_TYPE, "application/json").body(json.to_owned().into()),
            None => request.body(Full::<Bytes>::default()),
        };
        let request = request.map_err(io::Error::other)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let exchange = async {
                let stream = TokioIo::new(tokio::net::TcpStream::from_std(stream)?);
                // As most clients write them: not every server knows that their case means nothing.
                let connection = http1::Builder::new().title_case_headers(true).handshake(stream).await;
                let (mut sender, connection) = connection.map_err(|error| told(&error))?;
                // What goes wrong on it shows in the answer. It ends with the runtime.
                tokio::spawn(connection);
                read(sender.send_request(request).await.map_err(|error| told(&error))?).await
            };
            let left = self.patience.saturating_sub(begun.elapsed());
            tokio::time::timeout(left, exchange).await.unwrap_or_else(|_| {
                let text = format!("it has not answered within {:?}", self.patience);
                Err(io::Error::new(io::ErrorKind::TimedOut, text))
            })
        })
    }
}

/// The body of the answer to `GET`, if its status is 200.
///
/// # Errors
/// When there is no such answer in time.
pub fn get(url: &Uri, patience: Duration) -> io::Result<Bytes> {
    let question = Question { accept: "text/plain, */*;q=0.5", ..Question::get(url, patience) };
    match question.ask(16 << 20)? {
        (StatusCode::OK, body) => Ok(body),
        (status, _) => Err(odd(format!("it answers {}", status.as_str()))),
    }
}

/// An answer that is none.
fn odd(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// What went wrong, in words for those who know the service but not this program.
fn told(error: &hyper::Error) -> io::Error {
    if error.is_parse() {
        return odd("what it answers is not HTTP".to_owned());
    }
    // The innermost cause says it best.
    let mut cause: &(dyn std::error::Error + 'static) = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
    if error.is_incomplete_message() || kind == Some(io::ErrorKind::UnexpectedEof) {
        return io::Error::new(io::ErrorKind::UnexpectedEof, "its answer is cut short");
    }
    io::Error::new(kind.unwrap_or(io::ErrorKind::Other), cause.to_string())
}

/// Connects to the first address of a name that accepts, each within `patience`. The connection never blocks.
///
/// # Errors
/// Why the last one did not.
pub fn connect(address: &str, patience: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match connect_to(address, patience) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Connects from a port that is not the one connected to. The kernel may pick that very port as long as nobody listens:
/// the connection would then be to itself, pass for a service that accepts, and keep the port from the service.
fn connect_to(address: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, getsockname, socket_with, sockopt};
    let (family, any): (_, SocketAddr) = match address {
        SocketAddr::V4(_) => (AddressFamily::INET, (Ipv4Addr::UNSPECIFIED, 0).into()),
        SocketAddr::V6(_) => (AddressFamily::INET6, (Ipv6Addr::UNSPECIFIED, 0).into()),
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = loop {
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        bind(&socket, &any)?;
        let own = SocketAddr::try_from(getsockname(&socket)?)?;
        if own.port() != address.port() {
            break socket;
        }
    };
    match connect(&socket, &address) {
        Ok(()) => {}
        Err(rustix::io::Errno::INPROGRESS) => {
            let limit = Timespec { tv_sec: patience.as_secs().cast_signed(), tv_nsec: patience.subsec_nanos().into() };
            if poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&limit))? == 0 {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer to the connection request"));
            }
            sockopt::socket_error(&socket)??;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(TcpStream::from(socket))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread::JoinHandle;

    use super::*;

    /// Answers one connection with a text and returns what was asked.
    fn server(text: &'static str) -> (Uri, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/x?y=1", listener.local_addr().expect("an address"));
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut buffer = [0_u8; 1024];
            let read = stream.read(&mut buffer).expect("a request");
            stream.write_all(text.as_bytes()).expect("it is read");
            String::from_utf8_lossy(&buffer[..read]).into_owned()
        });
        (url.parse().expect("a URL"), server)
    }

    const PATIENCE: Duration = Duration::from_secs(5);

    #[test]
    fn the_status_is_read_whatever_follows_it() {
        for (text, expected) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Some(200)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", Some(200)),
            ("HTTP/1.0 301 Moved\r\n\r\n", Some(301)),
            ("HTTP/1.1 503\r\n\r\n", Some(503)),
            ("SSH-2.0-OpenSSH_9.2\r\n", None),
            ("", None),
            ("HTTP/1.1 9\r\n", None),
        ] {
            let (url, server) = server(text);
            let status = Question::get(&url, PATIENCE).status().ok().map(|(status, _)| status.as_u16());
            assert_eq!(status, expected, "{text:?}");
            let request = server.join().expect("the server ends well");
            let host = url.authority().expect("a host");
            assert!(request.starts_with(&format!("GET /x?y=1 HTTP/1.1\r\nHost: {host}\r\n")), "{request}");
        }
    }

    #[test]
    fn bodies_come_whole_or_in_chunks_and_other_statuses_are_told() {
        let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nx 1\r\n2;a=b\r\n\n\n\r\n0\r\n\r\n";
        for (answer, expected) in [
            ("HTTP/1.0 200 OK\r\n\r\nx 1\n", Ok("x 1\n")),
            (chunks, Ok("x 1\n\n")),
            (&chunks[..60], Err("its answer is cut short")),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", Err("its answer is cut short")),
            ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", Err("it answers 404")),
            ("SSH-2.0\r\n", Err("what it answers is not HTTP")),
        ] {
            let (url, server) = server(answer);
            let body = get(&url, PATIENCE).map_err(|error| error.to_string());
            assert_eq!(body, expected.map(Bytes::from).map_err(str::to_owned), "{answer}");
            server.join().expect("the server ends well");
        }
        let (url, server) = server("HTTP/1.1 200 OK\r\n\r\nmore than two bytes");
        let error = Question::get(&url, PATIENCE).ask(2).expect_err("too long");
        assert_eq!(error.to_string(), "its answer is longer than 0 MiB");
        server.join().expect("the server ends well");
    }

    #[test]
    fn who_does_not_answer_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/", listener.local_addr().expect("an address")).parse().expect("a URL");
        let error = get(&url, Duration::from_millis(50)).expect_err("nobody accepts");
        assert_eq!(
            (error.kind(), error.to_string()),
            (io::ErrorKind::TimedOut, "it has not answered within 50ms".to_owned())
        );
    }

    #[test]
    fn nobody_there_is_refused_however_often_it_is_tried() {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
        // Without care, one in some 28,000 attempts connects to itself.
        for _ in 0..2_000 {
            let error = connect(&format!("127.0.0.1:{port}"), PATIENCE).expect_err("nobody listens");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        }
        assert_eq!(
            connect("localhost:0", PATIENCE).expect_err("no such port").kind(),
            io::ErrorKind::ConnectionRefused
        );
    }
}
