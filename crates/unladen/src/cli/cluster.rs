//! Studies that run in a cluster by themselves.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use unladen_journal::units::Time;

/// Options of `unladen run` for a study that is to run in its cluster.
#[derive(Debug, Args, Default)]
pub struct InCluster {
    /// Run the study in its cluster, as a Job on one node, instead of from this machine. The Job continues if this terminal closes: `unladen
    /// fetch` gets its results.
    #[arg(long, conflicts_with_all = ["resume", "plan", "profile", "metrics"])]
    pub in_cluster: bool,
    /// Image with this version of unladen, which the node has or can pull [default: unladen:VERSION]
    #[arg(long, value_name = "IMAGE", requires = "in_cluster")]
    pub image: Option<String>,
    /// Node to run on; load, sink and services share it. May be given several times: the nodes then share the rounds, measure at the same
    /// time, and the results are merged [default: the scheduler's choice]
    #[arg(long = "node", value_name = "NODE", requires = "in_cluster")]
    pub nodes: Vec<String>,
    /// How long the results wait in the cluster for `unladen fetch` [default: 24h]
    #[arg(long, value_name = "TIME", requires = "in_cluster")]
    pub keep: Option<Time>,
    /// Print the Job and the files of the study as YAML for `kubectl apply`, and do nothing else.
    #[arg(long, requires = "in_cluster")]
    pub print: bool,
}

/// `unladen fetch`
#[derive(Debug, Args)]
pub struct Fetch {
    /// Name of the study in its cluster. Without it, list these studies.
    pub name: Option<String>,
    /// Context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "CONTEXT")]
    pub context: Option<String>,
    /// Run folder to write [default: runs/NAME]
    #[arg(long, value_name = "DIR", requires = "name")]
    pub out: Option<PathBuf>,
}

/// `unladen clean`
#[derive(Debug, Args)]
pub struct Clean {
    /// Context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "CONTEXT")]
    pub context: Option<String>,
}

/// What runs in the pod of a study.
#[derive(Debug, Subcommand)]
pub enum InPod {
    /// The study, after what an earlier pod of it has left was deleted; then waits for whoever fetches the results.
    Run {
        /// Its file.
        study: PathBuf,
        /// How long to wait.
        #[arg(long)]
        keep: Time,
    },
    /// Writes the results to standard output, as a compressed archive.
    Pack,
    /// Lets the study end.
    Stop,
}
