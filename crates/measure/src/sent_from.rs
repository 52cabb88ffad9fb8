//! Pods of unladen's own: on other nodes, where they send the load of a study, and in the pods of its services.

use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::AtomicBool;

use unladen_load::parts::Meeting;
use unladen_processes::subject::kubernetes::{LoadOrder, LoadPods, ProbeOrder, own_image};
use unladen_study::spec::{Kubernetes, ProbeIn};

use super::error::RunError;
use super::ports;
use super::setup::Setup;

/// What pods of the load are told to do.
const COMMAND: &str = "__load-part";
/// What probes in pods are told to be.
const PROBE: &str = "__probe";
/// Parts that run have dialled in after so long, in every round.
const PATIENCE_S: f64 = 30.0;

/// Pods that send the load.
#[derive(Debug)]
pub(super) struct SentFrom {
    pods: LoadPods,
    parts: u32,
    secret: String,
}

impl SentFrom {
    /// Where they meet the next load.
    pub(super) fn meeting(&self) -> Meeting {
        Meeting {
            listen: self.pods.meeting(),
            secret: self.secret.clone(),
            parts: self.parts,
            patience_s: PATIENCE_S,
            subject: self.pods.subject().to_owned(),
        }
    }
}

/// Probes in the pods, if the study wants them. Their port and secret are those of a study that runs.
pub(super) fn probe(cluster: &Kubernetes) -> Option<ProbeOrder> {
    (cluster.probe == ProbeIn::Pod).then(|| ProbeOrder {
        image: cluster.probe_image.clone().unwrap_or_else(own_image),
        args: vec![PROBE.to_owned()],
        ..ProbeOrder::default()
    })
}

/// Probes in the pods of a study that runs, if it wants them.
pub(super) fn probes(cluster: &Kubernetes, seed: u64) -> Result<Option<ProbeOrder>, RunError> {
    let Some(order) = probe(cluster) else { return Ok(None) };
    // The port is free here, and hardly any service of a pod listens there.
    Ok(Some(ProbeOrder { port: port(seed)?, secret: secret().map_err(RunError::Random)?, ..order }))
}

impl Setup<'_> {
    /// Starts the pods that send the load, if the study wants some, and waits until all run. They stay until the study ends.
    pub(super) fn start_load_pods(&mut self, interrupted: &AtomicBool) -> Result<(), RunError> {
        let Some(cluster) = &self.plan.study.on.kubernetes else { return Ok(()) };
        let Some(wanted) = &cluster.load else { return Ok(()) };
        let secret = secret().map_err(RunError::Random)?;
        let order = LoadOrder {
            context: cluster.context.clone(),
            parts: wanted.parts,
            image: wanted.image.clone().unwrap_or_else(own_image),
            nodes: wanted.nodes.clone(),
            args: vec![COMMAND.to_owned()],
            port: port(self.seed())?,
            secret: secret.clone(),
        };
        let pods = self.launcher.load_from(&order, interrupted)?;
        self.load_pods = Some(SentFrom { pods, parts: wanted.parts, secret });
        Ok(())
    }
}

fn port(seed: u64) -> Result<u16, ports::NoPort> {
    ports::allocate(1, seed)?.into_iter().next().ok_or(ports::NoPort)
}

/// What nobody can guess, who may know the study's seed: that is in the run folder.
fn secret() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn secrets_are_long_and_all_different() {
        let [one, other] = [(); 2].map(|()| super::secret().expect("random bytes"));
        assert!(one.len() == 32 && one != other, "{one} {other}");
    }
}
