//! Two hosts and a link between them, created for each test.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use emulator::{COALESCE, Error, HostNamespaces, HostSelection, NamespaceOptions, RouterConfig, Running, start};
use experiment::SeriesConfig;
use fabric::{Builder, HostId, LinkClass, LinkId, Network, PortConfig, Routes};
use router::HostPlan;
use units::{Bytes, Rate, Span};

pub(crate) const ALICE: HostId = HostId(0);
pub(crate) const BOB: HostId = HostId(1);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Hosts, and the network between them. Its namespaces go before its place in the queue.
pub(crate) struct Set {
    pub(crate) hosts: HostNamespaces,
    pub(crate) network: Network,
    _guard: MutexGuard<'static, ()>,
}

/// 200 Mb/s, and 10 ms there and back.
pub(crate) fn middle() -> PortConfig {
    PortConfig { buffer: Bytes::new(500_000), ..PortConfig::new(Rate::from_mbps(200), Span::from_ms(5)) }
}

pub(crate) fn network(middle: &PortConfig) -> Network {
    let edge = PortConfig::new(Rate::from_gbps(1), Span::from_us(1));
    let mut builder = Builder::default();
    let (left, right) = (builder.switch(0, "left"), builder.switch(1, "right"));
    for (name, switch, datacenter) in [("alice", left, 0), ("bob", right, 1)] {
        let host = builder.host(datacenter, name);
        builder.connect(host, switch, LinkClass::Host, edge, edge);
    }
    builder.connect(left, right, LinkClass::Inter, *middle, *middle);
    builder.finish().unwrap()
}

pub(crate) fn options() -> NamespaceOptions {
    NamespaceOptions {
        hosts: HostSelection::All,
        mtu: 1500,
        gso_max_size: None,
        quick_ack: false,
        socket_buffer: Bytes::new(16 << 20),
        congestion: None,
        ecn: true,
    }
}

/// Exclusive access, for tests that make their hosts elsewhere.
pub(crate) fn exclusive() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The hosts, or none, with a word about it, where they cannot be made.
pub(crate) fn set(middle: &PortConfig) -> Option<Set> {
    set_of(network(middle))
}

/// The same, for any network.
pub(crate) fn set_of(network: Network) -> Option<Set> {
    let guard = exclusive();
    match HostNamespaces::create(&network, &options()) {
        Ok(hosts) => Some(Set { hosts, network, _guard: guard }),
        Err(error @ (Error::NotPermitted { .. } | Error::NoIp | Error::NoTun { .. })) => {
            testing::skipped_here(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

impl Set {
    pub(crate) fn route(&self, captured: Vec<(LinkId, PathBuf)>) -> Running {
        let routes = Routes::new(&self.network).unwrap();
        let config = RouterConfig {
            network: &self.network,
            routes: &routes,
            seed: 1,
            coalesce: COALESCE,
            join: true,
            series: SeriesConfig::default(),
            pcap: captured,
            real_time: false,
        };
        start(&self.hosts, &config).unwrap()
    }

    pub(crate) fn plan(&self, host: HostId) -> &HostPlan {
        &self.hosts.plan()[host.index()]
    }

    pub(crate) fn link(&self, name: &str) -> LinkId {
        (0..self.network.links().len() as u32).map(LinkId).find(|&it| self.network.link_name(it) == name).unwrap()
    }
}

/// Returns the remains of a process's hosts in the system.
pub(crate) fn left_behind(process: u32) -> Vec<String> {
    let names = |directory: &str| {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect::<Vec<_>>()
    };
    let mut left = names("/run/netns");
    left.extend(names("/etc/netns"));
    left.retain(|name| name.starts_with(&format!("narrows-{process}-")));
    left.extend(names("/run/narrows").into_iter().filter(|name| name.starts_with(&format!("{process}."))));
    left
}
