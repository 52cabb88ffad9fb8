//! The Compose tool of this machine: the plugin of Docker's command, or the program of its own. Files are merged, filled in and started
//! by it alone.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::ComposeError;

/// Where Docker looks for plugins, besides the user's own.
const PLUGINS: [&str; 4] = [
    "/usr/local/lib/docker/cli-plugins",
    "/usr/local/libexec/docker/cli-plugins",
    "/usr/lib/docker/cli-plugins",
    "/usr/libexec/docker/cli-plugins",
];

/// What both are called.
const NAME: &str = "docker-compose";

/// The tool. The plugin is called as a program, without Docker's command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool(PathBuf);

impl Tool {
    /// The plugin, else the program in `PATH`.
    ///
    /// # Errors
    /// There is neither.
    pub fn find() -> Result<Self, ComposeError> {
        let own = env::var_os("DOCKER_CONFIG")
            .map(PathBuf::from)
            .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".docker")))
            .map(|folder| folder.join("cli-plugins"));
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = own.into_iter().chain(PLUGINS.map(PathBuf::from)).chain(env::split_paths(&path));
        let found = folders.map(|folder| folder.join(NAME)).find(|file| file.is_file());
        found.map(Self).ok_or(ComposeError::Absent)
    }

    /// The file to execute.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.0
    }

    /// What it makes of files.
    pub(super) fn config(&self, files: &[&Path]) -> Result<String, ComposeError> {
        let refused = |said: String| ComposeError::Refused { what: "read the files", said };
        let arguments = files.iter().flat_map(|file| [Path::new("-f"), file]);
        let output = Command::new(&self.0).args(arguments).arg("config").output();
        let output = output.map_err(|error| refused(error.to_string()))?;
        if !output.status.success() {
            return Err(refused(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Its version: `1.29.2`.
    ///
    /// # Errors
    /// It does not run.
    pub fn version(&self) -> io::Result<String> {
        let output = Command::new(&self.0).args(["version", "--short"]).output()?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().trim_start_matches('v').to_owned()),
            false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        }
    }
}
