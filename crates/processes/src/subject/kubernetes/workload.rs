//! What a service is in the manifests: `deployment/shop`.

use std::fmt;
use std::str::FromStr;

/// A kind of workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Pods that are all alike.
    Deployment,
    /// Pods with names and volumes of their own.
    StatefulSet,
    /// A pod on every node.
    DaemonSet,
}

/// A workload of the manifests, written `deployment/shop`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Workload {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Deployment, Self::StatefulSet, Self::DaemonSet];

    /// As manifests have it: `Deployment`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
        }
    }

    /// By the name that manifests have.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// As a study has it: `deployment`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Deployment => "deployment",
            Self::StatefulSet => "statefulset",
            Self::DaemonSet => "daemonset",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let example = "write `deployment/NAME`, `statefulset/NAME` or `daemonset/NAME`";
        let (kind, name) = text.split_once('/').ok_or_else(|| format!("`{text}` names no workload: {example}"))?;
        let known = |known: &Kind| known.word() == kind.to_ascii_lowercase();
        let kind = Kind::ALL
            .into_iter()
            .find(known)
            .ok_or_else(|| format!("`{text}`: `{kind}` is no kind of workload that unladen starts: {example}"))?;
        let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
        if name.is_empty() || !name.chars().all(is_valid) {
            return Err(format!("`{text}`: `{name}` is no name of Kubernetes (small letters, digits, `-`, `.`)"));
        }
        Ok(Self { kind, name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_a_kind_and_a_name() {
        for kind in Kind::ALL {
            let text = format!("{kind}/shop-1.a");
            let workload: Workload = text.parse().expect("a workload");
            assert_eq!((workload.kind, workload.name.as_str()), (kind, "shop-1.a"));
            assert_eq!(workload.to_string(), text);
            assert_eq!(Kind::of(kind.name()), Some(kind));
        }
        assert_eq!("Deployment/shop".parse::<Workload>().map(|it| it.kind), Ok(Kind::Deployment));
        for wrong in ["shop", "pod/shop", "deployment/", "deployment/Shop", "deployment/a/b", ""] {
            let error = wrong.parse::<Workload>().expect_err(wrong);
            assert!(error.contains(&format!("`{wrong}`")), "{error}");
        }
    }
}
