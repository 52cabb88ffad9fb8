//! Manifests of a cluster, and what a study can say of its workloads.

use serde_json::{Map, Value};
use unladen_journal::record::Design;

use super::super::key::KeyPath;
use super::super::problem::ProblemKind;
use super::super::spec::kubernetes::workload;
use super::super::spec::{Kubernetes, Network, Override, PreheatCpuset, PreheatUntil, ProbeIn, Service};
use super::{Check, files};

/// What a pod template has.
const TEMPLATE: [&str; 2] = ["metadata", "spec"];

impl Check<'_> {
    pub(super) fn kubernetes(&mut self) {
        self.cluster();
        let study = self.study;
        for (name, service) in &study.services {
            let path = KeyPath::of(&["services", name]);
            self.needs(&path, service.container.is_some() && service.workload.is_none(), "container", "workload");
            if let Some(workload) = &service.workload {
                self.workload(&path, name, service, workload);
            }
        }
        for (variant, it) in &study.variants {
            let path = KeyPath::of(&["variants", variant]);
            self.needs(&path, !it.manifests.is_empty() && study.on.kubernetes.is_none(), "manifests", "on.kubernetes");
            for (name, change) in &it.services {
                let is_workload = study.services.get(name).is_some_and(|service| service.workload.is_some());
                self.pods(&path.key("services").key(name), change, is_workload);
            }
        }
    }

    /// The cluster as a whole.
    fn cluster(&mut self) {
        let study = self.study;
        let path = KeyPath::of(&["on", "kubernetes"]);
        let Some(kubernetes) = &study.on.kubernetes else { return };
        if study.on.compose.is_some() {
            let remedy = "services come from Compose files or from a cluster; remove one";
            self.say(path.clone(), ProblemKind::Contradiction { one: "on.kubernetes", other: "on.compose", remedy });
        }
        if study.network == Some(Network::Own) {
            let remedy = "pods have networks of their own; remove `network`";
            self.say(path.clone(), ProblemKind::Contradiction { one: "network: own", other: "on.kubernetes", remedy });
        }
        let found = usize::from(!kubernetes.manifests.is_empty()) + usize::from(kubernetes.kustomize.is_some());
        if found != 1 {
            let (what, choices) = ("what the cluster is given", "`manifests`, `kustomize`");
            self.say(path.clone(), ProblemKind::NotOne { what, choices, found });
        }
        let of_variants = study.variants.values().flat_map(|variant| &variant.manifests);
        let mut files = kubernetes.manifests.iter().chain(of_variants).chain(&kubernetes.kustomize);
        if files.any(|file| file.trim().is_empty()) {
            self.say(path.clone(), ProblemKind::EmptyManifest);
        }
        self.load_pods(&path.key("load"));
        self.probe(&path, kubernetes);
        let is_own = |service: &Service| service.says_nothing_to_run() || service.workload.is_some();
        // A service without one that says nothing to run is told of by itself.
        if !study.services.values().any(is_own) {
            self.say(path, ProblemKind::ClusterOfNobody);
        }
    }

    /// What probes in the pods cannot do: they read, and move nothing.
    fn probe(&mut self, path: &KeyPath, kubernetes: &Kubernetes) {
        let study = self.study;
        if kubernetes.probe_image.as_deref().is_some_and(|image| image.trim().is_empty()) {
            self.say(path.key("probe_image"), ProblemKind::EmptyImage);
        }
        if kubernetes.probe == ProbeIn::Node {
            return self.needs(path, kubernetes.probe_image.is_some(), "probe_image", "probe: pod");
        }
        let has_cores = study.services.values().any(|service| service.limits.cpuset.is_some());
        let found = [
            ("limits.cpuset", has_cores, "the node says which cores a pod has; remove `cpuset`"),
            (
                "preheat_until: steady",
                study.preheat_until == PreheatUntil::Steady,
                "compilers are watched on the node only; use `preheat_until: time`",
            ),
            (
                "preheat_cpuset: all",
                study.preheat_cpuset == PreheatCpuset::All,
                "threads are moved on the node only; remove `preheat_cpuset`",
            ),
        ];
        for (one, _, remedy) in found.into_iter().filter(|(_, is_given, _)| *is_given) {
            self.say(path.key("probe"), ProblemKind::Contradiction { one, other: "probe: pod", remedy });
        }
    }

    /// Load from other nodes: in turns, and by what can be sent to them.
    fn load_pods(&mut self, path: &KeyPath) {
        let study = self.study;
        let Some(pods) = study.on.kubernetes.as_ref().and_then(|it| it.load.as_ref()) else { return };
        let (load, most) = (&study.load, study.load.max_connections());
        let range = "from 1 to the number of connections";
        self.range(path.key("parts"), (1..=most).contains(&pods.parts), range, pods.parts);
        if pods.image.as_deref().is_some_and(|image| image.trim().is_empty()) {
            self.say(path.key("image"), ProblemKind::EmptyImage);
        }
        if study.design == Some(Design::Separate) {
            let remedy = "load from other nodes alternates between the variants; remove one";
            self.say(path.clone(), ProblemKind::Contradiction { one: "design: separate", other: "load", remedy });
        } else if let Some(reason) = study.why_separate() {
            self.say(path.clone(), ProblemKind::PartsAlternate { reason: reason.to_string() });
        }
        let (script, grpc) = (|| load.script.iter(), load.grpc.as_ref());
        let files = [
            ("load.tls.ca", load.tls.ca.is_some()),
            ("load.tls.client_certificate", load.tls.client_certificate.is_some()),
            ("load.grpc.protos", grpc.is_some_and(|it| !it.protos.is_empty())),
            ("load.grpc.descriptors", grpc.is_some_and(|it| it.descriptors.is_some())),
            ("load.script.requests.body_file", script().flat_map(|it| &it.requests).any(|it| it.body_file.is_some())),
            ("load.script.values.csv", script().flat_map(|it| it.values.values()).any(|it| it.csv.is_some())),
        ];
        for (key, _) in files.into_iter().filter(|(_, is_given)| *is_given) {
            self.say(path.clone(), ProblemKind::FileOfLoad { key });
        }
    }

    fn workload(&mut self, path: &KeyPath, name: &str, service: &Service, text: &str) {
        let study = self.study;
        let here = path.key("workload");
        self.needs(path, study.on.kubernetes.is_none(), "workload", "on.kubernetes");
        match workload(text) {
            None => self.say(here.clone(), ProblemKind::BadWorkload { found: text.to_owned() }),
            Some(("daemonset", _)) if service.replicas != 1 => {
                let remedy = "a DaemonSet has one pod on each node; remove `replicas`";
                self.say(here.clone(), ProblemKind::Contradiction { one: "daemonset", other: "replicas", remedy });
            }
            Some(_) => {}
        }
        let before = study.services.iter().take_while(|(other, _)| *other != name);
        for (other, _) in before.filter(|(_, it)| it.workload.as_deref() == Some(text)) {
            self.say(here.clone(), ProblemKind::WorkloadTwice { workload: text.to_owned(), other: other.clone() });
        }
        let own = [("command", !service.command.is_absent()), ("image", service.image.is_some())];
        let keys = own.into_iter().chain(files::of_service(service));
        self.in_files(path, keys, |key| ProblemKind::InManifests { key });
    }

    /// What a variant changes in the pods of a service.
    fn pods(&mut self, path: &KeyPath, change: &Override, is_workload: bool) {
        if !is_workload {
            self.needs(path, !change.labels.is_empty(), "labels", "workload");
            self.needs(path, !change.annotations.is_empty(), "annotations", "workload");
            return self.needs(path, change.patch.is_some(), "patch", "workload");
        }
        let keys = [("command", change.command.is_some())].into_iter().chain(files::of_change(change));
        self.in_files(path, keys, |key| ProblemKind::InManifests { key });
        if change.image.as_deref().is_some_and(|image| image.trim().is_empty()) {
            self.say(path.key("image"), ProblemKind::EmptyImage);
        }
        for key in change.patch.iter().flat_map(Map::<String, Value>::keys) {
            if !TEMPLATE.contains(&key.as_str()) {
                self.say(path.key("patch").key(key), ProblemKind::NotOfTemplate { key: key.clone() });
            }
        }
    }
}
