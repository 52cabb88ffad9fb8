//! Where the cluster is: a kubeconfig, read and cut down to one context, so that the guard can be told it and needs neither files nor an
//! environment for it.

use std::env;
use std::path::PathBuf;

use kube::config::Kubeconfig;
use serde_json::json;

use super::error::KubernetesError;
use super::kubeconfigs;
use crate::subject::error::causes;

/// Where a pod finds what proves who it is.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// One context of a kubeconfig.
#[derive(Debug, Clone)]
pub(super) struct Cluster(Kubeconfig);

impl Cluster {
    /// A context of the kubeconfig that `KUBECONFIG` names, or of `~/.kube/config`; `None`: the current one.
    pub(super) fn find(context: Option<&str>) -> Result<Self, KubernetesError> {
        let files = kubeconfigs(env::var_os("KUBECONFIG").as_deref(), env::home_dir().as_deref());
        match Self::read(&files, context) {
            Err(KubernetesError::NoKubeconfig { looked }) if context.is_none() => {
                let of_this_pod = Self::of_pod(|name| env::var(name).ok());
                of_this_pod.unwrap_or(Err(KubernetesError::NoKubeconfig { looked }))
            }
            found => found,
        }
    }

    /// The cluster that the pod is in which this process is in, as the account of the pod; `None`: it is in none.
    fn of_pod(variable: impl Fn(&str) -> Option<String>) -> Option<Result<Self, KubernetesError>> {
        let host = variable("KUBERNETES_SERVICE_HOST").filter(|host| !host.is_empty())?;
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        let port = variable("KUBERNETES_SERVICE_PORT").unwrap_or_else(|| "443".to_owned());
        let kubeconfig = json!({
            "clusters": [{"name": "pod", "cluster": {
                "server": format!("https://{host}:{port}"), "certificate-authority": format!("{ACCOUNT}/ca.crt")}}],
            // The file: what is in it changes from hour to hour.
            "users": [{"name": "pod", "user": {"tokenFile": format!("{ACCOUNT}/token")}}],
            "contexts": [{"name": "pod", "context": {"cluster": "pod", "user": "pod"}}],
            "current-context": "pod",
        });
        Some(Self::from_line(&kubeconfig.to_string()))
    }

    fn read(files: &[PathBuf], context: Option<&str>) -> Result<Self, KubernetesError> {
        let unusable = |error: kube::config::KubeconfigError| KubernetesError::Kubeconfig { reason: causes(&error) };
        // Those that are not there are left out, as by `kubectl`.
        let mut there = files.iter().filter(|file| file.exists()).peekable();
        if there.peek().is_none() {
            let looked: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            return Err(KubernetesError::NoKubeconfig { looked: looked.join(", ") });
        }
        let mut merged = Kubeconfig::default();
        for file in there {
            // The paths of what they name become absolute if theirs are.
            let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
            merged = merged.merge(Kubeconfig::read_from(&file).map_err(unusable)?).map_err(unusable)?;
        }
        Self::choose(merged, context)
    }

    fn choose(mut all: Kubeconfig, context: Option<&str>) -> Result<Self, KubernetesError> {
        let known = || all.contexts.iter().map(|context| format!("`{}`", context.name)).collect::<Vec<_>>().join(", ");
        let Some(chosen) = context.map(str::to_owned).or_else(|| all.current_context.clone()) else {
            let reason = format!("it has no current context; it has: {}. Set `on.kubernetes.context`", known());
            return Err(KubernetesError::Kubeconfig { reason });
        };
        let found = all.contexts.iter().find(|context| context.name == chosen);
        let Some(found) = found.and_then(|it| it.context.clone()) else {
            return Err(KubernetesError::NoContext { context: chosen, known: known() });
        };
        all.contexts.retain(|context| context.name == chosen);
        all.clusters.retain(|cluster| cluster.name == found.cluster);
        all.auth_infos.retain(|user| Some(&user.name) == found.user.as_ref());
        all.current_context = Some(chosen);
        all.preferences = None;
        all.extensions = None;
        Ok(Self(all))
    }

    /// As one line, secrets included.
    pub(super) fn line(&self) -> Result<String, KubernetesError> {
        serde_json::to_string(&self.0).map_err(|error| KubernetesError::Kubeconfig { reason: error.to_string() })
    }

    /// From such a line.
    pub(super) fn from_line(line: &str) -> Result<Self, KubernetesError> {
        let read = serde_json::from_str(line);
        read.map(Self).map_err(|error| KubernetesError::Kubeconfig { reason: error.to_string() })
    }

    pub(super) fn kubeconfig(&self) -> &Kubeconfig {
        &self.0
    }

    /// Name of the context.
    pub(super) fn context(&self) -> &str {
        self.0.current_context.as_deref().unwrap_or_default()
    }

    /// The namespace that the context names.
    pub(super) fn namespace(&self) -> Option<String> {
        self.0.contexts.first()?.context.as_ref()?.namespace.clone().filter(|namespace| !namespace.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    const CONFIG: &str = "
apiVersion: v1
kind: Config
current-context: one
clusters:
- {name: a, cluster: {server: 'https://a:6443', certificate-authority: ca.crt}}
- {name: b, cluster: {server: 'https://b:6443'}}
users:
- {name: admin, user: {token: secret}}
- {name: other, user: {token: hidden}}
contexts:
- {name: one, context: {cluster: a, user: admin}}
- {name: two, context: {cluster: b, user: other}}
";

    fn file(folder: &Path, text: &str) -> PathBuf {
        let path = folder.join("config");
        fs::write(&path, text).expect("written");
        path
    }

    #[test]
    fn a_context_goes_to_the_guard_with_its_secrets_and_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = [folder.path().join("absent"), file(folder.path(), CONFIG)];
        let line = Cluster::read(&files, None).and_then(|it| it.line()).expect("a line");
        assert!(line.contains("secret") && !line.contains("hidden") && !line.contains("https://b"), "{line}");
        assert!(!line.contains(['\n', '\t']), "{line}");
        let absolute = folder.path().join("ca.crt").display().to_string();
        assert!(line.contains(&absolute), "{line}");
        assert_eq!(Cluster::from_line(&line).and_then(|it| it.line()).expect("a line"), line);
        let other = Cluster::read(&files, Some("two")).and_then(|it| it.line()).expect("a line");
        assert!(other.contains("https://b:6443") && other.contains("hidden") && !other.contains("secret"), "{other}");
    }

    #[test]
    fn a_pod_speaks_with_its_own_cluster() {
        let with = |host: &str| {
            let host = host.to_owned();
            move |name: &str| match name {
                "KUBERNETES_SERVICE_HOST" => Some(host.clone()),
                "KUBERNETES_SERVICE_PORT" => Some("6443".to_owned()),
                _ => None,
            }
        };
        for (host, server) in [("10.0.0.1", "https://10.0.0.1:6443"), ("fd00::1", "https://[fd00::1]:6443")] {
            let line = Cluster::of_pod(with(host)).expect("a pod").and_then(|it| it.line()).expect("a line");
            assert!(line.contains(server) && line.contains("serviceaccount/token\""), "{line}");
        }
        assert!(Cluster::of_pod(with("")).is_none() && Cluster::of_pod(|_| None).is_none());
    }

    #[test]
    fn what_is_missing_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let said = |files: &[PathBuf], context| Cluster::read(files, context).expect_err("missing").to_string();
        let absent = said(&[folder.path().join("absent")], None);
        assert!(absent.contains("absent") && absent.contains("Set KUBECONFIG"), "{absent}");
        let files = [file(folder.path(), CONFIG)];
        let no_context = said(&files, Some("three"));
        assert!(no_context.contains("`three`; it has: `one`, `two`"), "{no_context}");
        let files = [file(folder.path(), &CONFIG.replace("current-context: one", ""))];
        assert!(said(&files, None).contains("no current context; it has: `one`, `two`"));
        let files = [file(folder.path(), "clusters: [")];
        assert!(said(&files, None).contains("cannot be used"));
    }
}
