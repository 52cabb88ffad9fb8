//! Imported objects as the text of their manifests. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::imported::Manifest;
use super::manifests::parse_text;

/// Name of the file of an object.
pub(super) fn file(kind: &str, name: &str) -> String {
    format!("{}-{name}.yaml", kind.to_lowercase())
}

/// The file of an object.
pub(super) fn manifest(kind: &str, name: &str, object: &Value) -> Manifest {
    let text = yaml(object);
    Manifest { file: file(kind, name), object: format!("{kind} {name}"), text, is_secret: kind == "Secret" }
}

/// An object as YAML that reads back as the same object.
fn yaml(object: &Value) -> String {
    let object = sorted(object);
    let options = serde_saphyr::ser_options! { compact_list_indent: true, folded_wrap_chars: 1000 };
    let written = serde_saphyr::to_string_with_options(&object, options);
    let is_same = |text: &String| parse_text(text).is_ok_and(|read| read == [object.clone()]);
    // JSON is YAML: for texts that the one does not write as the other reads them.
    written.ok().filter(is_same).unwrap_or_else(|| format!("{object:#}\n"))
}

/// By the alphabet, as `kubectl` shows objects.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(entries) => {
            let entries: BTreeMap<&String, Value> = entries.iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(entries.into_iter().map(|(key, value)| (key.clone(), value)).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => json!(other),
    }
}
