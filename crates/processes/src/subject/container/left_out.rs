//! What takes the place of an engine in a build without containers.

use std::convert::Infallible;
use std::fs::File;
use std::path::{Path, PathBuf};

use unladen_linux::CpuSet;

use super::super::launch::{Image, Launch};
use super::error::ContainerError;
use super::known::{Inspected, Member};

/// A connection to an engine: none ever is in this build.
#[derive(Debug)]
pub struct Engine(Infallible);

/// Socket of the engine, which this build does not look for.
///
/// # Errors
/// It always fails.
pub fn socket() -> Result<PathBuf, ContainerError> {
    Err(ContainerError::LeftOut)
}

impl Engine {
    /// Connects to an engine, which this build cannot.
    ///
    /// # Errors
    /// It always fails.
    pub fn connect(_socket: &Path) -> Result<Self, ContainerError> {
        Err(ContainerError::LeftOut)
    }

    /// What it is, in words.
    #[must_use]
    pub fn words(&self) -> &str {
        match self.0 {}
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        match self.0 {}
    }

    /// Removes a container.
    ///
    /// # Errors
    /// None.
    pub fn remove(&self, _name: &str) -> Result<(), ContainerError> {
        match self.0 {}
    }

    /// Removes what has a label.
    ///
    /// # Errors
    /// None.
    pub fn remove_labelled(&self, _label: &str) -> Result<(), ContainerError> {
        match self.0 {}
    }

    pub(super) fn for_another_thread(&self) -> Result<Self, ContainerError> {
        match self.0 {}
    }

    pub(super) fn create(
        &self,
        _name: &str,
        _launch: &Launch,
        _image: &Image,
        _mark: &str,
        _cpus: Option<&CpuSet>,
    ) -> Result<(), ContainerError> {
        match self.0 {}
    }

    pub(super) fn start(&self, _name: &str) -> Result<(), ContainerError> {
        match self.0 {}
    }

    pub(super) fn signal(&self, _name: &str, _signal: &str) -> Result<(), ContainerError> {
        match self.0 {}
    }

    pub(super) fn confine(&self, _name: &str, _cpus: &CpuSet) -> Result<(), ContainerError> {
        match self.0 {}
    }

    pub(super) fn follow(&self, _name: &str, _log: File) -> Result<Inspected, ContainerError> {
        match self.0 {}
    }

    pub(in crate::subject) fn inspect(&self, _name: &str) -> Result<Inspected, ContainerError> {
        match self.0 {}
    }

    pub(in crate::subject) fn members(&self, _project: &str) -> Result<Vec<Member>, ContainerError> {
        match self.0 {}
    }

    pub(in crate::subject) fn need_image(&self, _image: &str) -> Result<(), ContainerError> {
        match self.0 {}
    }

    pub(in crate::subject) fn make_volume(&self, _name: &str, _label: (&str, &str)) -> Result<(), ContainerError> {
        match self.0 {}
    }
}
