//! The schema, the reference and the example studies: current, and in agreement with the reader.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;

use super::super::plan::Plan;
use super::super::reference::reference_markdown;
use super::super::schema::{schema, schema_text};
use super::super::tree::{Kind, Node, Scalar};
use super::super::yaml;
use super::{SHOP, refusal, study};

/// What a validator sees of a file.
pub(super) fn json(node: &Node) -> Value {
    match &node.kind {
        Kind::Scalar { text, value } => match value {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => (*value).into(),
            Scalar::Whole(value) => match (i64::try_from(*value), u64::try_from(*value)) {
                (Ok(number), _) => number.into(),
                (_, Ok(number)) => number.into(),
                _ => text.clone().into(),
            },
            Scalar::Float(value) => (*value).into(),
            Scalar::Text => text.clone().into(),
        },
        Kind::List(items) => items.iter().map(json).collect(),
        Kind::Keys(entries) => entries.iter().map(|entry| (entry.key.clone(), json(&entry.node))).collect(),
    }
}

pub(super) fn validator() -> &'static jsonschema::Validator {
    static VALIDATOR: OnceLock<jsonschema::Validator> = OnceLock::new();
    VALIDATOR.get_or_init(|| jsonschema::validator_for(&schema()).expect("the schema is one"))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Holds a committed file to what it is made from; `UNLADEN_BLESS=1` writes it.
fn assert_current(file: &str, made: &str) {
    let path = root().join(file);
    if std::env::var_os("UNLADEN_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, made).expect("a file");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == made, "{file} is not current: run UNLADEN_BLESS=1 cargo test -p unladen-study");
}

#[test]
fn the_schema_is_current() {
    assert_current("docs/study.schema.json", &schema_text());
}

#[test]
fn the_reference_is_current() {
    assert_current("docs/reference/study.md", &reference_markdown());
}

#[test]
fn the_reference_speaks_of_every_key() {
    let text = reference_markdown();
    let schema = schema();
    let mut keys = 0;
    let definitions = schema["$defs"].as_object().expect("definitions").values();
    for properties in definitions.chain([&schema]).filter_map(|schema| schema.get("properties")?.as_object()) {
        for (key, property) in properties {
            assert!(text.contains(&format!("| `{key}` |")), "{key}");
            assert!(property.get("description").is_some(), "{key} has no description");
            keys += 1;
        }
    }
    assert!(keys > 60, "only {keys} keys");
}

/// The studies in the fenced blocks of the reference.
fn examples() -> Vec<String> {
    let text = reference_markdown();
    let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.map(str::to_owned).collect()
}

#[test]
fn the_examples_of_the_reference_are_studies() {
    let examples = examples();
    assert_eq!(examples.len(), 8);
    for example in &examples {
        assert_eq!(refusal(example, &[]), "accepted", "{example}");
    }
    assert_eq!(refusal(&examples[1], &["profile=quick", "heap=1g"]), "accepted");
}

/// Every `study.yaml` below a folder, build output and run folders apart.
fn studies(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir()
            && !name.starts_with('.')
            && !["target", "runs", "node_modules", "build"].contains(&name.as_str())
        {
            studies(&path, found);
        } else if name == "study.yaml" {
            found.push(path);
        }
    }
}

fn repository_studies() -> Vec<String> {
    let mut found = Vec::new();
    studies(&root(), &mut found);
    found.iter().map(|path| std::fs::read_to_string(path).expect("a study")).collect()
}

#[test]
fn every_study_of_the_repository_has_a_plan_in_every_profile() {
    let texts = repository_studies();
    assert!(texts.len() >= 9, "{} studies", texts.len());
    for text in texts {
        let profiles = study(&text, &[]).profiles.into_keys().map(|name| format!("profile={name}"));
        for profile in profiles.map(Some).chain([None]) {
            let sets: Vec<&str> = profile.as_deref().into_iter().collect();
            let study = study(&text, &sets);
            let name = format!("{}, {profile:?}", study.study);
            let plan = Plan::from_study(study, &root()).unwrap_or_else(|error| panic!("{name}: {error}"));
            // Java takes an empty argument for a class without a name.
            let processes = plan.variants.iter().flat_map(|variant| &variant.processes);
            for process in processes.filter(|it| it.command.first().is_some_and(|program| program == "java")) {
                assert!(
                    !process.command.iter().any(String::is_empty),
                    "{name}, {}: {:?}",
                    process.service,
                    process.command
                );
            }
        }
    }
}

#[test]
fn every_study_of_the_repository_is_one() {
    let texts = repository_studies();
    let validator = validator();
    for text in texts.into_iter().chain(examples()).chain([SHOP.to_owned()]) {
        assert_eq!(refusal(&text, &[]), "accepted", "{text}");
        let json = json(&yaml::parse(&text).expect("YAML"));
        let errors: Vec<String> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?} in\n{text}");
    }
}

/// The schema is for editors: what it can refuse of what the reader refuses, it does.
#[test]
fn the_schema_refuses_what_it_can() {
    let validator = validator();
    let accepts = |text: &str| validator.is_valid(&json(&yaml::parse(text).expect("YAML")));
    assert!(accepts(SHOP));
    for (old, new) in [
        ("study: shop", "title: shop"),
        ("study: shop", "study: shop\nroundz: 3"),
        ("study: shop", "study: shop\nrounds: ten"),
        ("study: shop", "study: shop\nwindow: 10"),
        ("study: shop", "study: shop\nwindow: 10 sec"),
        ("study: shop", "study: [shop]"),
        ("needs: [db]", "needs: db"),
        ("role: dependency", "role: dependancy"),
        ("rate: 300", "rate: fast"),
        ("command: postgres -p ${port.db}", "image: [postgres]"),
        ("command: postgres -p ${port.db}", "command: {run: postgres}"),
    ] {
        assert!(!accepts(&SHOP.replace(old, new)), "{new}");
    }
    // And what the reader takes leniently, it takes too.
    for (old, new) in [
        ("    needs: [db]", "    needs:"),
        ("PORT: ${port.app}", "PORT: ${port.app}\n      X: 8080"),
        ("PORT: ${port.app}", "PORT: ${port.app}\n      X: true"),
        ("command: postgres -p ${port.db}", "command: [postgres, -p, 5432]"),
        ("command: postgres -p ${port.db}", "image: postgres:17\n    volumes: [/data]"),
        ("study: shop", "study: 5"),
        ("rate: 300", "rate:"),
        ("study: shop", "study: shop\nmargin: 0.02\nseed: 18446744073709551615"),
    ] {
        let text = SHOP.replace(old, new);
        assert_eq!(refusal(&text, &[]), "accepted", "{new}");
        assert!(accepts(&text), "{new}");
    }
}
