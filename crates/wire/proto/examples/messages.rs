//! Duration of messages on an open, idle connection, in virtual time: `cargo run --release -p narrows-proto --example
//! messages -- BYTES ONE_LOST_IN LAW[,PARAMETER=VALUE] CODING [COUNT [RTT_MS]]`, at 200 Mb/s, an RTT of 40 ms by
//! default, and a queue of one bandwidth-delay product.

#[allow(unreachable_pub, dead_code)]
#[path = "../tests/world/mod.rs"]
mod world;

use units::{Rate, Span, Time};
use world::{Scene, World};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| args.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (rate, one_way_delay) = (Rate::from_mbps(200), Span::from_us(number(5, 40) as i64 * 500));
    let mut scene = Scene::ideal(rate, one_way_delay);
    scene.conditions.buffer = rate.bytes_in(one_way_delay + one_way_delay);
    scene.conditions.loss = number(1, 0);
    scene.law = args.get(2).cloned().unwrap_or_else(|| "cubic".into()).leak();
    scene.coding = args.get(3).cloned().unwrap_or_else(|| "off".into()).leak();
    scene.window = 64 << 20;
    scene.series = (number(4, 1_000), number(0, 100_000));
    let mut world = World::new(scene);
    if std::env::var_os("TRACE").is_some() {
        world.trace();
    }
    let mut took = world.run(Time::from_ms(100_000_000)).took;
    took.sort_unstable();
    let at = |part: usize| took[(took.len() - 1) * part / 100].ns() as f64 / 1e6;
    println!("{} messages: p50 {:.1} ms, p99 {:.1} ms, most {:.1} ms", took.len(), at(50), at(99), at(100));
}
