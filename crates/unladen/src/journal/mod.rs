//! The journal: the append-only record of the runs. Measuring ends here, judging begins here.

pub mod blocks;
pub mod profile;
pub mod read;
pub mod record;
pub mod spans;
pub mod timeline;
pub mod write;
