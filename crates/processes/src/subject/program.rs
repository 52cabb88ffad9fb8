//! Finds the program of a command, so that a wrong name is told from a wrong file before anything is started.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use super::error::SubjectError;
use super::launch::Launch;

/// The file to execute: a word with a slash is a path that starts in `cwd`; any other is looked up in `PATH` (the
/// launch's own, if it sets one).
pub(super) fn find(launch: &Launch, word: &str) -> Result<PathBuf, SubjectError> {
    let service = launch.service.clone();
    if word.contains('/') {
        let path = launch.cwd.join(word);
        return match kind(&path) {
            Kind::Program => Ok(path),
            Kind::Other => Err(SubjectError::NotExecutable { service, path }),
            Kind::Absent => Err(SubjectError::ProgramMissing { service, path }),
        };
    }
    let searched = match launch.env.get("PATH") {
        Some(own) => own.clone().into(),
        None => env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()),
    };
    let mut unusable = None;
    for folder in env::split_paths(&searched) {
        let path = launch.cwd.join(folder).join(word);
        match kind(&path) {
            Kind::Program => return Ok(path),
            Kind::Other => unusable = unusable.or(Some(path)),
            Kind::Absent => {}
        }
    }
    Err(match unusable {
        Some(path) => SubjectError::NotExecutable { service, path },
        None => SubjectError::ProgramNotFound {
            service,
            program: word.to_owned(),
            searched: searched.to_string_lossy().into_owned(),
        },
    })
}

/// What the system's refusal to start a file that was found means.
pub(super) fn start_error(launch: &Launch, program: &Path, source: io::Error) -> SubjectError {
    let (service, path) = (launch.service.clone(), program.to_path_buf());
    match source.raw_os_error() {
        // The file was there a moment ago: what is not found is the interpreter in its first line, or its loader.
        Some(libc::ENOENT | libc::ENOEXEC) => SubjectError::NotRunnable { service, path, source },
        Some(libc::EACCES) => SubjectError::NotExecutable { service, path },
        _ => SubjectError::Start { service, source },
    }
}

enum Kind {
    Program,
    Other,
    Absent,
}

fn kind(path: &Path) -> Kind {
    match path.metadata() {
        Err(_) => Kind::Absent,
        Ok(metadata) if metadata.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() => {
            Kind::Program
        }
        Ok(_) => Kind::Other,
    }
}
