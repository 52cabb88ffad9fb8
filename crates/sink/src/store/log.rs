//! The log of spans that are on the disk but not yet in a row group.
//!
//! A span is acknowledged when it is durable, and at a low rate a row group of the few spans of some milliseconds would be
//! almost all overhead. So they are logged first and written as a row group when there are enough. A block in the log
//! names the group that its spans will be in: once that group is in a file, the block says nothing new.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use unladen_decode::attributes::{RawAttributes, logged};
use unladen_decode::buffers::{put_bytes, take, take_bytes};
use unladen_decode::span::{Kind, Protocol, Source, Span, Status};
use unladen_decode::value::Value;
use zstd::bulk::Compressor;

use crate::config::Attributes;

/// Name of the log in the folder of span files.
pub(super) const NAME: &str = "spans.log";
const MAGIC: &[u8; 8] = b"unladenL";
/// Checksum, compressed length, plain length, group.
const BLOCK_HEAD: usize = 4 + 4 + 4 + 8;
/// Blocks are small, so the level hardly matters.
const LEVEL: i32 = 1;
/// No block is larger, whatever its head says.
const MAX_BLOCK: usize = 256 << 20;

/// The log being written.
pub(super) struct Log {
    file: File,
    end: u64,
    /// Kept, because to make one costs more than to compress a few spans.
    compressor: Compressor<'static>,
}

impl fmt::Debug for Log {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Log").field("end", &self.end).finish_non_exhaustive()
    }
}

impl Log {
    /// Starts an empty log.
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        let file = File::create(path(folder))?;
        file.write_all_at(MAGIC, 0)?;
        Ok(Self { file, end: MAGIC.len() as u64, compressor: Compressor::new(LEVEL)? })
    }

    /// Appends spans and waits until they are on the disk. After an error the log is as before.
    pub(super) fn append(&mut self, group: u64, spans: &[u8]) -> io::Result<()> {
        let compressed = self.compressor.compress(spans)?;
        let mut block = Vec::with_capacity(BLOCK_HEAD + compressed.len());
        block.extend_from_slice(&[0; 4]);
        block.extend_from_slice(&(compressed.len() as u32).to_le_bytes());
        block.extend_from_slice(&(spans.len() as u32).to_le_bytes());
        block.extend_from_slice(&group.to_le_bytes());
        block.extend_from_slice(&compressed);
        let checksum = crc32fast::hash(&block[4..]);
        block[..4].copy_from_slice(&checksum.to_le_bytes());
        self.file.write_all_at(&block, self.end)?;
        self.file.sync_data()?;
        self.end += block.len() as u64;
        Ok(())
    }

    /// Begins anew: all spans so far are in a row group.
    pub(super) fn reset(&mut self) {
        if self.end > MAGIC.len() as u64 {
            self.end = MAGIC.len() as u64;
            // What would be left behind names a group that is in a file, so it does no harm.
            let _ = self.file.set_len(self.end);
        }
    }

    /// Removes the log: all spans are in files.
    pub(super) fn remove(folder: &Path) -> io::Result<()> {
        match fs::remove_file(path(folder)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join(NAME)
}

/// Spans that became durable together, and the group that they are in or will be.
pub(super) type Block = (u64, Vec<u8>);

/// All whole blocks of a log. Empty if there is no log.
pub(super) fn read(folder: &Path) -> io::Result<Vec<Block>> {
    let bytes = match fs::read(path(folder)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        bytes => bytes?,
    };
    let mut blocks = Vec::new();
    let mut rest = bytes.strip_prefix(MAGIC).unwrap_or_default();
    while let Some((block, behind)) = block(rest) {
        blocks.push(block);
        rest = behind;
    }
    Ok(blocks)
}

fn block(bytes: &[u8]) -> Option<(Block, &[u8])> {
    let head = &mut &*bytes;
    let [checksum, compressed, plain] = [take(head)?, take(head)?, take(head)?].map(u32::from_le_bytes);
    let group = u64::from_le_bytes(take(head)?);
    let (block, behind) = bytes.split_at_checked(BLOCK_HEAD.checked_add(compressed as usize)?)?;
    if crc32fast::hash(&block[4..]) != checksum || plain as usize > MAX_BLOCK {
        return None;
    }
    let spans = zstd::bulk::decompress(&block[BLOCK_HEAD..], plain as usize).ok()?;
    Some(((group, spans), behind))
}

/// A span as the log has it, with what the accounts and the receiver added.
#[derive(Debug)]
pub(super) struct Logged<'a> {
    pub(super) span: Span<'a>,
    pub(super) source: Source<'a>,
    pub(super) request: Option<u64>,
    pub(super) protocol: Protocol,
    pub(super) arrival_ns: i64,
}

const HAS_PARENT: u8 = 1;
const HAS_INSTANCE: u8 = 2;
const HAS_REQUEST: u8 = 4;

/// Appends a span with the attributes that are to be stored.
pub(super) fn write(logged: &Logged<'_>, which: Attributes, out: &mut Vec<u8>) {
    let Logged { span, source, request, protocol, arrival_ns } = logged;
    let flag = |flag, is_set| if is_set { flag } else { 0 };
    out.push(
        flag(HAS_PARENT, span.parent_id.is_some())
            | flag(HAS_INSTANCE, source.instance.is_some())
            | flag(HAS_REQUEST, request.is_some()),
    );
    out.extend_from_slice(&[span.kind as u8, span.status as u8, *protocol as u8]);
    out.extend_from_slice(&span.trace_id);
    out.extend_from_slice(&span.span_id);
    out.extend_from_slice(&span.parent_id.unwrap_or_default());
    out.extend_from_slice(&request.unwrap_or_default().to_le_bytes());
    out.extend_from_slice(&span.start_ns.to_le_bytes());
    out.extend_from_slice(&span.duration_ns.to_le_bytes());
    out.extend_from_slice(&arrival_ns.to_le_bytes());
    out.extend_from_slice(&span.size.to_le_bytes());
    put_bytes(source.service, out);
    put_bytes(source.instance.unwrap_or_default(), out);
    put_bytes(span.operation, out);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    if which != Attributes::None {
        span.attributes.visit(&mut |key: &[u8], value: Value<'_>| {
            if which.wants(key) {
                logged::put(key, value, out);
            }
        });
    }
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Takes the next span off `rest`; `None` at the end.
pub(super) fn next<'a>(rest: &mut &'a [u8]) -> Option<Logged<'a>> {
    let [flags, kind, status, protocol] = take(rest)?;
    let has = |flag| flags & flag != 0;
    let mut span = Span {
        trace_id: take(rest)?,
        span_id: take(rest)?,
        parent_id: Some(take(rest)?).filter(|_| has(HAS_PARENT)),
        kind: *Kind::ALL.get(usize::from(kind))?,
        status: *Status::ALL.get(usize::from(status))?,
        ..Span::default()
    };
    let protocol = *Protocol::ALL.get(usize::from(protocol))?;
    let request = Some(u64::from_le_bytes(take(rest)?)).filter(|_| has(HAS_REQUEST));
    span.start_ns = u64::from_le_bytes(take(rest)?);
    span.duration_ns = i64::from_le_bytes(take(rest)?);
    let arrival_ns = i64::from_le_bytes(take(rest)?);
    span.size = u32::from_le_bytes(take(rest)?);
    let service = take_bytes(rest)?;
    let instance = Some(take_bytes(rest)?).filter(|_| has(HAS_INSTANCE));
    span.operation = take_bytes(rest)?;
    span.attributes = RawAttributes::Logged(take_bytes(rest)?);
    Some(Logged { span, source: Source { service, instance }, request, protocol, arrival_ns })
}
