//! One intake request, taken line by line while it comes in: agents hold a request open for ten seconds or so and write
//! into it whenever something happened. Memory is bounded by the unfinished line and a few hundred kilobytes.
//!
//! Nothing is acknowledged before the end of the request, as the protocol has it. By then the spans are long counted and
//! most of them on the disk.

use http::StatusCode;
use unladen_decode::elastic;
use unladen_decode::span::Protocol;

use crate::body::{BodyError, Payload};
use crate::hub::{Accepted, Hub};
use crate::inbound::Request;
use crate::inflate::Inflate;
use crate::web::{self, Failure};

/// Decompressed bytes that are taken together while more come in.
const ENOUGH: usize = 128 << 10;
/// Largest metadata line: it is kept, and read again with every part of the request.
const MAX_METADATA: usize = 64 << 10;

/// Events of a request, whatever they are.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Lines behind the metadata.
    pub(super) events: u64,
    /// Those of them that can never be stored.
    pub(super) rejected: u64,
    /// Why the first of them cannot.
    pub(super) reason: Option<&'static str>,
}

impl Taken {
    /// Events that were taken.
    pub(super) fn accepted(&self) -> u64 {
        self.events.saturating_sub(self.rejected)
    }
}

/// Takes a request; what was taken of it, and the failure that ended it, if one did.
pub(super) async fn intake(hub: &Hub, request: Request) -> (Taken, Option<Failure>) {
    let mut stream = Stream {
        hub,
        rest: Payload::new(hub.budget()),
        metadata: 0,
        total: 0,
        is_fresh: false,
        is_begun: false,
        taken: Taken::default(),
        rows: 0,
    };
    let mut failure = stream.read(request).await.err();
    if failure.is_some() && stream.is_fresh {
        // Lines that came whole before the break are sound. If they are not, the first failure says enough.
        let _ = stream.take(false).await;
    }
    // What is said to be accepted is durable, even if what follows it is broken.
    if let Err(reason) = hub.durable(stream.rows).await {
        stream.taken = Taken::default();
        failure = Some(Failure::refused(reason, WHAT));
    }
    (stream.taken, failure)
}

const WHAT: &str = "stream of events";

struct Stream<'h> {
    hub: &'h Hub,
    /// The metadata line, once it is known, and what was not taken yet.
    rest: Payload,
    /// Length of the metadata line.
    metadata: usize,
    /// Decompressed bytes so far.
    total: usize,
    /// Whether something came since lines were last taken.
    is_fresh: bool,
    /// Whether any lines were taken.
    is_begun: bool,
    taken: Taken,
    /// Rows that must be durable before the request is acknowledged.
    rows: u64,
}

impl Stream<'_> {
    async fn read(&mut self, request: Request) -> Result<(), Failure> {
        let mut inflate = Inflate::new(web::encoding(&request)?).map_err(|error| Failure::unread(self.hub, &error))?;
        let mut body = request.into_body();
        loop {
            let piece = tokio::select! {
                biased;
                piece = body.piece(self.hub.budget()) => piece,
                // The sender pauses: what is there is taken in the meantime.
                () = std::future::ready(()), if self.is_fresh => {
                    self.take(false).await?;
                    continue;
                }
                () = tokio::time::sleep(self.hub.silence()) => return Err(Failure::unread(self.hub, &BodyError::Silent)),
            };
            let Some(piece) = piece.map_err(|error| Failure::unread(self.hub, &error))? else { break };
            self.feed(&mut inflate, piece.bytes()).await?;
        }
        inflate.finish(&mut self.rest, self.hub.max_message()).map_err(|error| Failure::unread(self.hub, &error))?;
        self.take(true).await
    }

    async fn feed(&mut self, inflate: &mut Inflate, data: &[u8]) -> Result<(), Failure> {
        self.hub.body(data.len());
        let mut compressed = data;
        let limit = self.hub.max_message();
        let mut is_more = true;
        while is_more {
            let before = self.rest.bytes().len();
            let fed = inflate.feed(&mut compressed, &mut self.rest, before + ENOUGH, limit);
            is_more = fed.map_err(|error| Failure::unread(self.hub, &error))?;
            let after = self.rest.bytes().len();
            self.total += after - before;
            self.is_fresh |= after > before;
            if self.total > limit {
                return Err(Failure::unread(self.hub, &BodyError::TooLarge));
            }
            if after >= before + ENOUGH {
                self.take(false).await?;
                // There may be much more in a few compressed bytes, and others wait.
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// Takes all whole lines, or all there is.
    async fn take(&mut self, is_end: bool) -> Result<(), Failure> {
        self.is_fresh = false;
        let bytes = self.rest.bytes();
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let whole = if is_end { bytes.len() } else { whole };
        // At the end even of nothing, so that an empty request is told what is missing.
        if whole <= self.metadata && (self.is_begun || !is_end) {
            return Ok(());
        }
        if self.metadata == 0 {
            let blank = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let line = bytes[blank..whole.max(blank)].iter().position(|byte| *byte == b'\n');
            self.metadata = line.map_or(whole, |end| blank + end + 1);
            if self.metadata > MAX_METADATA {
                self.hub.undecodable();
                let message = format!("the metadata is larger than {MAX_METADATA} bytes; send less of it");
                return Err(Failure::new(StatusCode::BAD_REQUEST, message));
            }
        }
        let mut rest = Payload::new(self.hub.budget());
        let limit = self.hub.max_message();
        let pushed = rest.push(&bytes[..self.metadata], limit).and_then(|()| rest.push(&bytes[whole..], usize::MAX));
        pushed.map_err(|error| Failure::unread(self.hub, &error))?;
        let lines = Lines { payload: std::mem::replace(&mut self.rest, rest), end: whole };
        let events = unladen_decode::lines(lines.as_ref()).skip(1).count() as u64;
        self.is_begun = true;
        let taken = self.hub.accept(Protocol::Elastic, lines.as_ref(), elastic::decode).await;
        let (Accepted { rejected, reason }, rows) = taken.map_err(|reason| Failure::refused(reason, WHAT))?;
        self.taken.events += events;
        self.taken.rejected += rejected;
        self.taken.reason = self.taken.reason.or(reason);
        self.rows = rows;
        Ok(())
    }
}

/// Whole lines, with the metadata first.
struct Lines {
    payload: Payload,
    end: usize,
}

impl AsRef<[u8]> for Lines {
    fn as_ref(&self) -> &[u8] {
        &self.payload.bytes()[..self.end]
    }
}
