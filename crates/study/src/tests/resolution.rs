//! `${…}` filled in when a run is about to start.

use std::path::{Path, PathBuf};

use super::super::plan::{Plan, Process};
use super::super::variables::{PortName, Variables, names, resolve};
use super::study;

fn variables() -> Variables {
    let port = |name: &str, replica| PortName { name: name.to_owned(), replica };
    Variables {
        ports: [(port("app", 0), 4000), (port("app", 1), 4001)].into(),
        sinks: [("otlp_grpc".to_owned(), "127.0.0.1:4317".to_owned())].into(),
        study_dir: PathBuf::from("/studies/shop"),
        run_dir: Some(PathBuf::from("/runs/01-otel")),
        unladen: PathBuf::from("/usr/bin/unladen"),
        values: [("heap".to_owned(), "5$".to_owned()), ("nested".to_owned(), "<${var.heap} ${port.app}>".to_owned())]
            .into(),
        hosts: Vec::new(),
        environment: [("HOME".to_owned(), "/home/joe".to_owned()), ("EMPTY".to_owned(), String::new())].into(),
    }
}

#[test]
fn every_kind_of_reference_is_filled_in() {
    let variables = variables();
    for (text, filled_in) in [
        ("plain", "plain"),
        ("a ${port.app} ${port.app.0} ${port.app.1}", "a 4000 4000 4001"),
        ("http://${sink.otlp_grpc}", "http://127.0.0.1:4317"),
        ("${sink.otlp_grpc.port} of ${sink.otlp_grpc.host}", "4317 of 127.0.0.1"),
        ("${study.dir}:${run.dir}:${unladen}", "/studies/shop:/runs/01-otel:/usr/bin/unladen"),
        ("${var.nested}{x}", "<5$ 4000>{x}"),
        ("${env.HOME} ${env.NONE:-} ${env.NONE:-a b} ${env.EMPTY:-c}|${env.EMPTY}|", "/home/joe  a b c||"),
        ("$$ $${port.app} $HOME $1 5$", "$ ${port.app} $HOME $1 5$"),
        ("é${port.app}é", "é4000é"),
    ] {
        assert_eq!(resolve(text, &variables).as_deref(), Ok(filled_in), "{text}");
    }
}

#[test]
fn what_is_filled_in_is_not_read_again() {
    let mut variables = variables();
    variables.environment.insert("ODD".to_owned(), "${port.app} $$".to_owned());
    assert_eq!(resolve("${env.ODD}", &variables).as_deref(), Ok("${port.app} $$"));
}

#[test]
fn what_is_not_known_is_refused() {
    let variables = Variables { run_dir: None, ..variables() };
    for (text, message) in [
        (
            "${env.TOKEN}",
            "the environment variable `TOKEN` isn't set; set it before starting unladen, or write `${env.TOKEN:-default}`",
        ),
        ("${port.web}", "`${port.web}` isn't known here: no port was taken for it"),
        ("${sink.otlp_http}", "`${sink.otlp_http}` isn't known here: the sink isn't listening yet"),
        ("${run.dir}", "`${run.dir}` isn't known here: it is the folder of a run, and none is under way"),
        (
            "${replica}",
            "`${replica}` isn't known here: it numbers the replicas of a service, and this isn't a part of one",
        ),
        ("${var.hep}", "the variable `hep` isn't defined, did you mean `${var.heap}`?"),
    ] {
        assert_eq!(resolve(text, &variables).expect_err(text).to_string(), message);
    }
}

const STUDY: &str = "
study: shop
services:
  app:
    command: bin/app --port ${port.app} '$x'
    build: ./make
    cwd: app
    env: {TOKEN: '${env.TOKEN}', HOME: '${env.HOME}'}
    ready: {http: 'http://127.0.0.1:${port.app}/', log: 'port ${port.app}'}
variants: {baseline: , otel: {services: {app: {cwd: '${run.dir}'}}}}
load:
  url: http://127.0.0.1:${port.app}/
  headers: {X: '${env.HOME}'}
  body: ${study.dir}
";

fn process(variant: usize) -> Process {
    let plan = Plan::from_study(study(STUDY, &[]), Path::new("/studies/shop")).expect("a plan");
    plan.variants[variant].processes[0].clone()
}

#[test]
fn a_process_is_filled_in_and_its_paths_are_absolute() {
    let mut variables = variables();
    let error = process(0).resolve(&variables).expect_err("TOKEN isn't set");
    assert!(error.to_string().starts_with("app: env.TOKEN: the environment variable `TOKEN` isn't set"), "{error}");

    variables.environment.insert("TOKEN".to_owned(), "s3cret".to_owned());
    let resolved = process(0).resolve(&variables).expect("a process");
    assert_eq!(resolved.cwd, Path::new("/studies/shop/app"));
    assert_eq!(resolved.command, ["/studies/shop/app/bin/app", "--port", "4000", "$x"]);
    assert_eq!(resolved.build.as_deref(), Some(&["/studies/shop/app/./make".to_owned()][..]));
    assert_eq!(resolved.env["TOKEN"], "s3cret");
    assert_eq!(resolved.ready.http.as_deref(), Some("http://127.0.0.1:4000/"));
    assert_eq!(resolved.ready.log.as_deref(), Some("port 4000"));
    let otel = process(2).resolve(&variables).expect("a process");
    assert_eq!(otel.cwd, Path::new("/runs/01-otel"), "an absolute folder stays");
}

#[test]
fn a_load_is_filled_in_and_still_stays_on_this_machine() {
    let load = study(STUDY, &[]).load.resolve(&variables()).expect("a load");
    assert_eq!((load.url.as_str(), load.body.as_deref()), ("http://127.0.0.1:4000/", Some("/studies/shop")));
    assert_eq!(load.headers["X"], "/home/joe");

    let mut variables = variables();
    variables.environment.insert("HOST".to_owned(), "shop.example.org".to_owned());
    let remote = study(STUDY, &["load.url=http://${env.HOST}/"]).load;
    let error = remote.resolve(&variables).expect_err("another machine");
    assert!(error.to_string().starts_with("load.url: `shop.example.org` isn't this machine"), "{error}");
    let allowed = study(STUDY, &["load.url=http://${env.HOST}/", "load.allow_remote=true"]).load;
    assert!(allowed.resolve(&variables).is_ok());
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "[$\\{\\}a-z.:-]{0,40}|(\\$\\{(port|var|env|sink|run)\\.[a-z.:-]{0,6}\\}? ?){0,4}") {
        let _ = names(&text);
        let _ = resolve(&text, &variables());
    }

    /// Text without a dollar is itself; doubling every dollar keeps any text as it is.
    #[test]
    fn dollars_are_doubled_to_be_kept(text in "\\PC{0,40}") {
        proptest::prop_assert_eq!(resolve(&text.replace('$', "$$"), &variables()), Ok(text));
    }
}
