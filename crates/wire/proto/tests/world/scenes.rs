//! Scenes that a seed chooses.

use units::{Bytes, Rate, Span, Time};
use virtual_time::HostCosts;

use super::network::{Dice, NetworkConditions, NetworkEnd};
use super::{Scene, StreamJob};

/// Returns the scene of a seed: random applications, and a random network over which all data can arrive in the end.
pub fn scene(seed: u64) -> Scene {
    let mut dice = Dice(seed);
    let rate = Rate::from_mbps([10, 100, 1_000, 10_000][dice.below(4) as usize]);
    let delay = Span::from_us([10, 100, 1_000, 10_000, 50_000][dice.below(5) as usize]);
    let mut conditions = NetworkConditions::ideal(rate, delay);
    let chance = |dice: &mut Dice, rare: u64| if dice.one_in(2) { 0 } else { rare << dice.below(5) };
    conditions.buffer = Bytes::new(6_000 << dice.below(8));
    conditions.loss = chance(&mut dice, 7);
    conditions.reordering = chance(&mut dice, 5);
    conditions.duplication = chance(&mut dice, 5);
    conditions.corruption = chance(&mut dice, 10);
    conditions.replay = chance(&mut dice, 10);
    conditions.bleaching = dice.one_in(5);
    let max_packet = [1_200, 1_472, 1_472, 4_096, 8_972][dice.below(5) as usize];
    conditions.mtu = [1_200, 1_252, 1_472, 4_096, 9_000][dice.below(5) as usize];
    // Times that lie within the first round trips of most runs.
    let early = |dice: &mut Dice| Time::ZERO + delay.times(1 + dice.below(20) as u32);
    if dice.one_in(4) {
        let begins = early(&mut dice);
        conditions.black_hole = (begins, begins + Span::from_ms(1 + dice.below(3_000) as i64));
    }
    if dice.one_in(4) {
        conditions.mtu_falls = (early(&mut dice), 1_200);
    }
    if dice.one_in(4) {
        conditions.rebinding = early(&mut dice);
    }
    let jobs = (0..=dice.below(6)).map(|_| {
        let from = if dice.one_in(3) { NetworkEnd::Listener } else { NetworkEnd::Client };
        let bits = 4 + dice.below(14);
        let bytes = dice.below(1 << bits);
        let message = dice.one_in(2);
        StreamJob { from, bytes, message, echo: !message && dice.one_in(2) }
    });
    let jobs = jobs.collect();
    let mut scene = Scene::ideal(rate, delay);
    scene.reader = if dice.one_in(3) { (40 + dice.below(4_000) as usize, delay) } else { (1 << 20, Span::ZERO) };
    scene.stalls = if dice.one_in(5) { delay.times(3) } else { Span::ZERO };
    scene.noise = if dice.one_in(3) { dice.below(100) } else { 0 };
    scene.coding = ["off", "off", "8,2", "1,1", "20,4", "tail", "auto"][dice.below(7) as usize];
    scene.coding_window = [0, 3_000, 30_000, 1 << 20][dice.below(4) as usize];
    scene.updates = if dice.one_in(3) { 1 + dice.below(30) } else { 0 };
    scene.paths = if dice.one_in(2) { 1 } else { 1 + dice.below(7) as u8 };
    scene.law = ["newreno", "cubic", "dctcp", "unocc", "bbr", "gemini", "fixed"][dice.below(7) as usize];
    if scene.paths > 1 && dice.one_in(4) {
        conditions.dead = (early(&mut dice), 1);
    }
    scene.one_law = dice.one_in(3);
    scene.on_ramp = dice.one_in(4).then(|| Span::from_us(1 + dice.below(5_000) as i64));
    if dice.one_in(4) {
        scene.costs = costs(&mut dice);
    }
    Scene { seed, conditions, jobs, max_packet, ..scene }
}

/// Returns processing times of at most a few tens of microseconds, and timers that are up to a millisecond late.
fn costs(dice: &mut Dice) -> HostCosts {
    let mut up_to = |max_us: u64| Span::from_us(dice.below(max_us + 1) as i64);
    let (wake_up, packet, batch, timer_slack) = (up_to(100), up_to(10), up_to(30), up_to(1_000));
    HostCosts { wake_up, packet, batch, batch_packets: dice.below(20) as u32, timer_slack }
}
