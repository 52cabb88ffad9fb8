//! `--set` and profiles: where a value lands, and as what.

use unladen_journal::units::Time;

use super::super::set::{Set, SetError};
use super::super::spec::Command;
use super::{SHOP, study};

#[test]
fn a_change_lands_where_its_key_leads() {
    let changed = study(
        SHOP,
        &[
            "window=10s",
            "rounds=6",
            "load.rate=500.5",
            "drain.limit=1m",
            "load.check.status=204",
            "services.app.limits.cpus=2",
            "variants.otel.services.app.env.X=1",
            "variants.baseline.services.app.env.VERSION=1.10",
            "variants.otel.sampled=10%",
            "budgets.rss=50MiB",
            "placebo=false",
        ],
    );
    assert_eq!(changed.window, Time::seconds(10.0));
    assert_eq!(changed.rounds, 6);
    assert_eq!(changed.load.rate, Some(500.5));
    assert_eq!(changed.drain.limit, Time::seconds(60.0));
    assert_eq!(changed.load.check.status, Some(204));
    assert_eq!(changed.services["app"].limits.cpus, Some(2.0));
    assert_eq!(changed.variants["otel"].services["app"].env["X"], "1");
    assert_eq!(changed.variants["otel"].services["app"].env["ENDPOINT"], "${sink.otlp_grpc}");
    assert_eq!(changed.variants["baseline"].services["app"].env["VERSION"], "1.10", "a text keeps every digit");
    assert_eq!(changed.variants["otel"].sampled.map(|ratio| ratio.0), Some(0.1));
    assert_eq!(changed.budgets["rss"], "50MiB");
    assert!(!changed.placebo);
}

#[test]
fn variables_have_short_names() {
    assert_eq!(study(SHOP, &["heap=1g"]).variables["heap"], "1g");
    assert_eq!(study(SHOP, &["variables.heap=1g", "variables.new=x"]).variables["new"], "x");
}

#[test]
fn lists_are_changed_by_item_or_as_a_whole() {
    let changed = study(SHOP, &["variants.otel.services.app.args.0=--quiet"]);
    assert_eq!(changed.variants["otel"].services["app"].args, ["--quiet"]);
    let changed = study(SHOP, &["services.app.command=[java, -jar, 'a b.jar', 5]", "services.app.needs=[]"]);
    let words = ["java", "-jar", "a b.jar", "5"].map(str::to_owned).to_vec();
    assert_eq!(changed.services["app"].command, Command::Words(words));
    assert!(changed.services["app"].needs.is_empty());
}

#[test]
fn any_text_is_a_value() {
    for text in
        ["a: b", "# x", "*x", "&x", "!x", "- x", "@x", "'x", "x # y", "a=b", "yes", "null and void", "{{.Name}}", "ü"]
    {
        let changed = study(SHOP, &[&format!("services.app.env.X={text}")]);
        assert_eq!(changed.services["app"].env["X"], text);
    }
    assert_eq!(study(SHOP, &["services.app.env.X="]).services["app"].env["X"], "");
    assert_eq!(study(SHOP, &["load.rate=null"]).load.rate, None, "null takes a value away");
}

#[test]
fn the_last_change_wins_and_profiles_come_first() {
    assert_eq!(study(SHOP, &["rounds=6", "rounds=8"]).rounds, 8);
    let text = SHOP.replace(
        "    window: 1s\n",
        "    window: 1s\n    load.rate: 50\n    variants.otel.label: quick\n    heap: 64m\n",
    );
    let changed = study(&text, &["window=3s", "profile=quick"]);
    assert_eq!(changed.window, Time::seconds(3.0));
    assert_eq!(changed.load.rate, Some(50.0));
    assert_eq!(changed.variants["otel"].label.as_deref(), Some("quick"));
    assert_eq!(changed.variables["heap"], "64m");
    assert_eq!(study(&text, &[]).window, Time::seconds(5.0), "a profile that isn't asked for changes nothing");
}

#[test]
fn a_change_is_a_key_and_a_value() {
    assert_eq!("load.url=http://h/?a=b".parse(), Ok(Set::new("load.url", "http://h/?a=b")));
    assert_eq!("window".parse::<Set>(), Err(SetError::NoValue { text: "window".to_owned() }));
    assert_eq!("=x".parse::<Set>(), Err(SetError::NoKey { text: "=x".to_owned() }));
    assert_eq!(Set::new("rounds", 12).to_string(), "rounds=12");
}
