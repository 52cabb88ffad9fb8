//! An attribute as every decoder hands it on: a key and a value, shown to a visitor.

/// The value of an attribute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// As it came: not necessarily UTF-8.
    Text(&'a [u8]),
    /// A whole number.
    Whole(i64),
    /// Any other number.
    Real(f64),
    /// True or false.
    Truth(bool),
    /// Lists, maps, bytes and nothing, as JSON text.
    Json(&'a [u8]),
}

impl Value<'_> {
    /// A whole number, whether it comes as one, as text or with a fraction that is cut off.
    pub fn whole(&self) -> Option<i64> {
        match *self {
            Value::Whole(number) => Some(number),
            Value::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            Value::Real(number) if number.is_finite() => Some(number as i64),
            _ => None,
        }
    }

    /// A whole number of things; 0 if it is none, or negative.
    pub fn count(&self) -> u64 {
        self.whole().and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
    }

    /// Whether it is JSON's `null`, which some senders write for what they do not know.
    pub fn is_null(&self) -> bool {
        *self == Self::Json(b"null")
    }

    /// A number.
    pub fn real(&self) -> Option<f64> {
        match *self {
            Value::Real(number) => Some(number),
            _ => self.whole().map(|number| number as f64),
        }
    }
}

/// Who looks at attributes.
pub trait Visitor {
    /// Takes an attribute as it is encoded, which is not empty, if it knows what that means; most say the same as in the
    /// span before.
    #[inline]
    fn takes(&mut self, _encoded: &[u8]) -> bool {
        false
    }

    /// Takes an attribute.
    fn attribute(&mut self, encoded: &[u8], key: &[u8], value: Value<'_>);
}

impl<F: FnMut(&[u8], Value<'_>)> Visitor for F {
    #[inline]
    fn attribute(&mut self, _: &[u8], key: &[u8], value: Value<'_>) {
        self(key, value);
    }
}
