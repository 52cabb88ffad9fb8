//! Configurations of the instrument's parts in a run: of the load generator, and of the sink.

use std::path::Path;

use unladen_load::plan::{self, Plan};
use unladen_study::plan::PlannedVariant;
use unladen_study::spec::{Attributes, Faults, Sync};

use super::error::RunError;
use super::load_plan;
use super::setup::{Site, TraceIds};
use super::stack::Hosts;

impl Site<'_> {
    /// Plan of the load generator, without start and lengths.
    pub(super) fn load_plan(
        &self,
        variant: &PlannedVariant,
        folder: &Path,
        ids: TraceIds,
        hosts: &Hosts,
    ) -> Result<Plan, RunError> {
        let load = variant.load.resolve(&self.variables(Some(folder)))?;
        let trace = load_plan::header(load.trace);
        Ok(Plan {
            trace: trace.map(|header| plan::Trace { header, tag: ids.tag, key: ids.key, sampled: variant.sampled.0 }),
            out: Some(folder.to_owned()),
            cores: self.partition.instrument.iter().take(1).map(|core| core as u32).collect(),
            network: self.network().map(|network| network.path()),
            replicas: hosts.replicas(&load.url),
            ..load_plan::plan(&load, self.seed(), &self.plan().dir)?
        })
    }

    /// Configuration of the sink.
    pub(super) fn sink_config(
        &self,
        variant: &PlannedVariant,
        folder: &Path,
        ids: TraceIds,
    ) -> unladen_sink::config::Config {
        use unladen_sink::config::{Attributes as Stored, Config, Requests, Sync as Durable};
        Config {
            listen: self.sinks().clone(),
            out: folder.to_owned(),
            requests: variant.is_traced().then_some(Requests { tag: ids.tag, key: ids.key }),
            attributes: match self.plan.study.sink.attributes {
                Attributes::None => Stored::None,
                Attributes::Few => Stored::Few,
                Attributes::All => Stored::All,
            },
            sync: match self.plan.study.sink.sync {
                Sync::Always => Durable::Always,
                Sync::Interval => Durable::Interval,
                Sync::End => Durable::End,
            },
            faults: variant.faults.as_ref().map(Faults::of_sink),
            ..Config::default()
        }
    }
}
