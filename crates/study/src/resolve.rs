//! A plan's texts with everything filled in, when a run is about to start: ports, folders, the sink's address.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use unladen_decode::span::Protocol;

use super::agents::Under;
use super::key::KeyPath;
use super::plan::{Image, Plan, Process};
use super::spec::{Load, Ready, Scrape};
use super::stack::Pod;
use super::url::url_problem;
use super::variables::{PortName, Reference, VariableError, Variables, names, resolve};

/// A text that cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// Something in it isn't known.
    #[error("{path}: {source}")]
    Variable {
        /// Where it stands: `app: env.TOKEN`.
        path: String,
        /// What isn't known.
        source: VariableError,
    },
    /// The URL that comes out is none, or leaves this machine.
    #[error("load.url: {message}")]
    Url {
        /// What is wrong with it.
        message: String,
    },
}

impl Plan {
    /// What is known before anything runs: folder and variables of the study. Ports, sinks, environment, the folder of
    /// the run and the path of unladen are for the caller to add.
    #[must_use]
    pub fn variables(&self) -> Variables {
        let hosts = self.study.stacked().map(str::to_owned).collect();
        let values = self.study.variables.clone();
        Variables { study_dir: self.dir.clone(), values, hosts, ..Variables::default() }
    }

    /// The ports that the plan speaks of, each once: one free port is needed for each, the same through the study.
    #[must_use]
    pub fn ports(&self) -> Vec<PortName> {
        ports(self.references().into_iter())
    }

    /// Ports that services know which live through the study: they are the same for all runs.
    #[must_use]
    pub fn ports_of_shared(&self) -> Vec<PortName> {
        let texts = self.shared().into_iter().flat_map(Process::texts);
        ports(texts.filter_map(|text| names(&text).ok()).flatten())
    }

    /// The sink's protocols that the plan speaks of, each once: `otlp_grpc`, ….
    #[must_use]
    pub fn sinks(&self) -> Vec<String> {
        let sinks = self.references().into_iter().filter_map(|reference| match reference {
            Reference::Sink { protocol, .. } => Some(protocol),
            _ => None,
        });
        sinks.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The protocols that the sink offers: all, as files of Compose or of a cluster may name any of them, but New Relic's only if the plan
    /// speaks of it: for that the sink makes certificates, which it cannot do without TLS.
    #[must_use]
    pub fn offered_sinks(&self) -> Vec<Protocol> {
        let is_spoken_of = self.sinks().iter().any(|name| name == Protocol::Newrelic.name());
        Protocol::ALL.into_iter().filter(|protocol| is_spoken_of || *protocol != Protocol::Newrelic).collect()
    }

    /// Every `${…}` of every process and of the load.
    fn references(&self) -> Vec<Reference> {
        let processes = self.variants.iter().flat_map(|variant| &variant.processes);
        let mut texts: Vec<String> = processes.flat_map(Process::texts).collect();
        for variant in &self.variants {
            let of_load = variant.load.texts();
            texts.extend(of_load.into_iter().map(|(_, text)| text.clone()));
        }
        texts.iter().filter_map(|text| names(text).ok()).flatten().collect()
    }
}

/// The ports among references, each once.
fn ports(references: impl Iterator<Item = Reference>) -> Vec<PortName> {
    let ports = references.filter_map(|reference| match reference {
        Reference::Port { name, replica } => Some(PortName { name, replica: replica.unwrap_or(0) }),
        _ => None,
    });
    ports.collect::<BTreeSet<_>>().into_iter().collect()
}

impl Process {
    /// Whether it is told where the sink listens, by whichever protocol.
    #[must_use]
    pub fn knows_the_sink(&self) -> bool {
        self.texts().iter().filter_map(|text| names(text).ok()).flatten().any(|it| matches!(it, Reference::Sink { .. }))
    }

    /// The process with every `${…}` filled in and paths made absolute. To be done once: what is filled in may hold `$`.
    ///
    /// # Errors
    /// When something isn't known.
    pub fn resolve(&self, variables: &Variables) -> Result<Self, ResolveError> {
        let text = |what: &str, text: &str| {
            resolve(text, variables)
                .map_err(|source| ResolveError::Variable { path: format!("{}: {what}", self.service), source })
        };
        let list =
            |what: &str, words: &[String]| words.iter().map(|word| text(what, word)).collect::<Result<Vec<_>, _>>();
        let optional = |what: &str, value: &Option<String>| value.as_deref().map(|value| text(what, value)).transpose();

        let cwd = variables.study_dir.join(text("cwd", &self.cwd.to_string_lossy())?);
        let mut command = list("command", &self.command)?;
        let mut build = self.build.as_deref().map(|words| list("build", words)).transpose()?;
        // A program with a `/` in it is looked for from `cwd`. What a system makes of a relative one differs.
        for program in [command.first_mut(), build.as_mut().and_then(|words| words.first_mut())].into_iter().flatten() {
            if program.contains('/') && self.image.is_none() {
                *program = cwd.join(&*program).to_string_lossy().into_owned();
            }
        }
        let image = self.image.as_ref().map(|image| {
            let volumes = list("volumes", &image.volumes)?;
            Ok::<_, ResolveError>(Image {
                name: text("image", &image.name)?,
                // `./data:/path` is the study's own.
                volumes: volumes
                    .into_iter()
                    .map(|volume| match volume.strip_prefix("./") {
                        Some(rest) => variables.study_dir.join(rest).to_string_lossy().into_owned(),
                        None => volume,
                    })
                    .collect(),
                user: optional("user", &image.user)?,
            })
        });
        let pod = self.pod.as_ref().map(|pod| pod.filled(text));
        let env = self.env.iter().map(|(name, value)| Ok((name.clone(), text(&format!("env.{name}"), value)?)));
        Ok(Self {
            command,
            image: image.transpose()?,
            pod: pod.transpose()?,
            env: env.collect::<Result<_, ResolveError>>()?,
            agent: match &self.agent {
                Some(Under { preset, path }) => Some(Under { preset, path: optional("agent", path)? }),
                None => None,
            },
            build,
            ready: Ready {
                http: optional("ready.http", &self.ready.http)?,
                tcp: optional("ready.tcp", &self.ready.tcp)?,
                log: optional("ready.log", &self.ready.log)?,
                healthy: self.ready.healthy,
                timeout: self.ready.timeout,
            },
            pprof: optional("pprof", &self.pprof)?,
            scrape: match &self.scrape {
                Some(scrape) => Some(Scrape { url: text("scrape.url", &scrape.url)?, ..scrape.clone() }),
                None => None,
            },
            cwd,
            ..self.clone()
        })
    }

    /// Every text that may hold `${…}`.
    fn texts(&self) -> Vec<String> {
        let words = self.command.iter().chain(self.build.iter().flatten());
        let ready = self.ready.http.iter().chain(&self.ready.tcp).chain(&self.ready.log);
        let cwd = self.cwd.to_string_lossy().into_owned();
        let scrape = self.scrape.iter().map(|scrape| &scrape.url);
        let image = self.image.iter().flat_map(|image| image.volumes.iter().chain([&image.name]).chain(&image.user));
        words
            .chain(image)
            .chain(self.env.values())
            .chain(ready)
            .chain(scrape)
            .chain(&self.pprof)
            .cloned()
            .chain([cwd])
            .chain(self.pod.iter().flat_map(Pod::texts))
            .collect()
    }
}

impl Load {
    /// The load with every `${…}` filled in.
    ///
    /// # Errors
    /// When something isn't known, or the URL that comes out is none or leaves this machine without leave.
    pub fn resolve(&self, variables: &Variables) -> Result<Self, ResolveError> {
        let mut load = self.clone();
        for (path, text) in load.texts_mut() {
            *text =
                resolve(text, variables).map_err(|source| ResolveError::Variable { path: path.to_string(), source })?;
        }
        match url_problem(&load.url, |host| load.allow_remote || variables.hosts.iter().any(|it| it == host)) {
            Some(kind) if load.driver.is_none() => Err(ResolveError::Url { message: kind.to_string() }),
            _ => Ok(load),
        }
    }

    /// Every text that may hold `${…}`, with its place in the study.
    pub(super) fn texts(&self) -> Vec<(KeyPath, &String)> {
        let root = KeyPath::of(&["load"]);
        let headers = |path: KeyPath, headers: &'_ IndexMap<String, String>| -> Vec<KeyPath> {
            headers.keys().map(|name| path.key(name)).collect()
        };
        let mut texts = vec![(root.key("url"), &self.url)];
        texts.extend(headers(root.key("headers"), &self.headers).into_iter().zip(self.headers.values()));
        texts.extend(self.body.iter().map(|body| (root.key("body"), body)));
        for (at, request) in self.script.iter().flat_map(|script| &script.requests).enumerate() {
            let root = root.key("script").key("requests").item(at);
            texts.extend(request.path.iter().map(|path| (root.key("path"), path)));
            texts.extend(headers(root.key("headers"), &request.headers).into_iter().zip(request.headers.values()));
            texts.extend(request.body.iter().map(|body| (root.key("body"), body)));
        }
        texts
    }

    /// The same, to be changed; in the same order.
    pub(super) fn texts_mut(&mut self) -> Vec<(KeyPath, &mut String)> {
        let paths: Vec<KeyPath> = self.texts().into_iter().map(|(path, _)| path).collect();
        let mut texts = vec![&mut self.url];
        texts.extend(self.headers.values_mut());
        texts.extend(&mut self.body);
        for request in self.script.iter_mut().flat_map(|script| &mut script.requests) {
            texts.extend(&mut request.path);
            texts.extend(request.headers.values_mut());
            texts.extend(&mut request.body);
        }
        paths.into_iter().zip(texts).collect()
    }
}
