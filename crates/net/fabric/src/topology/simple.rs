//! Small networks: hosts on one switch, and two switches with one link between them.

use crate::{Builder, LinkClass, Network, NetworkError, PortConfig};

/// Hosts on one switch.
#[derive(Clone, Debug)]
pub struct SingleSwitch {
    /// Each host's own port and the switch's port towards it.
    pub hosts: Vec<(PortConfig, PortConfig)>,
}

/// Two switches and one cable between them.
#[derive(Clone, Debug)]
pub struct Dumbbell {
    /// Hosts on the left: their own port and the switch's port towards them.
    pub left: Vec<(PortConfig, PortConfig)>,
    /// Hosts on the right.
    pub right: Vec<(PortConfig, PortConfig)>,
    /// The ports at both ends of the cable.
    pub bottleneck: PortConfig,
    /// The sides are two datacenters, and the cable is the long haul between them.
    pub two_datacenters: bool,
}

/// Builds a single switch.
///
/// # Errors
/// When a port is invalid or there are fewer than two hosts.
pub fn single_switch(plan: &SingleSwitch) -> Result<Network, NetworkError> {
    let mut builder = Builder::default();
    let switch = builder.switch(0, "switch");
    for (index, &(nic, port)) in plan.hosts.iter().enumerate() {
        let host = builder.host(0, format!("host{index}"));
        builder.connect(host, switch, LinkClass::Host, nic, port);
    }
    builder.finish()
}

/// Builds a dumbbell; hosts on the left are numbered first.
///
/// # Errors
/// When a port is invalid or there are fewer than two hosts.
pub fn dumbbell(plan: &Dumbbell) -> Result<Network, NetworkError> {
    lay_dumbbell(plan).finish()
}

/// A dumbbell's nodes and cables, not yet numbered.
pub fn lay_dumbbell(plan: &Dumbbell) -> Builder {
    let mut builder = Builder::default();
    let far = u16::from(plan.two_datacenters);
    let switches = [builder.switch(0, "left"), builder.switch(far, "right")];
    for (side, hosts) in [&plan.left, &plan.right].into_iter().enumerate() {
        let (dc, name) = if side == 0 { (0, "left") } else { (far, "right") };
        for (index, &(nic, port)) in hosts.iter().enumerate() {
            let host = builder.host(dc, format!("{name}.host{index}"));
            builder.connect(host, switches[side], LinkClass::Host, nic, port);
        }
    }
    let class = if plan.two_datacenters { LinkClass::Inter } else { LinkClass::Other };
    builder.connect(switches[0], switches[1], class, plan.bottleneck, plan.bottleneck);
    builder
}
