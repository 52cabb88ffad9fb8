//! Heating up: full speed before the warm-up, not measured.

use std::time::Duration;

use unladen_journal::units::Time;
use unladen_linux::CpuSet;
use unladen_load::plan::Pacing;
use unladen_study::spec::PreheatCpuset;

use super::error::RunError;
use super::run::{Run, RunContext};
use super::setup::Setup;

/// The cores of the services and those to which they are moved to be heated up; `None`: they stay where they are.
pub(super) fn elsewhere(setup: &Setup<'_>) -> Option<(CpuSet, CpuSet)> {
    let own = setup.partition.subject.clone();
    let all = own.union(&setup.partition.instrument);
    (setup.plan.study.preheat_cpuset == PreheatCpuset::All && all != own).then_some((own, all))
}

/// Heating up comes in two loads, each with connections of its own. The end of the first is the first time that many connections close
/// at once, and that is when an optimising compiler throws code away that did not expect it: V8 then compiles a dozen functions of the
/// stream of a request anew, 30 ms of work. After the second nothing is new.
pub(super) fn stretches(time: Duration) -> impl Iterator<Item = Time> {
    [time * 3 / 4, time / 4].into_iter().map(Time)
}

impl Run<'_> {
    /// Heats the services up for as long as the study says. Returns how many seconds it took; `None`: something ended, and the record
    /// says what.
    pub(super) fn preheat(&mut self, context: &mut RunContext<'_>) -> Result<Option<f64>, RunError> {
        let elsewhere = elsewhere(&self.setup);
        if let Some((own, all)) = &elsewhere {
            self.move_services(context, own, all)?;
        }
        let took_s = stretches(self.setup.plan().study.preheat.0).try_fold(Some(0.0), |before, time| {
            let Some(before) = before else { return Ok(None) };
            Ok(self.unmeasured(context, time, Some(Pacing::Closed))?.map(|took_s| before + took_s))
        });
        // Services that live as long as the study are needed again, whatever has become of this run.
        if let Some((own, all)) = &elsewhere {
            self.move_services(context, all, own)?;
        }
        took_s
    }

    /// Moves what the study starts from these cores to those, but for services with cores of their own (`limits.cpuset`).
    pub(super) fn move_services(&self, context: &RunContext<'_>, from: &CpuSet, to: &CpuSet) -> Result<(), RunError> {
        let services =
            self.shared.iter().chain(&context.services).filter(|service| service.process.limits.cpuset.is_none());
        for service in services {
            let failed =
                |source| RunError::Cores { service: service.process.service.clone(), cpus: to.clone(), source };
            service.running.move_threads(from, to).map_err(failed)?;
        }
        Ok(())
    }
}
