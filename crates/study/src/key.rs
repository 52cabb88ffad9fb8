//! Where something stands within a study: `variants.otel.services.consumer.env`, `services.app.needs[1]`.
//!
//! Every problem carries one, so that it can be found without counting lines; `--set` takes the same notation.

use std::fmt;

/// Keys and list positions from the top of the document.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub struct KeyPath(Vec<Step>);

/// One step down.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Step {
    /// Into a key's value.
    Key(String),
    /// Into a list, from 0.
    Item(usize),
}

impl KeyPath {
    /// The path through these keys.
    pub(super) fn of(keys: &[&str]) -> Self {
        Self(keys.iter().map(|key| Step::Key((*key).to_owned())).collect())
    }

    /// This path and one key further.
    pub(super) fn key(&self, key: &str) -> Self {
        self.step(Step::Key(key.to_owned()))
    }

    /// This path and one list position further.
    pub(super) fn item(&self, position: usize) -> Self {
        self.step(Step::Item(position))
    }

    /// This path and one step further.
    pub(super) fn step(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// The steps, from the top.
    pub(super) fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Whether it is the document itself.
    pub(super) fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if index == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Item(position) => write!(f, "[{position}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_like_the_document() {
        let path = KeyPath::of(&["services", "app", "needs"]).item(1);
        assert_eq!(path.to_string(), "services.app.needs[1]");
        assert_eq!(path.key("x").to_string(), "services.app.needs[1].x");
        assert_eq!(KeyPath::default().to_string(), "");
        assert!(KeyPath::default().is_root() && !path.is_root());
    }
}
