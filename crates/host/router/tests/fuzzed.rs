//! Runs the bodies of the fuzz targets on their corpora.

#[path = "../fuzz/bodies.rs"]
mod bodies;
#[path = "../../../../tests/corpus.rs"]
mod corpus;

#[test]
fn packet_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "packet", bodies::packet);
}
