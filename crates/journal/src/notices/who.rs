//! How a notice names a process.

/// A process by its service, and its number where it has one to be told by.
pub(super) fn who(service: &str, replica: u32) -> String {
    if replica == 0 { service.to_owned() } else { format!("{service} (replica {replica})") }
}
