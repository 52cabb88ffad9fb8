//! Secrets are not for reports: values whose names look secret become `***`.
//!
//! Used for everything that leaves the process: the resolved copy in the run folder, reports, error texts. What is
//! masked cannot be run again; a study that keeps its secrets outside (`TOKEN: ${env.TOKEN}`) has nothing to mask.

use indexmap::IndexMap;
use serde_json::Value;

use super::spec::{Command, Study};
use super::variables::{Piece, Reference, pieces};

/// What stands in for a secret.
pub const MASK: &str = "***";

/// Words that make a name look secret, wherever they stand in it.
const ANYWHERE: [&str; 11] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "apikey",
    "accesskey",
    "privatekey",
    "authoriz",
    "bearer",
];
/// Words that do so only as a whole word: `key` but not `keyspace`, `auth` but not `author`.
const WHOLE: [&str; 6] = ["key", "auth", "pwd", "pass", "cookie", "jwt"];

/// Whether a name (of an environment variable, header, option or variable) looks like that of a secret.
#[must_use]
pub fn looks_secret(name: &str) -> bool {
    let lower = name.to_lowercase();
    let joined: String = lower.chars().filter(char::is_ascii_alphanumeric).collect();
    ANYWHERE.iter().any(|word| joined.contains(word)) || words(name).iter().any(|word| WHOLE.contains(&word.as_str()))
}

/// `apiKey`, `api-key` and `API_KEY` are all `api`, `key`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for character in name.chars() {
        let starts = !character.is_ascii_alphanumeric() || (after_lower && character.is_ascii_uppercase());
        if starts {
            words.push(String::new());
        }
        after_lower = character.is_ascii_lowercase() || character.is_ascii_digit();
        if character.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(character.to_ascii_lowercase());
        }
    }
    words
}

/// The study with every secret masked.
#[must_use]
pub fn masked(study: &Study) -> Study {
    let mut study = study.clone();
    named(&mut study.variables);
    for service in study.services.values_mut() {
        command(&mut service.command);
        service.build.iter_mut().for_each(command);
        list(&mut service.args);
        named(&mut service.env);
        service.ready.http.iter_mut().for_each(text);
        if let Some(count) = &mut service.count {
            count.http.iter_mut().chain(&mut count.prometheus).chain(&mut count.body).for_each(text);
        }
    }
    for loss in study.variants.values_mut().flat_map(|variant| variant.losses.values_mut()) {
        loss.prometheus.iter_mut().for_each(text);
    }
    for change in study.variants.values_mut().flat_map(|variant| variant.services.values_mut()) {
        change.command.iter_mut().for_each(command);
        change.build.iter_mut().for_each(command);
        list(&mut change.args);
        named(&mut change.env);
        named(&mut change.labels);
        named(&mut change.annotations);
        change.patch.iter_mut().flatten().for_each(|(name, value)| json_named(name, value));
        change.ready.iter_mut().filter_map(|ready| ready.http.as_mut()).for_each(text);
    }
    text(&mut study.load.url);
    named(&mut study.load.headers);
    study.load.body.iter_mut().for_each(text);
    for request in study.load.script.iter_mut().flat_map(|script| &mut script.requests) {
        named(&mut request.headers);
        request.path.iter_mut().chain(&mut request.body).for_each(text);
    }
    study.profiles.values_mut().for_each(named);
    study
}

/// Values by name.
fn named(entries: &mut IndexMap<String, String>) {
    for (name, value) in entries {
        if looks_secret(name) && !is_reference(value) && !value.is_empty() {
            MASK.clone_into(value);
        } else {
            text(value);
        }
    }
}

fn text(value: &mut String) {
    *value = mask_text(value);
}

fn command(command: &mut Command) {
    match command {
        Command::Line(line) => text(line),
        Command::Words(words) => list(words),
    }
}

/// Masks the texts of a JSON value under names that look secret, and within all others. An entry `{name: …, value: …}`, as a pod has for its
/// environment, is a value under that name.
pub fn mask_json(value: &mut Value) {
    match value {
        Value::String(inner) => text(inner),
        Value::Array(items) => items.iter_mut().for_each(mask_json),
        Value::Object(entries) => {
            let name = entries.get("name").and_then(Value::as_str).map(str::to_owned);
            for (key, value) in entries {
                match (&name, key.as_str()) {
                    (Some(name), "value") => json_named(name, value),
                    // Of a label, in selectors and tolerations.
                    (_, "key") => mask_json(value),
                    _ => json_named(key, value),
                }
            }
        }
        _ => {}
    }
}

fn json_named(name: &str, value: &mut Value) {
    match value {
        Value::String(inner) if looks_secret(name) && !is_reference(inner) && !inner.is_empty() => {
            MASK.clone_into(inner);
        }
        value => mask_json(value),
    }
}

/// A command line, secrets masked.
#[must_use]
pub fn mask_arguments(arguments: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut words: Vec<String> = arguments.into_iter().collect();
    list(&mut words);
    words
}

/// Arguments, where a secret may follow its name as an argument of its own.
fn list(words: &mut [String]) {
    let mut after_secret = false;
    for word in words {
        let is_option = word.starts_with('-');
        if after_secret && !is_option && !is_reference(word) {
            MASK.clone_into(word);
            after_secret = false;
            continue;
        }
        after_secret = is_option && !word.contains('=') && looks_secret(word);
        text(word);
    }
}

/// Whether a text says where the secret is, not what it is: `${env.TOKEN}`, `Bearer ${env.TOKEN}`.
fn is_reference(text: &str) -> bool {
    let Ok(pieces) = pieces(text) else { return false };
    let mut any = false;
    for piece in pieces {
        match piece {
            Piece::Reference(Reference::Environment { default: Some(_), .. }, _) | Piece::Dollar => return false,
            Piece::Reference(..) => any = true,
            Piece::Text(text) if ["bearer", "basic", ""].contains(&text.trim().to_lowercase().as_str()) => {}
            Piece::Text(_) => return false,
        }
    }
    any
}

/// Masks within a text: `token=…`, `--token …`, `https://user:…@host`.
#[must_use]
pub fn mask_text(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(position) = rest.find(['=', ':', ' ']) {
        let (before, from) = rest.split_at(position);
        masked.push_str(before);
        let sign = &from[..1];
        masked.push_str(sign);
        rest = &from[1..];
        let secret = match sign {
            "=" => looks_secret(trailing_name(before)),
            // `--token abc`, but not `--token --verbose`.
            " " => {
                let name = before.rsplit(char::is_whitespace).next().unwrap_or(before);
                name.starts_with('-') && !name.contains('=') && looks_secret(name) && !rest.starts_with(['-', ' '])
            }
            _ => {
                if let Some(after) = rest.strip_prefix("//") {
                    masked.push_str("//");
                    rest = mask_user(after, &mut masked);
                    false
                } else {
                    // `Authorization: Bearer abc`, `"password": "abc"`.
                    looks_secret(trailing_name(before.trim_end_matches(['"', '\''])))
                }
            }
        };
        if secret {
            // `${env.TOKEN:-abc}` keeps its form.
            let sign_of_default = if sign == ":" && rest.starts_with('-') { 1 } else { 0 };
            let spaces = rest.len() - rest.trim_start_matches(' ').len();
            let kept = if sign == "=" { 0 } else { spaces.max(sign_of_default) };
            masked.push_str(&rest[..kept]);
            rest = &rest[kept..];
            let value = value(rest);
            if value.is_empty() || is_reference(value) {
                masked.push_str(value);
            } else {
                masked.push_str(MASK);
            }
            rest = &rest[value.len()..];
        }
    }
    masked.push_str(rest);
    masked
}

/// The name that ends where an `=` begins.
fn trailing_name(before: &str) -> &str {
    let start = before
        .rfind(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c)))
        .map_or(0, |position| position + before[position..].chars().next().map_or(1, char::len_utf8));
    &before[start..]
}

/// The value at the start of a text: quoted, or up to a separator; `Bearer abc` is one value.
fn value(text: &str) -> &str {
    if let Some(quote) = text.chars().next().filter(|c| "'\"".contains(*c)) {
        let end = text[1..].find(quote).map_or(text.len(), |end| end + 2);
        return &text[..end];
    }
    let scheme = ["bearer ", "basic "]
        .into_iter()
        .find(|scheme| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    let start = scheme.map_or(0, str::len);
    let mut within_braces = false;
    for (position, character) in text.char_indices().skip(start) {
        match character {
            '{' => within_braces = true,
            '}' if !within_braces => return &text[..position],
            '}' => within_braces = false,
            _ if !within_braces && (character.is_whitespace() || ",;&'\"".contains(character)) => {
                return &text[..position];
            }
            _ => {}
        }
    }
    text
}

/// Copies the `user:password@` of a URL's authority, the password masked; gives back what follows.
fn mask_user<'a>(after: &'a str, masked: &mut String) -> &'a str {
    let end = after.find(|c: char| c == '/' || c == '?' || c == '#' || c.is_whitespace()).unwrap_or(after.len());
    let Some(at) = after[..end].rfind('@') else { return after };
    let (user, rest) = after.split_at(at);
    match user.split_once(':') {
        Some((name, password)) if !is_reference(password) => {
            masked.push_str(name);
            masked.push(':');
            masked.push_str(MASK);
        }
        _ => masked.push_str(user),
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_recognised() {
        for name in [
            "TOKEN",
            "api_key",
            "apiKey",
            "X-Api-Key",
            "AWS_SECRET_ACCESS_KEY",
            "Authorization",
            "DB_PASSWORD",
            "dbPwd",
            "--auth",
            "Cookie",
            "spring.datasource.password",
            "PRIVATE_KEY",
            "GITHUB_TOKEN",
            "client-secret",
        ] {
            assert!(looks_secret(name), "{name}");
        }
        for name in
            ["KEYSPACE", "keyboard", "AUTHOR", "PORT", "monkey", "OTEL_SERVICE_NAME", "passenger", "compass", "spin"]
        {
            assert!(!looks_secret(name), "{name}");
        }
    }

    #[test]
    fn secrets_within_texts_are_masked() {
        for (text, masked) in [
            ("java -Dx.password=abc -jar app.jar", "java -Dx.password=*** -jar app.jar"),
            ("app --token abc --verbose", "app --token *** --verbose"),
            ("app --token --verbose", "app --token --verbose"),
            ("app --token='a b' x", "app --token=*** x"),
            ("http://h/p?api_key=abc&x=1", "http://h/p?api_key=***&x=1"),
            ("postgres://joe:pw@db/x", "postgres://joe:***@db/x"),
            ("http://joe@h/x http://h:80/a@b", "http://joe@h/x http://h:80/a@b"),
            ("-Dotel.exporter.otlp.headers=api-key=xyz,b=c", "-Dotel.exporter.otlp.headers=api-key=***,b=c"),
            ("a=b c=d", "a=b c=d"),
            ("--token=${env.TOKEN} x", "--token=${env.TOKEN} x"),
            ("--token=${env.TOKEN:-abc} x", "--token=*** x"),
            ("x ${env.TOKEN:-abc} y", "x ${env.TOKEN:-***} y"),
            ("authorization=Bearer xyz,b=c", "authorization=***,b=c"),
            ("curl -H 'Authorization: Basic xyz'", "curl -H 'Authorization: ***'"),
            (r#"{"user": "joe", "password": "abc", "x": 1}"#, r#"{"user": "joe", "password": ***, "x": 1}"#),
            ("http://joe:${env.PW}@h", "http://joe:${env.PW}@h"),
            ("é=ü", "é=ü"),
        ] {
            assert_eq!(mask_text(text), masked, "{text}");
        }
    }

    #[test]
    fn a_secret_may_be_an_argument_of_its_own() {
        let mut words = ["app", "--token", "abc", "--pin", "--x", "y"].map(str::to_owned);
        list(&mut words);
        assert_eq!(words, ["app", "--token", "***", "--pin", "--x", "y"]);
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let _ = mask_text(&text);
        }

        #[test]
        fn masking_is_stable(text in "[a-z:/@= -]{0,8}(token|key|x)[=: ][a-z@:/]{0,12}") {
            let once = mask_text(&text);
            proptest::prop_assert_eq!(mask_text(&once), once);
        }
    }
}
