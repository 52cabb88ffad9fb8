//! Agents by name: one that is really there, and those that are not.

use std::fs;
use std::path::Path;

use crate::harness::{Scratch, counting};

/// Python with OpenTelemetry, as `make deps` sets it up for the senders.
fn python() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/senders/python/bin/python");
    assert!(path.exists(), "{} is not there; `make deps` sets up the senders", path.display());
    path.display().to_string()
}

/// Lines that services of a variant have logged.
fn logged(scratch: &Scratch, dir: &str) -> String {
    let logs = fs::read_dir(scratch.path("out").join(dir).join("logs")).expect("logs").flatten();
    logs.map(|entry| fs::read_to_string(entry.path()).unwrap_or_default()).collect()
}

/// By OpenTelemetry for Python, without code: its program goes in front of the command, its packages are those of the interpreter.
#[test]
fn spans_of_an_agent_by_name_arrive() {
    let _turn = counting();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/traced.py");
    let scratch = Scratch::new();
    // Spans are sent soon, so that the drain is short.
    let command = format!("OTEL_BSP_SCHEDULE_DELAY=200 {} {} ${{port.app}}", python(), script.display());
    let compare =
        ["compare", "--url", "http://127.0.0.1:${port.app}/", "--connections", "1", "--rounds", "1", "--plain"];
    let times = ["--warmup", "300ms", "--window", "700ms", "--alone", "200ms", "--out", "out"];
    let sides = ["--command", command.as_str(), "--agent", "otel-python"];
    let output = scratch.unladen(&[&compare[..], &times[..], &sides[..]].concat()).ends_with(0);
    assert!(output.err.contains("agent: otel-python"), "the study that it made says it in short:\n{}", output.err);

    let runs = scratch.runs();
    assert!(runs.iter().any(|run| run.variant == "otel-python"), "{}", output.err);
    for run in &runs {
        let answered = run.load.as_ref().expect("a load").answered_total;
        let ledger = run.ledger.as_ref().expect("a ledger");
        assert!(answered > 0);
        let wanted = if run.variant == "otel-python" { answered } else { 0 };
        assert_eq!((ledger.saved, ledger.lost, ledger.unexplained), (wanted, 0, 0), "{}: {ledger:?}", run.variant);
        // It could call nobody from there.
        let network = fs::read_link("/proc/self/ns/net").expect("a network").display().to_string();
        if rustix::process::geteuid().is_root() {
            let log = logged(&scratch, &run.dir);
            assert!(log.contains("network net:[") && !log.contains(&network), "{}: {log}", run.variant);
        }
    }
    scratch.assert_nothing_left();
}

/// Nothing is started, and what to install is said.
#[test]
fn an_agent_that_is_not_there_is_told_of_before_anything_is_started() {
    let _turn = counting();
    let scratch = Scratch::new();
    scratch.write("page.jar", "<html>");
    let compare = |command: &str, agent: &str| {
        let all =
            ["compare", "--url", "http://127.0.0.1:${port.app}/", "--rounds", "1", "--plain", "--command", command];
        // Two in one second would have one folder.
        let out = format!("out-{agent}");
        scratch.unladen(&[&all[..], &["--agent", agent, "--out", &out]].concat()).ends_with(2)
    };
    let java = "java -jar app.jar ${port.app}";
    compare(java, "otel-java=otel.jar").complains(&["there is no ", "/otel.jar. Get it with: mvn dependency:copy"]);
    compare(java, "otel-java=page.jar").complains(&["/page.jar is no jar", "Get it with: mvn dependency:copy"]);
    compare(java, "otel-java=.").complains(&["is a folder; name the jar itself, one of page.jar"]);
    compare(java, "otel-jav=otel.jar").complains(&["no agent is called `otel-jav`", "did you mean `otel-java`?"]);
    compare(java, "otel-java").complains(&["`otel-java` needs the path of the agent's jar"]);
    compare("sh run.sh ${port.app}", "otel-java=otel.jar")
        .complains(&["`otel-java` is inserted after `java`, but this command starts with `sh`"]);
    compare("node app.js ${port.app}", "otel-node")
        .complains(&["@opentelemetry/auto-instrumentations-node is not installed in ", "npm install"]);
    compare("venv/bin/python app.py ${port.app}", "otel-python").complains(&[
        "opentelemetry-distro is not installed where venv/bin/python is",
        "pip install opentelemetry-distro",
    ]);
    scratch.assert_nothing_left();
}
