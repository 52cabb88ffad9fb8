//! What a study takes along into its cluster: itself, with everything that was said on the command line, and the files that it names, as they
//! lie beside each other.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail, ensure};
use unladen_measure::STUDY_FILE;
use unladen_processes::subject::kubernetes::in_cluster::{MAX_BYTES, StudyFile, kustomize, manifests};
use unladen_study::plan::Plan;
use unladen_study::spec::Load;
use unladen_study::write::resolved_yaml;

/// What a kustomization became.
const KUSTOMIZED: &str = "kustomized.unladen.yaml";

/// A study and its files.
#[derive(Debug)]
pub(super) struct Bundle {
    pub(super) files: Vec<StudyFile>,
    /// Which of them is the study.
    pub(super) study: String,
}

/// Collects what a study needs.
pub(super) fn pack(plan: &Plan) -> anyhow::Result<Bundle> {
    let mut study = plan.study.clone();
    let Some(cluster) = &mut study.on.kubernetes else {
        bail!("`--in-cluster` is for studies of a cluster: this one has no `on: {{kubernetes: …}}`");
    };
    let stranger = plan.variants.iter().flat_map(|variant| &variant.processes).find(|process| !process.is_stacked());
    if let Some(process) = stranger {
        bail!(
            "{} is started by unladen itself, which has neither programs nor an engine in the pod of `--in-cluster`: let it be a workload of the manifests, or run the study on the node",
            process.service
        );
    }
    let dir = normal(&std::path::absolute(&plan.dir)?);
    let mut paths = BTreeSet::new();
    let of_variants = plan.study.variants.values().flat_map(|variant| &variant.manifests);
    for named in cluster.manifests.iter().chain(of_variants) {
        paths.extend(manifests(&within(&dir, named)?)?.iter().map(|path| normal(path)));
    }
    for load in plan.variants.iter().map(|variant| &variant.load) {
        for named in files(load)? {
            paths.insert(within(&dir, named)?);
        }
    }
    let mut texts: Vec<(PathBuf, String)> = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be taken along", path.display()))?;
        texts.push((path, text));
    }
    if let Some(folder) = cluster.kustomize.take() {
        texts.push((dir.join(KUSTOMIZED), kustomize(&within(&dir, &folder)?)?));
        cluster.manifests.push(KUSTOMIZED.to_owned());
    }
    // That is for whoever is elsewhere.
    cluster.context = None;
    // What was chosen of them is applied.
    study.profiles.clear();
    let text = resolved_yaml(&study);
    ensure!(
        !text.contains("${env."),
        "the study takes `${{env.NAME}}` from the environment, which its pod has not: make it a variable, `${{var.NAME}}`, and set it by `--set NAME=VALUE`"
    );
    let own = dir.join(STUDY_FILE);
    texts.retain(|(path, _)| *path != own);
    texts.insert(0, (own, text));
    put_together(&texts)
}

/// The files that a load is made from.
fn files(load: &Load) -> anyhow::Result<Vec<&str>> {
    ensure!(
        load.tls.client_certificate.is_none() && load.tls.client_key.is_none(),
        "`load.tls.client_certificate` is not taken along: whoever may read ConfigMaps would have its key. Run the study on the node"
    );
    let grpc = load.grpc.as_ref();
    ensure!(
        grpc.is_none_or(|grpc| grpc.includes.is_empty()),
        "`load.grpc.includes` is not taken along: name the description of the service by `descriptors`"
    );
    let script = load.script.as_ref();
    let of_load = load.replay.iter().chain(&load.tls.ca);
    let of_grpc = grpc.into_iter().flat_map(|grpc| grpc.protos.iter().chain(&grpc.descriptors));
    let values = script.into_iter().flat_map(|script| script.values.values().filter_map(|value| value.csv.as_ref()));
    let bodies = script.into_iter().flat_map(|script| script.requests.iter().filter_map(|it| it.body_file.as_ref()));
    Ok(of_load.chain(of_grpc).chain(values).chain(bodies).map(String::as_str).collect())
}

/// Where a file is that the study names.
fn within(dir: &Path, named: &str) -> anyhow::Result<PathBuf> {
    ensure!(Path::new(named).is_relative(), "{named} will not be there in the pod: name it relative to the study file");
    Ok(normal(&dir.join(named)))
}

/// Without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut path, part| {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            other => path.push(other),
        }
        path
    })
}

/// Files by their paths from the folder that holds all of them; the first is the study.
fn put_together(texts: &[(PathBuf, String)]) -> anyhow::Result<Bundle> {
    let first = texts.first().and_then(|(path, _)| path.parent()).context("there is no study")?;
    let holds_all = |folder: &&Path| texts.iter().all(|(path, _)| path.starts_with(folder));
    let root = first.ancestors().find(holds_all).unwrap_or(Path::new("/"));
    let mut sent = Vec::new();
    for (path, text) in texts {
        let path = path.strip_prefix(root)?.to_str().with_context(|| format!("{} is no plain text", path.display()))?;
        sent.push(StudyFile { path: path.to_owned(), text: text.clone() });
    }
    let bytes: usize = sent.iter().map(|file| file.path.len() + file.text.len()).sum();
    if bytes > MAX_BYTES {
        let mut largest: Vec<&StudyFile> = sent.iter().collect();
        largest.sort_by_key(|file| std::cmp::Reverse(file.text.len()));
        let largest =
            largest.iter().take(3).map(|file| format!("{} ({} KiB)", file.path, file.text.len().div_ceil(1024)));
        bail!(
            "the study and its files take {} KiB, but a ConfigMap holds {} KiB. The largest are {}: leave out what the study does not need",
            bytes.div_ceil(1024),
            MAX_BYTES / 1024,
            largest.collect::<Vec<_>>().join(", ")
        );
    }
    let study = sent.first().map(|file| file.path.clone()).unwrap_or_default();
    Ok(Bundle { files: sent, study })
}
