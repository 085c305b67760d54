//! Run keys: a hash of all that a run's results depend on.
//!
//! What a run is built from is data when it begins: its set-up, its laws' settings, its flows' classes and groups. The
//! key covers it as data, so it does not matter which code made it. What happens while it runs is code: the key covers
//! the versions of the engine, of the run's laws and of the features that it uses. What records a finished run
//! (`results`) is no part of the key: its version is in the manifest.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use results::{CodeVersions, RunInfo};
use scenario::{BuiltRun, FlowClass};
use sha2::{Digest as _, Sha256};
use sim::{NodeId, Recovery};

use crate::features;
use crate::program::{FEATURES, LAWS, program};

/// Version of the key's composition.
const SCHEMA: u32 = 2;

/// The versions of the code that a run uses.
pub(crate) fn code_of(built: &BuiltRun) -> CodeVersions {
    let version = |all: &[(&str, &str)], name: &str| {
        let found = all.iter().find(|(known, _)| *known == name);
        // An external law's source is part of the run's data.
        found.map(|(_, version)| (name.to_owned(), (*version).to_owned()))
    };
    let laws: BTreeMap<String, String> = [FlowClass::Intra, FlowClass::Inter]
        .into_iter()
        .filter_map(|class| built.laws.law(class))
        .filter_map(|(law, _)| version(LAWS, &module_of(law.info().name)))
        .collect();
    let features = features_of(built).filter_map(|feature| version(FEATURES, feature)).collect();
    CodeVersions { engine: program().engine, laws, features }
}

/// The module of a law, by the law's name.
fn module_of(law: &str) -> String {
    law.replace('-', "_")
}

/// The optional features that a run uses, of those in [``GATES` of `roots.rs``].
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

/// The key of a run, in hexadecimal. `asked` is what the command line asked of the host beside the scenario.
pub(crate) fn key_of(info: &RunInfo, built: &BuiltRun, asked: &str) -> String {
    let mut data = DataHash::default();
    built.setup.hash(&mut data);
    built.laws.hash(&mut data);
    info.hash_content(&mut data);
    let RunInfo { scenario, run, label, point, inputs, code, .. } = info;
    let all = serde_json::json!([SCHEMA, asked, scenario, run, label, point, inputs, data.hexadecimal(), code]);
    files::sha256(all.to_string().as_bytes())
}

/// SHA-256 of data, the same on every machine: lengths have 64 bits, and numbers come in little-endian order.
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
