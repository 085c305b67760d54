//! Lost data is repaired from any remaining packets, if there are at least as many as data packets.

use codes::{Code, Decoder, Encoder, Engine, Error};
use proptest::prelude::*;
use proptest::sample::subsequence;

use crate::support::{arrived, block, packets, parity_of, places, slices, wanted};

/// Every way to lose up to `max` of `count` packets.
fn losses(count: usize, max: usize) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    let mut from = 0;
    while from < all.len() {
        let lost = all[from].clone();
        if lost.len() < max {
            let next = lost.last().map_or(0, |last| last + 1);
            all.extend((next..count).map(|place| [lost.as_slice(), &[place]].concat()));
        }
        from += 1;
    }
    all
}

fn every_loss(data: usize, parity: usize, length: usize, patterns: usize) {
    let all = losses(data + parity, parity);
    assert_eq!(all.len(), patterns);
    for engine in Engine::available() {
        let code = Code::with_engine(data, parity, engine).unwrap();
        let block = block(&code, length, 1);
        let mut decoder = Decoder::new(code.clone());
        for lost in &all {
            let wanted = wanted(&code, &block, lost);
            let mut repaired = vec![vec![0xaa; length]; wanted.len()];
            decoder.repair(&arrived(&block, lost), &mut places(&mut repaired)).unwrap();
            assert_eq!(repaired, wanted, "{engine}, lost {lost:?}");
        }
        // Any additional loss is too many.
        for lost in losses(data + parity, parity + 1).iter().filter(|lost| lost.len() > parity) {
            let error = Error::Lost { present: data - 1, needed: data };
            assert_eq!(decoder.repair(&arrived(&block, lost), &mut []), Err(error));
        }
    }
}

#[test]
fn every_loss_of_8_and_1() {
    every_loss(8, 1, 67, 1 + 9);
}

#[test]
fn every_loss_of_8_and_2() {
    every_loss(8, 2, 67, 1 + 10 + 45);
}

#[test]
fn every_loss_of_16_and_4() {
    every_loss(16, 4, 67, 1 + 20 + 190 + 1_140 + 4_845);
}

#[test]
fn largest_blocks_are_repaired() {
    for engine in Engine::available() {
        for (data, parity) in [(254, 1), (253, 2), (128, 127), (1, 254)] {
            let code = Code::with_engine(data, parity, engine).unwrap();
            let block = block(&code, 33, 2);
            let lost: Vec<usize> = (0..data).rev().step_by(2).take(parity).collect();
            let mut repaired = vec![vec![0; 33]; lost.len()];
            let mut decoder = Decoder::new(code.clone());
            decoder.repair(&arrived(&block, &lost), &mut places(&mut repaired)).unwrap();
            assert_eq!(repaired, wanted(&code, &block, &lost), "{engine}");
        }
    }
}

#[test]
fn evicted_plans_are_recomputed() {
    let code = Code::new(16, 4).unwrap();
    let block = block(&code, 100, 3);
    let mut decoder = Decoder::new(code.clone());
    let patterns = losses(20, 2);
    assert!(patterns.len() > 3 * Decoder::PLANS);
    for lost in patterns.iter().chain(patterns.iter().rev()).chain(&patterns) {
        let wanted = wanted(&code, &block, lost);
        let mut repaired = vec![vec![0; 100]; wanted.len()];
        decoder.repair(&arrived(&block, lost), &mut places(&mut repaired)).unwrap();
        assert_eq!(repaired, wanted);
    }
}

/// Data, parity, and places of a block that are lost.
fn shape_and_losses() -> impl Strategy<Value = (usize, usize, Vec<usize>)> {
    (1..=60_usize, 1..=20_usize).prop_flat_map(|(data, parity)| {
        let lost = subsequence((0..data + parity).collect::<Vec<_>>(), 0..=parity);
        (Just(data), Just(parity), lost)
    })
}

proptest! {
    #[test]
    fn any_loss_of_any_code_is_repaired(
        (data, parity, lost) in shape_and_losses(), length in 0..200_usize, seed: u64, which: usize,
    ) {
        let engines: Vec<Engine> = Engine::available().collect();
        let code = Code::with_engine(data, parity, engines[which % engines.len()]).unwrap();
        let block = block(&code, length, seed);
        let present: Vec<bool> = (0..code.packets()).map(|place| !lost.contains(&place)).collect();
        let plan = code.plan(&present).unwrap();
        prop_assert_eq!(plan.sources().len(), data);
        prop_assert!(plan.sources().iter().all(|&place| present[place]));
        let wanted = wanted(&code, &block, &lost);
        prop_assert_eq!(plan.lost().len(), wanted.len());
        let mut repaired = vec![vec![0x55; length]; wanted.len()];
        plan.repair(&arrived(&block, &lost), &mut places(&mut repaired)).unwrap();
        prop_assert_eq!(repaired, wanted);
    }

    /// A shortened code is the code with packets of zeros, and fewer parity packets are the first of more.
    #[test]
    fn shortened_and_longer_codes_agree(data in 1..=40_usize, parity in 1..=20_usize, more in 0..=20_usize, seed: u64) {
        let long = Code::new(data + more, parity + more).unwrap();
        let short = long.shortened(data).unwrap();
        let given = packets(data, 50, seed);
        let mut filled = given.clone();
        filled.resize(data + more, vec![0; 50]);
        let mut of_long = vec![vec![1; 50]; parity + more];
        let (mut of_short, mut of_fewer) = (of_long.clone(), vec![vec![2; 50]; parity]);
        long.encode(&slices(&filled), &mut places(&mut of_long)).unwrap();
        short.encode(&slices(&given), &mut places(&mut of_short)).unwrap();
        Code::new(data, parity).unwrap().encode(&slices(&given), &mut places(&mut of_fewer)).unwrap();
        prop_assert_eq!(&of_long, &of_short);
        prop_assert_eq!(&of_long[..parity], &of_fewer);
    }

    #[test]
    fn encoder_matches_encode(
        order in (1..=40_usize).prop_flat_map(|data| Just((0..data).collect::<Vec<_>>()).prop_shuffle()),
        parity in 1..=12_usize, length in 0..300_usize, more in 0..=5_usize, seed: u64, which: usize,
    ) {
        let engines: Vec<Engine> = Engine::available().collect();
        let code = Code::with_engine(order.len() + more, parity, engines[which % engines.len()]).unwrap();
        let mut encoder = Encoder::new(code.clone());
        // A block abandoned halfway leaves nothing behind.
        encoder.push(order[0], &vec![7; length + 3]).unwrap();
        encoder.clear();
        let data = packets(order.len(), length, seed);
        for (count, &index) in order.iter().enumerate() {
            let error = Error::Unfinished { given: count, expected: order.len() + more };
            prop_assert_eq!(parity_of(&encoder), Err(error));
            encoder.push(index, &data[index]).unwrap();
        }
        encoder.shorten(order.len()).unwrap();
        prop_assert!(encoder.is_finished());
        let mut parity = vec![vec![0; length]; parity];
        code.shortened(order.len()).unwrap().encode(&slices(&data), &mut places(&mut parity)).unwrap();
        prop_assert_eq!(parity_of(&encoder).unwrap(), parity.as_slice());
    }
}
