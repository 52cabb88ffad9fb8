//! The status codes of gRPC: their names, and how a plan writes them.

use crate::error::LoadError;
use crate::plan::Grpc;

/// Names of the status codes, in order; the last one stands for "none, or one that does not exist".
pub(crate) const STATUSES: [&str; 18] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
    "none",
];

/// Place of a status in [`STATUSES`].
#[inline]
pub(crate) fn place(status: Option<u16>) -> usize {
    status.map_or(STATUSES.len() - 1, |code| usize::from(code).min(STATUSES.len() - 1))
}

/// The status that a good answer has.
pub(crate) fn wanted(grpc: &Grpc) -> Result<u16, LoadError> {
    grpc.status.as_deref().map_or(Ok(0), code)
}

/// The code of a status, given by its name or as a number.
///
/// # Errors
/// [`LoadError::Grpc`] if there is no such status.
pub(crate) fn code(text: &str) -> Result<u16, LoadError> {
    let named = STATUSES[..STATUSES.len() - 1].iter().position(|name| name.eq_ignore_ascii_case(text));
    let code = named.map(|place| place as u16).or_else(|| text.parse().ok());
    code.filter(|&code| usize::from(code) < STATUSES.len() - 1).ok_or_else(|| LoadError::Grpc {
        message: format!("there is no status {text:?}; write a name such as NOT_FOUND, or 0 to 16"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_a_place_each() {
        assert_eq!([Some(0), Some(5), Some(16), Some(17), Some(u16::MAX), None].map(place), [0, 5, 16, 17, 17, 17]);
        assert_eq!(STATUSES[place(Some(14))], "UNAVAILABLE");
        for (text, wanted) in [("OK", 0), ("not_found", 5), ("16", 16)] {
            assert_eq!(code(text).expect(text), wanted);
        }
        for text in ["none", "17", "", "FOUND"] {
            assert!(code(text).expect_err(text).to_string().contains("NOT_FOUND"));
        }
    }
}
