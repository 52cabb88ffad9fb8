//! Variants in an order, so that each step of it adds one thing.

use std::fmt;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

/// Variants in the order in which each adds something to the one before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Ladder {
    /// One ladder, from the lowest step up; empty: none.
    Steps(Vec<String>),
    /// Several, by name.
    Named(IndexMap<String, Vec<String>>),
}

impl Ladder {
    /// Every ladder that has steps, with its name; the name is empty if there is but one without.
    pub fn each(&self) -> impl Iterator<Item = (&str, &[String])> {
        let (one, named) = match self {
            Self::Steps(steps) => ((!steps.is_empty()).then_some(("", steps.as_slice())), None),
            Self::Named(ladders) => (None, Some(ladders)),
        };
        let named = named.into_iter().flatten().map(|(name, steps)| (name.as_str(), steps.as_slice()));
        one.into_iter().chain(named)
    }

    /// Without the steps that are not to be kept, and without the ladders of which fewer than two are left.
    pub(crate) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        let narrow = |steps: &mut Vec<String>| {
            steps.retain(|step| keep(step));
            steps.len() > 1
        };
        match self {
            Self::Named(ladders) => ladders.retain(|_, steps| narrow(steps)),
            Self::Steps(steps) => {
                if !narrow(steps) {
                    steps.clear();
                }
            }
        }
    }
}

impl Default for Ladder {
    fn default() -> Self {
        Self::Steps(Vec::new())
    }
}

// By hand, as `Command`.
impl<'de> Deserialize<'de> for Ladder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Ladder;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of variants such as `[baseline, attached, full]`, or several such lists by name")
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<Ladder, A::Error> {
                let mut steps = Vec::new();
                while let Some(step) = items.next_element()? {
                    steps.push(step);
                }
                Ok(Ladder::Steps(steps))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, mut entries: A) -> Result<Ladder, A::Error> {
                let mut ladders = IndexMap::new();
                while let Some((name, steps)) = entries.next_entry()? {
                    ladders.insert(name, steps);
                }
                Ok(Ladder::Named(ladders))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
