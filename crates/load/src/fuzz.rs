//! Entry points for fuzzing: hidden, and no part of what the crate promises. The same code replays the corpus in a test.

use crate::http1::head::HeadReader;
use crate::http1::response::{Body, ResponseReader};
use crate::script::{MOST_BODY, Whole};

/// What came of reading: status, length and hash of the body, and what was kept of it. `Err`: it is malformed.
type Seen = Result<Option<(u16, u64, u64)>, ()>;

/// Reads an input in pieces of `piece` bytes.
fn read(method: &str, input: &[u8], piece: usize, ends: bool) -> Seen {
    let (mut heads, mut reader) = (HeadReader::new(method), ResponseReader::new());
    reader.keep(true);
    let mut found = None;
    for bytes in input.chunks(piece.max(1)) {
        if found.is_some() {
            return Err(());
        }
        if let Some(response) = reader.push(&mut heads, bytes).map_err(|_| ())? {
            let hash = match &response.body {
                Body::Whole(body) => {
                    let _ = Whole::new(response.status, response.head, body);
                    let mut hash = crate::bodies::BodyHash::default();
                    hash.update(body);
                    hash
                }
                Body::Pieces(hash) => *hash,
            };
            found = Some((response.status, hash.length(), hash.finish()));
        }
        assert!(reader.kept().1.len() <= MOST_BODY, "what is kept is bounded");
    }
    let late = if ends { reader.end() } else { None };
    let found = found.or_else(|| {
        let response = late?;
        let Body::Pieces(hash) = response.body else { return None };
        Some((response.status, hash.length(), hash.finish()))
    });
    let (head, body) = reader.kept();
    let _ = Whole::new(found.map_or(0, |found| found.0), head, body);
    Ok(found)
}

/// Reads a response: the first byte says how it is cut up, the second what it answers and whether the connection ends.
///
/// # Panics
/// If what is read depends on the cuts, or too much is kept: that is what fuzzing looks for.
pub fn response(input: &[u8]) {
    let [cut, how, rest @ ..] = input else { return };
    let method = if how & 1 == 0 { "GET" } else { "HEAD" };
    let ends = how & 2 != 0;
    let whole = read(method, rest, rest.len(), ends);
    let pieces = read(method, rest, usize::from(*cut), ends);
    assert_eq!(whole, pieces, "the cuts do not matter");
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_corpus_holds_no_surprise() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/response");
        let mut count = 0;
        for file in std::fs::read_dir(folder).expect("the corpus is in the repository") {
            let bytes = std::fs::read(file.expect("listed").path()).expect("readable");
            super::response(&bytes);
            for cut in [1, 2, 3, 7, 255] {
                super::response(&[&[cut], &bytes[1.min(bytes.len())..]].concat());
            }
            count += 1;
        }
        assert!(count >= 20, "{count}");
    }
}
