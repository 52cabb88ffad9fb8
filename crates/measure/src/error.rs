//! Why a study could not go on.

use std::path::PathBuf;

use unladen_journal::notices::Notice;
use unladen_journal::read::ReadError;
use unladen_journal::write::WriteError;
use unladen_linux::CpuSet;
use unladen_processes::subject::SubjectError;
use unladen_study::resolve::ResolveError;

use super::after::AfterError;
use super::agents::AgentError;
use super::builds::BuildError;
use super::folder::FolderError;
use super::instrument::InstrumentError;
use super::load_plan::LoadFileError;
use super::ports::NoPort;
use super::took::Inert;

/// Why a study could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
    /// The run folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The journal could not be written.
    #[error(transparent)]
    Journal(#[from] WriteError),
    /// The journal could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A build step failed.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The agent of a service is not there.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// A variable of the study has no value.
    #[error(transparent)]
    Variable(#[from] ResolveError),
    /// No port is free.
    #[error(transparent)]
    Port(#[from] NoPort),
    /// Something else listens where a service is to.
    #[error(
        "{address} is already in use, so {service} cannot listen there and unladen would measure another program. Stop what listens there (`ss -ltnp` shows it), or use ${{port.NAME}} for a free port"
    )]
    PortTaken {
        /// Service.
        service: String,
        /// Address.
        address: String,
    },
    /// The load of a stack goes to a port of this machine.
    #[error(
        "the load goes to {url}, where nothing listens: ports of containers are not published in a round. Use the name of a service, as in `http://NAME:PORT/`; services: {services}"
    )]
    NobodyThere {
        /// The URL.
        url: String,
        /// Services of the stack.
        services: String,
    },
    /// The pods of a variant are the baseline's.
    #[error(
        "{variant} declares {declared} for the pods of {service}, but the pods that the cluster admitted are identical to the baseline's, so the baseline would be compared with itself. Do the manifests say the same already?"
    )]
    NothingTaken {
        /// Variant.
        variant: String,
        /// Service.
        service: String,
        /// What it declares.
        declared: String,
    },
    /// Nobody acted on the labels of a variant.
    #[error(
        "{variant} declares {declared} for the pods of {service}, and the pods that the cluster admitted have no other difference from the baseline's: no injector acted on them, so {variant} would be measured without its instrumentation. Is the injector installed, and does it look at new namespaces (`kubectl get mutatingwebhookconfigurations -o yaml`)? Put labels without an injector into the manifests"
    )]
    NoInjector {
        /// Variant.
        variant: String,
        /// Service.
        service: String,
        /// What it declares.
        declared: String,
    },
    /// A process could not be started.
    #[error(transparent)]
    Subject(SubjectError),
    /// A service could not be moved to other cores.
    #[error(
        "cannot move {service} to the cores {cpus}, where it is to be heated up or measured: {source}. Leave out `preheat_cpuset`"
    )]
    Cores {
        /// Service.
        service: String,
        /// Cores.
        cpus: CpuSet,
        /// What the system says.
        source: std::io::Error,
    },
    /// A part of the instrument failed.
    #[error(transparent)]
    Instrument(#[from] InstrumentError),
    /// A load could not be sent.
    #[error(transparent)]
    Load(#[from] unladen_load::LoadError),
    /// The study declares another number of spans than there are.
    #[error("{notice}\nThe calibration is in the journal. Correct the study and start it anew, or go on with `unladen run --resume {}` and `--set`", folder.display())]
    Declared {
        /// What was found.
        notice: Notice,
        /// Run folder.
        folder: PathBuf,
    },
    /// What sets runs up failed in a calibration.
    #[error("{notice}\nNothing of the variant was measured yet. Fix it and continue with `unladen run --resume {}`", folder.display())]
    NotSetUp {
        /// Which program, how and its last words.
        notice: Notice,
        /// Run folder.
        folder: PathBuf,
    },
    /// A file of the load cannot be used.
    #[error(transparent)]
    LoadFile(#[from] LoadFileError),
    /// Saturation or the search of the capacity failed.
    #[error(transparent)]
    After(#[from] AfterError),
    /// The disk is full.
    #[error("no space is left for the run folder {}: {source}\nFree some space and go on with `unladen run --resume {}`; the runs so far are kept", folder.display(), folder.display())]
    Full {
        /// Run folder.
        folder: PathBuf,
        /// What failed because of it.
        source: Box<RunError>,
    },
    /// The probe could not be started.
    #[error("cannot start the probe: {0}")]
    Probe(std::io::Error),
    /// The services of a round do not fit into the memory together.
    #[error(
        "there is memory for {fit} variants at once, but {variants} are to alternate: leave some out (`--only`), limit the memory of the services, or run them one after the other (`design: separate`)"
    )]
    Memory {
        /// How many are to take turns.
        variants: usize,
        /// For how many it suffices.
        fit: usize,
    },
    /// Load from other nodes, and variants one after the other.
    #[error(
        "load from other nodes (`on.kubernetes.load`) alternates between the variants, which is not possible here: {reason}. Remove `on.kubernetes.load`, or the reason"
    )]
    PartsAlternate {
        /// Why they do not alternate.
        reason: String,
    },
    /// The system gives no random bytes.
    #[error("cannot read /dev/urandom: {0}")]
    Random(std::io::Error),
    /// Something could not be removed at the end.
    #[error("something of the study is left over: {0}")]
    LeftOver(std::io::Error),
    /// The machine's CPUs cannot be read.
    #[error("cannot tell which CPUs may be used: {0}")]
    Cpus(std::io::Error),
    /// A service ended while it was needed.
    #[error("{notice}\nThe run is in the journal as void. Fix the service and continue with `unladen run --resume {}`", folder.display())]
    Died {
        /// Which, how and its last words.
        notice: Notice,
        /// Run folder.
        folder: PathBuf,
    },
}

impl RunError {
    /// What of a variant came to nothing.
    pub(super) fn inert(variant: &str, Inert { service, declared, is_request }: Inert) -> Self {
        let variant = variant.to_owned();
        if is_request {
            Self::NoInjector { variant, service, declared }
        } else {
            Self::NothingTaken { variant, service, declared }
        }
    }
}

/// An interruption is the user's, whoever was waited for.
impl From<SubjectError> for RunError {
    fn from(error: SubjectError) -> Self {
        match error {
            SubjectError::Interrupted { .. } => Self::Interrupted,
            error => Self::Subject(error),
        }
    }
}
