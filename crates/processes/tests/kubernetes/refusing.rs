//! What cannot run is told with the service, the workload and the way out, and leaves nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use unladen_processes::subject::{Readiness, SubjectError};

use crate::site::{PATIENCE, Site, container, kubectl, kubectl_output, shop};

/// An error names all of these.
fn names(error: &str, words: &[&str]) {
    println!("{error}\n");
    for word in words {
        assert!(error.contains(word), "`{word}` is not in: {error}");
    }
}

fn said(containers: &str) -> Option<String> {
    let site = Site::new()?;
    let stack = site.stack(&shop(containers));
    Some(site.refused(&stack))
}

#[test]
fn a_container_that_ends_is_told_with_its_last_words() {
    let Some(error) = said(&container("app", "[reach, '127.0.0.1:1']", "")) else { return };
    names(&error, &["`app` of deployment/shop (service api)", "exit 1", "connection refused", "api.log"]);
}

#[test]
fn a_container_whose_memory_runs_out_is_told() {
    let limits = ", resources: {limits: {memory: 32Mi}}";
    let Some(error) = said(&container("app", "[read, /dev/zero]", limits)) else { return };
    names(&error, &["`app` of deployment/shop (service api)", "its memory limit was reached"]);
}

#[test]
fn a_container_that_prepares_the_pod_and_fails_is_told() {
    let Some(site) = Site::new() else { return };
    let init = container("migrate", "[reach, '127.0.0.1:1']", "");
    let manifest = shop(&container("app", "[serve, ':8080']", "")) + "      initContainers:\n" + &init;
    let stack = site.stack(&manifest);
    let error = site.refused(&stack);
    names(&error, &["`migrate` of deployment/shop (service api)", "exit 1"]);
}

#[test]
fn a_program_that_is_not_in_the_image_is_told() {
    let Some(error) = said(&container("app", "[]", ", command: [/absent]")) else { return };
    names(&error, &["`app` of deployment/shop (service api) cannot be started", "/absent"]);
}

#[test]
fn an_image_that_is_not_there_is_told() {
    let app = container("app", "[]", "").replace(crate::site::IMAGE, "unladen.local/absent:1");
    let Some(error) = said(&app) else { return };
    names(&error, &["`unladen.local/absent:1` of deployment/shop (service api)", "load it into the node"]);
}

#[test]
fn a_pod_that_fits_nowhere_is_told() {
    let app = container("app", "[serve, ':8080']", ", resources: {requests: {cpu: '4000'}}");
    let Some(error) = said(&app) else { return };
    names(&error, &["deployment/shop (service api) cannot be scheduled", "Insufficient cpu", "resources.requests"]);
}

#[test]
fn a_pod_that_nobody_may_make_is_told() {
    let Some(site) = Site::new() else { return };
    let quota = "\n---\n{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}, spec: {hard: {pods: 0}}}\n";
    let stack = site.stack(&(shop(&container("app", "[serve, ':8080']", "")) + quota));
    let error = site.refused(&stack);
    names(&error, &["no pod was made for deployment/shop (service api)", "exceeded quota"]);
}

#[test]
fn a_manifest_that_the_server_refuses_is_told_with_its_file() {
    let Some(error) = said(&container("app", "[serve, ':8080']", ", imagePulPolicy: Never")) else { return };
    names(&error, &["apply Deployment shop of ", "shop.yaml", "imagePulPolicy"]);
}

#[test]
fn a_patch_that_the_server_refuses_is_told() {
    let Some(site) = Site::new() else { return };
    let mut stack = site.stack(&shop(&container("app", "[serve, ':8080']", "")));
    stack.services.get_mut("api").expect("it").patch = Some(json!({"spec": {"conteiners": []}}));
    let error = site.refused(&stack);
    names(&error, &["apply the `patch` of the service api to deployment/shop", "conteiners"]);
}

#[test]
fn an_object_of_the_whole_cluster_is_refused_before_anything_is_made() {
    let Some(site) = Site::new() else { return };
    let class = "\n---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: p}, value: 1}\n";
    let stack = site.stack(&(shop(&container("app", "[serve, ':8080']", "")) + class));
    names(&site.refused(&stack), &["PriorityClass p in ", "shop.yaml belongs to the whole cluster"]);
    let Some(site) = Site::new() else { return };
    let namespace = "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n";
    let stack = site.stack(&(shop(&container("app", "[serve, ':8080']", "")) + namespace));
    names(&site.refused(&stack), &["Namespace shop in ", "a namespace of its own"]);
    let Some(site) = Site::new() else { return };
    let unknown = "\n---\n{apiVersion: example.org/v1, kind: Shop, metadata: {name: s}}\n";
    let stack = site.stack(&(shop(&container("app", "[serve, ':8080']", "")) + unknown));
    names(&site.refused(&stack), &["Shop s in ", "a kind that the cluster does not know"]);
}

#[test]
fn a_right_that_is_missing_is_told() {
    let Some(site) = Site::new() else { return };
    let lease = "\n---\n{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: l}}\n";
    let stack = site.stack(&(shop(&container("app", "[serve, ':8080']", "")) + lease));
    names(&site.refused(&stack), &["does not let unladen apply Lease l of ", "role.yaml", "cannot create resource"]);
}

#[test]
fn a_pod_that_never_gets_ready_is_told_with_the_words_of_its_probe() {
    let Some(site) = Site::new() else { return };
    let probe = ", readinessProbe: {httpGet: {path: /absent, port: 8080}, periodSeconds: 1}";
    let stack = site.stack(&shop(&container("app", "[serve, ':8080']", probe)));
    let (deployed, mut placed) = site.deploy(&stack).expect("it runs");
    let readiness = Readiness {
        http: None,
        tcp: None,
        log: None,
        healthy: false,
        timeout: Duration::from_secs(5),
        network: placed[0].network.clone(),
    };
    let error = placed[0].running.wait_ready(&readiness, &AtomicBool::new(false)).expect_err("it never is").to_string();
    names(&error, &["api was not ready after 5.0 s", "its health check has not passed", "statuscode: 404"]);
    drop((deployed, placed));
    site.close();
}

#[test]
fn cores_that_the_kubelet_keeps_for_others_are_told() {
    let Some(site) = Site::new() else { return };
    let mut stack = site.stack(&shop(&container("app", "[serve, ':8080']", "")));
    // Those of the cluster's own programs: it was started with `--share`.
    stack.cpus = [0].into_iter().collect();
    let error = site.refused(&stack);
    names(&error, &["deployment/shop (service api) is to be on the cores 0, but the kubelet has given it"]);
}

#[test]
fn an_interruption_leaves_nothing_whenever_it_comes() {
    for after in [0, 50, 200, 500, 1500] {
        let Some(site) = Site::new() else { return };
        // It never runs, so there is always something to interrupt.
        let app = container("app", "[serve, ':8080']", ", resources: {requests: {cpu: '4000'}}");
        let stack = site.stack(&shop(&app));
        let interrupted = Arc::new(AtomicBool::new(after == 0));
        let flag = Arc::clone(&interrupted);
        let user = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(after));
            flag.store(true, Ordering::Relaxed);
        });
        let begun = Instant::now();
        let error =
            site.launcher.deploy(&stack, PATIENCE, &mut |_| (), &interrupted).map(|_| ()).expect_err("interrupted");
        assert!(matches!(error, SubjectError::Interrupted { .. }), "{error}");
        assert!(
            begun.elapsed() < Duration::from_millis(after) + Duration::from_secs(5),
            "{after} ms: {:?}",
            begun.elapsed()
        );
        user.join().expect("no panic");
        site.close();
    }
}

#[test]
fn the_account_may_do_nothing_outside_of_its_own_namespaces() {
    if crate::site::cluster().is_none() {
        return;
    }
    let config = format!("--kubeconfig={}", std::env::var("KUBECONFIG").expect("that of the account"));
    for (arguments, expected) in [
        (vec!["create", "configmap", "a", "--namespace=default"], "whose names begin with `unladen-`"),
        (vec!["delete", "namespace", "unladen"], "whose names begin with `unladen-`"),
        (vec!["get", "secrets", "--namespace=default"], "forbidden"),
    ] {
        let output = kubectl_output(&[arguments.clone(), vec![&config]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(expected), "{arguments:?}: {said}");
    }
    assert!(kubectl(&["auth", "can-i", "get", "secrets"]).starts_with("yes"), "the administrator may");
}
