//! Build identity: version, commit, and versions of the code that decides results.

use results::Program;

pub(crate) use versions::{FEATURES, LAWS};

#[allow(dead_code, reason = "each constant is used by some module")]
mod versions {
    include!(concat!(env!("OUT_DIR"), "/versions.rs"));
}

/// Returns the identity of this program, for manifests.
pub fn program() -> Program {
    Program {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: env!("NARROWS_COMMIT").to_owned(),
        engine: versions::ENGINE.to_owned(),
        record: versions::RECORD.to_owned(),
    }
}
