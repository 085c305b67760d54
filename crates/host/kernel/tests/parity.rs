//! The law in the kernel and the law compiled natively are one: after every one of a million random calls, all
//! fields of a flow and the socket settings are equal.
#![cfg(feature = "bpf")]

use kernel::tcp_adapter::{KernelFlow, SocketReport};
use kernel::trial::{KernelTrial, TrialCall, call_natively};
use kernel::{KernelLaw, Settings};
use laws::catalog::check_pairs;
use laws::{Ack, Configured, Cookie, Loss, LossCause};
use units::{Bytes, Rate, Span, Time, mix64};

/// Calls per law: a million, or `NARROWS_PARITY_CALLS` for a slow machine, at least 400.
fn calls_per_law() -> u64 {
    match std::env::var("NARROWS_PARITY_CALLS") {
        Ok(text) => text.parse().ok().filter(|calls| *calls >= 400).expect("NARROWS_PARITY_CALLS is 400 or more"),
        Err(_) => 1_000_000,
    }
}

/// Random numbers, reproducible from a seed.
struct TestRng {
    seed: u64,
    draws: u64,
}

impl TestRng {
    fn any(&mut self) -> u64 {
        self.draws += 1;
        mix64(self.seed ^ mix64(self.draws))
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.any() % bound
    }

    /// Mostly usual sizes, sometimes the whole range of `bits` bits.
    fn up_to(&mut self, usual: u64, bits: u32) -> u64 {
        if self.below(50) == 0 { self.any() >> (64 - bits) } else { self.below(usual) }
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// A socket with reports that are consistent most of the time.
struct TestSocket {
    now_us: u64,
    delivered: u32,
    delivered_ce: u32,
    mss: u64,
    base_us: u64,
}

fn mss(rng: &mut TestRng) -> u64 {
    [536, 1_448, 8_948, 65_483][rng.below(4) as usize]
}

impl TestSocket {
    fn new(rng: &mut TestRng) -> Self {
        let mss = mss(rng);
        let now_us = rng.up_to(1 << 40, 44);
        Self { now_us, delivered: rng.any() as u32, delivered_ce: 0, mss, base_us: 1 + rng.below(100_000) }
    }

    fn report(&mut self, rng: &mut TestRng) -> SocketReport {
        self.now_us += rng.up_to(2 * self.base_us, 32);
        let newly = rng.up_to(60, 20) as u32;
        self.delivered = self.delivered.wrapping_add(newly);
        if rng.one_in(4) {
            self.delivered_ce = self.delivered_ce.wrapping_add(rng.below(u64::from(newly) + 1) as u32);
        }
        if rng.one_in(500) {
            self.mss = mss(rng);
        }
        let rtt_us = self.base_us + rng.up_to(self.base_us, 24);
        let ago = |us: u64, now: u64| now.saturating_sub(us);
        SocketReport {
            now_us: self.now_us,
            sent_us: ago(rtt_us, self.now_us),
            delivered_us: ago(rtt_us + rng.below(self.base_us), self.now_us),
            newest_us: ago(rng.below(2 * rtt_us), self.now_us),
            rtt_us: if rng.one_in(20) { -1 } else { rtt_us as i64 },
            srtt_eighths_us: 8 * rtt_us,
            send_interval_us: rng.up_to(self.base_us, 32),
            mss: self.mss,
            delivered: self.delivered.into(),
            delivered_ce: self.delivered_ce.into(),
            prior_delivered: self.delivered.wrapping_sub(newly + rng.up_to(2_000, 16) as u32).into(),
            in_flight: rng.up_to(4_000, 30),
            lost: rng.below(100),
            window: rng.up_to(4_000, 31),
            max_packets_out: rng.up_to(4_000, 31),
            app_limited: u64::from(rng.one_in(10)),
            timeout: u64::from(rng.one_in(3)),
            in_recovery: u64::from(rng.one_in(3)),
        }
    }
}

/// An ACK of the law's own type, with values as extreme as the types and the simulator's limits allow.
fn law_ack(rng: &mut TestRng, now: &mut Time) -> Ack<'static> {
    *now += Span::from_ps(rng.up_to(1 << 30, 44) as i64);
    let rtt = Span::from_ps(1 + rng.up_to(1 << 35, 42) as i64);
    let acked = Bytes::new(rng.up_to(9_000, 40));
    let delivered = Bytes::new(rng.up_to(1 << 34, 50));
    Ack {
        now: *now,
        sent_at: Time::from_ps(now.ps().saturating_sub(rtt.unsigned_ps())),
        rtt,
        acked,
        marked: if rng.one_in(3) { Bytes::new(rng.up_to(9_000, 40)) } else { Bytes::ZERO },
        in_flight: Bytes::new(rng.up_to(1 << 30, 40)),
        delivered,
        bytes_remaining: if rng.one_in(2) { Bytes::MAX } else { Bytes::new(rng.up_to(1 << 34, 50)) },
        delivered_at_send: Bytes::new(rng.up_to(1 << 34, 50)),
        delivered_time_at_send: Time::from_ps(now.ps().saturating_sub(rng.up_to(1 << 35, 42))),
        send_elapsed: Span::from_ps(rng.up_to(1 << 34, 40) as i64),
        app_limited: rng.one_in(10),
        sample_limited: rng.one_in(10),
        cookie: Cookie::NONE,
        hops: &[],
    }
}

fn law_loss(rng: &mut TestRng, now: &mut Time) -> Loss {
    *now += Span::from_ps(rng.below(1 << 30) as i64);
    Loss {
        now: *now,
        sent_at: Time::from_ps(now.ps().saturating_sub(rng.up_to(1 << 35, 44))),
        lost: Bytes::new(rng.up_to(100_000, 40)),
        in_flight: Bytes::new(rng.up_to(1 << 30, 40)),
        cause: [LossCause::Reordered, LossCause::Timeout, LossCause::Nack][rng.below(3) as usize],
    }
}

/// Settings with some parameters at an end of their ranges; values beyond another parameter's bound are left out.
fn settings(row: &KernelLaw, rng: &mut TestRng) -> Settings {
    let mut params = Vec::new();
    for param in row.kind.info().params {
        if rng.one_in(4) {
            let value = if rng.one_in(2) { param.lowest } else { param.highest };
            params.push((param.name.to_owned(), value));
        }
    }
    if check_pairs(row.kind, params.iter().map(|(name, value)| (name.as_str(), *value))).is_err() {
        params.retain(|(name, _)| {
            !row.kind.info().pairs.iter().any(|(low, high)| [*low, *high].contains(&name.as_str()))
        });
    }
    Settings {
        line_rate: Rate::from_mbps(1 + rng.up_to(100_000, 20)),
        base_rtt: rng.one_in(3).then(|| Span::from_us(1 + rng.below(100_000) as i64)),
        intra_rtt: Span::from_us(1 + rng.below(1_000) as i64),
        params,
    }
}

fn parity<L: Configured + std::fmt::Debug>(name: &str) {
    if let Err(reason) = &kernel::probe::KernelProbe::get().trial {
        return testing::skipped(&format!("kernel_equals_native::{name}"), reason);
    }
    let row = KernelLaw::of_name(name).expect("a row");
    let call_count = calls_per_law();
    let seed = 20_260_101;
    let mut rng = TestRng { seed, draws: 0 };
    let mut calls = 0;
    while calls < call_count {
        // The first flows have the defaults, later ones any parameters.
        let settings = if calls < call_count / 2 { Settings::default() } else { settings(row, &mut rng) };
        let mut trial = KernelTrial::new(row, &settings).expect("the kernel takes the law");
        let config = *trial.config();
        for _ in 0..20 {
            let mut socket = TestSocket::new(&mut rng);
            let mut now = Time::ZERO;
            let first = TrialCall::Begin(socket.report(&mut rng));
            let mut native = KernelFlow::<L>::new(&config, &SocketReport::default());
            let length = if calls < call_count / 2 { call_count / 40 } else { call_count / 400 };
            for step in 0..length {
                let call = match (step, rng.below(40)) {
                    (0, _) => first,
                    (_, 0) => TrialCall::Lost(socket.report(&mut rng)),
                    (_, 1) => TrialCall::LawLoss(law_loss(&mut rng, &mut now)),
                    (_, 2) => TrialCall::LawBaseRtt(Span::from_us(1 + rng.up_to(100_000, 36) as i64)),
                    (_, 3..=10) => TrialCall::LawAck(law_ack(&mut rng, &mut now)),
                    _ => TrialCall::Acked(socket.report(&mut rng)),
                };
                trial.call(&call).expect("the kernel runs the law");
                call_natively(&mut native, &config, &call);
                calls += 1;
                let in_kernel = trial.flow::<L>();
                assert_eq!(in_kernel, native, "{name}: call {calls} of seed {seed}, {call:?}, {settings:?}");
                assert_eq!(trial.socket_settings(), native.socket_settings(), "{name}: call {calls} of seed {seed}");
            }
        }
    }
    println!("{name}: {calls} calls, equal in every field");
}

/// A test for each law that is built for the kernel, by the law's name.
macro_rules! each_law {
    ($(#[doc = $doc:literal] $law:ident in $module:ident $(for $kernel:ident)?;)*) => {
        mod kernel_equals_native {
            $($(law!($law $module $kernel);)?)*
        }
    };
}
macro_rules! law {
    ($law:ident $module:ident kernel) => {
        #[test]
        fn $module() {
            super::parity::<laws::$law>(stringify!($module));
        }
    };
}
laws::laws!(each_law);
