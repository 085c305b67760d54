//! Invented data in the shape of real results, shared by the example and the tests. The numbers are made up to look
//! like Uno's Fig. 8 and Fig. 11; nothing was simulated.

use report::{
    AverageRow, Averages, ClaimData, Collective, Counted, DistributionData, FailureData, FlowRate, IntervalData,
    LinkData, Pooled, PortQueue, QueuesData, RatesData, RatioData, ReportData, RunData, SlowFlow, Slowest,
    SlowestOfClass, TraceData, Trait, VerdictData, WarningGroupData,
};
use serde_json::{Value, json};

pub(crate) const SCHEMES: [&str; 3] = ["Uno", "GEMINI", "MPRDMA+BBR"];
const LINK_BPS: f64 = 100e9;

/// A small generator of numbers in [0, 1), the same on every machine.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as f64) / f64::from(1u32 << 31)
    }
}

/// Four intra-DC and four inter-DC flows into one host, three schemes.
pub(crate) fn mixed() -> ReportData {
    let mut runs: Vec<RunData> = (0..3).map(|scheme| incast(scheme, 8, 900)).collect();
    runs[2].warnings.push(
        "the law bbr of 4 inter-DC flows never acted on a mark: 0 cuts in 690 ms, while its port marked 18 204 packets"
            .into(),
    );
    ReportData {
        title: "Uno, Fig. 8: mixed incast, 4 intra-DC and 4 inter-DC flows".into(),
        subtitle: "Eight flows of 1 GiB each to one host of a pair of 8-ary fat trees; 100 Gb/s links, base RTT 14 µs \
                   inside and 2 ms across the datacenters."
            .into(),
        generated_by: "narrows 0.1.0".into(),
        scale: Some("quick".into()),
        scenario_toml: SCENARIO.into(),
        replay: vec![
            "narrows run papers/uno/fig8.toml --scale quick --seed 1 --out results/fig8".into(),
            "narrows report results/fig8".into(),
        ],
        warnings: vec![
            "Flow size was scaled from 1 GiB to 256 MiB (scale quick); rates and RTTs are the paper's.".into(),
        ],
        causes: vec![WarningGroupData { runs: SCHEMES[2].into(), text: runs[2].warnings[0].clone() }],
        claims: claims(),
        averages: averages(),
        runs,
        ..ReportData::default()
    }
}

/// Three schemes at seven ratios of inter-DC to intra-DC RTT and two loads.
pub(crate) fn grid() -> ReportData {
    let mut runs = Vec::new();
    for load in ["40%", "60%"] {
        for ratio in [8u32, 16, 32, 64, 128, 256, 512] {
            for scheme in 0..3 {
                let mut run = incast(scheme, 8, 120);
                run.id = format!("load{load}-ratio{ratio}-{scheme}");
                run.label = format!("{}, ratio {ratio}, load {load}", SCHEMES[scheme]);
                run.point = vec![
                    ("scheme".into(), json!(SCHEMES[scheme])),
                    ("rtt_ratio".into(), json!(ratio)),
                    ("load".into(), json!(load)),
                ];
                let hard = if load == "40%" { 1.0 } else { 1.7 };
                let growth = 1.0 + f64::from(ratio).powf([0.18, 0.42, 0.40][scheme]) * [1.1, 0.8, 0.7][scheme] * hard;
                for class in ["all", "intra", "inter"] {
                    run.summary["flows"][class]["slowdown"]["p99"] = json!(growth * 2.0);
                    run.summary["flows"][class]["slowdown"]["mean"] = json!(growth);
                    run.summary["flows"][class]["fct_ns"]["p99"] = json!(growth * 14_000.0 * f64::from(ratio));
                }
                runs.push(run);
            }
        }
    }
    ReportData {
        title: "Uno, Fig. 11: growing distance".into(),
        subtitle: "Realistic traffic at two loads while the distance between the datacenters grows.".into(),
        generated_by: "narrows 0.1.0".into(),
        scenario_toml: SCENARIO.into(),
        replay: vec!["narrows sweep papers/uno/fig11.toml".into()],
        runs,
        ..ReportData::default()
    }
}

/// Two schemes of [`mixed`] on two datacenters with the simulator's link names, failures and two iterations of a ring of
/// eight ranks.
pub(crate) fn training() -> ReportData {
    let mut data = mixed();
    data.runs.truncate(2);
    for (at, run) in data.runs.iter_mut().enumerate() {
        let mut noise = Noise(at as u64 + 5);
        run.links.clear();
        let mut link = |name: String, class: &str, share: f64| {
            run.links.push(LinkData {
                name,
                class: class.into(),
                utilisation: share,
                packets: 1_000,
                ..LinkData::default()
            });
        };
        for dc in 0..2 {
            for n in 0..4 {
                let (pod, edge) = (n / 2, n % 2);
                let edge = format!("dc{dc}.pod{pod}.edge{edge}");
                let ends = [
                    (format!("dc{dc}.host{}", dc * 4 + n), edge.clone()),
                    (edge.clone(), format!("dc{dc}.pod{pod}.agg0")),
                    (edge, format!("dc{dc}.pod{pod}.agg1")),
                ];
                for (a, b) in ends {
                    link(format!("{a}>{b}"), "edge", noise.next());
                    link(format!("{b}>{a}"), "edge", noise.next());
                }
            }
            for n in 0..4 {
                let agg = format!("dc{dc}.pod{}.agg{}", n / 2, n % 2);
                link(format!("{agg}>dc{dc}.core{}", n % 2), "core", noise.next());
                link(format!("dc{dc}.core{}>{agg}", n % 2), "core", noise.next());
            }
            for n in 0..2 {
                link(format!("dc{dc}.core{n}>dc{dc}.border"), "border", noise.next());
            }
            for n in 0..4 {
                link(format!("dc{dc}.border>dc{}.border#{n}", 1 - dc), "inter", 0.5 + 0.5 * noise.next());
            }
        }
        run.failures = vec![
            FailureData {
                links: vec!["dc0.border>dc1.border#2".into(), "dc1.border>dc0.border#2".into()],
                count: 2,
                down_ns: vec![(9_000_000, Some(14_000_000))],
            },
            FailureData { links: vec!["dc0.pod1.agg0>dc0.core0".into()], count: 1, down_ns: vec![(20_000_000, None)] },
        ];
        run.collectives = (0..2_u64).map(|number| ring(number, &mut noise)).collect();
        run.collective_count = 5;
    }
    data
}

/// [`training`] with the jobs of its summaries: a model that trains, experts that exchange without training, and an
/// imported schedule. Each scheme has two seeds, which differ in the duration and waiting times of an iteration.
pub(crate) fn jobs() -> ReportData {
    let mut data = training();
    let mut runs = Vec::new();
    for (scheme, run) in data.runs.iter().enumerate() {
        for seed in 1..=2_u32 {
            let mut run = run.clone();
            run.id = format!("{},seed={seed}", run.id);
            run.point = vec![("scheme".into(), json!(SCHEMES[scheme])), ("seed".into(), json!(seed))];
            let more = f64::from(seed - 1);
            let mean = [150e6, 310e6][scheme] + 10e6 * more;
            let pipeline = [0.2, 0.5][scheme] + 0.02 * more;
            let experts = run.summary["flows"]["inter"].clone();
            let mut gpt = json!({ "count": 2, "completed": 2, "fct_ns": stats(mean), "slowdown": stats(1.5), "goodput_bps": 1e9 });
            gpt["training"] = json!({
                "iteration_ns": [mean - 1e6, mean + 1e6], "iteration_mean_ns": mean, "compute_ns": 66e6, "exposed_ns": mean - 66e6,
                "critical": { "compute": 0.6 - pipeline, "tensor": 0.28, "pipeline": pipeline, "data": 0.12 }, "inter": pipeline / 2.0,
                "waits": [{ "step": "pipeline", "from": "dc0.host1", "to": "dc1.host4", "class": "inter", "share": pipeline / 2.0 }]
            });
            run.summary["seed"] = json!(seed);
            run.summary["collectives"] = experts.clone();
            run.summary["jobs"] = json!({ "gpt": gpt, "experts": experts });
            run.summary["schedules"] =
                json!({ "trace": { "end_to_end_ns": mean + 5e6, "flows": 10, "completed": 10 } });
            runs.push(run);
        }
    }
    data.name = "two-dcs".into();
    data.title = "A model trains over two datacenters".into();
    data.runs = runs;
    data
}

/// An allreduce of eight ranks in a ring; the last flow of its second iteration does not end.
fn ring(number: u64, noise: &mut Noise) -> Collective {
    let mut made = Collective { job: "gpt".into(), number, ..Collective::default() };
    let mut ready = [(1 + 16 * number) * 1_000_000; 8];
    for step in 0..14_u64 {
        let before = ready;
        for rank in 0..8_usize {
            let start = before[rank].max(before[(rank + 7) % 8]);
            let long = if rank % 4 == 3 { 900_000.0 } else { 500_000.0 };
            let end = start + (long * (0.8 + 0.4 * noise.next())) as u64;
            made.src.push(rank as u64);
            made.dst.push((rank as u64 + 1) % 8);
            made.start_ns.push(start);
            made.end_ns.push((number == 0 || step < 13 || rank < 7).then_some(end));
            ready[rank] = end;
        }
    }
    made
}

/// One scheme of [`mixed`], with twenty sampled ports.
pub(crate) fn ports() -> ReportData {
    let mut data = mixed();
    data.runs.truncate(1);
    if let Some(queues) = &mut data.runs[0].queues {
        let first = queues.ports[0].clone();
        queues.ports = (0..20_u64)
            .map(|n| PortQueue {
                name: format!("dc0.edge{n}>dc0.host"),
                queue_bytes: first.queue_bytes.iter().map(|bytes| bytes * (n + 1) / 20 + n * 1_000).collect(),
                phantom_bytes: first.phantom_bytes.iter().map(|bytes| bytes * (n + 5) / 25).collect(),
            })
            .collect();
    }
    data
}

/// Two schemes of [`mixed`], with cable failures: one temporary, two permanent, one flapping.
pub(crate) fn failing() -> ReportData {
    let mut data = mixed();
    data.runs.truncate(2);
    let name = |n: u32| format!("dc1/border0 → dc0/border0 #{n}");
    for run in &mut data.runs {
        run.failures = vec![
            FailureData { links: vec![name(0)], count: 1, down_ns: vec![(120_000_000, Some(210_000_000))] },
            FailureData {
                links: vec![name(3)],
                count: 1,
                down_ns: (0..40).map(|n| (300_000_000 + n * 500_000, Some(300_200_000 + n * 500_000))).collect(),
            },
            FailureData { links: vec![name(1), name(2)], count: 2, down_ns: vec![(500_000_000, None)] },
        ];
    }
    data
}

/// [`grid`] at one load, each point with three seeds.
pub(crate) fn seeds() -> ReportData {
    let mut data = grid();
    data.runs.retain(|run| run.point[2].1 == json!("40%"));
    let mut runs = Vec::new();
    for run in &data.runs {
        for seed in 1..=3_u32 {
            let mut run = run.clone();
            run.id = format!("{},seed={seed}", run.id);
            run.point.push(("seed".into(), json!(seed)));
            run.summary["seed"] = json!(seed);
            let scale = 0.8 + 0.1 * f64::from(seed);
            for point in run.distributions.iter_mut().flat_map(|curve| &mut curve.fct_ns) {
                point.0 = (point.0 * scale).round();
            }
            for class in ["all", "intra", "inter"] {
                for (measure, stat) in
                    [("slowdown", "p99"), ("slowdown", "mean"), ("fct_ns", "p99"), ("fct_ns", "mean")]
                {
                    let value = &mut run.summary["flows"][class][measure][stat];
                    *value = json!(value.as_f64().unwrap_or(1.0) * scale);
                }
            }
            runs.push(run);
        }
    }
    data.runs = runs;
    data
}

/// [`seeds`], with slowdowns over all seeds together and with the slowest flows of each scheme and point.
pub(crate) fn tails() -> ReportData {
    let mut data = seeds();
    let mut noise = Noise(11);
    data.counted = [
        ("slowdown", "number"),
        ("size", "bytes"),
        ("completion time, base round trips", "number"),
        ("ECN-marked payload", "share"),
        ("cuts on congestion", "number"),
        ("Quick Adapts", "number"),
        ("concurrent inter flows, same receiver", "number"),
    ]
    .map(|(label, kind)| Counted { label: label.into(), kind: kind.into() })
    .to_vec();
    let mut interval = |value: f64| {
        let margin = value * (0.03 + 0.1 * noise.next());
        IntervalData { value, low: value - margin, high: value + margin }
    };
    for (group, run) in (0..data.runs.len()).step_by(3).enumerate() {
        let scheme = group % 3;
        let p99 = data.runs[run].summary["flows"]["all"]["slowdown"]["p99"].as_f64().unwrap_or(1.0);
        let mut classes = Vec::new();
        for (class, flows) in [("intra", 2_073), ("inter", 87)] {
            let few = flows < 100;
            let ratio = |of: IntervalData| RatioData { of, differs: of.low > 1.0 || of.high < 1.0 };
            data.pooled.push(Pooled {
                run,
                class: class.into(),
                seeds: 3,
                flows,
                few,
                p50: interval(1.2 + p99 / 20.0),
                p99: interval(p99),
                first: SCHEMES[0].into(),
                ratios: (scheme > 0).then(|| [ratio(interval(1.02)), ratio(interval([1.0, 1.3, 0.7][scheme]))]),
            });
            let values = [
                (p99 * 1.3, 1.2 + p99 / 20.0),
                (551_234.0, 567_890.0),
                (p99 * 20.0, p99 * 3.0),
                (0.224, 0.103),
                (4.43, 0.76),
                ([0.4, 0.0, 0.0][scheme], 0.0),
                (2.41, 1.81),
            ];
            let one = |(counted, (slowest, typical)): (usize, (f64, f64))| Trait {
                counted,
                slowest,
                typical: (!few || counted > 0).then_some(typical),
                stands_out: (!few || counted > 0) && slowest > 0.0 && slowest >= 2.0 * typical,
            };
            let traits = values.into_iter().enumerate().filter(|(_, (slowest, _))| *slowest > 0.0).map(one).collect();
            let flow = |rank: u32| SlowFlow {
                seed: u64::from(rank % 3) + 1,
                flow: 1_234 + u64::from(rank),
                src: 12,
                dst: 3,
                size_bytes: 1_000_000 >> rank,
                start_ns: 61_234_567.0 * f64::from(rank + 1),
                fct_ns: 12_345_678.0 / f64::from(rank + 1),
                slowdown: p99 * (2.0 - f64::from(rank) / 5.0),
                marked_share: 0.31,
                retransmitted_share: 0.002,
                timeouts: rank.into(),
                quick_adapts: 1,
            };
            classes.push(SlowestOfClass {
                class: class.into(),
                count: flows.div_ceil(100),
                flows,
                unfinished: if few { 4 } else { 0 },
                few,
                traits,
                listed: (0..if few { 1 } else { 5 }).map(flow).collect(),
            });
        }
        data.slowest.push(Slowest { run, seeds: 3, classes });
    }
    data
}

/// Forty runs. The first one has two hundred flows with three thousand samples each.
pub(crate) fn large() -> ReportData {
    let mut runs = vec![incast(0, 200, 3000)];
    for i in 1..40 {
        let mut run = incast(i % 3, 8, 600);
        run.id = format!("run{i}");
        run.label = format!("variant {i} of {}", SCHEMES[i % 3]);
        runs.push(run);
    }
    ReportData { title: "Forty runs".into(), generated_by: "narrows 0.1.0".into(), runs, ..ReportData::default() }
}

/// Two hundred runs: two schemes at ten loads over ten seeds.
pub(crate) fn wide_grid() -> ReportData {
    let mut runs = Vec::new();
    for load in 1..=10 {
        for seed in 1..=10 {
            for (scheme, name) in SCHEMES.iter().enumerate().take(2) {
                let mut run = incast(scheme, 4, 60);
                run.id = format!("{name},load={load}0%,seed={seed}");
                run.label.clone_from(&run.id);
                run.point = vec![
                    ("scheme".into(), json!(name)),
                    ("load".into(), json!(format!("{load}0%"))),
                    ("seed".into(), json!(seed)),
                ];
                run.summary["seed"] = json!(seed);
                // No two runs have a completion time in common: a curve has values at all curves' places.
                for curve in &mut run.distributions {
                    let shift = f64::from(load * 97 + seed * 13) * 1e-3 + scheme as f64 * 0.37;
                    curve.fct_ns.iter_mut().for_each(|point| point.0 += shift);
                }
                runs.push(run);
            }
        }
    }
    ReportData { title: "Two hundred runs".into(), generated_by: "narrows 0.1.0".into(), runs, ..ReportData::default() }
}

/// [`mixed`], with text that would break a page which trusts it.
pub(crate) fn hostile() -> ReportData {
    let mut data = mixed();
    let markup = "</script><script>window.pwned=1</script><!--<img src=x onerror=\"window.pwned=1\">";
    data.title = format!("Title {markup}");
    data.subtitle = format!("Subtitle {markup} & \u{2028} \u{2029} ' \" `${{1}}`");
    data.generated_by = format!("narrows \"><svg onload=window.pwned=1>{markup}");
    data.scenario_toml.push_str(markup);
    data.replay.push(format!("narrows run '{markup}'"));
    data.warnings.push(markup.into());
    data.claims[0].text = markup.into();
    data.claims[0].note = "<b>bold</b> __proto__".into();
    data.pooled = vec![
        Pooled { class: markup.into(), first: markup.into(), few: true, ..Pooled::default() },
        Pooled { class: "__proto__".into(), run: 99, ..Pooled::default() },
        Pooled { class: "constructor".into(), first: markup.into(), ..Pooled::default() },
    ];
    data.counted = vec![Counted { label: markup.into(), kind: "constructor".into() }];
    let traits = vec![Trait::default(), Trait { counted: 99, ..Trait::default() }];
    let of_class = SlowestOfClass { class: "__proto__".into(), traits, ..SlowestOfClass::default() };
    data.slowest = vec![Slowest { classes: vec![of_class], ..Slowest::default() }];
    let run = &mut data.runs[0];
    run.id = markup.into();
    run.label = format!("Uno {markup}");
    run.warnings.push(markup.into());
    data.causes.push(WarningGroupData { runs: markup.into(), text: markup.into() });
    run.links[0].name = format!("{markup} __proto__");
    run.links[0].class = "constructor".into();
    run.links[1].name = "constructor>__proto__".into();
    run.failures = vec![FailureData {
        links: vec![markup.into(), "constructor>__proto__".into()],
        count: 2,
        down_ns: vec![(100_000_000, None)],
    }];
    run.collectives = vec![ring(0, &mut Noise(1))];
    run.collectives[0].job = markup.into();
    run.distributions.push(DistributionData {
        class: "__proto__ </script>\"]'".into(),
        fct_ns: vec![(10.0, 0.5), (20.0, 1.0)],
        slowdown: vec![(1.0, 1.0)],
    });
    run.distributions.push(DistributionData { class: "constructor".into(), ..run.distributions[0].clone() });
    run.traces[0].name = "constructor".into();
    run.summary["flows"]["sizes"]["constructor"] = run.summary["flows"]["all"].clone();
    run.summary["flows"]["sizes"]["__proto__"] = run.summary["flows"]["all"].clone();
    if let Some(rates) = &mut run.rates {
        rates.flows[0].label = markup.into();
        rates.flows[1].class = "constructor".into();
    }
    data
}

fn incast(scheme: usize, flow_count: usize, samples: usize) -> RunData {
    let mut noise = Noise(scheme as u64 * 7919 + flow_count as u64);
    let end_ns = [690e6, 740e6, 810e6][scheme];
    let step_ns = end_ns / samples as f64;
    let time_ns: Vec<u64> = (0..samples).map(|i| (i as f64 * step_ns) as u64).collect();
    let fair = LINK_BPS / flow_count as f64;

    let mut flows: Vec<FlowRate> = (0..flow_count)
        .map(|i| {
            let inter = i >= flow_count / 2;
            let class = if inter { "inter" } else { "intra" };
            let number = i % (flow_count / 2) + 1;
            FlowRate { id: i as u64, label: format!("{class} {number}"), class: class.into(), rate_bps: Vec::new() }
        })
        .collect();
    let mut jain = Vec::new();
    for &t in &time_ns {
        let progress = t as f64 / end_ns;
        let mut shares: Vec<f64> = Vec::new();
        for i in 0..flow_count {
            let inter = i >= flow_count / 2;
            let side = if inter { -1.0 } else { 1.0 };
            let bias = match scheme {
                0 => 0.75 * (-progress * 45.0).exp(),
                1 => 0.80 * (-progress * 2.2).exp(),
                _ => -0.55 + 0.25 * (progress * 40.0).sin(),
            };
            let own = ((i as f64) * 1.7 + progress * 30.0).sin() * [0.03, 0.07, 0.12][scheme];
            shares.push((1.0 + side * bias + own + (noise.next() - 0.5) * [0.04, 0.06, 0.2][scheme]).max(0.02));
        }
        let sum: f64 = shares.iter().sum();
        let squares: f64 = shares.iter().map(|s| s * s).sum();
        jain.push(Some(sum * sum / (flow_count as f64 * squares)));
        for (flow, share) in flows.iter_mut().zip(&shares) {
            let early = flow.class == "intra" && progress > 0.97;
            let rate = fair * share * flow_count as f64 / sum.max(flow_count as f64) * 0.97;
            flow.rate_bps.push(if early { None } else { Some(rate.round()) });
        }
    }

    let port = |name: &str, level: f64, noise: &mut Noise| PortQueue {
        name: name.into(),
        queue_bytes: time_ns
            .iter()
            .map(|&t| {
                let start = 900_000.0 * (-(t as f64) / 20e6).exp();
                (start + level * (0.6 + 0.8 * noise.next()) * (1.0 + (t as f64 / 31e6).sin()).max(0.1)) as u64
            })
            .collect(),
        phantom_bytes: if scheme == 0 {
            time_ns.iter().map(|&t| (520_000.0 + 260_000.0 * (t as f64 / 23e6).sin()) as u64).collect()
        } else {
            Vec::new()
        },
    };
    let level = [18_000.0, 210_000.0, 340_000.0][scheme];
    let ports = vec![
        port("dc0/edge3 → host 28", level, &mut noise),
        port("dc1/border0 → dc0/border0", level / 3.0, &mut noise),
    ];

    let traces = (0..4)
        .flat_map(|i| {
            let flow = (i * flow_count / 4) as u64;
            let bdp = if i < 2 { 175_000.0 } else { 3_100_000.0 };
            let time: Vec<u64> = time_ns.iter().step_by(2).copied().collect();
            let cwnd = time.iter().map(|&t| bdp * (0.8 + 0.3 * ((t as f64 / 17e6) + i as f64).sin().abs())).collect();
            let alpha = time.iter().map(|&t| 1e6 * (0.1 + 0.9 * (-(t as f64) / 90e6).exp())).collect();
            [
                TraceData { flow, name: "cwnd_bytes".into(), time_ns: time.clone(), values: cwnd },
                TraceData { flow, name: "alpha_ppm".into(), time_ns: time, values: alpha },
            ]
        })
        .collect();

    RunData {
        id: format!("{scheme}"),
        label: SCHEMES[scheme].into(),
        point: Vec::new(),
        summary: summary(scheme, flow_count, end_ns),
        warnings: Vec::new(),
        distributions: ["all", "intra", "inter", "small (< 64 KiB)"]
            .iter()
            .enumerate()
            .map(|(c, class)| distribution(class, c, scheme, &mut noise))
            .collect(),
        rates: Some(RatesData { time_ns: time_ns.clone(), flows, jain }),
        queues: Some(QueuesData { time_ns, ports }),
        buffers: None,
        traces,
        links: links(scheme, &mut noise),
        ..RunData::default()
    }
}

fn distribution(class: &str, index: usize, scheme: usize, noise: &mut Noise) -> DistributionData {
    let centre = [300e6, 40e6, 620e6, 40e3][index] * [1.0, 1.25, 1.6][scheme];
    let spread = [0.9, 0.5, 0.25, 0.7][index] * [0.7, 1.0, 1.3][scheme];
    let mut slowest = 0.0_f64;
    let count = 120;
    let mut fct_ns = Vec::new();
    let mut slowdown = Vec::new();
    for k in 1..=count {
        let p = f64::from(k) / f64::from(count);
        let z = (p / (1.001 - p)).ln() / 1.7 + noise.next() * 0.05;
        slowest = slowest.max(centre * (z * spread).exp());
        fct_ns.push((slowest.round(), p));
        slowdown.push((1.0 + slowest / centre * [0.6, 1.1, 1.9][scheme], p));
    }
    DistributionData { class: class.into(), fct_ns, slowdown }
}

fn stats(mean: f64) -> Value {
    json!({ "mean": mean, "p50": mean * 0.96, "p90": mean * 1.12, "p95": mean * 1.2, "p99": mean * 1.31, "max": mean * 1.4 })
}

fn summary(scheme: usize, flow_count: usize, end_ns: f64) -> Value {
    let class = |count: usize, ns: f64, slow: f64| json!({ "count": count, "completed": count, "fct_ns": stats(ns), "slowdown": stats(slow), "goodput_bps": 11.9e9 });
    let slow = [1.04, 1.21, 1.52][scheme];
    let converged = [Some(31_400_000u64), None, None][scheme];
    json!({
        "schema": 1, "scenario": "uno/fig8", "seed": 1,
        "flows": {
            "all": class(flow_count, end_ns * 0.93, slow),
            "intra": class(flow_count / 2, end_ns * 0.90, slow * 0.98),
            "inter": class(flow_count / 2, end_ns * 0.96, slow * 1.04),
            "sizes": {
                "small (< 64 KiB)": class(120, 44e3, slow * 1.1),
                "medium (< 1 MiB)": class(60, 310e3, slow * 1.3),
                "large (< 16 MiB)": class(20, 2.1e6, slow * 1.9),
                "huge": class(4, 9.7e6, slow * 1.5)
            }
        },
        "network": {
            "data_packets": 524_288u64, "packet_hops": 6_291_456u64, "drops": ([0, 312, 1904][scheme]),
            "ecn_marks": ([88_112, 41_233, 18_204][scheme]), "retransmits": ([0, 318, 1960][scheme]),
            "timeouts": ([0, 0, 7][scheme]), "max_queue_bytes": ([918_000, 1_048_576, 1_048_576][scheme])
        },
        "fairness": { "jain_mean": ([0.982, 0.871, 0.742][scheme]), "jain_final": ([0.998, 0.964, 0.781][scheme]), "converged_at_ns": converged },
        "law": {
            "name": (["unocc", "gemini", "mprdma + bbr"][scheme]),
            "actions": { "increases": ([91_022, 60_113, 71_002][scheme]), "cuts": ([4_410, 2_212, 1_190][scheme]), "quick_adapts": ([8, 0, 0][scheme]) }
        },
        "engine": { "events": 8_112_034u64, "wall_s": 0.41, "cpu_s": 0.4, "threads": 1, "packet_hops_per_s": 38.1e6, "peak_rss_bytes": 41_222_144u64 }
    })
}

fn links(scheme: usize, noise: &mut Noise) -> Vec<LinkData> {
    let mut links = vec![LinkData {
        name: "dc0/edge3 → host 28".into(),
        class: "host".into(),
        utilisation: [0.981, 0.942, 0.884][scheme],
        packets: 524_288,
        drops: [0, 312, 1904][scheme],
        losses: 0,
        marks: [88_112, 41_233, 18_204][scheme],
        max_queue_bytes: 1_048_576,
        ..LinkData::default()
    }];
    for i in 0..8 {
        let share = noise.next();
        links.push(LinkData {
            name: format!("dc1/border0 → dc0/border0 #{i}"),
            class: "inter-dc".into(),
            utilisation: 0.06 * share,
            packets: (32_768.0 * share) as u64,
            drops: 0,
            losses: (4.0 * share) as u64,
            marks: (800.0 * share) as u64,
            max_queue_bytes: (220_000.0 * share) as u64,
            ..LinkData::default()
        });
    }
    for i in 0..32 {
        let share = noise.next() * 0.2;
        links.push(LinkData {
            name: format!("dc0/agg{} → dc0/edge{}", i / 4, i % 4),
            class: "fabric".into(),
            utilisation: share,
            packets: (120_000.0 * share) as u64,
            drops: 0,
            losses: 0,
            marks: (900.0 * share) as u64,
            max_queue_bytes: (90_000.0 * share) as u64,
            ..LinkData::default()
        });
    }
    links
}

fn averages() -> Vec<Averages> {
    let row = |label: &str, mean: f64, best: bool| AverageRow {
        label: label.into(),
        cells: vec![Some((mean, format!("{mean} ± 0.2"))), None],
        best: vec![best, false],
    };
    let part = |load: &str| (format!("load = {load}"), vec![row(SCHEMES[0], 10.5, false), row(SCHEMES[1], 2.5, true)]);
    let columns = vec!["inter p99 slowdown".into(), "requests".into()];
    vec![Averages { title: "Five seeds".into(), columns, parts: vec![part("0.4"), part("0.8")] }]
}

fn claims() -> Vec<ClaimData> {
    let claim = |id: &str, text: &str, paper: &str, measured: &str, verdict, note: &str| ClaimData {
        figure: "Fig. 8".into(),
        id: id.into(),
        text: text.into(),
        paper: paper.into(),
        measured: measured.into(),
        verdict,
        note: note.into(),
    };
    vec![
        claim(
            "jain",
            "Uno's flows converge to equal rates quickly",
            "Jain ≥ 0.95 within 50 ms",
            "31.4 ms",
            VerdictData::Reproduced,
            "",
        ),
        claim("fct-mean", "Uno's mean FCT is at most GEMINI's", "≤ 1.00×", "0.93×", VerdictData::Reproduced, ""),
        claim(
            "fct-p99",
            "Uno's p99 FCT is 1.7 times shorter than MPRDMA+BBR's",
            "1.70×",
            "1.17×",
            VerdictData::DirectionOnly,
            "The paper's timeout policy differs for this baseline; see the as-published variant.",
        ),
        claim(
            "queue",
            "Phantom queues keep the real queue near zero",
            "< 10 KB",
            "18 KB",
            VerdictData::NotReproduced,
            "Start of the incast counts here.",
        ),
        claim("unolb", "Uno with UnoLB improves on Uno with ECMP", "1.3×", "", VerdictData::Pending, "Needs UnoLB."),
    ]
}

const SCENARIO: &str = r#"name = "uno/fig8"
seed = 1
duration = "1s"

[topology]
kind = "fat-tree-pair"
k = 8
link = "100Gbps"
border_links = 8
intra_rtt = "14us"
inter_rtt = "2ms"

[port]
buffer = "1MiB"
ecn = { kind = "red", min = "256KiB", max = "768KiB", probability = 1.0 }
phantom = { drain = 0.9, size = "1.8MiB" }

[[traffic]]
kind = "incast"
to = "dc0/28"
intra = 4
inter = 4
size = "256MiB"

[schemes]
uno = { law = "unocc" }
gemini = { law = "gemini" }
mprdma-bbr = { intra = "mprdma", inter = "bbr" }
"#;
