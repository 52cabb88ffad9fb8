//! `demo`, `run` and `compare`: make a plan, run it, judge it, print the answer.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use indexmap::IndexMap;
use unladen_journal::record::RunRecord;
use unladen_journal::units::Time;
use unladen_judge::Budgets;
use unladen_measure::RunError;
use unladen_measure::folder::RunFolder;
use unladen_measure::host::Host;
use unladen_measure::watch::NoWatcher;
use unladen_processes::subject::kubernetes::job_of_this_pod;
use unladen_stats::plan::{Step, TwoLooks};
use unladen_study::compare::{Bare, Comparison};
use unladen_study::merge::MACHINES;
use unladen_study::plan::Plan;
use unladen_study::read::parse;
use unladen_study::set::Set;
use unladen_study::spec::{MAX_ROUNDS, OnUndecided, Study};
use unladen_study::write::{concise_yaml, resolved_yaml};

use super::pilot::Pilot;
use super::{budgets, draw_seed, interrupt_flag, new_folder, print, until};
use crate::cli::{Compare, Demo, Measure, Run};
use crate::live::Display;
use crate::live::file::Written;
use crate::live::metrics::Endpoint;
use crate::progress::{self, Show};

/// `unladen demo`
///
/// # Errors
/// When the study cannot be run.
pub fn demo(options: &Demo) -> anyhow::Result<ExitCode> {
    if options.print_study {
        return print(unladen_demo::STUDY);
    }
    let mut sets = options.sets.iter().map(|text| text.parse()).collect::<Result<Vec<Set>, _>>()?;
    sets.extend(self::sets(&options.measure)?);
    let study = parse(unladen_demo::STUDY, "the embedded study", &sets)?;
    let plan = Plan::from_study(study, &std::env::current_dir()?)?;
    measure(&plan, &options.measure)
}

/// `unladen run`
///
/// # Errors
/// When the study cannot be read or run.
pub fn run(options: &Run) -> anyhow::Result<ExitCode> {
    let mut sets = options.sets.iter().map(|text| text.parse()).collect::<Result<Vec<Set>, _>>()?;
    sets.extend(self::sets(&options.measure)?);
    let read = |path: &Path| -> anyhow::Result<Plan> {
        let plan = Study::read(path, &sets)?;
        let plan = if options.only.is_empty() { plan } else { plan.only(&options.only)? };
        let (plan, out) = plan.of_those_that_take_part()?;
        let left_out = out.iter().find(|name| options.only.contains(name));
        if let Some(name) = left_out {
            anyhow::bail!("{name} cannot take part: its `when` in {} is empty or says no", path.display());
        }
        if !out.is_empty() {
            eprintln!("left out, because their `when` is empty or says no: {}", out.join(", "));
        }
        Ok(plan)
    };
    let Some(resume) = &options.resume else {
        let path = options.study.as_deref().context("name a study")?;
        let plan = read(path)?;
        return match options.cluster.in_cluster {
            true => super::cluster::run(&plan, options),
            false => measure(&plan, &options.measure),
        };
    };
    anyhow::ensure!(options.measure.plan.is_none(), "a study that has begun is not planned any more: leave out --plan");
    let folder = RunFolder::open(resume)?;
    let host = folder.path().join(unladen_measure::HOST_FILE);
    let unreadable = || format!("{} cannot be read", host.display());
    let host: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&host).with_context(unreadable)?).with_context(unreadable)?;
    anyhow::ensure!(
        host.get(MACHINES).is_none(),
        "{} was merged of the rounds of several machines: resume one of those, then merge again",
        resume.display()
    );
    let host: Host = serde_json::from_value(host).with_context(unreadable)?;
    let plan = match &options.study {
        Some(path) => read(path)?,
        None => {
            let mut plan = read(&folder.path().join(unladen_measure::STUDY_FILE))?;
            // Relative paths start where the study was, not where its copy is.
            plan = Plan::from_study(plan.study, Path::new(&host.study_dir))?;
            plan
        }
    };
    go(&plan, &folder, host.seed, &options.measure)
}

/// `unladen compare`
///
/// # Errors
/// When the sides cannot be read or run.
pub fn compare(options: &Compare) -> anyhow::Result<ExitCode> {
    let here = std::env::current_dir()?;
    let measure = &options.measure;
    let comparison = Comparison {
        url: options.url.clone(),
        rate: options.rate,
        connections: options.connections,
        reach: options.reach.clone(),
        baseline: match &options.service {
            Some(service) => Bare::Compose { files: options.compose.clone(), service: service.clone() },
            None => Bare::Command(options.baseline.clone().unwrap_or_default()),
        },
        variants: options.variants.clone(),
        agents: options.agents.clone(),
        cwd: here.clone(),
    };
    let mut sets = self::sets(measure)?;
    let budgets = budgets(&options.budgets)?;
    sets.extend(budgets.iter().map(|(metric, limit)| Set::new(format!("budgets.{metric}"), limit)));
    let study = parse(&resolved_yaml(&comparison.study()?), "the comparison", &sets)?;
    let plan = Plan::from_study(study, &here)?;
    let yaml = concise_yaml(&plan.study);
    if options.print_study {
        return print(&yaml);
    }
    if !measure.quiet {
        eprintln!("# The study. Save it as study.yaml to edit it and to run it again with `unladen run`.\n{yaml}");
    }
    self::measure(&plan, measure)
}

/// The common options as changes to the study.
fn sets(options: &Measure) -> anyhow::Result<Vec<Set>> {
    let set = |key: &str, value: Option<String>| value.map(|value| Set::new(key, &value));
    let time = |key: &str, time: Option<Time>| set(key, time.map(|time| time.to_string()));
    let mut sets = Vec::new();
    for text in &options.until {
        match text.split_once('=') {
            Some((metric, width)) => sets.push(Set::new(format!("until.{}", metric.trim()), width.trim())),
            None => anyhow::bail!("`{text}` has no width; write METRIC=WIDTH, such as cpu_per_request=1% for ±1 %"),
        }
    }
    // How many rounds the study has of its own is not what was asked for.
    let is_open_ended = !options.until.is_empty() || options.at_most.is_some();
    let rounds = options.rounds.or(is_open_ended.then_some(MAX_ROUNDS));
    let others = [
        set("rounds", rounds.map(|rounds| rounds.to_string())),
        time("at_most", options.at_most),
        time("warmup", options.warmup),
        time("window", options.window),
        set("design", options.design.clone()),
        time("block", options.block),
        time("alone", options.alone),
        set("seed", options.seed.map(|seed| seed.to_string())),
    ];
    sets.extend(others.into_iter().flatten());
    Ok(sets)
}

/// Runs a plan in a new run folder.
fn measure(plan: &Plan, options: &Measure) -> anyhow::Result<ExitCode> {
    let seed = plan.study.seed.unwrap_or_else(draw_seed);
    if let Some(rounds) = options.plan {
        let show = show(options);
        let pilot = Pilot { plan, rounds, out: options.out.clone(), seed, shown: show != Show::Quiet };
        return pilot
            .run(&*interrupt_flag()?, &mut progress::watcher(show, &plan.study.study, &labels(plan), Vec::new()));
    }
    let path = options.out.clone().unwrap_or_else(|| new_folder(&plan.study.study));
    go(plan, &RunFolder::create(&path)?, seed, options)
}

fn show(options: &Measure) -> Show {
    match (options.quiet, options.plain) {
        (true, _) => Show::Quiet,
        (_, true) => Show::Plain,
        _ => Show::Auto,
    }
}

/// The variants' names for people.
fn labels(plan: &Plan) -> IndexMap<String, String> {
    plan.variants.iter().map(|variant| (variant.name.clone(), variant.label.clone())).collect()
}

/// Runs what is missing in the folder, judges and prints.
fn go(plan: &Plan, folder: &RunFolder, seed: u64, options: &Measure) -> anyhow::Result<ExitCode> {
    let show = show(options);
    if show != Show::Quiet {
        eprintln!("{}", head(plan, folder));
    }
    let labels = labels(plan);
    let interrupted = interrupt_flag()?;
    let endpoint = endpoint(options, show)?;
    // Whoever looks on sees the study end when its report is there.
    let _remover = Written::new(folder.path()).remover();
    let measured = |plan: &Plan| -> anyhow::Result<()> {
        let mut displays: Vec<Box<dyn Display>> = vec![Box::new(Written::new(folder.path()))];
        displays.extend(endpoint.iter().map(|endpoint| Box::new(endpoint.clone()) as Box<dyn Display>));
        let mut watcher = progress::watcher(show, &plan.study.study, &labels, displays);
        let mut judge = |runs: &[RunRecord]| unladen_judge::until::look(&plan.study, runs);
        let result = unladen_measure::study(plan, folder, seed, &interrupted, &mut judge, &mut watcher);
        result.map_err(|error| stopped(error, folder))
    };
    measured(plan)?;
    if let Some(longer) = second_look(plan, folder)? {
        if show != Show::Quiet {
            eprintln!(
                "{} rounds leave a budget undecided: going on, once, to {}",
                plan.study.rounds, longer.study.rounds
            );
        }
        measured(&longer)?;
    }
    if options.profile {
        profile(plan, folder, seed, options, &interrupted)?;
    }
    let findings = unladen_judge::judge(folder.path())?;
    unladen_report::write_all(folder.path(), &findings)?;
    super::print_findings(&findings, folder.path())?;
    Ok(super::code_of(&findings))
}

/// The endpoint of `--metrics`.
fn endpoint(options: &Measure, show: Show) -> anyhow::Result<Option<Endpoint>> {
    let endpoint = options.metrics.map(Endpoint::open).transpose()?;
    if let Some(endpoint) = &endpoint
        && show != Show::Quiet
    {
        eprintln!("metrics: http://{}/metrics", endpoint.address());
    }
    Ok(endpoint)
}

/// Samples where the CPU goes, and tells what could not be sampled.
fn profile(
    plan: &Plan,
    folder: &RunFolder,
    seed: u64,
    options: &Measure,
    interrupted: &AtomicBool,
) -> anyhow::Result<()> {
    if !options.quiet {
        eprintln!("sampling every variant once, for the flame graphs");
    }
    let library = options.async_profiler.clone();
    let profiles = unladen_measure::profile::profiles(plan, folder, seed, library, interrupted, &mut NoWatcher);
    for failure in profiles?.iter().flat_map(|profiles| &profiles.failures) {
        eprintln!("no profile: {failure}");
    }
    Ok(())
}

/// The plan with twice the rounds, if the study is to be extended and a budget is undecided. An extension that has been
/// begun is run to its end, however things stand by now.
fn second_look(plan: &Plan, folder: &RunFolder) -> anyhow::Result<Option<Plan>> {
    if plan.study.on_undecided != OnUndecided::Extend {
        return Ok(None);
    }
    // The verdicts alone: spans and curves are read once, for the report.
    let findings = unladen_judge::judge_with_budgets(folder.path(), &Budgets::new())?;
    let Ok(looks) = TwoLooks::new(plan.study.rounds as usize) else { return Ok(None) };
    let done = findings.rounds_begun.max(plan.study.rounds) as usize;
    Ok(match looks.next(done, unladen_judge::more_rounds_may_decide(&findings)) {
        Step::Stop => None,
        Step::Measure(_) => u32::try_from(looks.second()).ok().map(|rounds| {
            let mut longer = plan.clone();
            longer.study.rounds = rounds;
            longer
        }),
    })
}

/// One line on what is about to happen.
fn head(plan: &Plan, folder: &RunFolder) -> String {
    let study = &plan.study;
    let names: Vec<&str> = plan.variants.iter().map(|variant| variant.name.as_str()).collect();
    let round_s = study.seconds_of(plan.variants.len());
    let people = |seconds: f64| indicatif::HumanDuration(Duration::from_secs_f64(seconds));
    let how_long = match study.at_most {
        Some(time) => until::fits(time.as_seconds(), round_s),
        None if study.load.is_fixed_work() => "as long as the work takes".to_owned(),
        None if study.is_open_ended() => format!("at least {} a round", people(round_s)),
        None => format!("at least {}", people(round_s * f64::from(study.rounds))),
    };
    let what = format!(
        "{}: {} of {} variants ({}); {how_long}",
        study.study,
        until::rounds(study),
        plan.variants.len(),
        names.join(", ")
    );
    match job_of_this_pod() {
        // Nobody who reads this can look into it.
        Some(_) => what,
        None => format!("{what}\nrun folder: {}", folder.path().display()),
    }
}

/// A study that stopped early: judge what there is, so that the folder is whole, and say how to go on.
fn stopped(error: RunError, folder: &RunFolder) -> anyhow::Error {
    if let Ok(findings) = unladen_judge::judge(folder.path()) {
        // The error below matters more than one about the report.
        let _ = unladen_report::write_all(folder.path(), &findings);
    }
    if matches!(error, RunError::Interrupted) && job_of_this_pod().is_none() {
        eprintln!("The runs so far are kept. Go on with: unladen run --resume {}", folder.path().display());
    }
    error.into()
}
