//! Runs the world of a seed and prints its events: `cargo run -p narrows-proto --example world -- SEED`.

#[allow(unreachable_pub, dead_code)]
#[path = "../tests/world/mod.rs"]
mod world;

use units::Time;
use world::World;
use world::scenes::scene;

fn main() -> std::process::ExitCode {
    let Some(seed) = std::env::args().nth(1).and_then(|text| text.parse().ok()) else {
        eprintln!("usage: world SEED (a whole number)");
        return std::process::ExitCode::from(2);
    };
    let scene = scene(seed);
    println!("{scene:#?}");
    let mut world = World::new(scene);
    world.trace();
    println!("{:#?}", world.run(Time::from_ms(3_600_000)));
    std::process::ExitCode::SUCCESS
}
