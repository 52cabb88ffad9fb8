//! Services that nobody here wrote: nginx with its access log on and off, and Python's http.server, by `unladen compare`.

use std::process::Command;

use unladen_study::measured::read;

use crate::harness::{Scratch, assert_nothing_left, counting, finding, on_a_core};

fn there_is(program: &str) -> bool {
    Command::new("sh").args(["-c", &format!("command -v {program}")]).output().is_ok_and(|found| found.status.success())
}

/// A configuration of nginx that needs nothing but the scratch folder.
fn nginx(log: &str) -> String {
    format!(
        "worker_processes 1;\ndaemon off;\npid nginx.pid;\nerror_log stderr;\nevents {{}}\nhttp {{\n  access_log {log};\n  \
         client_body_temp_path tmp;\n  proxy_temp_path tmp;\n  fastcgi_temp_path tmp;\n  uwsgi_temp_path tmp;\n  scgi_temp_path tmp;\n  \
         server {{\n    listen 127.0.0.1:PORT;\n    location / {{ return 200 'hello\\n'; }}\n  }}\n}}\n"
    )
}

#[test]
fn nginx_pays_for_its_access_log() {
    assert!(there_is("nginx"), "nginx is not installed: `make deps` installs it");
    let _turn = on_a_core();
    let scratch = Scratch::new();
    // Below the ephemeral range, and free a moment ago.
    let port = (21_000..22_000)
        .find(|&port| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok())
        .expect("a free port")
        .to_string();
    scratch.write("off.conf", &nginx("off").replace("PORT", &port));
    scratch.write("on.conf", &nginx("access.log").replace("PORT", &port));
    let here = scratch.path("").display().to_string();
    let command = |conf: &str| format!("nginx -p {here} -e stderr -c {conf}");
    let output = scratch
        .unladen(&[
            "compare",
            "--url",
            &format!("http://127.0.0.1:{port}/"),
            "--rate",
            "2000",
            "--baseline",
            &command("off.conf"),
            "--variant",
            &format!("access-log={}", command("on.conf")),
            "--rounds",
            // Every round waits 6 s for spans, as nobody knows whether a variant sends some.
            "1",
            "--warmup",
            "300ms",
            "--window",
            "1s",
            "--out",
            "out",
            "--plain",
        ])
        .ends_with(0);
    println!("{}", output.out);
    assert!(output.err.contains("study:"), "the study it made is printed:\n{}", output.err);
    let findings = scratch.findings();
    let cpu = finding(&findings, "access-log", "cpu_per_request");
    // How much the log costs is a few µs, which a busy machine hides; what must hold anywhere is the order of magnitude …
    for side in [cpu.baseline, cpu.value] {
        assert!(side > 2.0 && side < 1_000.0, "{cpu:?}");
    }
    // … and that nginx has counted the same requests as unladen (besides the questions whether it is ready).
    let runs = scratch.runs();
    let answered: u64 = runs
        .iter()
        .filter(|run| run.variant == "access-log")
        .filter_map(|run| Some(run.load.as_ref()?.answered_total))
        .sum();
    let logged = std::fs::read_to_string(scratch.path("access.log")).expect("a log").lines().count() as u64;
    assert!((answered..answered + 500).contains(&logged), "{answered} answered, {logged} in nginx's log");
    assert_nothing_left(&here);

    // What it printed can be saved and run again.
    let study = scratch
        .unladen(&[
            "compare",
            "--url",
            &format!("http://127.0.0.1:{port}/"),
            "--rate",
            "500",
            "--baseline",
            &command("off.conf"),
            "--variant",
            &format!("on={}", command("on.conf")),
            "--print-study",
            "--rounds",
            "1",
            "--window",
            "500ms",
            "--warmup",
            "100ms",
        ])
        .ends_with(0)
        .out;
    scratch.write("study.yaml", &study);
    scratch.unladen(&["run", ".", "--out", "again", "--plain", "--set", "drain.quiet=500ms"]);
    assert!(read(&scratch.path("again")).expect("a run folder").runs.len() >= 3);
}

#[test]
fn python_http_server_in_a_closed_loop() {
    assert!(there_is("python3"), "python3 is not installed");
    let _turn = counting();
    let scratch = Scratch::new();
    scratch.write("index.html", "hello\n");
    let study = scratch
        .unladen(&[
            "compare",
            "--url",
            "http://127.0.0.1:${port.web}/index.html",
            "--connections",
            "2",
            "--baseline",
            "python3 -m http.server --bind 127.0.0.1 ${port.web}",
            "--variant",
            "unbuffered=python3 -u -m http.server --bind 127.0.0.1 ${port.web}",
            "--rounds",
            "2",
            "--warmup",
            "300ms",
            "--window",
            "1s",
            "--print-study",
        ])
        .ends_with(0)
        .out;
    scratch.write("study.yaml", &study);
    // There are no spans to wait for, which only a study can say.
    let output = scratch.run(&["--set", "drain.quiet=500ms"]).ends_with(0);
    assert!(output.out.contains("too few rounds for an interval"), "{}", output.out);
    let findings = scratch.findings();
    assert!(finding(&findings, "unbuffered", "throughput").value > 50.0);
    // http.server answers by HTTP/1.0 and closes: every request is a reconnect, none an error.
    assert_eq!(findings.load.errors, 0);
    assert_nothing_left("http.server --bind 127.0.0.1");
}
