//! The processes of a study: started each in a control group and perhaps a network of its own, watched over a window, profiled,
//! asked for their numbers, and stopped without a trace.
//!
//! Knows neither the study nor the order of its runs: whoever measures hands over plain values.

pub mod linux;
pub mod probe;
pub mod profile;
pub mod relay;
pub mod scrape;
pub mod subject;
