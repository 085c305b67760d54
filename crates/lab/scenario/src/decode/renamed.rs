//! Keys that a table does not have, but had under that name, or that other tools have.

/// Former keys with the key that replaces each. A word may have several: the table read decides.
const RENAMED: &[(&str, &str)] = &[
    ("laws", "external_laws"),
    ("series", "monitor"),
    ("sample", "random_points"),
    ("payload", "mss"),
    ("path", "load_balancing"),
    ("timeouts_cut", "law_sees_timeouts"),
    ("loss_timer", "rto_per"),
    ("reordering", "reorder_window"),
    ("segment", "gso_size"),
    ("small_queue", "tsq_limit"),
    ("known_sizes", "size_aware"),
    ("cnp", "cnp_interval"),
    ("over_base", "on_queueing_delay"),
    ("memory", "reuse_last_or_ack"),
    ("resend", "retransmit"),
    ("history", "ack_history"),
    ("laws", "law_per"),
    ("window", "duration"),
    ("class", "traffic_class"),
    ("place", "placement"),
    ("local_rate", "intra_host_rate"),
    ("whole", "exact_ticks"),
    ("ties", "tie_break"),
    ("in_service", "in_service_bytes"),
    ("hysteresis", "xon_offset"),
    ("loss", "loss_probability"),
    ("control", "control_buffer"),
    ("reserve", "reserved"),
    ("marks", "ecn_marking"),
    ("size", "notification_size"),
    ("interval", "notify_interval"),
    ("reset", "mark_timeout"),
];

/// Keys of other tools: a key of the table where users look for it, and what to use.
const FOREIGN: &[(&str, &str, &str)] = &[
    ("mtu", "mss", "use `mss`, the MTU less `header`"),
    ("min_rto", "rto_min", "use `rto_min`"),
    ("max_rto", "rto_max", "use `rto_max`"),
    ("rwnd", "mss", "receivers have no window here: they read at once"),
    ("congestion_control", "mss", "set `law` of the scheme, in [schemes.NAME]"),
    ("congestion_control", "law", "use `law`"),
    ("law", "mss", "set `law` of the scheme, in [schemes.NAME]"),
];

/// Returns the keys that may have replaced a former key.
pub(crate) fn replacements(key: &str) -> impl Iterator<Item = &'static str> {
    RENAMED.iter().filter(move |(old, _)| *old == key).map(|(_, new)| *new)
}

/// Returns the key among `known` that replaced a former key.
pub fn replacement(key: &str, known: &[&str]) -> Option<&'static str> {
    replacements(key).find(|new| known.contains(new))
}

/// Returns the help for a key of another tool in a table with the keys `known`.
pub(super) fn foreign(key: &str, known: &[&str]) -> Option<&'static str> {
    FOREIGN.iter().find(|(name, of, _)| *name == key && known.contains(of)).map(|(.., help)| *help)
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::{FOREIGN, RENAMED};

    /// Collects the keys of each table of a schema.
    fn tables<'a>(schema: &'a Json, into: &mut Vec<Vec<&'a str>>) {
        if let Some(keys) = schema["properties"].as_object() {
            into.push(keys.keys().map(String::as_str).collect());
        }
        match schema {
            Json::Object(entries) => entries.values().for_each(|below| tables(below, into)),
            Json::Array(entries) => entries.iter().for_each(|below| tables(below, into)),
            _ => {}
        }
    }

    /// Some table has the replacement, and not the former key.
    #[test]
    fn replacements_are_keys() {
        let schema = crate::schema::json_schema();
        let mut all = Vec::new();
        tables(&schema, &mut all);
        let renames = RENAMED.iter().copied().chain(FOREIGN.iter().map(|&(name, of, _)| (name, of)));
        for (old, new) in renames {
            assert!(all.iter().any(|keys| keys.contains(&new) && !keys.contains(&old)), "{old}, {new}");
        }
    }
}
