//! How the variants of a round share the time: alternating where that is sound, all at once or in groups, else one after the other, and
//! why. Pure.

use unladen_journal::notices::Notice;
use unladen_journal::record::VariantKind;
use unladen_journal::record::{Blocks, Design, RunRecord};
use unladen_processes::subject::SubjectError;
use unladen_study::plan::{Plan, Process};
use unladen_study::spec::Study;

use super::groups::{MAX_ALIVE, groups, smallest};

/// By how much CPU per request of the bare service may differ between its blocks and the stretch alone in one round, until blocks are given
/// up. One round cannot tell a few percent; those are told over all rounds.
const UNLIKE: f64 = 0.25;

/// The design of a study's rounds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    pub(super) design: Design,
    /// Why it is separate although the study did not ask for it.
    reason: Option<String>,
    /// Which variants have a round together: all of them, or several groups. Indices of the variants.
    pub(super) groups: Vec<Vec<usize>>,
}

/// What the study says.
pub(super) fn choose(plan: &Plan) -> Choice {
    let reason = (plan.study.design != Some(Design::Separate)).then(|| why_separate(plan)).flatten();
    let alternates = plan.study.design != Some(Design::Separate) && reason.is_none();
    let most = if alternates { MAX_ALIVE } else { usize::MAX };
    let design = if alternates { Design::Alternating } else { Design::Separate };
    Choice { design, reason, groups: groups(&plan.variants, most) }
}

fn why_separate(plan: &Plan) -> Option<String> {
    let of_study = plan.study.why_separate().map(|reason| reason.to_string());
    let shared = plan.shared();
    let sender = shared.iter().find(|process| Process::knows_the_sink(process)).map(|process| {
        format!("{} lives through the study and sends spans, which would all go to one variant's sink", process.service)
    });
    of_study.or(sender)
}

impl Choice {
    /// The same, unless there is a reason to run one after the other.
    pub(super) fn unless(self, reason: Option<String>) -> Self {
        match reason {
            Some(reason) => self.separate(reason),
            None => self,
        }
    }

    /// One after the other, in the rounds that there are: those of groups go on as they were begun.
    fn separate(self, reason: String) -> Self {
        Self { design: Design::Separate, reason: Some(reason), ..self }
    }

    /// How many variants are alive at the same time.
    pub(super) fn alive(&self) -> usize {
        match self.design {
            Design::Separate => 1,
            Design::Alternating => self.groups.iter().map(Vec::len).max().unwrap_or(1),
        }
    }

    /// In the first round the memory turns out to suffice for so many variants at the same time: smaller groups, or one after the other.
    /// `false`: neither may be, as rounds have been numbered by the groups that there are, or the study asks for what does not fit.
    pub(super) fn for_memory(&mut self, plan: &Plan, done: &[RunRecord], fit: usize) -> bool {
        let least = smallest(&plan.variants);
        if !done.is_empty() || (fit < least && plan.study.design.is_some()) {
            return false;
        }
        if fit >= least {
            self.groups = groups(&plan.variants, fit);
            return true;
        }
        let reason = format!("the memory suffices for {fit} at once, and {least} have to be there to be compared");
        *self = Self { design: Design::Separate, reason: Some(reason), groups: groups(&plan.variants, usize::MAX) };
        true
    }

    /// Goes on as a study was begun, unless it says how: what was found out about blocks once need not be found out again.
    pub(super) fn after(mut self, plan: &Plan, done: &[RunRecord]) -> Self {
        let Some(last) = done.last() else { return self };
        // Rounds are numbered by groups, so these stay whatever the study says now.
        let number = last.groups.max(1) as usize;
        let mut sizes = (1..=plan.variants.len()).rev().map(|most| groups(&plan.variants, most));
        self.groups = sizes.find(|groups| groups.len() == number).unwrap_or(self.groups);
        if plan.study.design.is_none() && last.design == Design::Separate {
            self.design = Design::Separate;
            self.reason = last.notices.iter().find_map(|notice| match notice {
                Notice::SeparateDesign { reason } => Some(reason.clone()),
                _ => None,
            });
        }
        self
    }

    /// Whether the first alternating round of the study, which has just been done, shows that blocks are not what the service is alone.
    /// From then on the design is separate. A study that asks for blocks keeps them.
    pub(super) fn give_up_turns(&mut self, study: &Study, done: &[RunRecord]) -> bool {
        let of_blocks =
            done.iter().filter(|run| run.design == Design::Alternating && run.kind == VariantKind::Baseline);
        let mut valid = of_blocks.filter(|run| run.void.is_none());
        let (Some(first), None) = (valid.next(), valid.next()) else { return false };
        let Some(ratio) = first
            .blocks
            .as_ref()
            .and_then(Blocks::against_alone)
            .filter(|ratio| ratio.ln().abs() > (1.0 + UNLIKE).ln())
        else {
            return false;
        };
        if study.design.is_some() {
            return false;
        }
        let (percent, more) = if ratio > 1.0 { (ratio - 1.0, "more") } else { (1.0 / ratio - 1.0, "less") };
        let reason = format!(
            "in the first round the bare service took {:.0} % {more} CPU per request in blocks than alone, so blocks do not show what it costs",
            percent * 100.0
        );
        (self.design, self.reason) = (Design::Separate, Some(reason));
        true
    }

    /// A service could not be started in an alternating round. In the first one that may be for want of something that two of them cannot
    /// have at once, as a file: from then on the design is separate, and `true` comes back. If it was something else, the separate round
    /// will say so.
    ///
    /// # Errors
    /// The error itself where that is no explanation.
    pub(super) fn collided(
        &mut self,
        study: &Study,
        done: &[RunRecord],
        error: SubjectError,
    ) -> Result<bool, SubjectError> {
        let died = matches!(error, SubjectError::DiedAtStart { .. });
        if study.design.is_some() || !died || done.iter().any(|run| run.design == Design::Alternating) {
            return Err(error);
        }
        let text = error.to_string();
        let first_line = text.lines().next().unwrap_or_default();
        let reason = format!("a service did not start beside the other variants: {first_line}");
        (self.design, self.reason) = (Design::Separate, Some(reason));
        Ok(true)
    }

    /// Why the variants do not take turns, in words.
    pub(super) fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or_default()
    }

    /// What a run that was not alternating has to be read with.
    pub(super) fn notice(&self) -> Option<Notice> {
        self.reason.clone().map(|reason| Notice::SeparateDesign { reason })
    }
}

#[cfg(test)]
mod tests {
    use unladen_journal::record::{Alone, BlockPoint};
    use unladen_processes::subject::Ended;
    use unladen_study::plan::PlannedVariant;
    use unladen_study::spec::Load;

    use super::*;

    fn study(design: Option<Design>) -> Study {
        Study { design, ..Study::new("x", Load::new("http://localhost/")) }
    }

    fn plan(design: Option<Design>, text: &str) -> Plan {
        let study = unladen_study::read::parse(text, "study.yaml", &[]).expect("a study");
        let mut plan = Plan::from_study(study, std::path::Path::new("/x")).expect("a plan");
        plan.study.design = design;
        plan
    }

    /// A run of 1,000 requests in blocks and 1,000 alone, with so many µs of CPU each.
    fn run(blocks_us: u64, alone_us: u64) -> RunRecord {
        let alone = Alone { completed: 1_000, cpu_ns: alone_us * 1_000_000, ..Alone::default() };
        let points = vec![BlockPoint { t_s: 0.0, completed: 1_000, cpu_ns: blocks_us * 1_000_000 }];
        RunRecord {
            kind: VariantKind::Baseline,
            design: Design::Alternating,
            blocks: Some(Blocks { points, alone: Some(alone), ..Blocks::default() }),
            ..RunRecord::empty()
        }
    }

    fn turns() -> Choice {
        Choice { design: Design::Alternating, reason: None, groups: vec![vec![0, 1, 2]] }
    }

    const TEXT: &str = "
study: turns
services:
  app: {command: ./app}
  collector: {role: collector, lifetime: LIFETIME, command: [./collector, '${sink.otlp_grpc}']}
variants: {baseline: {}, other: {}}
load: {url: 'http://127.0.0.1:1/', rate: 10}
";

    #[test]
    fn variants_take_turns_unless_something_speaks_against_it() {
        let fresh = TEXT.replace("LIFETIME", "run");
        assert_eq!(choose(&plan(None, &fresh)), turns());
        assert_eq!(choose(&plan(Some(Design::Separate), &fresh)), Choice { design: Design::Separate, ..turns() });
        let shared = choose(&plan(None, &TEXT.replace("LIFETIME", "study")));
        assert_eq!(shared.design, Design::Separate);
        assert!(shared.reason().starts_with("collector lives through the study and sends spans"), "{shared:?}");
        let mut many = plan(None, &fresh);
        let variant = many.variants[0].clone();
        many.variants.resize(MAX_ALIVE + 1, PlannedVariant { kind: VariantKind::Variant, ..variant });
        let mut in_groups = choose(&many);
        assert_eq!((in_groups.groups.len(), in_groups.alive()), (2, 6));
        assert!(in_groups.for_memory(&many, &[], 4));
        assert_eq!((in_groups.groups.len(), in_groups.alive()), (4, 4));
        let begun = RunRecord { groups: 4, ..run(1, 1) };
        assert_eq!(choose(&many).after(&many, &[begun]), in_groups, "as it was begun");
        assert!(!in_groups.for_memory(&many, &[run(1, 1)], 2), "rounds are numbered by groups");
        assert!(in_groups.for_memory(&many, &[], 2));
        assert_eq!((in_groups.groups.len(), in_groups.alive()), (1, 1));
        assert!(in_groups.reason().starts_with("the memory suffices for 2 at once, and 3"), "{in_groups:?}");
    }

    #[test]
    fn blocks_that_are_unlike_alone_are_given_up_after_the_first_round() {
        for (blocks_us, given_up) in [(100, false), (124, false), (126, true), (79, true), (81, false)] {
            let mut choice = turns();
            assert_eq!(choice.give_up_turns(&study(None), &[run(blocks_us, 100)]), given_up, "{blocks_us}");
            assert_eq!(choice.notice().is_some(), given_up);
        }
        let mut choice = turns();
        assert!(!choice.give_up_turns(&study(Some(Design::Alternating)), &[run(200, 100)]), "it was asked for");
        assert!(!choice.give_up_turns(&study(None), &[run(100, 100), run(200, 100)]), "only the first round is asked");
        assert!(choice.give_up_turns(&study(None), &[run(150, 100)]));
        assert!(choice.reason().contains("50 % more CPU per request in blocks than alone"), "{}", choice.reason());
    }

    #[test]
    fn a_service_that_cannot_be_there_twice_ends_the_turns_in_the_first_round_only() {
        let error = || SubjectError::DiedAtStart {
            service: "app".to_owned(),
            ended: Ended::Exit(1),
            log: "app.log".into(),
            log_tail: "app.pid is there already".to_owned(),
        };
        let other = || SubjectError::EmptyCommand { service: "app".to_owned() };
        assert!(turns().collided(&study(None), &[], other()).is_err());
        let mut choice = turns();
        assert!(choice.collided(&study(None), &[], error()).expect("an explanation"));
        assert!(choice.design == Design::Separate && choice.reason().starts_with("a service did not start beside"));
        assert!(turns().collided(&study(None), &[run(1, 1)], error()).is_err(), "they were there together before");
        assert!(turns().collided(&study(Some(Design::Alternating)), &[], error()).is_err(), "it was asked for");
    }

    #[test]
    fn a_study_goes_on_as_it_was_begun() {
        let notices = vec![Notice::SeparateDesign { reason: "found out".to_owned() }];
        let separate = RunRecord { notices, ..RunRecord::empty() };
        let plan = |design| plan(design, &TEXT.replace("LIFETIME", "run"));
        let goes_on = turns().after(&plan(None), std::slice::from_ref(&separate));
        assert_eq!((goes_on.design, goes_on.reason()), (Design::Separate, "found out"));
        assert_eq!(turns().after(&plan(Some(Design::Alternating)), &[separate]), turns());
        assert_eq!(turns().after(&plan(None), &[]), turns());
        assert_eq!(turns().after(&plan(None), &[run(1, 1)]), turns());
    }
}
