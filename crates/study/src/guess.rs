//! "Did you mean …?": the nearest known name for one that isn't.

use std::fmt;

/// The end of a sentence about an unknown name: the nearest known one, else all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Guess {
    /// Near enough to be meant.
    Near(String),
    /// Right, but under this key.
    Under(String),
    /// None is near; these are known.
    Known(Vec<String>),
}

/// More known names than this aren't listed.
const LISTED: usize = 16;

/// The guess for `given` among `known`.
pub(super) fn guess<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Guess {
    let known: Vec<&str> = known.into_iter().collect();
    let lower = given.to_lowercase();
    let distance = |name: &str| {
        let name = name.to_lowercase();
        let typed = strsim::osa_distance(&lower, &name);
        // A name that was begun or lengthened (`env` for `environment`) is as good as one slip.
        let begun = name.len().min(lower.len()) >= 3
            && (name.starts_with(&lower) || lower.starts_with(&name) || name.ends_with(&lower));
        if begun { typed.min(1) } else { typed }
    };
    let near = known.iter().map(|name| (distance(name), *name)).min_by_key(|(distance, _)| *distance);
    match near {
        Some((distance, name)) if distance <= 1 + given.chars().count() / 4 && distance < given.chars().count() => {
            Guess::Near(name.to_owned())
        }
        _ => Guess::Known(known.into_iter().map(str::to_owned).collect()),
    }
}

impl fmt::Display for Guess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Near(name) => write!(f, ", did you mean `{name}`?"),
            Self::Under(parent) => write!(f, "; it belongs under `{parent}`"),
            Self::Known(known) if known.is_empty() => f.write_str(": there are none"),
            Self::Known(known) => {
                f.write_str(if known.len() == 1 { "; the only one is " } else { "; known are " })?;
                for (index, name) in known.iter().take(LISTED).enumerate() {
                    let separator = match index {
                        0 => "",
                        _ if index + 1 == known.len() => " and ",
                        _ => ", ",
                    };
                    write!(f, "{separator}`{name}`")?;
                }
                if known.len() > LISTED { write!(f, " and {} more", known.len() - LISTED) } else { Ok(()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_near_and_other_words_are_not() {
        let known = ["command", "args", "env", "cwd", "replicas"];
        for (given, meant) in
            [("comand", "command"), ("arg", "args"), ("environment", "env"), ("ENV", "env"), ("replica", "replicas")]
        {
            assert_eq!(guess(given, known), Guess::Near(meant.to_owned()), "{given}");
        }
        for given in ["image", "x", "volumes", "e"] {
            assert!(matches!(guess(given, known), Guess::Known(_)), "{given}");
        }
    }

    #[test]
    fn the_end_of_the_sentence() {
        assert_eq!(guess("comand", ["command"]).to_string(), ", did you mean `command`?");
        assert_eq!(guess("zzz", ["a", "b", "c"]).to_string(), "; known are `a`, `b` and `c`");
        assert_eq!(guess("zzz", ["a"]).to_string(), "; the only one is `a`");
        assert_eq!(guess("zzz", []).to_string(), ": there are none");
        let many: Vec<String> = (10..30).map(|i| format!("name-{i}")).collect();
        assert!(guess("zzz", many.iter().map(String::as_str)).to_string().ends_with("`name-25` and 4 more"));
    }
}
