//! Idle CPUs that stay awake.
//!
//! A CPU with nothing to do sleeps, and whoever wakes it finds caches that others have used meanwhile: in a virtual machine, where sleeping means
//! that the host gets the core, a request that ends the sleep cost a small service 10 to 20 % more CPU time than one that did not. How many do
//! depends on everything else that wakes the core, such as timers of connections, so identical runs differ.
//!
//! The kernel picks idle states by the latency that somebody tolerates
//! (<https://docs.kernel.org/power/pm_qos_interface.html>). A request ends with the process that made it, however that ends.

use std::fs::{self, File, OpenOptions};
use std::io::Write;

const REQUESTS: &str = "/dev/cpu_dma_latency";
const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";
/// Exit latency of what real processors do first, halt (C1), µs. To poll instead would take power, and execution units from a second
/// hyper-thread.
const HALT_US: i32 = 2;

/// The request that no CPU sleeps, for as long as this is there.
#[derive(Debug)]
pub struct Awake {
    _request: File,
}

impl Awake {
    /// Asks for it. `None` where the kernel does not choose what an idle CPU does, or this process may not ask (root may).
    #[must_use]
    pub fn keep() -> Option<Self> {
        let latency_us = tolerated_us(&driver()?);
        let mut request = OpenOptions::new().write(true).open(REQUESTS).ok()?;
        request.write_all(&latency_us.to_ne_bytes()).ok()?;
        Some(Self { _request: request })
    }
}

/// What the kernel calls the driver of its idle states; `None` where it has none, as in many virtual machines: an idle CPU always goes to the host.
#[must_use]
pub fn driver() -> Option<String> {
    let name = fs::read_to_string(DRIVER).ok()?.trim().to_owned();
    (!name.is_empty() && name != "none").then_some(name)
}

/// The longest exit latency under which a CPU is awake, µs.
fn tolerated_us(driver: &str) -> i32 {
    // The only state but polling hands the CPU to the host.
    if driver == "haltpoll" { 0 } else { HALT_US }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_guest_polls_and_a_processor_halts() {
        assert_eq!([tolerated_us("haltpoll"), tolerated_us("intel_idle")], [0, 2]);
    }

    /// How often any CPU has entered an idle state that takes longer to leave than is tolerated.
    fn sleeps(tolerated_us: i32) -> u64 {
        let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        let states = |cpu| (0..10).map(move |state| format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}"));
        let deep = (0..2).flat_map(states).filter(|state| {
            number(&format!("{state}/latency")).is_some_and(|latency| latency > u64::from(tolerated_us.unsigned_abs()))
        });
        deep.filter_map(|state| number(&format!("{state}/usage"))).sum()
    }

    #[test]
    fn nothing_sleeps_while_it_is_kept() {
        let (Some(tolerated), Some(awake)) = (driver().as_deref().map(tolerated_us), Awake::keep()) else {
            return eprintln!("the kernel does not choose idle states here, or only root may ask");
        };
        // Who sleeps already wakes first.
        thread::sleep(Duration::from_millis(20));
        let before = sleeps(tolerated);
        thread::sleep(Duration::from_millis(200));
        assert_eq!(sleeps(tolerated), before);
        drop(awake);
    }
}
