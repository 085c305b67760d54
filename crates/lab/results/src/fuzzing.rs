//! Functions for the fuzz targets alone.

use std::path::Path;

use crate::store::{GridManifest, Manifest, SweepPlan};
use crate::summary::Summary;
use crate::tables::{FlowTable, PauseTable, PortTable, RateTable, SwitchTable};

/// Reads the bytes as a summary, a manifest of either kind and a plan. A parsed value can be written, and the text parses
/// to the same value.
pub fn json(bytes: &[u8]) {
    check_round_trip::<Summary>(bytes);
    check_round_trip::<Manifest>(bytes);
    check_round_trip::<GridManifest>(bytes);
    check_round_trip::<SweepPlan>(bytes);
}

fn check_round_trip<T: serde::Serialize + serde::de::DeserializeOwned>(bytes: &[u8]) {
    if let Ok(read) = serde_json::from_slice::<T>(bytes) {
        let written = crate::json::text(&read);
        let read: T = serde_json::from_str(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
        assert_eq!(crate::json::text(&read), written);
    }
}

/// Reads the bytes as each of the tables.
pub fn table(bytes: &[u8]) {
    let path = Path::new("fuzz.parquet");
    let _ = FlowTable::read(bytes.to_vec(), path);
    let _ = PortTable::read(bytes.to_vec(), path);
    let _ = RateTable::read(bytes.to_vec(), path);
    let _ = SwitchTable::read(bytes.to_vec(), path);
    let _ = PauseTable::read(bytes.to_vec(), path);
}
