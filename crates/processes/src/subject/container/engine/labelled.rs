//! What an engine knows by a label: the containers, networks and volumes of a Compose project.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bollard::models::{ContainerSummaryStateEnum, VolumeCreateRequest};
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListNetworksOptionsBuilder, ListVolumesOptionsBuilder, RemoveVolumeOptions,
};

use super::super::error::ContainerError;
use super::super::known::{Member, PROJECT};
use super::{Engine, settled};

const SERVICE: &str = "com.docker.compose.service";
const NUMBER: &str = "com.docker.compose.container-number";

/// A network cannot be removed before the engine has taken the last container out of it.
const PATIENCE: Duration = Duration::from_secs(3);

type Filters = HashMap<String, Vec<String>>;

fn labelled(label: &str) -> Filters {
    Filters::from([("label".to_owned(), vec![label.to_owned()])])
}

impl Engine {
    /// The containers of a project, running or not.
    pub(in crate::subject) fn members(&self, project: &str) -> Result<Vec<Member>, ContainerError> {
        let filters = labelled(&format!("{PROJECT}={project}"));
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let listed = settled(|| self.docker.list_containers(Some(options.clone())));
        let found = self.runtime.block_on(listed).map_err(ContainerError::engine)?;
        let member = |it: bollard::models::ContainerSummary| {
            let labels = it.labels.unwrap_or_default();
            let number: u32 = labels.get(NUMBER).and_then(|number| number.parse().ok()).unwrap_or(1);
            Some(Member {
                id: it.id?,
                service: labels.get(SERVICE)?.clone(),
                replica: number.saturating_sub(1),
                is_running: it.state == Some(ContainerSummaryStateEnum::RUNNING),
                was_started: it.state != Some(ContainerSummaryStateEnum::CREATED),
            })
        };
        Ok(found.into_iter().filter_map(member).collect())
    }

    /// An error if an image is not on this machine.
    pub(in crate::subject) fn need_image(&self, image: &str) -> Result<(), ContainerError> {
        match self.runtime.block_on(self.docker.inspect_image(image)) {
            Ok(_) => Ok(()),
            Err(bollard::errors::Error::DockerResponseServerError { status_code: 404, message }) => {
                Err(ContainerError::NoImage { image: image.to_owned(), message })
            }
            Err(error) => Err(ContainerError::engine(error)),
        }
    }

    /// Makes a volume with a label.
    pub(in crate::subject) fn make_volume(
        &self,
        name: &str,
        (label, value): (&str, &str),
    ) -> Result<(), ContainerError> {
        let wanted = VolumeCreateRequest {
            name: Some(name.to_owned()),
            labels: Some(HashMap::from([(label.to_owned(), value.to_owned())])),
            ..VolumeCreateRequest::default()
        };
        let made = self.runtime.block_on(self.docker.create_volume(wanted));
        made.map(drop).map_err(ContainerError::engine)
    }

    /// Removes every container, running or not, with its anonymous volumes, every network and every volume that has a label:
    /// `NAME=VALUE`. What is not there is fine.
    ///
    /// # Errors
    /// What the engine says.
    pub fn remove_labelled(&self, label: &str) -> Result<(), ContainerError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.try_to_remove(label) {
                Err(error) if Instant::now() >= deadline => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
                Ok(()) => return Ok(()),
            }
        }
    }

    fn try_to_remove(&self, label: &str) -> Result<(), ContainerError> {
        let filters = labelled(label);
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let (docker, failed) = (&self.docker, ContainerError::engine);
        let listed = settled(|| docker.list_containers(Some(options.clone())));
        let containers = self.runtime.block_on(listed).map_err(failed)?;
        for id in containers.iter().filter_map(|container| container.id.as_deref()) {
            self.remove(id)?;
        }
        let options = ListNetworksOptionsBuilder::default().filters(&filters).build();
        let networks = self.runtime.block_on(docker.list_networks(Some(options))).map_err(failed)?;
        for id in networks.iter().filter_map(|network| network.id.as_deref()) {
            self.runtime.block_on(docker.remove_network(id)).map_err(failed)?;
        }
        let options = ListVolumesOptionsBuilder::default().filters(&filters).build();
        let volumes = self.runtime.block_on(docker.list_volumes(Some(options))).map_err(failed)?.volumes;
        for volume in volumes.into_iter().flatten() {
            let removed = docker.remove_volume(&volume.name, None::<RemoveVolumeOptions>);
            self.runtime.block_on(removed).map_err(failed)?;
        }
        Ok(())
    }
}
