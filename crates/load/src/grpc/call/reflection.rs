//! Asks a server for the descriptor of a service by gRPC server reflection, before the load
//! (<https://github.com/grpc/grpc/blob/master/doc/server-reflection.md>). Blocking, one question at a time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use prost::Message;
use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::FileDescriptorProto;

use super::super::status::{STATUSES, place};
use super::secure::secure;
use super::{framed, refuse};
use crate::error::LoadError;
use crate::h2::frame::{self, Head, flag, kind};
use crate::h2::request::{Encoded, Fields};
use crate::h2::session::{Event, Session};
use crate::network::within;
use crate::request::Request;
use crate::target::{Address, Target};
use crate::tls::Tls;

/// The service in its two versions; older servers know the second only.
const SERVICES: [&str; 2] = ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];
/// Numbers of fields: in the question a file's name and a symbol, in the answer the files and the error.
const BY_NAME: u8 = 3;
const BY_SYMBOL: u8 = 4;
const FILES: u64 = 4;
const ERROR: u64 = 7;
/// The status of a service that does not exist.
const UNIMPLEMENTED: u16 = 12;
/// Most bytes that an answer may have.
const MAX_ANSWER: usize = 16 << 20;
/// Most files that a service may consist of.
const MAX_FILES: usize = 10_000;

/// A connection of any kind.
pub(super) trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// The descriptors of a service and of all that it needs.
pub(super) fn ask(
    service: &str,
    patience_s: f64,
    target: &Target,
    address: &Address,
    tls: Option<&Tls>,
) -> Result<DescriptorPool, LoadError> {
    let patience = Duration::from_secs_f64(patience_s);
    let question = |version: &str, field: u8, text: &str| {
        let failed = |error: std::io::Error| LoadError::Connect { address: address.to_string(), source: error };
        let stream = connect(address, tls, patience).map_err(failed)?;
        exchange(stream, version, target, &framed(&string_field(field, text)), patience).map_err(failed)
    };
    let mut version = SERVICES[0];
    let mut answer = question(version, BY_SYMBOL, service)?;
    if answer == Err(UNIMPLEMENTED) {
        version = SERVICES[1];
        answer = question(version, BY_SYMBOL, service)?;
    }
    let mut files = files(&answer.map_err(|status| failed(status, service))?)?;
    // Some servers send only the file that was asked for: ask for what it imports.
    let mut at = 0;
    while at < files.len() {
        for needed in files[at].dependency.clone() {
            if !files.iter().any(|file| file.name() == needed) {
                let answer = question(version, BY_NAME, &needed)?.map_err(|status| failed(status, &needed))?;
                files.extend(self::files(&answer)?);
            }
        }
        at += 1;
        if files.len() > MAX_FILES {
            return Err(refuse("the service consists of more than 10,000 files"));
        }
    }
    let mut pool = DescriptorPool::new();
    pool.add_file_descriptor_protos(files).map_err(|error| refuse(&error.to_string()))?;
    Ok(pool)
}

/// Words for a status other than OK.
fn failed(status: u16, what: &str) -> LoadError {
    if status == UNIMPLEMENTED {
        return refuse("the server does not know reflection; name .proto files or a descriptor set in the plan");
    }
    let name = STATUSES[place(Some(status))];
    refuse(&format!("the server answers the question for {what} by reflection with the status {name}"))
}

/// Connects.
fn connect(address: &Address, tls: Option<&Tls>, patience: Duration) -> std::io::Result<Box<dyn Stream>> {
    let (address, network) = match address {
        Address::Tcp(address, network) => (address, network.as_ref()),
        Address::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(patience))?;
            return Ok(Box::new(stream));
        }
    };
    let stream = within(network, || TcpStream::connect_timeout(address, patience))?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_nodelay(true)?;
    match tls {
        None => Ok(Box::new(stream)),
        Some(tls) => secure(tls, stream),
    }
}

/// Asks one question; returns the first message of the answer, or a status other than OK.
fn exchange(
    mut stream: Box<dyn Stream>,
    service: &str,
    target: &Target,
    question: &[u8],
    patience: Duration,
) -> std::io::Result<Result<Vec<u8>, u16>> {
    let until = Instant::now() + patience;
    let head = format!("POST /{service}/ServerReflectionInfo HTTP/1.1\r\nHost: {}\r\n\r\n", target.authority);
    let scheme = if target.secure { "https" } else { "http" };
    let mut fields = Fields::of_http1(head.as_bytes(), scheme, None);
    fields.for_grpc(question.to_vec());
    let encoded = Encoded::new(&fields, None);
    let mut session = Session::new(1, "POST");
    let (mut held, mut at, mut seen, mut answer) = (Vec::new(), 0, 0, Vec::new());
    let mut buffer = vec![0; 16 << 10];
    loop {
        session.pump();
        stream.write_all(&std::mem::take(&mut session.connection.out))?;
        stream.flush()?;
        let taken = stream.read(&mut buffer)?;
        if taken == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        held.extend_from_slice(&buffer[..taken]);
        // The session knows the rules but keeps no bodies: the data is collected on its way.
        while let Some(head) = Head::read(&held[seen..])
            && let Some(payload) = held.get(seen + frame::HEAD..seen + frame::HEAD + head.length)
        {
            if head.kind == kind::DATA && head.flags & flag::PADDED == 0 {
                answer.extend_from_slice(payload);
            }
            seen += frame::HEAD + head.length;
        }
        while let Some(event) = session.next(&held, &mut at).map_err(std::io::Error::other)? {
            match event {
                Event::Ready => session.send(Request::default(), 0, &encoded),
                Event::Answered { grpc_status: Some(0), .. } => return message(&answer).map(Ok),
                Event::Answered { grpc_status: Some(status), .. } => return Ok(Err(status)),
                // Not gRPC at all.
                Event::Answered { .. } => return Ok(Err(UNIMPLEMENTED)),
                Event::Failed { .. } | Event::Returned { .. } => {
                    return Err(std::io::ErrorKind::ConnectionReset.into());
                }
            }
        }
        if answer.len() > MAX_ANSWER || Instant::now() > until {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
    }
}

/// The first message of a body.
fn message(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let broken = || std::io::Error::other("the answer to reflection is not a gRPC message");
    let (&[compressed, a, b, c, d], rest) = body.split_first_chunk::<5>().ok_or_else(broken)?;
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if compressed != 0 {
        return Err(std::io::Error::other("the answer to reflection is compressed, which was not allowed"));
    }
    rest.get(..length).map(<[u8]>::to_vec).ok_or_else(broken)
}

/// The files in an answer.
fn files(answer: &[u8]) -> Result<Vec<FileDescriptorProto>, LoadError> {
    let broken = || refuse("the answer to reflection is not as its protocol says");
    for (number, value) in fields(answer).ok_or_else(broken)? {
        match number {
            FILES => {
                return fields(value)
                    .ok_or_else(broken)?
                    .into_iter()
                    .map(|(_, file)| FileDescriptorProto::decode(file).map_err(|error| refuse(&error.to_string())))
                    .collect();
            }
            ERROR => {
                let parts = fields(value).ok_or_else(broken)?;
                let text = parts.iter().find(|(number, _)| *number == 2).map_or(&b"not found"[..], |(_, text)| text);
                return Err(refuse(&format!("reflection says: {}", String::from_utf8_lossy(text))));
            }
            _ => {}
        }
    }
    Err(broken())
}

/// A message with one field of text.
fn string_field(number: u8, text: &str) -> Vec<u8> {
    let mut message = vec![number << 3 | 2];
    prost::encoding::encode_varint(text.len() as u64, &mut message);
    message.extend_from_slice(text.as_bytes());
    message
}

/// The fields of a message that have a length, with their numbers; others are skipped. `None`: it is no message.
fn fields(mut message: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let key = prost::encoding::decode_varint(&mut message).ok()?;
        match key & 7 {
            0 => {
                prost::encoding::decode_varint(&mut message).ok()?;
            }
            2 => {
                let length = usize::try_from(prost::encoding::decode_varint(&mut message).ok()?).ok()?;
                let (value, rest) = message.split_at_checked(length)?;
                found.push((key >> 3, value));
                message = rest;
            }
            1 => message = message.get(8..)?,
            5 => message = message.get(4..)?,
            _ => return None,
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_and_others_skipped() {
        let mut bytes = vec![0x08, 0x96, 0x01, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0x1d, 0, 0, 0, 0];
        bytes.extend(string_field(4, "name"));
        assert_eq!(fields(&bytes), Some(vec![(4, &b"name"[..])]));
        for broken in [&b"\x22\x05abc"[..], b"\x22", b"\x08", b"\x0b", b"\x11\0"] {
            assert_eq!(fields(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn an_error_is_told_in_the_servers_words() {
        let mut answer = vec![0x3a, 11, 0x08, 5, 0x12, 7];
        answer.extend(b"no such");
        assert!(files(&answer).expect_err("an error").to_string().contains("no such"));
        assert!(files(b"").is_err() && files(b"\xff").is_err());
    }

    #[test]
    fn only_whole_uncompressed_messages_are_taken() {
        assert_eq!(message(b"\0\0\0\0\x02abc").expect("good"), b"ab");
        for body in [&b"\0\0\0\0\x04abc"[..], b"\x01\0\0\0\x01a", b"\0\0"] {
            assert!(message(body).is_err(), "{body:?}");
        }
    }
}
