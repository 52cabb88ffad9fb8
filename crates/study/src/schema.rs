//! The JSON Schema of a study, from its types: what `unladen schema` prints, editors check with, and `docs/reference/study.md`
//! is made of.
//!
//! It accepts what the reader accepts (numbers where a text is wanted, nothing where keys are wanted). It cannot know
//! what only the checks do, such as that a service of some name exists.

use std::sync::OnceLock;

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Map, Value, json};

use super::spec::Study;

/// The schema, draft 2020-12.
#[must_use]
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().with_transform(Lenient).into_generator();
    let mut schema = generator.into_root_schema_for::<Study>().to_value();
    let mut root = Map::new();
    // What a reader wants to know first stands first.
    for (key, value) in
        [("$schema", Value::Null), ("title", json!("A study for unladen")), ("description", Value::Null)]
    {
        root.insert(key.to_owned(), value);
    }
    if let Some(made) = schema.as_object_mut() {
        made.remove("title");
        root.extend(std::mem::take(made));
    }
    root.into()
}

/// The schema as it is committed and printed.
#[must_use]
pub fn schema_text() -> String {
    format!("{:#}\n", schema())
}

/// Keys at the top of a study.
pub(super) fn top_level_keys() -> &'static [&'static str] {
    static KEYS: OnceLock<Vec<&'static str>> = OnceLock::new();
    KEYS.get_or_init(|| {
        let mut keys: Vec<&str> = dotted_keys().iter().map(|key| key.split('.').next().unwrap_or(key)).collect();
        keys.dedup();
        keys
    })
}

/// Keys without which there is no study.
pub(super) fn required_keys() -> impl Iterator<Item = &'static str> {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    let required = SCHEMA.get_or_init(schema).get("required").and_then(Value::as_array);
    required.into_iter().flatten().filter_map(Value::as_str)
}

/// Every key that stands at the same path in all studies: `window`, `load.rate`, `drain.limit`.
pub(super) fn dotted_keys() -> &'static [String] {
    static KEYS: OnceLock<Vec<String>> = OnceLock::new();
    KEYS.get_or_init(|| {
        let schema = schema();
        let mut keys = Vec::new();
        collect_keys(&schema, &schema, "", &mut keys);
        keys
    })
}

fn collect_keys(root: &Value, schema: &Value, prefix: &str, keys: &mut Vec<String>) {
    for (name, property) in properties(schema) {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let target = target(root, property);
        if properties(target).is_empty() {
            keys.push(key);
        } else {
            collect_keys(root, target, &key, keys);
        }
    }
}

/// The properties of an object's schema.
pub(super) fn properties(schema: &Value) -> &Map<String, Value> {
    static NONE: OnceLock<Map<String, Value>> = OnceLock::new();
    schema.get("properties").and_then(Value::as_object).unwrap_or_else(|| NONE.get_or_init(Map::new))
}

/// Follows the `$ref` of a schema, also of one that is optional (`anyOf` with `null`).
pub(super) fn target<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let reference = reference(schema).and_then(|name| root.get("$defs")?.get(name));
    reference.unwrap_or(schema)
}

/// Name of the definition that a schema refers to.
pub(super) fn reference(schema: &Value) -> Option<&str> {
    let text = schema.get("$ref").and_then(Value::as_str).or_else(|| {
        let alternatives = schema.get("anyOf")?.as_array()?;
        alternatives.iter().find_map(|alternative| alternative.get("$ref")?.as_str())
    })?;
    text.strip_prefix("#/$defs/")
}

/// Makes the schema as lenient as the reader.
#[derive(Debug, Clone)]
struct Lenient;

impl Transform for Lenient {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else { return };
        let has_required = object.contains_key("required");
        let is_word = object.contains_key("enum") || object.contains_key("const") || object.contains_key("pattern");
        let also: &[&str] = match object.get("type").and_then(first_type) {
            // `PORT: 8080` and `DEBUG: true` are texts as written.
            Some("string") if !is_word => &["number", "boolean"],
            // `baseline:` and `args:` with nothing after them.
            Some("object") if !has_required => &["null"],
            Some("array") => &["null"],
            _ => return,
        };
        let mut types: Vec<Value> = match object.remove("type") {
            Some(Value::Array(types)) => types,
            Some(single) => vec![single],
            None => Vec::new(),
        };
        for name in also {
            if !types.iter().any(|known| known == name) {
                types.push(json!(name));
            }
        }
        object.insert("type".to_owned(), Value::Array(types));
    }
}

fn first_type(types: &Value) -> Option<&str> {
    match types {
        Value::String(name) => Some(name),
        Value::Array(names) => names.first()?.as_str(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_their_path() {
        let keys = dotted_keys();
        for key in
            ["window", "load.rate", "load.check.status", "drain.limit", "sink.attributes", "services", "profiles"]
        {
            assert!(keys.iter().any(|known| known == key), "{key} in {keys:?}");
        }
        assert!(top_level_keys().contains(&"load") && !top_level_keys().contains(&"rate"));
    }
}
