//! Differential flame graphs: the variant's stacks, red where it spends more than the baseline and blue where it spends less.

use std::fs;
use std::io;
use std::path::Path;

use inferno::differential;
use inferno::flamegraph;
use unladen_judge::findings::ProfileFindings;

/// Draws one from the folded stacks in the run folder at `dir`.
pub(super) fn draw(dir: &Path, profile: &ProfileFindings) -> io::Result<String> {
    let (before, after) = (fs::read(dir.join(&profile.baseline_file))?, fs::read(dir.join(&profile.file))?);
    let mut lines = Vec::new();
    // Both sides are scaled to the same number of samples: colours tell what takes a larger or smaller part.
    let options = differential::Options { normalize: true, ..Default::default() };
    differential::from_readers(options, before.as_slice(), after.as_slice(), &mut lines)?;
    let mut options = flamegraph::Options::default();
    options.title = format!("{}: {} vs. the baseline", profile.service, profile.variant);
    options.subtitle = Some("width: share of the CPU time; red: more than the baseline, blue: less".to_owned());
    options.count_name = "samples".to_owned();
    let text = String::from_utf8_lossy(&lines).into_owned();
    let mut drawing = Vec::new();
    flamegraph::from_lines(&mut options, text.lines(), &mut drawing).map_err(io::Error::other)?;
    String::from_utf8(drawing).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_names_what_is_new() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        fs::write(dir.path().join("a"), "main;work 10\n").expect("a file");
        fs::write(dir.path().join("b"), "main;work 10\nmain;export 5\n").expect("a file");
        let profile = ProfileFindings {
            variant: "otel".to_owned(),
            service: "app".to_owned(),
            profiler: "perf".to_owned(),
            baseline_samples: 10,
            samples: 15,
            frames: Vec::new(),
            baseline_file: "a".to_owned(),
            file: "b".to_owned(),
            flame_graph: "c.svg".to_owned(),
        };
        let drawing = draw(dir.path(), &profile).expect("a drawing");
        assert!(drawing.contains("<svg") && drawing.contains("export") && drawing.contains("otel"), "{drawing}");
        assert!(draw(&dir.path().join("nowhere"), &profile).is_err());
    }
}
