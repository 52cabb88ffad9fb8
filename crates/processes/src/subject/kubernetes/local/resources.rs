//! CPU time and memory of a container, as manifests write them. Pure.

use serde_json::{Value, json};

use super::fit::set;
use crate::subject::launch::Limits;

/// The limits of the study instead of the manifest's.
pub(super) fn limit(container: &mut Value, limits: &Limits) {
    if let Some(cores) = limits.cpus {
        limit_one(container, "cpu", json!(format!("{}m", (cores * 1000.0).round())), cores);
    }
    if let Some(bytes) = limits.memory {
        limit_one(container, "memory", json!(bytes.to_string()), bytes as f64);
    }
}

/// What is reserved is not more.
fn limit_one(container: &mut Value, resource: &str, value: Value, amount: f64) {
    let reserved = container.pointer(&format!("/resources/requests/{resource}")).and_then(quantity);
    if reserved.is_some_and(|reserved| reserved > amount) {
        set(container, &["resources", "requests", resource], value.clone());
    }
    set(container, &["resources", "limits", resource], value);
}

/// A quantity of Kubernetes: `500m`, `64Mi`, `2`.
fn quantity(value: &Value) -> Option<f64> {
    let text = match value {
        Value::Number(number) => return number.as_f64(),
        Value::String(text) => text,
        _ => return None,
    };
    let end = text.find(|c: char| c.is_ascii_alphabetic() && c != 'e').unwrap_or(text.len());
    let factor = match &text[end..] {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1024.0_f64.powi(2),
        "Gi" => 1024.0_f64.powi(3),
        "Ti" => 1024.0_f64.powi(4),
        _ => return None,
    };
    Some(text[..end].parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_numbers_with_a_unit() {
        for (text, number) in [("2", 2.0), ("500m", 0.5), ("64Mi", 67_108_864.0), ("1e3", 1000.0), ("1.5G", 1.5e9)] {
            assert_eq!(quantity(&json!(text)), Some(number), "{text}");
        }
        assert_eq!((quantity(&json!(3)), quantity(&json!("x")), quantity(&json!(null))), (Some(3.0), None, None));
    }
}
