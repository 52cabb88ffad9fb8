//! What takes the place of TLS in a build without it.

use crate::error::LoadError;
use crate::plan::Plan;
use crate::target::Target;

/// How to make a connection secure: nothing ever is in this build.
#[derive(Debug, Clone)]
pub(crate) enum Tls {}

impl Tls {
    /// For a plan with an `https` URL, which this build refuses.
    pub(crate) fn new(_plan: &Plan, _target: &Target) -> Result<Self, LoadError> {
        Err(LoadError::LeftOut { what: "TLS, so without `https`" })
    }
}
