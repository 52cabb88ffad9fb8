//! A real Prometheus (Debian's) scrapes a study under way, and answers every query of the Grafana dashboard.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use unladen::live::Display;
use unladen::live::metrics::Endpoint;
use unladen::under_way::{Live, Second, Service, Variant};
use unladen_measure::watch::{Phase, Step};
use unladen_probe::query::Query;

fn dashboard() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grafana/unladen.json");
    serde_json::from_str(&fs::read_to_string(path).expect("the dashboard")).expect("JSON")
}

fn panels(dashboard: &Value) -> &Vec<Value> {
    dashboard["panels"].as_array().expect("panels")
}

/// The queries of all panels, with the variables filled in.
fn queries(dashboard: &Value) -> Vec<String> {
    let targets = panels(dashboard).iter().flat_map(|it| it["targets"].as_array().expect("targets"));
    targets.map(|it| it["expr"].as_str().expect("a query").replace("$study", "shop.*")).collect()
}

/// Ends with the value.
struct Prometheus(Child);

impl Drop for Prometheus {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A study in the middle of a window, with everything known that can be.
fn live() -> Live {
    let labels = ["baseline", "otel"].map(|it| (it.to_owned(), it.to_owned()));
    let mut live = Live::new("shop \"1\"", &labels.into_iter().collect());
    (live.runs_done, live.runs_of, live.left_s, live.round) = (12, 24, Some(90.0), 7);
    (live.variant, live.phase) = ("otel".to_owned(), Some(Phase::Window));
    live.second = Some(Second { second: 3, answered: 1000, errors: 1, p99_us: 900.0 });
    let service = |service: &str, role: &str| Service {
        service: service.to_owned(),
        role: role.to_owned(),
        cpu_cores: Some(0.5),
        rss: Some(1 << 20),
    };
    live.services = vec![service("shop", "subject"), service("otelcol", "collector"), service("load", "instrument")];
    let known = Variant {
        runs: 6,
        void: 1,
        requests: 6000,
        cpu_us_per_request: Some(151.0),
        ratio: Some(0.17),
        ratio_interval: Some((0.16, 0.19)),
        p99_us: Some(900.0),
        rss: Some(1 << 24),
        wanted: 100,
        saved: 93,
        lost: 7,
        ..Variant::default()
    };
    live.variants.values_mut().for_each(|it| *it = Variant { label: it.label.clone(), ..known.clone() });
    live
}

#[test]
fn prometheus_answers_every_query_of_the_dashboard() {
    let mut endpoint = Endpoint::open((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
    endpoint.show(Step::Phase(Phase::Window), &live());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = format!(
        "global: {{scrape_interval: 250ms, scrape_timeout: 250ms}}\nscrape_configs:\n- job_name: unladen\n  static_configs:\n  - targets: ['{}']\n",
        endpoint.address()
    );
    fs::write(folder.path().join("prometheus.yml"), config).expect("a temporary folder");
    let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a free port").port();
    let child = Command::new("prometheus")
        .current_dir(folder.path())
        .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--log.level=error"])
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("prometheus is not there: `make deps` installs it");
    let _prometheus = Prometheus(child);

    // Everything comes with one scrape; the first query waits for it.
    let until = Instant::now() + Duration::from_secs(60);
    let mut last = String::new();
    for query in queries(&dashboard()) {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let url = format!("http://127.0.0.1:{port}/api/v1/query?query={encoded}");
        let ask = Query::Json { url, body: None, pointer: "/data/result/0/value/1".to_owned() };
        while let Err(error) = ask.ask(None) {
            last = error.to_string();
            assert!(Instant::now() < until, "{query}: {last}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    assert!(!last.is_empty(), "nothing had been scraped at first");
}

#[test]
fn the_dashboard_is_one_that_grafana_takes() {
    let dashboard = dashboard();
    assert!(
        dashboard["schemaVersion"].as_u64() >= Some(36) && dashboard["uid"].as_str().is_some_and(|it| it.len() <= 40)
    );
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    let names: Vec<_> = variables.iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(names, ["datasource", "study"]);
    let kinds = ["stat", "bargauge", "timeseries", "state-timeline", "table"];
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels(&dashboard) {
        let title = panel["title"].as_str().expect("a title");
        assert!(kinds.contains(&panel["type"].as_str().expect("a type")), "{title}");
        assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{title}: two panels have its id");
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        let side = |name: &str| panel["gridPos"][name].as_u64().expect(title);
        assert!(side("x") + side("w") <= 24 && side("w") > 0 && side("h") > 0, "{title} does not fit");
        for x in side("x")..side("x") + side("w") {
            for y in side("y")..side("y") + side("h") {
                assert!(cells.insert((x, y)), "{title} lies on another panel");
            }
        }
        let references: Vec<_> = panel["targets"].as_array().expect(title).iter().map(|it| &it["refId"]).collect();
        assert!(references.iter().enumerate().all(|(at, it)| !references[..at].contains(it)), "{title}");
        assert!(panel["fieldConfig"]["defaults"]["unit"].is_string() && panel["options"].is_object(), "{title}");
    }
}

/// What Grafana's own types say against a dashboard.
fn complaints(dashboard: &Value) -> String {
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/grafana/check.mjs");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("dashboard.json");
    fs::write(&file, dashboard.to_string()).expect("a temporary folder");
    let output = Command::new("node").arg(&check).arg(&file).output().expect("node is there");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.is_empty(), "{stderr}\n`make deps` installs {}", check.display());
    assert_eq!(output.status.success(), stdout.is_empty(), "{stdout}");
    stdout
}

#[test]
fn grafanas_own_types_take_the_dashboard() {
    let dashboard = dashboard();
    assert_eq!(complaints(&dashboard), "");
    // And they would not take everything.
    for (pointer, name, value, complaint) in [
        ("/panels/0/options", "colorMode", "loud", "\"loud\"' is not assignable"),
        ("/panels/5/options/legend", "placment", "bottom", "'\"placment\"' does not exist"),
        ("/panels/11/fieldConfig/defaults/custom", "spanNull", "x", "'\"spanNull\"' does not exist"),
        ("/panels/0/gridPos", "w", "wide", "'string' is not assignable to type 'number'"),
        ("", "refesh", "5s", "'\"refesh\"' does not exist"),
        ("/templating/list/0", "typ", "datasource", "'\"typ\"' does not exist"),
    ] {
        let mut wrong = dashboard.clone();
        wrong.pointer_mut(pointer).expect(pointer)[name] = value.into();
        let stdout = complaints(&wrong);
        assert!(stdout.contains(complaint), "{pointer}/{name}: {stdout}");
    }
}

#[test]
fn every_metric_of_the_endpoint_is_described() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to/watching.md");
    let page = fs::read_to_string(page).expect("the page is there");
    let text = unladen::live::metrics::render(&live());
    for name in text.lines().filter_map(|it| it.strip_prefix("# TYPE ")?.split(' ').next()) {
        assert!(page.contains(&format!("`{name}`")), "docs/how-to/watching.md says nothing of {name}");
    }
}
