//! Scripts: names that are known where they are used, and of every choice exactly one.

use std::collections::BTreeSet;

use super::super::guess::guess;
use super::super::key::KeyPath;
use super::super::problem::ProblemKind;
use super::super::spec::script::{Condition, Order, Request, Script, Source, Value};
use super::Check;

impl Check<'_> {
    pub(super) fn script(&mut self, path: &KeyPath, script: &Script) {
        let requests = path.key("requests");
        self.range(requests.clone(), !script.requests.is_empty(), "at least one request", "none");
        for (name, value) in &script.values {
            self.value(&path.key("values").key(name), value);
        }
        let mut known: BTreeSet<&str> = script.values.keys().map(String::as_str).collect();
        let mut names = BTreeSet::new();
        for (position, request) in script.requests.iter().enumerate() {
            let path = requests.item(position);
            if !names.insert(&request.name) {
                let kind = ProblemKind::NameTwice { what: "request", name: request.name.clone() };
                self.say(path.key("name"), kind);
            }
            self.request(&path, request, script.order);
            for (key, text) in texts(request) {
                for name in placeholders(text).into_iter().filter(|name| !known.contains(name)) {
                    let guess = guess(name, known.iter().copied());
                    self.say(path.key(key), ProblemKind::UnknownPlaceholder { name: name.to_owned(), guess });
                }
            }
            for name in request.capture.keys() {
                if script.values.contains_key(name) {
                    let kind = ProblemKind::NameTwice { what: "value", name: name.clone() };
                    self.say(path.key("capture").key(name), kind);
                }
                known.insert(name);
            }
        }
    }

    fn request(&mut self, path: &KeyPath, request: &Request, order: Order) {
        let weight = request.weight;
        self.range(path.key("weight"), weight > 0.0 && weight <= 1e9, "more than 0", weight);
        self.method(path.key("method"), &request.method);
        for (name, value) in &request.headers {
            self.header(path.key("headers").key(name), name, value);
        }
        if let Some(check) = request.check {
            self.answer(&path.key("check"), check);
        }
        let bodies = [request.body.is_some(), request.body_file.is_some()];
        if bodies == [true, true] {
            let (one, other, remedy) = ("body", "body_file", "a request has one body; remove the other");
            self.say(path.key(other), ProblemKind::Contradiction { one, other, remedy });
        }
        for (name, condition) in &request.expect {
            self.condition(&path.key("expect").key(name), condition);
        }
        for (name, condition) in &request.kinds {
            let path = path.key("kinds").key(name);
            self.range(
                path.clone(),
                name != "other",
                "a name of its own (`other` stands for the answers of no kind)",
                name,
            );
            self.condition(&path, condition);
        }
        for (name, source) in &request.capture {
            self.source(&path.key("capture").key(name), source);
        }
        if let Some(until) = &request.until {
            self.condition(&path.key("until").key("holds"), &until.holds);
            self.range(path.key("until").key("most"), until.most > 0, "at least 1", until.most);
        }
        if let Some(span) = &request.span {
            self.range(path.key("span"), !span.is_empty(), "the name of a span", "empty");
        }
        if order == Order::Weighted {
            for (key, given) in [("capture", !request.capture.is_empty()), ("until", request.until.is_some())] {
                if given {
                    self.say(path.key(key), ProblemKind::Lacks { key, needed: "order: sequence" });
                }
            }
        }
    }

    fn one_of(&mut self, path: &KeyPath, what: &'static str, choices: &'static str, given: &[bool]) {
        let found = given.iter().filter(|given| **given).count();
        if found != 1 {
            self.say(path.clone(), ProblemKind::NotOne { what, choices, found });
        }
    }

    fn value(&mut self, path: &KeyPath, value: &Value) {
        let given =
            [value.counter.is_some(), value.integer.is_some(), value.text.is_some(), value.uuid, value.csv.is_some()];
        self.one_of(path, "a value", "`counter`, `integer`, `text`, `uuid` and `csv`", &given);
        if let Some(range) = &value.integer {
            let fits = matches!(range[..], [least, most] if least <= most);
            let found = format!("{range:?}");
            self.range(path.key("integer"), fits, "the least and the largest number, such as `[1, 6]`", found);
        }
        if let Some(length) = value.text {
            self.range(path.key("text"), length <= 1 << 20, "at most 1048576 letters", length);
        }
        for (key, given) in [("column", value.column.is_some()), ("random", value.random)] {
            if given && value.csv.is_none() {
                self.say(path.key(key), ProblemKind::Lacks { key, needed: "csv" });
            }
        }
        if value.csv.is_some() && value.column.is_none() {
            self.say(path.key("csv"), ProblemKind::Lacks { key: "csv", needed: "column" });
        }
    }

    fn condition(&mut self, path: &KeyPath, condition: &Condition) {
        let given = [
            condition.status.is_some(),
            condition.body_contains.is_some(),
            condition.body_matches.is_some(),
            condition.json.is_some(),
            condition.header.is_some(),
        ];
        let choices = "`status`, `body_contains`, `body_matches`, `json` and `header`";
        self.one_of(path, "a condition", choices, &given);
        let compares = condition.json.is_some() || condition.header.is_some();
        if condition.equals.is_some() && !compares {
            self.say(path.key("equals"), ProblemKind::Lacks { key: "equals", needed: "json" });
        }
        if compares && condition.equals.is_none() {
            let key = if condition.json.is_some() { "json" } else { "header" };
            self.say(path.key(key), ProblemKind::Lacks { key, needed: "equals" });
        }
        self.pointer(path, condition.json.as_ref());
    }

    fn source(&mut self, path: &KeyPath, source: &Source) {
        let given = [source.json.is_some(), source.header.is_some(), source.regex.is_some()];
        self.one_of(path, "what to take", "`json`, `header` and `regex`", &given);
        self.pointer(path, source.json.as_ref());
    }

    fn pointer(&mut self, path: &KeyPath, pointer: Option<&String>) {
        if let Some(pointer) = pointer.filter(|pointer| !pointer.is_empty() && !pointer.starts_with('/')) {
            self.say(path.key("json"), ProblemKind::BadPointer { found: pointer.clone() });
        }
    }
}

/// Every text of a request that may hold `{{name}}`, with its key.
fn texts(request: &Request) -> impl Iterator<Item = (&'static str, &str)> {
    let path = request.path.iter().map(|text| ("path", text.as_str()));
    let headers = request.headers.values().map(|text| ("headers", text.as_str()));
    path.chain(headers).chain(request.body.iter().map(|text| ("body", text.as_str())))
}

/// The names in `{{name}}`, by the rule of the load generator: what cannot be a name is text, as JSON's braces are.
fn placeholders(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find("{{") {
        let Some(length) = rest[open + 2..].find("}}") else { break };
        let name = rest[open + 2..open + 2 + length].trim();
        let is_name =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
        if is_name {
            names.push(name);
        }
        rest = &rest[open + if is_name { 2 + length + 2 } else { 1 }..];
    }
    names
}

#[cfg(test)]
mod tests {
    use super::placeholders;

    #[test]
    fn names_in_double_braces_are_found_and_json_is_left_alone() {
        for (text, names) in [
            ("/jobs/{{id}}/{{ part }}", vec!["id", "part"]),
            (r#"{"a":{"b":{{id}}}}"#, vec!["id"]),
            (r#"{{"a":1}}"#, vec![]),
            ("{{{id}}}", vec!["id"]),
            ("{{id", vec![]),
        ] {
            assert_eq!(placeholders(text), names, "{text}");
        }
    }
}
