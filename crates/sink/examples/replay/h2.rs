//! gRPC calls over one connection with framing as cheap as it can be, so that the receiver is what is measured. Like real
//! clients of gRPC it says nothing of the length of a call.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpStream;
use unladen_http2::frame::{self, Head, flag, kind, setting, word};
use unladen_http2::hpack::{Decoder, put_indexed, put_literal, static_field};

use crate::{Answer, Outcome};

/// Pause before a call is made again that may pass later.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);
/// Bytes to be sent from which on no more calls are written down.
const ENOUGH: usize = 512 << 10;
/// Windows before the other side says anything.
const WINDOW: i64 = 65_535;

/// A call under way.
struct Call {
    body: Bytes,
    sent: usize,
    window: i64,
    status: Option<Answer>,
}

/// One connection.
pub(crate) struct Connection {
    stream: TcpStream,
    block: Vec<u8>,
    decoder: Decoder,
    calls: HashMap<u32, Call>,
    /// Calls of which not everything is sent, in their order.
    unsent: Vec<u32>,
    /// Calls to be made again.
    again: Vec<Bytes>,
    next: u32,
    window: i64,
    first_window: i64,
    out: Vec<u8>,
    partial: Vec<u8>,
}

impl Connection {
    /// Connects for calls of one method.
    pub(crate) async fn open(address: SocketAddr, path: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut block = Vec::new();
        for (name, value) in [(":method", "POST"), (":scheme", "http")] {
            put_indexed(&mut block, static_field(name, value).unwrap_or_default());
        }
        let authority = address.to_string();
        let fields =
            [(":path", path), (":authority", &authority), ("content-type", "application/grpc"), ("te", "trailers")];
        fields.iter().for_each(|(name, value)| put_literal(&mut block, name, value.as_bytes(), false));
        let mut out = frame::PREFACE.to_vec();
        frame::put_settings(&mut out, &[(setting::ENABLE_PUSH, 0)]);
        Ok(Self {
            stream,
            block,
            decoder: Decoder::new(),
            calls: HashMap::new(),
            unsent: Vec::new(),
            again: Vec::new(),
            next: 1,
            window: WINDOW,
            first_window: WINDOW,
            out,
            partial: Vec::new(),
        })
    }

    /// Makes so many calls, `streams` at a time.
    pub(crate) async fn send(
        mut self,
        calls: u64,
        streams: usize,
        spans: u64,
        next: impl Fn() -> Bytes,
    ) -> io::Result<Outcome> {
        let (mut left, mut outcome) = (calls, Outcome::default());
        let mut buffer = vec![0; 64 << 10];
        loop {
            let mut is_pausing = false;
            while self.calls.len() < streams && self.out.len() < ENOUGH {
                if let Some(body) = self.again.pop() {
                    is_pausing = true;
                    self.call(body);
                } else if left > 0 {
                    left -= 1;
                    self.call(next());
                } else {
                    break;
                }
            }
            if is_pausing {
                tokio::time::sleep(PAUSE).await;
            }
            self.pump();
            self.flush()?;
            if self.calls.is_empty() && left == 0 && self.again.is_empty() {
                return Ok(outcome);
            }
            tokio::select! {
                ready = self.stream.readable() => {
                    ready?;
                    match self.stream.try_read(&mut buffer) {
                        Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                        Ok(read) => self.receive(&buffer[..read], spans, &mut outcome)?,
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(error) => return Err(error),
                    }
                }
                ready = self.stream.writable(), if !self.out.is_empty() => ready?,
            }
        }
    }

    fn call(&mut self, body: Bytes) {
        frame::put_head(&mut self.out, self.block.len(), kind::HEADERS, flag::END_HEADERS, self.next);
        self.out.extend_from_slice(&self.block);
        self.calls.insert(self.next, Call { body, sent: 0, window: self.first_window, status: None });
        self.unsent.push(self.next);
        self.next += 2;
    }

    /// Writes bodies down as far as the windows allow.
    fn pump(&mut self) {
        let (window, out, calls) = (&mut self.window, &mut self.out, &mut self.calls);
        self.unsent.retain(|number| {
            let Some(call) = calls.get_mut(number) else { return false };
            while call.sent < call.body.len() && out.len() < ENOUGH {
                let room = call.window.min(*window).max(0) as usize;
                let part = (call.body.len() - call.sent).min(room).min(frame::MAX_PAYLOAD);
                if part == 0 {
                    break;
                }
                let end = call.sent + part;
                let flags = if end == call.body.len() { flag::END_STREAM } else { 0 };
                frame::put_head(out, part, kind::DATA, flags, *number);
                out.extend_from_slice(&call.body[call.sent..end]);
                call.sent = end;
                call.window -= part as i64;
                *window -= part as i64;
            }
            call.sent < call.body.len()
        });
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut written = 0;
        while written < self.out.len() {
            match self.stream.try_write(&self.out[written..]) {
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.out.drain(..written);
        Ok(())
    }

    fn receive(&mut self, bytes: &[u8], spans: u64, outcome: &mut Outcome) -> io::Result<()> {
        let mut input = std::mem::take(&mut self.partial);
        input.extend_from_slice(bytes);
        let mut rest = &input[..];
        while let Some(head) = Head::read(rest)
            && let Some(payload) = rest.get(frame::HEAD..frame::HEAD + head.length)
        {
            self.frame(head, payload, spans, outcome)?;
            rest = &rest[frame::HEAD + head.length..];
        }
        self.partial = rest.to_vec();
        Ok(())
    }

    fn frame(&mut self, head: Head, payload: &[u8], spans: u64, outcome: &mut Outcome) -> io::Result<()> {
        match head.kind {
            kind::SETTINGS if !head.has(flag::ACK) => {
                for entry in payload.chunks_exact(6) {
                    if u16::from_be_bytes([entry[0], entry[1]]) == setting::INITIAL_WINDOW_SIZE {
                        let first = i64::from(word(&entry[2..]));
                        let change = first - std::mem::replace(&mut self.first_window, first);
                        self.calls.values_mut().for_each(|call| call.window += change);
                    }
                }
                frame::put_head(&mut self.out, 0, kind::SETTINGS, flag::ACK, 0);
            }
            kind::PING if !head.has(flag::ACK) => {
                frame::put_head(&mut self.out, payload.len(), kind::PING, flag::ACK, 0);
                self.out.extend_from_slice(payload);
            }
            kind::WINDOW_UPDATE if head.stream == 0 => self.window += i64::from(word(payload)),
            kind::WINDOW_UPDATE => {
                if let Some(call) = self.calls.get_mut(&head.stream) {
                    call.window += i64::from(word(payload));
                }
            }
            // Answers are small: their windows are given back one by one.
            kind::DATA if !payload.is_empty() => {
                frame::put_word(&mut self.out, kind::WINDOW_UPDATE, 0, payload.len() as u32);
            }
            kind::HEADERS => {
                let mut status = None;
                let field = |name: &[u8], value: &[u8]| {
                    if name == b"grpc-status" {
                        status = Some(match value {
                            b"0" => Answer::Taken,
                            b"14" | b"8" => Answer::Later,
                            _ => Answer::Never,
                        });
                    }
                };
                self.decoder.decode(payload, field).map_err(io::Error::other)?;
                if let Some(call) = self.calls.get_mut(&head.stream) {
                    call.status = status.or(call.status.take());
                }
            }
            kind::RST_STREAM => self.end(head.stream, spans, outcome),
            kind::GOAWAY => return Err(io::ErrorKind::ConnectionAborted.into()),
            _ => {}
        }
        if matches!(head.kind, kind::HEADERS | kind::DATA) && head.has(flag::END_STREAM) {
            self.end(head.stream, spans, outcome);
        }
        Ok(())
    }

    fn end(&mut self, number: u32, spans: u64, outcome: &mut Outcome) {
        let Some(call) = self.calls.remove(&number) else { return };
        match call.status {
            Some(Answer::Taken) => {
                outcome.acknowledged += spans;
                outcome.bytes += call.body.len() as u64;
            }
            Some(Answer::Later) => {
                outcome.retries += 1;
                self.again.push(call.body);
            }
            _ => outcome.refused += spans,
        }
    }
}
