//! Puts the chart library of `report.html` into the executable: plotly.js as the crate `plotly` brings it, compressed.
//!
//! The library is only needed by browsers, so the crate is a build dependency: of its Rust code and of its other scripts
//! nothing gets into the executable.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let sources = plotly::Plot::offline_js_sources();
    // Script elements, one per library; the formulas' typesetter is left out.
    let library = sources
        .split("<script type=\"text/javascript\">")
        .filter_map(|script| script.split("</script>").next())
        .find(|script| script.contains("* plotly.js v"))
        .ok_or("the crate `plotly` has no plotly.js in it")?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(library.trim().as_bytes())?;
    let target = Path::new(&env::var("OUT_DIR")?).join("plotly.min.js.gz");
    fs::write(target, encoder.finish()?)?;
    Ok(())
}
