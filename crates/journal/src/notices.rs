//! Every notice that unladen can give about a run or a study: one enum, one wording each. A notice is data: the journal stores it,
//! the judge adds its own, the reports print its text. A *refusal* takes the run or the study out of the verdict; a *warning* asks
//! for care; a *note* informs.

use serde::{Deserialize, Serialize};

mod declared;
mod load;
mod rounds;
mod severities;
mod severity;
pub mod stopped;
mod who;

pub use declared::DeclaredWrong;
pub use load::LoadNotice;
pub use rounds::RoundsNotice;
pub use severity::Severity;
pub use stopped::{Look, MIN_ROUNDS, Precision, Stopped, StoppedBy};

/// Everything worth telling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Notice {
    // Refusals of a run.
    /// A service ended while it was needed.
    #[error("{service} ended during the run ({how}); the end of its log: {log_tail}")]
    ServiceDied {
        /// Service.
        service: String,
        /// Exit code or signal.
        how: String,
        /// Last lines of its output.
        log_tail: String,
    },
    /// The driver of the load failed.
    #[error("driver {service} failed ({how}); the end of its log: {log_tail}")]
    DriverFailed {
        /// Service.
        service: String,
        /// Exit code or signal.
        how: String,
        /// Last lines of its output.
        log_tail: String,
    },
    /// A service did not say what it must.
    #[serde(rename = "not_said")]
    #[error(
        "{} did not log `{pattern}` ({log}). The agent is probably not loaded, so the run would measure the bare service. Check that log, or correct `expect_log`",
        who::who(service, *replica)
    )]
    ExpectedLogMissing {
        /// Service.
        service: String,
        /// 0, 1, … within the service.
        replica: u32,
        /// Regular expression.
        pattern: String,
        /// Its log, from the run folder on.
        log: String,
    },
    /// What creates things for the load failed.
    #[error("setup {service} failed ({how}); the end of its log: {log_tail}")]
    SetupFailed {
        /// Service.
        service: String,
        /// Exit code or signal.
        how: String,
        /// Last lines of its output.
        log_tail: String,
    },
    /// A check of the study's own says that the run is not what it should be.
    #[error("check {service} failed ({how}); the end of its log: {log_tail}")]
    CheckFailed {
        /// Service.
        service: String,
        /// Exit code or signal.
        how: String,
        /// Last lines of its output.
        log_tail: String,
    },
    /// The sink process failed.
    #[error("the span sink failed: {message}")]
    SinkFailed {
        /// What it said.
        message: String,
    },
    /// An imported run breaks Little's law.
    #[error(
        "its rate and mean latency imply {under_way:.1} requests in flight, but at most {most:.0} were possible: one of these numbers is mislabelled"
    )]
    ImportedImpossible {
        /// Requests under way on average, by Little's law.
        under_way: f64,
        /// Most that could be.
        most: f64,
    },
    // Warnings of a run.
    /// Spans were counted, not tied to requests.
    #[error(
        "requests carried no trace header, so spans are only counted: the ledger knows how many are missing, not from which requests"
    )]
    LedgerByCounts,
    /// The cgroup's quota held a process back.
    #[error(
        "{service} was throttled by its CPU limit for {percent:.1} % of the window: the difference between variants is distorted. Raise `limits.cpus` or lower the rate"
    )]
    Throttled {
        /// Service.
        service: String,
        /// Share of the window, percent.
        percent: f64,
    },
    /// The hypervisor took time.
    #[error("the hypervisor took {percent:.1} % of the machine's time in the window (steal)")]
    Steal {
        /// Share, percent.
        percent: f64,
    },
    /// Other processes used the machine.
    #[error("other processes used {percent:.1} % of the machine in the window. Stop them, or expect wide intervals")]
    OthersBusy {
        /// Share, percent.
        percent: f64,
    },
    /// CPU came from the process tree.
    #[error(
        "CPU time was read from the process tree, not from a cgroup ({reason}): children that end within the window are missed. Run as root or in a delegated cgroup"
    )]
    NoCgroup {
        /// Why.
        reason: String,
    },
    /// The variants ran one after the other because they could not take turns.
    #[error("variants ran one after the other, not alternating: {reason}")]
    SeparateDesign {
        /// Why.
        reason: String,
    },
    /// Spans were still arriving at the limit of the drain.
    #[error("spans were still arriving when the drain reached its limit of {limit_s:.0} s. Raise `drain.limit`")]
    DrainLimit {
        /// Limit, seconds.
        limit_s: f64,
    },
    /// A file of the run could not be written.
    #[error("{file} of the run could not be written: {error}")]
    Unwritten {
        /// File.
        file: String,
        /// Why.
        error: String,
    },
    /// A process had to be killed.
    #[error(
        "{service} did not exit within {grace_s:.0} s of SIGTERM and was killed: spans that it still held are lost. Raise `stop.grace`"
    )]
    Killed {
        /// Service.
        service: String,
        /// Grace, seconds.
        grace_s: f64,
    },
    /// A metrics endpoint did not answer.
    #[error(
        "{failed} of {asked} scrapes of {service} failed ({error}): its metrics are missing or rest on fewer samples. Check `scrape.url`"
    )]
    ScrapeFailed {
        /// Service.
        service: String,
        /// Questions without an answer.
        failed: u32,
        /// Questions.
        asked: u32,
        /// Why the last of them had none.
        error: String,
    },
    /// A metrics endpoint lacks what is to be kept.
    #[error("the metrics endpoint of {service} has no {names}. Check the answer of `scrape.url`, and `keep`")]
    ScrapeMissing {
        /// Service.
        service: String,
        /// What it does not know.
        names: String,
    },
    /// A log or a pattern did not deliver what an agent lost.
    #[error("the losses of {service} at `{stage}` cannot be read from its log: {error}")]
    LossUnread {
        /// Service.
        service: String,
        /// Stage.
        stage: String,
        /// Why.
        error: String,
    },
    /// The last line of a program looks like numbers of its work and is none.
    #[serde(rename = "said_unread")]
    #[error(
        "the last line of {service} is not a JSON object of numbers, so its work is not compared with the baseline's: {line}. Write it as `{{\"stored\": 1000}}`"
    )]
    NumbersUnreadable {
        /// Service.
        service: String,
        /// The beginning of the line.
        line: String,
    },
    /// A number that the study asks for could not be had.
    #[serde(rename = "unasked")]
    #[error("`{what}` could not be read: {error}. Its count is missing from the ledger")]
    QueryFailed {
        /// Service that is counted, or stage of the loss.
        what: String,
        /// Why.
        error: String,
    },
    /// A backend's number did not come to rest.
    #[error("{service} was still counting spans after {limit_s:.0} s, so some may be missing. Raise `drain.limit`")]
    StillCounting {
        /// Service.
        service: String,
        /// Limit, seconds.
        limit_s: f64,
    },
    /// The study declares another number of spans than there are.
    #[error("{0}")]
    SpansDeclaredWrong(DeclaredWrong),
    /// No span arrived in the calibration.
    #[error(
        "no span of {variant} arrived in the calibration ({requests} slow requests), so its spans per request are unknown. Check where it sends its spans, and its log in `runs/calibration-{variant}`"
    )]
    NothingCalibrated {
        /// Variant.
        variant: String,
        /// Requests of the calibration.
        requests: u64,
    },
    /// The study stopped by something else than its number of rounds.
    #[error("{0}")]
    Stopped(Stopped),
    // The judge's.
    /// The last line was being written when unladen ended.
    #[error(
        "line {line} of the journal was cut short: the run under way when unladen ended is lost. `unladen run --resume` repeats it"
    )]
    JournalTorn {
        /// Line, from 1.
        line: usize,
    },
    /// A line within the journal is not a run.
    #[error("line {line} of the journal cannot be read ({message}): the run is left out")]
    JournalUnreadable {
        /// Line, from 1.
        line: usize,
        /// Why.
        message: String,
    },
    /// `host.json` is missing or broken.
    #[error("host.json cannot be read ({message}): the report does not say which machine this was")]
    HostUnknown {
        /// Why.
        message: String,
    },
    /// Two lines claim the same run.
    #[error("the journal has run {run} more than once; the first valid run of a variant in a round is used")]
    RunNumberTwice {
        /// Number of the run.
        run: u32,
    },
    /// A variant of the study has not been run.
    #[error("there are no runs of {variant}")]
    NoRuns {
        /// Variant.
        variant: String,
    },
    /// Runs that do not count.
    #[error("{variant}: {void} of {runs} runs do not count. The first, run {first}: {reason}")]
    RunsVoid {
        /// Variant.
        variant: String,
        /// How many do not count.
        void: u32,
        /// How many there are.
        runs: u32,
        /// Number of the first of them.
        first: u32,
        /// Why the first does not.
        reason: String,
    },
    /// Void runs that were repeated with success.
    #[error("runs repeated in their rounds: {runs}. The first attempts do not count, and the repetitions are used")]
    RunsRepeated {
        /// How many.
        runs: u32,
    },
    /// Valid runs beyond the first of a round.
    #[error("valid runs of {variant} that are left out: {runs}. Their rounds already had one")]
    RunsSurplus {
        /// Variant.
        variant: String,
        /// How many.
        runs: u32,
    },
    /// Too few rounds for any interval.
    #[error(
        "{variants}: an interval needs {needed} rounds with both sides; so far: {rounds}. `unladen run --resume` with more rounds adds them"
    )]
    TooFewRounds {
        /// Variants that it concerns.
        variants: String,
        /// Rounds in which they and the baseline have a run that counts.
        rounds: u32,
        /// Rounds needed.
        needed: u32,
    },
    /// The placebo differs from the baseline in a metric that decides.
    #[error(
        "the baseline differs from itself in {metric} ({words}, at 99 % confidence): the harness favours one side, so no difference can be trusted"
    )]
    PlaceboDiffers {
        /// Title of the metric.
        metric: String,
        /// By how much.
        words: String,
    },
    /// The placebo differs from the baseline in another metric, or by less than what matters.
    #[error(
        "the baseline differs from itself in {metric} ({words}, at 99 % confidence): read its differences with care"
    )]
    PlaceboUneven {
        /// Title of the metric.
        metric: String,
        /// By how much.
        words: String,
    },
    /// There is no placebo.
    #[error("without an A/A control the noise floor is unknown. Set `placebo: true`")]
    NoPlacebo,
    /// There is no baseline run that counts.
    #[error("no run of the baseline counts: there is nothing to compare with")]
    NoBaseline,
    /// A variant has no run that counts.
    #[error("{variant} has no valid run, so it has no result")]
    NothingCounts {
        /// Variant.
        variant: String,
    },
    /// A variant does other work than the baseline.
    #[error("{variant} does not do the same work as the baseline, so it has no verdict: {what}")]
    WorkDiffers {
        /// Variant.
        variant: String,
        /// What differs.
        what: String,
    },
    /// The closed loop was not closed, by far.
    #[error(
        "{under_way:.1} requests were in flight on average over {connections:.0} connections that should each have had one: the load generator set the pace, not the service"
    )]
    LittleLawBroken {
        /// Requests that should have been under way.
        connections: f64,
        /// Requests that were, by Little's law.
        under_way: f64,
    },
    /// The closed loop was not closed, a little.
    #[error(
        "in {runs} runs the connections were not always busy (at worst {under_way:.1} requests in flight over {connections:.0} connections): the load generator took part of the time"
    )]
    LittleLawStrained {
        /// How many runs.
        runs: u32,
        /// Requests that should have been under way.
        connections: f64,
        /// Requests that were, by Little's law.
        under_way: f64,
    },
    /// The baseline sends spans.
    #[error("the baseline sent {spans} spans: it is instrumented too, so the cost of making them is on both sides")]
    BaselineNotBare {
        /// How many.
        spans: String,
    },
    /// Latency, or CPU per request, moved within the windows.
    #[error(
        "in {variant} {what} changed by {change} from the first to the second half of the window: it was not warmed up. Raise `warmup`"
    )]
    NotSteady {
        /// Variant.
        variant: String,
        /// What moved.
        what: String,
        /// Estimated change.
        change: String,
    },
    /// Latency, or CPU per request, moved so much within the windows that no number stands for them.
    #[error(
        "{what} of {variant} changed by {change} from the first to the second half of the window: its cost depends on when it is measured. Raise `warmup`, add `preheat`, or find out what changes over time"
    )]
    Unsteady {
        /// Variant that drifts.
        variant: String,
        /// What of it.
        what: String,
        /// Estimated change.
        change: String,
    },
    /// The machine had no idle moment.
    #[error(
        "the machine was {percent:.0} % busy in a typical run: latencies from p90 on measure the queue for the CPU, not the service. Lower the rate, stop other processes, or measure `capacity`"
    )]
    HostSaturated {
        /// Busy share of the machine, percent.
        percent: f64,
    },
    /// Too few requests for quantiles.
    #[error(
        "{metrics} not shown: this needs {needed} requests over all rounds and a tenth of that in each run; there are about {requests} and {per_run}. Raise `{raise}`, `rounds` or the rate"
    )]
    TooFewRequests {
        /// Titles of the metrics.
        metrics: String,
        /// Requests needed for the least demanding of them.
        needed: String,
        /// Requests of a variant in all its runs.
        requests: String,
        /// Requests per run.
        per_run: String,
        /// Key of the study that gives a run more of them: `window` or `alone`.
        raise: String,
    },
    /// The two methods come to different verdicts.
    #[error("the cross-check differs: {rank} by Hodges-Lehmann, {t} by paired t. Check the individual rounds")]
    MethodsDisagree {
        /// Verdict by signed ranks.
        rank: String,
        /// Verdict by the t interval.
        t: String,
    },
    /// Spans were lost, so the cost is that of less work.
    #[error("{variant} lost {share} of its spans: its cost is only that of the spans it delivered")]
    BoughtWithLoss {
        /// Variant.
        variant: String,
        /// Share of the spans that never arrived.
        share: String,
    },
    /// The ledger does not balance.
    #[error(
        "the ledger of {variant} does not balance: {unexplained} spans are unexplained. Declare `spans_per_request`, or find the requests that make a different number of spans"
    )]
    LedgerUnbalanced {
        /// Variant.
        variant: String,
        /// Unexplained spans, signed.
        unexplained: String,
    },
    /// The numbers are another tool's.
    #[error("imported results do not show {missing}")]
    Imported {
        /// What nobody knows.
        missing: String,
    },
    /// The number of spans per request was learned from what arrived.
    #[error(
        "{variant}: {spans} spans per request were learned from the traces that arrived under load. Spans lost from every request would go unseen: declare `spans_per_request`, or let `calibration` learn it"
    )]
    SpansLearned {
        /// Variant.
        variant: String,
        /// Spans per sampled request.
        spans: f64,
    },
    /// The load, and the limits that it has found.
    #[error(transparent)]
    #[serde(untagged)]
    Load(#[from] LoadNotice),
    /// Rounds, and how they shared their time.
    #[error(transparent)]
    #[serde(untagged)]
    Rounds(#[from] RoundsNotice),
}
