//! Run keys: a hash of all that a run's results depend on.
//!
//! Everything a run is built from is data when it begins: its set-up, its laws' settings, its flows' classes and groups.
//! The key covers it as data, so it does not matter which code made it. Behaviour during the run is code: the key covers
//! the versions of the engine, of the run's laws and of the features that it uses. The code that stores a finished run
//! (`results`) is not part of the key: its version is in the manifest.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use fabric::NodeId;
use flow::Recovery;
use results::{CodeVersions, RunInfo};
use scenario::{BuiltRun, FlowClass};
use sha2::{Digest as _, Sha256};

use crate::features;
use crate::program::{FEATURES, LAWS, program};

/// Version of the key's composition.
const SCHEMA: u32 = 2;

/// Returns the versions of the code that a run uses.
pub(crate) fn code_of(built: &BuiltRun) -> CodeVersions {
    let version = |all: &[(&str, &str)], name: &str| {
        let Some((_, version)) = all.iter().find(|(known, _)| *known == name) else {
            unreachable!("`{name}` has no version: `roots.rs` lacks it");
        };
        (name.to_owned(), (*version).to_owned())
    };
    let laws: BTreeMap<String, String> = [FlowClass::Intra, FlowClass::Inter]
        .into_iter()
        .filter_map(|class| built.laws.law(class))
        .map(|(law, _)| version(LAWS, &module_of(law.info().name)))
        .collect();
    let features = features_of(built).map(|feature| version(FEATURES, feature)).collect();
    CodeVersions { engine: program().engine, laws, features }
}

/// Returns the module of a law, from the law's name.
fn module_of(law: &str) -> String {
    law.replace('-', "_")
}

/// Returns the optional features that a run uses: those of `GATES` in `roots.rs`.
fn features_of(built: &BuiltRun) -> impl Iterator<Item = &'static str> {
    let setup = &built.setup;
    let host = &setup.host;
    let of_law = |class| built.laws.law(class).is_some_and(|(law, _)| law.info().credits);
    let credits = host.receiver_credits || [FlowClass::Intra, FlowClass::Inter].into_iter().any(of_law);
    let nodes = (0..setup.network.nodes().len()).map(|node| NodeId(node as u32));
    let used = [
        (features::CODING, host.coding.is_some()),
        (features::CREDITS, credits),
        (features::BORDER_CONTROLLERS, !setup.modules.is_empty()),
        (features::ON_RAMP, host.on_ramp.is_some()),
        (features::SWITCH_REPLAY, { nodes }.any(|node| setup.shares(node))),
        (features::GO_BACK_N, matches!(host.recovery, Recovery::GoBackN { .. })),
    ];
    used.into_iter().filter_map(|(feature, is_used)| is_used.then_some(feature))
}

/// Returns the key of a run, in hexadecimal. `backend_options`: options of the emulator that the scenario does not have.
pub(crate) fn key_of(info: &RunInfo, built: &BuiltRun, backend_options: &str) -> String {
    let mut data = DataHash::default();
    built.setup.hash(&mut data);
    built.laws.hash(&mut data);
    info.hash_content(&mut data);
    let RunInfo { scenario, run, label, point, inputs, code, .. } = info;
    let all =
        serde_json::json!([SCHEMA, backend_options, scenario, run, label, point, inputs, data.hexadecimal(), code]);
    files::sha256(all.to_string().as_bytes())
}

/// SHA-256 of data. Lengths have 64 bits and numbers are little-endian, so keys are the same on x86-64 and `AArch64`; on a
/// big-endian machine slices of integers would be hashed otherwise.
#[derive(Default)]
struct DataHash {
    hash: Sha256,
    /// Many small writes are hashed together.
    waiting: Vec<u8>,
}

/// Bytes that are hashed at a time.
const CHUNK: usize = 1 << 16;

impl DataHash {
    fn hexadecimal(mut self) -> String {
        self.hash.update(&self.waiting);
        files::hexadecimal(&self.hash.finalize())
    }
}

impl Hasher for DataHash {
    fn write(&mut self, bytes: &[u8]) {
        if self.waiting.len() + bytes.len() > CHUNK {
            self.hash.update(&self.waiting);
            self.waiting.clear();
        }
        self.waiting.extend_from_slice(bytes);
    }

    fn write_u16(&mut self, number: u16) {
        self.write(&number.to_le_bytes());
    }

    fn write_u32(&mut self, number: u32) {
        self.write(&number.to_le_bytes());
    }

    fn write_u64(&mut self, number: u64) {
        self.write(&number.to_le_bytes());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        unreachable!("only the whole hash is used")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laws::catalog::LawKind;
    use scenario::Overrides;

    use crate::backend::Simulator;
    use crate::observer::Silent;
    use crate::recorder::NullRecorder;
    use crate::study::{Others, RunKey, Study};

    const TEXT: &str = r#"
name = "two"
title = "T"
topology = { kind = "dumbbell", left = 2, right = 2, rate = "10Gbps", delay = "20us" }
traffic = [{ kind = "long", flows = [[0, 2], [1, 3]], size = "1MB" }]
schemes = { dctcp = { law = "dctcp" }, mixed = { intra = "mprdma", inter = "expresspass" } }
"#;

    fn keys(text: &str) -> Vec<RunKey> {
        let scenario = scenario::parse(text, "two.toml", &Overrides::default()).unwrap();
        let study = Study {
            scenario: &scenario,
            backend: &Simulator::default(),
            watch: &Silent,
            notes: &NullRecorder,
            schemes: &[],
            shard: None,
            only: &[],
            from: &[],
            runs_missing: true,
            threads: Some(1),
            out: "unused".into(),
            replay: Vec::new(),
            claims: &[],
            tables: &[],
            force: false,
            others: Others::Keep,
        };
        study.keys().unwrap()
    }

    #[test]
    fn every_law_and_feature_has_a_version() {
        for law in LawKind::ALL {
            let module = module_of(law.info().name);
            assert!(LAWS.iter().any(|(known, _)| *known == module), "{module}");
        }
        for feature in [
            features::CODING,
            features::CREDITS,
            features::BORDER_CONTROLLERS,
            features::ON_RAMP,
            features::SWITCH_REPLAY,
            features::GO_BACK_N,
        ] {
            assert!(FEATURES.iter().any(|(known, _)| *known == feature), "{feature}");
        }
    }

    #[test]
    fn run_lists_code_versions_of_its_laws_and_features() {
        let [dctcp, mixed] = &keys(TEXT)[..] else { panic!("two schemes") };
        assert_eq!(dctcp.code.laws.keys().collect::<Vec<_>>(), ["dctcp"]);
        assert!(dctcp.code.features.is_empty(), "{:?}", dctcp.code.features);
        assert_eq!(mixed.code.laws.keys().collect::<Vec<_>>(), ["expresspass", "mprdma"]);
        assert_eq!(mixed.code.features.keys().collect::<Vec<_>>(), ["credits"]);
    }

    #[test]
    fn run_key_depends_on_build_inputs_only() {
        let base = keys(TEXT);
        assert_eq!(keys(TEXT), base);
        for (from, to) in [("title = \"T\"", "title = \"Another\""), ("20us", "20000ns"), ("1MB", "1000kB")] {
            assert_eq!(keys(&TEXT.replace(from, to)), base, "{to}");
        }
        for (from, to) in [
            ("20us", "21us"),
            ("1MB", "1001kB"),
            ("[[0, 2], [1, 3]]", "[[0, 3], [1, 2]]"),
            ("name = \"two\"", "name = \"three\""),
            ("title = \"T\"", "seed = 7"),
            ("law = \"dctcp\"", "law = \"dctcp\", params = { dctcp = { ewma_gain = 0.25 } }"),
        ] {
            let other = keys(&TEXT.replace(from, to));
            assert_ne!(other[0].key, base[0].key, "{to}");
        }
        // Another scheme's parameter is not this one's.
        let other =
            keys(&TEXT.replace("law = \"dctcp\"", "law = \"dctcp\", params = { dctcp = { ewma_gain = 0.25 } }"));
        assert_eq!(other[1], base[1]);
    }
}
