//! One request of a plan, compiled: what of it is fixed, what is put in for every iteration, and what its answer is looked at for.

use std::collections::HashMap;

use super::answer::{CompiledCapture, CompiledTest};
use super::text::Text;
use crate::error::LoadError;
use crate::http1::request::{Template, is_token};
use crate::pace::nanoseconds;
use crate::plan::{Check, Plan, Request};
use crate::target::Target;

/// A request of the plan, compiled.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) method: String,
    /// What a good answer looks like.
    pub(crate) check: Check,
    /// Path and query.
    pub(super) path: Text,
    /// Whether the path is a value, which may be a whole URL.
    pub(super) path_is_value: bool,
    /// Header lines.
    pub(super) head: Text,
    /// The same without what is about the body.
    pub(super) bare_head: Text,
    pub(super) body: Text,
    /// Whether its length is sent.
    pub(super) has_body: bool,
    pub(super) tests: Vec<CompiledTest>,
    /// Number of the first test among all of the script's.
    pub(super) first_test: usize,
    /// Kinds of good answers.
    pub(super) kinds: Vec<CompiledTest>,
    /// Number of the first kind among all of the script's.
    pub(super) first_kind: usize,
    /// Where captures go among the script's names.
    pub(super) captures: Vec<(usize, CompiledCapture)>,
    /// Test, pause in nanoseconds, tries.
    pub(super) until: Option<(CompiledTest, u64, u32)>,
    /// Whether redirects are followed.
    pub(super) follows: bool,
}

impl Step {
    /// Whether its answers are looked at beyond status, length and hash.
    pub(crate) fn looks(&self) -> bool {
        self.follows
            || !self.tests.is_empty()
            || !self.kinds.is_empty()
            || !self.captures.is_empty()
            || self.until.is_some()
    }
}

/// Compiles one request. Its captures get their numbers later.
pub(super) fn compile(
    plan: &Plan,
    request: &Request,
    target: &Target,
    numbers: &HashMap<&str, usize>,
    (first_test, first_kind): (usize, usize),
) -> Result<Step, LoadError> {
    let refuse = |value: String, remedy| LoadError::Plan { field: "requests", value, remedy };
    let parse = |text: &[u8]| {
        Text::parse(text, |name| numbers.get(name).copied()).map_err(|name| {
            refuse(format!("{}: {{{{{name}}}}}", request.name), "no value and no earlier capture has this name")
        })
    };
    let path = request.path.as_deref().unwrap_or(&target.path);
    let path_is_value = path.starts_with("{{");
    if !(path.starts_with('/') || path_is_value) || path.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
        let remedy = "a path begins with a slash (or with a value such as {{location}}) and has no spaces";
        return Err(refuse(format!("{}: {path:?}", request.name), remedy));
    }
    let body = match (&request.body, &request.body_file) {
        (Some(_), Some(_)) => return Err(refuse(request.name.clone(), "write body or body_file, not both")),
        (Some(text), None) => parse(text.as_bytes())?,
        (None, Some(file)) => Text::fixed(
            std::fs::read(file).map_err(|error| LoadError::Read { path: file.clone(), message: error.to_string() })?,
        ),
        (None, None) => Text::default(),
    };
    // The template's rules for methods and headers hold here too: it is made for its errors and its text.
    let own = |name: &str| request.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    let mut headers: Vec<_> = plan.headers.iter().filter(|(name, _)| !own(name)).cloned().collect();
    headers.extend(request.headers.iter().cloned());
    if let Some((name, _)) = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length")) {
        return Err(LoadError::Header { name: name.clone(), reason: "it is set by the body; leave it out" });
    }
    let plain = Plan { method: request.method.clone(), headers, body: None, ..plan.clone() };
    let text = Template::new(&plain, target)?;
    let text = text.head_without_trace();
    if !request.method.bytes().all(is_token) {
        return Err(refuse(request.method.clone(), "write a method such as GET or POST"));
    }
    let head_start = text.windows(2).position(|two| two == b"\r\n").map_or(text.len(), |at| at + 2);
    let lines = |left_out: &str| -> Vec<u8> {
        let begins = |line: &&[u8]| {
            line.get(..left_out.len()).is_some_and(|start| start.eq_ignore_ascii_case(left_out.as_bytes()))
        };
        text[head_start..]
            .split_inclusive(|&byte| byte == b'\n')
            .filter(|line| !begins(line))
            .flatten()
            .copied()
            .collect()
    };
    let has_body = request.body.is_some()
        || request.body_file.is_some()
        || ["POST", "PUT", "PATCH"].contains(&request.method.as_str());
    let until = request.until.as_ref();
    if until.is_some_and(|until| until.most == 0 || !(0.0..=1e6).contains(&until.pause_s)) {
        return Err(refuse(request.name.clone(), "until needs at least one try and a pause of 0 s or more"));
    }
    Ok(Step {
        name: request.name.clone(),
        method: request.method.clone(),
        check: request.check.clone().unwrap_or_else(|| plan.check.clone()),
        path: parse(path.as_bytes())?,
        path_is_value,
        head: parse(&lines("content-length:"))?,
        bare_head: parse(&lines("content-"))?,
        body,
        has_body,
        tests: request.checks.iter().map(|check| CompiledTest::new(&check.test)).collect::<Result<_, _>>()?,
        first_test,
        kinds: request.kinds.iter().map(|kind| CompiledTest::new(&kind.test)).collect::<Result<_, _>>()?,
        first_kind,
        captures: request
            .captures
            .iter()
            .map(|capture| Ok((usize::MAX, CompiledCapture::new(&capture.from)?)))
            .collect::<Result<_, LoadError>>()?,
        until: match until {
            Some(until) => Some((CompiledTest::new(&until.test)?, nanoseconds(until.pause_s), until.most)),
            None => None,
        },
        follows: plan.redirects > 0,
    })
}
