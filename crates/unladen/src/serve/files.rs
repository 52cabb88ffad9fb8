//! Files of run folders, and nothing else. The kernel resolves the path below the folder (`openat2` with `RESOLVE_BENEATH`): no
//! `..`, no symbolic link and no race leads out of it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rustix::fs::{Mode, OFlags, ResolveFlags};

/// What is read and sent at once, bytes.
const PIECE: usize = 256 * 1024;
/// A page out of a run folder may run its scripts, but as a stranger to this server: it cannot read what else is served.
const SANDBOX: &str = "sandbox allow-scripts allow-modals allow-downloads allow-popups allow-popups-to-escape-sandbox \
                       allow-top-navigation-by-user-activation";

/// Opens what a path below `folder` names, for reading.
///
/// # Errors
/// When there is no such file, or the path leads out of the folder.
pub fn open_below(folder: &Path, path: &Path) -> io::Result<File> {
    let inside = path.components().all(|it| matches!(it, Component::Normal(_) | Component::CurDir));
    if !inside {
        return Err(io::ErrorKind::NotFound.into());
    }
    let base = File::open(folder)?;
    // Without NONBLOCK a FIFO in the folder would keep the server waiting for ever.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    match rustix::fs::openat2(&base, path, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS) {
        Ok(file) => Ok(file.into()),
        // Kernels before 5.6, and some sandboxes.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {
            let whole = folder.join(path).canonicalize()?;
            if !whole.starts_with(folder.canonicalize()?) {
                return Err(io::ErrorKind::NotFound.into());
            }
            Ok(rustix::fs::open(&whole, flags | OFlags::NOFOLLOW, Mode::empty())?.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// What is in a folder below a run folder: names, and how many bytes; `None` for folders. Sorted, hidden files left out.
///
/// # Errors
/// When it cannot be read, or leads out of the folder.
pub fn list(folder: &Path, path: &Path) -> io::Result<Vec<(String, Option<u64>)>> {
    let opened = if path.as_os_str().is_empty() { File::open(folder)? } else { open_below(folder, path)? };
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(&opened)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        if name.starts_with('.') {
            continue;
        }
        let Ok(file) = open_below(folder, &path.join(name)).and_then(|file| file.metadata()) else { continue };
        names.push((name.to_owned(), file.is_file().then_some(file.len())));
    }
    names.sort_by(|a, b| a.1.is_some().cmp(&b.1.is_some()).then_with(|| a.0.cmp(&b.0)));
    Ok(names)
}

/// A file as an answer, sent piece by piece. `None`: it is no regular file.
#[must_use]
pub fn answer(path: &Path, file: File) -> Option<Response> {
    let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type(path)));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // What it has now: a journal may grow while it is sent.
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(metadata.len()));
    let pieces = futures_util::stream::try_unfold((file, metadata.len()), |(mut file, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let read = move || -> io::Result<(File, Vec<u8>)> {
            let mut piece = vec![0; PIECE.min(usize::try_from(left).unwrap_or(PIECE))];
            let length = file.read(&mut piece)?;
            piece.truncate(length);
            Ok((file, piece))
        };
        let (file, piece) = tokio::task::spawn_blocking(read).await.map_err(io::Error::other)??;
        if piece.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let left = left - piece.len() as u64;
        Ok::<_, io::Error>(Some((Bytes::from(piece), (file, left))))
    });
    Some((StatusCode::OK, headers, Body::from_stream(pieces)).into_response())
}

/// By the name. What is not known is shown as text if it may be a log, and saved otherwise.
fn media_type(path: &Path) -> &'static str {
    match path.extension().and_then(|it| it.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        Some("parquet" | "gz" | "zst") => "application/octet-stream",
        _ => "text/plain; charset=utf-8",
    }
}

/// The run folder that a path lies in, and the rest of the path.
#[must_use]
pub fn split<'a>(path: &'a str, folders: impl Iterator<Item = &'a str>) -> Option<(&'a str, PathBuf)> {
    // The longest: a run folder may hold others.
    let of = |folder: &'a str| {
        let rest = path.strip_prefix(folder).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
        Some((folder, PathBuf::from(rest.trim_start_matches('/'))))
    };
    folders.filter_map(of).max_by_key(|(folder, _)| folder.len())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_leads_out_of_the_folder() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let folder = root.path().join("run");
        fs::create_dir_all(folder.join("logs")).expect("a temporary folder");
        fs::write(root.path().join("secret"), "secret").expect("a temporary folder");
        fs::write(folder.join("logs/app.log"), "log").expect("a temporary folder");
        symlink("../secret", folder.join("out")).expect("a link");
        symlink(root.path().join("secret"), folder.join("absolute")).expect("a link");
        symlink("..", folder.join("up")).expect("a link");
        symlink("logs/app.log", folder.join("inside")).expect("a link");
        symlink("/proc/self/cwd", folder.join("magic")).expect("a link");
        let read = |path: &str| {
            open_below(&folder, Path::new(path)).and_then(|mut file| {
                let mut text = String::new();
                file.read_to_string(&mut text).map(|_| text)
            })
        };
        assert_eq!(read("logs/app.log").expect("a file"), "log");
        assert_eq!(read("inside").expect("a link within the folder"), "log");
        for path in
            ["../secret", "logs/../../secret", "out", "absolute", "up/secret", "/etc/passwd", "magic/Cargo.toml"]
        {
            assert!(read(path).is_err(), "{path} leads out");
        }
        let listed = list(&folder, Path::new("")).expect("a folder");
        assert_eq!(listed, [("logs".to_owned(), None), ("inside".to_owned(), Some(3))]);
    }

    #[test]
    fn paths_belong_to_the_innermost_run_folder() {
        let folders = ["a", "a/b", "ab"];
        let of = |path| split(path, folders.into_iter()).map(|(folder, rest)| (folder, rest.display().to_string()));
        assert_eq!(of("a/report.html"), Some(("a", "report.html".to_owned())));
        assert_eq!(of("a/b/report.html"), Some(("a/b", "report.html".to_owned())));
        assert_eq!(of("abc/report.html"), None);
    }
}
