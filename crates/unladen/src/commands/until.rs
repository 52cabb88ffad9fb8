//! What a study is going to do that goes on until something else than a number of rounds ends it, in words.

use unladen_journal::notices::MIN_ROUNDS;
use unladen_journal::notices::stopped::in_words;
use unladen_study::spec::Study;

/// `12 rounds`; `rounds until cpu_per_request is known to ±1%, at most 200,`.
pub(super) fn rounds(study: &Study) -> String {
    if !study.is_open_ended() {
        return if study.rounds == 1 { "1 round".to_owned() } else { format!("{} rounds", study.rounds) };
    }
    let goals: Vec<String> =
        study.until.iter().map(|(metric, width)| format!("{metric} is known to ±{width}")).collect();
    if goals.is_empty() {
        return format!("as many rounds as fit, at most {},", study.rounds);
    }
    format!("rounds until {}, at most {},", goals.join(" and "), study.rounds)
}

/// How much time there is, and whether it is enough. A round takes about so long.
pub(super) fn fits(at_most_s: f64, round_s: f64) -> String {
    let limit = format!("at most {}", in_words(at_most_s));
    let fit = (at_most_s / round_s).floor();
    if fit >= f64::from(MIN_ROUNDS) {
        return limit;
    }
    format!(
        "{limit}.\nAbout {fit} rounds fit into that, and an interval needs {MIN_ROUNDS}: raise --at-most, or shorten --window and --warmup"
    )
}

#[cfg(test)]
mod tests {
    use unladen_journal::units::Time;
    use unladen_study::spec::Load;

    use super::*;

    #[test]
    fn what_is_about_to_happen() {
        let mut study = Study::new("x", Load::new("http://localhost/"));
        assert_eq!(rounds(&study), "12 rounds");
        (study.rounds, study.at_most) = (200, Some(Time::seconds(600.0)));
        assert_eq!(rounds(&study), "as many rounds as fit, at most 200,");
        study.until.insert("cpu_per_request".into(), "1%".into());
        assert_eq!(rounds(&study), "rounds until cpu_per_request is known to ±1%, at most 200,");
        assert_eq!(fits(600.0, 14.0), "at most 10 min");
        assert_eq!(
            fits(60.0, 14.0),
            "at most 60 s.\nAbout 4 rounds fit into that, and an interval needs 6: raise --at-most, or shorten --window and --warmup"
        );
    }
}
