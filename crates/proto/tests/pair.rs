//! Two endpoints and a network in which little happens: what is to happen, happens in time.

#[allow(unreachable_pub, dead_code)]
mod world;

use units::{Rate, Span, Time};
use world::network::End;
use world::{Job, Scene, World};

fn job(from: End, bytes: u64) -> Job {
    Job { from, bytes, message: true, echo: false }
}

/// The caller's data leaves after one round trip, and is read after one and a half.
#[test]
fn data_crosses_after_one_round_trip() {
    let mut scene = Scene::fair(Rate::from_gbps(1), Span::from_ms(10));
    scene.jobs = vec![job(End::Caller, 1_000)];
    let report = World::new(scene).run(Time::from_ms(60_000));
    assert_eq!(report.read, [0, 1_000], "{report:?}");
    assert!(report.connected.unwrap() < Time::from_ms(21), "{report:?}");
    assert!(report.done < Time::from_ms(45), "{report:?}");
}
