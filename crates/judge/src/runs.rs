//! The runs one by one, and what was started in them: for whoever wants to look behind the numbers.

use unladen_journal::notices::Severity;
use unladen_study::mask::{MASK, looks_secret, mask_arguments, mask_text};
use unladen_study::spec::{Command, Study, Variant};

use super::evidence::Evidence;
use super::findings::{CommandLine, RunLine};

/// Every run, in the order of the journal.
pub(super) fn lines(evidence: &Evidence<'_>) -> Vec<RunLine> {
    let void = |run: u32| {
        let mut all = evidence.all_variants().flat_map(|variant| &variant.void);
        all.find(|(it, _)| it.run == run).map(|(_, notice)| notice.to_string())
    };
    let counts = |run: u32| evidence.valid().any(|it| it.run == run);
    let lines = evidence.folder.runs.iter().map(|run| {
        let grave = run.notices.iter().filter(|notice| notice.severity() != Severity::Note);
        RunLine {
            run: run.run,
            round: run.round,
            slot: run.slot,
            variant: run.variant.clone(),
            dir: run.dir.clone(),
            started: run.started.clone(),
            counts: counts(run.run),
            void: void(run.run),
            disturbances: grave.map(ToString::to_string).collect(),
        }
    });
    lines.collect()
}

/// The commands of the services, then those of the variants that change something. The resolved study is masked when it is
/// written; masked again, it stays as it is, and a study from elsewhere gives nothing away.
pub(super) fn commands(study: &Study) -> Vec<CommandLine> {
    let role = |service: &str| study.services.get(service).map(|it| it.role.name().to_owned()).unwrap_or_default();
    let base = study.services.iter().map(|(name, service)| CommandLine {
        variant: None,
        service: name.clone(),
        role: role(name),
        command: match &study.on.compose {
            Some(compose) if service.is_composed() => {
                let env = line(&service.env, Some(&service.command), &[]);
                format!("{env} docker compose{}", files(&compose.project().files)).trim_start().to_owned()
            }
            _ => line(&service.env, Some(&service.command), &service.args),
        },
    });
    let changed =
        study.variants.iter().flat_map(|(variant, it)| it.services.iter().map(move |(name, it)| (variant, name, it)));
    let changed = changed.filter(|(_, _, it)| it.command.is_some() || !it.args.is_empty() || !it.env.is_empty());
    let changes = changed.map(|(variant, name, change)| CommandLine {
        variant: Some(variant.clone()),
        service: name.clone(),
        role: role(name),
        command: line(&change.env, change.command.as_ref(), &change.args),
    });
    let composed = |(variant, it): (&String, &Variant)| {
        let subject = study.composed().next()?.to_owned();
        let command = format!("…{}", files(&it.compose));
        let is_changed = !it.compose.is_empty();
        is_changed.then(|| CommandLine {
            variant: Some(variant.clone()),
            role: role(&subject),
            service: subject,
            command,
        })
    };
    base.chain(changes).chain(study.variants.iter().filter_map(composed)).collect()
}

/// Compose files as its command has them.
fn files(files: &[String]) -> String {
    files.iter().map(|file| format!(" -f {}", quoted(file))).collect()
}

/// `NAME=value program argument …`; an ellipsis stands for what is not changed.
fn line(env: &indexmap::IndexMap<String, String>, command: Option<&Command>, args: &[String]) -> String {
    let mut words: Vec<String> = env
        .iter()
        .map(|(name, value)| {
            let value = if looks_secret(name) { MASK.to_owned() } else { quoted(&mask_text(value)) };
            format!("{name}={value}")
        })
        .collect();
    let arguments = mask_arguments(match command {
        Some(Command::Words(program)) => program.iter().chain(args).cloned().collect::<Vec<_>>(),
        _ => args.to_vec(),
    });
    match command {
        Some(Command::Line(program)) => words.push(mask_text(program)),
        Some(Command::Words(_)) => {}
        None => words.push("…".to_owned()),
    }
    words.extend(arguments.iter().map(|it| quoted(it)));
    words.join(" ")
}

/// As a shell would need it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+${}*".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_a_shell_would_take_without_its_secrets() {
        let env = [("API_TOKEN", "hunter2"), ("STORE", "http://me:hunter2@store/x y")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect();
        let program = Command::Words(vec!["./app".to_owned(), "--password".to_owned(), "hunter2".to_owned()]);
        let line = line(&env, Some(&program), &["--name".to_owned(), "it's".to_owned()]);
        assert!(!line.contains("hunter2"), "{line}");
        assert!(line.starts_with("API_TOKEN=*** STORE='http://"), "{line}");
        assert!(line.ends_with(r"--name 'it'\''s'"), "{line}");
        assert_eq!(super::line(&indexmap::IndexMap::new(), None, &["-x".to_owned()]), "… -x");
    }
}
