//! Heating up: full speed before the warm-up, not measured.

use unladen_load::plan::Pacing;

use super::RunError;
use super::one::{Run, Scene};
use crate::linux::CpuSet;
use crate::study::spec::PreheatCpuset;

impl Run<'_> {
    /// Heats the services up for as long as the study says. Returns how many seconds it took; `None`: something ended, and the record
    /// says what.
    pub(super) fn preheat(&mut self, scene: &mut Scene<'_>) -> Result<Option<f64>, RunError> {
        let study = &self.setup.plan.study;
        let own = self.setup.partition.subject.clone();
        let all = own.union(&self.setup.partition.instrument);
        let is_elsewhere = study.preheat_cpuset == PreheatCpuset::All && all != own;
        if is_elsewhere {
            self.move_services(scene, &own, &all)?;
        }
        let took_s = self.unmeasured(scene, study.preheat, Some(Pacing::Closed));
        // Services that live as long as the study are needed again, whatever has become of this run.
        if is_elsewhere {
            self.move_services(scene, &all, &own)?;
        }
        took_s
    }

    /// Moves what the study starts from these cores to those, but for services with cores of their own (`limits.cpuset`).
    fn move_services(&self, scene: &Scene<'_>, from: &CpuSet, to: &CpuSet) -> Result<(), RunError> {
        let ups = self.shared.iter().chain(&scene.ups).filter(|up| up.process.limits.cpuset.is_none());
        for up in ups {
            let failed = |source| RunError::Cores { service: up.process.service.clone(), cpus: to.clone(), source };
            up.running.move_threads(from, to).map_err(failed)?;
        }
        Ok(())
    }
}
