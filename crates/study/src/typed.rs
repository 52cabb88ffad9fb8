//! The tree to a [`Study`]: a serde deserializer whose errors speak of the study.
//!
//! Unknown keys are collected instead of ending the reading, so that all of them are told at once; the first value of
//! a wrong type ends it. Texts take numbers and `true`/`false` as they are written, so `PORT: 8080` needs no quotes.

use std::cell::RefCell;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};

use super::guess::{Guess, guess};
use super::key::KeyPath;
use super::problem::{Problem, ProblemKind};
use super::schema;
use super::spec::{MAX_ROUNDS, Study};
use super::tree::{Kind, Node, Scalar};

/// The study in a tree.
///
/// # Errors
/// Every unknown key, and the first value that isn't what it should be.
pub(super) fn study(tree: &Node) -> Result<Study, Vec<Problem>> {
    let mut study: Study = read(tree, &schema::required_keys().collect::<Vec<_>>())?;
    if study.is_open_ended() && tree.get("rounds").is_none() {
        study.rounds = MAX_ROUNDS;
    }
    Ok(study)
}

/// What a tree holds; `required` are the keys without which it is nothing.
///
/// # Errors
/// As [`study`].
pub(super) fn read<'de, T: Deserialize<'de>>(tree: &'de Node, required: &[&'static str]) -> Result<T, Vec<Problem>> {
    let unknown = RefCell::new(Vec::new());
    let result = T::deserialize(Value { node: tree, path: &KeyPath::default(), unknown: &unknown });
    let mut problems = unknown.into_inner();
    match result {
        Ok(study) if problems.is_empty() => Ok(study),
        Ok(_) => Err(problems),
        Err(Error(problem)) => {
            // `comand` explains why `command` is missing.
            let missing = matches!(problem.kind, ProblemKind::MissingKey { .. });
            let explained = problems.iter().any(|known: &Problem| known.path == problem.path);
            if missing && !explained {
                // It is missing under its parent's key, not at the first of its neighbours.
                let place = Some(tree.place_of(&problem.path));
                if problem.path.is_root() {
                    let lacking = required.iter().copied().filter(|key| tree.get(key).is_none());
                    let kinds = lacking.map(|key| ProblemKind::MissingKey { key });
                    problems.extend(kinds.map(|kind| Problem { path: KeyPath::default(), place: place.clone(), kind }));
                } else {
                    problems.push(Problem { place, ..*problem });
                }
            } else if !missing {
                problems.push(*problem);
            }
            Err(problems)
        }
    }
}

/// A problem on its way up; boxed, since it travels in every `Result`.
#[derive(Debug)]
struct Error(Box<Problem>);

impl Error {
    fn new(kind: ProblemKind) -> Self {
        Self(Box::new(Problem { path: KeyPath::default(), place: None, kind }))
    }

    fn wrong_type(wanted: impl fmt::Display, found: impl fmt::Display) -> Self {
        Self::new(ProblemKind::WrongType { wanted: wanted.to_string(), found: found.to_string() })
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.kind)
    }
}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(ProblemKind::Unreadable { message: message.to_string() })
    }
    fn invalid_type(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::wrong_type(expected, unexpected)
    }
    fn invalid_value(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::wrong_type(expected, unexpected)
    }
    fn missing_field(key: &'static str) -> Self {
        Self::new(ProblemKind::MissingKey { key })
    }
}

/// A node with its path.
#[derive(Clone, Copy)]
struct Value<'de, 'p> {
    node: &'de Node,
    path: &'p KeyPath,
    unknown: &'p RefCell<Vec<Problem>>,
}

impl<'de> Value<'de, '_> {
    /// Puts path and place on an error that has none yet: the innermost value that fails is the one to point at.
    fn locate<T>(self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|mut error| {
            if error.0.place.is_none() {
                error.0.path = self.path.clone();
                error.0.place = Some(self.node.place.clone());
            }
            // What serde knows of a value is its type; the tree knows what is written there.
            if let ProblemKind::WrongType { found, .. } = &mut error.0.kind
                && error.0.path == *self.path
            {
                *found = self.node.to_string();
            }
            error
        })
    }

    fn fail<T>(self, wanted: &str) -> Result<T, Error> {
        self.locate(Err(Error::wrong_type(wanted, self.node)))
    }

    /// A whole number, if it is one that fits.
    fn whole<T: TryFrom<i128>>(self, range: &str) -> Result<T, Error> {
        match &self.node.kind {
            Kind::Scalar { value: Scalar::Whole(number), .. } => {
                T::try_from(*number).or_else(|_| self.fail(&format!("a whole number {range}")))
            }
            _ => self.fail("a whole number"),
        }
    }

    /// The text of a scalar that isn't null.
    fn text(self) -> Result<&'de str, Error> {
        match &self.node.kind {
            Kind::Scalar { value, text } if *value != Scalar::Null => Ok(text),
            _ => self.fail("a text"),
        }
    }

    fn keys<V: Visitor<'de>>(self, fields: Option<&'static [&'static str]>, visitor: V) -> Result<V::Value, Error> {
        let entries = match &self.node.kind {
            Kind::Keys(entries) => entries.as_slice(),
            // `baseline:` with nothing after it is a variant that changes nothing.
            _ if self.node.is_null() => &[],
            _ => return self.fail("keys with values"),
        };
        self.locate(visitor.visit_map(Keys { of: self, entries: entries.iter(), fields, value: None }))
    }
}

macro_rules! whole_numbers {
    ($($method:ident => $visit:ident: $type:ty, $wanted:literal;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let number: $type = self.whole($wanted)?;
            self.locate(visitor.$visit(number))
        }
    )*};
}

impl<'de> Deserializer<'de> for Value<'de, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.kind {
            Kind::Scalar { text, value } => {
                let result = match value {
                    Scalar::Null => visitor.visit_unit(),
                    Scalar::Bool(value) => visitor.visit_bool(*value),
                    Scalar::Whole(number) => match i64::try_from(*number) {
                        Ok(number) => visitor.visit_i64(number),
                        Err(_) => visitor.visit_f64(*number as f64),
                    },
                    Scalar::Float(number) => visitor.visit_f64(*number),
                    Scalar::Text => visitor.visit_str(text),
                };
                self.locate(result)
            }
            Kind::List(_) => self.deserialize_seq(visitor),
            Kind::Keys(_) => self.keys(None, visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.node.kind {
            Kind::Scalar { value: Scalar::Bool(value), .. } => visitor.visit_bool(value),
            _ => self.fail("true or false"),
        }
    }

    whole_numbers! {
        deserialize_u8 => visit_u8: u8, "from 0 to 255";
        deserialize_u16 => visit_u16: u16, "from 0 to 65535";
        deserialize_u32 => visit_u32: u32, "from 0 to 4294967295";
        deserialize_u64 => visit_u64: u64, "that isn't negative";
        deserialize_i8 => visit_i8: i8, "from -128 to 127";
        deserialize_i16 => visit_i16: i16, "from -32768 to 32767";
        deserialize_i32 => visit_i32: i32, "from -2147483648 to 2147483647";
        deserialize_i64 => visit_i64: i64, "that fits 64 bits";
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.node.kind {
            Kind::Scalar { value: Scalar::Whole(number), .. } => visitor.visit_f64(number as f64),
            Kind::Scalar { value: Scalar::Float(number), .. } => visitor.visit_f64(number),
            _ => self.fail("a number"),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let text = self.text()?;
        self.locate(visitor.visit_str(text))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.node.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let items = match &self.node.kind {
            Kind::List(items) => items.as_slice(),
            _ if self.node.is_null() => &[],
            _ => return self.fail("a list"),
        };
        self.locate(visitor.visit_seq(Items { of: self, items: items.iter().enumerate() }))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.keys(None, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.keys(Some(fields), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let Ok(word) = self.text() else {
            return self.fail(&format!("one of `{}`", variants.join("`, `")));
        };
        if variants.contains(&word) {
            return self.locate(visitor.visit_enum(word.into_deserializer()));
        }
        let guess = guess(word, variants.iter().copied());
        self.locate(Err(Error::new(ProblemKind::UnknownWord { word: word.to_owned(), guess })))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct ignored_any
    }
}

/// Keys with values, handed over one by one.
struct Keys<'de, 'p> {
    of: Value<'de, 'p>,
    entries: std::slice::Iter<'de, super::tree::Entry>,
    /// Keys that are known; `None`: any key may stand here.
    fields: Option<&'static [&'static str]>,
    value: Option<&'de super::tree::Entry>,
}

impl Keys<'_, '_> {
    /// What an unknown key may have meant: a neighbour, or one that belongs elsewhere (`rate` at the top).
    fn guess(&self, key: &str, fields: &[&'static str]) -> Guess {
        let nearest = guess(key, fields.iter().copied());
        let elsewhere = schema::dotted_keys().iter().find_map(|dotted| {
            let (parent, last) = dotted.rsplit_once('.')?;
            (last == key).then(|| parent.to_owned())
        });
        match (nearest, elsewhere) {
            (Guess::Known(_), Some(parent)) if self.of.path.is_root() => Guess::Under(parent),
            (nearest, _) => nearest,
        }
    }
}

impl<'de> de::MapAccess<'de> for Keys<'de, '_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        while let Some(entry) = self.entries.next() {
            if let Some(fields) = self.fields
                && !fields.contains(&entry.key.as_str())
            {
                let guess = self.guess(&entry.key, fields);
                let kind = ProblemKind::UnknownKey { key: entry.key.clone(), guess };
                let problem = Problem { path: self.of.path.clone(), place: Some(entry.place.clone()), kind };
                self.of.unknown.borrow_mut().push(problem);
                continue;
            }
            self.value = Some(entry);
            let key: StrDeserializer<'_, Error> = entry.key.as_str().into_deserializer();
            return seed.deserialize(key).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let Some(entry) = self.value.take() else { return Err(de::Error::custom("a value without a key")) };
        let path = self.of.path.key(&entry.key);
        let value = Value { node: &entry.node, path: &path, unknown: self.of.unknown };
        // The places of absent values say nothing; those of their keys do.
        seed.deserialize(value).map_err(|mut error| {
            if entry.node.is_null() && error.0.path == path {
                error.0.place = Some(entry.place.clone());
            }
            error
        })
    }
}

/// List items, handed over one by one.
struct Items<'de, 'p> {
    of: Value<'de, 'p>,
    items: std::iter::Enumerate<std::slice::Iter<'de, Node>>,
}

impl<'de> de::SeqAccess<'de> for Items<'de, '_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some((position, node)) = self.items.next() else { return Ok(None) };
        let path = self.of.path.item(position);
        seed.deserialize(Value { node, path: &path, unknown: self.of.unknown }).map(Some)
    }
}
