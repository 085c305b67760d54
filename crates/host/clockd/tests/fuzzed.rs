//! Runs the body of the fuzz target on its corpus.

#![cfg(target_os = "linux")]

#[path = "../fuzz/bodies.rs"]
mod bodies;
#[path = "../../../../tests/corpus.rs"]
mod corpus;

use proptest::prelude::*;

#[test]
fn message_corpus() {
    corpus::replay(env!("CARGO_MANIFEST_DIR"), "message", bodies::message);
}

proptest! {
    // No file of seeds: a failure belongs into the corpus.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The same with random messages: probes, replies, reports and announcements of the right length, and others.
    #[test]
    fn random_messages(
        messages in proptest::collection::vec(
            (any::<u8>(), 0u8..4, prop_oneof![1u8..4, Just(129u8), any::<u8>()],
             prop_oneof![Just(44usize), Just(50), Just(2), Just(2 + 59 + 48), 0usize..300], any::<u64>()),
            0..20,
        ),
    ) {
        let mut bytes = Vec::new();
        for (pause, sender, kind, length, seed) in messages {
            bytes.extend([pause, sender, kind]);
            bytes.extend((length as u16).to_be_bytes());
            // Half of the content is zeros, as the padding of messages is.
            let byte = |index: usize| if index > length / 2 { 0 } else { (seed.rotate_left(index as u32 * 7) >> 3) as u8 };
            bytes.extend((0..length).map(byte));
        }
        bodies::message(&bytes);
    }
}
