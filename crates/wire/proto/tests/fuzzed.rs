//! Runs the bodies of the fuzz targets on their corpora.

#[path = "../fuzz/bodies.rs"]
mod bodies;
#[path = "../../../../tests/corpus.rs"]
mod corpus;

#[test]
fn datagram_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "datagram", bodies::datagram);
}

#[test]
fn frames_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "frames", bodies::frames);
}

#[test]
fn parameters_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "parameters", bodies::parameters);
}

#[test]
fn sealed_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "sealed", bodies::sealed);
}

#[test]
fn strangers_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "strangers", bodies::strangers);
}
