//! A study back to YAML: with every default written out (the resolved copy in the run folder), or with none (what
//! `unladen compare` prints for editing). Both read back as the same study.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::spec::Study;
use super::tree::{Kind, Node, Scalar};
use super::{typed, yaml};

/// The study with every default written out; reading it back gives the same study. Secrets are *not* masked here: pass
/// [`super::mask::masked`] for everything that is kept or shown.
#[must_use]
pub fn resolved_yaml(study: &Study) -> String {
    to_yaml(study)
}

/// The study without what is said by default anyway; reading it back gives the same study.
#[must_use]
pub fn concise_yaml(study: &Study) -> String {
    let resolved = resolved_yaml(study);
    match yaml::parse(&resolved) {
        Ok(mut tree) => {
            drop_defaults(&mut tree, &[], study);
            to_yaml(&tree)
        }
        Err(_) => resolved,
    }
}

fn to_yaml(value: &impl Serialize) -> String {
    let options = serde_saphyr::ser_options! { compact_list_indent: false, folded_wrap_chars: 1000 };
    // A study is texts, numbers and names: nothing in it is beyond YAML. Should that ever change, the file says so.
    let text = serde_saphyr::to_string_with_options(value, options)
        .unwrap_or_else(|error| format!("# not written: {error}\n"));
    // Quoted for readers of YAML 1.1, to whom the bare word is `true`. As a key it stands at the very left; texts are indented.
    text.replacen("\n\"on\":", "\non:", 1)
}

/// Takes out every key without which the tree is still the same study, from the node at `at` (entry positions) down.
fn drop_defaults(tree: &mut Node, at: &[usize], study: &Study) {
    let count = entries_at(tree, at).map_or(0, |entries| entries.len());
    for position in (0..count).rev() {
        let Some(entry) = entries_at(tree, at).map(|entries| entries.remove(position)) else { return };
        if typed::study(tree).as_ref() == Ok(study) {
            continue;
        }
        if let Some(entries) = entries_at(tree, at) {
            entries.insert(position, entry);
        }
        drop_defaults(tree, &[at, &[position]].concat(), study);
    }
}

/// The entries of the node that these positions lead to.
fn entries_at<'a>(tree: &'a mut Node, at: &[usize]) -> Option<&'a mut Vec<super::tree::Entry>> {
    let mut node = tree;
    for position in at {
        let Kind::Keys(entries) = &mut node.kind else { return None };
        node = &mut entries.get_mut(*position)?.node;
    }
    match &mut node.kind {
        Kind::Keys(entries) => Some(entries),
        _ => None,
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.kind {
            Kind::Scalar { text, value } => match value {
                Scalar::Null => serializer.serialize_unit(),
                Scalar::Bool(value) => serializer.serialize_bool(*value),
                Scalar::Whole(number) => match (i64::try_from(*number), u64::try_from(*number)) {
                    (Ok(number), _) => serializer.serialize_i64(number),
                    (_, Ok(number)) => serializer.serialize_u64(number),
                    _ => serializer.serialize_f64(*number as f64),
                },
                // 500 rather than 500.0.
                Scalar::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
                    serializer.serialize_i64(*number as i64)
                }
                Scalar::Float(number) => serializer.serialize_f64(*number),
                Scalar::Text => serializer.serialize_str(text),
            },
            Kind::List(items) => serializer.collect_seq(items),
            Kind::Keys(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for entry in entries {
                    map.serialize_entry(&entry.key, &entry.node)?;
                }
                map.end()
            }
        }
    }
}
