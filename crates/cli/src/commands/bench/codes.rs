//! `narrows bench codes`: the speed of erasure codes on one thread.
//!
//! Rates count a block's data bytes, for encoding and for repair: 32,768 bytes a block for (8,2) with packets of 4,096. Hot
//! uses the same block repeatedly; cold iterates over 256 MiB of blocks, which exceeds every cache.

use std::hint::black_box;
use std::time::Duration;

use codes::{Code, Decoder, Encoder, Engine};
use comfy_table::{Cell, CellAlignment};
use serde::Serialize;
use serde_json::json;

use crate::args::BenchCodesArgs;
use crate::exit::{CommandFailure, print};
use crate::sheet::{check_csv, print_records};
use crate::table::fitted;
use study::Stopwatch;

/// Data and parity packets, bytes a packet.
const SHAPES: [(usize, usize, usize); 6] =
    [(8, 2, 1_400), (8, 2, 4_096), (8, 2, 8_900), (8, 1, 4_096), (16, 4, 4_096), (32, 8, 4_096)];
/// The minimum duration of one measured run: less than a time slice, so that some runs are not interrupted on a busy
/// machine.
const MIN_RUN_TIME: Duration = Duration::from_millis(2);
/// Number of blocks per clock reading.
const BATCH: usize = 32;
/// Alignment of packets, and padding between them, so that packets do not all map to the same cache set.
const CACHE_LINE: usize = 64;
const COLD_ARENA_BYTES: usize = 256 << 20;

/// One code, packet size, engine and cache; the shape of `bench codes --json`.
#[derive(Clone, Default, Debug, Serialize)]
struct CodeMeasurement {
    name: String,
    engine: &'static str,
    cache: &'static str,
    data: usize,
    parity: usize,
    packet_bytes: usize,
    encode_bytes_per_s: f64,
    /// Encoding rate when data packets are added one at a time.
    stream_bytes_per_s: f64,
    repair_one_bytes_per_s: f64,
    /// None where a code repairs one loss only.
    repair_two_bytes_per_s: Option<f64>,
}

/// State of the caches when blocks are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CacheState {
    Hot,
    Cold,
}

impl CacheState {
    fn name(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::Cold => "cold",
        }
    }
}

#[derive(Clone, Copy)]
struct Workload {
    engine: Engine,
    shape: (usize, usize, usize),
    cache: CacheState,
}

impl Workload {
    fn name(self) -> String {
        let (data, parity, bytes) = self.shape;
        format!("{data}+{parity}-{bytes}-{}-{}", self.engine, self.cache.name())
    }
}

/// Name of the table for `--csv`.
const TABLE: &str = "workloads";
/// Its columns.
const KEYS: [&str; 10] = [
    "name",
    "engine",
    "cache",
    "data",
    "parity",
    "packet_bytes",
    "encode_bytes_per_s",
    "stream_bytes_per_s",
    "repair_one_bytes_per_s",
    "repair_two_bytes_per_s",
];

pub(crate) fn codes(args: &BenchCodesArgs) -> Result<(), CommandFailure> {
    check_csv(&args.csv, &[TABLE])?;
    let engines: Vec<Engine> = match args.engine {
        Some(engine) => vec![engine],
        // The naive implementation is the reference for correctness, and is too slow to be measured.
        None => Engine::available().filter(|&engine| engine != Engine::Naive).collect(),
    };
    let all = SHAPES.iter().flat_map(|&shape| {
        let both = move |engine| [CacheState::Hot, CacheState::Cold].map(|cache| Workload { engine, shape, cache });
        engines.iter().copied().flat_map(both)
    });
    let chosen: Vec<Workload> = all.filter(|workload| workload.name().contains(&args.only)).collect();
    if chosen.is_empty() {
        let example = Workload { engine: Engine::fastest(), shape: SHAPES[0], cache: CacheState::Hot }.name();
        let only = &args.only;
        return Err(CommandFailure::Input(format!(
            "error: no workload's name contains `{only}`; an example is `{example}`"
        )));
    }
    crate::interrupt::listen();
    let mut rows = Vec::new();
    for workload in chosen {
        if crate::interrupt::interrupted() {
            return Err(CommandFailure::Interrupted("nothing is reported".to_owned()));
        }
        rows.push(measure(workload, args.runs).map_err(|error| CommandFailure::Input(format!("error: {error}")))?);
    }
    if args.json {
        return print(&format!("{:#}", json!({ "schema": 1, "workloads": rows })));
    }
    if args.csv.is_requested() {
        return print_records(&args.csv, TABLE, &KEYS, &rows);
    }
    print(&table(&rows))
}

fn measure(workload: Workload, runs: u16) -> Result<CodeMeasurement, codes::Error> {
    let Workload { engine, shape: (data, parity, length), cache } = workload;
    let code = Code::with_engine(data, parity, engine)?;
    let mut arena = BlockArena::new(code.packets(), length, cache);
    let bytes = data * length;

    let mut blocks = arena.blocks(|index| index >= data);
    let encode = rate(&mut blocks, bytes, runs, |block| code.encode(&block.present, &mut block.written))?;
    let mut encoder = Encoder::new(code.clone());
    let stream = rate(&mut blocks, bytes, runs, |block| {
        encoder.clear();
        block.present.iter().enumerate().try_for_each(|(index, packet)| encoder.push(index, packet))?;
        black_box(encoder.parity()?.count());
        Ok(())
    })?;
    let mut repair = |lost: usize| {
        let mut decoder = Decoder::new(code.clone());
        let mut blocks = arena.blocks(|index| index < lost);
        rate(&mut blocks, bytes, runs, |block| decoder.repair(&block.arrived, &mut block.written))
    };
    let one = repair(1)?;
    let two = if parity > 1 { Some(repair(2)?) } else { None };
    Ok(CodeMeasurement {
        name: workload.name(),
        engine: engine.name(),
        cache: cache.name(),
        data,
        parity,
        packet_bytes: length,
        encode_bytes_per_s: encode,
        stream_bytes_per_s: stream,
        repair_one_bytes_per_s: one,
        repair_two_bytes_per_s: two,
    })
}

/// Bytes per second in the best of several runs: disturbances only ever make a run slower.
fn rate(
    blocks: &mut [BenchBlock<'_>],
    bytes: usize,
    runs: u16,
    mut work: impl FnMut(&mut BenchBlock<'_>) -> Result<(), codes::Error>,
) -> Result<f64, codes::Error> {
    let (mut best, mut next) = (0.0_f64, 0);
    for _ in 0..runs {
        let (clock, mut done) = (Stopwatch::start(), 0);
        let elapsed = loop {
            for _ in 0..BATCH {
                work(&mut blocks[next])?;
                black_box(&blocks[next].written);
                next = if next + 1 == blocks.len() { 0 } else { next + 1 };
            }
            done += BATCH * bytes;
            let elapsed = clock.elapsed();
            if elapsed >= MIN_RUN_TIME {
                break elapsed;
            }
        };
        best = best.max(done as f64 / elapsed.as_secs_f64());
    }
    Ok(best)
}

/// Memory for one block, or for more than caches hold.
struct BlockArena {
    bytes: Vec<u8>,
    packets: usize,
    length: usize,
}

/// Packets of one block: those to write, and those to read, both as a list (`present`) and by index (`arrived`).
struct BenchBlock<'a> {
    present: Vec<&'a [u8]>,
    arrived: Vec<Option<&'a [u8]>>,
    written: Vec<&'a mut [u8]>,
}

impl BlockArena {
    fn new(packets: usize, length: usize, cache: CacheState) -> Self {
        let block = packets * Self::stride(length);
        let blocks = match cache {
            CacheState::Hot => 1,
            CacheState::Cold => COLD_ARENA_BYTES / block,
        };
        Self { bytes: vec![1; blocks * block + CACHE_LINE], packets, length }
    }

    fn stride(length: usize) -> usize {
        length.next_multiple_of(CACHE_LINE) + CACHE_LINE
    }

    fn blocks(&mut self, is_written: impl Fn(usize) -> bool) -> Vec<BenchBlock<'_>> {
        let start = self.bytes.as_ptr().align_offset(CACHE_LINE).min(CACHE_LINE);
        let stride = Self::stride(self.length);
        let blocks = self.bytes[start..].chunks_exact_mut(self.packets * stride);
        let block = |bytes| {
            let mut block = BenchBlock { present: Vec::new(), arrived: Vec::new(), written: Vec::new() };
            let packets = <[u8]>::chunks_exact_mut(bytes, stride).map(|packet| &mut packet[..self.length]);
            for (index, packet) in packets.enumerate() {
                if is_written(index) {
                    block.written.push(packet);
                    block.arrived.push(None);
                } else {
                    block.present.push(packet);
                    block.arrived.push(Some(packet));
                }
            }
            block
        };
        blocks.map(block).collect()
    }
}

fn table(rows: &[CodeMeasurement]) -> String {
    let mut table = fitted();
    table.set_header([
        "code",
        "packet B",
        "cache",
        "engine",
        "encode GB/s",
        "one by one GB/s",
        "repair 1 GB/s",
        "repair 2 GB/s",
    ]);
    let rate = |rate: f64| format!("{:.1}", rate / 1e9);
    for row in rows {
        let numbers = [
            rate(row.encode_bytes_per_s),
            rate(row.stream_bytes_per_s),
            rate(row.repair_one_bytes_per_s),
            row.repair_two_bytes_per_s.map_or(String::new(), rate),
        ];
        let numbers = numbers.map(|number| Cell::new(number).set_alignment(CellAlignment::Right));
        let bytes = Cell::new(row.packet_bytes).set_alignment(CellAlignment::Right);
        let code = format!("({},{})", row.data, row.parity);
        let labels = [Cell::new(code), bytes, Cell::new(row.cache), Cell::new(row.engine)];
        table.add_row(labels.into_iter().chain(numbers));
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The measured operations compute the parity, and recover lost data from it.
    #[test]
    fn blocks_are_encoded_and_repaired() {
        let code = Code::new(8, 2).unwrap();
        let mut arena = BlockArena::new(10, 100, CacheState::Hot);
        for (index, byte) in arena.bytes.iter_mut().enumerate() {
            *byte = (index / 7) as u8;
        }
        let mut blocks = arena.blocks(|index| index >= 8);
        assert_eq!(blocks.len(), 1);
        let sent: Vec<Vec<u8>> = blocks[0].present.iter().map(|packet| packet.to_vec()).collect();
        assert!(sent.len() == 8 && sent[0] != sent[1]);
        rate(&mut blocks, 800, 1, |block| code.encode(&block.present, &mut block.written)).unwrap();
        for lost in 1..=2 {
            for packet in &mut arena.blocks(|index| index < lost)[0].written {
                packet.fill(0);
            }
            let mut decoder = Decoder::new(code.clone());
            let mut blocks = arena.blocks(|index| index < lost);
            rate(&mut blocks, 800, 1, |block| decoder.repair(&block.arrived, &mut block.written)).unwrap();
            for (repaired, sent) in blocks[0].written.iter().zip(&sent) {
                assert_eq!(*repaired, sent);
            }
        }
    }

    #[test]
    fn cold_arena_exceeds_caches() {
        let mut arena = BlockArena::new(40, 4_096, CacheState::Cold);
        let blocks = arena.blocks(|index| index == 39);
        assert!(blocks.len() * 40 * 4_096 > 240 << 20);
        assert!(blocks.iter().all(|block| block.present.len() == 39 && block.written.len() == 1));
    }

    #[test]
    fn columns_are_the_keys_of_a_record() {
        let record = json!(CodeMeasurement::default());
        let known: BTreeSet<&str> = record.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(known, BTreeSet::from(KEYS));
    }
}
