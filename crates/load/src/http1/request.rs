//! Requests, rendered once: sending one overwrites the trace ids at their fixed place and nothing else.

use std::ops::Range;

use crate::error::LoadError;
use crate::plan::{Plan, Trace};
use crate::target::Target;
use crate::trace::Ids;

/// A rendered request.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    /// Head and body.
    bytes: Vec<u8>,
    /// Where the value of the trace header stands.
    trace: Option<(Trace, Range<usize>)>,
}

/// Whether a byte may stand in a method or a header's name (RFC 9110, 5.6.2).
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

impl Template {
    /// Renders the request of a plan.
    pub(crate) fn new(plan: &Plan, target: &Target) -> Result<Self, LoadError> {
        if plan.method.is_empty() || !plan.method.bytes().all(is_token) {
            let remedy = "write a method such as GET or POST";
            return Err(LoadError::Plan { field: "method", value: plan.method.clone(), remedy });
        }
        let given = |name: &str| plan.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        let mut text = format!("{} {} HTTP/1.1\r\n", plan.method, target.path);
        if !given("host") {
            text += &format!("Host: {}\r\n", target.authority);
        }
        for (name, value) in &plan.headers {
            let refuse = |reason| Err(LoadError::Header { name: name.clone(), reason });
            if name.is_empty() || !name.bytes().all(is_token) {
                return refuse("a name is made of letters, digits and dashes");
            }
            if value.bytes().any(|byte| byte != b'\t' && (byte < b' ' || byte == 0x7f)) {
                return refuse("its value holds a line break or another control character");
            }
            if name.eq_ignore_ascii_case("transfer-encoding") {
                return refuse("bodies are sent with their length, so leave it out");
            }
            if name.eq_ignore_ascii_case("content-length")
                && value.trim().parse() != Ok(plan.body.as_ref().map_or(0, String::len))
            {
                return refuse("it contradicts the body; leave it out");
            }
            text += &format!("{name}: {value}\r\n");
        }
        let may_have_body = ["POST", "PUT", "PATCH"].contains(&plan.method.as_str());
        if !given("content-length") && (plan.body.is_some() || may_have_body) {
            text += &format!("Content-Length: {}\r\n", plan.body.as_ref().map_or(0, String::len));
        }
        let mut trace = None;
        if let Some(wanted) = &plan.trace {
            if given(wanted.header.name()) {
                let reason = "the plan sets it too; leave one out";
                return Err(LoadError::Header { name: wanted.header.name().to_owned(), reason });
            }
            // Before it: what comes up to it is that of every request.
            wanted
                .header
                .beside(wanted.sampled)
                .iter()
                .for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
            text += &format!("{}: ", wanted.header.name());
            let start = text.len();
            text += wanted.header.placeholder();
            trace = Some((wanted.clone(), start..text.len()));
            text += "\r\n";
        }
        text += "\r\n";
        text += plan.body.as_deref().unwrap_or_default();
        Ok(Self { bytes: text.into_bytes(), trace })
    }

    /// Its head up to, but not with, the trace header and the final empty line.
    pub(crate) fn head_without_trace(&self) -> &[u8] {
        let name = self.trace.as_ref().map_or(0, |(trace, _)| trace.header.name().len() + 2);
        match &self.trace {
            Some((_, place)) => &self.bytes[..place.start - name],
            None => {
                let end = self.bytes.windows(4).position(|four| four == b"\r\n\r\n");
                &self.bytes[..end.map_or(self.bytes.len(), |end| end + 2)]
            }
        }
    }

    /// The request with this index, and whether it carries the sampled flag. The bytes are good until the next call.
    #[inline]
    pub(crate) fn render(&mut self, index: u64) -> (&[u8], bool) {
        let mut sampled = false;
        if let Some((trace, place)) = &self.trace {
            let ids: Ids = trace.ids(index);
            trace.header.write(&mut self.bytes[place.clone()], ids);
            sampled = ids.sampled;
        }
        (&self.bytes, sampled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::TraceHeader;

    fn render(plan: &Plan) -> Result<String, LoadError> {
        let target = Target::parse(&plan.url).expect("a good url");
        let mut template = Template::new(plan, &target)?;
        Ok(String::from_utf8(template.render(3).0.to_vec()).expect("text"))
    }

    #[test]
    fn a_plain_get() {
        let text = render(&Plan::new("http://h:81/x?y")).expect("renders");
        assert_eq!(text, "GET /x?y HTTP/1.1\r\nHost: h:81\r\n\r\n");
    }

    #[test]
    fn a_post_with_body_headers_and_trace() {
        let mut plan = Plan::new("http://h/");
        plan.method = "POST".to_owned();
        plan.body = Some("{}".to_owned());
        plan.headers = vec![("host".to_owned(), "other".to_owned()), ("X-A".to_owned(), "1".to_owned())];
        plan.trace = Some(Trace { header: TraceHeader::W3c, tag: 1, key: 2, sampled: 1.0 });
        let text = render(&plan).expect("renders");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let lines: Vec<&str> = head.split("\r\n").collect();
        assert_eq!(lines[..4], ["POST / HTTP/1.1", "host: other", "X-A: 1", "Content-Length: 2"]);
        assert!(lines[4].starts_with("traceparent: 00-0000000000000001") && lines[4].ends_with("-01"), "{}", lines[4]);
        assert_eq!(body, "{}");
    }

    #[test]
    fn some_headers_come_beside_that_of_the_trace() {
        let mut plan = Plan::new("http://h/");
        let pinpoint = Trace { header: TraceHeader::Pinpoint, tag: 1, key: 2, sampled: 1.0 };
        for (sampled, more) in [(1.0, ""), (0.0, "Pinpoint-Sampled: s0\r\n")] {
            plan.trace = Some(Trace { sampled, ..pinpoint.clone() });
            let text = render(&plan).expect("renders");
            let head = format!(
                "GET / HTTP/1.1\r\nHost: h\r\nPinpoint-SpanID: 2\r\nPinpoint-pSpanID: 1\r\nPinpoint-Flags: 0\r\n\
                 Pinpoint-pAppName: unladen\r\nPinpoint-pAppType: 1000\r\n{more}pinpoint-traceid: \
                 unladen^00000000000000000001^"
            );
            assert!(text.starts_with(&head), "{text}");
        }
    }

    #[test]
    fn a_post_without_body_says_so() {
        let mut plan = Plan::new("http://h/");
        plan.method = "POST".to_owned();
        assert!(render(&plan).expect("renders").contains("Content-Length: 0\r\n"));
    }

    #[test]
    fn what_would_break_the_request_is_refused() {
        for (name, value) in [
            ("X A", "1"),
            ("", "1"),
            ("X", "a\r\nInjected: 1"),
            ("Content-Length", "5"),
            ("Transfer-Encoding", "chunked"),
            ("Traceparent", "mine"),
        ] {
            let mut plan = Plan::new("http://h/");
            plan.headers = vec![(name.to_owned(), value.to_owned())];
            plan.trace = Some(Trace { header: TraceHeader::W3c, tag: 1, key: 2, sampled: 1.0 });
            assert!(matches!(render(&plan), Err(LoadError::Header { .. })), "{name}: {value}");
        }
        let mut plan = Plan::new("http://h/");
        plan.method = "GE T".to_owned();
        assert!(matches!(render(&plan), Err(LoadError::Plan { field: "method", .. })));
    }
}
