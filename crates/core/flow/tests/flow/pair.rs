//! Two ends of a connection under random operations: the fuzz target's body, on bytes that proptest draws.

use crate::bodies;
use proptest::prelude::*;

/// Returns bytes that mostly write, send, deliver and acknowledge, so that much is in flight when another event occurs.
fn script() -> impl Strategy<Value = Vec<u8>> {
    let usual = prop_oneof![
        2 => Just(vec![0, 200, 200]),
        3 => Just(vec![1, 40]),
        3 => (0..32u8).prop_map(|count| vec![3, count]),
        3 => Just(vec![9]),
        1 => Just(vec![6]),
        1 => (28..38u8).prop_map(|bits| vec![15, bits]),
        1 => Just(vec![16]),
        2 => proptest::collection::vec(any::<u8>(), 1..12),
    ];
    (any::<[u8; 2]>(), proptest::collection::vec(usual, 0..200))
        .prop_map(|(head, steps)| head.into_iter().chain(steps.into_iter().flatten()).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if std::env::var_os("NARROWS_ALL_CASES").is_some() { 4_096 } else { 512 }, ..ProptestConfig::default() })]

    #[test]
    fn two_ends_survive_any_operations(bytes in script()) {
        bodies::pair(&bytes);
    }
}
