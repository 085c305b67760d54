//! Runs the bodies of the fuzz targets on their corpora.

use crate::{bodies, corpus};

#[test]
fn pair_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "pair", bodies::pair);
}
