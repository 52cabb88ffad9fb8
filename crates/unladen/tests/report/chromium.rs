//! Drives a headless Chromium over pipes (the DevTools protocol without its web socket): one page, its console, its
//! requests. The browser ends with the value, also when a test fails.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long the browser may take for one answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one page.
pub(crate) struct Page {
    browser: Child,
    input: ChildStdin,
    received: Receiver<Value>,
    session: Option<String>,
    number: u64,
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Page {
    /// Starts a browser with an empty page of this width.
    pub(crate) fn new(width: u32) -> Self {
        let profile = tempfile::tempdir().expect("a temporary folder");
        // The protocol wants descriptors 3 and 4, which a shell can make without unsafe code.
        let mut browser = Command::new("sh")
            .arg("-c")
            .arg("exec chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --no-first-run \
                  --disable-background-networking --disable-component-update --disable-sync --remote-debugging-pipe \
                  --user-data-dir=\"$0\" 3<&0 4>&1 1>&2")
            .arg(profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("a shell");
        let input = browser.stdin.take().expect("a pipe");
        let output = browser.stdout.take().expect("a pipe");
        let (send, received) = channel();
        std::thread::spawn(move || {
            let messages = BufReader::new(output).split(0).map_while(Result::ok);
            for message in messages.filter_map(|message| serde_json::from_slice(&message).ok()) {
                if send.send(message).is_err() {
                    break;
                }
            }
        });
        let mut page =
            Self { browser, input, received, session: None, number: 0, events: Vec::new(), _profile: profile };
        let target = page.call("Target.createTarget", &json!({"url": "about:blank"}))["targetId"].clone();
        let attached = page.call("Target.attachToTarget", &json!({"targetId": target, "flatten": true}));
        page.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), &json!({}));
        }
        page.resize(width);
        page
    }

    pub(crate) fn resize(&mut self, width: u32) {
        let metrics = json!({"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
    }

    pub(crate) fn prefer(&mut self, scheme: &str) {
        self.call(
            "Emulation.setEmulatedMedia",
            &json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        );
    }

    /// Opens a file and waits until what can be seen is drawn; returns how long that took.
    pub(crate) fn open(&mut self, file: &Path) -> Duration {
        let started = Instant::now();
        self.call("Page.navigate", &json!({"url": format!("file://{}", file.display())}));
        self.wait("document.documentElement?.dataset.charts");
        started.elapsed()
    }

    /// Opens an address and waits until an expression is true.
    pub(crate) fn visit(&mut self, url: &str, until: &str) {
        self.call("Page.navigate", &json!({"url": url}));
        self.wait(&format!("location.href.startsWith('http') && document.documentElement && ({until})"));
    }

    /// Waits until an expression is true, and returns it.
    #[track_caller]
    pub(crate) fn wait(&mut self, expression: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            // A page that is about to give way to another one answers nothing.
            let value = self.evaluate(expression).unwrap_or(Value::Null);
            if !matches!(value, Value::Null | Value::Bool(false)) {
                return value;
            }
            assert!(Instant::now() < until, "{expression} never came true");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The value of an expression, or of what it promises.
    #[track_caller]
    pub(crate) fn ask(&mut self, expression: &str) -> Value {
        self.evaluate(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    /// The same, or why the browser could not evaluate it.
    #[track_caller]
    fn evaluate(&mut self, expression: &str) -> Result<Value, Value> {
        let evaluate = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.try_call("Runtime.evaluate", &evaluate)?;
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        Ok(answer["result"].get("value").cloned().unwrap_or(Value::Null))
    }

    /// Seconds of CPU time that the browser has used so far, all its processes together.
    pub(crate) fn cpu_s(&self) -> f64 {
        let group = i32::try_from(self.browser.id()).expect("a pid");
        let stats = procfs::process::all_processes().expect("/proc").filter_map(|it| it.ok()?.stat().ok());
        let ticks: u64 = stats.filter(|stat| stat.pgrp == group).map(|stat| stat.utime + stat.stime).sum();
        ticks as f64 / procfs::ticks_per_second() as f64
    }

    /// Draws every chart of a report, not only those that can be seen.
    pub(crate) fn draw_all(&mut self) {
        self.ask("unladen.all().then(() => 0)");
    }

    pub(crate) fn press(&mut self, key: &str, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let event =
                json!({"type": kind, "key": key, "code": key, "text": if kind == "keyDown" { text } else { "" }});
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// The whole page as a picture (PNG) in base64.
    pub(crate) fn picture(&mut self) -> String {
        let height = self.ask("document.documentElement.scrollHeight");
        let width = self.ask("innerWidth");
        let clip = json!({"x": 0, "y": 0, "width": width, "height": height, "scale": 1});
        let answer = self.call("Page.captureScreenshot", &json!({"captureBeyondViewport": true, "clip": clip}));
        answer["data"].as_str().expect("a picture").to_owned()
    }

    /// The page as PDF in base64, on A4.
    pub(crate) fn printed(&mut self) -> String {
        let paper = json!({"printBackground": true, "paperWidth": 8.27, "paperHeight": 11.69});
        self.call("Page.printToPDF", &paper)["data"].as_str().expect("a document").to_owned()
    }

    /// What the console complained of, and what was thrown and not caught.
    pub(crate) fn complaints(&self) -> Vec<&Value> {
        // No page names an icon that must be asked for; a browser may ask for one all the same, or not, as its time allows.
        let of_icon =
            |event: &Value| event["params"]["entry"]["url"].as_str().is_some_and(|url| url.ends_with("/favicon.ico"));
        let bad = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Log.entryAdded") => !of_icon(event),
            Some("Runtime.consoleAPICalled") => matches!(event["params"]["type"].as_str(), Some("error" | "warning")),
            _ => false,
        };
        self.events.iter().filter(bad).collect()
    }

    /// Addresses that were asked for, data within the page apart.
    pub(crate) fn requests(&self) -> Vec<&str> {
        let sent = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        let urls = sent.filter_map(|event| event["params"]["request"]["url"].as_str());
        urls.filter(|url| !url.starts_with("data:") && !url.starts_with("blob:")).collect()
    }

    #[track_caller]
    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.try_call(method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    #[track_caller]
    fn try_call(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let hint = "chromium does not answer: `make deps` installs it";
        self.input.write_all(&bytes).and_then(|()| self.input.flush()).expect(hint);
        loop {
            let answer = self.received.recv_timeout(PATIENCE).expect(hint);
            if answer["id"] == json!(self.number) {
                return match answer.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(answer["result"].clone()),
                };
            }
            self.events.push(answer);
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // Its helpers end when they lose it; the group is its own.
        drop(self.browser.kill());
        drop(self.browser.wait());
    }
}
