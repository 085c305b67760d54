//! What happens to a packet between two hosts: links, queues, marking, phantom queues, routing and the networks
//! made of them. It sees sizes, marks and addresses; it knows no law and no flow.
//!
//! A directed link and the port that feeds it are one thing here: the port queues and serialises, the link adds
//! its propagation delay.

#![forbid(unsafe_code)]

mod credit;
mod ideal;
mod losses;
mod mark;
mod network;
mod outages;
mod plain;
mod port;
mod queued;
mod ring;
mod routing;
mod shared;
pub mod topology;

pub use credit::{CreditError, CreditGate, CreditParams, CreditQueue, Offered};
pub use ideal::{Burst, Ways, base_one_way, base_rtt};
pub use losses::{Bursts, Losses, MOST_IN_GROUP};
pub use mark::Marker;
pub use network::{Builder, HostId, Link, LinkClass, LinkId, Network, NetworkError, Node, NodeId, NodeKind};
pub use outages::Outages;
pub use plain::{Passage, PlainPort};
pub use port::{Arrival, Ecn, InService, MarkAt, Phantom, PhantomQueue, PortConfig, PortError, PortParams, SLOWEST};
pub use queued::{Item, QueuedPort};
pub use routing::{Routes, RoutesFrom, path_hash, switch_salt};
pub use shared::{CLASSES, Departure, Framed, Gate, Limit, Outlet, Pfc, SharedSwitch, Switch, headroom, kept};
