//! A decoder returns an error or a codeword for any input: repaired data, encoded again, has the parity that it was
//! repaired with. `cargo +nightly fuzz run repair` in `crates/core/codes`.

#![no_main]

use codes::{Code, Decoder, Engine, Error};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [data, parity, engine, length, surplus, rest @ ..] = input else { return };
    let engines: Vec<Engine> = Engine::available().collect();
    let engine = engines[usize::from(*engine) % engines.len()];
    let (data, parity) = (usize::from(*data), usize::from(*parity));
    let Ok(code) = Code::with_engine(data, parity, engine) else {
        assert!(data == 0 || parity == 0 || data + parity > codes::MAX_PACKETS);
        return;
    };
    // A byte per packet states whether it arrived and how much is cut off it, then the packets follow.
    let (flags, bytes) = rest.split_at(rest.len().min(code.packets()));
    let length = usize::from(*length);
    let mut packets = bytes.chunks(length.max(1)).filter(|packet| packet.len() >= length);
    let block: Vec<Option<&[u8]>> = flags
        .iter()
        .map(|flag| {
            let packet = packets.next().map(|packet| &packet[..length])?;
            (flag & 1 == 0).then(|| &packet[..length.saturating_sub(usize::from(flag >> 7))])
        })
        .collect();
    let lost: Vec<usize> = (0..data).filter(|&index| block.get(index).is_none_or(Option::is_none)).collect();
    let present = block.iter().flatten().count();
    let mut repaired = vec![vec![0; length]; lost.len() + usize::from(surplus & 1)];
    let mut outputs: Vec<&mut [u8]> = repaired.iter_mut().map(Vec::as_mut_slice).collect();
    match Decoder::new(code.clone()).repair(&block, &mut outputs) {
        Ok(()) => {}
        Err(Error::Lost { .. }) => return assert!(present < data),
        Err(Error::Count { .. }) => return assert!(block.len() != code.packets() || surplus & 1 == 1),
        Err(Error::Length { .. }) => return assert!(flags.iter().any(|flag| flag >> 7 == 1)),
        Err(error) => panic!("{error}"),
    }
    if lost.is_empty() {
        return;
    }
    let mut complete: Vec<&[u8]> = block[..data].iter().map(|packet| packet.unwrap_or(&[])).collect();
    for (&index, packet) in lost.iter().zip(&repaired) {
        complete[index] = packet;
    }
    let mut encoded = vec![vec![0; length]; parity];
    let mut outputs: Vec<&mut [u8]> = encoded.iter_mut().map(Vec::as_mut_slice).collect();
    assert_eq!(code.encode(&complete, &mut outputs), Ok(()));
    // The repair used the first parity packets that arrived, as many as were lost.
    let used = block[data..].iter().zip(&encoded).filter_map(|(packet, encoded)| Some(((*packet)?, encoded)));
    for (packet, encoded) in used.take(lost.len()) {
        assert_eq!(packet, encoded.as_slice());
    }
});
