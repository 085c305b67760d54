//! Every engine computes the naive one's bytes, and writes nothing else.

use codes::{Code, Encoder, Engine, Error};
use proptest::prelude::*;

use crate::support::{arrived, block, engines, packets, parity_of};

/// Slices of one buffer, each at some offset, with bytes between them that must stay unchanged.
struct Scattered {
    bytes: Vec<u8>,
    starts: Vec<usize>,
    length: usize,
}

impl Scattered {
    fn new(count: usize, length: usize, gaps: &[usize]) -> Self {
        let (mut starts, mut end) = (Vec::new(), 0);
        for index in 0..count {
            starts.push(end + gaps[index % gaps.len()]);
            end = starts[index] + length;
        }
        Self { bytes: vec![0xc3; end + 70], starts, length }
    }

    fn slices(&self) -> Vec<&[u8]> {
        self.starts.iter().map(|&start| &self.bytes[start..start + self.length]).collect()
    }

    fn places(&mut self) -> Vec<&mut [u8]> {
        let (mut rest, mut at, mut places) = (self.bytes.as_mut_slice(), 0, Vec::new());
        for &start in &self.starts {
            let (place, more) = rest.split_at_mut(start - at).1.split_at_mut(self.length);
            places.push(place);
            (rest, at) = (more, start + self.length);
        }
        places
    }

    /// Returns whether the bytes between the slices are unchanged.
    fn is_intact(&self) -> bool {
        let inside = |at: usize| self.starts.iter().any(|&start| (start..start + self.length).contains(&at));
        self.bytes.iter().enumerate().all(|(at, &byte)| inside(at) || byte == 0xc3)
    }
}

fn agree(data: usize, parity: usize, length: usize, gaps: &[usize], seed: u64) {
    let naive = Code::with_engine(data, parity, Engine::Naive).unwrap();
    let expected = block(&naive, length, seed);
    let mut given = Scattered::new(data, length, gaps);
    for (place, packet) in given.places().into_iter().zip(&expected) {
        place.copy_from_slice(packet);
    }
    let before = given.bytes.clone();
    // The maximum number of repairable losses: data from the middle on, and then parity.
    let lost: Vec<usize> = (data / 2..data + parity).take(parity).collect();
    let block = arrived(&expected, &lost);
    let present: Vec<bool> = block.iter().map(Option::is_some).collect();
    for engine in engines() {
        let code = Code::with_engine(data, parity, engine).unwrap();
        let mut parities = Scattered::new(parity, length, gaps);
        code.encode(&given.slices(), &mut parities.places()).unwrap();
        assert_eq!(parities.slices(), expected[data..], "{engine}: ({data}, {parity}) x {length} B");
        assert!(parities.is_intact(), "{engine}: wrote beside parity");

        let plan = code.plan(&present).unwrap();
        let mut repaired = Scattered::new(plan.lost().len(), length, gaps);
        plan.repair(&block, &mut repaired.places()).unwrap();
        for (repaired, &lost) in repaired.slices().into_iter().zip(plan.lost()) {
            assert_eq!(repaired, expected[lost], "{engine}: ({data}, {parity}) x {length} B");
        }
        assert!(repaired.is_intact(), "{engine}: wrote beside what is repaired");

        let mut encoder = Encoder::new(code);
        for (index, packet) in given.slices().into_iter().enumerate() {
            encoder.push(index, packet).unwrap();
        }
        assert_eq!(parity_of(&encoder).unwrap(), &expected[data..], "{engine}: ({data}, {parity}) x {length} B");
    }
    assert_eq!(given.bytes, before, "data was written to");
}

/// Lengths around every engine's vectors and their multiples, and every number of outputs that is done at once.
#[test]
fn engines_agree_at_every_length() {
    for length in (0..=300).chain([511, 512, 513, 1_400, 4_096, 8_900]) {
        for (data, parity) in [(1, 1), (8, 1), (8, 2), (5, 3), (4, 4), (3, 7)] {
            if length <= 300 || data * parity <= 16 {
                agree(data, parity, length, &[0, 1, 7, 64], length as u64);
            }
        }
    }
}

proptest! {
    #[test]
    fn engines_agree_at_any_shape(
        data in 1..=64_usize, parity in 1..=16_usize, length in 0..400_usize,
        gaps in prop::collection::vec(0..70_usize, 1..8), seed: u64,
    ) {
        agree(data, parity, length, &gaps, seed);
    }
}

/// The definition, without any of the crate's arithmetic: the first parity is the XOR, and with one packet the code is
/// repetition.
#[test]
fn first_parity_packet_is_the_xor() {
    for engine in Engine::available() {
        let data = packets(9, 130, 4);
        let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let mut parity = [[0; 130]; 3];
        let [p, q, r] = &mut parity;
        Code::with_engine(9, 3, engine).unwrap().encode(&data, &mut [p, q, r]).unwrap();
        for at in 0..130 {
            assert_eq!(parity[0][at], data.iter().fold(0, |sum, packet| sum ^ packet[at]), "{engine}");
        }
        let mut copies = [[0; 130]; 3];
        let [p, q, r] = &mut copies;
        Code::with_engine(1, 3, engine).unwrap().encode(&data[..1], &mut [p, q, r]).unwrap();
        assert!(copies.iter().all(|copy| copy == data[0]), "{engine}");
    }
}

#[test]
fn engine_names_parse_and_the_fastest_is_available() {
    for engine in Engine::ALL {
        assert_eq!(engine.name().parse(), Ok(engine));
        assert!(Error::EngineName.to_string().contains(engine.name()));
        let code = Code::with_engine(2, 1, engine);
        match code {
            Ok(code) => assert!(engine.is_available() && code.engine() == engine),
            Err(error) => assert!(!engine.is_available() && error == Error::Engine { engine }),
        }
    }
    assert_eq!("sse".parse::<Engine>(), Err(Error::EngineName));
    assert!(Engine::fastest().is_available());
    assert_eq!(Code::new(2, 1).unwrap().engine(), Engine::fastest());
    // Instructions that every processor of a kind has are available.
    assert_eq!(Engine::Neon.is_available(), cfg!(target_arch = "aarch64"));
    assert_eq!(Engine::available().take(2).collect::<Vec<_>>(), [Engine::Naive, Engine::Portable]);
}
