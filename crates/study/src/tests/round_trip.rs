//! A study written out reads back as the same study, whatever stands in it; and the schema accepts it.

use indexmap::IndexMap;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use unladen_journal::role::Role;
use unladen_journal::units::{Bytes, Ratio, Time};

use super::super::mask::{MASK, masked};
use super::super::read::parse;
use super::super::spec::script::{self as values, Condition, Order, Request, Script, Source, Until};
use super::super::spec::{
    Attributes, Capacity, Command, Grpc, Lifetime, Limits, Load, Override, Quantile, Ready, Saturation, Service, Stage,
    Study, TraceHeader, Users, Variant,
};
use super::super::write::{concise_yaml, resolved_yaml};
use super::super::{typed, yaml};
use super::{SHOP, study};

/// Texts that YAML could take for something else.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,20}",
        "\\PC{0,12}",
        "[a-z \n\t]{0,30}",
        "(true|null|~|yes|no|on|1|-1|0x1f|1\\.10|\\.nan|1e5|2001-01-01|<<|=|- x|a: b|#|!x|&x|\\*x|\\[|\\{|'|\"|%|@|`| x |x\n|\n|\\$\\{port.a\\})",
    ]
}

fn names<V: std::fmt::Debug>(value: impl Strategy<Value = V>) -> impl Strategy<Value = IndexMap<String, V>> {
    vec((text(), value), 0..4).prop_map(|entries| {
        // YAML takes `1` and `0x1` for the same key.
        let is_number = |name: &str| name.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        entries.into_iter().filter(|(name, _)| !is_number(name)).collect()
    })
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![text().prop_map(Command::Line), vec(text(), 0..4).prop_map(Command::Words)]
}

fn time() -> impl Strategy<Value = Time> {
    (0..u64::MAX / 2).prop_map(|nanos| Time(std::time::Duration::from_nanos(nanos)))
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..1e9, any::<u32>().prop_map(f64::from)]
}

fn ready() -> impl Strategy<Value = Ready> {
    (option::of(text()), option::of(text()), option::of(text()), any::<bool>(), time())
        .prop_map(|(http, tcp, log, healthy, timeout)| Ready { http, tcp, log, healthy, timeout })
}

fn limits() -> impl Strategy<Value = Limits> {
    (option::of(number()), option::of(text()), option::of(any::<u64>().prop_map(Bytes)))
        .prop_map(|(cpus, cpuset, memory)| Limits { cpus, cpuset, memory })
}

fn service() -> impl Strategy<Value = Service> {
    let lives = prop_oneof![Just(Lifetime::Run), Just(Lifetime::Study)];
    let role = prop_oneof![Just(Role::Subject), Just(Role::Storage)];
    let first = (command(), vec(text(), 0..3), names(text()), option::of(text()), option::of(command()), ready());
    (first, role, lives, limits(), vec(text(), 0..3), any::<u32>(), time()).prop_map(
        |((command, args, env, cwd, build, ready), role, lifetime, limits, needs, replicas, grace)| {
            let mut service = Service::new(command);
            (service.args, service.env, service.cwd, service.build, service.ready) = (args, env, cwd, build, ready);
            (service.role, service.lifetime, service.limits, service.needs) = (role, lifetime, limits, needs);
            (service.replicas, service.stop.grace) = (replicas, grace);
            service
        },
    )
}

fn variant() -> impl Strategy<Value = Variant> {
    let first = (option::of(command()), vec(text(), 0..3), names(text()));
    let change = (first, option::of(ready()), option::of(limits()), option::of(names(text())));
    let change = change.prop_map(|((command, args, env), ready, limits, patch)| Override {
        patch: patch.map(|it| {
            it.into_iter().map(|(name, text)| (name, serde_json::json!([text, 1, null, {"a": true}]))).collect()
        }),
        command,
        args,
        env,
        ready,
        limits,
        ..Override::default()
    });
    (option::of(text()), names(change), option::of(number()), option::of(number().prop_map(Ratio))).prop_map(
        |(label, services, spans_per_request, sampled)| Variant {
            label,
            services,
            spans_per_request,
            sampled,
            ..Variant::default()
        },
    )
}

fn load() -> impl Strategy<Value = Load> {
    (
        text(),
        option::of(number()),
        any::<u32>(),
        names(text()),
        option::of(text()),
        any::<bool>(),
        option::of(any::<u16>()),
    )
        .prop_flat_map(|simple| (Just(simple), script(), any::<(Option<u64>, Option<u64>, u8, u32)>(), text(), time()))
        .prop_map(
            |((url, rate, connections, headers, body, allow_remote, status), script, numbers, file, slot)| {
                let mut load = Load::new(url);
                (load.rate, load.connections, load.headers, load.body) = (rate, connections, headers, body);
                (load.allow_remote, load.check.status) = (allow_remote, status);
                load.trace = if allow_remote { TraceHeader::None } else { TraceHeader::W3c };
                (load.requests, load.burst, load.http, load.streams) = numbers;
                (load.replay, load.tls.ca, load.tls.insecure) = (Some(file.clone()), Some(file.clone()), allow_remote);
                load.slot = Some(slot);
                if allow_remote {
                    load.stages = vec![Stage { duration: slot, target: 1.5 }];
                    load.users = Some(Users { count: 2.0, stages: load.stages.clone(), think: slot, rate });
                    load.grpc = Some(Grpc {
                        method: file.clone(),
                        message: serde_json::json!({"a": [1, -2, 0.5, true, null, file.clone()], "b": {}}),
                        protos: vec![file.clone()],
                        includes: Vec::new(),
                        descriptors: Some(file),
                        status: Some("5".to_owned()),
                    });
                } else {
                    load.script = Some(script);
                }
                load
            },
        )
}

fn script() -> impl Strategy<Value = Script> {
    let condition = (option::of(any::<u16>()), option::of(text()), option::of(text()), any::<Option<i64>>()).prop_map(
        |(status, body_contains, json, equals)| Condition {
            status,
            body_contains,
            json,
            equals: equals.map(Into::into),
            ..Condition::default()
        },
    );
    let source =
        (option::of(text()), option::of(text())).prop_map(|(json, regex)| Source { json, regex, header: None });
    let request = (text(), option::of(text()), names(text()), names(condition), names(source), number()).prop_map(
        |(name, path, headers, expect, capture, weight)| Request {
            until: expect.values().next().map(|holds| Until {
                holds: holds.clone(),
                pause: Time::seconds(0.5),
                most: 3,
            }),
            name,
            weight,
            method: "PUT".to_owned(),
            body: path.clone(),
            span: path.clone(),
            path,
            headers,
            body_file: None,
            check: None,
            kinds: expect.clone(),
            expect,
            capture,
        },
    );
    let made = (any::<Option<i64>>(), option::of(vec(any::<i64>(), 0..3)), any::<bool>(), option::of(text())).prop_map(
        |(counter, integer, uuid, csv)| values::Value { counter, integer, uuid, csv, ..values::Value::default() },
    );
    (names(made), vec(request, 0..3)).prop_map(|(values, requests)| Script { order: Order::Sequence, values, requests })
}

fn any_study() -> impl Strategy<Value = Study> {
    let top =
        (text(), text(), any::<u32>(), time(), option::of(any::<u64>()), any::<bool>(), (0.0..10.0).prop_map(Ratio));
    (top, names(text()), names(service()), names(variant()), load(), names(names(text()))).prop_map(
        |((name, question, rounds, window, seed, placebo, margin), variables, services, variants, load, profiles)| {
            let mut study = Study::new(name, load);
            (study.question, study.rounds, study.window, study.seed) = (question, rounds, window, seed);
            (study.placebo, study.margin, study.sink.attributes) = (placebo, margin, Attributes::All);
            (study.budgets, study.variables) = (variables.clone(), variables);
            (study.services, study.variants, study.profiles) = (services, variants, profiles);
            (study.until, study.at_most) = (study.budgets.clone(), placebo.then_some(window));
            study.saturation = placebo.then(Saturation::default);
            study.capacity = seed.map(|seed| Capacity {
                quantile: Quantile::P999,
                limit: window,
                errors: margin,
                from: Some(1.5),
                most: 1e6,
                trial: window,
                precision: margin,
                time: window,
                connections: u32::try_from(seed).ok(),
            });
            study
        },
    )
}

/// The study in a text, its types only: what stands in these studies is no sense.
fn read(text: &str) -> Study {
    let tree = yaml::parse(text).unwrap_or_else(|problem| panic!("{problem:?} in\n{text}"));
    typed::study(&tree).unwrap_or_else(|problems| panic!("{problems:?} in\n{text}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_resolved_study_is_the_study(study in any_study()) {
        let text = resolved_yaml(&study);
        let back = read(&text);
        prop_assert_eq!(&back, &study, "{}", text);
    }

    #[test]
    fn the_schema_accepts_every_study(study in any_study()) {
        let tree = yaml::parse(&resolved_yaml(&study)).expect("YAML");
        let json = super::documents::json(&tree);
        let errors: Vec<String> = super::documents::validator().iter_errors(&json).map(|error| error.to_string()).collect();
        prop_assert!(errors.is_empty(), "{errors:?}");
    }

    #[test]
    fn masking_twice_is_masking_once(study in any_study()) {
        let once = masked(&study);
        prop_assert_eq!(masked(&once), once);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn a_concise_study_is_the_study(study in any_study()) {
        prop_assert_eq!(read(&concise_yaml(&study)), study);
    }
}

#[test]
fn the_resolved_copy_has_every_key() {
    let text = resolved_yaml(&study(SHOP, &[]));
    for key in [
        "rounds: 12",
        "warmup: 2s",
        "quiet: 6s",
        "margin: 1%",
        "seed: null",
        "replicas: 1",
        "grace: 10s",
        "allow_remote: false",
        "connections: 16",
        "attributes: few",
    ] {
        assert!(text.contains(key), "{key} in\n{text}");
    }
    assert_eq!(study(&text, &[]), study(SHOP, &[]));
}

#[test]
fn the_concise_copy_has_no_defaults() {
    let text = concise_yaml(&study(SHOP, &["rounds=12", "load.connections=16", "load.rate=null"]));
    for key in ["rounds", "warmup", "connections", "seed", "null", "[]"] {
        assert!(!text.contains(key), "{key} in\n{text}");
    }
    assert!(text.contains("otel:") && text.contains("window: 1s"), "{text}");
}

#[test]
fn secrets_are_masked_wherever_they_stand() {
    let secretive = study(
        "
study: shop
variables: {api_token: s3cret}
services:
  app:
    command: app --password s3cret --db postgres://joe:s3cret@127.0.0.1/x
    args: ['--client-secret=s3cret', --token, s3cret]
    build: [make, KEY=s3cret]
    env: {DB_PASSWORD: s3cret, API_KEY: '${env.API_KEY}', OTEL_EXPORTER_OTLP_HEADERS: 'api-key=s3cret', PORT: 80}
variants:
  baseline:
  otel: {services: {app: {env: {AUTH: s3cret}, command: 'app -Dx.secret=s3cret'}}}
load:
  url: http://joe:s3cret@127.0.0.1/?token=s3cret
  headers: {Authorization: Bearer s3cret, Accept: text/html}
  body: 'password=s3cret&x=1'
profiles: {ci: {services.app.env.DB_PASSWORD: s3cret, window: 1s}}
",
        &[],
    );
    let text = resolved_yaml(&masked(&secretive));
    assert!(!text.contains("s3cret"), "{text}");
    assert!(text.matches(MASK).count() >= 15, "{text}");
    for kept in ["${env.API_KEY}", "text/html", "--db postgres://joe:***@127.0.0.1/x", "password=***&x=1", "window: 1s"]
    {
        assert!(text.contains(kept), "{kept} in\n{text}");
    }
    assert!(parse(&text, "study.yaml", &[]).is_ok(), "a masked study is still a study");
}
