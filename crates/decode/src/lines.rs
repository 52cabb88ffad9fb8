//! Text by lines, as newline-delimited JSON has it.

/// Lines that are not empty.
#[inline]
pub fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = memchr::memchr_iter(b'\n', body).chain([body.len()]);
    let mut start = 0;
    ends.map(move |end| &body[std::mem::replace(&mut start, end + 1)..end]).filter(|line| !line.trim_ascii().is_empty())
}
