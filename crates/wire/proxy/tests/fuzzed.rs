//! Runs the body of the fuzz target on its corpus.

#[path = "../fuzz/bodies.rs"]
mod bodies;
#[path = "../../../../tests/corpus.rs"]
mod corpus;

#[test]
fn socks_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "socks", bodies::socks);
}
