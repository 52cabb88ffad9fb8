//! Numbers that other programs tell over HTTP: a metric in Prometheus' text format, or a number in a JSON document.
//!
//! Knows no study. Only `http://`; the caller sees to it that the URL stays where it may.

use std::time::Duration;

use http::Uri;
use unladen_linux::Netns;
use unladen_linux::netns::within;
use unladen_prometheus::Selector;

use crate::ask::Question;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Longest answer that is read, bytes.
const LONGEST: usize = 32 << 20;

/// What to ask, and where in the answer the number stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Query {
    /// A JSON document.
    Json {
        /// URL.
        url: String,
        /// Sent as `POST` if there is one.
        body: Option<String>,
        /// JSON pointer (RFC 6901) to the number.
        pointer: String,
    },
    /// Metrics in Prometheus' text format.
    Prometheus {
        /// URL.
        url: String,
        /// Series to add up.
        selector: Selector,
    },
}

/// Why there is no number.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The network namespace cannot be entered.
    #[error("cannot enter the service's network namespace: {0}")]
    Network(std::io::Error),
    /// Not a URL.
    #[error("`{0}` is not a URL such as `http://127.0.0.1:9411/metrics`")]
    Url(String),
    /// Nobody answers.
    #[error("{url} cannot be reached: {message}")]
    Unreachable {
        /// URL.
        url: String,
        /// Why.
        message: String,
    },
    /// Nothing came in time.
    #[error("{url} did not answer within {} s", TIMEOUT.as_secs())]
    TimedOut {
        /// URL.
        url: String,
    },
    /// A bad status.
    #[error("{url} answered {status}: {start}")]
    Status {
        /// URL.
        url: String,
        /// Status.
        status: http::StatusCode,
        /// How the answer begins.
        start: String,
    },
    /// The answer does not hold the number.
    #[error("{url} answered, but {why}; it begins: {start}")]
    NoNumber {
        /// URL.
        url: String,
        /// Why.
        why: String,
        /// How the answer begins.
        start: String,
    },
}

impl Query {
    /// Where it goes.
    #[must_use]
    pub fn url(&self) -> &str {
        match self {
            Self::Json { url, .. } | Self::Prometheus { url, .. } => url,
        }
    }

    /// The number now, asked for in a network namespace if one is given. A metric that has no series yet is 0: counters come into
    /// being when they first count.
    ///
    /// # Errors
    /// When there is no answer, or no number in it.
    pub fn ask(&self, network: Option<&Netns>) -> Result<f64, QueryError> {
        let body = match self {
            Self::Json { body, .. } => body.as_deref(),
            Self::Prometheus { .. } => None,
        };
        let text = within(network, || get(self.url(), body)).map_err(QueryError::Network)??;
        let none = |why| QueryError::NoNumber { url: self.url().to_owned(), why, start: start(&text) };
        match self {
            Self::Json { pointer, .. } => number(&text, pointer).map_err(none),
            Self::Prometheus { selector, .. } => unladen_prometheus::sum(&text, selector)
                .map(Option::unwrap_or_default)
                .map_err(|error| none(error.to_string())),
        }
    }
}

/// The number at a pointer; also one that is written as a text.
fn number(text: &str, pointer: &str) -> Result<f64, String> {
    let document: serde_json::Value = serde_json::from_str(text).map_err(|error| format!("not with JSON ({error})"))?;
    let found = document.pointer(pointer).ok_or_else(|| format!("there is nothing at `{pointer}`"))?;
    let number = found.as_f64().or_else(|| found.as_str()?.trim().parse().ok());
    number.filter(|number| number.is_finite()).ok_or_else(|| format!("what is at `{pointer}` is not a number"))
}

/// How an answer begins, on one line.
fn start(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(80).collect()
}

/// The text behind a URL.
fn get(url: &str, body: Option<&str>) -> Result<String, QueryError> {
    let bad = || QueryError::Url(url.to_owned());
    let uri: Uri = url.parse().map_err(|_| bad())?;
    if uri.scheme_str() != Some("http") {
        return Err(bad());
    }
    let accept = "application/json, text/plain;version=0.0.4, */*";
    let answer = Question { url: &uri, json: body, accept, patience: TIMEOUT }.ask(LONGEST);
    let (status, bytes) = answer.map_err(|error| match error.kind() {
        std::io::ErrorKind::TimedOut => QueryError::TimedOut { url: url.to_owned() },
        _ => QueryError::Unreachable { url: url.to_owned(), message: error.to_string() },
    })?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if status.is_success() {
        Ok(text)
    } else {
        Err(QueryError::Status { url: url.to_owned(), status, start: start(&text) })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// Answers one request with `response`; what was asked comes back through the thread.
    fn server(response: &'static str) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut request = vec![0; 4_096];
            let length = stream.read(&mut request).expect("a request");
            stream.write_all(response.as_bytes()).expect("a reader");
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        (format!("http://{address}/x?y=1"), thread)
    }

    #[test]
    fn a_number_in_json() {
        let (url, request) =
            server("HTTP/1.1 200 OK\r\ncontent-length: 32\r\n\r\n{\"hits\":{\"total\":{\"value\":1234}}}");
        let query = Query::Json { url, body: Some("{}".into()), pointer: "/hits/total/value".into() };
        // One byte short: read as far as the length says, which is no JSON.
        assert!(query.ask(None).expect_err("cut short").to_string().contains("not with JSON"));
        assert!(request.join().expect("asked").starts_with("POST /x?y=1 HTTP/1.1"));

        let (url, request) =
            server("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n5\r\n\"12\"}\r\n0\r\n\r\n");
        let query = Query::Json { url, body: None, pointer: "/a".into() };
        assert_eq!(query.ask(None).expect("a number"), 12.0);
        assert!(request.join().expect("asked").starts_with("GET /x?y=1 HTTP/1.1"));
    }

    #[test]
    fn a_metric() {
        let (url, request) = server("HTTP/1.1 200 OK\r\ncontent-length: 25\r\n\r\nsent{to=\"a\"} 5\nsent 2\n\n\n\n");
        let query = Query::Prometheus { url, selector: "sent".parse().expect("a selector") };
        assert_eq!(query.ask(None).expect("a number"), 7.0);
        request.join().expect("asked");
    }

    #[test]
    fn failures_say_what_is_wrong() {
        let ask =
            |url: String| Query::Json { url, body: None, pointer: "/a".into() }.ask(None).expect_err("bad").to_string();
        let (url, request) = server("HTTP/1.1 404 Not Found\r\ncontent-length: 7\r\n\r\nno such");
        assert_eq!(ask(url.clone()), format!("{url} answered 404 Not Found: no such"));
        request.join().expect("asked");
        let (url, request) = server("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n{\"b\":1}");
        assert_eq!(ask(url.clone()), format!("{url} answered, but there is nothing at `/a`; it begins: {{\"b\":1}}"));
        request.join().expect("asked");
        assert!(ask("http://127.0.0.1:1/".into()).contains("refused"));
        assert!(ask("what is this".into()).contains("is not a URL"));
    }
}
