//! What a cost means at the user's traffic and prices: cores, memory, machines, money a year, each with its interval.
//!
//! Plain proportion: µs of CPU per request times requests per second are cores, bytes per process times instances are
//! memory. The ends of the intervals are carried through. Money adds CPU and memory; adding the low ends and the high
//! ends gives an interval that is wider than it has to be, never too narrow.

use unladen_study::prices::Prices;

use super::findings::{Finding, MoneyFindings, Range};
use super::lookup::of_whole;

const HOURS_A_YEAR: f64 = 24.0 * 365.25;
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// The cost of a variant in production; `None` if neither CPU nor memory has an interval.
pub(super) fn of(prices: &Prices, metrics: &[Finding]) -> Option<MoneyFindings> {
    let find = |name: &str| of_whole(metrics, name)?.range(false);
    let cores = find("cpu_per_request").map(|cpu| cpu.times(prices.requests_per_second / 1e6));
    let memory = find("rss").map(|rss| rss.times(f64::from(prices.instances)));
    if cores.is_none() && memory.is_none() {
        return None;
    }
    let machine = prices.instance.as_ref();
    // As many as the scarcer of the two needs; without the machine's memory the cores decide.
    let by_cores =
        machine.zip(cores).map(|(machine, cores)| cores.times(1.0 / (machine.cores * machine.utilisation.0)));
    let by_memory = machine.and_then(|machine| Some((machine, machine.memory?, memory?)));
    let by_memory =
        by_memory.map(|(machine, size, memory)| memory.times(1.0 / (size.0 as f64 * machine.utilisation.0)));
    let machines = match (by_cores, by_memory) {
        (Some(cores), Some(memory)) => Some(cores.larger(memory)),
        (one, other) => one.or(other),
    };
    let of_cores = cores.zip(prices.core_hour).map(|(cores, price)| cores.times(price));
    let of_memory = memory.zip(prices.gib_hour).map(|(memory, price)| memory.times(price / GIB));
    let of_machines = machines.zip(machine.and_then(|it| it.hour)).map(|(machines, price)| machines.times(price));
    // A price per machine holds its cores and its memory.
    let hour = of_machines.or_else(|| match (of_cores, of_memory) {
        (Some(cores), Some(memory)) => Some(cores.plus(memory)),
        (one, other) => one.or(other),
    });
    Some(MoneyFindings {
        requests_per_second: prices.requests_per_second,
        instances: prices.instances,
        cores,
        memory_bytes: memory,
        machines,
        per_year: hour.map(|hour| hour.times(HOURS_A_YEAR)),
        currency: prices.currency.clone(),
    })
}

impl Range {
    fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }

    fn plus(self, other: Self) -> Self {
        Self { value: self.value + other.value, low: self.low + other.low, high: self.high + other.high }
    }

    fn larger(self, other: Self) -> Self {
        Self { value: self.value.max(other.value), low: self.low.max(other.low), high: self.high.max(other.high) }
    }
}

#[cfg(test)]
mod tests {
    use unladen_journal::units::{Bytes, Ratio};
    use unladen_study::prices::Instance;

    use super::*;

    #[test]
    fn proportion_by_hand() {
        let range = |value: f64, low: f64, high: f64| Range { value, low, high };
        let prices = Prices {
            requests_per_second: 5_000.0,
            instances: 20,
            core_hour: Some(0.04),
            gib_hour: Some(0.005),
            instance: None,
            currency: "EUR".to_owned(),
        };
        // 80 µs [60, 100] at 5,000/s are 0.4 cores [0.3, 0.5]; 50 MiB in 20 instances are 1,000 MiB.
        let cores = range(80.0, 60.0, 100.0).times(5_000.0 / 1e6);
        assert!(
            (cores.value - 0.4).abs() < 1e-12 && (cores.low - 0.3).abs() < 1e-12 && (cores.high - 0.5).abs() < 1e-12
        );
        let hour = cores.times(0.04).plus(range(1000.0 / 1024.0, 1.0, 1.0).times(0.005));
        assert!((hour.value * HOURS_A_YEAR - (0.016 + 0.0048828125) * 8766.0).abs() < 1e-9);
        assert!(of(&prices, &[]).is_none());
        let machine = Instance { cores: 4.0, memory: Some(Bytes(16 << 30)), utilisation: Ratio(0.5), hour: Some(0.2) };
        assert!((cores.times(1.0 / (machine.cores * machine.utilisation.0)).value - 0.2).abs() < 1e-12);
        assert_eq!(range(1.0, 0.5, 2.0).larger(range(0.8, 0.7, 1.9)), range(1.0, 0.7, 2.0));
    }
}
