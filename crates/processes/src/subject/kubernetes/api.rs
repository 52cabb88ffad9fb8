//! A conversation with the API server of a cluster, in JSON. It has a thread and a runtime of its own; calls from others block. `kube` finds
//! the server, proves who asks, and encrypts.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use http::{Method, Request};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::AttachParams;
use kube::client::Body;
use kube::config::KubeConfigOptions;
use kube::{Client, Config};
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::runtime::{self, Handle};
use tokio::sync::oneshot;

use super::config::Cluster;
use super::error::KubernetesError;
use crate::subject::error::causes;

/// Longest time for one answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// So much is taken of the output of a command at once.
const PART: usize = 1 << 16;
/// To connect.
const CONNECT: Duration = Duration::from_secs(5);

/// What stands before the message of an event that is like others.
const COMBINED: &str = "(combined from similar events): ";

/// What a request's body is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Content {
    Json,
    Merge,
    StrategicMerge,
}

/// Why there is no answer that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// Nobody answered.
    Silence(String),
    /// The server refused, with this code of HTTP.
    Refused(u16, String),
}

impl Failure {
    pub(super) fn is_absence(&self) -> bool {
        matches!(self, Self::Refused(404, _))
    }

    /// What was said, or went wrong.
    pub(super) fn words(&self) -> &str {
        match self {
            Self::Silence(error) => error,
            Self::Refused(_, said) => said,
        }
    }

    /// As an error: `what` the server was asked for, in words that follow "to".
    pub(super) fn when(self, api: &Api, what: &str) -> KubernetesError {
        match self {
            Self::Silence(error) => KubernetesError::Unreachable { server: api.server.clone(), error },
            Self::Refused(401, said) => KubernetesError::Denied { what: what.to_owned(), said },
            // A quota, a policy or a webhook refuses by the same code.
            Self::Refused(403, said) if said.contains(" cannot ") => {
                KubernetesError::Denied { what: what.to_owned(), said }
            }
            Self::Refused(_, said) => KubernetesError::Refused { what: what.to_owned(), said },
        }
    }
}

/// Where objects of a kind are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resource {
    pub(super) plural: String,
    pub(super) is_namespaced: bool,
}

/// A conversation with the API server.
pub(super) struct Api {
    client: Client,
    handle: Handle,
    cluster: Cluster,
    server: String,
    /// Kinds by API version and name.
    known: Mutex<BTreeMap<String, BTreeMap<String, Resource>>>,
    /// Its end ends the thread.
    _alive: oneshot::Sender<()>,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Api {
    /// Prepares the conversation; nothing is asked yet.
    pub(super) fn open(cluster: Cluster) -> Result<Self, KubernetesError> {
        let failed = |source: io::Error| KubernetesError::Runtime { source };
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let unusable = |reason: String| KubernetesError::Kubeconfig { reason };
        let (client, server) = runtime.block_on(async {
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(cluster.kubeconfig().clone(), &options).await;
            let mut config = config.map_err(|error| unusable(causes(&error)))?;
            config.connect_timeout = Some(CONNECT);
            let server = config.cluster_url.to_string();
            let client = Client::try_from(config).map_err(|error| unusable(causes(&error)))?;
            Ok((client, server))
        })?;
        let handle = runtime.handle().clone();
        let (alive, ends) = oneshot::channel::<()>();
        let life = move || {
            let _ = runtime.block_on(ends);
        };
        thread::Builder::new().name("kubernetes".to_owned()).spawn(life).map_err(failed)?;
        Ok(Self { client, handle, cluster, server, known: Mutex::default(), _alive: alive })
    }

    pub(super) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    pub(super) fn get(&self, path: &str) -> Result<Value, Failure> {
        self.ask(Method::GET, path, None)
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.ask(Method::POST, path, Some((Content::Json, body)))
    }

    pub(super) fn patch(&self, path: &str, kind: Content, body: &Value) -> Result<Value, Failure> {
        self.ask(Method::PATCH, path, Some((kind, body)))
    }

    pub(super) fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.ask(Method::DELETE, path, None)
    }

    /// What is at a path, as text: a log.
    pub(super) fn text(&self, path: &str) -> Result<String, Failure> {
        let wanted = request(Method::GET, path, None)?;
        self.wait(answer(self.client.clone(), wanted)).map(|text| String::from_utf8_lossy(&text).into_owned())
    }

    /// The date that the server writes on an answer, whatever it answers.
    pub(super) fn date(&self) -> Result<Option<String>, Failure> {
        let (client, wanted) = (self.client.clone(), request(Method::GET, "/version", None)?);
        self.wait(async move {
            let response = client.send(wanted).await.map_err(failure)?;
            Ok(response.headers().get("date").and_then(|date| date.to_str().ok()).map(str::to_owned))
        })
    }

    fn ask(&self, method: Method, path: &str, body: Option<(Content, &Value)>) -> Result<Value, Failure> {
        let wanted = request(method, path, body)?;
        let text = self.wait(answer(self.client.clone(), wanted))?;
        serde_json::from_slice(&text).map_err(|error| Failure::Silence(format!("its answer is no JSON ({error})")))
    }

    /// Does something on the thread of the conversation.
    pub(super) fn begin(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(work);
    }

    /// What is at a path as it comes, without an end in time. For [`Self::begin`].
    pub(super) fn stream(&self, path: &str) -> impl Future<Output = Result<Body, Failure>> + use<> {
        let (client, wanted) = (self.client.clone(), request(Method::GET, path, None));
        async move {
            let answer = tokio::time::timeout(PATIENCE, client.send(wanted?)).await;
            let response = answer.map_err(|_| late())?.map_err(failure)?;
            match response.status() {
                code if code.is_success() => Ok(response.into_body()),
                code => Err(Failure::Refused(code.as_u16(), String::new())),
            }
        }
    }

    /// Runs a command in a container. What it prints goes to `out`; it must succeed.
    pub(super) fn exec(
        &self,
        (namespace, pod, container): (&str, &str, &str),
        command: &[&str],
        mut out: impl Write + Send + 'static,
    ) -> Result<(), Failure> {
        let pods: kube::Api<Pod> = kube::Api::namespaced(self.client.clone(), namespace);
        let parameters = AttachParams::default().container(container).max_stdout_buf_size(PART);
        let command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
        let pod = pod.to_owned();
        let (tell, told) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            let _ = tell.send(executed(&pods, &pod, command, &parameters, &mut out).await);
        });
        told.recv().unwrap_or_else(|_| Err(late()))
    }

    /// Waits on this thread for what is done on the other.
    fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let (tell, told) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            let done = tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| Err(late()));
            let _ = tell.send(done);
        });
        match told.recv_timeout(PATIENCE * 2) {
            Ok(done) => done,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Err(late()),
        }
    }

    /// What the server calls objects of a kind; `None`: it does not know it.
    pub(super) fn resource(&self, api_version: &str, kind: &str) -> Result<Option<Resource>, Failure> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kinds) = known.get(api_version) {
            return Ok(kinds.get(kind).cloned());
        }
        let kinds = match self.get(&base(api_version)) {
            Ok(list) => resources(&list),
            Err(failure) if failure.is_absence() => BTreeMap::new(),
            Err(failure) => return Err(failure),
        };
        Ok(known.entry(api_version.to_owned()).or_insert(kinds).get(kind).cloned())
    }
}

/// Where an API is: `/api/v1`, `/apis/apps/v1`.
pub(super) fn base(api_version: &str) -> String {
    match api_version.contains('/') {
        true => format!("/apis/{api_version}"),
        false => format!("/api/{api_version}"),
    }
}

/// Kinds by their names.
fn resources(list: &Value) -> BTreeMap<String, Resource> {
    let all = list.get("resources").and_then(Value::as_array).into_iter().flatten();
    let resource = |it: &Value| {
        let plural = it.get("name")?.as_str().filter(|name| !name.contains('/'))?.to_owned();
        let is_namespaced = it.get("namespaced")?.as_bool()?;
        Some((it.get("kind")?.as_str()?.to_owned(), Resource { plural, is_namespaced }))
    };
    all.filter_map(resource).collect()
}

/// The members of a list that the server gave.
pub(super) fn items(list: &Value) -> &[Value] {
    list.get("items").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A text in an object, by its JSON pointer (RFC 6901).
pub(super) fn text<'v>(object: &'v Value, pointer: &str) -> Option<&'v str> {
    object.pointer(pointer).and_then(Value::as_str)
}

/// What an object is called.
pub(super) fn name(object: &Value) -> &str {
    text(object, "/metadata/name").unwrap_or_default()
}

/// All nodes of a cluster.
pub(super) fn nodes(api: &Api) -> Result<Vec<Value>, Failure> {
    api.get("/api/v1/nodes").map(|list| items(&list).to_vec())
}

/// Something that the cluster has noticed.
pub(super) struct Event {
    /// Name of the object.
    pub(super) about: String,
    pub(super) reason: String,
    pub(super) message: String,
}

/// What the cluster has noticed, the latest last; nothing if it does not say.
pub(super) fn events(api: &Api, path: &str) -> Vec<Event> {
    let answer = api.get(path).unwrap_or_default();
    let words = |event: &Value, at: &str| text(event, at).unwrap_or_default().trim().to_owned();
    let mut all: Vec<&Value> = items(&answer).iter().collect();
    all.sort_by_key(|event| words(event, "/lastTimestamp"));
    let event = |event: &&Value| Event {
        about: words(event, "/involvedObject/name"),
        reason: words(event, "/reason"),
        message: words(event, "/message").trim_start_matches(COMBINED).to_owned(),
    };
    all.iter().map(event).collect()
}

fn late() -> Failure {
    Failure::Silence(format!("no answer within {} s", PATIENCE.as_secs()))
}

fn request(method: Method, path: &str, body: Option<(Content, &Value)>) -> Result<Request<Body>, Failure> {
    let mut wanted = Request::builder().method(method).uri(path).header("accept", "application/json, */*");
    let mut bytes = Vec::new();
    if let Some((content, value)) = body {
        let kind = match content {
            Content::Json => "application/json",
            Content::Merge => "application/merge-patch+json",
            Content::StrategicMerge => "application/strategic-merge-patch+json",
        };
        wanted = wanted.header("content-type", kind);
        bytes = value.to_string().into_bytes();
    }
    wanted.body(Body::from(bytes)).map_err(|error| Failure::Silence(error.to_string()))
}

async fn answer(client: Client, wanted: Request<Body>) -> Result<Vec<u8>, Failure> {
    let response = client.send(wanted).await.map_err(failure)?;
    let code = response.status();
    let body = response.into_body().collect().await.map_err(failure)?.to_bytes().to_vec();
    match code.is_success() {
        true => Ok(body),
        false => Err(Failure::Refused(code.as_u16(), said(&body))),
    }
}

/// The words of a refusal.
fn said(body: &[u8]) -> String {
    let message =
        serde_json::from_slice(body).ok().and_then(|status: Value| Some(status.get("message")?.as_str()?.to_owned()));
    message.unwrap_or_else(|| String::from_utf8_lossy(body).trim().to_owned())
}

/// Runs a command in a pod. It may take long, but not be silent for long.
async fn executed(
    pods: &kube::Api<Pod>,
    pod: &str,
    command: Vec<String>,
    parameters: &AttachParams,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let broken = |error: &dyn std::fmt::Display| Failure::Silence(format!("the connection broke off ({error})"));
    let begun = tokio::time::timeout(PATIENCE, pods.exec(pod, command, parameters)).await;
    let mut process = begun.map_err(|_| late())?.map_err(failure)?;
    let (Some(mut stdout), Some(mut stderr), Some(status)) =
        (process.stdout(), process.stderr(), process.take_status())
    else {
        return Err(broken(&"it has no output"));
    };
    let copy = async {
        let mut part = vec![0; PART];
        loop {
            let read = tokio::time::timeout(PATIENCE, stdout.read(&mut part)).await.map_err(|_| late())?;
            match read.map_err(|error| broken(&error))? {
                0 => return Ok(()),
                count => out.write_all(&part[..count]).map_err(|error| Failure::Silence(error.to_string()))?,
            }
        }
    };
    let mut words = Vec::new();
    let (copied, _) = tokio::join!(copy, stderr.read_to_end(&mut words));
    copied?;
    match status.await {
        Some(status) if status.status.as_deref() == Some("Success") => Ok(()),
        Some(status) => {
            let words = String::from_utf8_lossy(&words).trim().to_owned();
            Err(Failure::Refused(500, if words.is_empty() { status.message.unwrap_or_default() } else { words }))
        }
        None => Err(broken(&"it did not say how it ended")),
    }
}

fn failure(error: kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) => Failure::Refused(status.code, status.message.clone()),
        other => Failure::Silence(causes(&other)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_have_places() {
        assert_eq!((base("v1"), base("apps/v1")), ("/api/v1".to_owned(), "/apis/apps/v1".to_owned()));
        let list = json!({"resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": true},
            {"name": "deployments/scale", "kind": "Scale", "namespaced": true},
            {"name": "namespaces", "kind": "Namespace", "namespaced": false},
        ]});
        let known = resources(&list);
        let names: Vec<&str> = known.keys().map(String::as_str).collect();
        assert_eq!(names, ["Deployment", "Namespace"]);
        assert_eq!(known["Deployment"], Resource { plural: "deployments".to_owned(), is_namespaced: true });
        assert!(!known["Namespace"].is_namespaced);
    }

    #[test]
    fn a_server_that_is_not_there_is_told_soon() {
        let begun = std::time::Instant::now();
        let kubeconfig = json!({
            "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "current-context": "a",
        });
        let cluster = Cluster::from_line(&kubeconfig.to_string()).expect("a kubeconfig");
        let api = Api::open(cluster).expect("nothing is asked yet");
        let failure = api.get("/api/v1/nodes").expect_err("nobody is there");
        assert!(matches!(failure, Failure::Silence(_)), "{failure:?}");
        let error = failure.when(&api, "list the nodes").to_string();
        assert!(error.contains("does not answer at http://127.0.0.1:1/") && error.contains("refused"), "{error}");
        assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
        let resource = api.resource("apps/v1", "Deployment");
        assert!(matches!(resource, Err(Failure::Silence(_))), "{resource:?}");
    }

    #[test]
    fn an_error_says_whether_a_right_is_missing() {
        let cluster = json!({"clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
            "contexts": [{"name": "a", "context": {"cluster": "a"}}], "current-context": "a"});
        let api = Api::open(Cluster::from_line(&cluster.to_string()).expect("a kubeconfig")).expect("nothing is asked");
        let error =
            |code, said: &str| Failure::Refused(code, said.to_owned()).when(&api, "create a namespace").to_string();
        for (code, said) in [(401, "Unauthorized"), (403, "User \"x\" cannot create resource \"namespaces\"")] {
            let error = error(code, said);
            assert!(
                error.contains("does not let unladen create a namespace") && error.contains("role.yaml"),
                "{error}"
            );
        }
        for (code, said) in [(403, "exceeded quota"), (422, "is invalid")] {
            let error = error(code, said);
            assert!(error.contains(&format!("refused to create a namespace: {said}.")), "{error}");
        }
    }

    #[test]
    fn a_refusal_has_the_words_of_the_server() {
        assert_eq!(said(br#"{"kind": "Status", "message": "no"}"#), "no");
        assert_eq!(said(b"404 page not found\n"), "404 page not found");
    }
}
