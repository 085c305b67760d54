//! A switch's tables in `config_db.json`: numbers are texts there, as SONiC's schema has them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::headroom::{Headroom, LosslessTraffic};

/// The keys of a `WRED_PROFILE`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Revision {
    /// Thresholds of drops and of marks are one: `green_min_threshold` and the like, with `ecn`.
    Shared,
    /// The model's revision of 2026-06-23: marks have thresholds of their own, `ecn_green_min_threshold` and the like.
    Separate,
}

/// The queue lengths from which marking begins, and from which everything is marked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Marks {
    /// Bytes of queue at which it begins.
    pub(crate) min_bytes: u64,
    /// Bytes of queue from which on every packet is marked.
    pub(crate) max_bytes: u64,
    /// The probability just under `max_bytes`, in per cent.
    pub(crate) percent: u64,
}

/// The limit of a priority group in the shared part of the buffer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Threshold {
    /// 2^n times the free buffer, n from -8 to 8.
    Dynamic(i32),
    /// A number of bytes.
    Static(u64),
}

/// A port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SonicPort {
    /// Such as `Ethernet0`.
    pub(crate) name: String,
    /// In Mb/s.
    pub(crate) speed_mbps: u64,
    /// In metres.
    pub(crate) cable_m: u64,
    /// Its marking, if it marks.
    pub(crate) marks: Option<Marks>,
    /// Headroom and threshold of a lossless priority, where the switch pauses.
    pub(crate) lossless: Option<(Headroom, Threshold)>,
}

/// A switch's memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SwitchMemory {
    /// All of it.
    pub(crate) total: u64,
    /// The part that is left after every port's reserves.
    pub(crate) shared: u64,
}

/// A switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Device {
    /// Its ports.
    pub(crate) ports: Vec<SonicPort>,
    /// Its memory, where its ports share one.
    pub(crate) buffer: Option<SwitchMemory>,
    /// The priorities of the traffic, 0 to 7.
    pub(crate) priorities: Vec<u8>,
    /// The lossless traffic.
    pub(crate) traffic: LosslessTraffic,
    /// The keys of marking.
    pub(crate) revision: Revision,
}

impl Device {
    /// The tables, as an object to be merged into a switch's `config_db.json`.
    pub(crate) fn tables(&self) -> Value {
        let mut tables = Map::new();
        let mut put = |name: &str, rows: BTreeMap<String, Value>| {
            if !rows.is_empty() {
                tables.insert(name.to_owned(), Value::Object(rows.into_iter().collect()));
            }
        };
        let lengths = self.ports.iter().map(|port| (port.name.clone(), json!(format!("{}m", port.cable_m))));
        put("CABLE_LENGTH", [("AZURE".to_owned(), Value::Object(lengths.collect()))].into());
        let queues = |of: &dyn Fn(&SonicPort) -> Option<Value>| -> BTreeMap<String, Value> {
            let of_port = |port: &SonicPort| of(port).map(|row| (port.name.clone(), row));
            let rows = self.ports.iter().filter_map(of_port);
            rows.flat_map(|(name, row)| self.priorities.iter().map(move |it| (format!("{name}|{it}"), row.clone())))
                .collect()
        };
        put("WRED_PROFILE", self.ports.iter().filter_map(|port| port.marks).map(|it| self.wred(&it)).collect());
        put("QUEUE", queues(&|port| port.marks.map(|marks| json!({ "wred_profile": marks.name() }))));
        let is_lossless = self.ports.iter().any(|port| port.lossless.is_some());
        if let (true, Some(buffer)) = (is_lossless, self.buffer) {
            let pattern = json!({
                "mtu": self.traffic.mtu_bytes.to_string(),
                "small_packet_percentage": self.traffic.small_percent.to_string(),
            });
            put("LOSSLESS_TRAFFIC_PATTERN", [("AZURE".to_owned(), pattern)].into());
            let pool =
                |kind: &str, mode: &str, size: u64| json!({ "type": kind, "mode": mode, "size": size.to_string() });
            let pools = [
                ("ingress_lossless_pool".to_owned(), pool("ingress", "dynamic", buffer.shared)),
                ("egress_lossless_pool".to_owned(), pool("egress", "static", buffer.total)),
            ];
            put("BUFFER_POOL", pools.into());
            let egress = json!({ "pool": "egress_lossless_pool", "size": "0", "static_th": buffer.total.to_string() });
            let profiles = self.ports.iter().filter_map(SonicPort::profile);
            put("BUFFER_PROFILE", profiles.chain([("egress_lossless_profile".to_owned(), egress)]).collect());
            put("BUFFER_PG", queues(&|port| port.profile().map(|(name, _)| json!({ "profile": name }))));
            put("BUFFER_QUEUE", queues(&|port| port.lossless.map(|_| json!({ "profile": "egress_lossless_profile" }))));
            let enabled = self.priorities.iter().map(u8::to_string).collect::<Vec<_>>().join(",");
            let paused = self.ports.iter().filter(|port| port.lossless.is_some());
            put(
                "PORT_QOS_MAP",
                paused.map(|port| (port.name.clone(), json!({ "pfc_enable": enabled.clone() }))).collect(),
            );
        }
        Value::Object(tables)
    }

    fn wred(&self, marks: &Marks) -> (String, Value) {
        let (min, max, percent) = (marks.min_bytes.to_string(), marks.max_bytes.to_string(), marks.percent.to_string());
        let row = match self.revision {
            Revision::Shared => json!({
                "wred_green_enable": "true",
                "ecn": "ecn_green",
                "green_min_threshold": min,
                "green_max_threshold": max,
                "green_drop_probability": percent,
            }),
            Revision::Separate => json!({
                "ecn": "ecn_green",
                "ecn_green_min_threshold": min,
                "ecn_green_max_threshold": max,
                "ecn_green_mark_probability": percent,
            }),
        };
        (marks.name(), row)
    }
}

impl Marks {
    fn name(&self) -> String {
        format!("NARROWS_{}_{}_{}", self.min_bytes, self.max_bytes, self.percent)
    }
}

impl SonicPort {
    /// The profile of its lossless priorities. SONiC names the profiles that it generates by speed and length; the
    /// threshold distinguishes profiles with the same speed and length.
    fn profile(&self) -> Option<(String, Value)> {
        let (headroom, threshold) = self.lossless?;
        let (key, value, word) = match threshold {
            Threshold::Dynamic(power) => ("dynamic_th", power.to_string(), "dynamic"),
            Threshold::Static(bytes) => ("static_th", bytes.to_string(), "static"),
        };
        let name = format!("pg_lossless_{}_{}m_{word}_{value}_profile", self.speed_mbps, self.cable_m);
        let mut row = json!({
            "pool": "ingress_lossless_pool",
            "xon": headroom.xon.to_string(),
            "xoff": headroom.xoff.to_string(),
            "size": headroom.size.to_string(),
        });
        if let Some(row) = row.as_object_mut() {
            row.insert(key.to_owned(), value.into());
        }
        Some((name, row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(revision: Revision) -> Device {
        let port = |name: &str, speed_mbps, cable_m, lossless| SonicPort {
            name: name.into(),
            speed_mbps,
            cable_m,
            marks: Some(Marks { min_bytes: 400_000, max_bytes: 1_600_000, percent: 20 }),
            lossless,
        };
        let headroom = Headroom { xoff: 100_352, xon: 18_432, size: 118_784 };
        Device {
            ports: vec![
                port("Ethernet0", 100_000, 5, Some((headroom, Threshold::Dynamic(0)))),
                port("Ethernet4", 100_000, 5, Some((headroom, Threshold::Dynamic(0)))),
                port("Ethernet8", 400_000, 40, None),
            ],
            buffer: Some(SwitchMemory { total: 33_554_432, shared: 30_000_000 }),
            priorities: vec![3, 4],
            traffic: LosslessTraffic { mtu_bytes: 1_024, small_percent: 100 },
            revision,
        }
    }

    #[test]
    fn tables_reference_each_other() {
        let tables = device(Revision::Shared).tables();
        let keys = |table: &str| tables[table].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys("BUFFER_PG"), ["Ethernet0|3", "Ethernet0|4", "Ethernet4|3", "Ethernet4|4"]);
        assert_eq!(keys("QUEUE").len(), 6);
        assert_eq!(tables["CABLE_LENGTH"]["AZURE"]["Ethernet8"], "40m");
        assert_eq!(tables["PORT_QOS_MAP"]["Ethernet4"]["pfc_enable"], "3,4");
        let profile = tables["BUFFER_PG"]["Ethernet0|3"]["profile"].as_str().unwrap();
        assert_eq!(tables["BUFFER_PROFILE"][profile]["xoff"], "100352");
        assert_eq!(tables["BUFFER_PROFILE"][profile]["dynamic_th"], "0");
        let pool = tables["BUFFER_PROFILE"][profile]["pool"].as_str().unwrap();
        assert_eq!(tables["BUFFER_POOL"][pool]["size"], "30000000");
        let wred = tables["QUEUE"]["Ethernet8|3"]["wred_profile"].as_str().unwrap();
        assert_eq!(tables["WRED_PROFILE"][wred]["green_max_threshold"], "1600000");
    }

    #[test]
    fn a_later_revision_has_keys_of_its_own() {
        let tables = device(Revision::Separate).tables();
        let row = tables["WRED_PROFILE"].as_object().unwrap().values().next().unwrap();
        assert_eq!(row["ecn_green_mark_probability"], "20");
        assert!(row.get("green_min_threshold").is_none());
    }

    #[test]
    fn a_switch_without_pauses_has_no_buffers() {
        let mut device = device(Revision::Shared);
        device.ports.iter_mut().for_each(|port| port.lossless = None);
        let tables = device.tables();
        let keys: Vec<&String> = tables.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["CABLE_LENGTH", "WRED_PROFILE", "QUEUE"]);
    }
}
