//! What can go wrong with a cluster, each with what to do about it.

use std::io;
use std::path::PathBuf;

use super::super::ended::Ended;
use super::NAMESPACE;
use super::workload::Workload;

/// Why the workloads of a study do not run in a cluster.
#[derive(Debug, thiserror::Error)]
pub enum KubernetesError {
    /// This build cannot.
    #[error("this unladen was built without Kubernetes. Install a released one, or build it with `make build`")]
    LeftOut,
    /// Nothing says where the cluster is.
    #[error("there is no kubeconfig at {looked}. Set KUBECONFIG to the file that tells where the cluster is")]
    NoKubeconfig {
        /// Where it was looked for.
        looked: String,
    },
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig cannot be used: {reason}. Does `kubectl get namespaces` work?")]
    Kubeconfig {
        /// Why.
        reason: String,
    },
    /// The kubeconfig has no such context.
    #[error(
        "the kubeconfig has no context `{context}`; it has: {known}. Correct `on.kubernetes.context`, or set KUBECONFIG"
    )]
    NoContext {
        /// As in the study.
        context: String,
        /// What it has.
        known: String,
    },
    /// The API server does not answer.
    #[error("the API server of the cluster does not answer at {server}: {error}. Does `kubectl get namespaces` work?")]
    Unreachable {
        /// Its address.
        server: String,
        /// What went wrong.
        error: String,
    },
    /// The user of the kubeconfig may not do something.
    #[error(
        "the API server does not let unladen {what}: {said}. `unladen doctor STUDY` names the rights that are missing, and prints a role with them for an administrator to apply; deploy/kubernetes/role.yaml has the usual ones, user.yaml beside it those of `--in-cluster`, `fetch` and `clean`"
    )]
    Denied {
        /// What it was asked for.
        what: String,
        /// Its words.
        said: String,
    },
    /// The API server refused.
    #[error("the API server refused to {what}: {said}. Correct it and try it with `kubectl apply --dry-run=server`")]
    Refused {
        /// What it was asked for.
        what: String,
        /// Its words.
        said: String,
    },
    /// A workload that is to be imported is not in the cluster.
    #[error(
        "there is no {workload} in the namespace `{namespace}`; it has {known}. Correct the name, or say where it is with --namespace"
    )]
    NotLive {
        /// What was asked for.
        workload: Workload,
        /// Where.
        namespace: String,
        /// What there is of its kind.
        known: String,
    },
    /// A workload that is to be imported may not be read.
    #[error(
        "{workload} in the namespace `{namespace}` may not be read: {said}. Use an account with the right to `get` it; `kubectl auth can-i --list -n {namespace}` lists yours"
    )]
    Unread {
        /// What was asked for.
        workload: Workload,
        /// Where.
        namespace: String,
        /// What the API server says.
        said: String,
    },
    /// A file of manifests cannot be read or is wrong.
    #[error("{}: {reason}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// Kustomize did not do what it was asked for.
    #[error("`kubectl kustomize {}` failed: {said}", path.display())]
    Kustomize {
        /// The folder.
        path: PathBuf,
        /// Its own words, or what to install.
        said: String,
    },
    /// An object that cannot be in a study.
    #[error("{object} in {} {reason}", path.display())]
    Unfit {
        /// Kind and name.
        object: String,
        /// The file.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// A workload of the study that is not in the manifests.
    #[error(
        "the service {service} is `{workload}`, which the manifests do not have; they have: {known}. Correct `services.{service}.workload`"
    )]
    NoWorkload {
        /// Service.
        service: String,
        /// As in the study.
        workload: Workload,
        /// What there is.
        known: String,
    },
    /// A pod with several containers, or without the one that is named.
    #[error(
        "{workload} (service {service}) has the containers {known}. Say which one the service is: `services.{service}.container`"
    )]
    WhichContainer {
        /// Service.
        service: String,
        /// Its workload.
        workload: Workload,
        /// What there is.
        known: String,
    },
    /// Something would change the number of pods or their resources in a round.
    #[error(
        "{autoscaler} scales {workload} (service {service}) while it is measured, so the variants would differ. Remove it from the manifests, and set `replicas` or `limits` in the study"
    )]
    Autoscaled {
        /// Service.
        service: String,
        /// Its workload.
        workload: Workload,
        /// Kind and name of the autoscaler.
        autoscaler: String,
    },
    /// No pod was made for a workload.
    #[error(
        "no pod was made for {workload} (service {service}): {said}. Correct the manifests, or the quota or policy that it names"
    )]
    NoPods {
        /// Service.
        service: String,
        /// Its workload.
        workload: String,
        /// What the cluster says.
        said: String,
    },
    /// A pod finds no node.
    #[error(
        "{workload} (service {service}) cannot be scheduled: {said}. All variants of a round are alive at the same time: lower `resources.requests` in the manifests, or use `design: separate`"
    )]
    Unschedulable {
        /// Service.
        service: String,
        /// Its workload.
        workload: String,
        /// What the scheduler says.
        said: String,
    },
    /// An image is not there.
    #[error(
        "the image `{image}` of {workload} (service {service}) is not on the node and was not pulled: {said}. Correct its name, or load it into the node first"
    )]
    NoImage {
        /// Service.
        service: String,
        /// Its workload.
        workload: String,
        /// Name of the image.
        image: String,
        /// What the kubelet says.
        said: String,
    },
    /// The node has ended a pod.
    #[error(
        "a pod of {workload} (service {service}) was evicted or killed by its node: {said}. Free resources on the node, or make the pods of a round use less"
    )]
    Failed {
        /// Service.
        service: String,
        /// Its workload.
        workload: String,
        /// What the node says.
        said: String,
    },
    /// A container could not be started.
    #[error(
        "the container `{container}` of {workload} (service {service}) cannot be started: {said}. Correct the manifest, the `patch` or the image"
    )]
    NotStarted {
        /// Service.
        service: String,
        /// Its workload.
        workload: String,
        /// Its name.
        container: String,
        /// What the kubelet says.
        said: String,
    },
    /// A container ended while the others were started.
    #[error(
        "the container `{container}` of {workload} (service {service}) ended as soon as it was started ({ended}). Correct its command, environment or limits. The end of its log ({}):\n{log_tail}", log.display()
    )]
    Ended {
        /// Service.
        service: String,
        /// Its workload.
        workload: String,
        /// Its name.
        container: String,
        /// How.
        ended: Ended,
        /// Where its log is.
        log: PathBuf,
        /// Its last lines.
        log_tail: String,
    },
    /// It took too long.
    #[error(
        "the cluster did not start all pods within {seconds} s: {waiting}. Raise `ready.timeout` of a service if they need longer"
    )]
    Late {
        /// How long it had.
        seconds: u64,
        /// What is missing, and why if that is known.
        waiting: String,
    },
    /// There is no node for the load.
    #[error(
        "the load (`on.kubernetes.load`) needs a node that is not {subject}, where the services are: {said}. Correct `on.kubernetes.load.nodes`, add a node, or remove `on.kubernetes.load`"
    )]
    NoLoadNode {
        /// Node of the services.
        subject: String,
        /// What there is.
        said: String,
    },
    /// The pods of the load do not run.
    #[error("the pods of the load (`on.kubernetes.load`) do not run: {said}")]
    NoLoad {
        /// Why.
        said: String,
    },
    /// Pods could not reach this process.
    #[error(
        "this machine has no address at which pods of the cluster at {server} could reach the span sink (`on.kubernetes.probe: pod`): let the study run there with `unladen run --in-cluster`"
    )]
    NoAddress {
        /// Its API server.
        server: String,
    },
    /// The probe of a pod does not run.
    #[error("the probe in the pods of {workload} (service {service}; `on.kubernetes.probe: pod`) does not run: {said}")]
    NoProbe {
        /// Service.
        service: String,
        /// Its workload.
        workload: String,
        /// Why.
        said: String,
    },
    /// The nodes are other machines.
    #[error(
        "no node of the cluster at {server} is this machine (its nodes: {known}): the CPU time of pods cannot be read from here. Let it run there with `unladen run --in-cluster`, or run it on a node, as root, with a kubeconfig of the cluster"
    )]
    Elsewhere {
        /// Its API server.
        server: String,
        /// Names of its nodes.
        known: String,
    },
    /// The kubelet has given a pod other cores.
    #[error(
        "{workload} (service {service}) is to be on the cores {wanted}, but the kubelet has given it {allowed} ({said}). Let unladen's own parts have other cores, take whole CPUs out of its `resources`, or run the kubelet without the static CPU manager"
    )]
    Cores {
        /// Service.
        service: String,
        /// Its workload.
        workload: String,
        /// Its cores by the study.
        wanted: String,
        /// Where it is.
        allowed: String,
        /// What the system said.
        said: String,
    },
    /// The processes of a pod are not to be seen, although the node is this machine.
    #[error(
        "the processes of {workload} (service {service}) cannot be seen: run unladen as root, and in the process namespace of the machine (`--pid host` for a container)"
    )]
    Unseen {
        /// Service.
        service: String,
        /// Its workload.
        workload: String,
    },
    /// Its network cannot be entered.
    #[error(
        "the network namespace of {workload} (service {service}) cannot be entered ({source}); the load and the span sink need it. Run unladen as root"
    )]
    Network {
        /// Service.
        service: String,
        /// Its workload.
        workload: String,
        /// What the system said.
        source: io::Error,
    },
    /// The cluster has never heard of unladen.
    #[error(
        "the cluster at {server} has no namespace `{NAMESPACE}`, which `run --in-cluster` needs: ask an administrator to apply deploy/kubernetes/role.yaml and user.yaml beside it"
    )]
    NotPrepared {
        /// Its API server.
        server: String,
    },
    /// Namespaces that could not be deleted.
    #[error("the namespaces {names} are still in the cluster: {said}. Delete them: `kubectl delete namespace {names}`")]
    Left {
        /// Their names.
        names: String,
        /// Why.
        said: String,
    },
    /// No runtime for the conversation with the API server.
    #[error("cannot speak with the API server: {source}")]
    Runtime {
        /// What the system said.
        source: io::Error,
    },
}
