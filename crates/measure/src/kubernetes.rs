//! The services of a run that are workloads of a cluster.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use unladen_linux::Netns;
use unladen_processes::subject::Placed;
use unladen_processes::subject::kubernetes::{Changes, Stack};
use unladen_study::mask::mask_json;
use unladen_study::plan::Process;
use unladen_study::spec::Kubernetes;

use super::error::RunError;
use super::sent_from::probe;
use super::setup::Site;
use super::stack::{Started, Wanted};
use super::took::Admitted;

/// The manifests of a variant, in the cluster that they are for; `dir`: where the study is.
#[must_use]
pub fn stack(cluster: &Kubernetes, dir: &Path, variant: &str) -> Stack {
    Stack {
        context: cluster.context.clone(),
        manifests: cluster.manifests.iter().map(|path| dir.join(path)).collect(),
        kustomize: cluster.kustomize.as_ref().map(|path| dir.join(path)),
        variant: variant.to_owned(),
        load: cluster.load.as_ref().map(|load| load.nodes.clone()),
        probe: probe(cluster),
        ..Stack::default()
    }
}

/// What the study changes in a workload, limits and replicas left out. The study's check has refused what is none.
#[must_use]
pub fn changes(process: &Process) -> Option<Changes> {
    let pod = process.pod.clone()?;
    Some(Changes {
        container: pod.container,
        env: process.env.clone(),
        image: pod.image,
        labels: pod.labels,
        annotations: pod.annotations,
        patch: pod.patch.map(Value::Object),
        ..Changes::of(pod.workload.parse().ok()?)
    })
}

impl Site<'_> {
    /// Applies the manifests of a variant, as the study changes them, to a namespace of its own. Every network that a container is in is
    /// handed to `seen`.
    pub(super) fn deploy(
        &self,
        cluster: &Kubernetes,
        wanted: &Wanted<'_>,
        seen: &mut dyn FnMut(&Arc<Netns>),
    ) -> Result<(Started, Vec<Placed>), RunError> {
        let stack = Stack {
            probe: self.probes.clone(),
            services: wanted.services().filter_map(|(process, replicas)| self.pod(process, replicas)).collect(),
            cpus: self.partition.subject.clone(),
            pad: self.pad_length(wanted.run),
            log: wanted.folder.join("logs"),
            env: self.sinks_by_variable().collect(),
            ..stack(cluster, &self.plan().dir, &wanted.variant.name)
        };
        let (deployed, placed) = self.launcher.deploy(&stack, wanted.patience(), seen, wanted.interrupted)?;
        Ok((Started::Kubernetes(deployed), placed))
    }

    /// What is changed in a workload on this machine.
    fn pod(&self, process: &Process, replicas: Option<u32>) -> Option<(String, Changes)> {
        let changes = changes(process)?;
        let (cores, mut limits) = self.limits(process, &self.partition.subject);
        limits.cpuset = limits.cpuset.or(Some(cores));
        Some((process.service.clone(), Changes { limits, replicas, ..changes }))
    }
}

/// Pods for the journal, without their secrets.
pub(super) fn without_secrets(mut admitted: Admitted) -> Admitted {
    admitted.values_mut().for_each(mask_json);
    admitted
}
