//! Changes to a study from outside the file: `--set load.rate=500`, `--set profile=published`.
//!
//! A change is made in the tree, before the study is read from it, so that it is checked by the same rules and told
//! about in the same words as the file. Profiles are applied first, then the other changes, each in their order.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::guess::{Guess, guess};
use super::key::{KeyPath, Step};
use super::mask;
use super::problem::{Problem, ProblemKind};
use super::schema;
use super::tree::{Entry, Kind, Node, Origin, Place, Scalar};
use super::yaml;

/// The key that applies a profile.
const PROFILE: &str = "profile";

/// One change: `window=10s`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// Dotted path into the study, the name of one of its variables, or `profile`.
    pub key: String,
    /// New value, as YAML would write it.
    pub value: String,
}

/// A text that is no change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// No `=`.
    #[error("`{text}` has no value; write `--set {text}=…`")]
    NoValue {
        /// As given.
        text: String,
    },
    /// Nothing before the `=`.
    #[error("`{text}` has no key; write one before the `=`, such as `window=10s`")]
    NoKey {
        /// As given.
        text: String,
    },
}

impl Set {
    /// A change of `key` to `value`.
    pub fn new(key: impl Into<String>, value: impl fmt::Display) -> Self {
        Self { key: key.into(), value: value.to_string() }
    }
}

impl FromStr for Set {
    type Err = SetError;

    fn from_str(text: &str) -> Result<Self, SetError> {
        match text.split_once('=') {
            None => Err(SetError::NoValue { text: text.to_owned() }),
            Some((key, _)) if key.trim().is_empty() => Err(SetError::NoKey { text: text.to_owned() }),
            Some((key, value)) => Ok(Self::new(key.trim(), value)),
        }
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// Makes all changes; gives back what is wrong with those that cannot be made.
pub(super) fn apply(tree: &mut Node, sets: &[Set]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let (profiles, others): (Vec<&Set>, Vec<&Set>) = sets.iter().partition(|set| set.key == PROFILE);
    for set in profiles {
        problems.extend(apply_profile(tree, set));
    }
    for set in others {
        let place = Place { line: None, column: None, origin: Origin::Set(shown(set)) };
        problems.extend(change(tree, &set.key, &set.value, &place).err().map(|problem| *problem));
    }
    problems
}

/// The change as it is shown in errors, without secrets.
fn shown(set: &Set) -> Arc<str> {
    let secret = mask::looks_secret(&set.key);
    let text = set.to_string();
    if secret { format!("{}={}", set.key, mask::MASK).into() } else { mask::mask_text(&text).into() }
}

fn apply_profile(tree: &mut Node, set: &Set) -> Vec<Problem> {
    let name = set.value.trim();
    let profiles = tree.get("profiles").map(Node::entries).unwrap_or_default();
    let Some(profile) = profiles.iter().find(|entry| entry.key == name).map(|entry| entry.node.clone()) else {
        let guess = guess(name, profiles.iter().map(|entry| entry.key.as_str()));
        let kind = ProblemKind::NoSuchEntry { what: "profile", name: name.to_owned(), guess };
        let place = Place { line: None, column: None, origin: Origin::Set(shown(set)) };
        return vec![Problem { path: KeyPath::of(&["profiles"]), place: Some(place), kind }];
    };
    change_by_profile(tree, name, &profile)
}

/// Makes the changes of one profile; gives back what is wrong with those that cannot be made.
pub(super) fn change_by_profile(tree: &mut Node, name: &str, profile: &Node) -> Vec<Problem> {
    let origin = Origin::Profile(name.into());
    let mut problems = Vec::new();
    for entry in profile.entries() {
        let place = Place { origin: origin.clone(), ..entry.place.clone() };
        // Anything but a scalar is told of when the profile itself is read as a part of the study.
        let Kind::Scalar { text, value } = &entry.node.kind else { continue };
        let result = match (entry.key.as_str(), value) {
            (PROFILE, _) => Err(Problem::boxed(KeyPath::default(), Some(place), ProblemKind::ProfileInProfile)),
            (_, Scalar::Null) => continue,
            (key, _) => change(tree, key, text, &place),
        };
        problems.extend(result.err().map(|problem| *problem));
    }
    problems
}

/// Puts a value at a path; keys that are missing on the way are made.
fn change(tree: &mut Node, key: &str, value: &str, place: &Place) -> Result<(), Box<Problem>> {
    let path = path_of(tree, key).map_err(|kind| Problem::boxed(KeyPath::default(), Some(place.clone()), kind))?;
    let fail = |path: KeyPath, kind| Problem::boxed(path, Some(place.clone()), kind);
    let new = scalar(value, place).map_err(|kind| fail(path.clone(), kind))?;
    let mut node = tree;
    let mut walked = KeyPath::default();
    for step in path.steps() {
        let Step::Key(name) = step else { continue };
        // An item of a list is a key that is a number.
        let name = name.as_str();
        if node.is_null() {
            *node = Node::no_keys(place.clone());
        }
        let found = node.to_string();
        node = match &mut node.kind {
            Kind::List(items) => {
                let length = items.len();
                let item = name.parse::<usize>().ok().and_then(|position| items.get_mut(position));
                item.ok_or_else(|| fail(walked.clone(), ProblemKind::NoSuchItem { item: name.to_owned(), length }))?
            }
            Kind::Keys(entries) => {
                let position = match entries.iter().position(|entry| entry.key == name) {
                    Some(position) => position,
                    None => {
                        declared_elsewhere(&walked, name, entries).map_err(|kind| fail(walked.clone(), kind))?;
                        let node = Node::no_keys(place.clone());
                        entries.push(Entry { key: name.to_owned(), place: place.clone(), node });
                        entries.len() - 1
                    }
                };
                &mut entries[position].node
            }
            Kind::Scalar { .. } => {
                let kind = ProblemKind::NotAContainer { found, step: name.to_owned() };
                return Err(fail(walked, kind));
            }
        };
        walked = walked.key(name);
    }
    *node = new;
    Ok(())
}

/// Where a key leads: into the study, or to the variable of this name.
fn path_of(tree: &Node, key: &str) -> Result<KeyPath, ProblemKind> {
    let steps: Vec<&str> = key.split('.').collect();
    let top = schema::top_level_keys();
    if top.contains(&steps[0]) && steps.iter().all(|step| !step.is_empty()) {
        return Ok(KeyPath::of(&steps));
    }
    let variables = tree.get("variables").map(Node::entries).unwrap_or_default();
    if variables.iter().any(|entry| entry.key == key) {
        return Ok(KeyPath::of(&["variables", key]));
    }
    // `rate` is short for nothing, but `load.rate` is surely meant.
    let known = schema::dotted_keys();
    let by_end = known.iter().find(|known| known.rsplit('.').next() == Some(key));
    let guess = match by_end {
        Some(near) => Guess::Near(near.clone()),
        None => {
            let variables = variables.iter().map(|entry| entry.key.as_str());
            let nearest = guess(key, known.iter().map(String::as_str).chain(variables));
            match (nearest, guess(steps[0], top.iter().copied())) {
                (Guess::Near(near), _) => Guess::Near(near),
                (_, Guess::Near(first)) => Guess::Near([&[first.as_str()], &steps[1..]].concat().join(".")),
                (_, known) => known,
            }
        }
    };
    Err(ProblemKind::NoSuchKey { key: key.to_owned(), guess })
}

/// Services, variants and profiles are declared in the file: a new name here is a slip.
fn declared_elsewhere(walked: &KeyPath, name: &str, entries: &[Entry]) -> Result<(), ProblemKind> {
    let what = match walked.to_string().as_str() {
        "services" => "service",
        "variants" => "variant",
        "profiles" => "profile",
        _ => return Ok(()),
    };
    let guess = guess(name, entries.iter().map(|entry| entry.key.as_str()));
    Err(ProblemKind::NoSuchEntry { what, name: name.to_owned(), guess })
}

/// The value as a node: a list or keys if it is written as such, else one scalar, however odd its characters.
fn scalar(value: &str, place: &Place) -> Result<Node, ProblemKind> {
    let value = value.trim();
    let is_collection = value.starts_with(['[', '{']) && !value.starts_with("{{");
    let parsed = yaml::parse(&format!("value: {value}")).map(|tree| tree.get("value").cloned());
    let kind = match parsed {
        Err(problem) if is_collection => {
            let message = match problem.kind {
                ProblemKind::Syntax { message, .. } => message,
                other => other.to_string(),
            };
            return Err(ProblemKind::SetValue { message });
        }
        Ok(Some(node)) if is_collection => node.kind,
        // `null` and `~` take a value away; an empty text is an empty text.
        Ok(Some(Node { kind: Kind::Scalar { text, value: scalar }, .. }))
            if scalar != Scalar::Text && text == value =>
        {
            Kind::Scalar { text, value: if value.is_empty() { Scalar::Text } else { scalar } }
        }
        _ => Kind::Scalar { text: value.to_owned(), value: Scalar::Text },
    };
    let mut node = Node { kind, place: place.clone() };
    node.replace_places(place);
    Ok(node)
}
