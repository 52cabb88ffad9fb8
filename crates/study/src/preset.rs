//! What a preset says, and what becomes of it in a service's command and environment.
//!
//! Which presets there are is said by [`super::agents`]; nothing here knows another one.

use indexmap::IndexMap;
use serde::Deserialize;

use super::spec::{Spans, TraceHeader};
use super::variables::{Reference, names};

/// An agent and how it is put to a service. In its texts `${agent}` is the path that the user gives, `${service}` the name of the
/// service, and every other `${…}` what it is in a study.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// What it is called in studies: that of its file.
    pub name: String,
    /// What it is.
    pub title: String,
    /// What its services are written in.
    pub language: Language,
    /// What the user must give.
    pub needs: Needs,
    /// File within the folder that the user gives.
    #[serde(default)]
    pub file: Option<String>,
    /// What it is called where it is published: coordinates, packages, modules.
    pub from: Vec<String>,
    /// How it is got: a command line, or words.
    pub install: String,
    /// Oldest version of the runtime that it works in.
    #[serde(default)]
    pub least: Option<u32>,
    /// Words that are put into the command, if it takes any: see [`Language`].
    #[serde(default)]
    pub command: Vec<String>,
    /// Where it has to be started by code: that code, in the service's language, without apostrophes and backslashes. The words of the
    /// command follow from it.
    #[serde(default)]
    pub code: Option<String>,
    /// Environment, as its maker ships it but for what is no tracing and what would leave the machine.
    #[serde(default)]
    pub env: IndexMap<String, String>,
    /// Environment besides, with which the spans of every request come.
    #[serde(default)]
    pub all: IndexMap<String, String>,
    /// The trace header that it reads.
    #[serde(default)]
    pub trace: TraceHeader,
    /// Versions that were run with it here, and in what; `None`: none was.
    #[serde(default)]
    pub tested: Option<String>,
    /// What a user should know.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// What a service is written in: where an agent's words go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// Behind the program, which is `java`.
    Java,
    /// Behind the program, which is `node`.
    Node,
    /// In front of the program, whatever it is; the first is a program that is beside it.
    Python,
    /// There are none: the program is built anew.
    Go,
}

/// What a user must give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Needs {
    /// Path of a jar.
    Jar,
    /// Path of the unpacked agent.
    Folder,
    /// Nothing: packages are found where the service's own are.
    Package,
    /// Path of the program, built with the agent. It takes the place of the command's.
    Build,
}

impl Language {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Java => "Java",
            Self::Node => "Node.js",
            Self::Python => "Python",
            Self::Go => "Go",
        }
    }

    /// The program that a command must start with.
    #[must_use]
    pub fn program(self) -> Option<&'static str> {
        match self {
            Self::Java => Some("java"),
            Self::Node => Some("node"),
            Self::Python | Self::Go => None,
        }
    }
}

impl Needs {
    /// What it is, in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Jar => "the path of the agent's jar",
            Self::Folder => "the path of the agent's folder",
            Self::Package => "packages of the service's environment",
            Self::Build => "the path of the program, built with it",
        }
    }
}

/// A command that an agent's words cannot be put into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotItsProgram {
    /// What it should start with.
    pub(super) wanted: &'static str,
    /// What it starts with.
    pub(super) found: String,
}

impl Preset {
    /// With the words that run its code, if it has any, before the service's own.
    pub(super) fn started_by_code(mut self) -> Self {
        let Some(code) = &self.code else { return self };
        self.command = match self.language {
            Language::Node => {
                // One line: a URL.
                let code = code.trim_end();
                vec![
                    "--import".into(),
                    format!("data:text/javascript,import{{createRequire}}from\"node:module\";{code}"),
                ]
            }
            Language::Python => {
                let maker = self.name.trim_end_matches("-python");
                let code = code.replace('\n', "\\n");
                // Python runs what it finds as `sitecustomize`: here, in the run folder. The command then runs in place of this program.
                let program = format!(
                    "import os,sys;d,c=sys.argv[1],sys.argv[2:];d+='/{maker}';os.makedirs(d,exist_ok=True);\
                     open(d+'/sitecustomize.py','w').write('{code}');\
                     os.environ['PYTHONPATH']=os.pathsep.join([d]+os.environ.get('PYTHONPATH','').split(os.pathsep)).rstrip(os.pathsep);\
                     os.execvp(c[0],c)"
                );
                ["python", "-c", &program, "${run.dir}"].map(str::to_owned).into()
            }
            Language::Java | Language::Go => Vec::new(),
        };
        self
    }

    /// The protocol of the sink that it speaks, as in `${sink.NAME}`.
    #[must_use]
    pub fn sink(&self) -> Option<String> {
        let texts = self.command.iter().chain(self.env.values());
        // `${agent}` and `${service}` are no references of a study.
        let references = texts.filter_map(|text| names(&self.filled(text, Some("x"), "x")).ok()).flatten();
        references.into_iter().find_map(|reference| match reference {
            Reference::Sink { protocol, .. } => Some(protocol),
            _ => None,
        })
    }

    /// Environment of a service under it, in the words of a study.
    pub fn environment<'a>(
        &'a self,
        spans: Spans,
        path: Option<&'a str>,
        service: &'a str,
    ) -> impl Iterator<Item = (String, String)> + 'a {
        let all = (spans == Spans::All).then_some(&self.all).into_iter().flatten();
        self.env.iter().chain(all).map(move |(name, value)| (name.clone(), self.filled(value, path, service)))
    }

    /// The words that are put into the command of a service, in the words of a study.
    pub fn words(&self, path: Option<&str>, service: &str) -> Vec<String> {
        self.command.iter().map(|word| self.filled(word, path, service)).collect()
    }

    /// A command with the agent's `words` in it; `path` is what the user gave.
    pub(super) fn put(
        &self,
        words: Vec<String>,
        path: Option<&str>,
        command: Vec<String>,
    ) -> Result<Vec<String>, NotItsProgram> {
        let mut command = command.into_iter();
        let Some(program) = command.next() else { return Ok(Vec::new()) };
        if let Some(wanted) = self.language.program()
            && !is_called(&program, wanted)
        {
            return Err(NotItsProgram { wanted, found: program });
        }
        let whole: Vec<String> = match self.language {
            Language::Java | Language::Node => [program].into_iter().chain(words).chain(command).collect(),
            Language::Python => {
                let mut words = words;
                // A `/` may also stand within a `${…}`.
                if let (Some(first), Some((folder, file))) = (words.first_mut(), program.rsplit_once('/'))
                    && !file.contains('}')
                {
                    *first = format!("{folder}/{first}");
                }
                words.into_iter().chain([program]).chain(command).collect()
            }
            Language::Go => [path.map_or(program, str::to_owned)].into_iter().chain(command).collect(),
        };
        Ok(whole)
    }

    fn filled(&self, text: &str, path: Option<&str>, service: &str) -> String {
        text.replace("${agent}", path.unwrap_or_default()).replace("${service}", service)
    }
}

/// Whether a program is called so, as far as that can be known before it is run.
fn is_called(program: &str, name: &str) -> bool {
    let file = program.rsplit('/').next().unwrap_or_default();
    file == name || file.contains("${") || file.ends_with('}')
}

#[cfg(test)]
mod tests {
    use super::super::agents::find;
    use super::*;

    fn put(name: &str, path: Option<&str>, command: &[&str]) -> Result<String, NotItsProgram> {
        let preset = find(name).expect("a preset");
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        preset.put(preset.words(path, "app"), path, command).map(|words| words.join(" "))
    }

    #[test]
    fn words_go_where_the_language_wants_them() {
        let jar = Some("/a/otel.jar");
        assert_eq!(
            put("otel-java", jar, &["/jdk/bin/java", "-jar", "a.jar"]).as_deref(),
            Ok("/jdk/bin/java -javaagent:/a/otel.jar -jar a.jar")
        );
        assert_eq!(
            put("otel-node", None, &["node", "--inspect", "a.js"]).as_deref(),
            Ok("node --require @opentelemetry/auto-instrumentations-node/register --inspect a.js")
        );
        assert_eq!(
            put("otel-python", None, &["gunicorn", "a:app"]).as_deref(),
            Ok("opentelemetry-instrument gunicorn a:app")
        );
        assert_eq!(
            put("elastic-python", None, &["venv/bin/python", "a.py"]).as_deref(),
            Ok("venv/bin/elasticapm-run venv/bin/python a.py")
        );
        assert_eq!(put("otel-go", Some("/b/shop-otel"), &["./shop", "-v"]).as_deref(), Ok("/b/shop-otel -v"));
        assert_eq!(put("otel-go", None, &["./shop", "-v"]).as_deref(), Ok("./shop -v"));
        // What is known only when it is run is taken at its word.
        assert!(put("otel-java", jar, &["${env.JAVA:-/jdk/bin/java}"]).is_ok());
        assert!(put("otel-java", jar, &["${env.JAVA}"]).is_ok());
        assert_eq!(
            put("otel-python", None, &["${env.PYTHON:-/venv/bin/python}"]).as_deref(),
            Ok("opentelemetry-instrument ${env.PYTHON:-/venv/bin/python}")
        );
        let refused = put("otel-java", jar, &["sh", "-c", "java -jar a.jar"]);
        assert_eq!(refused, Err(NotItsProgram { wanted: "java", found: "sh".to_owned() }));
    }
}
