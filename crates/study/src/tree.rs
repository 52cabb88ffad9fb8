//! A study as it stands in the file, before anything is made of it: scalars, lists and keys, each with its place.
//!
//! Profiles and `--set` change this tree; [`super::typed`] makes a [`super::spec::Study`] of it. A scalar keeps the text
//! it was written as beside its value, because `PORT: 0080` or `VERSION: 1.10` must reach a service as written.

use std::fmt;
use std::sync::Arc;

use super::key::{KeyPath, Step};

/// Where a node comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Line, from 1; `None` if it doesn't stand in the file.
    pub(super) line: Option<u64>,
    /// Column in characters, from 1.
    pub(super) column: Option<u64>,
    /// Who put it there.
    pub(super) origin: Origin,
}

/// Who put a node into the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// The study file.
    File,
    /// A profile of the study, by name.
    Profile(Arc<str>),
    /// `--set`, with its text.
    Set(Arc<str>),
}

/// A scalar, a list or keys with values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    /// What it is.
    pub(super) kind: Kind,
    /// Where it comes from.
    pub(super) place: Place,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// One value.
    Scalar {
        /// As written, without quotes.
        text: String,
        /// What YAML makes of it.
        value: Scalar,
    },
    /// Values in order.
    List(Vec<Node>),
    /// Keys with values, in the order of the file; no key stands twice.
    Keys(Vec<Entry>),
}

/// The types of YAML's core schema.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scalar {
    /// `null`, `~` or nothing at all.
    Null,
    /// `true`, `false`.
    Bool(bool),
    /// A whole number.
    Whole(i128),
    /// Any other number.
    Float(f64),
    /// Text.
    Text,
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// The key.
    pub(super) key: String,
    /// Where the key stands.
    pub(super) place: Place,
    /// Its value.
    pub(super) node: Node,
}

impl Node {
    /// No keys yet.
    pub(super) fn no_keys(place: Place) -> Self {
        Self { kind: Kind::Keys(Vec::new()), place }
    }

    /// Whether nothing stands here.
    pub(super) fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Scalar { value: Scalar::Null, .. })
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// Keys with values; none for scalars and lists.
    pub(super) fn entries(&self) -> &[Entry] {
        match &self.kind {
            Kind::Keys(entries) => entries,
            _ => &[],
        }
    }

    /// Gives the node and everything in it one place.
    pub(super) fn replace_places(&mut self, place: &Place) {
        self.place = place.clone();
        match &mut self.kind {
            Kind::Scalar { .. } => {}
            Kind::List(items) => items.iter_mut().for_each(|item| item.replace_places(place)),
            Kind::Keys(entries) => {
                for entry in entries {
                    entry.place = place.clone();
                    entry.node.replace_places(place);
                }
            }
        }
    }

    /// Where a problem at `path` should be pointed to: the value if it is a scalar, else its key; if nothing stands
    /// there, the nearest thing above it.
    pub(super) fn place_of(&self, path: &KeyPath) -> Place {
        let mut node = self;
        let mut place = &self.place;
        for step in path.steps() {
            match (step, &node.kind) {
                (Step::Key(key), Kind::Keys(entries)) => match entries.iter().find(|entry| &entry.key == key) {
                    Some(entry) => (node, place) = (&entry.node, &entry.place),
                    None => break,
                },
                (Step::Item(position), Kind::List(items)) => match items.get(*position) {
                    Some(item) => (node, place) = (item, &item.place),
                    None => break,
                },
                _ => break,
            }
        }
        match node.kind {
            // An absent value has the place of the character before it, which is no help: its key is.
            Kind::Scalar { value, .. } if value != Scalar::Null => node.place.clone(),
            _ => place.clone(),
        }
    }
}

/// What a node is, in words for the end of "…, found".
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Scalar { text, value } => match value {
                Scalar::Null => f.write_str("nothing"),
                Scalar::Bool(_) => write!(f, "`{text}`"),
                Scalar::Whole(_) | Scalar::Float(_) => write!(f, "the number `{text}`"),
                Scalar::Text => write!(f, "the text `{}`", shortened(text)),
            },
            Kind::List(_) => f.write_str("a list"),
            Kind::Keys(_) => f.write_str("keys with values"),
        }
    }
}

/// At most 60 characters of the first line of a text.
pub(super) fn shortened(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let short: String = line.chars().take(60).collect();
    if short.len() < text.trim_end().len() { format!("{short}…") } else { short }
}
