//! What is made in a cluster for a study that runs there by itself: a Job of one pod, and a ConfigMap with the files of the study.

use serde_json::{Map, Value, json};

use super::super::restricted::{self, NOBODY};
use super::super::{IMAGE_VARIABLE, JOB_VARIABLE, NAMESPACE};
use super::{COMPONENT, CONTAINER, JOB, MANAGED_BY, NODE, OF_STUDY, PROGRAM, RESULTS, STUDY, UNLADEN};

/// What the files of a study may take together: no object of a cluster may be larger.
pub const MAX_BYTES: usize = 1 << 20;
/// A pod that was killed is started again so often, to delete what the study had in the cluster and to go on.
const RETRIES: u32 = 3;
/// What has ended is deleted by the cluster after this time, seconds.
const KEPT_S: u32 = 600;
/// A pod that is to end has so long to delete what the study has in the cluster, seconds.
const GRACE_S: u32 = 150;
/// Longest name of a file.
const LONGEST_KEY: usize = 200;

/// A file of a study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyFile {
    /// Where it is, from a folder that holds all of them: `deploy/shop.yaml`.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// A study that is to run in a cluster by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct JobOrder {
    /// Name of the Job, and of all that is made for it.
    pub name: String,
    /// Name of the study.
    pub study: String,
    /// Image with this executable.
    pub image: String,
    /// The node to run on; `None`: one that the scheduler takes.
    pub node: Option<String>,
    /// What the pod is told after its program's name.
    pub args: Vec<String>,
    /// The files of the study.
    pub files: Vec<StudyFile>,
    /// Whether its pod reads the processes of other pods; else it needs no right on the node.
    pub is_privileged: bool,
}

impl JobOrder {
    /// The Job and the ConfigMap, in this order.
    #[must_use]
    pub fn objects(&self) -> [Value; 2] {
        let keys = self.keys();
        let items: Vec<Value> =
            keys.iter().zip(&self.files).map(|(key, file)| json!({"key": key, "path": file.path})).collect();
        let data: Map<String, Value> =
            keys.iter().zip(&self.files).map(|(key, file)| (key.clone(), json!(file.text))).collect();
        let mut mounts = vec![
            json!({"name": "study", "mountPath": STUDY, "readOnly": true}),
            json!({"name": "results", "mountPath": RESULTS}),
        ];
        let mut volumes = vec![
            json!({"name": "study", "configMap": {"name": self.name, "items": items}}),
            json!({"name": "results", "emptyDir": {}}),
        ];
        let mut security = restricted::container();
        if self.is_privileged {
            security = json!({"privileged": true, "readOnlyRootFilesystem": true, "runAsUser": 0});
            // A container sees its own control group only.
            mounts.push(json!({"name": "cgroup", "mountPath": "/sys/fs/cgroup"}));
            volumes.push(json!({"name": "cgroup", "hostPath": {"path": "/sys/fs/cgroup", "type": "Directory"}}));
        }
        let mut pod = json!({
            "serviceAccountName": UNLADEN,
            "restartPolicy": "OnFailure",
            "terminationGracePeriodSeconds": GRACE_S,
            "containers": [{
                "name": CONTAINER,
                "image": self.image,
                "imagePullPolicy": "IfNotPresent",
                "command": [PROGRAM],
                "args": self.args,
                "env": [
                    {"name": JOB_VARIABLE, "value": self.name},
                    {"name": IMAGE_VARIABLE, "value": self.image},
                    {"name": NODE, "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                ],
                // Without a request the load would be the first to wait, and the pod the first to be ended.
                "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
                "securityContext": security,
                "volumeMounts": mounts,
            }],
            "volumes": volumes,
        });
        if self.is_privileged {
            // The processes of the other pods of the node: whose CPU time is read, and whose networks are entered.
            pod["hostPID"] = json!(true);
        } else {
            pod["securityContext"] = restricted::pod();
            // The volumes are nobody's, too.
            pod["securityContext"]["runAsGroup"] = json!(NOBODY);
            pod["securityContext"]["fsGroup"] = json!(NOBODY);
        }
        if let Some(node) = &self.node {
            let fields = json!([{"key": "metadata.name", "operator": "In", "values": [node]}]);
            let terms = json!({"nodeSelectorTerms": [{"matchFields": fields}]});
            pod["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
        }
        let job = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": self.metadata(),
            "spec": {
                "backoffLimit": RETRIES,
                "ttlSecondsAfterFinished": KEPT_S,
                "template": {"metadata": {"labels": self.labels()}, "spec": pod},
            },
        });
        let files = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": self.metadata(), "immutable": true, "data": data});
        [job, files]
    }

    fn labels(&self) -> Value {
        json!({MANAGED_BY: UNLADEN, COMPONENT: "study", JOB: self.name})
    }

    fn metadata(&self) -> Value {
        let annotations = json!({OF_STUDY: self.study});
        json!({"name": self.name, "namespace": NAMESPACE, "labels": self.labels(), "annotations": annotations})
    }

    /// What each file is called in the ConfigMap: letters, digits, `-`, `_` and `.`, no name twice.
    fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = Vec::new();
        for file in &self.files {
            let allowed = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
            let plain: String = file.path.chars().map(allowed).take(LONGEST_KEY).collect();
            let numbered = (2..).map(|number: u32| format!("{plain}.{number}"));
            let free = std::iter::once(plain.clone()).chain(numbered).find(|key| !keys.contains(key));
            keys.extend(free);
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_keys_of_their_own_and_come_back_to_their_places() {
        let file = |path: &str| StudyFile { path: path.to_owned(), text: path.to_owned() };
        let order = JobOrder {
            name: "shop-1".to_owned(),
            study: "shop".to_owned(),
            image: "unladen:1".to_owned(),
            node: None,
            args: Vec::new(),
            files: vec![file("a/b.yaml"), file("a b.yaml"), file("a_b.yaml")],
            is_privileged: true,
        };
        let [job, files] = order.objects();
        let items = job["spec"]["template"]["spec"]["volumes"][0]["configMap"]["items"].as_array().expect("a list");
        for (item, file) in items.iter().zip(&order.files) {
            assert_eq!(item["path"], json!(file.path));
            assert_eq!(files["data"][item["key"].as_str().expect("a key")], json!(file.text));
        }
        assert_eq!(order.keys(), ["a_b.yaml", "a_b.yaml.2", "a_b.yaml.3"]);
        assert!(job["spec"]["template"]["spec"].get("affinity").is_none());
    }

    #[test]
    fn a_pod_that_asks_probes_has_no_right_on_the_node() {
        let order = |is_privileged| JobOrder {
            name: "shop-1".to_owned(),
            study: "shop".to_owned(),
            image: "unladen:1".to_owned(),
            node: None,
            args: Vec::new(),
            files: Vec::new(),
            is_privileged,
        };
        let pod = |is_privileged| order(is_privileged).objects()[0]["spec"]["template"]["spec"].clone();
        let (on_the_node, in_pods) = (pod(true), pod(false));
        assert_eq!((&on_the_node["hostPID"], &in_pods["hostPID"]), (&json!(true), &Value::Null));
        assert_eq!(on_the_node["containers"][0]["securityContext"]["privileged"], json!(true));
        assert_eq!(in_pods["containers"][0]["securityContext"]["capabilities"], json!({"drop": ["ALL"]}));
        assert_eq!(in_pods["securityContext"]["runAsNonRoot"], json!(true));
        let paths = |pod: &Value| pod["volumes"].to_string().contains("hostPath");
        assert!(paths(&on_the_node) && !paths(&in_pods));
    }
}
