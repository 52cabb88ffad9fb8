//! A study under way as the terminal, `live.json` and the Prometheus endpoint show it: [`LiveWatcher`] has a clock, and hands what is
//! known to whoever shows it.

pub mod file;
pub mod metrics;

use std::time::Instant;

use unladen_measure::watch::{Step, Watcher};

use crate::under_way::Live;

/// Somebody who shows what is known.
pub trait Display {
    /// A step, and what is known after it.
    fn show(&mut self, step: Step<'_>, live: &Live);
}

/// Watches a study and tells everybody who shows it.
pub struct LiveWatcher {
    live: Live,
    since: Instant,
    displays: Vec<Box<dyn Display>>,
}

impl LiveWatcher {
    /// Tells these.
    #[must_use]
    pub fn new(live: Live, displays: Vec<Box<dyn Display>>) -> Self {
        Self { live, since: Instant::now(), displays }
    }
}

impl Watcher for LiveWatcher {
    fn see(&mut self, step: Step<'_>) {
        self.live.see(step, self.since.elapsed().as_secs_f64());
        for display in &mut self.displays {
            display.show(step, &self.live);
        }
    }
}
