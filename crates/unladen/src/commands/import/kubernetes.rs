//! `import kubernetes`: live workloads into a folder with a study and manifests.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use unladen_processes::subject::kubernetes::{self, Imported, Live, ReadyBy};
use unladen_study::kubernetes::{Found, text};
use unladen_study::read::FILE_NAME;

use super::super::{check_is_free, print};
use crate::cli::ImportKubernetes;

/// The folder of the manifests, as the study names it.
const MANIFESTS: &str = "deploy/";

/// `unladen import kubernetes`
///
/// # Errors
/// When the cluster does not answer, a workload cannot be read, or the folder cannot be made.
pub(super) fn import(options: &ImportKubernetes) -> anyhow::Result<ExitCode> {
    let first = options.workloads.first().context("name a workload, such as deployment/shop")?;
    let out = options.out.clone().unwrap_or_else(|| PathBuf::from(&first.name));
    // Before the cluster is asked.
    check_is_free(&out)?;
    let (context, namespace) = (options.context.as_deref(), options.namespace.as_deref());
    let imported = kubernetes::import(context, namespace, &options.workloads, options.with_secrets)?;
    let found: Vec<Found> = imported.live.iter().map(found).collect();
    let workloads: Vec<String> = options.workloads.iter().map(ToString::to_string).collect();
    let command = format!("unladen import kubernetes {} --namespace {}", workloads.join(" "), imported.namespace);
    let study = text(context, MANIFESTS, &found, &command);
    save(&out, &study, &imported)?;
    for note in &imported.notes {
        anstream::eprintln!("note: {note}");
    }
    if found.first().is_some_and(|it| it.port.is_none()) {
        anstream::eprintln!("note: {first} does not say which port it serves: correct `load.url` in the study");
    }
    let objects: Vec<&str> = imported.manifests.iter().map(|manifest| manifest.object.as_str()).collect();
    let folder = out.display();
    print(&format!(
        "Wrote {folder}/{FILE_NAME} and, in {folder}/{MANIFESTS}: {}.\nSet `load.url`, `load.rate` and a variant in {folder}/{FILE_NAME}; then `unladen doctor {folder}` and `unladen run {folder}`.",
        objects.join(", ")
    ))
}

fn found(live: &Live) -> Found {
    let (mut ready_path, mut ready_port) = (None, None);
    match &live.ready {
        ReadyBy::Http { port, path } => ready_path = Some((*port, path.clone())),
        ReadyBy::Tcp { port } => ready_port = Some(*port),
        // The kubelet asks, and its answer is the default.
        ReadyBy::Kubelet => {}
        ReadyBy::Nothing => ready_port = live.port,
    }
    Found {
        workload: live.workload.to_string(),
        container: live.container.clone(),
        port: live.port,
        ready_path,
        ready_port,
        timeout_s: live.patience.as_secs_f64(),
    }
}

/// The manifests, and the study last: a folder with a study.yaml is whole.
fn save(out: &Path, study: &str, imported: &Imported) -> anyhow::Result<()> {
    let folder = out.join(MANIFESTS);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    for manifest in &imported.manifests {
        write(&folder.join(&manifest.file), &manifest.text, manifest.is_secret)?;
    }
    write(&out.join(FILE_NAME), study, false)
}

/// Writes a file that is not there yet.
fn write(path: &Path, text: &str, is_secret: bool) -> anyhow::Result<()> {
    let mode = if is_secret { 0o600 } else { 0o666 };
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use unladen_processes::subject::kubernetes::Manifest;

    use super::*;

    #[test]
    fn nothing_is_overwritten_and_secrets_are_their_owners() {
        let place = tempfile::tempdir().expect("a folder");
        let out = place.path().join("a/shop");
        check_is_free(&out).expect("it is not there");
        let manifest = |file: &str, is_secret| Manifest {
            file: file.to_owned(),
            object: String::new(),
            text: "x: 1\n".to_owned(),
            is_secret,
        };
        let imported =
            Imported { manifests: vec![manifest("a.yaml", false), manifest("b.yaml", true)], ..Imported::default() };
        save(&out, "study: shop\n", &imported).expect("written");
        let mode = |name: &str| out.join("deploy").join(name).metadata().expect("a file").permissions().mode() & 0o077;
        assert_eq!(mode("b.yaml"), 0);
        assert_ne!(mode("a.yaml"), 0);
        assert_eq!(fs::read_to_string(out.join("study.yaml")).expect("a study"), "study: shop\n");
        let error = check_is_free(&out).expect_err("it is there").to_string();
        assert!(error.contains("a/shop is there already") && error.contains("--out"), "{error}");
        assert!(
            save(&out, "study: other\n", &imported).is_err_and(|error| error.to_string().contains("deploy/a.yaml"))
        );
        let empty = place.path().join("empty");
        fs::create_dir(&empty).expect("a folder");
        check_is_free(&empty).expect("nothing is in it");
        let file = place.path().join("file");
        fs::write(&file, "").expect("a file");
        assert!(check_is_free(&file).is_err());
    }
}
