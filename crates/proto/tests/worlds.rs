//! Many worlds. Each byte comes once and in order, or the connection says why it ended; and while the network is honest, all
//! comes.

#[allow(unreachable_pub, dead_code)]
mod world;

use units::Time;
use world::World;
use world::scenes::scene;

#[test]
fn all_comes_in_any_weather() {
    let count: u64 = std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(500);
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
