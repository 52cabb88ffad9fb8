//! One text, or several: where a list of one would only be in the way.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

/// One text, or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Texts {
    /// One.
    One(String),
    /// Several, or none.
    Several(Vec<String>),
}

impl Texts {
    /// All of them, in their order.
    #[must_use]
    pub fn all(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Several(texts) => texts,
        }
    }
}

impl Default for Texts {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

// By hand, because an untagged enum can only say "data did not match any variant".
impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Texts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or a list of texts")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Texts, E> {
                Ok(Texts::One(text.to_owned()))
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Texts, E> {
                Ok(Texts::One(value.to_string()))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Texts, E> {
                Ok(Texts::One(value.to_string()))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Texts, E> {
                Ok(Texts::One(value.to_string()))
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Texts, E> {
                Ok(Texts::One(value.to_string()))
            }
            fn visit_unit<E: de::Error>(self) -> Result<Texts, E> {
                Ok(Texts::default())
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<Texts, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = items.next_element()? {
                    texts.push(text);
                }
                Ok(Texts::Several(texts))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_read_like_a_list_of_one() {
        let all = |json: serde_json::Value| serde_json::from_value::<Texts>(json).expect("texts").all().to_vec();
        assert_eq!(all(serde_json::json!("loaded")), ["loaded"]);
        assert_eq!(all(serde_json::json!(["loaded", "started"])), ["loaded", "started"]);
        assert_eq!(all(serde_json::json!(200)), ["200"]);
        assert_eq!(all(serde_json::json!(null)), [""; 0]);
        let error = serde_json::from_value::<Texts>(serde_json::json!({"a": 1})).expect_err("keys").to_string();
        assert!(error.contains("a text, or a list of texts"), "{error}");
    }
}
