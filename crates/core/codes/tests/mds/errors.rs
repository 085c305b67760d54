//! Every invalid argument is reported, and nothing is written then.

use codes::{Code, Decoder, Encoder, Error, MAX_PACKETS, Role};

use crate::support::{arrived, block, parity_of};

#[test]
fn invalid_shapes_are_rejected() {
    let max = MAX_PACKETS;
    for (data, parity) in [(0, 1), (1, 0), (0, 0), (max, 1), (1, max), (usize::MAX, 1), (usize::MAX, usize::MAX)] {
        let error = Code::new(data, parity).unwrap_err();
        assert_eq!(error, Error::Shape { data, parity });
        let text =
            format!("{data} data and {parity} parity packets: a block has at least one of each and at most 255 in all");
        assert_eq!(error.to_string(), text);
    }
    let code = Code::new(8, 2).unwrap();
    assert_eq!((code.data(), code.parity(), code.packets()), (8, 2, 10));
    assert_eq!(code.shortened(9).unwrap_err(), Error::Shape { data: 9, parity: 2 });
    assert_eq!(code.shortened(0).unwrap_err(), Error::Shape { data: 0, parity: 2 });
    assert_eq!(code.shortened(3).unwrap().packets(), 5);
}

#[test]
fn invalid_encode_arguments_are_rejected() {
    let code = Code::new(3, 2).unwrap();
    let (packet, long): (&[u8], &[u8]) = (&[1; 10], &[1; 11]);
    let mut parity = [[9; 10]; 2];
    let [p, q] = &mut parity;
    let mut encode = |data: &[&[u8]]| code.encode(data, &mut [p.as_mut_slice(), q]).unwrap_err();
    let count = |role, given, expected| Error::Count { role, given, expected };
    assert_eq!(encode(&[packet, packet]), count(Role::Data, 2, 3));
    assert_eq!(encode(&[packet; 4]), count(Role::Data, 4, 3));
    assert_eq!(encode(&[]), count(Role::Data, 0, 3));
    assert_eq!(encode(&[packet, packet, long]), Error::Length { role: Role::Data, index: 2, given: 11, expected: 10 });
    assert_eq!(encode(&[long; 3]), Error::Length { role: Role::Parity, index: 0, given: 10, expected: 11 });
    assert_eq!(parity, [[9; 10]; 2]);
    let [p, _] = &mut parity;
    let error = code.encode(&[packet; 3], &mut [p]).unwrap_err();
    assert_eq!(error, count(Role::Parity, 1, 2));
    assert_eq!(error.to_string(), "1 parity packets given where this block has 2");
    assert_eq!(parity, [[9; 10]; 2]);
}

#[test]
fn invalid_repair_arguments_are_rejected() {
    let code = Code::new(4, 2).unwrap();
    let block = block(&code, 20, 1);
    let mut decoder = Decoder::new(code.clone());
    let mut out = [[9; 20]; 2];
    let [a, b] = &mut out;
    let mut repair = |block: &[Option<&[u8]>], places: usize| {
        decoder.repair(block, &mut [a.as_mut_slice(), b][..places]).unwrap_err()
    };
    let count = |role, given, expected| Error::Count { role, given, expected };
    assert_eq!(repair(&arrived(&block, &[1])[..5], 1), count(Role::Block, 5, 6));
    assert_eq!(repair(&[], 1), count(Role::Block, 0, 6));
    assert_eq!(repair(&arrived(&block, &[1]), 2), count(Role::Repaired, 2, 1));
    assert_eq!(repair(&arrived(&block, &[1, 2]), 1), count(Role::Repaired, 1, 2));
    assert_eq!(repair(&arrived(&block, &[4, 5]), 1), count(Role::Repaired, 1, 0));
    let lost = repair(&arrived(&block, &[0, 1, 5]), 2);
    assert_eq!(lost, Error::Lost { present: 3, needed: 4 });
    assert_eq!(lost.to_string(), "3 packets of the block are present and 4 are needed");
    let mut unequal = arrived(&block, &[1]);
    unequal[4] = Some(&block[4][1..]);
    assert_eq!(repair(&unequal, 1), Error::Length { role: Role::Block, index: 4, given: 19, expected: 20 });
    let short: Vec<_> = arrived(&block, &[1]).into_iter().map(|packet| packet.map(|packet| &packet[1..])).collect();
    assert_eq!(repair(&short, 1), Error::Length { role: Role::Repaired, index: 0, given: 20, expected: 19 });
    assert_eq!(out, [[9; 20]; 2]);

    assert_eq!(code.plan(&[true; 5]).unwrap_err(), count(Role::Block, 5, 6));
    let plan = code.plan(&[true, false, true, true, true, true]).unwrap();
    assert_eq!((plan.lost(), plan.sources()), (&[1][..], &[0, 2, 3, 4][..]));
    let mut one = [9; 20];
    assert_eq!(plan.repair(&arrived(&block, &[1, 2]), &mut [&mut one]), Err(Error::Missing { index: 2 }));
    assert_eq!(one, [9; 20]);
    // Packets outside the plan may be present or not.
    plan.repair(&arrived(&block, &[5]), &mut [&mut one]).unwrap();
    assert_eq!(one, block[1][..]);
}

#[test]
fn encoder_errors_change_nothing() {
    let mut encoder = Encoder::new(Code::new(3, 2).unwrap());
    let index = |index, count| Err(Error::Index { role: Role::Data, index, count });
    assert_eq!(encoder.push(3, &[1; 8]), index(3, 3));
    assert_eq!(encoder.push(usize::MAX, &[1; 8]), index(usize::MAX, 3));
    encoder.push(1, &[1; 8]).unwrap();
    assert_eq!(encoder.push(1, &[1; 8]), Err(Error::Twice { index: 1 }));
    assert_eq!(encoder.push(0, &[1; 9]), Err(Error::Length { role: Role::Data, index: 0, given: 9, expected: 8 }));
    assert_eq!(encoder.shorten(1), index(1, 1));
    assert_eq!(encoder.shorten(0), Err(Error::Shape { data: 0, parity: 2 }));
    assert_eq!(encoder.shorten(4), Err(Error::Shape { data: 4, parity: 2 }));
    encoder.shorten(2).unwrap();
    assert_eq!(encoder.push(2, &[1; 8]), index(2, 2));
    assert_eq!(parity_of(&encoder), Err(Error::Unfinished { given: 1, expected: 2 }));
    encoder.push(0, &[3; 8]).unwrap();
    assert_eq!(parity_of(&encoder).unwrap()[0], [2; 8]);
    // Errors changed nothing, and the next block has all its packets again.
    encoder.clear();
    assert_eq!(parity_of(&encoder), Err(Error::Unfinished { given: 0, expected: 3 }));
    encoder.push(2, &[]).unwrap();
    assert_eq!(encoder.push(0, &[1]), Err(Error::Length { role: Role::Data, index: 0, given: 1, expected: 0 }));
}
