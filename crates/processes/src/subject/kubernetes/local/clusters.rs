//! What a study has in clusters: conversations, one per context, and namespaces that are to be deleted, by unladen or, when it is killed, by
//! its guard.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::api::{Api, Failure, items};
use super::config::Cluster;
use super::error::KubernetesError;
use super::job_of_this_pod;
use super::owner::{JOB, MANAGED_BY, OWNER, Owner, UNLADEN};
use crate::subject::guard::Guard;

/// A namespace is gone so long after its deletion has begun, mostly after some seconds.
const GONE: Duration = Duration::from_secs(90);
/// The guard asks so long whether the API server is back.
const AWAY: Duration = Duration::from_secs(600);
/// What unladen asked for with its last breath is there after this time.
const SETTLING: Duration = Duration::from_millis(500);
/// Between two questions.
const PAUSE: Duration = Duration::from_millis(200);
/// The same of a server that does not answer.
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// A namespace that is to be deleted.
type Namespace = (Arc<Api>, String);

/// Conversations by context, each with the number by which the guard knows it.
type Contexts = BTreeMap<Option<String>, (usize, Arc<Api>)>;

/// What a study has in clusters.
#[derive(Debug, Default)]
pub(in crate::subject) struct Clusters {
    known: Mutex<Contexts>,
    namespaces: Mutex<Vec<Namespace>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn path(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}")
}

impl Clusters {
    /// The conversation with the cluster of a context, and the number by which the guard knows it.
    pub(super) fn api(&self, context: Option<&str>, guard: &Guard) -> Result<(usize, Arc<Api>), KubernetesError> {
        let mut known = lock(&self.known);
        if let Some((number, api)) = known.get(&context.map(str::to_owned)) {
            return Ok((*number, Arc::clone(api)));
        }
        let api = Arc::new(Api::open(Cluster::find(context)?)?);
        let number = known.len();
        guard.cluster(number, &api.cluster().line()?);
        known.insert(context.map(str::to_owned), (number, Arc::clone(&api)));
        Ok((number, api))
    }

    /// Says that a namespace is about to be made.
    pub(super) fn announce(&self, guard: &Guard, (number, api): (usize, &Arc<Api>), namespace: &str) {
        guard.namespace(number, namespace);
        lock(&self.namespaces).push((Arc::clone(api), namespace.to_owned()));
    }

    /// Deletes all namespaces that are still there, and waits until they have gone.
    pub(in crate::subject) fn close(&self, guard: &Guard) -> Result<(), KubernetesError> {
        let mut left: Vec<Namespace> = lock(&self.namespaces).drain(..).collect();
        let deadline = Instant::now() + GONE;
        let mut said = String::new();
        let mut ask: fn(&Api, &str) -> Result<(), Failure> = delete;
        loop {
            left.retain(|(api, namespace)| match ask(api, namespace) {
                Err(failure) if failure.is_absence() => {
                    guard.removed(namespace);
                    false
                }
                Err(Failure::Silence(words) | Failure::Refused(_, words)) => {
                    said = words;
                    true
                }
                Ok(()) => {
                    said = format!("its deletion has not ended after {} s", GONE.as_secs());
                    true
                }
            });
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let names = left.into_iter().map(|(_, namespace)| namespace).collect::<Vec<_>>().join(" ");
                return Err(KubernetesError::Left { names, said });
            }
            thread::sleep(PAUSE);
            // Its pods are going. Whoever may delete a namespace need not have the right to look for it.
            ask = delete_it;
        }
    }
}

fn delete_it(api: &Api, namespace: &str) -> Result<(), Failure> {
    match api.delete(&path(namespace)) {
        // 409: it is under way.
        Ok(_) | Err(Failure::Refused(409, _)) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// Asks for the deletion of a namespace and, as it is to be quick, of its pods. Absence is a failure.
pub(in crate::subject::kubernetes) fn delete(api: &Api, namespace: &str) -> Result<(), Failure> {
    delete_it(api, namespace)?;
    // Nobody makes new ones there.
    let _ = api.delete(&format!("{}/pods?gracePeriodSeconds=1", path(namespace)));
    Ok(())
}

/// Whether there is no pod any more.
pub(super) fn is_empty(api: &Api, namespace: &str) -> Result<bool, Failure> {
    let pods = api.get(&format!("{}/pods?limit=1", path(namespace)))?;
    Ok(items(&pods).is_empty())
}

/// Makes a namespace of a study for a variant.
pub(super) fn create(api: &Api, namespace: &str, study: &str, variant: &str) -> Result<(), Failure> {
    let mut labels = json!({MANAGED_BY: UNLADEN, "unladen.study": study});
    if let Some(job) = job_of_this_pod() {
        labels[JOB] = json!(job);
    }
    // Whoever finds it later sees whether it is still somebody's.
    let annotations = json!({"unladen.variant": variant, OWNER: Owner::of_this_process().to_string()});
    let metadata = json!({"name": namespace, "labels": labels, "annotations": annotations});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    match api.post("/api/v1/namespaces", &namespace) {
        // Nobody else has this name: it was asked for twice, as the first answer was lost.
        Ok(_) | Err(Failure::Refused(409, _)) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// What the guard does: deletes the namespaces of each cluster. A server that is away for a while is asked again.
pub(in crate::subject) fn clean(clusters: &[(usize, String)], namespaces: &[(usize, String)]) {
    let mine = |number: usize| namespaces.iter().filter(move |(of, _)| *of == number).map(|(_, name)| name);
    let apis: Vec<(usize, Api)> = clusters
        .iter()
        .filter(|(number, _)| mine(*number).next().is_some())
        .filter_map(|(number, line)| Some((*number, Api::open(Cluster::from_line(line).ok()?).ok()?)))
        .collect();
    let deadline = Instant::now() + AWAY;
    // It may be about to be made, so it is asked for twice.
    for again in [false, true] {
        for (number, api) in &apis {
            for name in mine(*number) {
                while matches!(delete(api, name), Err(Failure::Silence(_) | Failure::Refused(429 | 500.., _)))
                    && Instant::now() < deadline
                {
                    thread::sleep(LONG_PAUSE);
                }
            }
        }
        if !again {
            thread::sleep(SETTLING);
        }
    }
}
