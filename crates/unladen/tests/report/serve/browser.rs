//! The server's pages in a real browser: they load without complaint, filter, choose, draw and follow.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use serde_json::Value;

use super::followed::under_way;
use super::requests::body;
use super::{Server, history, run_folder, study};
use crate::chromium::Page;
use crate::files;
use crate::sketch::{self, ladder};

#[test]
fn pages_filter_choose_draw_and_follow() {
    let root = history();
    // A run that was stopped: only its journal.
    let dir = root.path().join("stopped");
    fs::create_dir(&dir).expect("a temporary folder");
    sketch::write(&dir, &ladder().study(), &ladder().runs()[..8]);
    files::write(&root.path().join("shop-4"), &study("shop-4", "shop & co", 1.305).runs());
    run_folder(root.path(), "another", "another", "2026-01-01T12:00:00Z", 1.05);
    let server = Server::start(root.path());
    let at = |path: &str| format!("http://{}{path}", server.address);
    let mut page = Page::new(1280);

    page.visit(&at("/"), "document.querySelector('#shown')");
    let shown = "[...document.querySelectorAll('tr.run')].filter(row => row.offsetParent).length";
    assert_eq!(page.ask(shown), 7);
    let type_in = |words: &str| {
        format!(
            "(() => {{ const it = document.getElementById('filter'); it.value = '{words}'; it.dispatchEvent(new Event('input')); }})()"
        )
    };
    page.ask(&type_in("shop fail"));
    assert_eq!(page.ask(shown), 2, "the two that are over budget");
    page.ask(&type_in(""));
    // Two that are chosen are compared; one alone cannot be.
    let button = "document.querySelector('form.compare button:not([disabled])') !== null";
    page.ask("document.querySelector('input[value=shop-1]').click()");
    assert_eq!(page.ask(button), false);
    page.ask("document.querySelector('input[value=shop-4]').click()");
    assert_eq!(page.ask(button), true);
    page.ask("document.querySelector('form.compare button:not([disabled])').click()");
    page.wait("location.pathname === '/compare' && document.querySelector('td.change.more') !== null");

    page.visit(&at("/study?name=shop%20%26%20co"), "document.documentElement.dataset.charts === 'ready'");
    page.wait("document.querySelectorAll('#trends .main-svg').length >= 3");
    let marks =
        page.ask("[...document.querySelectorAll('#trends .chart')].filter(it => it.layout?.shapes?.length).length");
    assert!(marks.as_u64() >= Some(1), "the change is marked: {marks}");
    page.wait("document.documentElement.dataset.resources === 'ready'");
    assert_eq!(page.ask("document.querySelectorAll('#resources .scatterlayer .trace').length > 3"), true);
    // Of another result nothing was kept.
    page.ask(
        "{ const it = document.getElementById('result'); it.value = 'shop-1'; it.dispatchEvent(new Event('change')); }",
    );
    page.wait("document.getElementById('resources').textContent.includes('Nothing was sampled')");
    let before = page.ask("document.querySelectorAll('#trends figure').length");
    page.ask("document.getElementById('details').click()");
    let all = page.wait("document.querySelectorAll('#trends figure').length");
    assert!(all.as_u64() > before.as_u64(), "{before} of {all} metrics were shown");

    page.visit(&at("/live/stopped"), "document.documentElement.dataset.live === 'ended'");
    page.wait("document.querySelectorAll('#rounds .main-svg').length > 0");
    assert_eq!(page.ask("document.querySelectorAll('#list tr').length"), 8);

    // A run under way shows what runs now.
    let dir = root.path().join("running");
    fs::create_dir(&dir).expect("a temporary folder");
    sketch::write(&dir, &ladder().study(), &ladder().runs()[..2]);
    under_way(&dir, 2);
    page.visit(&at("/live/running"), "document.documentElement.dataset.services === 'ready'");
    let shown =
        page.ask("[...document.querySelectorAll('#services tr')].map(row => row.innerText.replaceAll('\\t', ' '))");
    assert_eq!(shown, serde_json::json!(["shop subject 0.250 4.0", "otelcol collector – 12.5"]));

    page.visit(&at("/files/shop-1/report.html"), "document.documentElement.dataset.charts === 'ready'");
    let complaints = page.complaints();
    assert!(complaints.is_empty(), "{complaints:?}");
    let elsewhere: Vec<_> = page.requests().into_iter().filter(|it| !it.starts_with(&at("/"))).collect();
    assert_eq!(elsewhere, ["about:blank"; 0], "nothing is asked of the network");
}

/// `UNLADEN_RUNS=runs cargo test -p unladen --test report -- --ignored pictures`: the pages over these run folders, to look at: of the
/// study with the most results, wide and narrow, light and dark, and on paper.
#[test]
#[ignore = "makes pictures for people"]
fn pictures_of_served_pages() {
    let root = PathBuf::from(std::env::var_os("UNLADEN_RUNS").expect("UNLADEN_RUNS names a folder with run folders"));
    let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/pictures");
    fs::create_dir_all(&out).expect("a writable folder");
    let server = Server::start(&root);
    let runs: Vec<Value> = serde_json::from_str(body(&server.ask("/api/runs").1)).expect("JSON");
    let text = |run: &Value, key: &str| run[key].as_str().unwrap_or_default().to_owned();
    let judged: Vec<&Value> = runs.iter().filter(|run| run["state"] == "judged").collect();
    let results = |run: &Value| judged.iter().filter(|it| it["study"] == run["study"]).count();
    let last = judged.iter().rev().max_by_key(|run| results(run)).expect("a judged study");
    let before = judged.iter().rfind(|it| it["study"] == last["study"]).expect("itself at least");
    let encoded = |text: String| text.replace(' ', "%20").replace('&', "%26");
    let (study, id) = (encoded(text(last, "study")), encoded(text(last, "id")));
    let mut pages = vec![
        ("list", "/".to_owned()),
        ("study", format!("/study?name={study}")),
        ("compare", format!("/compare?a={id}&b={}", encoded(text(before, "id")))),
        ("files", format!("/files/{id}/")),
        ("ended", format!("/live/{id}")),
    ];
    let under_way = runs.iter().find(|run| run["state"] == "under way");
    pages.extend(under_way.map(|run| ("live", format!("/live/{}", encoded(text(run, "id"))))));
    let keep = |name: String, content: String| {
        let content = base64::engine::general_purpose::STANDARD.decode(content).expect("base64");
        fs::write(out.join(name), content).expect("a writable folder");
    };
    let mut page = Page::new(1280);
    for (name, path) in pages {
        for (width, scheme) in [(1280, "light"), (1280, "dark"), (420, "light")] {
            page.resize(width);
            page.prefer(scheme);
            page.visit(&format!("http://{}{path}", server.address), "document.readyState === 'complete'");
            // What comes by itself: events, charts.
            std::thread::sleep(Duration::from_millis(2500));
            keep(format!("{name}-{width}-{scheme}.png"), page.picture());
        }
        page.prefer("light");
        keep(format!("{name}.pdf"), page.printed());
    }
    println!("{}", out.display());
}
