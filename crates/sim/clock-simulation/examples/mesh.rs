//! Prints errors of meshes: `cargo run --release --example mesh HOSTS LOAD SECONDS SEED [LIARS] [STEPS-EVERY-MS]`.
use clock_simulation::{Simulation, StepConfig};
use units::Span;

fn main() {
    let arguments: Vec<i64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let get = |index: usize, default| arguments.get(index).copied().unwrap_or(default);
    let mut simulation = Simulation::new(get(0, 20) as u32, get(1, 0) as u32, get(3, 1) as u64);
    simulation.duration = Span::from_s(get(2, 30));
    simulation.liars = get(4, 0) as u32;
    let every = get(5, 0);
    if every > 0 {
        simulation.steps = Some(StepConfig { every: Span::from_ms(every), min_ns: 20_000, max_ns: 1_000_000_000 });
    }
    let outcome = simulation.run(|_| {});
    for (time, member, event) in outcome.events.iter().take(get(6, 40) as usize) {
        println!("{time} s, {}: {event:?}", member.0);
    }
    println!(
        "error {:?}\nbound {:?}\nreadings {} void {} outside {} steps {} noticed {} messages/host s {}",
        outcome.error,
        outcome.bound,
        outcome.readings,
        outcome.void,
        outcome.outside,
        outcome.steps,
        outcome.steps_noticed,
        outcome.messages_per_host_s
    );
}
