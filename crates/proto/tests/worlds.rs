//! Many worlds. Each byte comes once and in order, or the connection says why it ended; and while the network is honest, all
//! comes.

#[allow(unreachable_pub, dead_code)]
mod world;

use proto::closed::{Closed, Code};
use units::Time;
use world::World;
use world::scenes::scene;

/// Worlds of a run.
fn count() -> u64 {
    std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5_000)
}

#[test]
fn all_comes_in_any_weather() {
    let count = count();
    let first: u64 = std::env::var("FIRST").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut failed = Vec::new();
    for seed in first..first + count {
        let rebinding = scene(seed).weather.rebinding;
        let run = std::panic::catch_unwind(|| World::new(scene(seed)).run(Time::from_ms(3_600_000)));
        match run {
            Ok(report) if report.done.is_set() => {}
            // Until the listener has let the caller in, an address that changes is another caller's.
            Ok(report) if report.admitted.is_none_or(|admitted| rebinding <= admitted) => {}
            Ok(report) => failed.push(format!("{seed}: {report:?}")),
            Err(_) => failed.push(format!("{seed}: panics")),
        }
    }
    assert!(failed.is_empty(), "{} of {count}:\n{}", failed.len(), failed[..failed.len().min(20)].join("\n"));
}

/// A peer that lies is found out, or believed; nothing panics, and nothing goes on for ever.
#[test]
fn a_peer_that_lies_is_survived() {
    let mut codes = std::collections::BTreeMap::new();
    for seed in 0..count() / 2 {
        let mut scene = scene(seed);
        scene.lies = 3 << (seed % 5);
        let report = World::new(scene).run(Time::from_ms(600_000));
        for closed in report.closed.into_iter().flatten() {
            if let Closed::Here { code, .. } = closed {
                *codes.entry(code).or_insert(0) += 1;
            }
        }
    }
    // Each kind of lie is found out somewhere.
    for code in [Code::FRAME, Code::ACK, Code::STREAM, Code::FLOW] {
        assert!(codes.contains_key(&code), "{code} is not among {codes:?}");
    }
}
