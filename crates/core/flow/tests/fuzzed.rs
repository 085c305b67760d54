//! Runs the bodies of the fuzz targets on their corpora.

#[path = "../fuzz/bodies.rs"]
mod bodies;
#[path = "../../../../tests/corpus.rs"]
mod corpus;
#[path = "../fuzz/stream.rs"]
mod stream;

#[test]
fn pair_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "pair", bodies::pair);
}
