//! The order in which services start.

use indexmap::IndexMap;

use super::spec::Service;

/// Services in an order in which each comes after those that it needs, else in the order of the file; or the names of
/// a circle of services that need each other, its first one also last. Services that aren't there are passed over.
pub(super) fn start_order(services: &IndexMap<String, Service>) -> Result<Vec<&str>, Vec<String>> {
    let mut order: Vec<&str> = Vec::with_capacity(services.len());
    let waits_for = |service: &Service, order: &[&str]| {
        service.needs.iter().find(|needed| services.contains_key(*needed) && !order.contains(&needed.as_str())).cloned()
    };
    while order.len() < services.len() {
        let waiting = || services.iter().filter(|(name, _)| !order.contains(&name.as_str()));
        let next = waiting().find(|(_, service)| waits_for(service, &order).is_none());
        if let Some((name, _)) = next {
            order.push(name);
            continue;
        }
        // Everything that is left waits for something that is left: following that must come back to where it was.
        let mut circle: Vec<String> = waiting().take(1).map(|(name, _)| name.clone()).collect();
        loop {
            let last = circle.last().and_then(|name| services.get(name));
            let Some(needed) = last.and_then(|service| waits_for(service, &order)) else { return Err(circle) };
            let seen = circle.iter().position(|name| *name == needed);
            circle.push(needed);
            if let Some(start) = seen {
                return Err(circle.split_off(start));
            }
        }
    }
    Ok(order)
}
