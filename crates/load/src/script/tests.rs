//! Scripts without sockets: what is rendered, and where an iteration goes after each answer.

use super::*;
use crate::plan::{Capture, NamedTest, Source, Test, TraceHeader, Until, Value};

fn script(plan: &Plan) -> Result<Option<Script>, LoadError> {
    Script::new(plan, &Target::parse(&plan.url).expect("a good url"))
}

fn render(script: &mut Script, progress: &Progress, index: u64) -> String {
    String::from_utf8(script.render(progress, index).0.to_vec()).expect("text")
}

/// `POST /jobs`, take its id, `GET` it until it is done.
fn job_plan() -> Plan {
    let mut plan = Plan::new("http://h:1/");
    plan.headers = vec![("X-All".to_owned(), "1".to_owned())];
    plan.order = Order::Sequence;
    plan.requests = vec![
        Request {
            method: "POST".to_owned(),
            path: Some("/jobs".to_owned()),
            body: Some("{\"n\": {{n}}}".to_owned()),
            captures: vec![Capture { name: "id".to_owned(), from: Source::Json("/id".to_owned()) }],
            ..Request::new("create")
        },
        Request {
            path: Some("/jobs/{{id}}".to_owned()),
            headers: vec![("X-Id".to_owned(), "{{id}}".to_owned())],
            checks: vec![NamedTest { name: "small".to_owned(), test: Test::BodyContains("done".to_owned()) }],
            until: Some(Until {
                test: Test::JsonEquals { pointer: "/state".to_owned(), value: "done".into() },
                pause_s: 0.5,
                most: 3,
            }),
            ..Request::new("poll")
        },
    ];
    plan.values.insert("n".to_owned(), Value::Counter { from: 10 });
    plan
}

fn answer(body: &str) -> WholeAnswer<'_> {
    WholeAnswer::new(200, b"HTTP/1.1 200 OK\r\n\r\n", body.as_bytes())
}

#[test]
fn a_plain_plan_needs_no_script() {
    assert!(script(&Plan::new("http://h/")).expect("good").is_none());
}

#[test]
fn an_iteration_posts_takes_the_id_and_asks_until_it_is_done() {
    let mut script = script(&job_plan()).expect("good").expect("a script");
    let (mut progress, mut counts) = (Progress::default(), vec![(0, 0)]);
    script.begin(&mut progress, 3);
    assert_eq!(
        render(&mut script, &progress, 0),
        "POST /jobs HTTP/1.1\r\nHost: h:1\r\nX-All: 1\r\nContent-Length: 9\r\n\r\n{\"n\": 13}"
    );
    assert_eq!(script.look(&mut progress, &answer("{\"id\": \"a 7\"}"), &mut counts), Verdict::Good);
    assert_eq!(script.advance(&mut progress, true, false), Next::Step(0));
    let poll = "GET /jobs/a%207 HTTP/1.1\r\nHost: h:1\r\nX-All: 1\r\nX-Id: a 7\r\n\r\n";
    assert_eq!(render(&mut script, &progress, 1), poll);
    let (waiting, done) = ("{\"state\": \"running\"}", "{\"state\": \"done\"}");
    assert_eq!(script.look(&mut progress, &answer(waiting), &mut counts), Verdict::NotYet);
    assert_eq!(script.advance(&mut progress, true, true), Next::Step(500_000_000));
    assert_eq!(render(&mut script, &progress, 2), poll);
    assert_eq!(script.look(&mut progress, &answer(done), &mut counts), Verdict::Good);
    assert_eq!(script.advance(&mut progress, true, false), Next::Done);
    assert_eq!(counts, [(1, 0)], "tests are made of the answer that was waited for");
}

#[test]
fn an_iteration_ends_when_a_step_fails_or_patience_does() {
    let script = script(&job_plan()).expect("good").expect("a script");
    let (mut progress, mut counts) = (Progress::default(), vec![(0, 0)]);
    script.begin(&mut progress, 0);
    assert_eq!(script.look(&mut progress, &answer("{}"), &mut counts), Verdict::NothingToCapture);
    assert_eq!(script.advance(&mut progress, false, false), Next::Done);
    script.begin(&mut progress, 1);
    assert_eq!(script.look(&mut progress, &answer("{\"id\": 1}"), &mut counts), Verdict::Good);
    script.advance(&mut progress, true, false);
    for _ in 0..2 {
        assert_eq!(script.look(&mut progress, &answer("{}"), &mut counts), Verdict::NotYet);
        script.advance(&mut progress, true, true);
    }
    assert_eq!(script.look(&mut progress, &answer("{}"), &mut counts), Verdict::TestFailed);
    assert_eq!(script.advance(&mut progress, false, false), Next::Done);
}

#[test]
fn alternatives_are_chosen_by_weight_and_always_alike() {
    let mut plan = Plan::new("http://h/");
    plan.requests =
        [("a", 1.0), ("b", 3.0), ("c", 6.0)].map(|(name, weight)| Request { weight, ..Request::new(name) }).into();
    let script = script(&plan).expect("good").expect("a script");
    let mut counts = [0; 3];
    for iteration in 0..10_000 {
        let mut progress = Progress::default();
        script.begin(&mut progress, iteration);
        counts[progress.step] += 1;
    }
    // The seed is fixed, so this cannot flake; 4 standard deviations of a fair draw are at most 200.
    for (count, expected) in counts.into_iter().zip([1_000, 3_000, 6_000]) {
        assert!((expected - 200i32..expected + 200).contains(&count), "{counts:?}");
    }
}

#[test]
fn what_is_put_together_ahead_is_what_would_have_been_sent() {
    let mut plan = Plan::new("http://h/");
    plan.requests =
        ["a", "b"].map(|name| Request { path: Some(format!("/{name}/{{{{n}}}}")), ..Request::new(name) }).into();
    plan.values = [("n".to_owned(), Value::Counter { from: 0 })].into();
    plan.trace = Some(crate::plan::Trace { header: TraceHeader::W3c, tag: 7, key: 9, sampled: 0.5 });
    let (mut early, mut late) =
        (script(&plan).expect("good").expect("a script"), script(&plan).expect("good").expect("one"));
    for iteration in 0..100 {
        let mut progress = Progress::default();
        late.begin(&mut progress, iteration);
        let wanted = (render(&mut late, &progress, iteration), late.render(&progress, iteration).1);
        early.prepare(iteration);
        early.prepare(iteration);
        // What another iteration sends meanwhile must not be taken for it.
        if iteration % 3 == 0 {
            let mut other = Progress::default();
            early.begin(&mut other, iteration + 1_000);
            assert!(render(&mut early, &other, iteration + 1_000).contains(&format!("/{} ", iteration + 1_000)));
        }
        let (bytes, sampled) = early.render(&progress, iteration);
        assert_eq!((String::from_utf8_lossy(bytes).into_owned(), sampled), wanted);
    }
}

#[test]
fn trace_headers_and_files_are_put_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("body.bin");
    std::fs::write(&file, b"{{raw}}").expect("written");
    let mut plan = Plan::new("http://h/");
    plan.trace = Some(Trace { header: TraceHeader::W3c, tag: 1, key: 2, sampled: 1.0 });
    plan.requests = vec![Request { method: "PUT".to_owned(), body_file: Some(file), ..Request::new("put") }];
    let mut script = script(&plan).expect("good").expect("a script");
    let (bytes, sampled) = script.render(&Progress::default(), 5);
    let text = String::from_utf8(bytes.to_vec()).expect("text");
    assert!(sampled && text.ends_with("\r\n\r\n{{raw}}"), "a file is sent as it is: {text}");
    assert!(text.contains("Content-Length: 7\r\ntraceparent: 00-0000000000000001"), "{text}");
    assert_eq!(text.matches("traceparent").count(), 1);
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let with = |change: fn(&mut Plan)| {
        let mut plan = job_plan();
        change(&mut plan);
        script(&plan).map(|_| ()).expect_err("refused").to_string()
    };
    for (text, error) in [
        ("{{id}}", with(|plan| plan.requests[0].path = Some("/{{id}}".to_owned()))),
        ("slash", with(|plan| plan.requests[0].path = Some("jobs".to_owned()))),
        ("sequence", with(|plan| plan.order = Order::Weighted)),
        ("body_file", with(|plan| plan.requests[0].body_file = Some("/x".into()))),
        ("same name", with(|plan| drop(plan.values.insert("id".to_owned(), Value::Uuid)))),
        ("weight", with(|plan| plan.requests[0].weight = 0.0)),
        ("Content-Length", with(|plan| plan.requests[0].headers = vec![("Content-Length".to_owned(), "1".to_owned())])),
        ("method", with(|plan| plan.requests[0].method = "GE T".to_owned())),
        ("try", with(|plan| plan.requests[1].until.as_mut().expect("there").most = 0)),
        (
            "/none",
            with(|plan| {
                plan.requests[0].body = None;
                plan.requests[0].body_file = Some("/none".into());
            }),
        ),
    ] {
        assert!(error.contains(text), "{text}: {error}");
    }
}
