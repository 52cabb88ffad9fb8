//! CPU and memory of every service over the time of a run: the subject, what it needs, collectors, storage and the instrument.
//!
//! One band per service and variant, over the runs that count: what a machine is doing while a study runs, and who of those that
//! are not the subject pays. Verdicts come from whole windows, not from here.

use std::collections::BTreeMap;

use serde::Serialize;
use unladen_journal::record::RunRecord;
use unladen_journal::timeline;
use unladen_study::measured::Measured;

use super::super::evidence::Evidence;
use super::parts::{Band, VariantName, names};
use super::time::{self, Steps};

/// Metrics of the timeline, in the order of [`Courses`].
const METRICS: [&str; 2] = ["cpu_cores", "rss"];
/// In the order in which a reader asks.
const ROLES: [&str; 6] = ["subject", "dependency", "collector", "storage", "driver", INSTRUMENT];
/// The load generator and the sink have no role in a study.
const INSTRUMENT: &str = "instrument";

/// What every service of a study took over the time of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Resources {
    /// All variants with runs, the baseline first.
    #[serde(rename = "arms")]
    pub variants: Vec<VariantName>,
    /// Seconds between two values; what was sampled more often is averaged.
    pub step_s: f64,
    /// One entry per service and variant, the subject first.
    pub services: Vec<ServiceCourse>,
    /// Files that should be there and could not be read.
    pub unread: u32,
}

/// One service in the runs of one variant; its replicas are added up.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ServiceCourse {
    /// Its name.
    pub service: String,
    /// `subject`, `dependency`, `collector`, `storage`, `driver`, or `instrument`: the load generator and the sink.
    pub role: String,
    /// Key of the variant.
    pub variant: String,
    /// The time of the first values is this times `step_s`; 0 is the start of the window.
    pub first: i64,
    /// CPU, cores' worth, over the runs.
    pub cpu_cores: Band,
    /// Resident memory, bytes, over the runs.
    pub rss: Band,
}

/// Place among the roles, name, place among the variants.
type Key = (usize, String, usize);
/// For each metric: the values of the runs by step.
type Courses = [BTreeMap<i64, Vec<f64>>; METRICS.len()];

/// Reads the timelines of all runs that count.
pub(super) fn read(folder: &Measured) -> Resources {
    let evidence = Evidence::of(folder);
    let runs = || evidence.valid().filter(|run| run.imported.is_none());
    let step_s = time::step_s(runs());
    let variants = names(&evidence);
    let (mut found, mut unread) = (BTreeMap::<Key, Courses>::new(), 0);
    for run in runs() {
        let Some(variant) = variants.iter().position(|variant| variant.name == run.variant) else { continue };
        let Some(services) = of_run(folder, run, step_s) else {
            unread += 1;
            continue;
        };
        for ((role, service), metrics) in services {
            let courses = found.entry((role, service, variant)).or_default();
            for (course, steps) in courses.iter_mut().zip(metrics) {
                for (step, (sum, _)) in steps {
                    course.entry(step).or_default().push(sum);
                }
            }
        }
    }
    let services = found.into_iter().filter_map(|((role, service, variant), courses)| {
        let steps = || courses.iter().flat_map(BTreeMap::keys).copied();
        let (first, last) = (steps().min()?, steps().max()?);
        let band = |course: &BTreeMap<i64, Vec<f64>>| {
            let mut band = Band::default();
            (first..=last).for_each(|step| band.push(course.get(&step).cloned().unwrap_or_default()));
            band
        };
        let [cpu_cores, rss] = &courses;
        Some(ServiceCourse {
            service,
            role: ROLES[role].to_owned(),
            variant: variants[variant].name.clone(),
            first,
            cpu_cores: band(cpu_cores),
            rss: band(rss),
        })
    });
    Resources { services: services.collect(), variants, step_s, unread }
}

/// The metrics of every service in one run, its replicas added up; `None` if its timeline cannot be read.
fn of_run(folder: &Measured, run: &RunRecord, step_s: f64) -> Option<BTreeMap<(usize, String), Vec<Steps>>> {
    let path = folder.dir.join(&run.dir).join("timeline.parquet");
    let mut replicas: BTreeMap<(usize, String), [BTreeMap<i32, Steps>; METRICS.len()]> = BTreeMap::new();
    for sample in timeline::samples(&path, &METRICS).ok()? {
        let role = sample.role.as_ref().map_or(INSTRUMENT.as_bytes(), |role| role.data());
        let Some(role) = ROLES.iter().position(|known| known.as_bytes() == role) else { continue };
        let (service, replica) = sample.process;
        let service = String::from_utf8_lossy(service.data()).into_owned();
        let metrics = replicas.entry((role, service)).or_default();
        let steps = metrics[sample.metric].entry(replica).or_default();
        time::add(steps, time::step(sample.t_s + 0.01, step_s), sample.value);
    }
    let summed = |(key, metrics): (_, [BTreeMap<i32, Steps>; METRICS.len()])| {
        (key, metrics.into_iter().map(|replicas| time::summed(replicas.into_values())).collect())
    };
    Some(replicas.into_iter().map(summed).collect())
}
