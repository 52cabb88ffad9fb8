//! Studies that run in a cluster by themselves: a Job of one privileged pod on the node of the subject runs this very executable there
//! (`job`), is watched (`status`), told to stop and asked for its results from afar, and leaves nothing ([`Jobs::clean`]).
//!
//! What runs in the pod is `unladen`'s business: here it is a command with arguments.

mod clean;
mod job;
mod status;

use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

pub use clean::Clean;
pub use job::{JobOrder, MAX_BYTES, StudyFile};
pub use status::{JobStatus, Waiting};

use super::api::{Api, Failure, events, items, name, nodes, text};
use super::config::Cluster;
use super::error::KubernetesError;
pub use super::local::{files as manifests, kustomize};
use super::logs;
use super::owner::{self, JOB, MANAGED_BY, OWNER, UNLADEN};
use super::{NAMESPACE, PROGRAM};

/// What part of a whole an object is, in a label that many tools know.
const COMPONENT: &str = "app.kubernetes.io/component";
/// Annotation with the name of the study.
const OF_STUDY: &str = "unladen.study";
/// Name of the container.
const CONTAINER: &str = "unladen";
/// A log that says nothing for so long is asked for again.
const SILENCE: Duration = Duration::from_secs(60);
/// Folder of the study's files in the pod.
pub const STUDY: &str = "/study";
/// Folder in the pod that lives as long as the pod.
pub const RESULTS: &str = "/results";
pub use super::NODE;

/// The studies that run in a cluster by themselves.
#[derive(Debug)]
pub struct Jobs {
    api: Arc<Api>,
}

fn jobs() -> String {
    format!("/apis/batch/v1/namespaces/{NAMESPACE}/jobs")
}

fn core(plural: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/{plural}")
}

/// `path` for those alone that unladen has made, and for a Job if one is named.
fn own(path: &str, job: Option<&str>) -> String {
    let of_job = job.map(|job| format!("%2C{JOB}%3D{job}")).unwrap_or_default();
    format!("{path}?labelSelector={}%3D{UNLADEN}{of_job}", MANAGED_BY.replace('/', "%2F"))
}

impl Jobs {
    /// Of the cluster of a context of the kubeconfig, or of the one that this pod is in.
    ///
    /// # Errors
    /// There is no such context, or it cannot be used. Nothing is asked yet.
    pub fn open(context: Option<&str>) -> Result<Self, KubernetesError> {
        Ok(Self { api: Arc::new(Api::open(Cluster::find(context)?)?) })
    }

    /// Address of the API server.
    #[must_use]
    pub fn server(&self) -> &str {
        self.api.server()
    }

    fn failed(&self, what: &str) -> impl Fn(Failure) -> KubernetesError {
        move |failure| match failure {
            // It is there, but not itself: as after a restart.
            Failure::Refused(429 | 500.., said) => Failure::Silence(said).when(&self.api, what),
            other => other.when(&self.api, what),
        }
    }

    /// Gives a study to the cluster. Its files belong to its Job, and go with that.
    ///
    /// # Errors
    /// The cluster refuses. Nothing is left then.
    pub fn create(&self, order: &JobOrder) -> Result<(), KubernetesError> {
        let [job, mut files] = order.objects();
        let job = self.api.post(&jobs(), &job).map_err(|failure| match failure {
            Failure::Refused(404, _) => KubernetesError::NotPrepared { server: self.api.server().to_owned() },
            other => other.when(&self.api, "create a Job"),
        })?;
        let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": order.name, "uid": job["metadata"]["uid"]});
        files["metadata"]["ownerReferences"] = json!([owner]);
        self.api.post(&core("configmaps"), &files).map(drop).map_err(|failure| {
            // The first error is the one to tell.
            let _ = self.delete(&order.name);
            failure.when(&self.api, "create a ConfigMap")
        })
    }

    /// All studies that the cluster knows, the oldest first.
    ///
    /// # Errors
    /// The cluster does not say.
    pub fn list(&self) -> Result<Vec<JobStatus>, KubernetesError> {
        let all = self.api.get(&own(&jobs(), None)).map_err(self.failed("list the Jobs"))?;
        let pods = self.pods(None)?;
        let mut all: Vec<JobStatus> = items(&all).iter().map(|job| JobStatus::of(job, &pods)).collect();
        all.sort_by(|one, other| (&one.created, &one.name).cmp(&(&other.created, &other.name)));
        Ok(all)
    }

    /// How a study is; `None`: there is no such study.
    ///
    /// # Errors
    /// The cluster does not say.
    pub fn status(&self, name: &str) -> Result<Option<JobStatus>, KubernetesError> {
        match self.api.get(&format!("{}/{name}", jobs())) {
            Ok(job) => Ok(Some(JobStatus::of(&job, &self.pods(Some(name))?))),
            Err(failure) if failure.is_absence() => Ok(None),
            Err(failure) => Err(self.failed("look at a Job")(failure)),
        }
    }

    fn pods(&self, job: Option<&str>) -> Result<Vec<Value>, KubernetesError> {
        let list = self.api.get(&own(&core("pods"), job)).map_err(self.failed("list the pods"))?;
        Ok(items(&list).to_vec())
    }

    /// Why a Job has no pod, if the cluster says so.
    #[must_use]
    pub fn creation_failure(&self, name: &str) -> Option<String> {
        let path = format!("{}?fieldSelector=involvedObject.name%3D{name}", core("events"));
        let failed = |event: &&super::api::Event| event.reason == "FailedCreate";
        events(&self.api, &path).iter().rev().find(failed).map(|event| event.message.clone())
    }

    /// The end of what a pod has said.
    ///
    /// # Errors
    /// The cluster does not say.
    pub fn last_line(&self, pod: &str) -> Result<String, KubernetesError> {
        let path = format!("{}/{pod}/log?container={CONTAINER}&tailLines=1", core("pods"));
        self.api.text(&path).map(|text| text.trim().to_owned()).map_err(self.failed("read a log"))
    }

    /// Follows what a pod says for as long as `goes_on`, over restarts and broken connections; what it returns ends then.
    pub fn follow(
        &self,
        pod: &str,
        goes_on: impl Fn() -> bool + Send + 'static,
        out: impl Write + Send + 'static,
    ) -> mpsc::Receiver<()> {
        let (tell, ended) = mpsc::sync_channel(1);
        logs::follow(
            &self.api,
            format!("{}/{pod}/log?container={CONTAINER}", core("pods")),
            goes_on,
            SILENCE,
            out,
            tell,
        );
        ended
    }

    /// Runs this executable in a pod. What it prints goes to `out`.
    ///
    /// # Errors
    /// It fails, or the connection breaks off.
    pub fn exec(&self, pod: &str, arguments: &[&str], out: impl Write + Send + 'static) -> Result<(), KubernetesError> {
        let command = [&[PROGRAM], arguments].concat();
        let failed = |failure: Failure| failure.when(&self.api, "run a command in a pod");
        self.api.exec((NAMESPACE, pod, CONTAINER), &command, out).map_err(failed)
    }

    /// Deletes the Job of a study and what belongs to it. One that has gone is fine.
    ///
    /// # Errors
    /// The cluster refuses.
    pub fn delete(&self, name: &str) -> Result<(), KubernetesError> {
        let job = format!("{}/{name}?propagationPolicy=Background", jobs());
        // What was applied by hand belongs to no Job.
        for path in [job, format!("{}/{name}", core("configmaps"))] {
            match self.api.delete(&path) {
                Err(failure) if !failure.is_absence() => return Err(failure.when(&self.api, "delete a Job")),
                _ => {}
            }
        }
        Ok(())
    }
}
