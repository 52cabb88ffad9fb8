//! Journal in, findings out. Starts no process, reads no clock.

pub mod findings;
