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

/// A key of another tool.
struct ForeignKey {
    name: &'static str,
    /// A key of the table where `here` holds.
    sibling: &'static str,
    here: &'static str,
    /// Help in all other tables.
    elsewhere: &'static str,
}

const LAW: &str = "set `law` of the scheme, in [schemes.NAME]";
const RWND: &str = "receivers have no window here: they read at once";

const FOREIGN: &[ForeignKey] = &[
    ForeignKey {
        name: "mtu",
        sibling: "mss",
        here: "use `mss`, the MTU less `header`",
        elsewhere: "use `mss` in [host], the MTU less `header`",
    },
    ForeignKey { name: "min_rto", sibling: "rto_min", here: "use `rto_min`", elsewhere: "use `rto_min` in [host]" },
    ForeignKey { name: "max_rto", sibling: "rto_max", here: "use `rto_max`", elsewhere: "use `rto_max` in [host]" },
    ForeignKey { name: "rwnd", sibling: "mss", here: RWND, elsewhere: RWND },
    ForeignKey { name: "congestion_control", sibling: "law", here: "use `law`", elsewhere: LAW },
    ForeignKey { name: "law", sibling: "mss", here: LAW, elsewhere: LAW },
];

/// Returns the keys that may have replaced a former key.
pub(crate) fn replacements(key: &str) -> impl Iterator<Item = &'static str> {
    RENAMED.iter().filter(move |(old, _)| *old == key).map(|(_, new)| *new)
}

/// Returns the key among `known` that replaced a former key.
pub fn replacement(key: &str, known: &[&str]) -> Option<&'static str> {
    replacements(key).find(|new| known.contains(new))
}

/// Returns the help for a key of another tool in a table with the keys `known`. Case and hyphens do not matter.
pub(crate) fn foreign(key: &str, known: &[&str]) -> Option<&'static str> {
    let key = key.to_ascii_lowercase().replace('-', "_");
    let found = FOREIGN.iter().find(|it| it.name == key)?;
    Some(if known.contains(&found.sibling) { found.here } else { found.elsewhere })
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::{FOREIGN, LAW, RENAMED, foreign};

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

    /// Each key is answered in its table and in all others, in any case and with hyphens.
    #[test]
    fn foreign_keys_are_answered_in_every_table() {
        for it in FOREIGN.iter().filter(|it| it.name != "congestion_control") {
            assert_eq!(foreign(it.name, &[it.sibling]), Some(it.here));
            assert_eq!(foreign(&it.name.to_uppercase().replace('_', "-"), &["seed"]), Some(it.elsewhere));
        }
        assert_eq!(foreign("congestion_control", &["law"]), Some("use `law`"));
        assert_eq!((foreign("Congestion-Control", &[]), foreign("mss", &["mss"])), (Some(LAW), None));
    }

    /// Some table has the replacement, and not the former key.
    #[test]
    fn replacements_are_keys() {
        let schema = crate::schema::json_schema();
        let mut all = Vec::new();
        tables(&schema, &mut all);
        let renames = RENAMED.iter().copied().chain(FOREIGN.iter().map(|it| (it.name, it.sibling)));
        for (old, new) in renames {
            assert!(all.iter().any(|keys| keys.contains(&new) && !keys.contains(&old)), "{old}, {new}");
        }
    }
}
