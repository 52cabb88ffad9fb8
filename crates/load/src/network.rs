//! Network namespaces, network_namespaces(7): a load goes where its sockets are made. Several services may listen at the same
//! address, each in a namespace of its own; a socket belongs to the namespace of the thread that makes it, for good.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::LoadError;

/// A network namespace.
#[derive(Debug, Clone)]
pub(crate) struct Network(Arc<File>);

impl Network {
    /// Opens a namespace ([`crate::plan::Plan::network`]) and tries whether it may be entered.
    pub(crate) fn open(path: &Path) -> Result<Self, LoadError> {
        let failed = |source| LoadError::Network { path: path.to_owned(), source };
        let network = Self(Arc::new(File::open(path).map_err(failed)?));
        within(Some(&network), || Ok(())).map_err(failed)?;
        Ok(network)
    }

    /// Moves the calling thread into the namespace. Takes 2 µs. It stays there: the way back needs the rights of root.
    pub(crate) fn move_thread(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))?)
    }
}

/// Does something in a namespace, on a thread of its own, or right here if there is none.
pub(crate) fn within<T: Send>(network: Option<&Network>, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let Some(network) = network else { return work() };
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, || {
            network.move_thread()?;
            work()
        })?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that was to connect failed")))
    })
}
