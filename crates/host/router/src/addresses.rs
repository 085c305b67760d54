//! Names and addresses of hosts, and the map from an address to its host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fabric::{HostId, Network};
use thiserror::Error;

/// Second byte of the IPv4 addresses of the first `HOSTS_IN_BLOCK` hosts of a datacenter; further hosts have higher
/// numbers.
const V4_BLOCK: u8 = 198;
const V4_BLOCKS: u16 = 256 - V4_BLOCK as u16;
/// Hosts of a datacenter in one block of IPv4 addresses.
const HOSTS_IN_BLOCK: u16 = 254;
const V6_PREFIX: [u16; 6] = [0xfd6e, 0x6172, 0, 0, 0, 0];
const MAX_IN_DATACENTER: u16 = V4_BLOCKS * HOSTS_IN_BLOCK;

/// A version of the Internet Protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl IpVersion {
    /// Returns the length of its header without options, in bytes.
    pub const fn header_bytes(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }
}

/// Error of a network with more hosts than addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("no address for host {hosts} of datacenter {datacenter}; 256 datacenters of 14732 hosts have addresses")]
pub struct TooManyHosts {
    /// The datacenter.
    pub datacenter: u16,
    /// Its number of hosts, at least.
    pub hosts: usize,
}

/// A host's name and addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostPlan {
    /// Its name in the network.
    pub name: String,
    /// 10.198.DATACENTER.HOST, hosts counted from 1; host 255 is 10.199.DATACENTER.1, and so on.
    pub v4: Ipv4Addr,
    /// `fd6e:6172::DATACENTER:HOST`.
    pub v6: Ipv6Addr,
}

/// The plans of a network's hosts, by [`HostId`].
///
/// # Errors
/// When there are more hosts or datacenters than addresses.
pub fn plan(network: &Network) -> Result<Vec<HostPlan>, TooManyHosts> {
    let mut host_counts = vec![0; usize::from(network.datacenters())];
    let mut plans = Vec::with_capacity(network.hosts().len());
    for node in network.hosts() {
        let node = &network.nodes()[node.index()];
        let count: &mut usize = &mut host_counts[usize::from(node.datacenter)];
        *count += 1;
        let too_many = TooManyHosts { datacenter: node.datacenter, hosts: *count };
        let number = u16::try_from(*count).ok().filter(|&number| number <= MAX_IN_DATACENTER);
        let (Ok(datacenter), Some(number)) = (u8::try_from(node.datacenter), number) else { return Err(too_many) };
        let (block, in_block) = ((number - 1) / HOSTS_IN_BLOCK, (number - 1) % HOSTS_IN_BLOCK + 1);
        let mut v6 = [0; 8];
        v6[..6].copy_from_slice(&V6_PREFIX);
        (v6[6], v6[7]) = (datacenter.into(), number);
        plans.push(HostPlan {
            name: node.name.clone(),
            v4: Ipv4Addr::new(10, V4_BLOCK + block as u8, datacenter, in_block as u8),
            v6: Ipv6Addr::from(v6),
        });
    }
    Ok(plans)
}

/// Map from an address to its host.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// By datacenter, then by the host's number there, from 1.
    hosts: Vec<Vec<HostId>>,
}

impl HostPlan {
    /// Returns its address of this IP version.
    pub fn address(&self, version: IpVersion) -> IpAddr {
        match version {
            IpVersion::V4 => self.v4.into(),
            IpVersion::V6 => self.v6.into(),
        }
    }
}

impl Addresses {
    /// The addresses of [`plan`].
    pub fn new(plans: &[HostPlan]) -> Self {
        let mut hosts: Vec<Vec<HostId>> = Vec::new();
        for (host, plan) in plans.iter().enumerate() {
            let datacenter = usize::from(plan.v4.octets()[2]);
            if hosts.len() <= datacenter {
                hosts.resize_with(datacenter + 1, Vec::new);
            }
            hosts[datacenter].push(HostId(host as u32));
        }
        Self { hosts }
    }

    /// Returns the host with an IPv4 address, given as its bytes.
    pub fn host_v4(&self, address: [u8; 4]) -> Option<HostId> {
        let [ten, block, datacenter, in_block] = address;
        let block = block.checked_sub(V4_BLOCK).filter(|_| ten == 10)?;
        let in_block = u16::from(in_block).checked_sub(1).filter(|&it| it < HOSTS_IN_BLOCK)?;
        self.host(datacenter, u16::from(block) * HOSTS_IN_BLOCK + in_block + 1)
    }

    /// Returns the host with an IPv6 address, given as its bytes.
    pub fn host_v6(&self, address: [u8; 16]) -> Option<HostId> {
        let segments = Ipv6Addr::from(address).segments();
        let datacenter = u8::try_from(segments[6]).ok().filter(|_| segments.starts_with(&V6_PREFIX))?;
        self.host(datacenter, segments[7])
    }

    /// Returns the host of this number, from 1, in a datacenter.
    fn host(&self, datacenter: u8, host: u16) -> Option<HostId> {
        self.hosts.get(usize::from(datacenter))?.get(usize::from(host.checked_sub(1)?)).copied()
    }
}

#[cfg(test)]
mod tests {
    use fabric::{Builder, LinkClass, PortConfig};
    use units::{Rate, Span};

    use super::*;

    fn network(hosts: usize) -> Network {
        let mut builder = Builder::default();
        let port = PortConfig::new(Rate::from_gbps(1), Span::from_us(1));
        let switches = [builder.switch(0, "left"), builder.switch(1, "right")];
        for host in 0..hosts {
            let datacenter = host % 2;
            let node = builder.host(datacenter as u16, format!("h{host}"));
            builder.connect(node, switches[datacenter], LinkClass::Host, port, port);
        }
        builder.connect(switches[0], switches[1], LinkClass::Inter, port, port);
        builder.finish().unwrap()
    }

    #[test]
    fn every_host_is_found_by_both_its_addresses() {
        let plans = plan(&network(1_500)).unwrap();
        assert_eq!((plans[3].v4, plans[3].v6.to_string()), (Ipv4Addr::new(10, 198, 1, 2), "fd6e:6172::1:2".to_owned()));
        let last = (plans[1_499].v4, plans[1_499].v6.to_string());
        assert_eq!(last, (Ipv4Addr::new(10, 200, 1, 242), "fd6e:6172::1:2ee".to_owned()));
        let addresses = Addresses::new(&plans);
        for (host, plan) in plans.iter().enumerate() {
            assert_eq!(addresses.host_v4(plan.v4.octets()), Some(HostId(host as u32)));
            assert_eq!(addresses.host_v6(plan.v6.octets()), Some(HostId(host as u32)));
        }
    }

    #[test]
    fn other_addresses_belong_to_no_host() {
        let addresses = Addresses::new(&plan(&network(3)).unwrap());
        for address in [[10, 198, 0, 0], [10, 198, 0, 3], [10, 198, 2, 1], [10, 199, 0, 1], [0; 4], [255; 4]] {
            assert_eq!(addresses.host_v4(address), None, "{address:?}");
        }
        for address in ["fd6e:6172::", "fd6e:6172::1:0", "fd6e:6172::1:0:1", "fe80::0:1", "ff02::2", "::"] {
            let address: Ipv6Addr = address.parse().unwrap();
            assert_eq!(addresses.host_v6(address.octets()), None, "{address}");
        }
    }

    #[test]
    fn too_many_hosts_are_an_error() {
        assert!(plan(&network(2 * 14_732)).is_ok());
        assert!(matches!(plan(&network(2 * 14_733)), Err(TooManyHosts { hosts: 14_733, .. })));
    }
}
