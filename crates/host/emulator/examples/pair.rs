//! Two hosts, one in each of two datacenters, and iperf3 between them: used to measure the emulator's speed and lateness.
//! Needs root and iperf3.
//!
//! `cargo run --release -p narrows-emulator --example pair -- [rate=1000] [rtt=10] [seconds=5] [gso=1] [ipv6=0]
//! [buffer=1] [flows=1] [join=1] [real_time=1] [loss=0] [capture=FILE]`: rate in Mb/s, round trip in ms, buffer in
//! bandwidth-delay products, loss in parts per million.

use std::error::Error;
use std::process::Stdio;

use emulator::{COALESCE, HostNamespaces, HostSelection, NamespaceOptions, RouterConfig, start};
use experiment::SeriesConfig;
use fabric::{Builder, HostId, LinkClass, LinkId, PortConfig, Routes};
use units::{Bytes, Frac, Rate, Span};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text = |key: &str| arguments.iter().find_map(|it| it.strip_prefix(key)?.strip_prefix('='));
    let number = |key, default| text(key).map_or(Ok(default), str::parse::<u64>);
    let rate = Rate::from_mbps(number("rate", 1000)?);
    let rtt = Span::from_us(number("rtt", 10)? as i64 * 1000);
    let bdp = rate.bytes_in(rtt);
    let buffer = bdp.times(number("buffer", 1)?);
    let loss = Frac::ratio(number("loss", 0)?, 1_000_000);

    let inner = PortConfig::new(Rate::from_bps(rate.bps() * 4), Span::from_us(1));
    let delay = rtt.over(2) - Span::from_us(2);
    let outer = PortConfig { buffer, loss, ..PortConfig::new(rate, delay) };
    let mut builder = Builder::default();
    let (left, right) = (builder.switch(0, "left"), builder.switch(1, "right"));
    for (name, switch, datacenter) in [("alice", left, 0), ("bob", right, 1)] {
        let host = builder.host(datacenter, name);
        builder.connect(host, switch, LinkClass::Host, inner, inner);
    }
    builder.connect(left, right, LinkClass::Inter, outer, outer);
    let network = builder.finish()?;
    let routes = Routes::new(&network)?;

    for name in HostNamespaces::clean_stale()? {
        println!("removed {name}, left by a process that is no more");
    }
    let options = NamespaceOptions {
        hosts: HostSelection::All,
        mtu: 1500,
        gso_max_size: (number("gso", 1)? == 0).then_some(1500),
        quick_ack: false,
        socket_buffer: Bytes::new((bdp.get() * 6).max(64 << 20)),
        congestion: text("law").map(str::to_owned),
        ecn: false,
    };
    let hosts = HostNamespaces::create(&network, &options)?;
    let links: Vec<LinkId> = (0..network.links().len() as u32).map(LinkId).collect();
    let inter = links.iter().find(|it| network.links()[it.index()].class == LinkClass::Inter);
    let config = RouterConfig {
        network: &network,
        routes: &routes,
        seed: 1,
        coalesce: Span::from_us(number("coalesce_us", COALESCE.ns() as u64 / 1000)? as i64),
        join: number("join", 1)? == 1,
        series: SeriesConfig {
            interval: Span::from_ms(10),
            ports: links.clone(),
            flows: Vec::new(),
            ..SeriesConfig::default()
        },
        pcap: text("capture").zip(inter).map(|(path, link)| (*link, path.into())).into_iter().collect(),
        real_time: number("real_time", 1)? == 1,
    };
    let router = start(&hosts, &config)?;
    router.begin();
    let mut ping = hosts.command(HostId(0), "ping")?;
    print!("{}", String::from_utf8(ping.args(["-c3", "-i0.2", "-q", "bob"]).output()?.stdout)?);
    let mut server = hosts.command(HostId(1), "iperf3")?.args(["-s", "-1"]).stdout(Stdio::null()).spawn()?;
    std::thread::sleep(std::time::Duration::from_millis(300));
    let family = if number("ipv6", 0)? == 1 { "-6" } else { "-4" };
    let mut client = hosts.command(HostId(0), "iperf3")?;
    client.args(["-c", "bob", family, "-O2", "-f", "m"]);
    client.arg(format!("-t{}", number("seconds", 5)?)).arg(format!("-P{}", number("flows", 1)?));
    if let Some(more) = text("iperf") {
        client.args(more.split_whitespace());
    }
    print!("{}", String::from_utf8(client.output()?.stdout)?);
    if number("seconds", 5)? == 0 {
        server.kill()?;
    }
    server.wait()?;
    let outcome = router.stop()?;

    for (link, link_outcome) in outcome.links.iter().enumerate() {
        println!("{:<14} {link_outcome:?}", network.link_name(LinkId(link as u32)));
    }
    let percent = 100 * outcome.cpu.ps() / outcome.wall.ps().max(1);
    println!("lateness {}", shown(&outcome.lateness));
    println!("reading  {}", shown(&outcome.reading));
    println!("cpu {percent} % of {}, busiest second {}", outcome.wall, outcome.busiest_second);
    println!("read {}, written {}, real time {}", outcome.packets_read, outcome.packets_written, outcome.real_time);
    println!("{:?}, devices dropped {}", outcome.refused, outcome.device_drops);
    println!("{}", outcome.bottleneck.as_deref().unwrap_or("the emulator was not the bottleneck"));
    Ok(())
}

fn shown(lateness: &emulator::Lateness) -> String {
    format!("p50 {}, p99 {}, max {} of {}", lateness.p50, lateness.p99, lateness.max, lateness.count)
}
