//! What agents tell of spans that they lost themselves, whatever the protocol, and what was lost on the way to the sink.

use crate::span::Source;

/// Where spans were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// Its queue was full.
    Queue,
    /// Exporting failed for good.
    Export,
    /// The program's own rules threw them away.
    Filter,
    /// Its datagrams found no room in the socket of the receiver.
    Socket,
    /// It keeps a sample of so many spans a minute, and more came.
    Reservoir,
}

impl Stage {
    /// Name in the summary and in the ledger.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Export => "export",
            Self::Filter => "filter",
            Self::Socket => "socket",
            Self::Reservoir => "reservoir",
        }
    }
}

/// One value of a counter of lost spans, an agent's or the kernel's.
#[derive(Debug, Clone, Copy)]
pub struct LossCount<'a> {
    /// Who reports it.
    pub source: Source<'a>,
    /// Where the spans were lost.
    pub stage: Stage,
    /// Name of the counter.
    pub metric: &'a [u8],
    /// Tells counters of one name apart.
    pub series: u64,
    /// The count.
    pub spans: u64,
    /// Whether it is the count since the agent's start; else since its last report.
    pub is_cumulative: bool,
}
