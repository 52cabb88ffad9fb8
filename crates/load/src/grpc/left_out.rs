//! What takes the place of gRPC in a build without it.

use crate::error::LoadError;
use crate::plan::{Grpc, Plan};
use crate::target::{Address, Target};
use crate::tls::Tls;

/// Makes a call ready, which this build cannot.
pub(crate) fn prepare(
    _grpc: &Grpc,
    _plan: &Plan,
    _target: &Target,
    _address: &Address,
    _tls: Option<&Tls>,
) -> Result<(String, Vec<u8>), LoadError> {
    Err(LoadError::LeftOut { what: "gRPC" })
}
