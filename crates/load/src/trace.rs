//! The headers that carry a request's trace id, made as [`unladen_trace`] says.
//!
//! This module does no I/O; writing the header into a request is a fixed-position overwrite.

use unladen_trace::{mix, trace_low};

use crate::plan::{Trace, TraceHeader};

/// Weyl constant of splitmix64 (2^64 divided by the golden ratio); keeps the sampling decision apart from the id.
const SAMPLING_SALT: u64 = 0x9e37_79b9_7f4a_7c15;

/// The ids of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids {
    /// High 64 bits of the trace id: the run's tag.
    pub trace_high: u64,
    /// Low 64 bits of the trace id: [`unladen_trace::index_of`] recovers the request's index from them.
    pub trace_low: u64,
    /// Span id of the (never reported) parent: the load generator. Never 0, which W3C forbids.
    pub parent: u64,
    /// Whether the request carries the sampled flag.
    pub sampled: bool,
}

impl Trace {
    /// Whether some requests carry the sampled flag and some do not.
    pub(crate) fn samples_some(&self) -> bool {
        self.sampled > 0.0 && self.sampled < 1.0
    }

    /// The ids of the request with this index.
    #[must_use]
    pub fn ids(&self, index: u64) -> Ids {
        let parent = match mix(index ^ !self.key) {
            0 => 1,
            id => id,
        };
        Ids { trace_high: self.tag, trace_low: trace_low(index, self.key), parent, sampled: self.is_sampled(index) }
    }

    /// Whether the request with this index carries the sampled flag: a fixed function of index, key and share.
    #[must_use]
    pub fn is_sampled(&self, index: u64) -> bool {
        self.sampled >= 1.0
            || (mix(index ^ self.key ^ SAMPLING_SALT) >> 11) as f64 * (1.0 / (1u64 << 53) as f64) < self.sampled
    }
}

/// `sample-trace id-parent segment id-parent span id-parent service-parent instance-parent endpoint-address`, all but the
/// flag and the span id in base64. Service, instance and endpoint are `unladen`; the address is `load:0`.
const SW8: &str = "0-MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDA=-MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDA=-0-dW5sYWRlbg==-dW5sYWRlbg==-dW5sYWRlbg==-bG9hZDow";
/// Where the trace id stands in it: 32 hex digits are 44 characters of base64.
const SW8_TRACE: usize = 2;
/// Where the parent's segment id stands.
const SW8_SEGMENT: usize = SW8_TRACE + 44 + 1;

/// The trace id is in two parts: 8 hex digits, then 24.
const XRAY: &str = "Root=1-00000000-000000000000000000000000;Parent=0000000000000000;Sampled=0";
/// Where the first part stands, and the second.
const XRAY_TRACE: [usize; 2] = [7, 16];
/// Where the parent's span id stands, and the flag.
const XRAY_PARENT: [usize; 2] = [48, 73];

/// `agent id^start time^sequence` of a transaction: both numbers are signed decimals, here with as many digits as the longest has.
const PINPOINT: &str = "unladen^00000000000000000000^00000000000000000000";
/// Where the numbers stand.
const PINPOINT_TRACE: [usize; 2] = [8, 29];
/// What Pinpoint's agents want beside it, the same for all requests: the service takes the first for the id of its own span.
const PINPOINT_BESIDE: [(&str, &str); 6] = [
    ("Pinpoint-SpanID", "2"),
    ("Pinpoint-pSpanID", "1"),
    ("Pinpoint-Flags", "0"),
    ("Pinpoint-pAppName", "unladen"),
    ("Pinpoint-pAppType", "1000"),
    ("Pinpoint-Sampled", "s0"),
];

/// Writes 32 bytes as 44 characters of base64 (RFC 4648).
fn base64_of_32(into: &mut [u8], bytes: &[u8; 32]) {
    let written = base64::Engine::encode_slice(&base64::engine::general_purpose::STANDARD, bytes, &mut into[..44]);
    debug_assert_eq!(written, Ok(44), "the place is as long as the text");
}

/// Digits for [`hex`].
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Writes a number as 16 hex digits.
fn hex(into: &mut [u8], mut value: u64) {
    for digit in into.iter_mut().rev() {
        *digit = DIGITS[(value & 15) as usize];
        value >>= 4;
    }
}

/// Writes a number, taken for a signed one, as its sign or 0 and 19 decimal digits.
fn decimal(into: &mut [u8], value: u64) {
    let value = value.cast_signed();
    let mut rest = value.unsigned_abs();
    for digit in into[1..20].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    into[0] = if value < 0 { b'-' } else { b'0' };
}

impl TraceHeader {
    /// The header's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::W3c => "traceparent",
            Self::B3 => "b3",
            Self::Sw8 => "sw8",
            Self::Sentry => "sentry-trace",
            // In lower case, as HTTP/2 wants it.
            Self::Xray => "x-amzn-trace-id",
            Self::Pinpoint => "pinpoint-traceid",
        }
    }

    /// A value of the header's exact length, whose ids are overwritten for every request.
    #[must_use]
    pub fn placeholder(self) -> &'static str {
        match self {
            Self::W3c => "00-00000000000000000000000000000000-0000000000000000-00",
            Self::B3 | Self::Sentry => "00000000000000000000000000000000-0000000000000000-0",
            Self::Sw8 => SW8,
            Self::Xray => XRAY,
            Self::Pinpoint => PINPOINT,
        }
    }

    /// Headers beside it, the same for all requests, if that share of them is sampled.
    pub(crate) fn beside(self, sampled: f64) -> &'static [(&'static str, &'static str)] {
        match self {
            // The last says that a request is not sampled.
            Self::Pinpoint if sampled > 0.0 => &PINPOINT_BESIDE[..5],
            Self::Pinpoint => &PINPOINT_BESIDE,
            _ => &[],
        }
    }

    /// Whether it can say of each request whether it is sampled.
    pub(crate) fn tells_sampling(self) -> bool {
        self != Self::Pinpoint
    }

    /// Overwrites a copy of the placeholder with the ids of a request.
    pub(crate) fn write(self, into: &mut [u8], ids: Ids) {
        match self {
            Self::W3c => {
                hex(&mut into[3..19], ids.trace_high);
                hex(&mut into[19..35], ids.trace_low);
                hex(&mut into[36..52], ids.parent);
                into[54] = if ids.sampled { b'1' } else { b'0' };
            }
            Self::B3 | Self::Sentry => {
                hex(&mut into[..16], ids.trace_high);
                hex(&mut into[16..32], ids.trace_low);
                hex(&mut into[33..49], ids.parent);
                into[50] = if ids.sampled { b'1' } else { b'0' };
            }
            Self::Sw8 => {
                let mut id = [0; 32];
                hex(&mut id[..16], ids.trace_high);
                hex(&mut id[16..], ids.trace_low);
                into[0] = if ids.sampled { b'1' } else { b'0' };
                base64_of_32(&mut into[SW8_TRACE..], &id);
                // The parent's segment id is as unique as its span id needs to be: the same text with other digits after it.
                hex(&mut id[..16], ids.parent);
                base64_of_32(&mut into[SW8_SEGMENT..], &id);
            }
            Self::Xray => {
                let mut id = [0; 32];
                hex(&mut id[..16], ids.trace_high);
                hex(&mut id[16..], ids.trace_low);
                let ([first, second], [parent, flag]) = (XRAY_TRACE, XRAY_PARENT);
                into[first..first + 8].copy_from_slice(&id[..8]);
                into[second..second + 24].copy_from_slice(&id[8..]);
                hex(&mut into[parent..parent + 16], ids.parent);
                into[flag] = if ids.sampled { b'1' } else { b'0' };
            }
            Self::Pinpoint => {
                let [high, low] = PINPOINT_TRACE;
                decimal(&mut into[high..], ids.trace_high);
                decimal(&mut into[low..], ids.trace_low);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use unladen_trace::index_of;

    use super::*;

    fn trace(sampled: f64) -> Trace {
        Trace { header: TraceHeader::W3c, tag: 0x0123_4567_89ab_cdef, key: 0xfeed_f00d_dead_beef, sampled }
    }

    fn header(trace: &Trace, index: u64) -> String {
        let mut bytes = trace.header.placeholder().as_bytes().to_vec();
        trace.header.write(&mut bytes, trace.ids(index));
        String::from_utf8(bytes).expect("hex digits and dashes")
    }

    #[test]
    fn traceparent_is_laid_out_as_w3c_says() {
        let text = header(&trace(1.0), 7);
        let fields: Vec<&str> = text.split('-').collect();
        assert_eq!(fields.iter().map(|f| f.len()).collect::<Vec<_>>(), [2, 32, 16, 2]);
        assert_eq!(fields[0], "00");
        assert_eq!(&fields[1][..16], "0123456789abcdef");
        assert_eq!(fields[3], "01");
        let low = u64::from_str_radix(&fields[1][16..], 16).expect("hex");
        assert_eq!(index_of(low, trace(1.0).key), 7);
    }

    #[test]
    fn b3_is_laid_out_as_zipkin_says() {
        let b3 = Trace { header: TraceHeader::B3, ..trace(1.0) };
        let text = header(&b3, 7);
        let fields: Vec<&str> = text.split('-').collect();
        assert_eq!(fields.iter().map(|f| f.len()).collect::<Vec<_>>(), [32, 16, 1]);
        assert_eq!(format!("00-{}-{}-01", fields[0], fields[1]), header(&trace(1.0), 7), "the same ids");
        assert_eq!(fields[2], "1");
        assert!(header(&Trace { sampled: 0.0, ..b3 }, 7).ends_with("-0"));
    }

    #[test]
    fn sw8_is_laid_out_as_skywalking_says() {
        let sw8 = Trace { header: TraceHeader::Sw8, ..trace(1.0) };
        let text = header(&sw8, 7);
        let fields: Vec<&str> = text.split('-').collect();
        assert_eq!((fields.len(), fields[0], fields[3]), (8, "1", "0"));
        let plain = |field: &str| {
            let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, field).expect("base64");
            String::from_utf8(bytes).expect("text")
        };
        let trace_id = plain(fields[1]);
        assert_eq!(trace_id, header(&trace(1.0), 7)[3..35], "the same id");
        let low = u64::from_str_radix(&trace_id[16..], 16).expect("hex");
        assert_eq!(index_of(low, sw8.key), 7);
        let segment = plain(fields[2]);
        assert!(segment.len() == 32 && segment != trace_id);
        assert_ne!(segment, plain(header(&sw8, 8).split('-').nth(2).expect("a field")));
        for field in &fields[4..7] {
            assert_eq!(plain(field), "unladen");
        }
        assert_eq!(plain(fields[7]), "load:0");
        assert!(header(&Trace { sampled: 0.0, ..sw8 }, 7).starts_with("0-"));
    }

    #[test]
    fn sentry_trace_is_laid_out_as_sentry_says() {
        let sentry = Trace { header: TraceHeader::Sentry, ..trace(1.0) };
        let text = header(&sentry, 7);
        let fields: Vec<&str> = text.split('-').collect();
        assert_eq!(fields.iter().map(|f| f.len()).collect::<Vec<_>>(), [32, 16, 1]);
        assert_eq!(format!("00-{}-{}-01", fields[0], fields[1]), header(&trace(1.0), 7), "the same ids");
        assert!(text.ends_with("-1") && header(&Trace { sampled: 0.0, ..sentry }, 7).ends_with("-0"));
    }

    #[test]
    fn xray_is_laid_out_as_aws_says() {
        let xray = Trace { header: TraceHeader::Xray, ..trace(1.0) };
        let text = header(&xray, 7);
        let w3c = header(&trace(1.0), 7);
        let expected = format!("Root=1-{}-{};Parent={};Sampled=1", &w3c[3..11], &w3c[11..35], &w3c[36..52]);
        assert_eq!(text, expected, "the same ids");
        assert!(header(&Trace { sampled: 0.0, ..xray }, 7).ends_with(";Sampled=0"));
    }

    #[test]
    fn a_transaction_of_pinpoint_is_two_numbers() {
        for (tag, text) in [
            (1, "00000000000000000001"),
            (u64::MAX, "-0000000000000000001"),
            (1 << 63, "-9223372036854775808"),
            (u64::MAX >> 1, "09223372036854775807"),
        ] {
            let pinpoint = Trace { header: TraceHeader::Pinpoint, tag, ..trace(1.0) };
            let written = header(&pinpoint, 7);
            let fields: Vec<&str> = written.split('^').collect();
            assert_eq!(fields[..2], ["unladen", text]);
            assert_eq!(fields[2].parse::<i64>().expect("a number").cast_unsigned(), pinpoint.ids(7).trace_low);
        }
    }

    #[test]
    fn no_sampling_and_full_sampling_are_exact() {
        assert!((0..10_000).all(|i| trace(1.0).is_sampled(i)));
        assert!((0..10_000).all(|i| !trace(0.0).is_sampled(i)));
        assert!(header(&trace(0.0), 7).ends_with("-00"));
    }

    #[test]
    fn a_share_is_kept_over_many_requests() {
        // The ids are fixed, so this cannot flake; 5 standard deviations of a fair draw of 100,000 are 0.005.
        let hits = (0..100_000).filter(|&i| trace(0.1).is_sampled(i)).count();
        assert!((9_525..=10_475).contains(&hits), "{hits}");
    }

    #[test]
    fn a_parent_is_never_zero() {
        let mut trace = trace(1.0);
        trace.key = !5;
        assert_eq!(mix(5 ^ !trace.key), 0, "the case that W3C forbids");
        assert_eq!(trace.ids(5).parent, 1);
    }
}
