//! The services of a run that are a Compose project.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use unladen_linux::Netns;
use unladen_processes::subject::compose::{Changes, ComposeError, Configured, Files, Fit};
use unladen_processes::subject::{Placed, SubjectError};
use unladen_study::plan::Process;
use unladen_study::spec::{ComposeProject, Volumes};

use super::error::RunError;
use super::ports;
use super::setup::{Site, addresses};
use super::stack::{Host, Started, Wanted};

impl Site<'_> {
    /// Starts a project. Every network that one of its containers is in is handed to `seen`.
    pub(super) fn start_project(
        &self,
        compose: &ComposeProject,
        wanted: &Wanted<'_>,
        seen: &mut dyn FnMut(&Arc<Netns>),
    ) -> Result<(Started, Vec<Placed>), RunError> {
        let dir = &self.plan().dir;
        let files = Files {
            files: compose.files.iter().map(|file| dir.join(file)).collect(),
            profiles: compose.profiles.clone(),
            privileged: compose.privileged,
            named: wanted.processes.iter().map(|process| process.service.clone()).collect(),
            env: self.sinks_by_variable().collect(),
            dir: dir.clone(),
            log: wanted.folder.join("logs"),
            cpus: self.partition.instrument.clone(),
        };
        let configured = self.launcher.configure(files, wanted.interrupted)?;
        self.look_at_ports(&configured, wanted.processes)?;
        let keep = compose.volumes == Volumes::Keep;
        let fit = Fit {
            cpus: self.partition.subject.clone(),
            services: self.changes(wanted),
            pad: self.pad(wanted.run),
            keep_volumes: keep.then(|| wanted.variant.name.clone()),
        };
        let (project, placed) = self.launcher.up(configured, &fit, wanted.patience(), seen, wanted.interrupted)?;
        Ok((Started::Compose(project), placed))
    }

    /// What the study changes in the services of the file.
    fn changes(&self, wanted: &Wanted<'_>) -> BTreeMap<String, Changes> {
        let changes = |(process, replicas): (&Process, Option<u32>)| {
            let (cores, mut limits) = self.limits(process, &self.partition.subject);
            limits.cpuset = limits.cpuset.or(Some(cores));
            (process.service.clone(), Changes { env: process.env.clone(), limits, replicas })
        };
        wanted.services().map(changes).collect()
    }

    /// In the network of the machine somebody else may listen.
    fn look_at_ports(&self, configured: &Configured, processes: &[Process]) -> Result<(), RunError> {
        let services = configured.services();
        for process in processes.iter().filter(|it| services.get(&it.service).is_some_and(|it| it.host_network)) {
            let here = Host::at(&process.service, Ipv4Addr::LOCALHOST.into());
            let mut wanted = addresses(process).into_iter().map(|address| here.place(&address));
            if let Some(address) = wanted.find(|address| ports::taken(address, None)) {
                let service = process.service.clone();
                return Err(SubjectError::from(ComposeError::PortTaken { service, address }).into());
            }
        }
        Ok(())
    }
}
