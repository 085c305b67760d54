//! Runs the bodies of the fuzz targets on their corpora.

#[path = "../fuzz/bodies.rs"]
mod bodies;
#[path = "../../../../tests/corpus.rs"]
mod corpus;

#[test]
fn inet_diag_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "inet_diag", bodies::inet_diag);
}
