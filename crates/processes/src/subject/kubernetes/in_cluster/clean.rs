//! What dead studies have left in a cluster is deleted. What is in use stays.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::super::error::KubernetesError;
use super::super::local::delete;
use super::owner::{Owner, State};
use super::{JOB, Jobs, OWNER, UNLADEN, core, items, name, nodes, own, text};

/// A namespace is gone so long after its deletion has begun, mostly after some seconds.
const GONE: Duration = Duration::from_secs(90);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// What was deleted, and what was left, each with the reason.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Clean {
    /// Gone, or going.
    pub deleted: Vec<String>,
    /// In use, or perhaps in use.
    pub left: Vec<String>,
}

impl Jobs {
    /// Deletes everything that unladen has made in the cluster and that no live study owns.
    ///
    /// # Errors
    /// The cluster refuses.
    pub fn clean(&self) -> Result<Clean, KubernetesError> {
        // Namespaces first: the Job of a namespace that is listed was there before it.
        let namespaces = self.namespaces(None)?;
        let files = self.api.get(&own(&core("configmaps"), None)).map_err(self.failed("list the ConfigMaps"))?;
        let nodes = nodes(&self.api).map_err(self.failed("list the nodes"))?;
        let boots: Vec<&str> = nodes.iter().filter_map(|node| text(node, "/status/nodeInfo/bootID")).collect();
        let jobs = self.list()?;
        let is_live = |name: &str| jobs.iter().any(|job| job.name == name && !job.is_over);
        let mut clean = Clean::default();
        let mut going = Vec::new();
        for namespace in namespaces.iter().filter(|it| name(it) != UNLADEN) {
            let name = name(namespace);
            match whose(namespace, is_live, &boots) {
                Ok(()) => {
                    self.begin_to_delete(name)?;
                    going.push(namespace);
                    clean.deleted.push(format!("namespace {name}"));
                }
                Err(owner) => clean.left.push(format!("namespace {name}: {owner}")),
            }
        }
        for job in &jobs {
            if job.is_over {
                self.delete(&job.name)?;
                clean.deleted.push(format!("study {}", job.name));
            } else {
                clean.left.push(format!("study {0}: it runs, or waits for `unladen fetch {0}`", job.name));
            }
        }
        for name in items(&files).iter().map(name).filter(|name| jobs.iter().all(|job| job.name != *name)) {
            self.delete(name)?;
            clean.deleted.push(format!("files of the study {name}"));
        }
        self.wait_until_gone(&going)?;
        Ok(clean)
    }

    /// Deletes the namespaces of a study and waits until they have gone; returns how many there were.
    ///
    /// # Errors
    /// The cluster refuses, or they do not go.
    pub fn sweep(&self, job: &str) -> Result<usize, KubernetesError> {
        let namespaces = self.namespaces(Some(job))?;
        for namespace in &namespaces {
            self.begin_to_delete(name(namespace))?;
        }
        self.wait_until_gone(&namespaces.iter().collect::<Vec<_>>())?;
        Ok(namespaces.len())
    }

    fn namespaces(&self, job: Option<&str>) -> Result<Vec<Value>, KubernetesError> {
        let list = self.api.get(&own("/api/v1/namespaces", job)).map_err(self.failed("list the namespaces"))?;
        Ok(items(&list).to_vec())
    }

    fn begin_to_delete(&self, namespace: &str) -> Result<(), KubernetesError> {
        match delete(&self.api, namespace) {
            Err(failure) if !failure.is_absence() => Err(failure.when(&self.api, "delete a namespace")),
            _ => Ok(()),
        }
    }

    /// Waits until namespaces whose deletion has begun have gone.
    fn wait_until_gone(&self, going: &[&Value]) -> Result<(), KubernetesError> {
        let is_same = |one: &Value, other: &Value| text(one, "/metadata/uid") == text(other, "/metadata/uid");
        let deadline = Instant::now() + GONE;
        let mut left = going.to_vec();
        loop {
            if !left.is_empty() {
                let there = self.namespaces(None)?;
                left.retain(|it| there.iter().any(|other| is_same(it, other)));
            }
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let names = left.into_iter().map(name).collect::<Vec<_>>().join(" ");
                let said = format!("their deletion has not ended after {} s", GONE.as_secs());
                return Err(KubernetesError::Left { names, said });
            }
            thread::sleep(PAUSE);
        }
    }
}

/// Whose a namespace is; `Ok`: nobody's any more.
fn whose(namespace: &Value, is_live: impl Fn(&str) -> bool, boots: &[&str]) -> Result<(), String> {
    if let Some(job) = text(namespace, &format!("/metadata/labels/{JOB}")) {
        return if is_live(job) { Err(format!("the study {job} has it")) } else { Ok(()) };
    }
    let owner = text(namespace, &format!("/metadata/annotations/{OWNER}")).and_then(|it| it.parse::<Owner>().ok());
    match owner.map(|owner| owner.state(boots)) {
        Some(State::Gone) => Ok(()),
        Some(State::Alive) => Err("a study on this machine has it".to_owned()),
        Some(State::Elsewhere) => {
            Err("a study on another machine may have it: run `unladen clean` there, or delete it by yourself"
                .to_owned())
        }
        None => Err("it does not say whose it is: delete it by yourself".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_namespace_is_its_runs_or_its_process_or_nobodys() {
        let of_job = json!({"metadata": {"labels": {"unladen.job": "shop-1"}}});
        assert!(whose(&of_job, |job| job == "shop-1", &[]).expect_err("in use").contains("shop-1"));
        assert_eq!(whose(&of_job, |_| false, &[]), Ok(()));
        let of_process = |owner: &str| json!({"metadata": {"annotations": {"unladen.owner": owner}}});
        let me = of_process(&Owner::of_this_process().to_string());
        assert!(whose(&me, |_| false, &[]).expect_err("in use").contains("this machine"));
        let before = of_process("earlier-boot pid:[1] 7 8");
        assert_eq!(whose(&before, |_| false, &["this-boot"]), Ok(()));
        let boots = ["earlier-boot"];
        assert!(whose(&before, |_| false, &boots).expect_err("perhaps").contains("another machine"));
        assert!(whose(&json!({}), |_| true, &[]).expect_err("nobody knows").contains("whose"));
    }
}
