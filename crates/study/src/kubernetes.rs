//! A study to begin with of workloads of a cluster: `unladen import kubernetes`.

use unladen_journal::role::Role;
use unladen_journal::units::Time;

use super::spec::{BASELINE, Command, Kubernetes, Load, Ready, Service, Study, Variant};
use super::write::concise_yaml;

/// Requests a second until somebody says how many.
const RATE: f64 = 100.0;

/// What a study says of a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Kind and name: `deployment/shop`.
    pub workload: String,
    /// Which of its containers serves; `None`: there is one.
    pub container: Option<String>,
    /// Port that it serves; `None`: it does not say.
    pub port: Option<u16>,
    /// Path that answers when it is ready, if it says so.
    pub ready_path: Option<(u16, String)>,
    /// Port that accepts connections when it is ready, if it says so.
    pub ready_port: Option<u16>,
    /// How long to wait for it, seconds, if longer than usual.
    pub timeout_s: f64,
}

/// The text of a study of the first workload; the others are its dependencies. `manifests`: their folder. `command`: how it was made.
#[must_use]
pub fn text(context: Option<&str>, manifests: &str, found: &[Found], command: &str) -> String {
    let study = study(context, manifests, found);
    let service = study.study.as_str();
    let example = format!(
        r#"  # A variant is the same workload with instrumentation, by what it changes in the pods. Make this one yours:
  # otel:
  #   spans_per_request: 4
  #   services:
  #     {service}:
  #       env: {{OTEL_EXPORTER_OTLP_ENDPOINT: "http://${{sink.otlp_grpc}}", OTEL_EXPORTER_OTLP_PROTOCOL: grpc}}
  #       # What an injector in the cluster looks for:
  #       annotations: {{instrumentation.opentelemetry.io/inject-java: "true"}}
"#
    );
    let url = "  # What users ask for. URLs name the services of this study.\n";
    let rate = "  # Requests a second. Set about what one pod has in production.\n";
    let mut text = format!("# Made by `{command}`.\n");
    let mut is_load = false;
    for line in concise_yaml(&study).lines() {
        is_load |= line == "load:";
        text += match line {
            "load:" => &example,
            line if is_load && line.starts_with("  url:") => url,
            line if is_load && line.starts_with("  rate:") => rate,
            _ => "",
        };
        text += line;
        text.push('\n');
    }
    text
}

fn study(context: Option<&str>, manifests: &str, found: &[Found]) -> Study {
    let names = names(found);
    let (name, subject) = (names.first().map_or("app", String::as_str), found.first());
    let port = subject.and_then(|it| it.port).unwrap_or(80);
    let answers = subject.and_then(|it| it.ready_path.as_ref()).filter(|(of, _)| *of == port);
    let path = answers.map_or("/", |(_, path)| path);
    let mut load = Load::new(format!("http://{name}:{port}{path}"));
    load.rate = Some(RATE);
    let mut study = Study::new(name, load);
    study.question = format!("What does instrumentation cost {name}?");
    let context = context.map(str::to_owned);
    study.on.kubernetes = Some(Kubernetes { context, manifests: vec![manifests.to_owned()], ..Kubernetes::default() });
    for (number, (name, it)) in names.iter().zip(found).enumerate() {
        let mut service = Service::new(Command::default());
        service.workload = Some(it.workload.clone());
        service.container.clone_from(&it.container);
        if number > 0 {
            service.role = Role::Dependency;
        }
        service.ready.http = it.ready_path.as_ref().map(|(port, path)| format!("http://{name}:{port}{path}"));
        service.ready.tcp = it.ready_port.map(|port| format!("{name}:{port}"));
        let usual = Ready::default().timeout.as_seconds();
        if it.timeout_s > usual {
            service.ready.timeout = Time::seconds(it.timeout_s);
        }
        study.services.insert(name.clone(), service);
    }
    study.variants.insert(BASELINE.to_owned(), Variant::default());
    study
}

/// What the services are called: as their workloads are, and by the kind as well if two have the same name.
fn names(found: &[Found]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for it in found {
        let (kind, name) = it.workload.split_once('/').unwrap_or(("", &it.workload));
        let name: String = name.chars().map(|c| if c == '.' { '-' } else { c }).take(LONGEST_NAME).collect();
        let taken = names.contains(&name);
        names.push(if taken { format!("{name}-{kind}") } else { name });
    }
    names
}

/// What leaves room for a kind in the name of a service.
const LONGEST_NAME: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::parse;

    fn found(workload: &str) -> Found {
        Found {
            workload: workload.to_owned(),
            container: None,
            port: Some(8080),
            ready_path: None,
            ready_port: None,
            timeout_s: 30.0,
        }
    }

    #[test]
    fn the_first_workload_is_weighed_and_the_others_are_its_dependencies() {
        let shop = Found {
            container: Some("app".to_owned()),
            ready_path: Some((8080, "/ready?deep=1".to_owned())),
            timeout_s: 90.0,
            ..found("deployment/shop.v2")
        };
        let db = Found { port: None, ready_port: Some(5432), ..found("statefulset/db") };
        let all = [shop, db, found("daemonset/db")];
        let text = text(Some("prod"), "deploy/", &all, "unladen import kubernetes deployment/shop.v2");
        let study = parse(&text, "study.yaml", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert!(
            text.starts_with("# Made by `unladen import kubernetes deployment/shop.v2`.\nstudy: shop-v2\n"),
            "{text}"
        );
        let kubernetes = study.on.kubernetes.as_ref().expect("a cluster");
        assert_eq!(
            (kubernetes.context.as_deref(), kubernetes.manifests.as_slice()),
            (Some("prod"), &["deploy/".to_owned()][..])
        );
        let services: Vec<_> =
            study.services.iter().map(|(name, it)| (name.as_str(), it.role, it.workload.as_deref())).collect();
        let wanted = [
            ("shop-v2", Role::Subject, Some("deployment/shop.v2")),
            ("db", Role::Dependency, Some("statefulset/db")),
            ("db-daemonset", Role::Dependency, Some("daemonset/db")),
        ];
        assert_eq!(services, wanted);
        let (subject, db) = (&study.services["shop-v2"], &study.services["db"]);
        assert_eq!(subject.container.as_deref(), Some("app"));
        assert_eq!(subject.ready.http.as_deref(), Some("http://shop-v2:8080/ready?deep=1"));
        assert_eq!(subject.ready.timeout.as_seconds(), 90.0);
        assert_eq!(db.ready, Ready { tcp: Some("db:5432".to_owned()), ..Ready::default() });
        assert_eq!((study.load.url.as_str(), study.load.rate), ("http://shop-v2:8080/ready?deep=1", Some(RATE)));
        assert_eq!(study.variants.keys().collect::<Vec<_>>(), [BASELINE]);
    }

    #[test]
    fn what_is_not_said_is_left_to_the_user() {
        let bare = Found { port: None, ..found("deployment/shop") };
        let text = text(None, "deploy/", &[bare], "x");
        let study = parse(&text, "study.yaml", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!((study.load.url.as_str(), &study.services["shop"].ready), ("http://shop:80/", &Ready::default()));
        for comment in ["# What users ask for", "# Requests a second"] {
            assert_eq!(text.matches(comment).count(), 1, "{text}");
        }
    }

    #[test]
    fn the_example_is_a_variant_once_it_is_no_comment() {
        let text = text(None, "deploy/", &[found("deployment/shop")], "x");
        let uncommented: String = text
            .lines()
            .map(|line| match line.strip_prefix("  # ").filter(|rest| !rest.contains(". ")) {
                Some(rest) => format!("  {rest}\n"),
                None => format!("{line}\n"),
            })
            .collect();
        let uncommented = uncommented.replace("#       # What", "      # What");
        let study = parse(&uncommented, "study.yaml", &[]).unwrap_or_else(|error| panic!("{error}\n{uncommented}"));
        let change = &study.variants["otel"].services["shop"];
        assert_eq!(change.env["OTEL_EXPORTER_OTLP_ENDPOINT"], "http://${sink.otlp_grpc}");
        assert_eq!(change.annotations["instrumentation.opentelemetry.io/inject-java"], "true");
    }
}
