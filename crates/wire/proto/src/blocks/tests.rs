extern crate std;

use super::*;
use crate::frame::{Frame, Frames};
use crate::varint;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use codes::{Code, Engine};
use proptest::prelude::*;
use units::{Frac, Span, Time};

const MSS: u16 = 100;
const WINDOW: u64 = 1 << 20;
const RTT: Span = Span::from_ms(10);
const TIMEOUT: Span = Span::from_ms(30);
const START: Time = Time::from_ms(1_000);
const EIGHT_TWO: Shape = Shape { data: 8, parity: 2 };
/// No known losses: exactly the needed packets are retransmitted.
const LOSSLESS: Conditions = Conditions { loss: Frac::ZERO, bdp: 10_000 };
const LOSSY: Conditions = Conditions { loss: Frac::millionths(20_000), bdp: 10_000 };

fn pending(packets: u64) -> Pending {
    Pending { bytes: packets * u64::from(MSS), ends: true }
}

fn block_sender(coding: &str, window: u64) -> BlockSender {
    let mut block_sender = BlockSender::new(coding.parse().unwrap(), window);
    block_sender.set_timing(TIMEOUT, RTT);
    block_sender
}

fn block_receiver(window: u64) -> BlockReceiver {
    let mut block_receiver = BlockReceiver::new(window);
    block_receiver.set_timing(Span::from_ms(1), RTT);
    block_receiver
}

/// Returns a symbol of a content.
fn symbol(content: u64, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len as u64).map(|at| (mix(content * 1_000 + at) >> 32) as u8).collect();
    bytes.iter_mut().zip(content.to_be_bytes()).for_each(|(byte, of_content)| *byte ^= of_content);
    bytes
}

/// Sends these contents, coded. Returns their packets.
fn send(block_sender: &mut BlockSender, now: Time, contents: std::ops::Range<u64>) -> Vec<Tag> {
    let end = contents.end;
    let one = |content| {
        let offer = block_sender.offer(pending(end - content), MSS, LOSSLESS).expect("an offer");
        block_sender.push(now, offer, &symbol(content, 100), content);
        offer.tag
    };
    contents.map(one).collect()
}

fn send_parity(block_sender: &mut BlockSender, now: Time) -> Vec<(Tag, Vec<u8>)> {
    let mut all = Vec::new();
    loop {
        let (next, mut out) = (block_sender.next_parity(), vec![1]);
        assert_eq!(block_sender.has_parity(), next.is_some());
        let tag = block_sender.put_parity(now, &mut out);
        assert_eq!(tag, next);
        let Some(tag) = tag else { return all };
        if let Some(len) = block_sender.parity_len(tag) {
            assert_eq!(out.len(), 1 + len);
        }
        all.push((tag, parity_symbol(&out[1..], tag)));
    }
}

fn parity_symbol(frame: &[u8], tag: Tag) -> Vec<u8> {
    match Frames::new(frame).next() {
        Some(Ok(Frame::Parity { block, shape, place, symbol })) => {
            assert_eq!(Tag { block, shape, place }, tag);
            symbol.to_vec()
        }
        other => panic!("{other:?}"),
    }
}

fn delivered(block_sender: &mut BlockSender) -> Vec<u64> {
    std::iter::from_fn(|| block_sender.next_delivered()).collect()
}

fn resent(block_sender: &mut BlockSender, now: Time) -> Vec<Resend> {
    let all: Vec<Resend> =
        std::iter::from_fn(|| block_sender.has_resend().then(|| block_sender.next_resend(now).unwrap())).collect();
    assert_eq!(block_sender.next_resend(now), None);
    all
}

fn plain(contents: impl IntoIterator<Item = u64>) -> Vec<Resend> {
    contents.into_iter().map(|content| Resend::Plain { content }).collect()
}

/// Checks that parity is that of the naive engine over lengths, symbols and zeros.
fn check_parity(shape: Shape, lens: &[usize]) {
    let mut block_sender = BlockSender::new(CodingPolicy::Fixed(shape), WINDOW);
    for (place, &len) in lens.iter().enumerate() {
        let offer = block_sender.offer(pending(lens.len() as u64 - place as u64), MSS, LOSSLESS).unwrap();
        assert_eq!((offer.tag.block, offer.tag.place, offer.max_len), (0, place as u8, MSS));
        block_sender.push(START, offer, &symbol(place as u64, len), 0);
    }
    let longest = lens.iter().copied().max().unwrap() + LENGTH_BYTES;
    let padded: Vec<Vec<u8>> = lens
        .iter()
        .enumerate()
        .map(|(place, &len)| {
            let mut bytes = (len as u16).to_be_bytes().to_vec();
            bytes.extend(symbol(place as u64, len));
            bytes.resize(longest, 0);
            bytes
        })
        .collect();
    let data: Vec<&[u8]> = padded.iter().map(Vec::as_slice).collect();
    let mut parity = vec![vec![0; longest]; shape.parity.into()];
    let code = Code::with_engine(lens.len(), shape.parity.into(), Engine::Naive).unwrap();
    code.encode(&data, &mut parity.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>()).unwrap();
    let encoded: Vec<Vec<u8>> = send_parity(&mut block_sender, START).into_iter().map(|(_, symbol)| symbol).collect();
    assert_eq!(encoded, parity);
}

#[test]
fn parity_matches_the_reference() {
    check_parity(EIGHT_TWO, &[100, 100, 100, 100, 100, 100, 100, 100]);
    check_parity(EIGHT_TWO, &[3, 0, 99]);
    check_parity(Shape { data: 1, parity: 1 }, &[0]);
    check_parity(Shape { data: 32, parity: 16 }, &[7; 32]);
    check_parity(Shape { data: 47, parity: 1 }, &[1; 20]);
}

#[test]
fn parity_of_consecutive_blocks_does_not_mix() {
    let mut block_sender = block_sender("4,2", WINDOW);
    send(&mut block_sender, START, 0..4);
    let first: Vec<_> = send_parity(&mut block_sender, START);
    // A block that is abandoned halfway leaves nothing behind.
    send(&mut block_sender, START, 10..12);
    block_sender.give_up(1);
    let offer = block_sender.offer(pending(1), 10, LOSSY).unwrap();
    assert_eq!((offer.tag.block, offer.max_len), (2, 10));
    block_sender.push(START, offer, b"short", 20);
    let parity = send_parity(&mut block_sender, START);
    assert!(parity.iter().all(|(_, symbol)| symbol == b"\0\x05short"));
    assert_eq!(first.len(), 2);
}

#[test]
fn retransmissions_match_the_missing_count() {
    let mut block_sender = block_sender("8,2", WINDOW);
    let tags = send(&mut block_sender, START, 0..8);
    assert_eq!(send_parity(&mut block_sender, START).len(), 2);
    // Two lost packets are repaired by parity, and a third one is needed.
    block_sender.lost(tags[1]);
    block_sender.lost(tags[5]);
    assert!(!block_sender.has_resend());
    block_sender.lost(tags[6]);
    let later = START + RTT;
    assert_eq!(resent(&mut block_sender, later), [Resend::Source { tag: tags[1], content: 1 }]);
    // A request that names them all: one is in flight again, and no further copy is needed.
    block_sender.on_nack(0, bit(1) | bit(5) | bit(6), later).unwrap();
    assert!(!block_sender.has_resend());
    // The copy is lost, too.
    block_sender.lost(tags[1]);
    assert_eq!(resent(&mut block_sender, later), [Resend::Source { tag: tags[1], content: 1 }]);
    for tag in [0, 2, 3, 4, 7, 1].map(|place| tags[place]) {
        block_sender.acked(tag);
    }
    assert_eq!(delivered(&mut block_sender), [0, 2, 3, 4, 7, 1]);
    block_sender.on_block_whole(0, 1).unwrap();
    assert_eq!(delivered(&mut block_sender), [5, 6]);
    assert_eq!((block_sender.accounted_bytes(), block_sender.next_timer()), (0, Time::NEVER));
}

/// With losses, more packets are retransmitted than the block lacks, all of them missing ones.
#[test]
fn retransmissions_include_spares() {
    let mut block_sender = block_sender("8,2", WINDOW);
    let tags = send(&mut block_sender, START, 0..8);
    send_parity(&mut block_sender, START);
    block_sender.offer(pending(8), MSS, LOSSY).unwrap();
    for place in [0, 1, 2] {
        block_sender.lost(tags[place]);
    }
    let both = [0, 1].map(|place| Resend::Source { tag: tags[place], content: place as u64 });
    assert_eq!(resent(&mut block_sender, START + RTT), both);
}

/// A packet that was declared lost may arrive, and so may one of two copies.
#[test]
fn packets_in_flight_are_not_retransmitted() {
    let mut block_sender = block_sender("8,2", WINDOW);
    let tags = send(&mut block_sender, START, 0..8);
    send_parity(&mut block_sender, START);
    for place in [0, 1] {
        block_sender.lost(tags[place]);
    }
    block_sender.acked(tags[0]);
    block_sender.lost(tags[2]);
    assert!(!block_sender.has_resend());
    block_sender.on_nack(0, bit(1) | bit(2) | bit(3), START + RTT).unwrap();
    assert_eq!(resent(&mut block_sender, START + RTT), [Resend::Source { tag: tags[1], content: 1 }]);
    // Another packet with a requested copy: the first copy counts as lost, the second is in flight.
    let again = START + RTT + Span::from_ms(1);
    block_sender.on_nack(0, bit(3) | bit(4) | bit(5), again).unwrap();
    assert_eq!(resent(&mut block_sender, again), [Resend::Source { tag: tags[3], content: 3 }]);
    block_sender.lost(tags[3]);
    block_sender.lost(tags[4]);
    assert!(!block_sender.has_resend());
    block_sender.lost(tags[3]);
    assert_eq!(resent(&mut block_sender, again), [Resend::Source { tag: tags[2], content: 2 }]);
}

#[test]
fn a_request_is_served_once_per_round_trip() {
    let mut block_sender = block_sender("8,2", WINDOW);
    let tags = send(&mut block_sender, START, 0..8);
    let parity = send_parity(&mut block_sender, START);
    // A packet may still arrive within a round trip after it was sent.
    let missing = bit(0) | bit(2) | bit(8) | bit(9) | !first(10);
    block_sender.on_nack(0, missing, START + Span::from_ms(9)).unwrap();
    assert!(!block_sender.has_resend());
    let requested = START + Span::from_ms(12);
    block_sender.on_nack(0, missing, requested).unwrap();
    block_sender.on_nack(0, missing, requested).unwrap();
    let both = [0, 2].map(|place| Resend::Source { tag: tags[place], content: place as u64 });
    assert_eq!(resent(&mut block_sender, requested), both);
    block_sender.on_nack(0, missing, requested + Span::from_ms(9)).unwrap();
    assert!(!block_sender.has_resend());
    block_sender.on_nack(0, missing, requested + RTT).unwrap();
    assert_eq!(resent(&mut block_sender, requested + RTT).len(), 2);
    // Acknowledged packets have arrived, regardless of a request, and parity is as good as data.
    for place in [0, 2, 3, 4, 5, 6] {
        block_sender.acked(tags[place]);
    }
    block_sender.on_nack(0, first(10), requested + RTT.times(3)).unwrap();
    assert_eq!(
        resent(&mut block_sender, requested),
        [1, 7].map(|place| Resend::Source { tag: tags[place], content: place as u64 })
    );
    block_sender.lost(tags[1]);
    block_sender.lost(tags[7]);
    block_sender.lost(tags[1]);
    block_sender.lost(tags[7]);
    assert!(!block_sender.has_resend());
    block_sender.lost(parity[1].0);
    assert_eq!(resent(&mut block_sender, requested), [Resend::Source { tag: tags[1], content: 1 }]);
}

#[test]
fn retransmitted_parity_has_the_same_bytes() {
    let mut block_sender = block_sender("1,2", WINDOW);
    let data = send(&mut block_sender, START, 0..1);
    let parity = send_parity(&mut block_sender, START);
    block_sender.on_nack(0, first(3) & !bit(1), START + RTT).unwrap();
    assert!(!block_sender.has_resend(), "one packet is enough");
    for tag in [data[0], parity[0].0, parity[1].0] {
        block_sender.lost(tag);
    }
    assert_eq!(resent(&mut block_sender, START + RTT), [Resend::Source { tag: data[0], content: 0 }]);
    // The data must not be requested again that soon, the parity may be.
    block_sender.lost(data[0]);
    resent(&mut block_sender, START + RTT);
    block_sender.lost(data[0]);
    let mut out = Vec::new();
    assert_eq!(block_sender.parity_sent(), 2);
    assert!(block_sender.put_retransmission(parity[1].0, &mut out));
    assert_eq!(block_sender.parity_sent(), 3);
    assert_eq!(parity_symbol(&out, parity[1].0), parity[1].1);
    assert_eq!(block_sender.parity_len(parity[1].0), Some(out.len()));
    assert!(!block_sender.put_retransmission(data[0], &mut out) && block_sender.parity_len(data[0]).is_none());
    block_sender.on_block_whole(0, 1).unwrap();
    assert!(!block_sender.put_retransmission(parity[1].0, &mut out) && block_sender.parity_len(parity[1].0).is_none());
    assert_eq!(block_sender.parity_sent(), 3);
}

#[test]
fn unreported_symbols_are_sent_as_plain_frames() {
    let mut block_sender = block_sender("4,1", WINDOW);
    let tags = send(&mut block_sender, START, 0..4);
    assert_eq!(block_sender.next_timer(), START + TIMEOUT);
    let later = START + Span::from_ms(5);
    block_sender.acked(tags[2]);
    // While parity waits to be sent, the timeout is postponed.
    block_sender.on_timer(START + TIMEOUT);
    assert!(!block_sender.has_resend() && block_sender.has_parity());
    assert_eq!(block_sender.next_timer(), START + TIMEOUT.times(2));
    let left = later + TIMEOUT;
    send_parity(&mut block_sender, left);
    assert_eq!(block_sender.next_timer(), left + TIMEOUT);
    // Feedback postpones it.
    block_sender.on_nack(0, first(5), left + Span::from_ms(9)).unwrap();
    let end = left + Span::from_ms(9) + TIMEOUT;
    block_sender.on_timer(end.saturating_sub(Span::from_ps(1)));
    // Parity may still have been in flight.
    let again = resent(&mut block_sender, end);
    assert_eq!(again.len(), 2, "{again:?}");
    block_sender.on_timer(end + TIMEOUT);
    assert_eq!(resent(&mut block_sender, end + TIMEOUT), plain([0, 1, 3]));
    // The block is over: nothing changes any more.
    for &tag in &tags {
        block_sender.acked(tag);
    }
    block_sender.lost(tags[0]);
    block_sender.on_nack(0, first(5), end).unwrap();
    block_sender.on_block_whole(0, 1).unwrap();
    assert_eq!((delivered(&mut block_sender), resent(&mut block_sender, end)), (vec![2], vec![]));
    assert_eq!((block_sender.accounted_bytes(), block_sender.next_timer()), (0, Time::NEVER));
}

/// A waiting packet postpones the timeout, but its acknowledgement does not do so forever.
#[test]
fn an_unneeded_retransmission_blocks_nothing() {
    let mut block_sender = block_sender("1,1", WINDOW);
    let tag = send(&mut block_sender, START, 0..2)[0];
    send_parity(&mut block_sender, START);
    block_sender.on_nack(0, first(2), START + RTT).unwrap();
    assert!(block_sender.has_resend());
    block_sender.on_timer(START + TIMEOUT.times(2));
    block_sender.acked(tag);
    assert_eq!((delivered(&mut block_sender), block_sender.has_resend()), (vec![0], true));
    // The other block was given up at that time.
    assert_eq!(resent(&mut block_sender, START), plain([1]));
    assert_eq!((block_sender.accounted_bytes(), block_sender.next_timer()), (0, Time::NEVER));

    let tags = send(&mut block_sender, START, 2..3);
    let parity = send_parity(&mut block_sender, START);
    for tag in [tags[0], parity[0].0] {
        block_sender.lost(tag);
    }
    block_sender.on_timer(START + TIMEOUT);
    block_sender.acked(parity[0].0);
    assert_eq!(block_sender.next_timer(), START + TIMEOUT.times(2));
    assert_eq!(resent(&mut block_sender, START), [Resend::Source { tag: tags[0], content: 2 }]);
}

#[test]
fn a_partial_block_is_filled_or_times_out() {
    let mut block_sender = block_sender("4,1", WINDOW);
    send(&mut block_sender, START, 0..4);
    let offer = block_sender.offer(pending(4), MSS, LOSSY).unwrap();
    block_sender.push(START, offer, &symbol(4, 50), 4);
    // Pending data was withdrawn. Empty symbols fill the block.
    for content in 5..8 {
        let offer = block_sender.offer(pending(0), MSS, LOSSY).unwrap();
        block_sender.push(START, offer, &[], content);
    }
    assert_eq!(block_sender.offer(pending(0), MSS, LOSSY), None);
    assert_eq!(send_parity(&mut block_sender, START).len(), 2);

    let offer = block_sender.offer(pending(4), MSS, LOSSY).unwrap();
    block_sender.push(START, offer, &symbol(8, 50), 8);
    // Packets are smaller now. The symbol still fits.
    let smaller = block_sender.offer(pending(9), 60, LOSSY).unwrap();
    assert_eq!((smaller.tag.block, smaller.tag.place, smaller.max_len), (2, 1, 60));
    // Now it does not fit.
    let fresh = block_sender.offer(pending(9), 40, LOSSY).unwrap();
    assert_eq!((fresh.tag.block, fresh.tag.place, fresh.max_len), (3, 0, 40));
    assert_eq!(resent(&mut block_sender, START), plain([8]));
    block_sender.push(START, fresh, &[], 9);
    block_sender.on_timer(START + TIMEOUT);
    let late = resent(&mut block_sender, START + TIMEOUT);
    assert_eq!(late, plain([0, 1, 2, 3, 4, 5, 6, 7, 9]));
}

#[test]
fn a_sender_codes_what_fits_into_its_window() {
    let block = BLOCK_BYTES + 8 * SYMBOL_BYTES + 2 * (102 + SYMBOL_BYTES);
    for (window, blocks) in [(0, 0), (block - 1, 0), (block, 1), (3 * block + 100, 3)] {
        let mut block_sender = block_sender("8,2", window);
        let mut tags = Vec::new();
        while block_sender.offer(pending(80), MSS, LOSSY).is_some() {
            let from = tags.len() as u64;
            tags.extend(send(&mut block_sender, START, from..from + 8));
            assert!(block_sender.accounted_bytes() <= window);
        }
        assert_eq!((tags.len(), block_sender.accounted_bytes()), (8 * blocks, block * blocks as u64));
        // Complete blocks make room again.
        for &tag in &tags {
            block_sender.acked(tag);
        }
        assert_eq!((block_sender.accounted_bytes(), block_sender.has_parity()), (0, false));
        assert_eq!(block_sender.offer(pending(80), MSS, LOSSY).is_some(), blocks > 0);
    }
    // The window is for full packets; once it is known that they are short, more fit.
    let mut block_sender = block_sender("1,1", BLOCK_BYTES + 2 * SYMBOL_BYTES + 102);
    let offer = block_sender.offer(pending(1), MSS, LOSSY).unwrap();
    block_sender.push(START, offer, b"x", 0);
    assert_eq!(block_sender.accounted_bytes(), BLOCK_BYTES + 2 * SYMBOL_BYTES + 3);
}

#[test]
fn reports_of_unsent_blocks_are_errors() {
    let mut block_sender = block_sender("4,1", WINDOW);
    let unsent = |block, sent| Err(BlockError::Unsent { block, sent });
    assert_eq!((block_sender.on_nack(0, 1, START), block_sender.on_block_whole(0, 1)), (unsent(0, 0), unsent(0, 0)));
    send(&mut block_sender, START, 0..4);
    let offer = block_sender.offer(pending(4), MSS, LOSSY).unwrap();
    block_sender.push(START, offer, &[], 4);
    // Too few packets of the second block were sent for it to be complete.
    assert_eq!((block_sender.on_nack(1, u64::MAX, START), block_sender.on_nack(2, 1, START)), (Ok(()), unsent(2, 2)));
    assert_eq!(block_sender.on_block_whole(0, 2), unsent(1, 1));
    assert_eq!(block_sender.on_block_whole(0, varint::MAX + 1), unsent(1, 1));
    assert_eq!(block_sender.on_block_whole(varint::MAX, 1), unsent(varint::MAX, 1));
    assert_eq!(block_sender.on_block_whole(u64::MAX, u64::MAX), unsent(u64::MAX, 1));
    assert_eq!(delivered(&mut block_sender), []);
    assert_eq!(
        (block_sender.on_block_whole(0, 0), block_sender.on_block_whole(0, 1), block_sender.on_block_whole(0, 1)),
        (Ok(()), Ok(()), Ok(()))
    );
    assert_eq!(delivered(&mut block_sender), [0, 1, 2, 3]);
    assert_eq!(unsent(1, 1).unwrap_err().code(), 4);
    assert_eq!(unsent(1, 1).unwrap_err().to_string(), "a frame refers to block 1, but only blocks below 1 were sent");
}

#[test]
fn frames_that_contradict_each_other_are_errors() {
    let shape = Shape { data: 2, parity: 2 };
    let mut all = block_receiver(WINDOW);
    let mut source = |block, shape, place, symbol: &[u8]| all.on_source(START, block, shape, place, symbol);
    assert_eq!(source(0, shape, 2, b""), Err(BlockError::Place { shape, place: 2 }));
    for (data, parity) in [(0, 1), (1, 0), (1, 17), (47, 2), (255, 255)] {
        let shape = Shape { data, parity };
        assert_eq!(source(0, shape, 0, b""), Err(BlockError::Place { shape, place: 0 }));
    }
    source(0, shape, 0, b"abc").unwrap();
    source(0, shape, 0, b"abc").unwrap();
    let other = Shape { data: 2, parity: 1 };
    assert_eq!(source(0, other, 1, b""), Err(BlockError::Shape { block: 0, before: shape, now: other }));
    assert_eq!(source(0, shape, 0, b"abd"), Err(BlockError::Twice { block: 0, place: 0 }));
    assert_eq!(source(0, shape, 0, b"ab"), Err(BlockError::Twice { block: 0, place: 0 }));
    let long = vec![0; 65_536];
    assert_eq!(source(0, shape, 1, &long), Err(BlockError::Long { block: 0, len: 65_536, parity: 65_537 }));

    let mut parity = |block, place, symbol: &[u8]| all.on_parity(START, block, shape, place, symbol);
    assert_eq!(parity(0, 1, b"12345"), Err(BlockError::Place { shape, place: 1 }));
    assert_eq!(parity(0, 4, b"12345"), Err(BlockError::Place { shape, place: 4 }));
    assert_eq!(parity(0, 2, b"1"), Err(BlockError::Long { block: 0, len: 0, parity: 1 }));
    assert_eq!(parity(0, 2, b"1234"), Err(BlockError::Long { block: 0, len: 3, parity: 4 }));
    parity(1, 2, b"1234").unwrap();
    assert_eq!(parity(1, 2, b"1235"), Err(BlockError::Twice { block: 1, place: 2 }));
    assert_eq!(parity(1, 3, b"12345"), Err(BlockError::Parity { block: 1, before: 4, now: 5 }));
    let long = all.on_source(START, 1, shape, 0, b"123");
    assert_eq!(long, Err(BlockError::Long { block: 1, len: 3, parity: 4 }));

    // Parity alone determines the data: 2 bytes of length and 2 more.
    let single = Shape { data: 1, parity: 1 };
    let length = BlockError::RebuiltLength { block: 2, place: 0, len: 3, max_len: 2 };
    assert_eq!(all.on_parity(START, 2, single, 1, &[0, 3, 1, 1]), Err(length));
    let end = BlockError::RebuiltEnd { block: 3, place: 0 };
    assert_eq!(all.on_parity(START, 3, single, 1, &[0, 1, 1, 1]), Err(end));
    assert_eq!((length.code(), end.code()), (3, 3));
    assert_eq!(all.next_rebuilt(), None);
    assert_eq!(all.accounted_bytes(), 2 * BLOCK_BYTES + 2 * SYMBOL_BYTES + 3 + 4);
    assert_eq!(length.to_string(), "packet 0 of block 2 was rebuilt with 3 bytes, 2 at most are possible");
}

#[test]
fn requests_stop_when_a_block_is_given_up() {
    let mut all = block_receiver(WINDOW);
    all.on_source(START, 7, EIGHT_TWO, 3, b"symbol").unwrap();
    let newest = START + Span::from_ms(1);
    all.on_source(newest, 7, EIGHT_TWO, 0, b"symbol").unwrap();
    // A duplicate changes nothing.
    all.on_source(newest + Span::from_ms(1), 7, EIGHT_TWO, 0, b"symbol").unwrap();
    let mut due = newest + Span::from_us(1_000 + 10_000 / 4);
    for requests in 0..8 {
        assert_eq!(all.next_timer(), due);
        all.on_timer(due.saturating_sub(Span::from_ps(1)));
        assert_eq!(all.next_nack(), None, "{requests}");
        all.on_timer(due);
        all.on_timer(due);
        assert_eq!((all.next_nack(), all.next_nack()), (Some((7, first(10) & !bit(0) & !bit(3))), None));
        due += RTT;
    }
    all.on_timer(due);
    assert_eq!((all.next_nack(), all.next_timer(), all.accounted_bytes()), (None, Time::NEVER, 0));
    all.on_source(due, 7, EIGHT_TWO, 1, b"symbol").unwrap();
    assert_eq!((all.accounted_bytes(), all.next_timer()), (0, Time::NEVER));
    // Earlier blocks may still begin.
    all.on_source(due, 6, EIGHT_TWO, 1, b"symbol").unwrap();
    assert_eq!(all.accounted_bytes(), BLOCK_BYTES + SYMBOL_BYTES + 6);
    // A symbol that arrives before a request is sent postpones it.
    let due = all.next_timer();
    all.on_timer(due);
    all.on_source(due, 6, EIGHT_TWO, 2, b"symbol").unwrap();
    assert_eq!((all.next_nack(), all.next_timer()), (None, due + Span::from_us(3_500)));
    // It permits eight more requests.
    for place in [3, 4] {
        for _ in 0..8 {
            let due = all.next_timer();
            all.on_timer(due);
            assert!(all.next_nack().is_some());
        }
        all.on_source(due, 6, EIGHT_TWO, place, b"symbol").unwrap();
    }
    let due = all.next_timer();
    // With an RTT beyond the range of times, the timer is never due.
    all.set_timing(Span::MAX, Span::MAX);
    all.on_source(due, 6, EIGHT_TWO, 5, b"symbol").unwrap();
    assert!(all.next_timer() > Time::from_ps(i64::MAX as u64));
}

#[test]
fn complete_blocks_are_reported_if_symbols_were_rebuilt() {
    let shape = Shape { data: 2, parity: 1 };
    let mut all = block_receiver(WINDOW);
    let xor = [0, 1, b'a' ^ b'b'];
    for block in [0, 1, 2, 4, 5] {
        // Block 2 arrives without losses.
        all.on_source(START, block, shape, 0, b"a").unwrap();
        if block == 2 {
            all.on_source(START, block, shape, 1, b"b").unwrap();
            all.on_parity(START, block, shape, 2, &xor).unwrap();
        } else {
            all.on_parity(START, block, shape, 2, &[0, 0, xor[2]]).unwrap();
            assert_eq!(all.next_rebuilt(), Some(&b"b"[..]));
            assert_eq!(all.next_rebuilt(), None);
            assert!(all.has_block_whole());
        }
        assert_eq!((all.accounted_bytes(), all.next_timer()), (0, Time::NEVER));
    }
    assert_eq!(
        [all.next_block_whole(), all.next_block_whole(), all.next_block_whole()],
        [Some((0, 2)), Some((4, 2)), None]
    );
    all.on_block_whole_lost(4, 2);
    all.on_block_whole_lost(0, 0);
    assert_eq!((all.has_block_whole(), all.next_block_whole(), all.has_block_whole()), (true, Some((4, 2)), false));
    all.on_block_whole_lost(0, u64::MAX);
    assert_eq!(all.next_block_whole(), Some((0, u64::MAX)));
    // A sender that received a request is notified that no more is needed.
    all.on_source(START, 6, shape, 0, b"a").unwrap();
    all.on_timer(START + RTT);
    assert_eq!(all.next_nack(), Some((6, 0b110)));
    all.on_source(START + RTT, 6, shape, 1, b"b").unwrap();
    assert_eq!((all.next_block_whole(), all.next_rebuilt()), (Some((6, 1)), None));
    // Packets of a block that is over are read like any other, regardless of their contents.
    all.on_source(START, 0, shape, 1, b"else").unwrap();
    assert_eq!((all.accounted_bytes(), all.next_rebuilt()), (0, None));
    assert_eq!(all.recovered(), 4);
}

#[test]
fn the_oldest_block_is_forgotten() {
    let one = BLOCK_BYTES + SYMBOL_BYTES + 10;
    let mut all = block_receiver(3 * one);
    for block in [5, 3, 7] {
        all.on_source(START, block, EIGHT_TWO, 0, &[1; 10]).unwrap();
    }
    assert_eq!(all.accounted_bytes(), 3 * one);
    // One that is older than all of them does not begin.
    all.on_source(START, 2, EIGHT_TWO, 0, &[1; 10]).unwrap();
    // A newer one does.
    all.on_source(START, 8, EIGHT_TWO, 0, &[1; 10]).unwrap();
    assert_eq!(all.accounted_bytes(), 3 * one);
    all.on_timer(START + RTT);
    let requested: Vec<u64> = std::iter::from_fn(|| all.next_nack()).map(|(block, _)| block).collect();
    assert_eq!(BTreeSet::from_iter(requested), BTreeSet::from([5, 7, 8]));
    // A symbol more of the oldest costs the block itself, and those before it do not begin again.
    all.on_source(START, 5, EIGHT_TWO, 1, &[1; 10]).unwrap();
    all.on_source(START, 4, EIGHT_TWO, 1, &[1; 10]).unwrap();
    assert_eq!(all.accounted_bytes(), 2 * one);
    // A symbol that never fits displaces all blocks.
    all.on_source(START, 9, EIGHT_TWO, 0, &[1; 10_000]).unwrap();
    assert_eq!((all.accounted_bytes(), all.next_timer()), (0, Time::NEVER));
    all.on_source(START, 10, EIGHT_TWO, 0, &[1; 10]).unwrap();
    assert_eq!(all.accounted_bytes(), one);
}

/// Blocks of several shapes with the same packets present; there are more blocks than cached plans.
#[test]
fn symbols_are_rebuilt_for_every_shape() {
    let mut all = block_receiver(WINDOW);
    for block in 0..60 {
        let shape = Shape { data: 2 + (block / 8) as u8 % 2, parity: 1 + block as u8 % 8 };
        for place in 1..shape.data {
            all.on_source(START, block, shape, place, &[1]).unwrap();
        }
        let xor = if shape.data == 2 { 1 ^ 5 } else { 5 };
        let len = u8::from(shape.data == 3);
        all.on_parity(START, block, shape, shape.data, &[0, len, xor]).unwrap();
        assert_eq!(all.next_rebuilt(), Some(&[5][..]), "{shape:?}");
    }
}

/// Blocks that are over are stored in few ranges. An open block stays open, even if all blocks before some range count
/// as over.
#[test]
fn an_open_block_outlives_many_later_ones() {
    let (one, two) = (Shape { data: 1, parity: 1 }, Shape { data: 2, parity: 1 });
    let mut all = block_receiver(WINDOW);
    all.on_source(START, 0, two, 0, b"a").unwrap();
    for block in 1..=2 * spans::MAX_SPANS as u64 {
        all.on_source(START, 2 * block, one, 0, b"whole").unwrap();
    }
    // Block 1 has not begun, and counts as over by now.
    all.on_source(START, 1, two, 0, b"a").unwrap();
    assert_eq!(all.accounted_bytes(), BLOCK_BYTES + SYMBOL_BYTES + 1);
    all.on_parity(START, 0, two, 2, &[0, 0, b'a' ^ b'b']).unwrap();
    assert_eq!(all.next_rebuilt(), Some(&b"b"[..]));
}

/// Symbols that are short on arrival and long once rebuilt stay within the window, too.
#[test]
fn rebuilding_stays_within_the_window() {
    let shape = Shape { data: 40, parity: 8 };
    let mut all = block_receiver(100_000);
    for place in 0..39 {
        all.on_source(START, 0, shape, place, b"").unwrap();
    }
    all.on_parity(START, 0, shape, 40, &[0; 10_000]).unwrap();
    assert_eq!((all.accounted_bytes(), all.next_rebuilt()), (0, None));
    for place in 0..39 {
        all.on_source(START, 1, shape, place, b"").unwrap();
    }
    all.on_parity(START, 1, shape, 40, &[0; 1_000]).unwrap();
    assert_eq!((all.accounted_bytes(), all.next_rebuilt()), (1_000 + SYMBOL_BYTES, Some(&[][..])));
    assert_eq!(all.next_rebuilt(), None);
    assert_eq!(all.accounted_bytes(), 0);
}

/// splitmix64: numbers that look random.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0) % bound
    }
}

#[derive(Clone, Debug)]
enum Event {
    Data(Tag, Vec<u8>),
    Acked(Tag),
    Lost(Tag),
    Nack(u64, u64),
    Whole(u64, u64),
    WholeLost(u64, u64),
}

/// A sender and a receiver with a link between them that loses, delays and repeats packets.
struct TestLink {
    random: Random,
    /// Chances in percent.
    loss: u64,
    repeat: u64,
    acks_are_lost: bool,
    now: Time,
    events: BTreeMap<(Time, u64), Event>,
    block_sender: BlockSender,
    block_receiver: BlockReceiver,
    windows: [u64; 2],
    /// The symbol of each content.
    symbols: Vec<Vec<u8>>,
    /// Contents that the receiver has, and those that it rebuilt.
    read: BTreeSet<u64>,
    rebuilt: BTreeSet<(u64, u8)>,
    by_tag: BTreeMap<(u64, u8), u64>,
    returned: BTreeMap<u64, bool>,
}

impl TestLink {
    fn new(seed: u32, coding: &str, [loss, repeat]: [u64; 2], windows: [u64; 2], contents: u64) -> Self {
        let mut random = Random(u64::from(seed) << 32);
        let symbols = (0..contents).map(|content| symbol(content, random.below(93) as usize + 8)).collect();
        Self {
            random,
            loss,
            repeat,
            acks_are_lost: true,
            now: START,
            events: BTreeMap::new(),
            block_sender: block_sender(coding, windows[0]),
            block_receiver: block_receiver(windows[1]),
            windows,
            symbols,
            read: BTreeSet::new(),
            rebuilt: BTreeSet::new(),
            by_tag: BTreeMap::new(),
            returned: BTreeMap::new(),
        }
    }

    fn after(&mut self, us: u64, event: Event) {
        let spread = self.random.below(2_000);
        let at = self.now + Span::from_us((us + spread) as i64);
        self.events.insert((at, self.random.0), event);
    }

    /// Sends a packet.
    fn transmit(&mut self, tag: Tag, symbol: &[u8]) {
        if self.random.below(100) < self.loss {
            self.after(12_000, Event::Lost(tag));
            return;
        }
        self.after(4_000, Event::Data(tag, symbol.to_vec()));
        if self.random.below(100) < self.repeat {
            // The network duplicates packets. Packet numbers would detect that, but the blocks must not depend on it.
            self.after(6_000, Event::Data(tag, symbol.to_vec()));
        }
        // Acknowledgements are lost, too.
        let lost = self.acks_are_lost && self.random.below(200) < self.loss;
        self.after(10_000, if lost { Event::Lost(tag) } else { Event::Acked(tag) });
    }

    fn transmit_parity(&mut self, frame: &[u8], tag: Tag) {
        let symbol = parity_symbol(frame, tag);
        self.transmit(tag, &symbol);
    }

    /// Sends one packet if there is one.
    fn send(&mut self, fresh: &mut std::ops::Range<u64>) -> bool {
        let (now, mut frame) = (self.now, Vec::new());
        match self.block_sender.next_resend(now) {
            Some(Resend::Source { tag, content }) => {
                assert_eq!(self.by_tag.get(&(tag.block, tag.place)), Some(&content));
                let symbol = self.symbols[content as usize].clone();
                self.transmit(tag, &symbol);
                return true;
            }
            Some(Resend::Parity { tag }) => {
                assert!(self.block_sender.put_retransmission(tag, &mut frame));
                self.transmit_parity(&frame, tag);
                return true;
            }
            Some(Resend::Plain { content }) => {
                assert_eq!(self.returned.insert(content, false), None);
                return true;
            }
            None => {}
        }
        if let Some(tag) = self.block_sender.put_parity(now, &mut frame) {
            self.transmit_parity(&frame, tag);
            return true;
        }
        let left = fresh.end - fresh.start;
        let Some(content) = fresh.next() else { return false };
        match self.block_sender.offer(pending(left), MSS, LOSSY) {
            Some(offer) => {
                let symbol = self.symbols[content as usize].clone();
                self.block_sender.push(now, offer, &symbol, content);
                self.by_tag.insert((offer.tag.block, offer.tag.place), content);
                self.transmit(offer.tag, &symbol);
            }
            None => assert_eq!(self.returned.insert(content, false), None),
        }
        true
    }

    fn read(&mut self, tag: (u64, u8), symbol: &[u8]) {
        let content = self.by_tag[&tag];
        assert_eq!(symbol, self.symbols[content as usize]);
        self.read.insert(content);
    }

    fn handle(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Data(Tag { block, shape, place }, symbol) if place < shape.data => {
                self.block_receiver.on_source(now, block, shape, place, &symbol).unwrap();
                self.read((block, place), &symbol);
            }
            Event::Data(Tag { block, shape, place }, symbol) => {
                self.block_receiver.on_parity(now, block, shape, place, &symbol).unwrap();
            }
            Event::Acked(tag) => self.block_sender.acked(tag),
            Event::Lost(tag) => self.block_sender.lost(tag),
            Event::Nack(block, missing) => self.block_sender.on_nack(block, missing, now).unwrap(),
            Event::Whole(first, count) => self.block_sender.on_block_whole(first, count).unwrap(),
            Event::WholeLost(first, count) => self.block_receiver.on_block_whole_lost(first, count),
        }
    }

    /// Delivers the rebuilt symbols and the reports of the receiver.
    fn deliver_reports(&mut self) {
        while let Some(symbol) = self.block_receiver.next_rebuilt().map(<[u8]>::to_vec) {
            // Its bytes identify it: symbols differ.
            let content =
                self.symbols.iter().position(|known| *known == symbol).expect("a symbol that was sent") as u64;
            let (&tag, _) = self.by_tag.iter().find(|&(_, &known)| known == content).unwrap();
            assert!(self.rebuilt.insert(tag), "{tag:?} was rebuilt twice");
            self.read.insert(content);
        }
        while let Some((block, missing)) = self.block_receiver.next_nack() {
            if self.random.below(100) >= self.loss {
                self.after(4_000, Event::Nack(block, missing));
            }
        }
        while let Some((first, count)) = self.block_receiver.next_block_whole() {
            let lost = self.random.below(100) < self.loss;
            let event = if lost { Event::WholeLost(first, count) } else { Event::Whole(first, count) };
            self.after(if lost { 12_000 } else { 4_000 }, event);
        }
        while let Some(content) = self.block_sender.next_delivered() {
            assert!(self.read.contains(&content), "{content} counts as delivered and is not");
            assert_eq!(self.returned.insert(content, true), None);
        }
        assert!(
            self.block_sender.accounted_bytes() <= self.windows[0]
                && self.block_receiver.accounted_bytes() <= self.windows[1]
        );
    }

    fn run(mut self, contents: u64) -> Self {
        let mut fresh = 0..contents;
        loop {
            let sent = self.send(&mut fresh);
            self.deliver_reports();
            let step = self.now + Span::from_us(100);
            let event = self.events.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
            let timers = [self.block_sender.next_timer(), self.block_receiver.next_timer()];
            let next = event.min(timers[0]).min(timers[1]).min(if sent { step } else { Time::NEVER });
            if !next.is_set() {
                return self;
            }
            assert!(next < START + Span::from_s(60), "it does not end");
            self.now = self.now.max(next);
            self.block_sender.on_timer(self.now);
            self.block_receiver.on_timer(self.now);
            while let Some(first) = self.events.first_entry().filter(|first| first.key().0 <= self.now) {
                let event = first.remove();
                self.handle(event);
            }
            self.deliver_reports();
        }
    }
}

/// With memory for all blocks and exact acknowledgements, blocks alone repair coded packets: none times out.
#[test]
fn blocks_repair_what_a_link_loses() {
    for (coding, loss) in [("8,2", 0), ("8,2", 5), ("8,2", 30), ("32,4", 5), ("1,1", 10)] {
        let mut link = TestLink::new(loss, coding, [loss.into(), 0], [WINDOW; 2], 300);
        link.acks_are_lost = false;
        link.block_sender.set_timing(TIMEOUT.times(10), RTT);
        let link = link.run(300);
        assert!(link.returned.len() == 300 && link.returned.values().all(|&delivered| delivered), "{coding}, {loss} %");
        assert!(link.read.len() == 300 && (loss == 0 || link.rebuilt.len() > 5), "{coding}, {loss} %");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Each content is returned once, for any behaviour of the link: delivered only if the receiver has it, and memory is
    /// bounded.
    #[test]
    fn every_content_is_returned_once(
        seed: u32,
        coding in prop::sample::select(vec!["8,2", "1,1", "3,4", "32,16", "tail", "auto", "auto=50%", "off"]),
        contents in 1..150u64,
        loss in 0..50u64,
        repeat in 0..20u64,
        windows in (500..100_000u64, 500..100_000u64),
    ) {
        let link = TestLink::new(seed, coding, [loss, repeat], [windows.0, windows.1], contents).run(contents);
        prop_assert!(link.returned.keys().copied().eq(0..contents));
        prop_assert_eq!((link.block_sender.accounted_bytes(), link.block_receiver.accounted_bytes()), (0, 0));
    }

    /// A dishonest sender costs no more memory than the window, and never causes a panic.
    #[test]
    fn a_malicious_sender_is_survived(
        window in 0..40_000u64,
        steps in prop::collection::vec((0..40u64, any::<u64>(), 0..50u8, 0..600usize), 1..400),
    ) {
        let mut all = block_receiver(window);
        let mut now = START;
        for (action, random, place, len) in steps {
            let block = if action == 0 { random } else { random % 20 };
            let shape = match action % 5 {
                0 => Shape { data: random as u8, parity: (random >> 8) as u8 },
                _ => Shape { data: 2 + block as u8 % 20, parity: 1 + block as u8 % 16 },
            };
            let (len, bytes) = (if action % 3 == 0 { len } else { 50 }, (random >> 40) as u8 * u8::from(action % 7 == 0));
            let symbol = vec![bytes; len];
            let place = place % shape.data.saturating_add(shape.parity).saturating_add(1);
            let _ = if place < shape.data {
                all.on_source(now, block, shape, place, &symbol)
            } else {
                all.on_parity(now, block, shape, place, &symbol)
            };
            prop_assert!(all.accounted_bytes() <= window);
            prop_assert!(all.memory() <= 2 * window as usize + (1 << 19));
            now += Span::from_us(200);
            match action {
                1..10 => while all.next_rebuilt().is_some() {},
                10..15 => all.on_timer(now),
                15 => while all.next_nack().is_some() {},
                16 => while all.next_block_whole().is_some() {},
                _ => {}
            }
        }
        while all.next_rebuilt().is_some() {}
        now += Span::from_s(10);
        for _ in 0..20 {
            now += RTT;
            all.on_timer(now);
        }
        prop_assert_eq!((all.accounted_bytes(), all.next_timer()), (0, Time::NEVER));
    }

    /// A dishonest receiver gets errors or the packets it requests; each content is returned once, and memory is bounded.
    #[test]
    fn a_malicious_receiver_is_survived(
        window in 0..40_000u64,
        coding in prop::sample::select(vec!["8,2", "1,3", "4,16", "47,1", "auto=100%"]),
        steps in prop::collection::vec((0..20u8, any::<u64>(), 0..50u8), 1..400),
    ) {
        let (mut block_sender, mut now) = (block_sender(coding, window), START);
        let (mut contents, mut tags, mut returned) = (0, Vec::new(), BTreeMap::new());
        let mut out = Vec::new();
        for (action, random, place) in steps {
            now += Span::from_us(500);
            let number = if random % 16 == 0 { random } else { (random >> 8) % 30 };
            match action {
                0..9 => {
                    if let Some(offer) = block_sender.offer(pending(1 + random % 50), MSS, LOSSY) {
                        block_sender.push(now, offer, &symbol(contents, place.into()), contents);
                        tags.push(offer.tag);
                        contents += 1;
                    }
                }
                9..11 => tags.extend(block_sender.put_parity(now, &mut out)),
                11 => {
                    let _ = block_sender.on_nack(number, random, now);
                }
                12 => {
                    let _ = block_sender.on_block_whole(number, if random % 8 == 0 { random } else { 1 + (random >> 32) % 3 });
                }
                13 | 14 => {
                    // The same packet may even be reported twice.
                    if let Some(&tag) = tags.get(random as usize % 100) {
                        if action == 13 { block_sender.acked(tag) } else { block_sender.lost(tag) }
                    }
                }
                15 => block_sender.on_timer(now),
                16 => block_sender.give_up(number),
                17 => block_sender.set_timing(Span::from_us((random % 9_000) as i64), Span::from_us((random % 3_000) as i64)),
                _ => {
                    if let Some(Resend::Plain { content }) = block_sender.next_resend(now) {
                        prop_assert_eq!(returned.insert(content, false), None);
                    }
                }
            }
            out.clear();
            prop_assert!(block_sender.accounted_bytes() <= window);
            prop_assert!(block_sender.memory() <= 2 * window as usize + (1 << 19));
        }
        // All remaining contents are returned after a timeout, once waiting packets are sent.
        for _ in 0..3 {
            while block_sender.put_parity(now, &mut out).is_some() {}
            while let Some(resend) = block_sender.next_resend(now) {
                if let Resend::Plain { content } = resend {
                    prop_assert_eq!(returned.insert(content, false), None);
                }
            }
            now += Span::from_ms(60);
            block_sender.on_timer(now);
        }
        while let Some(content) = block_sender.next_delivered() {
            prop_assert_eq!(returned.insert(content, true), None);
        }
        prop_assert!(returned.keys().copied().eq(0..contents));
        prop_assert_eq!((block_sender.accounted_bytes(), block_sender.next_timer(), block_sender.has_parity()), (0, Time::NEVER, false));
    }
}
