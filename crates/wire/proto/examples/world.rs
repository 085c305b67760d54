//! Runs the world of a seed and prints its events: `cargo run -p narrows-proto --example world -- SEED [FORGERY]`. One
//! packet in FORGERY has forged contents.

#[allow(unreachable_pub, dead_code)]
#[path = "../tests/world/mod.rs"]
mod world;

use units::Time;
use world::World;
use world::scenes::scene;

fn main() -> std::process::ExitCode {
    let numbers: Option<Vec<u64>> = std::env::args().skip(1).map(|text| text.parse().ok()).collect();
    let Some((&seed, rest)) = numbers.as_deref().and_then(<[u64]>::split_first) else {
        eprintln!("usage: world SEED [FORGERY] (whole numbers)");
        return std::process::ExitCode::from(2);
    };
    let mut scene = scene(seed);
    scene.forgery = rest.first().copied().unwrap_or(0);
    println!("{scene:#?}");
    let mut world = World::new(scene);
    world.trace();
    println!("{:#?}", world.run(Time::from_ms(3_600_000)));
    std::process::ExitCode::SUCCESS
}
