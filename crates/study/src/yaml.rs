//! YAML text to a located tree, through `serde-saphyr`.
//!
//! The parser is asked for the tree itself, not for the study: its messages speak of Rust types, ours of the study.
//! Budgets keep a hostile file (a "billion laughs" of aliases, endless nesting) from costing more than milliseconds.

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::NonFiniteFloatPolicy;
use serde_saphyr::{Error, Location, Spanned};

use super::key::KeyPath;
use super::problem::{Problem, ProblemKind};
use super::tree::{Entry, Kind, Node, Origin, Place, Scalar};

/// Values in all, those that aliases stand for among them.
const MAX_EVENTS: usize = 20_000;
/// Bytes of text in all, likewise.
const MAX_SCALAR_BYTES: usize = 4 << 20;
/// Levels of nesting.
const MAX_DEPTH: usize = 40;

/// The tree of one document.
pub(super) fn parse(text: &str) -> Result<Node, Box<Problem>> {
    within(text, 1)
}

/// The same of a study with every default written out, by unladen itself: it has many times the values of what its user wrote.
pub(super) fn parse_resolved(text: &str) -> Result<Node, Box<Problem>> {
    within(text, 100)
}

/// The tree of one document of so many times the usual size at most.
fn within(text: &str, times: usize) -> Result<Node, Box<Problem>> {
    let options = serde_saphyr::options! {
        // `yes`, `no`, `on` and `off` are texts, as in YAML 1.2: they are common values of environment variables.
        strict_booleans: true,
        reject_unsupported_tags: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
        emit_comments: false,
        budget: serde_saphyr::budget! {
            max_events: MAX_EVENTS * times,
            max_nodes: MAX_EVENTS * times,
            max_depth: MAX_DEPTH,
            max_recorded_anchor_events: MAX_EVENTS * times,
            max_total_scalar_bytes: MAX_SCALAR_BYTES * times,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_EVENTS },
    };
    let raw: Spanned<Raw> = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| refusal(&error, text, MAX_EVENTS * times))?;
    let root = node(raw, text);
    match root.kind {
        Kind::Keys(_) => Ok(root),
        _ if root.is_null() => Err(at(&Location::UNKNOWN, ProblemKind::Empty)),
        _ => {
            let found = root.to_string();
            Err(Problem::boxed(KeyPath::default(), Some(root.place), ProblemKind::NotKeys { found }))
        }
    }
}

/// What the parser hands over; places and original texts are attached afterwards, by [`node`].
enum Raw {
    Scalar(Scalar, Option<String>),
    List(Vec<Spanned<Raw>>),
    Keys(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RawVisitor;
        impl<'de> Visitor<'de> for RawVisitor {
            type Value = Raw;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a value")
            }
            fn visit_unit<E: de::Error>(self) -> Result<Raw, E> {
                Ok(Raw::Scalar(Scalar::Null, None))
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Raw, E> {
                Ok(Raw::Scalar(Scalar::Bool(value), None))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Raw, E> {
                Ok(Raw::Scalar(Scalar::Whole(value.into()), None))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Raw, E> {
                Ok(Raw::Scalar(Scalar::Whole(value.into()), None))
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Raw, E> {
                Ok(Raw::Scalar(Scalar::Float(value), None))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Raw, E> {
                Ok(Raw::Scalar(Scalar::Text, Some(text.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Raw::List(list))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
                let mut keys = Vec::new();
                while let Some(entry) = entries.next_entry()? {
                    keys.push(entry);
                }
                Ok(Raw::Keys(keys))
            }
        }
        deserializer.deserialize_any(RawVisitor)
    }
}

/// Attaches the places and, to scalars that aren't text, what the file says literally.
fn node(raw: Spanned<Raw>, source: &str) -> Node {
    let kind = match raw.value {
        Raw::Scalar(value, Some(text)) => Kind::Scalar { text, value },
        Raw::Scalar(value, None) => Kind::Scalar { text: literal(&raw.defined, source), value },
        Raw::List(items) => Kind::List(items.into_iter().map(|item| node(item, source)).collect()),
        Raw::Keys(entries) => Kind::Keys(
            entries
                .into_iter()
                .map(|(key, value)| Entry { key: key.value, place: place(&key.referenced), node: node(value, source) })
                .collect(),
        ),
    };
    Node { kind, place: place(&raw.referenced) }
}

/// The characters at a location, quotes taken off (`!!int "5"` is the one number that has them).
fn literal(location: &Location, source: &str) -> String {
    let span = location.span();
    let bytes = span.byte_offset().zip(span.byte_len()).and_then(|(start, length)| {
        let start = usize::try_from(start).ok()?;
        source.get(start..start.checked_add(usize::try_from(length).ok()?)?)
    });
    bytes.unwrap_or_default().trim_matches(['"', '\'']).to_owned()
}

/// A place in the file.
fn place(location: &Location) -> Place {
    let known = location.line() > 0;
    Place { line: known.then(|| location.line()), column: known.then(|| location.column()), origin: Origin::File }
}

fn at(location: &Location, kind: ProblemKind) -> Box<Problem> {
    Problem::boxed(KeyPath::default(), Some(place(location)), kind)
}

/// What the parser says of a document of `limit` values at most, in words that help.
fn refusal(error: &Error, source: &str, limit: usize) -> Box<Problem> {
    let inner = match error.without_snippet() {
        Error::AliasError { error, .. } => error.as_ref(),
        other => other,
    };
    let location = error.location().unwrap_or(Location::UNKNOWN);
    let kind = match inner {
        Error::Eof { .. } => ProblemKind::Empty,
        Error::MultipleDocuments { .. } => ProblemKind::SeveralDocuments,
        Error::DuplicateMappingKey { key, .. } => ProblemKind::DuplicateKey { key: key.clone().unwrap_or_default() },
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => ProblemKind::TooManyValues { limit },
        Error::Budget { breach, .. } => match breach {
            serde_saphyr::budget::BudgetBreach::Depth { .. } => ProblemKind::TooDeep { limit: MAX_DEPTH },
            _ => ProblemKind::TooManyValues { limit },
        },
        Error::UnknownAnchor { .. } => ProblemKind::UnknownAnchor,
        Error::RecursiveReferencesRequireWeakTypes { .. } => ProblemKind::CyclicAlias,
        Error::UnsupportedTag { .. } | Error::TaggedScalarCannotDeserializeIntoString { .. } => ProblemKind::UnknownTag,
        Error::NullIntoString { .. } | Error::Unexpected { .. } => ProblemKind::OddKey,
        other => syntax(other, source, &location),
    };
    let mut problem = at(&location, kind);
    if problem.kind == ProblemKind::Tab {
        problem.place = indenting_tab(source, &location).or(problem.place);
    }
    problem
}

/// The first tab that indents a line at or below a place: the parser may stop a line early.
fn indenting_tab(source: &str, from: &Location) -> Option<Place> {
    let before = usize::try_from(from.line()).ok()?.saturating_sub(1);
    let (index, line) = source.lines().enumerate().skip(before).find(|(_, line)| {
        let indentation = &line[..line.len() - line.trim_start().len()];
        indentation.contains('\t')
    })?;
    let column = line.chars().position(|c| c == '\t')?;
    let (line, column) = (u64::try_from(index + 1).ok(), u64::try_from(column + 1).ok());
    Some(Place { line, column, origin: Origin::File })
}

/// A syntax error with the remedy for the usual causes.
fn syntax(error: &Error, source: &str, location: &Location) -> ProblemKind {
    let line_number = usize::try_from(location.line()).unwrap_or_default();
    let line = line_number.checked_sub(1).and_then(|index| source.lines().nth(index)).unwrap_or_default();
    let message = error.to_string();
    // The place is printed in front already.
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(text, _)| text).replace('\'', "`");
    if message.contains("tab") {
        return ProblemKind::Tab;
    }
    let hint = if line.contains("${") && line.contains(['[', '{']) && message.contains("flow") {
        "inside `[ ]` and `{ }`, a text with `${…}` needs quotes around it"
    } else if message.contains("unexpected character") {
        "a text that begins with this character needs quotes around it"
    } else if message.contains("mapping values are not allowed") {
        "a text with `: ` in it needs quotes around it, and the keys of one block start in the same column"
    } else if message.contains("quoted") || message.contains("quote") {
        "look for a quote that isn't closed"
    } else if message.contains("simple key") {
        "a list item needs a blank after its `-`, a key one after its `:`"
    } else if message.contains("block") {
        "look at how this line and the one above it are indented"
    } else if message.contains("flow") || message.contains("indicator") {
        "look for a `[` or `{` that isn't closed"
    } else {
        "look at this line and the one above it"
    };
    ProblemKind::Syntax { message, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, path: &[&str]) -> (String, Scalar, Option<u64>, Option<u64>) {
        let tree = parse(text).unwrap_or_else(|problem| panic!("{problem:?}"));
        let node = path.iter().try_fold(&tree, |node, key| node.get(key)).expect("a node");
        match &node.kind {
            Kind::Scalar { text, value } => (text.clone(), *value, node.place.line, node.place.column),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn scalars_keep_what_is_written() {
        let text = "é: 1.10\nb: 0x1F\nc: [yes, 007, '5']\nd: |\n  two\n  lines\ne:\nf: 1e999\n";
        assert_eq!(shown(text, &["é"]), ("1.10".to_owned(), Scalar::Float(1.1), Some(1), Some(4)));
        assert_eq!(shown(text, &["b"]), ("0x1F".to_owned(), Scalar::Whole(31), Some(2), Some(4)));
        assert_eq!(shown(text, &["d"]).0, "two\nlines\n");
        assert_eq!(shown(text, &["e"]).1, Scalar::Null);
        assert_eq!(shown(text, &["f"]).0, "1e999");
        let tree = parse(text).expect("a tree");
        let Kind::List(items) = &tree.get("c").expect("a list").kind else { panic!("no list") };
        let items: Vec<String> = items.iter().map(ToString::to_string).collect();
        assert_eq!(items, ["the text `yes`", "the number `007`", "the text `5`"]);
    }

    #[test]
    fn aliases_and_merges_stand_where_they_are_used() {
        let text = "a: &x 0080\nb: *x\nc: &m {k: 1, l: 2}\nd:\n  <<: *m\n  l: 3\n";
        assert_eq!(shown(text, &["b"]), ("0080".to_owned(), Scalar::Float(80.0), Some(2), Some(4)));
        assert_eq!(shown(text, &["d", "k"]), ("1".to_owned(), Scalar::Whole(1), Some(5), Some(7)));
        assert_eq!(shown(text, &["d", "l"]).1, Scalar::Whole(3));
    }

    #[test]
    fn line_ends_of_any_kind() {
        assert_eq!(shown("a: 1\r\nb: 2\r\n", &["b"]), ("2".to_owned(), Scalar::Whole(2), Some(2), Some(4)));
    }
}
