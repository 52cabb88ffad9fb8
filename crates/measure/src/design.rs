//! How the variants of a round share the time: alternating where that is sound, all at once or in groups, else one after the other, and
//! why. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use unladen_journal::notices::{Notice, RoundsNotice};
use unladen_journal::record::{Blocks, Design, RunRecord};
use unladen_journal::role::Role;
use unladen_processes::subject::SubjectError;
use unladen_processes::subject::compose::ComposeError;
use unladen_processes::subject::kubernetes::KubernetesError;
use unladen_study::plan::{Plan, Process};
use unladen_study::spec::Study;

use super::groups::{MAX_ALIVE, groups, smallest};

/// By how much CPU per request may differ between blocks and the stretch alone in one round, until blocks are given up. One round cannot
/// tell a few percent; those are told over all rounds. Nor what the machine's pace does: it may differ as much as from blocks to blocks.
const UNLIKE: f64 = 0.25;

/// By how much more a request may cost in blocks than alone once blocks are longer: what a block costs by itself is then shared by so many.
const BEARABLE: f64 = 0.08;
/// Super-blocks that a window must still have, so that single ones can be discarded.
const SUPER_BLOCKS: f64 = 10.0;
/// Blocks are longer by this factor at least, or stay as they are.
const LONGER: f64 = 2.0;

/// What the first round says of taking turns.
#[derive(Debug, PartialEq)]
pub(super) enum Turns {
    /// Nothing against it.
    GoOn,
    /// Something that may be the machine's: the round is to be done once more.
    Again(Notice),
    /// The same twice: from now on one after the other.
    GivenUp,
}

/// The design of a study's rounds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    pub(super) design: Design,
    /// Why it is separate although the study did not ask for it.
    reason: Option<String>,
    /// Which variants have a round together: all of them, or several groups. Indices of the variants.
    pub(super) groups: Vec<Vec<usize>>,
    /// Length of blocks, seconds, if they have turned out to be too short.
    block_s: Option<f64>,
}

/// What the study says.
pub(super) fn choose(plan: &Plan) -> Choice {
    let reason = (plan.study.design != Some(Design::Separate)).then(|| why_separate(plan)).flatten();
    let alternates = plan.study.design != Some(Design::Separate) && reason.is_none();
    let most = if alternates { MAX_ALIVE } else { usize::MAX };
    let design = if alternates { Design::Alternating } else { Design::Separate };
    Choice { design, reason, groups: groups(plan, most), block_s: None }
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

    /// Length of a block, seconds.
    pub(super) fn block_s(&self, study: &Study) -> f64 {
        self.block_s.unwrap_or_else(|| study.block_length().as_seconds())
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
            self.groups = groups(plan, fit);
            return true;
        }
        let reason = format!("the memory suffices for {fit} at once, and {least} have to be there to be compared");
        *self =
            Self { design: Design::Separate, reason: Some(reason), groups: groups(plan, usize::MAX), block_s: None };
        true
    }

    /// Goes on as a study was begun, unless it says how: what was found out about blocks once need not be found out again.
    pub(super) fn after(mut self, plan: &Plan, done: &[RunRecord]) -> Self {
        let Some(last) = done.last() else { return self };
        // Rounds are numbered by groups, so these stay whatever the study says now.
        let number = last.groups.max(1) as usize;
        let mut sizes = (1..=plan.variants.len()).rev().map(|most| groups(plan, most));
        self.groups = sizes.find(|groups| groups.len() == number).unwrap_or(self.groups);
        // Of a run that does not count it may not be known how it shared its time.
        let counts = done.iter().rfind(|run| run.void.is_none());
        let length_s = counts.and_then(|run| run.blocks.as_ref()).map(|blocks| blocks.length_s);
        let usual_s = plan.study.block_length().as_seconds();
        self.block_s = length_s.filter(|length_s| plan.study.block.is_none() && *length_s >= LONGER * usual_s);
        if let Some(separate) = counts.filter(|run| plan.study.design.is_none() && run.design == Design::Separate) {
            self.design = Design::Separate;
            self.reason = separate.notices.iter().find_map(|notice| match notice {
                Notice::SeparateDesign { reason } => Some(reason.clone()),
                _ => None,
            });
        }
        self
    }

    /// Whether the first alternating round of the study, which has just been done, shows that blocks are not what the services are alone.
    /// The stretch alone is short, so one spell of the machine can make it so: asked is the median of the variants, and whether it is so
    /// again when the round is done once more, with longer blocks if they cost more and the study does not say how long they are. A study that
    /// asks for alternation keeps it.
    pub(super) fn look_at_turns(&mut self, study: &Study, done: &[RunRecord]) -> Turns {
        if study.design.is_some() {
            return Turns::GoOn;
        }
        let mut attempts: BTreeMap<(u32, u32), Vec<&Blocks>> = BTreeMap::new();
        for run in done.iter().filter(|run| run.design == Design::Alternating && run.void.is_none()) {
            attempts.entry((run.round, run.attempt)).or_default().extend(&run.blocks);
        }
        let attempts: Vec<(u32, Option<f64>)> =
            attempts.into_iter().map(|((round, _), blocks)| (round, unlike(&blocks))).collect();
        match attempts[..] {
            [(_, Some(ratio))] => {
                self.block_s = longer_s(study, ratio.exp_m1());
                let blocks_ms = self.block_s.map(|length_s| (length_s * 1e3).round());
                Turns::Again(RoundsNotice::UnlikeAlone { share: share(ratio), blocks_ms }.into())
            }
            [(round, Some(first)), (again, Some(second))] if round == again && first * second > 0.0 => {
                let smaller = if first.abs() < second.abs() { first } else { second };
                let reason = format!(
                    "in both attempts at the first round the variants took {} CPU per request in blocks than alone, so blocks do not show what a service costs",
                    share(smaller)
                );
                (self.design, self.reason) = (Design::Separate, Some(reason));
                Turns::GivenUp
            }
            _ => Turns::GoOn,
        }
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
        use ComposeError::{Late, PortTaken, Refused};
        use KubernetesError as Cluster;
        let died = matches!(
            error,
            SubjectError::DiedAtStart { .. }
                | SubjectError::Compose(Refused { .. } | Late { .. } | PortTaken { .. })
                | SubjectError::Kubernetes(
                    Cluster::Unschedulable { .. } | Cluster::Late { .. } | Cluster::Ended { .. }
                )
        );
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

/// What alternating rounds of services in Node.js have to be read with, unless all are started without V8's memory reducer.
pub(super) fn memory_reducer(plan: &Plan) -> Option<Notice> {
    let shrinks = |process: &&Process| {
        let program = process.command.first().and_then(|path| Path::new(path).file_name());
        let is_node = program.is_some_and(|name| name == "node" || name == "nodejs");
        // V8 takes underscores for dashes.
        is_node && !process.command.iter().any(|word| word.replace('_', "-") == "--no-memory-reducer")
    };
    let processes = plan.variants.iter().flat_map(|variant| &variant.processes);
    let services: BTreeSet<&str> = processes
        .filter(|process| process.role == Role::Subject)
        .filter(shrinks)
        .map(|process| process.service.as_str())
        .collect();
    let services = services.into_iter().collect::<Vec<_>>().join(", ");
    (!services.is_empty()).then(|| RoundsNotice::MemoryReducer { services }.into())
}

/// Middle of the values (of an even number the lower one), `None` without any.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

/// How far the variants of a round were from what they are alone (log-ratio, the median of the variants), if that is much.
fn unlike(variants: &[&Blocks]) -> Option<f64> {
    let ratio = median(variants.iter().filter_map(|it| it.against_alone()).map(f64::ln).collect())?;
    let swings: Vec<Vec<f64>> = variants.iter().map(|it| it.swings()).collect();
    let swing = |at: usize| median(swings.iter().filter_map(|it| it.get(at).copied()).collect());
    let usual = (0..).map_while(swing).map(f64::abs).fold((1.0 + UNLIKE).ln(), f64::max);
    (ratio.abs() > usual).then_some(ratio)
}

/// How long blocks should be, seconds, in which a request costs so much more than alone: every block costs the same by itself, as caches are
/// cold. `None`: as they are.
fn longer_s(study: &Study, more: f64) -> Option<f64> {
    let usual_s = study.block_length().as_seconds();
    let most_s = study.window.as_seconds() / SUPER_BLOCKS;
    // To 10 ms.
    let length_s = ((usual_s * more / BEARABLE).min(most_s) * 100.0).floor() / 100.0;
    (study.block.is_none() && length_s >= LONGER * usual_s).then_some(length_s)
}

/// `26 % less`, by the logarithm of a ratio.
fn share(ratio: f64) -> String {
    format!("{:.0} % {}", ratio.exp_m1().abs() * 100.0, if ratio > 0.0 { "more" } else { "less" })
}

#[cfg(test)]
mod tests {
    use unladen_journal::record::{Alone, BlockPoint, VariantKind};
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
        Choice { design: Design::Alternating, reason: None, groups: vec![vec![0, 1, 2]], block_s: None }
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
    fn node_is_told_of_unless_every_variant_is_started_without_its_memory_reducer() {
        let told = |command: &str| {
            let text = TEXT.replace("LIFETIME", "run").replace("./app", command);
            memory_reducer(&plan(None, &text)).map(|notice| notice.to_string()).unwrap_or_default()
        };
        assert!(told("/opt/node/bin/node shop.js").starts_with("in Node.js (app), V8 shrinks the heap"));
        assert!(told("node shop.js").ends_with("start all variants with `node --no-memory-reducer`"));
        for quiet in
            ["node --no-memory-reducer shop.js", "node --no_memory_reducer shop.js", "./node-exporter", "./app"]
        {
            assert_eq!(told(quiet), "", "{quiet}");
        }
    }

    #[test]
    fn blocks_that_are_unlike_alone_twice_are_given_up() {
        let attempt =
            |attempt, blocks_us: [u64; 3]| blocks_us.map(|us| RunRecord { round: 1, attempt, ..run(us, 100) }).to_vec();
        let look = |design, rounds: &[Vec<RunRecord>]| {
            let mut choice = turns();
            let turns = choice.look_at_turns(&study(design), &rounds.concat());
            assert_eq!(choice.notice().is_some(), turns == Turns::GivenUp);
            (turns, choice)
        };
        for (blocks_us, again) in [
            ([100, 100, 100], false),
            ([124, 124, 124], false),
            ([126, 126, 126], true),
            ([79, 79, 79], true),
            ([81, 81, 81], false),
            // One of three had a spell of the machine.
            ([60, 100, 100], false),
        ] {
            let (turns, _) = look(None, &[attempt(1, blocks_us)]);
            assert_eq!(matches!(turns, Turns::Again(_)), again, "{blocks_us:?}");
        }
        let (more, less, same) = ([150, 160, 170], [60, 60, 60], [100, 100, 100]);
        assert_eq!(look(Some(Design::Alternating), &[attempt(1, more)]).0, Turns::GoOn, "it was asked for");
        assert_eq!(look(None, &[attempt(1, more), attempt(2, same)]).0, Turns::GoOn, "once is not twice");
        assert_eq!(look(None, &[attempt(1, more), attempt(2, less)]).0, Turns::GoOn, "not the same twice");
        assert_eq!(look(None, &[attempt(1, same), attempt(2, more)]).0, Turns::GoOn, "only the first is asked");
        let (turns, choice) = look(None, &[attempt(1, more), attempt(2, [140, 140, 140])]);
        assert_eq!(turns, Turns::GivenUp);
        assert!(choice.reason().contains("took 40 % more CPU per request in blocks than alone"), "{}", choice.reason());
    }

    #[test]
    fn blocks_that_cost_more_are_made_longer_before_they_are_given_up() {
        let mut long = study(None);
        long.window = unladen_journal::units::Time::seconds(20.0);
        let usual_s = long.block_length().as_seconds();
        let first = || [150, 160, 170].map(|us| RunRecord { round: 1, attempt: 1, ..run(us, 100) }).to_vec();
        let second = || [104, 102, 103].map(|us| RunRecord { round: 1, attempt: 2, ..run(us, 100) }).to_vec();
        let mut choice = turns();
        let Turns::Again(notice) = choice.look_at_turns(&long, &first()) else { panic!("60 % is too much") };
        let block_s = choice.block_s(&long);
        assert!((block_s / usual_s - 0.6 / BEARABLE).abs() < 0.2, "{block_s} s instead of {usual_s} s");
        assert!(notice.to_string().contains(&format!("blocks of {:.0} ms", block_s * 1e3)), "{notice}");
        assert_eq!(choice.look_at_turns(&long, &[first(), second()].concat()), Turns::GoOn);
        assert!((choice.block_s(&long) - block_s).abs() < 1e-9, "they stay so");
        for (study, blocks_us) in [
            (Study { block: Some(long.block_length()), ..long.clone() }, 160),
            (Study { window: unladen_journal::units::Time::seconds(1.0), ..long.clone() }, 160),
            (long.clone(), 60),
        ] {
            let mut choice = turns();
            let runs = [blocks_us; 3].map(|us| RunRecord { round: 1, attempt: 1, ..run(us, 100) });
            assert!(matches!(choice.look_at_turns(&study, &runs), Turns::Again(_)));
            assert_eq!(choice.block_s, None, "{blocks_us}");
        }
    }

    #[test]
    fn a_stretch_alone_may_differ_as_much_as_blocks_do_among_themselves() {
        let look = |paces: [u64; 3]| {
            let mut run = run(paces[2], 100);
            if let Some(blocks) = &mut run.blocks {
                blocks.points =
                    paces.map(|us| BlockPoint { t_s: 0.0, completed: 1_000, cpu_ns: us * 1_000_000 }).into();
            }
            turns().look_at_turns(&study(None), &[run.clone(), run.clone(), run])
        };
        assert!(matches!(look([140, 138, 140]), Turns::Again(_)), "the machine keeps its pace");
        assert_eq!(look([140, 90, 140]), Turns::GoOn, "it does not");
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
        assert_eq!(turns().after(&plan(Some(Design::Alternating)), std::slice::from_ref(&separate)), turns());
        let void = RunRecord { void: separate.notices.first().cloned(), ..separate };
        assert_eq!(turns().after(&plan(None), &[run(1, 1), void]), turns(), "what is void says nothing");
        assert_eq!(turns().after(&plan(None), &[]), turns());
        assert_eq!(turns().after(&plan(None), &[run(1, 1)]), turns());
        let mut longer = run(1, 1);
        longer.blocks.iter_mut().for_each(|blocks| blocks.length_s = 1.25);
        assert_eq!(turns().after(&plan(None), &[longer]), Choice { block_s: Some(1.25), ..turns() });
    }
}
