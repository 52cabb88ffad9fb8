//! Go's CPU profiles (`/debug/pprof/profile`): gzipped `profile.proto`, of which the stacks and the CPU time are read.

use std::collections::HashMap;
use std::io::{self, Read};

use prost::Message;

// Field numbers of google/pprof's profile.proto.
#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "12")]
    period: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
}

/// Folded stacks, and the period between two samples in µs.
pub(super) fn folded(answer: &[u8]) -> io::Result<(String, f64)> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(answer).take(256 << 20).read_to_end(&mut plain)?;
    let profile = Profile::decode(plain.as_slice()).map_err(io::Error::other)?;
    let functions: HashMap<u64, i64> = profile.function.iter().map(|it| (it.id, it.name)).collect();
    let name = |function: u64| {
        let index = usize::try_from(*functions.get(&function)?).ok()?;
        profile.string_table.get(index).map(|name| name.replace([';', ' '], "_"))
    };
    let locations: HashMap<u64, &Location> = profile.location.iter().map(|it| (it.id, it)).collect();
    let mut stacks: HashMap<String, i64> = HashMap::new();
    for sample in &profile.sample {
        // The leaf comes first, and within a location the innermost of the inlined functions.
        let frames = sample.location_id.iter().filter_map(|id| locations.get(id)).flat_map(|location| &location.line);
        let mut frames: Vec<String> =
            frames.map(|line| name(line.function_id).unwrap_or_else(|| "[unknown]".to_owned())).collect();
        frames.reverse();
        *stacks.entry(frames.join(";")).or_default() += sample.value.first().copied().unwrap_or(0);
    }
    let mut lines: Vec<String> = stacks.into_iter().map(|(stack, count)| format!("{stack} {count}\n")).collect();
    lines.sort();
    Ok((lines.concat(), profile.period as f64 / 1e3))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn stacks_are_folded_from_the_root() {
        let function = |id, name| Function { id, name };
        let location = |id, functions: &[u64]| Location {
            id,
            line: functions.iter().map(|&function_id| Line { function_id }).collect(),
        };
        let sample =
            |locations: &[u64], count| Sample { location_id: locations.to_vec(), value: vec![count, count * 7] };
        let profile = Profile {
            sample: vec![sample(&[2, 1], 3), sample(&[1], 2), sample(&[2, 1], 1), sample(&[9, 3], 1)],
            location: vec![location(1, &[1]), location(2, &[3, 2]), location(3, &[8])],
            function: vec![function(1, 1), function(2, 2), function(3, 3)],
            string_table: ["", "main.main", "main.work", "a b;c"].map(str::to_owned).to_vec(),
            period: 10_000_000,
        };
        let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        zipped.write_all(&profile.encode_to_vec()).expect("memory takes it");
        let zipped = zipped.finish().expect("memory takes it");
        let expected = "[unknown] 1\nmain.main 2\nmain.main;main.work;a_b_c 4\n";
        assert_eq!(folded(&zipped).expect("a profile"), (expected.to_owned(), 10_000.0));
        assert!(folded(b"no gzip").is_err());
    }
}
