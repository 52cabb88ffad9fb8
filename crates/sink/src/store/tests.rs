//! Arbitrary spans written, torn or not, and read back by another's reader.

use std::collections::BTreeMap;
use std::path::Path;

use parquet::basic::Compression;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::record::Field;
use proptest::prelude::*;
use unladen_decode::attributes::{RawAttributes, logged};
use unladen_decode::span::{Kind, Protocol, Source, Span, Status};
use unladen_decode::value::Value;

use super::encode::Encoder;
use super::file::{SpanFile, partial};
use super::group::Group;
use super::log::{self, Logged};
use super::recover::recover;
use super::writer::path;
use crate::config::Attributes;

/// A span that owns what it is made of; attributes as the log has them.
#[derive(Debug, Clone)]
struct Owned {
    ids: (u8, u64, Option<u64>),
    service: String,
    instance: Option<String>,
    operation: String,
    start_ns: u64,
    duration_ns: i64,
    request: Option<u64>,
    kind: usize,
    status: usize,
    attributes: BTreeMap<String, Field>,
}

/// An attribute, given as the reader shows it.
fn value(attribute: &Field) -> Value<'_> {
    match attribute {
        Field::Str(text) => Value::Text(text.as_bytes()),
        Field::Long(number) => Value::Whole(*number),
        Field::Double(number) => Value::Real(*number),
        Field::Bool(truth) => Value::Truth(*truth),
        other => panic!("{other:?} is no attribute"),
    }
}

impl Owned {
    fn trace_id(&self) -> [u8; 16] {
        [self.ids.0 | 1; 16]
    }

    fn logged<'a>(&'a self, attributes: &'a [u8]) -> Logged<'a> {
        let span = Span {
            trace_id: self.trace_id(),
            span_id: self.ids.1.to_be_bytes(),
            parent_id: self.ids.2.map(u64::to_be_bytes),
            kind: Kind::ALL[self.kind],
            operation: self.operation.as_bytes(),
            start_ns: self.start_ns,
            duration_ns: self.duration_ns,
            status: Status::ALL[self.status],
            size: 7,
            attributes: RawAttributes::Logged(attributes),
            ..Span::default()
        };
        let source =
            Source { service: self.service.as_bytes(), instance: self.instance.as_ref().map(String::as_bytes) };
        Logged { span, source, request: self.request, protocol: Protocol::OtlpHttp, arrival_ns: -5 }
    }

    fn attributes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.attributes.iter().for_each(|(key, attribute)| logged::put(key.as_bytes(), value(attribute), &mut out));
        out
    }
}

fn attribute() -> impl Strategy<Value = Field> {
    prop_oneof![
        "[a-zß]{0,3}".prop_map(Field::Str),
        any::<i64>().prop_map(Field::Long),
        (0_i64..3).prop_map(Field::Long),
        (-1e9..1e9).prop_map(Field::Double),
        any::<bool>().prop_map(Field::Bool),
    ]
}

fn span() -> impl Strategy<Value = Owned> {
    let ids = (0_u8..4, any::<u64>(), prop::option::of(0_u64..3));
    let names = ("[ab]{1,2}", prop::option::of("[xy]"), "[a-c]{0,9}");
    let numbers = (0_u64..1 << 62, any::<i64>(), prop::option::of(0_u64..1 << 40), 0_usize..6, 0_usize..3);
    (ids, names, numbers, prop::collection::btree_map("[k-m]|kind|Kind", attribute(), 0..4)).prop_map(
        |(ids, (service, instance, operation), (start_ns, duration_ns, request, kind, status), attributes)| Owned {
            ids,
            service,
            instance,
            operation,
            start_ns,
            duration_ns,
            request,
            kind,
            status,
            attributes,
        },
    )
}

fn group(spans: &[Owned], keys: &Group) -> Group {
    let mut group = Group::default();
    group.succeed(keys);
    for span in spans {
        let attributes = span.attributes();
        let Logged { span, source, request, protocol, arrival_ns } = &span.logged(&attributes);
        let origin = group.origin(source);
        group.push(span, origin, *request, *protocol, *arrival_ns, Attributes::All);
    }
    group
}

fn text(field: Option<&Field>) -> Option<String> {
    match field {
        Some(Field::Str(text)) => Some(text.clone()),
        Some(Field::Null) | None => None,
        other => panic!("{other:?} is not a text"),
    }
}

/// Every row of the files against the span that it was.
fn check(folder: &Path, spans: &[Owned]) {
    let mut spans = spans.iter();
    for number in 1.. {
        let Ok(file) = std::fs::File::open(path(folder, number)) else { break };
        let reader = SerializedFileReader::new(file).expect("a whole file");
        for row in reader.get_row_iter(None).expect("rows") {
            let row = row.expect("a row");
            let row: BTreeMap<&str, &Field> = row.get_column_iter().map(|(name, field)| (&name[..], field)).collect();
            let span = spans.next().expect("no more rows than spans");
            let bytes = |name: &str| match row[name] {
                Field::Bytes(bytes) => Some(bytes.data().to_vec()),
                _ => None,
            };
            assert_eq!(bytes("trace_id"), Some(span.trace_id().to_vec()));
            assert_eq!(bytes("span_id"), Some(span.ids.1.to_be_bytes().to_vec()));
            assert_eq!(bytes("parent_id"), span.ids.2.map(|id| id.to_be_bytes().to_vec()));
            assert_eq!(text(row.get("service").copied()).as_ref(), Some(&span.service));
            assert_eq!(text(row.get("instance").copied()), span.instance);
            assert_eq!(text(row.get("operation").copied()).as_ref(), Some(&span.operation));
            assert_eq!(text(row.get("kind").copied()).as_deref(), Some(Kind::NAMES[span.kind]));
            assert_eq!(text(row.get("status").copied()).as_deref(), Some(Status::NAMES[span.status]));
            assert_eq!(text(row.get("protocol").copied()).as_deref(), Some("otlp_http"));
            assert_eq!(*row["start_ns"], Field::Long(span.start_ns as i64));
            assert_eq!(*row["duration_ns"], Field::Long(span.duration_ns));
            assert_eq!((row["arrival_ns"], row["size"]), (&Field::Long(-5), &Field::Long(7)));
            assert_eq!(*row["request"], span.request.map_or(Field::Null, |index| Field::Long(index as i64)));
            let rest = text(row.get("attributes").copied()).unwrap_or("{}".into());
            let rest: serde_json::Value = serde_json::from_str(&rest).expect("JSON");
            for (key, value) in &span.attributes {
                let column = row.get(&key[..]).filter(|_| !key.eq_ignore_ascii_case("kind"));
                match column {
                    Some(field) if **field != Field::Null => assert_eq!(*field, value, "{key}"),
                    _ => {
                        let expected = match value {
                            Field::Str(text) => text.as_str().into(),
                            Field::Long(number) => (*number).into(),
                            Field::Double(number) => (*number).into(),
                            other => serde_json::Value::from(*other == Field::Bool(true)),
                        };
                        assert_eq!(rest[key], expected, "{key}");
                    }
                }
            }
        }
    }
    assert_eq!(spans.count(), 0, "no span is missing");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(groups in prop::collection::vec(prop::collection::vec(span(), 1..300), 1..4), torn: bool) {
        let out = tempfile::tempdir().expect("a folder");
        let folder = out.path().join("spans");
        std::fs::create_dir(&folder).expect("a folder");
        // All groups once, to know all columns.
        let mut all = Group::default();
        groups.iter().for_each(|spans| all = group(spans, &all));
        let mut file = SpanFile::create(path(&folder, 1), &all.keys).expect("a file");
        let mut encoder = Encoder::new().expect("an encoder");
        for (number, spans) in groups.iter().enumerate() {
            file.append(&mut encoder, &group(spans, &all), number as u64 + 1, &mut Vec::new()).expect("written");
        }
        if torn {
            drop(file);
            let torn = partial(&path(&folder, 1));
            let mut bytes = std::fs::read(&torn).expect("the file");
            bytes.extend_from_slice(b"a row group that was under way unladen2");
            std::fs::write(&torn, bytes).expect("written");
            prop_assert_eq!(recover(out.path()).expect("recovered").files, 1);
        } else {
            file.finish().expect("finished");
        }
        check(&folder, &groups.concat());
    }

    #[test]
    fn what_is_logged_is_recovered(spans in prop::collection::vec(span(), 1..50), cut in 0_usize..40) {
        let out = tempfile::tempdir().expect("a folder");
        let folder = out.path().join("spans");
        std::fs::create_dir(&folder).expect("a folder");
        let mut log = log::Log::create(&folder).expect("a log");
        for spans in spans.chunks(7) {
            let mut block = Vec::new();
            for span in spans {
                let attributes = span.attributes();
                log::write(&span.logged(&attributes), Attributes::All, &mut block);
            }
            log.append(1, &block).expect("written");
        }
        // Cut off in the last block.
        let file = std::fs::OpenOptions::new().write(true).open(folder.join(log::NAME)).expect("the log");
        let length = file.metadata().expect("its length").len();
        file.set_len(length - cut as u64).expect("cut off");
        let whole = if cut == 0 { spans.len() } else { (spans.len() - 1) / 7 * 7 };
        prop_assert_eq!(recover(out.path()).expect("recovered").logged_rows, whole as u64);
        check(&folder, &spans[..whole]);
    }
}

/// What readers skip row groups by, and what tools show of a file.
#[test]
fn footers_say_what_is_in_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let span = |number: u64| Owned {
        ids: (1, number, None),
        service: "shop".into(),
        instance: None,
        operation: "buy".into(),
        start_ns: 1_000 + number,
        duration_ns: 5,
        request: number.is_multiple_of(2).then_some(number),
        kind: 0,
        status: 0,
        attributes: BTreeMap::from([("text".into(), Field::Str(format!("value {number}")))]),
    };
    let spans: Vec<Owned> = (0..2_000).map(span).collect();
    let groups: Vec<Group> = spans.chunks(1_000).map(|spans| group(spans, &Group::default())).collect();
    let mut file = SpanFile::create(path(folder.path(), 1), &groups[0].keys).expect("a file");
    let mut encoder = Encoder::new().expect("an encoder");
    for (group, number) in groups.iter().zip(1..) {
        file.append(&mut encoder, group, number, &mut Vec::new()).expect("written");
        // What could not be made durable leaves no trace.
        let before = file.extent();
        file.append(&mut encoder, group, number + 1, &mut Vec::new()).expect("written");
        file.take_back(before);
    }
    let size = file.finish().expect("finished");
    let path = path(folder.path(), 1);
    assert_eq!(super::file::last_group(&path).expect("one of ours"), 2);
    let file = std::fs::File::open(path).expect("the file");
    assert_eq!(file.metadata().expect("its size").len(), size);
    let reader = SerializedFileReader::new(file).expect("a whole file");
    let metadata = reader.metadata();
    assert!(metadata.file_metadata().created_by().is_some_and(|by| by.starts_with("unladen-sink version ")));
    assert_eq!((metadata.file_metadata().num_rows(), metadata.num_row_groups()), (2_000, 2));
    for (number, group) in metadata.row_groups().iter().enumerate() {
        assert_eq!((group.num_rows(), group.ordinal()), (1_000, Some(number as i32)));
        let of =
            |name: &str| group.columns().iter().find(|column| column.column_path().string() == name).expect("there");
        let first = 1_000 * number as i64;
        let ranges = [("start_ns", first + 1_000, first + 1_999, 0), ("request", first, first + 998, 500)];
        for (name, least, largest, missing) in ranges {
            let expected = Statistics::int64(Some(least), Some(largest), None, Some(missing), false);
            assert_eq!(of(name).statistics(), Some(&expected), "{name}");
        }
        assert!(
            matches!(of("text").compression(), Compression::ZSTD(_))
                && of("service").dictionary_page_offset().is_some()
        );
        assert_eq!(of("span_id").compression(), Compression::UNCOMPRESSED);
        assert_eq!(
            group.total_byte_size(),
            group.columns().iter().map(|column| column.uncompressed_size()).sum::<i64>()
        );
        assert_eq!(
            Some(group.compressed_size()),
            group.columns().iter().map(|column| column.compressed_size()).reduce(|a, b| a + b)
        );
    }
}
