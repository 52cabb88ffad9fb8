//! Frames that are about the connection, or that end a stream: settings, windows, pings, resets, going away.

use super::Violation;
use super::frame::{self, Head, MAX_PAYLOAD, code, flag, kind, setting};
use super::hpack;
use super::request::Table;
use super::session::{Event, MAX_WINDOW, Session};
use crate::request::Failure;

/// How often a request that the server has refused is sent again: it means to be asked less.
const MAX_REFUSALS: u8 = 3;
/// The same for requests that were on their way when the server went away. Where connections end after so many requests, all of
/// them tend to end at the same time, so that a request may be unlucky several times in a row; its patience ends that anyway.
const MAX_GOAWAYS: u8 = 100;

impl Session {
    #[cold]
    pub(super) fn take_reset<'a>(&mut self, head: Head, payload: &[u8]) -> Result<Option<Event<'a>>, Violation> {
        if payload.len() != 4 {
            return Err(Violation::FrameSize);
        }
        self.check_stream(head.stream)?;
        let Some(stream) = self.streams.get(head.stream) else { return Ok(None) };
        let (request, tries) = (stream.request, stream.tries.saturating_add(1));
        self.streams.close(head.stream);
        Ok(Some(match frame::word(payload) {
            code::REFUSED_STREAM if tries <= MAX_REFUSALS => Event::Returned { request, tries },
            _ => Event::Failed { request, failure: Failure::Reset },
        }))
    }

    #[cold]
    pub(super) fn take_settings<'a>(&mut self, head: Head, payload: &[u8]) -> Result<Option<Event<'a>>, Violation> {
        if head.stream != 0 {
            return Err(Violation::Rules("SETTINGS on a stream"));
        }
        if head.has(flag::ACK) {
            return if payload.is_empty() { Ok(None) } else { Err(Violation::FrameSize) };
        }
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Violation::FrameSize);
        }
        for [id @ .., a, b, c, d] in settings {
            self.set(u16::from_be_bytes(*id), u32::from_be_bytes([*a, *b, *c, *d]))?;
        }
        frame::put_head(&mut self.out, 0, kind::SETTINGS, flag::ACK, 0);
        if std::mem::replace(&mut self.ready, true) { Ok(None) } else { Ok(Some(Event::Ready)) }
    }

    /// Heeds a setting of the server's.
    fn set(&mut self, identifier: u16, value: u32) -> Result<(), Violation> {
        match identifier {
            setting::HEADER_TABLE_SIZE if (value as usize) < hpack::TABLE_SIZE && self.table != Table::Unused => {
                self.table = Table::Unused;
                self.tell_table = true;
            }
            setting::ENABLE_PUSH if value != 0 => return Err(Violation::Rules("a server cannot allow pushes")),
            setting::MAX_CONCURRENT_STREAMS => self.allowed = value as usize,
            setting::INITIAL_WINDOW_SIZE => {
                let window = i64::from(value);
                if window > MAX_WINDOW {
                    return Err(Violation::FlowControl);
                }
                let change = window - std::mem::replace(&mut self.stream_window, window);
                for stream in self.streams.iter_mut() {
                    stream.send_window += change;
                    if stream.send_window > MAX_WINDOW {
                        return Err(Violation::FlowControl);
                    }
                }
            }
            setting::MAX_FRAME_SIZE => {
                if !(MAX_PAYLOAD as u32..1 << 24).contains(&value) {
                    return Err(Violation::Rules("an impossible frame size"));
                }
                self.max_payload = value as usize;
            }
            _ => {}
        }
        Ok(())
    }

    #[cold]
    pub(super) fn take_window_update<'a>(
        &mut self,
        head: Head,
        payload: &[u8],
    ) -> Result<Option<Event<'a>>, Violation> {
        if payload.len() != 4 {
            return Err(Violation::FrameSize);
        }
        let more = i64::from(frame::word(payload) & 0x7fff_ffff);
        if !self.sending.is_empty() {
            // However little it is, it brings a request forward.
            self.idle_frames = 0;
        }
        if head.stream == 0 {
            self.send_window += more;
            return match more {
                0 => Err(Violation::Rules("a window that is not changed")),
                _ if self.send_window > MAX_WINDOW => Err(Violation::FlowControl),
                _ => Ok(None),
            };
        }
        self.check_stream(head.stream)?;
        let Some(stream) = self.streams.get(head.stream) else { return Ok(None) };
        stream.send_window += more;
        if more == 0 {
            return Ok(self.fail(head.stream, code::PROTOCOL_ERROR, Failure::Protocol));
        }
        if stream.send_window > MAX_WINDOW {
            return Ok(self.fail(head.stream, code::FLOW_CONTROL_ERROR, Failure::Protocol));
        }
        Ok(None)
    }

    #[cold]
    pub(super) fn take_ping(&mut self, head: Head, payload: &[u8]) -> Result<(), Violation> {
        if head.stream != 0 {
            return Err(Violation::Rules("PING on a stream"));
        }
        if payload.len() != 8 {
            return Err(Violation::FrameSize);
        }
        if !head.has(flag::ACK) {
            frame::put_head(&mut self.out, 8, kind::PING, flag::ACK, 0);
            self.out.extend_from_slice(payload);
        }
        Ok(())
    }

    #[cold]
    pub(super) fn take_goaway(&mut self, head: Head, payload: &[u8]) -> Result<(), Violation> {
        if head.stream != 0 {
            return Err(Violation::Rules("GOAWAY on a stream"));
        }
        if payload.len() < 8 {
            return Err(Violation::FrameSize);
        }
        let last = frame::word(payload) & 0x7fff_ffff;
        self.last_processed = Some(self.last_processed.map_or(last, |before| before.min(last)));
        self.draining = true;
        Ok(())
    }

    /// After GOAWAY: the next request that the server says it has not processed.
    #[cold]
    pub(super) fn give_back<'a>(&mut self, last: u32) -> Option<Event<'a>> {
        let (id, request, tries) = self
            .streams
            .iter()
            .find(|stream| stream.id > last)
            .map(|stream| (stream.id, stream.request, stream.tries.saturating_add(1)))?;
        self.streams.close(id);
        Some(if tries <= MAX_GOAWAYS {
            Event::Returned { request, tries }
        } else {
            Event::Failed { request, failure: Failure::Reset }
        })
    }
}
