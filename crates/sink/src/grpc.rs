//! gRPC as in <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>, as far as a server of unary calls and
//! client streams needs it: messages out of bodies, answers and failures. Knows no service.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bumpalo::Bump;
use http::{HeaderValue, Response, header};
use tokio::time::timeout;
use unladen_decode::Broken;
use unladen_decode::frames::{PREFIX, Together, frames};
use unladen_decode::span::{Batch, Decode, Protocol};

use crate::answer::{Answer, Reply, grpc as response};
use crate::body::{BodyError, Payload};
use crate::failure::Statuses;
use crate::hub::{Accepted, Hub, Refused};
use crate::inbound::{Body, Request};
use crate::inflate::gunzip;
use crate::status::{Code, status_with_retry};

/// Seconds after which a refused sender may come again.
const RETRY_AFTER: u64 = 1;
/// A call that failed.
pub(crate) type Failure = crate::failure::Failure<Code>;

impl Statuses for Code {
    const BODY: &'static str = "message";
    const COMPRESSED: &'static str = "with gzip";

    fn of_body(error: &BodyError) -> Self {
        match error {
            BodyError::TooLarge => Self::ResourceExhausted,
            BodyError::Busy | BodyError::Connection | BodyError::Silent => Self::Unavailable,
            BodyError::Compression => Self::Internal,
        }
    }

    fn of_spans(refused: &Refused) -> Self {
        match refused {
            Refused::Undecodable(_) => Self::InvalidArgument,
            Refused::Busy | Refused::Closed => Self::Unavailable,
        }
    }
}

impl From<Result<Vec<u8>, Failure>> for Answer {
    fn from(outcome: Result<Vec<u8>, Failure>) -> Self {
        outcome.map_or_else(|error| failure(&error).into(), Self::Message)
    }
}

/// Whether a request is a gRPC call.
pub(crate) fn is_grpc(request: &Request) -> bool {
    let content_type = request.headers().get(header::CONTENT_TYPE);
    content_type.is_some_and(|content_type| content_type.as_bytes().starts_with(b"application/grpc"))
}

/// The message of a unary call.
pub(crate) async fn unary(hub: &Hub, request: Request) -> Result<Payload, Failure> {
    let encoding = request.headers().get("grpc-encoding").cloned();
    let limit = hub.max_message();
    let framed = request.into_body().whole(limit.saturating_add(PREFIX), hub.budget(), hub.silence()).await;
    let framed = framed.map_err(|error| Failure::unread(hub, &error))?;
    hub.body(framed.bytes().len());
    let message = unframe(framed.bytes()).inspect_err(|_| hub.undecodable())?;
    if message.compressed { unpack(hub, encoding.as_ref(), message.bytes) } else { Ok(framed.skip(PREFIX)) }
}

/// Has the spans of a unary call taken; `what` its message should be.
pub(crate) async fn take(
    hub: &Hub,
    request: Request,
    protocol: Protocol,
    decode: Decode,
    what: &str,
) -> Result<Accepted, Failure> {
    let message = unary(hub, request).await?;
    hub.take(protocol, message, decode).await.map_err(|reason| Failure::refused(reason, what))
}

/// Has the spans of a client stream taken, as its messages come. All are made durable together once the last one is here: there is one
/// answer for them. `what` a message should be.
pub(crate) async fn take_stream(
    hub: &Hub,
    request: Request,
    protocol: Protocol,
    what: &str,
    decode: impl for<'a> Fn(Together<'a>, &'a Bump) -> Result<Batch<'a>, Broken>,
) -> Result<(), Failure> {
    let refused = |reason| Failure::refused(reason, what);
    let mut messages = Messages::of(hub, request);
    let mut rows = 0;
    while let Some(next) = messages.next(hub).await? {
        let so_far = match next {
            Next::One(message) => take_one(hub, protocol, message.bytes(), &decode).await,
            Next::Framed(bytes) => {
                let so_far = take_framed(hub, protocol, messages.framed(bytes), &decode).await;
                messages.advance(bytes);
                so_far
            }
        };
        rows = so_far.map_err(refused)?.max(rows);
    }
    hub.durable(rows).await.map_err(refused)
}

/// Takes a message. Returns how many rows there are by then.
async fn take_one(
    hub: &Hub,
    protocol: Protocol,
    message: &[u8],
    decode: &impl for<'a> Fn(Together<'a>, &'a Bump) -> Result<Batch<'a>, Broken>,
) -> Result<u64, Refused> {
    let taken = hub.accept(protocol, message, |bytes, arena| decode(Together::One(bytes), arena)).await;
    taken.map(|(_, rows)| rows)
}

/// Takes messages that came together. Returns how many rows there are by then.
async fn take_framed(
    hub: &Hub,
    protocol: Protocol,
    messages: &[u8],
    decode: &impl for<'a> Fn(Together<'a>, &'a Bump) -> Result<Batch<'a>, Broken>,
) -> Result<u64, Refused> {
    // Faults count messages.
    if hub.faults().is_none() {
        let taken = hub.accept(protocol, messages, |bytes, arena| decode(Together::Framed(bytes), arena)).await;
        if !matches!(taken, Err(Refused::Undecodable(_))) {
            return taken.map(|(_, rows)| rows);
        }
        // One is broken; those before it need not be.
        hub.undo_undecodable();
    }
    let mut rows = 0;
    for message in frames(messages) {
        rows = take_one(hub, protocol, message, decode).await?.max(rows);
    }
    Ok(rows)
}

/// The messages of a client stream, as they come.
#[derive(Debug)]
pub(crate) struct Messages {
    body: Body,
    encoding: Option<HeaderValue>,
    /// What has come and is not taken.
    rest: Payload,
}

/// What [`Messages::next`] found.
#[derive(Debug)]
enum Next {
    /// So many bytes of whole messages, each behind its prefix: see [`Messages::framed`].
    Framed(usize),
    /// One message, unpacked.
    One(Payload),
}

impl Messages {
    /// The messages of a request.
    pub(crate) fn of(hub: &Hub, request: Request) -> Self {
        let encoding = request.headers().get("grpc-encoding").cloned();
        Self { body: request.into_body(), encoding, rest: Payload::new(hub.budget()) }
    }

    /// The next messages; `None` at the end of the stream.
    async fn next(&mut self, hub: &Hub) -> Result<Option<Next>, Failure> {
        if self.rest.bytes().is_empty() && !self.fill(hub).await? {
            return Ok(None);
        }
        let small = frames(self.rest.bytes()).take_while(|message| message.len() <= hub.max_message());
        let whole: usize = small.map(|message| PREFIX + message.len()).sum();
        if whole > 0 {
            hub.body(whole);
            return Ok(Some(Next::Framed(whole)));
        }
        let prefix = self.prefix(hub).await?;
        let (compressed, length) = read_prefix(prefix).inspect_err(|_| hub.undecodable())?;
        let limit = hub.max_message();
        if length > limit {
            return Err(Failure::unread(hub, &BodyError::TooLarge));
        }
        let mut message = Payload::new(hub.budget());
        while message.bytes().len() < length {
            // Between messages a stream may rest, within one it takes memory.
            if self.rest.bytes().is_empty() {
                let filled = timeout(hub.silence(), self.fill(hub)).await;
                if !filled.map_err(|_| Failure::unread(hub, &BodyError::Silent))?? {
                    hub.undecodable();
                    return Err(Failure::new(Code::Internal, "the message is shorter than its prefix says"));
                }
            }
            let rest = self.rest.bytes();
            let part = rest.len().min(length - message.bytes().len());
            message.push(&rest[..part], limit).map_err(|error| Failure::unread(hub, &error))?;
            self.rest.advance(part);
        }
        hub.body(PREFIX + length);
        let message = if compressed { unpack(hub, self.encoding.as_ref(), message.bytes())? } else { message };
        Ok(Some(Next::One(message)))
    }

    /// The bytes that [`Next::Framed`] announced.
    fn framed(&self, bytes: usize) -> &[u8] {
        &self.rest.bytes()[..bytes]
    }

    /// Forgets them.
    fn advance(&mut self, bytes: usize) {
        self.rest.advance(bytes);
    }

    async fn prefix(&mut self, hub: &Hub) -> Result<[u8; PREFIX], Failure> {
        let mut prefix = [0; PREFIX];
        let mut read = 0;
        while read < PREFIX {
            if self.rest.bytes().is_empty() && !self.fill(hub).await? {
                hub.undecodable();
                return Err(Failure::new(Code::Internal, "the call ends within the prefix of a message"));
            }
            let rest = self.rest.bytes();
            let part = rest.len().min(PREFIX - read);
            prefix[read..read + part].copy_from_slice(&rest[..part]);
            self.rest.advance(part);
            read += part;
        }
        Ok(prefix)
    }

    /// Gets what comes next once everything is taken; false at the end of the stream.
    async fn fill(&mut self, hub: &Hub) -> Result<bool, Failure> {
        self.rest.clear();
        let piece = self.body.piece(hub.budget()).await.map_err(|error| Failure::unread(hub, &error))?;
        let is_there = piece.is_some();
        self.rest = piece.unwrap_or_else(|| Payload::new(hub.budget()));
        Ok(is_there)
    }

    /// Reads to the end of the stream and forgets everything, a piece at a time.
    pub(crate) async fn ignore(mut self, hub: &Hub) -> Result<(), Failure> {
        while self.fill(hub).await? {}
        Ok(())
    }
}

fn unpack(hub: &Hub, encoding: Option<&HeaderValue>, message: &[u8]) -> Result<Payload, Failure> {
    match encoding.map(HeaderValue::as_bytes) {
        Some(b"gzip") => gunzip(message, hub.max_message(), hub.budget()).map_err(|error| Failure::unread(hub, &error)),
        None | Some(b"identity") => {
            hub.undecodable();
            let message = "the message is compressed but grpc-encoding names no compression";
            Err(Failure::new(Code::Internal, message))
        }
        Some(other) => {
            hub.undecodable();
            let other = String::from_utf8_lossy(other);
            let message = format!("compression {other} is not supported; use gzip or identity");
            Err(Failure::new(Code::Unimplemented, message))
        }
    }
}

/// A message with its prefix taken off.
#[derive(Debug, PartialEq)]
pub(crate) struct Message<'a> {
    compressed: bool,
    bytes: &'a [u8],
}

/// The one message of a unary call.
pub(crate) fn unframe(body: &[u8]) -> Result<Message<'_>, Failure> {
    let broken = |text: &str| Failure::new(Code::Internal, text);
    let Some((prefix, bytes)) = body.split_first_chunk::<PREFIX>() else {
        return Err(broken("the call ends before its message"));
    };
    let (compressed, length) = read_prefix(*prefix)?;
    match bytes.len().cmp(&length) {
        std::cmp::Ordering::Less => Err(broken("the message is shorter than its prefix says")),
        std::cmp::Ordering::Greater => Err(broken("the call takes one message, not several")),
        std::cmp::Ordering::Equal => Ok(Message { compressed, bytes }),
    }
}

/// Whether a message is compressed, and its length.
fn read_prefix(prefix: [u8; PREFIX]) -> Result<(bool, usize), Failure> {
    let [flag, length @ ..] = prefix;
    if flag > 1 {
        return Err(Failure::new(Code::Internal, "the compressed flag of the message is neither 0 nor 1"));
    }
    Ok((flag == 1, u32::from_be_bytes(length) as usize))
}

/// A "trailers-only" response: the status stands in the headers.
pub(crate) fn failure(failure: &Failure) -> Response<Reply> {
    let Failure { status: code, message } = failure;
    let code = *code;
    let mut response = response(Reply::default());
    let headers = response.headers_mut();
    headers.insert("grpc-status", HeaderValue::from(code as u16));
    if let Ok(message) = HeaderValue::from_str(&percent_encode(message)) {
        headers.insert("grpc-message", message);
    }
    if code == Code::Unavailable {
        // Binary headers are base64 without padding.
        let details = STANDARD_NO_PAD.encode(status_with_retry(code, message, RETRY_AFTER));
        if let Ok(details) = HeaderValue::from_str(&details) {
            headers.insert("grpc-status-details-bin", details);
        }
    }
    if code == Code::Unimplemented {
        headers.insert("grpc-accept-encoding", HeaderValue::from_static("gzip,identity"));
    }
    response
}

/// A failure on purpose, with any status.
pub(crate) fn refusal(code: u8) -> Response<Reply> {
    let mut response = response(Reply::default());
    let headers = response.headers_mut();
    headers.insert("grpc-status", HeaderValue::from(u16::from(code)));
    headers.insert("grpc-message", HeaderValue::from_static("refused on purpose"));
    response
}

/// `grpc-message` is percent-encoded outside of printable ASCII.
fn percent_encode(message: &str) -> String {
    message
        .bytes()
        .map(|byte| match byte {
            b' '..=b'~' if byte != b'%' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framing() {
        assert_eq!(unframe(&[0, 0, 0, 0, 2, 7, 8]), Ok(Message { compressed: false, bytes: &[7, 8] }));
        assert_eq!(unframe(&[1, 0, 0, 0, 0]), Ok(Message { compressed: true, bytes: &[] }));
        let broken: [&[u8]; 5] = [&[], &[0, 0, 0], &[0, 0, 0, 0, 3, 1], &[0, 0, 0, 0, 1, 1, 0], &[2, 0, 0, 0, 0]];
        for body in broken {
            assert_eq!(unframe(body).expect_err("broken").status, Code::Internal, "{body:?}");
        }
    }

    #[test]
    fn messages_are_printable_ascii() {
        assert_eq!(percent_encode("100 % größer\n"), "100 %25 gr%C3%B6%C3%9Fer%0A");
    }
}
