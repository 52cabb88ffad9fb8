//! Frames that end requests or steer them: resets, settings, windows, going away.

use super::Violation;
use super::frame::code;
use super::hpack;
use super::request::Table;
use super::session::{Event, Session};
use crate::request::Failure;

/// How often a request that the server has refused is sent again: it means to be asked less.
const MAX_REFUSALS: u8 = 3;
/// The same for requests that were on their way when the server went away. Where connections end after so many requests, all of
/// them tend to end at the same time, so that a request may be unlucky several times in a row; its patience ends that anyway.
const MAX_GOAWAYS: u8 = 100;

impl Session {
    #[cold]
    pub(super) fn take_reset<'a>(&mut self, id: u32, code: u32) -> Option<Event<'a>> {
        let stream = self.streams.get(id)?;
        let (request, tries) = (stream.request, stream.tries.saturating_add(1));
        self.streams.close(id);
        Some(match code {
            code::REFUSED_STREAM if tries <= MAX_REFUSALS => Event::Returned { request, tries },
            _ => Event::Failed { request, failure: Failure::Reset },
        })
    }

    /// The server has changed its settings; the windows of streams change by so much.
    #[cold]
    pub(super) fn take_settings(&mut self, change: i64) -> Result<(), Violation> {
        if self.connection.table_size < hpack::TABLE_SIZE && self.table != Table::Unused {
            self.table = Table::Unused;
            self.tell_table = true;
        }
        let is_within = self.streams.iter_mut().all(|stream| stream.flow.grow(change));
        if is_within { Ok(()) } else { Err(Violation::FlowControl) }
    }

    #[cold]
    pub(super) fn take_window_update<'a>(&mut self, id: u32, more: u32) -> Option<Event<'a>> {
        if !self.sending.is_empty() {
            // However little it is, it brings a request forward.
            self.connection.progress();
        }
        let stream = self.streams.get(id)?;
        if more == 0 {
            return self.fail(id, code::PROTOCOL_ERROR, Failure::Protocol);
        }
        if !stream.flow.grow(i64::from(more)) {
            return self.fail(id, code::FLOW_CONTROL_ERROR, Failure::Protocol);
        }
        None
    }

    #[cold]
    pub(super) fn take_goaway(&mut self, last: u32) {
        self.last_processed = Some(self.last_processed.map_or(last, |before| before.min(last)));
        self.draining = true;
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
