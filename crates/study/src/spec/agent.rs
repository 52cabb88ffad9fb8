//! The agent that a service runs under, by the name of its preset ([`crate::agents`]).

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An agent: `otel-python`, `{otel-java: agents/otel.jar}` or `{otel-java: {path: agents/otel.jar, spans: all}}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Name of its preset.
    pub name: String,
    /// Where it is; relative to the study file.
    pub path: Option<String>,
    /// Which spans it is to make.
    pub spans: Spans,
}

/// Which spans an agent is to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spans {
    /// Those that it makes as its maker ships it.
    #[default]
    Shipped,
    /// Those of every request, none sampled out, shortened or joined.
    All,
}

impl Agent {
    /// As it is shipped.
    #[must_use]
    pub fn new(name: &str, path: Option<&str>) -> Self {
        Self { name: name.to_owned(), path: path.map(str::to_owned), spans: Spans::default() }
    }
}

/// What is said of an agent by keys.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Keys {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    spans: Spans,
}

/// What stands behind an agent's name.
struct Said(Keys);

impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Said;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the path of the agent, or the keys `path` and `spans`")
            }
            fn visit_unit<E: de::Error>(self) -> Result<Said, E> {
                Ok(Said(Keys::default()))
            }
            fn visit_str<E: de::Error>(self, path: &str) -> Result<Said, E> {
                Ok(Said(Keys { path: Some(path.to_owned()), ..Keys::default() }))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, entries: A) -> Result<Said, A::Error> {
                Keys::deserialize(de::value::MapAccessDeserializer::new(entries)).map(Said)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

// By hand, as `Command`.
impl<'de> Deserialize<'de> for Agent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Agent;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of an agent such as `otel-python`, or one with its path such as `{otel-java: agents/otel.jar}`")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<Agent, E> {
                Ok(Agent::new(name, None))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, mut entries: A) -> Result<Agent, A::Error> {
                let one = || de::Error::custom("a service runs under one agent; write `agent: {otel-java: PATH}`");
                let (name, Said(Keys { path, spans })) = entries.next_entry::<String, Said>()?.ok_or_else(one)?;
                if entries.next_key::<String>()?.is_some() {
                    return Err(one());
                }
                Ok(Agent { name, path, spans })
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// As short as it can be said.
impl Serialize for Agent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (&self.path, self.spans) {
            (None, Spans::Shipped) => serializer.serialize_str(&self.name),
            (Some(path), Spans::Shipped) => serializer.collect_map([(&self.name, path)]),
            (path, spans) => serializer.collect_map([(&self.name, Keys { path: path.clone(), spans })]),
        }
    }
}

impl JsonSchema for Agent {
    fn schema_name() -> Cow<'static, str> {
        "Agent".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An agent by the name of its preset, with its path where it has one.",
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "minProperties": 1,
                    "maxProperties": 1,
                    "additionalProperties": {
                        "anyOf": [
                            {"type": "string"},
                            {
                                "type": "object",
                                "properties": {
                                    "path": {"description": "Where it is; relative to the study file.", "type": ["string", "null"]},
                                    "spans": {"description": "Which spans it is to make.", "enum": ["shipped", "all"]},
                                },
                                "additionalProperties": false,
                            },
                        ],
                    },
                },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_agent_is_written_as_short_as_it_can_be() {
        let all = Agent { spans: Spans::All, ..Agent::new("x", Some("p")) };
        for (agent, written) in [
            (Agent::new("x", None), json!("x")),
            (Agent::new("x", Some("p")), json!({"x": "p"})),
            (all, json!({"x": {"path": "p", "spans": "all"}})),
            (Agent { spans: Spans::All, ..Agent::new("x", None) }, json!({"x": {"spans": "all"}})),
        ] {
            assert_eq!(serde_json::to_value(&agent).expect("JSON"), written);
            assert_eq!(serde_json::from_value::<Agent>(written).expect("an agent"), agent);
        }
        assert_eq!(serde_json::from_value::<Agent>(json!({"x": null})).expect("an agent"), Agent::new("x", None));
    }

    #[test]
    fn a_service_has_one_agent() {
        let refused = |written: Value| serde_json::from_value::<Agent>(written).expect_err("none").to_string();
        assert!(refused(json!({"x": "p", "y": "q"})).starts_with("a service runs under one agent"));
        assert!(refused(json!({})).starts_with("a service runs under one agent"));
        assert!(refused(json!({"x": {"paht": "p"}})).contains("unknown field `paht`"));
        assert!(refused(json!(["x"])).contains("the name of an agent such as"));
    }
}
