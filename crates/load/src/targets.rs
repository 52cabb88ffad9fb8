//! Vegeta's target files (its `http` format), so that they can be used as they are: `GET url`, header lines, `@file` for a
//! body, an empty line between targets. No I/O: bodies are named, not read.

use std::path::Path;

use crate::plan::Request;
use crate::target::Target;

/// Targets of a file: they share one server.
#[derive(Debug, Clone, PartialEq)]
pub struct Targets {
    /// Url of the first one, for [`crate::plan::Plan::url`].
    pub url: String,
    /// One for each target, named `METHOD path`, all of the same weight. Vegeta takes them in turns; here each has its share
    /// by chance, which does not depend on how many processes send.
    pub requests: Vec<Request>,
}

/// Why a text is no target file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line} of the targets: {reason}. Write `GET http://host:port/path`, header lines below it, `@file` for a body, and an empty line between targets"
)]
pub struct TargetsError {
    line: usize,
    reason: String,
}

/// Reads a target file. Bodies are relative to `folder`.
///
/// # Errors
/// [`TargetsError`] with the line that is wrong.
pub fn parse(text: &str, folder: &Path) -> Result<Targets, TargetsError> {
    let mut url: Option<(String, Target)> = None;
    let mut requests: Vec<Request> = Vec::new();
    let mut within = false;
    for (line, number) in text.lines().map(str::trim).zip(1..) {
        let bad = |reason: &str| TargetsError { line: number, reason: reason.to_owned() };
        if line.is_empty() {
            within = false;
        } else if line.starts_with('#') {
        } else if let (true, Some(file)) = (within, line.strip_prefix('@')) {
            let request = requests.last_mut().ok_or_else(|| bad("a body before any target"))?;
            request.body_file = Some(folder.join(file));
        } else if let (true, false, Some((name, value))) = (within, is_target(line), line.split_once(':')) {
            let request = requests.last_mut().ok_or_else(|| bad("a header before any target"))?;
            request.headers.push((name.trim().to_owned(), value.trim().to_owned()));
        } else {
            let (method, address) = line.split_once(' ').ok_or_else(|| bad("neither target, header nor body"))?;
            let address = address.trim();
            let target = Target::parse(address).map_err(|error| bad(&error.to_string()))?;
            if let Some((first, known)) = &url {
                let scheme = |url: &str| url.split("://").next().map(str::to_ascii_lowercase);
                if known.authority != target.authority || scheme(first) != scheme(address) {
                    return Err(bad("another server than the first target's; a load has one"));
                }
            }
            let (path, name) = (target.path.clone(), format!("{method} {}", target.path));
            requests.push(Request { method: method.to_owned(), path: Some(path), ..Request::new(name) });
            url.get_or_insert_with(|| (address.to_owned(), target));
            within = true;
        }
    }
    let (url, _) = url.ok_or_else(|| TargetsError { line: 1, reason: "there is no target".to_owned() })?;
    Ok(Targets { url, requests })
}

/// Whether a line looks like `METHOD url`: a header's name has no space before its colon.
fn is_target(line: &str) -> bool {
    line.split_once(' ').is_some_and(|(method, address)| {
        !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase()) && address.contains("://")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_several_targets() {
        let text = "# two\nGET http://h:1/a?b=c\nX-Id: 1\nReferer: http://x/\n\nPOST http://h:1/p\nContent-Type: text/plain\n@bodies/p.txt\nHEAD http://h:1/z\n";
        let found = parse(text, Path::new("/in")).expect("good");
        assert_eq!(found.url, "http://h:1/a?b=c");
        let names: Vec<&str> = found.requests.iter().map(|request| request.name.as_str()).collect();
        assert_eq!(names, ["GET /a?b=c", "POST /p", "HEAD /z"]);
        assert_eq!(found.requests[0].headers.len(), 2);
        assert_eq!(found.requests[1].body_file.as_deref(), Some(Path::new("/in/bodies/p.txt")));
        assert_eq!(found.requests[2].method, "HEAD");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, line) in [
            ("", 1),
            ("GET", 1),
            ("X-Id: 1", 1),
            ("GET http://h/\n\n@body", 3),
            ("GET ftp://h/", 1),
            ("GET http://h/\n\nGET http://other/", 3),
        ] {
            let error = parse(text, Path::new("")).expect_err(text);
            assert_eq!(error.line, line, "{error}");
        }
    }
}
