//! What the cluster says of a study: its Job, and the pod of that.

use serde_json::Value;

use super::{CONTAINER, JOB, OF_STUDY, text};

/// Reasons for which a container never starts, or not without somebody's help.
const HOPELESS: [&str; 6] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
];

/// A study, as the cluster sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobStatus {
    /// Name of the Job.
    pub name: String,
    /// Name of its study.
    pub study: String,
    /// When it was given to the cluster.
    pub created: String,
    /// Whether its Job has ended.
    pub is_over: bool,
    /// Its pod; `None`: there is none yet, or no longer.
    pub pod: Option<String>,
    /// The node of that.
    pub node: Option<String>,
    /// Whether the container runs.
    pub runs: bool,
    /// How often the container was started again.
    pub restarts: u64,
    /// Why the pod does not run yet, if the cluster says so.
    pub waits: Option<Waiting>,
}

/// Why a pod does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// In the words of the cluster.
    pub said: String,
    /// Whether it would wait for ever.
    pub is_hopeless: bool,
}

impl JobStatus {
    /// From a Job, and from all pods of studies.
    pub(super) fn of(job: &Value, pods: &[Value]) -> Self {
        let words = |object: &Value, pointer: &str| text(object, pointer).map(str::to_owned);
        let of_job = |pointer: &str| words(job, pointer).unwrap_or_default();
        let name = of_job("/metadata/name");
        let label = format!("/metadata/labels/{JOB}");
        let is_own = |pod: &&Value| text(pod, &label) == Some(&name);
        // Of one that goes and the one in its place, the latter.
        let age = |pod: &&Value| {
            (pod.pointer("/metadata/deletionTimestamp").is_none(), words(pod, "/metadata/creationTimestamp"))
        };
        let has_ended = |pod: &&Value| matches!(text(pod, "/status/phase"), Some("Failed" | "Succeeded"));
        let pod = pods.iter().filter(is_own).filter(|pod| !has_ended(pod)).max_by_key(age);
        let status = pod.and_then(|pod| {
            let all = pod.pointer("/status/containerStatuses")?.as_array()?;
            all.iter().find(|it| text(it, "/name") == Some(CONTAINER))
        });
        Self {
            study: of_job(&format!("/metadata/annotations/{OF_STUDY}")),
            created: of_job("/metadata/creationTimestamp"),
            is_over: is_so(job, "Complete", "True").is_some() || is_so(job, "Failed", "True").is_some(),
            pod: pod.and_then(|pod| words(pod, "/metadata/name")),
            node: pod.and_then(|pod| words(pod, "/spec/nodeName")),
            runs: status.is_some_and(|it| it.pointer("/state/running").is_some()),
            restarts: status.and_then(|it| it.pointer("/restartCount")?.as_u64()).unwrap_or_default(),
            waits: status.and_then(waiting).or_else(|| pod.and_then(unscheduled)),
            name,
        }
    }
}

/// The condition of an object, if it is so.
fn is_so<'v>(object: &'v Value, kind: &str, status: &str) -> Option<&'v Value> {
    let is_it = |it: &&Value| (text(it, "/type"), text(it, "/status")) == (Some(kind), Some(status));
    object.pointer("/status/conditions")?.as_array()?.iter().find(is_it)
}

fn waiting(container: &Value) -> Option<Waiting> {
    let reason = text(container, "/state/waiting/reason")?;
    let is_hopeless = HOPELESS.contains(&reason);
    // What every pod goes through.
    if reason == "ContainerCreating" || reason == "PodInitializing" {
        return None;
    }
    let message = text(container, "/state/waiting/message").map(|message| format!(": {message}"));
    Some(Waiting { said: format!("{reason}{}", message.unwrap_or_default()), is_hopeless })
}

fn unscheduled(pod: &Value) -> Option<Waiting> {
    let condition = is_so(pod, "PodScheduled", "False")?;
    Some(Waiting { said: text(condition, "/message").unwrap_or_default().to_owned(), is_hopeless: false })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(condition: &str) -> Value {
        let metadata = json!({"name": "shop-1", "annotations": {"unladen.study": "shop"}});
        json!({"metadata": metadata, "status": {"conditions": [{"type": condition, "status": "True"}]}})
    }

    fn pod(name: &str, created: &str, status: Value) -> Value {
        let metadata = json!({"name": name, "labels": {"unladen.job": "shop-1"}, "creationTimestamp": created});
        json!({"metadata": metadata, "spec": {"nodeName": "n"}, "status": status})
    }

    fn container(state: Value) -> Value {
        json!({"containerStatuses": [{"name": "other", "state": {}}, {"name": "unladen", "restartCount": 2, "state": state}]})
    }

    #[test]
    fn of_several_pods_the_one_that_lives_counts() {
        let mut going = pod("b", "2026-01-03", container(json!({"running": {}})));
        going["metadata"]["deletionTimestamp"] = json!("2026-01-04");
        let failed = pod("d", "2026-01-05", json!({"phase": "Failed"}));
        let pods = [pod("a", "2026-01-02", container(json!({"running": {}}))), going, failed];
        let status = JobStatus::of(&job("Suspended"), &pods);
        assert_eq!(
            (status.pod.as_deref(), status.node.as_deref(), status.study.as_str()),
            (Some("a"), Some("n"), "shop")
        );
        assert_eq!((status.runs, status.restarts, status.waits, status.is_over), (true, 2, None, false));
        let status = JobStatus::of(&job("Failed"), &[]);
        assert_eq!((status.pod, status.is_over), (None, true));
    }

    #[test]
    fn why_a_pod_waits_is_told() {
        let waits = |status: Value| JobStatus::of(&job(""), &[pod("a", "", status)]).waits;
        let waiting =
            |reason: &str| waits(container(json!({"waiting": {"reason": reason, "message": "no such image"}})));
        let said = "ImagePullBackOff: no such image".to_owned();
        assert_eq!(waiting("ImagePullBackOff"), Some(Waiting { said, is_hopeless: true }));
        assert!(waiting("CrashLoopBackOff").is_some_and(|waits| !waits.is_hopeless));
        assert_eq!(waiting("ContainerCreating"), None);
        let conditions = json!([{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]);
        let said = "0/3 nodes are available".to_owned();
        assert_eq!(waits(json!({"conditions": conditions})), Some(Waiting { said, is_hopeless: false }));
    }
}
