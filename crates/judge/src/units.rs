//! How numbers are written for people: one place for units, prefixes, signs and how many digits make sense.
//!
//! Used by the judge for the words in the findings and by every report for its tables. Machines get plain numbers in
//! the unit that the finding names.

use super::findings::{Finding, Range};

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;
const GIB: f64 = 1024.0 * MIB;
/// Minus sign (U+2212): as wide as the plus sign and never mistaken for a range.
const MINUS: char = '−';

/// One unit and one number of decimals for numbers that are read side by side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    factor: f64,
    unit: &'static str,
    pub(super) decimals: usize,
}

impl Scale {
    /// For numbers in `unit` (a [`crate::findings::Finding::unit`]) that are about as large as `magnitude`.
    /// `resolution` is the smallest step that means something, half the width of an interval, say: it gets two digits. Without it
    /// the magnitude gets three.
    #[must_use]
    pub fn of(unit: &str, magnitude: f64, resolution: Option<f64>) -> Self {
        let (factor, unit) = prefix(unit, magnitude.abs());
        let decimals = decimals(magnitude * factor, resolution.map(|step| step * factor), 3);
        Self { factor, unit, decimals }
    }

    /// For a number with its interval, by itself.
    #[must_use]
    pub fn of_range(unit: &str, range: Range) -> Self {
        Self::of(unit, range.magnitude(), range.half_width())
    }

    /// For the baseline, the value and the difference of a finding, side by side in one unit.
    #[must_use]
    pub fn of_values(finding: &Finding) -> Self {
        let magnitude = finding.baseline.abs().max(finding.value.abs());
        let scale = Self::of(&finding.unit, magnitude, half_width(finding.difference_low, finding.difference_high));
        scale.telling([finding.difference_low, finding.difference_high]).for_counts(finding)
    }

    /// For the difference of a finding alone, in the unit that suits its own size.
    #[must_use]
    pub fn of_difference(finding: &Finding) -> Self {
        let ends = [finding.difference, finding.difference_low, finding.difference_high];
        let magnitude = ends.into_iter().flatten().map(f64::abs).fold(0.0, f64::max);
        // A difference between two shares is not itself "per cent of the baseline".
        let unit = if finding.unit == "share" { "points" } else { &finding.unit };
        Self::of(unit, magnitude, half_width(finding.difference_low, finding.difference_high))
            .telling([finding.difference_low, finding.difference_high])
            .for_counts(finding)
    }

    /// For the relative difference of a finding.
    #[must_use]
    pub fn of_ratio(finding: &Finding) -> Self {
        let ends = [finding.ratio, finding.ratio_low, finding.ratio_high];
        let magnitude = ends.into_iter().flatten().map(f64::abs).fold(0.0, f64::max);
        percent(magnitude, half_width(finding.ratio_low, finding.ratio_high))
            .telling([finding.ratio_low, finding.ratio_high])
    }

    /// An end of an interval without 0 is not written as 0 if one or two decimals more can help it: `[0.0, 2.0]` with the
    /// verdict "costs" would be a riddle.
    fn telling(self, ends: [Option<f64>; 2]) -> Self {
        let riddle = |scale: &Self| {
            let zero =
                |end: f64| end != 0.0 && (end * scale.factor).abs() < 0.5 * 10_f64.powi(-(scale.decimals as i32));
            ends.into_iter().flatten().any(zero)
        };
        if !matches!(ends, [Some(low), Some(high)] if low > 0.0 || high < 0.0) {
            return self;
        }
        let more = (self.decimals..=3).map(|decimals| Self { decimals, ..self });
        more.take(3).find(|scale| !riddle(scale)).unwrap_or(self)
    }

    /// Things that are counted and came out whole are written whole.
    fn for_counts(self, finding: &Finding) -> Self {
        let numbers = [
            Some(finding.baseline),
            Some(finding.value),
            finding.difference,
            finding.difference_low,
            finding.difference_high,
        ];
        let whole = numbers.into_iter().flatten().all(|number| number.fract() == 0.0);
        if finding.unit == "count" && whole { Self { decimals: 0, ..self } } else { self }
    }

    /// `µs`, `MiB`, `%`; empty for counts.
    #[must_use]
    pub fn unit(self) -> &'static str {
        self.unit
    }

    /// As a number, for whoever draws it.
    #[must_use]
    pub fn scaled(self, value: f64) -> f64 {
        value * self.factor
    }

    /// `337.0`.
    #[must_use]
    pub fn number(self, value: f64) -> String {
        write_number(value * self.factor, self.decimals, false)
    }

    /// `+62.2`, `−3.1`, `0.0`.
    #[must_use]
    pub fn signed(self, value: f64) -> String {
        write_number(value * self.factor, self.decimals, true)
    }

    /// The next number above `rough` that is 1, 2, 2.5 or 5 times a power of ten as it is printed.
    #[must_use]
    pub fn round_step(self, rough: f64) -> f64 {
        let printed = rough * self.factor;
        let power = 10_f64.powi(exponent(printed));
        let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|it| it * power).find(|it| *it >= printed);
        step.unwrap_or(printed) / self.factor
    }

    /// A round number on an axis: `+2.5`, `0`.
    #[must_use]
    pub fn tick(self, value: f64) -> String {
        let number = write_number(value * self.factor, 4, true);
        number.trim_end_matches('0').trim_end_matches('.').to_owned()
    }

    /// `62.2 µs`.
    #[must_use]
    pub fn with_unit(self, value: f64) -> String {
        join(&self.number(value), self.unit)
    }

    /// `+62.2 µs`.
    #[must_use]
    pub fn signed_with_unit(self, value: f64) -> String {
        join(&self.signed(value), self.unit)
    }

    /// A difference with its sign, its unit and its interval: `+18.4 % [16.9, 19.8]`.
    #[must_use]
    pub fn signed_range(self, range: Range) -> String {
        format!("{} [{}, {}]", self.signed_with_unit(range.value), self.number(range.low), self.number(range.high))
    }
}

/// The estimate with its interval, relative or not; `None` without an interval.
#[must_use]
pub fn estimate(finding: &Finding, relative: bool) -> Option<String> {
    let scale = if relative { Scale::of_ratio(finding) } else { Scale::of_difference(finding) };
    finding.range(relative).map(|range| scale.signed_range(range))
}

/// A scale for relative differences: `+18.4 %`.
#[must_use]
pub fn percent(magnitude: f64, resolution: Option<f64>) -> Scale {
    let decimals = decimals(magnitude * 100.0, resolution.map(|step| step * 100.0), 2).min(2);
    Scale { factor: 100.0, unit: "%", decimals }
}

/// A share from 0 to 1 as `12.4 %`, `0.031 %`, `0 %`.
#[must_use]
pub fn share(value: f64) -> String {
    if value == 0.0 {
        return "0 %".to_owned();
    }
    let decimals = decimals(value * 100.0, None, 2).min(4);
    join(&write_number(value * 100.0, decimals, false), "%")
}

/// A limit that someone chose, as short as it is: `1 %`, `0.5 MiB`.
#[must_use]
pub fn chosen(unit: &str, value: f64) -> String {
    as_chosen(unit, value).with_unit(value)
}

/// Its scale: no decimals but those that it has, of four.
pub(super) fn as_chosen(unit: &str, value: f64) -> Scale {
    let scale = if unit == "%" { percent(value, None) } else { Scale::of(unit, value, None) };
    let number = format!("{:.4}", value * scale.factor);
    let decimals = number.trim_end_matches('0').split_once('.').map_or(0, |(_, decimals)| decimals.len());
    Scale { decimals, ..scale }
}

/// A name and the unit of what it names: `CPU per request, µs`.
#[must_use]
pub fn named(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name}, {unit}") }
}

/// `240,000`.
#[must_use]
pub fn count(value: u64) -> String {
    group(&value.to_string())
}

/// `−1,234`.
#[must_use]
pub fn signed_count(value: i64) -> String {
    let digits = count(value.unsigned_abs());
    if value < 0 { format!("{MINUS}{digits}") } else { digits }
}

/// Half the width of an interval, if there is one.
fn half_width(low: Option<f64>, high: Option<f64>) -> Option<f64> {
    Some((high? - low?) / 2.0)
}

fn join(number: &str, unit: &str) -> String {
    if unit.is_empty() { number.to_owned() } else { format!("{number} {unit}") }
}

/// The prefix in which a number of this size is easy to read: factor and printed unit.
fn prefix(unit: &str, magnitude: f64) -> (f64, &'static str) {
    match unit {
        "us" if magnitude >= 1e6 => (1e-6, "s"),
        "us" if magnitude >= 1e3 => (1e-3, "ms"),
        "us" => (1.0, "µs"),
        "ms" if magnitude >= 1e3 => (1e-3, "s"),
        "ms" if magnitude > 0.0 && magnitude < 1.0 => (1e3, "µs"),
        "ms" => (1.0, "ms"),
        "B" if magnitude >= GIB => (1.0 / GIB, "GiB"),
        "B" if magnitude >= MIB => (1.0 / MIB, "MiB"),
        "B" if magnitude >= 10.0 * KIB => (1.0 / KIB, "KiB"),
        "B" => (1.0, "B"),
        "B/min" if magnitude >= MIB => (1.0 / MIB, "MiB/min"),
        "B/min" => (1.0 / KIB, "KiB/min"),
        "1/s" => (1.0, "requests/s"),
        "share" => (100.0, "%"),
        "points" => (100.0, "percentage points"),
        // A timer's cost is thousandths of a core.
        "cores" if magnitude < 0.1 => (1e3, "ms/s"),
        "cores" => (1.0, "cores"),
        _ => (1.0, ""),
    }
}

/// Decimals that show two digits of the resolution if it begins with 1, 2 or 3, else one (the rule of the Particle Data Group, about), or
/// `digits` digits of the magnitude without one; never more than three, nor so many that more than six digits of the
/// magnitude are shown.
fn decimals(magnitude: f64, resolution: Option<f64>, digits: i32) -> usize {
    let wanted = match resolution.filter(|step| step.is_finite() && *step > 0.0) {
        Some(step) => i32::from(step / 10_f64.powi(exponent(step)) < 3.55) - exponent(step),
        None if magnitude != 0.0 && magnitude.is_finite() => digits - 1 - exponent(magnitude.abs()),
        None => 0,
    };
    let most = if magnitude == 0.0 { 3 } else { 5 - exponent(magnitude.abs()) };
    usize::try_from(wanted.min(most).clamp(0, 3)).unwrap_or(0)
}

/// Exponent of ten of a positive number.
fn exponent(value: f64) -> i32 {
    // Between −300 and 300 for every finite number, so the cast is exact.
    value.max(1e-300).log10().floor() as i32
}

pub(super) fn write_number(value: f64, decimals: usize, signed: bool) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    let digits = group(&format!("{:.decimals$}", value.abs()));
    // A number that rounds to zero has no sign.
    if !digits.bytes().any(|digit| digit.is_ascii_digit() && digit != b'0') {
        return digits;
    }
    match (value < 0.0, signed) {
        (true, _) => format!("{MINUS}{digits}"),
        (false, true) => format!("+{digits}"),
        (false, false) => digits,
    }
}

/// Commas between groups of three digits of the whole part.
fn group(digits: &str) -> String {
    let whole = digits.find('.').unwrap_or(digits.len());
    let mut grouped = String::with_capacity(digits.len() + whole / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && index < whole && (whole - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_follows_the_magnitude() {
        for (unit, value, written) in [
            ("us", 62.0, "62.0 µs"),
            ("us", 1234.0, "1.23 ms"),
            ("us", 2_500_000.0, "2.50 s"),
            ("ms", 0.25, "250 µs"),
            ("B", 9.1 * MIB, "9.10 MiB"),
            ("B", 2048.0 * MIB, "2.00 GiB"),
            ("B", 512.0 * KIB, "512 KiB"),
            ("B", 1520.0, "1,520 B"),
            ("B/min", 2.5 * MIB, "2.50 MiB/min"),
            ("1/s", 29018.83, "29,019 requests/s"),
            ("share", 0.0125, "1.25 %"),
            ("cores", 0.0031, "3.10 ms/s"),
            ("cores", 1.25, "1.25 cores"),
            ("count", 7.0, "7.00"),
            ("", 3.5, "3.50"),
        ] {
            assert_eq!(Scale::of(unit, value, None).with_unit(value), written);
        }
    }

    #[test]
    fn the_resolution_decides_the_decimals() {
        let scale = Scale::of("us", 337.0, Some(5.1));
        assert_eq!((scale.number(337.04), scale.signed(62.15)), ("337".to_owned(), "+62".to_owned()));
        assert_eq!(Scale::of("us", 337.0, Some(3.2)).signed(-62.15), "−62.1");
        assert_eq!(Scale::of("us", 337.0, Some(51.0)).signed(-62.15), "−62");
        assert_eq!(Scale::of("us", 399_000.0, Some(0.001)).number(399_000.123), "399.000");
        assert_eq!(percent(0.184, Some(0.0145)).signed_with_unit(0.184), "+18.4 %");
        assert_eq!(percent(0.184, Some(0.000_145)).signed_with_unit(0.184), "+18.40 %");
        assert_eq!(percent(12.5, Some(1.0)).signed_with_unit(12.5), "+1,250 %");
    }

    #[test]
    fn zero_has_no_sign_and_nonsense_is_a_question_mark() {
        assert_eq!(Scale::of("us", 10.0, Some(1.0)).signed(-0.000_1), "0.0");
        assert_eq!(Scale::of("us", f64::NAN, None).number(f64::NAN), "?");
        assert_eq!(Scale::of("us", 0.0, None).number(0.0), "0");
    }

    #[test]
    fn counts_and_shares() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(240_000), "240,000");
        assert_eq!(signed_count(-1234), "−1,234");
        assert_eq!(share(0.0), "0 %");
        assert_eq!(share(0.1239), "12 %");
        assert_eq!(share(0.000_31), "0.031 %");
        assert_eq!(share(1.0), "100 %");
    }
}
