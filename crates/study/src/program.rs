//! Which program this is.

use results::Program;

/// This program, for manifests.
pub fn program() -> Program {
    Program {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: env!("NARROWS_COMMIT").to_owned(),
        engine: env!("NARROWS_ENGINE").to_owned(),
    }
}
