//! `live.json` in the run folder: for whoever looks on from another process. Removed when the study ends; a stale one, left by
//! `kill -9`, is known by the process that it names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use unladen_linux::process::Identity;
use unladen_measure::watch::Step;

use super::Display;
use crate::under_way::{FILE, Live, LiveFile};

/// Under this name it is written before it takes its place.
const PART: &str = ".live.json.part";

/// Writes the file with every step. It stays until [`Written::remover`] goes: a study that has been run is then judged.
#[derive(Debug)]
pub struct Written {
    folder: PathBuf,
    me: Option<Identity>,
}

impl Written {
    /// Into this run folder.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), me: Identity::of(std::process::id()) }
    }

    /// What removes the file in the end.
    #[must_use]
    pub fn remover(&self) -> Remover {
        Remover(self.folder.clone())
    }

    /// No `fsync`: nobody needs it after a crash, and it would take the disk from the subject.
    fn write(&self, live: &Live) -> io::Result<()> {
        let Some(Identity { pid, start_ticks }) = self.me else { return Ok(()) };
        let text = serde_json::to_vec(&LiveFile { pid, start_ticks, live })?;
        let part = self.folder.join(PART);
        fs::write(&part, text)?;
        fs::rename(&part, self.folder.join(FILE))
    }
}

impl Display for Written {
    fn show(&mut self, _: Step<'_>, live: &Live) {
        // Measuring does not depend on anybody watching; a full disk is told of by the journal.
        let _ = self.write(live);
    }
}

/// Removes the file when it goes.
#[derive(Debug)]
pub struct Remover(PathBuf);

impl Drop for Remover {
    fn drop(&mut self) {
        for name in [FILE, PART] {
            // Mostly there is but the first.
            let _ = fs::remove_file(self.0.join(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use indexmap::IndexMap;
    use unladen_measure::watch::Phase;

    use super::*;
    use crate::under_way::read;

    #[test]
    fn the_file_is_there_as_long_as_somebody_writes_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut written = Written::new(folder.path());
        let remover = written.remover();
        let mut live = Live::new("shop", &IndexMap::new());
        live.see(Step::Phase(Phase::Window), 0.0);
        written.show(Step::Phase(Phase::Window), &live);
        assert_eq!(read(folder.path()), Some(live));
        drop(written);
        assert!(read(folder.path()).is_some(), "it is judged now");
        drop(remover);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn the_file_of_a_process_that_has_gone_says_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let me = Identity::of(std::process::id()).expect("this process");
        let content = LiveFile { pid: me.pid, start_ticks: me.start_ticks + 1, live: Live::default() };
        fs::write(folder.path().join(FILE), serde_json::to_vec(&content).expect("JSON")).expect("a temporary folder");
        assert_eq!(read(folder.path()), None);
    }
}
