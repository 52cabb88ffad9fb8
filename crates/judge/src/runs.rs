//! The runs one by one, and what was started in them: for whoever wants to look behind the numbers.

use indexmap::IndexMap;
use unladen_journal::notices::Severity;
use unladen_study::mask::{MASK, looks_secret, mask_arguments, mask_json, mask_text};
use unladen_study::spec::{Command, Kubernetes, On, Override, Study, Variant};

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
            machine: run.machine.clone(),
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
        command: match (&study.on, &service.workload) {
            (On { compose: Some(compose), .. }, _) if study.is_stacked(service) => {
                let env = line(&service.env, Some(&service.command), &[]);
                format!("{env} docker compose{}", files(&compose.project().files)).trim_start().to_owned()
            }
            (On { kubernetes: Some(kubernetes), .. }, Some(workload)) => {
                let env = line(&service.env, Some(&service.command), &[]);
                format!("{env} {workload} of{}", applied(kubernetes)).trim_start().to_owned()
            }
            _ => line(&service.env, Some(&service.command), &service.args),
        },
    });
    let changed =
        study.variants.iter().flat_map(|(variant, it)| it.services.iter().map(move |(name, it)| (variant, name, it)));
    let changes = changed.filter_map(|(variant, name, change)| {
        let is_workload = study.services.get(name).is_some_and(|service| service.workload.is_some());
        let in_pods = if is_workload { pods(change) } else { String::new() };
        let is_changed = change.command.is_some() || !change.args.is_empty() || !change.env.is_empty();
        let line = line(&change.env, change.command.as_ref(), &change.args);
        (is_changed || !in_pods.is_empty()).then(|| CommandLine {
            variant: Some(variant.clone()),
            service: name.clone(),
            role: role(name),
            command: format!("{line}{in_pods}"),
        })
    });
    let stacked = |(variant, it): (&String, &Variant)| {
        let subject = study.stacked().next()?.to_owned();
        let command = format!("…{}{}", files(&it.compose), files(&it.manifests));
        let is_changed = !it.compose.is_empty() || !it.manifests.is_empty();
        is_changed.then(|| CommandLine {
            variant: Some(variant.clone()),
            role: role(&subject),
            service: subject,
            command,
        })
    };
    base.chain(changes).chain(study.variants.iter().filter_map(stacked)).collect()
}

/// What a variant changes in the pods of a service, its environment apart.
fn pods(change: &Override) -> String {
    let mut patch = change.patch.clone().map(serde_json::Value::Object);
    patch.iter_mut().for_each(mask_json);
    let named = |what: &str, entries: &IndexMap<String, String>| {
        let words: Vec<String> = entries.iter().map(|(name, value)| format!("{name}={}", mask_text(value))).collect();
        (!words.is_empty()).then(|| format!(" {what} {}", quoted(&words.join(","))))
    };
    let image = change.image.as_ref().map(|image| format!(" image {}", quoted(image)));
    let labels = named("labels", &change.labels);
    let annotations = named("annotations", &change.annotations);
    let patch = patch.map(|patch| format!(" patch {}", quoted(&patch.to_string())));
    [image, labels, annotations, patch].into_iter().flatten().collect()
}

/// Manifests as `kubectl apply` has them.
fn applied(kubernetes: &Kubernetes) -> String {
    let kustomize = kubernetes.kustomize.iter().map(|folder| format!(" -k {}", quoted(folder)));
    kustomize.chain([files(&kubernetes.manifests)]).collect()
}

/// Compose files, or manifests, as the command has them.
fn files(files: &[String]) -> String {
    files.iter().map(|file| format!(" -f {}", quoted(file))).collect()
}

/// `NAME=value program argument …`; an ellipsis stands for what is not changed.
fn line(env: &IndexMap<String, String>, command: Option<&Command>, args: &[String]) -> String {
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
        assert_eq!(super::line(&IndexMap::new(), None, &["-x".to_owned()]), "… -x");
    }
}
