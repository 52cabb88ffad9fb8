//! A study to begin with from what is in a Compose file: `unladen import compose`.

use indexmap::IndexMap;

use super::spec::{BASELINE, Command, Compose, Load, Service, Study, Variant};

/// A study of services, each with the ports of its container that it publishes: the first that publishes one is weighed. What is added in the
/// variant is for the user to write.
#[must_use]
pub fn study(files: &[String], services: &IndexMap<String, Vec<u16>>) -> Study {
    let subject = services.iter().find_map(|(name, ports)| Some((name, *ports.first()?)));
    let (name, port) = subject
        .or(services.first().map(|(name, _)| (name, 80)))
        .map_or(("app", 80), |(name, port)| (name.as_str(), port));
    let mut load = Load::new(format!("http://{name}:{port}/"));
    load.rate = Some(100.0);
    let mut study = Study::new(name, load);
    study.question = format!("What does instrumentation cost {name}?");
    study.on.compose = Some(Compose::Files(files.to_vec()));
    study.services.insert(name.to_owned(), Service::new(Command::default()));
    study.variants.insert(BASELINE.to_owned(), Variant::default());
    let otel = Variant { compose: vec!["compose.otel.yaml".to_owned()], ..Variant::default() };
    study.variants.insert("otel".to_owned(), otel);
    study
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::parse;
    use crate::write::concise_yaml;

    #[test]
    fn the_service_that_is_published_is_weighed() {
        let services = IndexMap::from([
            ("db".to_owned(), vec![]),
            ("web".to_owned(), vec![8080, 9090]),
            ("z".to_owned(), vec![1]),
        ]);
        let text = concise_yaml(&study(&["compose.yaml".to_owned()], &services));
        let study = parse(&text, "study.yaml", &[]).expect("it reads back");
        assert_eq!(study.stacked().collect::<Vec<_>>(), ["web"]);
        assert_eq!(study.load.url, "http://web:8080/");
    }
}
