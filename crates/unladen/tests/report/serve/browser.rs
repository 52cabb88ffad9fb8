//! The server's pages in a real browser: they load without complaint, filter, choose, draw and follow.

use std::fs;

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
    page.ask("{ const it = document.getElementById('result'); it.value = 'shop-1'; it.dispatchEvent(new Event('change')); }");
    page.wait("document.getElementById('resources').textContent.includes('Nothing was sampled')");
    let before = page.ask("document.querySelectorAll('#trends figure').length");
    page.ask("document.getElementById('details').click()");
    let all = page.wait("document.querySelectorAll('#trends figure').length");
    assert!(all.as_u64() > before.as_u64(), "{before} of {all} metrics were shown");

    page.visit(&at("/live/stopped"), "document.documentElement.dataset.live === 'ended'");
    page.wait("document.querySelectorAll('#rounds .main-svg').length > 0");
    assert_eq!(page.ask("document.querySelectorAll('#list tr').length"), 8);

    page.visit(&at("/files/shop-1/report.html"), "document.documentElement.dataset.charts === 'ready'");
    let complaints = page.complaints();
    assert!(complaints.is_empty(), "{complaints:?}");
    let elsewhere: Vec<_> = page.requests().into_iter().filter(|it| !it.starts_with(&at("/"))).collect();
    assert_eq!(elsewhere, ["about:blank"; 0], "nothing is asked of the network");

    if let Some(pictures) = std::env::var_os("UNLADEN_PICTURES") {
        pictures_of(&mut page, std::path::Path::new(&pictures), &at);
    }
}

/// For people who want to look: `UNLADEN_PICTURES=dir cargo test …` writes the pages, wide and narrow, light and dark.
fn pictures_of(page: &mut Page, dir: &std::path::Path, at: &dyn Fn(&str) -> String) {
    use base64::Engine;
    for (name, path) in [
        ("list", "/"),
        ("study", "/study?name=shop%20%26%20co"),
        ("compare", "/compare?a=shop-1&b=shop-4"),
        ("live", "/live/stopped"),
        ("files", "/files/shop-1/"),
    ] {
        for (width, scheme) in [(1280, "light"), (420, "dark")] {
            page.resize(width);
            page.prefer(scheme);
            page.visit(&at(path), "document.readyState === 'complete'");
            std::thread::sleep(std::time::Duration::from_millis(800));
            let picture = base64::engine::general_purpose::STANDARD.decode(page.picture()).expect("base64");
            fs::write(dir.join(format!("{name}-{width}.png")), picture).expect("a folder to write to");
        }
    }
}
