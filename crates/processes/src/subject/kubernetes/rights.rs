//! The rights that a study needs in a cluster: the one list of them. A test holds deploy/kubernetes/role.yaml to it. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::plain_name;

/// A verb on a kind of objects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Right {
    /// API group; empty: the core's.
    pub group: String,
    /// `pods`, `pods/log`.
    pub resource: String,
    /// `create`.
    pub verb: String,
}

/// Verbs on objects of a group.
type Rule = (&'static str, &'static [&'static str], &'static [&'static str]);

/// What every study needs, whatever its manifests hold.
const ALWAYS: [Rule; 5] = [
    // Which node is the machine that it runs on.
    ("", &["nodes"], &["list"]),
    // What a run in the cluster had there when its pod was killed is listed.
    ("", &["namespaces"], &["create", "delete", "list"]),
    // Are they running, what do they say, how have they ended.
    ("", &["pods"], &["delete", "deletecollection", "get", "list"]),
    ("", &["pods/log"], &["get"]),
    ("", &["events"], &["list"]),
];
/// What is needed for workloads in the manifests: asked how many pods there will be, ended.
const OF_WORKLOADS: [&str; 2] = ["delete", "get"];
/// What is needed for all kinds of objects in the manifests. `patch` is also for what every namespace begins with.
const OF_OBJECTS: [&str; 2] = ["create", "patch"];
/// The group and the kinds that a service can be.
const WORKLOADS: (&str, [&str; 3]) = ("apps", ["daemonsets", "deployments", "statefulsets"]);

impl Right {
    fn of(group: &str, resource: &str, verb: &str) -> Self {
        Self { group: group.to_owned(), resource: resource.to_owned(), verb: verb.to_owned() }
    }

    /// Its kind of objects as `kubectl` has it: `deployments.apps`.
    #[must_use]
    pub fn kind(&self) -> String {
        match self.group.as_str() {
            "" => self.resource.clone(),
            group => format!("{}.{group}", self.resource),
        }
    }
}

/// The rights that a study needs whose manifests hold objects of these kinds: group and plural name.
#[must_use]
pub fn needed<'k>(kinds: impl IntoIterator<Item = (&'k str, &'k str)>) -> BTreeSet<Right> {
    let mut all = BTreeSet::new();
    for (group, resources, verbs) in ALWAYS {
        for resource in resources {
            all.extend(verbs.iter().map(|verb| Right::of(group, resource, verb)));
        }
    }
    for (group, resource) in kinds {
        let is_workload = group == WORKLOADS.0 && WORKLOADS.1.contains(&resource);
        let more = if is_workload { OF_WORKLOADS.as_slice() } else { &[] };
        // `pods/ephemeralcontainers`, where probes are put, is a part of an object that is there.
        let of_objects = if resource.contains('/') { &OF_OBJECTS[1..] } else { &OF_OBJECTS[..] };
        all.extend(of_objects.iter().chain(more).map(|verb| Right::of(group, resource, verb)));
    }
    all
}

/// A ClusterRole with these rights, and its binding to a user. The name ends in what they are: a role with other rights has another name, so that
/// applying one takes nothing away from the other.
#[must_use]
pub fn role(study: &str, rights: &[Right], user: Option<&str>) -> String {
    let name = name(study, rights);
    let mut text = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {name}}}\nrules:\n{}",
        rules(rights)
    );
    let subject = match user
        .map(|user| (user, user.strip_prefix("system:serviceaccount:").and_then(|it| it.split_once(':'))))
    {
        Some((_, Some((namespace, account)))) => {
            format!("{{kind: ServiceAccount, name: {}, namespace: {}}}", quoted(account), quoted(namespace))
        }
        Some((user, None)) => {
            format!("{{kind: User, apiGroup: rbac.authorization.k8s.io, name: {}}}", quoted(user))
        }
        None => {
            return text
                + &format!(
                    "# Bind it to the user of the kubeconfig: kubectl create clusterrolebinding {name} --clusterrole={name} --user=NAME\n"
                );
        }
    };
    text += &format!(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: {name}}}\nroleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}}\nsubjects:\n- {subject}\n"
    );
    text
}

/// A line for all resources of a group with the same verbs.
fn rules(rights: &[Right]) -> String {
    let mut verbs: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for right in rights {
        verbs.entry((&right.group, &right.resource)).or_default().insert(&right.verb);
    }
    let mut lines: BTreeMap<(&str, Vec<&str>), Vec<&str>> = BTreeMap::new();
    for ((group, resource), verbs) in verbs {
        lines.entry((group, verbs.into_iter().collect())).or_default().push(resource);
    }
    let line = |((group, verbs), resources): (&(&str, Vec<&str>), &Vec<&str>)| {
        let group = if group.is_empty() { quoted("") } else { (*group).to_owned() };
        format!("- {{apiGroups: [{group}], resources: [{}], verbs: [{}]}}\n", resources.join(", "), verbs.join(", "))
    };
    lines.iter().map(line).collect()
}

/// As YAML has it; JSON is YAML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// `unladen-shop-1a2b3c4d`.
fn name(study: &str, rights: &[Right]) -> String {
    // FNV-1a: the same for the same rights, in every version.
    let hash =
        rules(rights).bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("unladen-{}-{hash:08x}", plain_name(study, usize::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Kinds that are in many manifests: the role that is handed out has them.
    const USUAL: [(&str, &[&str]); 5] = [
        (
            "",
            &[
                "configmaps",
                "limitranges",
                "persistentvolumeclaims",
                "pods",
                "pods/ephemeralcontainers",
                "resourcequotas",
                "secrets",
                "serviceaccounts",
                "services",
            ],
        ),
        ("apps", &WORKLOADS.1),
        ("batch", &["cronjobs", "jobs"]),
        ("networking.k8s.io", &["ingresses", "networkpolicies"]),
        ("policy", &["poddisruptionbudgets"]),
    ];
    const ROLE: &str = include_str!("../../../../../deploy/kubernetes/role.yaml");

    fn documents(text: &str) -> Vec<Value> {
        serde_saphyr::from_multiple(text).expect("YAML")
    }

    /// All rights that the roles of a file give.
    fn given(text: &str) -> BTreeSet<Right> {
        let texts = |rule: &Value, key: &str| -> Vec<String> {
            rule[key].as_array().expect("a list").iter().map(|it| it.as_str().expect("a text").to_owned()).collect()
        };
        let mut all = BTreeSet::new();
        for document in documents(text).iter().filter(|it| it["kind"] == "ClusterRole") {
            for rule in document["rules"].as_array().expect("rules") {
                for group in texts(rule, "apiGroups") {
                    for resource in texts(rule, "resources") {
                        all.extend(texts(rule, "verbs").iter().map(|verb| Right::of(&group, &resource, verb)));
                    }
                }
            }
        }
        all
    }

    #[test]
    fn the_role_that_is_handed_out_has_exactly_the_rights_that_studies_need() {
        let usual = USUAL.iter().flat_map(|(group, kinds)| kinds.iter().map(|kind| (*group, *kind)));
        let (needed, given) = (needed(usual), given(ROLE));
        assert_eq!(
            needed.difference(&given).collect::<Vec<_>>(),
            Vec::<&Right>::new(),
            "deploy/kubernetes/role.yaml lacks these"
        );
        assert_eq!(
            given.difference(&needed).collect::<Vec<_>>(),
            Vec::<&Right>::new(),
            "deploy/kubernetes/role.yaml has these besides"
        );
    }

    #[test]
    fn a_study_needs_rights_for_what_its_manifests_hold() {
        let bare = needed([]);
        assert!(bare.contains(&Right::of("", "namespaces", "delete")));
        assert!(bare.iter().all(|right| right.resource != "deployments" && right.verb != "patch"), "{bare:?}");
        let more = needed([("apps", "deployments"), ("example.org", "shops"), ("apps", "replicasets")]);
        let more: Vec<String> = more.difference(&bare).map(|it| format!("{} {}", it.verb, it.kind())).collect();
        let wanted = [
            "create deployments.apps",
            "delete deployments.apps",
            "get deployments.apps",
            "patch deployments.apps",
            "create replicasets.apps",
            "patch replicasets.apps",
            "create shops.example.org",
            "patch shops.example.org",
        ];
        assert_eq!(more, wanted);
    }

    #[test]
    fn a_role_has_the_rights_and_nothing_else_and_is_bound() {
        let rights: Vec<Right> = needed([("apps", "deployments"), ("", "secrets")]).into_iter().collect();
        let text = role("Shop_1", &rights, Some("system:serviceaccount:ci:bot"));
        assert_eq!(given(&text), rights.iter().cloned().collect());
        let (of_account, of_user) = (documents(&text), documents(&role("shop", &rights[..1], Some("jo: \"x\""))));
        let name = of_account[0]["metadata"]["name"].as_str().expect("a name");
        assert!(name.starts_with("unladen-shop-1-"), "{name}");
        assert_eq!(of_account[1]["roleRef"]["name"], name);
        assert_eq!(
            of_account[1]["subjects"][0],
            serde_json::json!({"kind": "ServiceAccount", "name": "bot", "namespace": "ci"})
        );
        assert_eq!(of_user[1]["subjects"][0]["name"], "jo: \"x\"");
        assert_ne!(
            of_user[0]["metadata"]["name"],
            documents(&role("shop", &rights[1..2], None))[0]["metadata"]["name"]
        );
        assert!(role("shop", &rights, None).contains("kubectl create clusterrolebinding unladen-shop-"));
    }
}
