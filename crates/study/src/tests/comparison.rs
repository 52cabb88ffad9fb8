//! Studies from the options of `unladen compare`.

use std::path::{Path, PathBuf};

use super::super::compare::{Bare, CompareError, Comparison, NamedAgent};
use super::super::plan::Plan;
use super::super::write::concise_yaml;
use super::study;

fn comparison(url: &str, baseline: &str, variants: &[&str]) -> Comparison {
    Comparison {
        url: url.to_owned(),
        rate: Some(500.0),
        connections: None,
        reach: Vec::new(),
        baseline: Bare::Command(baseline.to_owned()),
        variants: variants.iter().map(|variant| variant.parse().expect("a variant")).collect(),
        agents: Vec::new(),
        cwd: PathBuf::from("/home/joe/shop"),
    }
}

#[test]
fn a_comparison_is_printed_as_a_study_to_edit() {
    let made = comparison(
        "http://127.0.0.1:8080/vets",
        "PROFILE=prod /usr/bin/java -jar app.jar",
        &[
            "otel=OTEL_EXPORTER_OTLP_ENDPOINT='http://${sink.otlp_grpc}' java -javaagent:otel.jar -jar app.jar",
            "slow=java -Dname='a b' -jar app.jar",
        ],
    )
    .study()
    .expect("a study");
    let text = concise_yaml(&made);
    assert_eq!(
        text,
        "\
study: compare-java
question: What does otel or slow cost java?
services:
  java:
    command: /usr/bin/java -jar app.jar
    cwd: /home/joe/shop
    ready:
      http: http://127.0.0.1:8080/vets
      tcp: 127.0.0.1:8080
      timeout: 180s
variants:
  baseline:
    services:
      java:
        env:
          PROFILE: prod
  otel:
    services:
      java:
        command: java -javaagent:otel.jar -jar app.jar
        env:
          OTEL_EXPORTER_OTLP_ENDPOINT: http://${sink.otlp_grpc}
  slow:
    services:
      java:
        command: java -Dname='a b' -jar app.jar
load:
  url: http://127.0.0.1:8080/vets
  rate: 500
"
    );
    assert_eq!(study(&text, &[]), made, "saved, it is the same study");
    let plan = Plan::from_study(made, Path::new("/anywhere")).expect("a plan");
    assert_eq!(
        plan.variants.iter().map(|variant| variant.name.as_str()).collect::<Vec<_>>(),
        ["baseline", "placebo", "otel", "slow"]
    );
    assert_eq!(plan.variants[3].processes[0].command[1], "-Dname=a b");
    assert!(plan.variants[3].processes[0].env.is_empty(), "what the baseline alone sets doesn't reach the others");
    assert_eq!(plan.sinks(), ["otlp_grpc"]);
}

#[test]
fn agents_by_name_are_variants_of_the_bare_command() {
    let of = |baseline: &str, variants: &[&str], agents: &[&str]| Comparison {
        agents: agents.iter().map(|agent| agent.parse().expect("an agent")).collect(),
        ..comparison("http://127.0.0.1:8080/vets", baseline, variants)
    };
    let agents = ["otel-java=agents/otel.jar", "elastic-java:all=/el$.jar", "skywalking-java=${env.SW}"];
    let made = of("PORT=8080 java -jar app.jar", &[], &agents).study().expect("a study");
    let text = concise_yaml(&made);
    let variants = text.split("variants:\n").nth(1).and_then(|rest| rest.split("load:").next());
    assert_eq!(
        variants,
        Some(
            "  baseline:
    services:
      java:
        env:
          PORT: \"8080\"
  otel-java:
    services:
      java:
        agent:
          otel-java: /home/joe/shop/agents/otel.jar
        env:
          PORT: \"8080\"
  elastic-java-all:
    services:
      java:
        agent:
          elastic-java:
            path: /el$$.jar
            spans: all
        env:
          PORT: \"8080\"
  skywalking-java:
    services:
      java:
        agent:
          skywalking-java: ${env.SW}
        env:
          PORT: \"8080\"
"
        )
    );
    assert_eq!(made.question, "What does otel-java or elastic-java-all or skywalking-java cost java?");
    assert_eq!(study(&text, &[]), made, "saved, it is the same study");
    let plan = Plan::from_study(made, Path::new("/anywhere")).expect("a plan");
    let command = &plan.variants[2].processes[0].command;
    assert_eq!(command.join(" "), "java -javaagent:/home/joe/shop/agents/otel.jar -jar app.jar");
    assert_eq!(plan.variants[3].processes[0].env["ELASTIC_APM_SPAN_COMPRESSION_ENABLED"], "false");
    assert_eq!(plan.sinks(), ["elastic", "otlp_http", "skywalking"]);

    // Beside a command of one's own, and not twice.
    assert!(of("python3 app.py", &["own=python3 own.py"], &["otel-python"]).study().is_ok());
    let twice = of("python3 app.py", &[], &["otel-python", "otel-python"]).study().expect_err("no study");
    assert_eq!(twice.to_string(), "two variants are named `otel-python`; give each a name of its own");
    let refused = |text: &str| text.parse::<NamedAgent>().expect_err("no agent").to_string();
    assert_eq!(
        refused("otel-jva=x.jar"),
        "no agent is called `otel-jva` (`unladen agents` lists them), did you mean `otel-java`?"
    );
    assert!(refused("otel-java:most=x").starts_with("`most` is no flavour of an agent; write `otel-java`, or"));
}

#[test]
fn readiness_is_at_the_url() {
    for (url, address) in [
        ("http://localhost/x:y", "localhost:80"),
        ("https://[::1]/", "[::1]:443"),
        ("http://[::1]:81?x", "[::1]:81"),
        ("http://joe:pw@127.0.0.1:82/", "127.0.0.1:82"),
        ("http://127.0.0.1:${port.app}/", "127.0.0.1:${port.app}"),
    ] {
        let study = comparison(url, "./my ${port.app}", &["b=x"]).study().expect(url);
        assert_eq!(study.services["my"].ready.tcp.as_deref(), Some(address));
        assert!(Plan::from_study(study, Path::new("/x")).is_ok(), "{url}");
    }
}

#[test]
fn a_service_is_named_after_its_program() {
    for (command, name) in
        [("python3 -m http.server", "python3"), ("/opt/a.b/run.sh", "run-sh"), ("'…'", "service"), ("./x", "x")]
    {
        let study = comparison("http://localhost/", command, &["b=x"]).study().expect(command);
        assert_eq!(study.services.keys().next().map(String::as_str), Some(name));
        assert_eq!(study.study, format!("compare-{name}"));
    }
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let refusal = |comparison: Comparison| comparison.study().expect_err("no study").to_string();
    assert_eq!(
        refusal(comparison("localhost:80", "a", &["b=c"])),
        "--url: `localhost:80` is not a URL to send requests to: it doesn't begin with `http://`; write one such as `http://127.0.0.1:8080/path`"
    );
    assert!(
        refusal(comparison("http://example.org/", "a", &["b=c"]))
            .starts_with("--url: `example.org` isn't this machine")
    );
    assert_eq!(
        refusal(comparison("http://localhost/", "a 'b", &["b=c"])),
        "--baseline: the quote `'` at character 3 of the command isn't closed"
    );
    assert!(refusal(comparison("http://localhost/", "a", &["b=c | d"])).starts_with("--variant b: `|` needs a shell"));
    assert_eq!(
        refusal(comparison("http://localhost/", "a", &["b=c", "b=d"])),
        "two variants are named `b`; give each a name of its own"
    );
    assert_eq!(
        refusal(comparison("http://localhost/", "a", &[])),
        "there is nothing to compare the baseline with; add `--variant 'NAME=COMMAND'`, or `--agent NAME=PATH`"
    );
    let still = Comparison { rate: Some(0.0), ..comparison("http://localhost/", "a", &["b=c"]) };
    assert_eq!(refusal(still), "--rate: a rate is more than 0 requests per second, not 0");

    let named = |text: &str| text.parse::<super::super::compare::NamedCommand>();
    assert!(matches!(named("java -jar x"), Err(CompareError::NoName { .. })));
    assert!(matches!(named("java -Dx=y"), Err(CompareError::BadName { .. })));
    assert!(matches!(named("baseline=x"), Err(CompareError::Reserved { .. })));
}

#[test]
fn services_of_compose_files_are_compared_by_further_files() {
    let files = vec!["compose.yaml".to_owned()];
    let baseline = Bare::Compose { files, service: "api".to_owned() };
    let of =
        |url: &str| Comparison { baseline: baseline.clone(), ..comparison(url, "", &["otel=otel.yaml, more.yaml"]) };
    let text = concise_yaml(&of("http://api:8080/vets").study().expect("a study"));
    assert_eq!(
        text,
        "\
study: compare-api
question: What does otel cost api?
on:
  compose:
    - compose.yaml
services:
  api:
    ready:
      http: http://api:8080/vets
      timeout: 180s
variants:
  baseline: {}
  otel:
    compose:
      - otel.yaml
      - more.yaml
load:
  url: http://api:8080/vets
  rate: 500
"
    );
    let plan = Plan::from_study(study(&text, &[]), Path::new("/x")).expect("a plan");
    let files: Vec<_> = plan
        .variants
        .iter()
        .map(|it| it.stack.as_ref().map(|stack| stack.files().collect::<Vec<_>>().join(" ")).unwrap_or_default())
        .collect();
    assert_eq!(files, ["compose.yaml", "compose.yaml", "compose.yaml otel.yaml more.yaml"]);
    assert!(plan.variants.iter().flat_map(|variant| &variant.processes).all(|process| process.is_stacked()));
    let elsewhere = of("http://db:8080/").study().expect_err("another host").to_string();
    assert!(elsewhere.contains("--url") && elsewhere.contains("db"), "{elsewhere}");
}
