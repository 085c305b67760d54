//! Runs the bodies of the fuzz targets on their corpora.

#[path = "../fuzz/bodies.rs"]
mod bodies;
#[path = "../../../../tests/corpus.rs"]
mod corpus;

#[test]
fn json_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "json", bodies::json);
}

#[test]
fn table_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "table", bodies::table);
}

#[test]
fn claim_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "claim", bodies::claim);
}
