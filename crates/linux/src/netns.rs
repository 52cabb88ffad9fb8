//! Network namespaces: an empty network with a loopback interface of its own, so that several services can listen at the
//! same fixed address at the same time. See network_namespaces(7).
//!
//! A namespace is held by an open descriptor and by the processes in it. Nothing has a name on disk, so nothing is left
//! behind: it goes with its last process once unladen has closed the descriptor, or has died. Sockets belong to the
//! namespace of the thread that made them, for good; any thread may use them then.

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::thread;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use super::userns;

/// Folders of the settings that every namespace has for itself: buffers, queues, ports.
const SETTINGS: [&str; 2] = ["/proc/sys/net/core", "/proc/sys/net/ipv4"];

/// A network namespace. Dropping it lets go of it; processes inside keep it alive.
#[derive(Debug)]
pub struct Netns {
    file: File,
}

/// Two are equal if they are the same descriptor of this process.
impl PartialEq for Netns {
    fn eq(&self, other: &Self) -> bool {
        self.file.as_raw_fd() == other.file.as_raw_fd()
    }
}

impl Netns {
    /// A new namespace: only 127.0.0.1 and ::1 are in it, and its settings are those of the namespace that unladen is in. Takes
    /// some milliseconds.
    ///
    /// # Errors
    /// `EPERM` without the right to do so (see [`userns::become_able`]), `ENOSPC` beyond the system's limit.
    pub fn new() -> io::Result<Self> {
        let settings = settings();
        on_a_thread(|| {
            unshare_network()?;
            interface("lo", libc::SIOCSIFFLAGS, |request| request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short)?;
            apply(&settings);
            Self::open(Path::new("/proc/thread-self/ns/net"))
        })?
    }

    /// One that somebody else has made, by the [`Self::path`] of theirs.
    ///
    /// # Errors
    /// When the file cannot be opened. Whether it is a network namespace shows when it is used.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)? })
    }

    /// That of a process; `None`: the process has ended.
    ///
    /// # Errors
    /// When it may not be opened.
    pub fn of_process(pid: u32) -> io::Result<Option<Self>> {
        match Self::open(format!("/proc/{pid}/ns/net").as_ref()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// Whether this machine lets this user have namespaces, if need be after [`userns::become_able`]; else why not, and what to do.
    ///
    /// # Errors
    /// The reason and the remedy, in words.
    pub fn is_possible() -> Result<(), String> {
        userns::rehearse().map_err(|error| userns::refusal(&error))
    }

    /// Its descriptor. It is closed when a program is executed.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// A path under which other processes can open it while this process holds it.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    /// What the kernel calls it, as in `/proc/PID/ns/net`: `net:[4026532008]`.
    ///
    /// # Errors
    /// When `/proc` is not there.
    pub fn name(&self) -> io::Result<PathBuf> {
        fs::read_link(self.path())
    }

    /// Moves the calling thread into the namespace, for good: without the rights of root there is no way back. Safe between fork
    /// and exec.
    ///
    /// # Errors
    /// `EPERM` without the right, `EINVAL` if it is no network namespace.
    pub fn move_thread(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(self.fd(), Some(LinkNameSpaceType::Network))?)
    }

    /// Does something on a thread of its own in the namespace, and waits for it. A name may be looked up there only if the answer is
    /// in `/etc/hosts`. Costs 0.1 to 0.4 ms.
    ///
    /// # Errors
    /// When the thread cannot be started, or moved into the namespace.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_a_thread(|| {
            self.move_thread()?;
            Ok(work())
        })?
    }
}

/// Does something in a namespace, or right here if there is none.
///
/// # Errors
/// As [`Netns::enter`].
pub fn within<T: Send>(network: Option<&Netns>, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    match network {
        Some(network) => network.enter(work),
        None => Ok(work()),
    }
}

/// Gives the loopback interface of the calling thread's namespace another address, so that something can listen there. `number`
/// tells the additional addresses apart.
///
/// # Errors
/// What the kernel says.
pub fn add_address(number: usize, address: Ipv4Addr) -> io::Result<()> {
    // SAFETY: all zeros are a valid address, which is filled in below.
    let mut wanted: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    wanted.sin_family = libc::AF_INET as libc::sa_family_t;
    wanted.sin_addr.s_addr = u32::from(address).to_be();
    interface(&format!("lo:{number}"), libc::SIOCSIFADDR, |request| {
        // SAFETY: both are plain structures without padding that matters, and `sockaddr_in` is no larger than `sockaddr`.
        request.ifr_ifru.ifru_addr = unsafe { std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(wanted) };
    })
}

/// Takes the calling thread out of its network namespace into a new one. Safe between fork and exec.
pub(super) fn unshare_network() -> rustix::io::Result<()> {
    // SAFETY: the flag concerns the network alone; descriptors and memory stay shared.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }
}

/// Runs to the end on a thread of its own; a panic is passed on.
fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("network".to_owned()).spawn_scoped(scope, work)?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// One request of netdevice(7) about an interface of the calling thread's namespace.
fn interface(name: &str, request: libc::c_ulong, fill: impl FnOnce(&mut libc::ifreq)) -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: all zeros are a valid request, whose name then ends with a zero byte.
    let mut about: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in about.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    fill(&mut about);
    // SAFETY: the pointer is to a structure of the kind that the request takes, and outlives the call.
    match unsafe { libc::ioctl(socket.as_raw_fd(), request as _, &raw const about) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The settings of the calling thread's namespace: path and value.
fn settings() -> Vec<(PathBuf, String)> {
    let files = SETTINGS.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let files = files.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file())).map(|entry| entry.path());
    files.filter_map(|path| fs::read_to_string(&path).ok().map(|value| (path, value))).collect()
}

/// Sets what differs. What a namespace has not for itself is not there, or cannot be set: then it is the same anyway.
fn apply(settings: &[(PathBuf, String)]) {
    for (path, value) in settings {
        if fs::read_to_string(path).is_ok_and(|own| own != *value) {
            let _ = fs::write(path, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use super::*;

    /// A namespace, or the reason that there is none, printed.
    fn network() -> Option<Netns> {
        Netns::new().inspect_err(|error| eprintln!("\nSKIPPED: no network namespaces here: {error}\n")).ok()
    }

    #[test]
    fn the_same_port_is_free_in_every_namespace() {
        let (Some(one), Some(other)) = (network(), network()) else { return };
        let bind = |network: &Netns| network.enter(|| TcpListener::bind("127.0.0.1:8080")).expect("it can be entered");
        let first = bind(&one).expect("nobody listens in a new namespace");
        let _second = bind(&other).expect("another namespace is another network");
        assert!(bind(&one).is_err(), "within one a port is taken once");

        let to = first.local_addr().expect("an address");
        let stream = one.enter(|| TcpStream::connect(to)).expect("it can be entered").expect("it listens there");
        assert_eq!(first.accept().expect("the connection").1, stream.local_addr().expect("an address"));
        assert_ne!(one.name().expect("a name"), other.name().expect("a name"));
        let here = fs::read_link("/proc/thread-self/ns/net").expect("a name");
        assert_ne!(one.name().expect("a name"), here, "the calling thread has stayed where it was");
    }

    #[test]
    fn both_kinds_of_loopback_are_up_and_further_addresses_can_be_added() {
        let Some(network) = network() else { return };
        let bind = |address: &str| {
            let address: SocketAddr = address.parse().expect("an address");
            network.enter(|| TcpListener::bind(address)).expect("it can be entered")
        };
        bind("127.0.0.1:0").expect("loopback");
        if Path::new("/proc/net/if_inet6").exists() {
            bind("[::1]:0").expect("loopback");
        }
        bind("10.1.2.3:0").expect_err("no such address");
        let add = |number, address: &str| {
            let address = address.parse().expect("an address");
            network.enter(|| add_address(number, address)).expect("it can be entered").expect("it can be added");
        };
        add(0, "10.1.2.3");
        add(1, "192.168.7.8");
        bind("10.1.2.3:0").expect("added");
        bind("192.168.7.8:0").expect("added");
    }

    #[test]
    fn another_process_can_open_it_by_its_path() {
        let Some(network) = network() else { return };
        let listener = network.enter(|| TcpListener::bind("127.0.0.1:0")).expect("entered").expect("a free port");
        let to = listener.local_addr().expect("an address");
        let again = Netns::open(&network.path()).expect("it is held");
        again.enter(|| TcpStream::connect(to)).expect("it can be entered").expect("it is the same network");
        assert_eq!(again.name().expect("a name"), network.name().expect("a name"));
        let no_network = Netns::open(Path::new("/proc/self/ns/mnt")).expect("it is there");
        no_network.enter(|| ()).expect_err("another kind of namespace");
    }

    #[test]
    fn settings_are_those_of_the_outside() {
        let Some(outside) = network() else { return };
        let path = Path::new("/proc/sys/net/core/somaxconn");
        let inside = outside.enter(|| {
            fs::write(path, "1234").expect("it is ours");
            let inside = Netns::new().expect("as before");
            inside.enter(|| fs::read_to_string(path)).expect("it can be entered").expect("it is there")
        });
        assert_eq!(inside.expect("it can be entered").trim(), "1234");
    }
}
