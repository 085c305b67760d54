//! Packet transport between two hosts: links, queues, marking, phantom queues, routing and the networks made of them. The
//! crate handles sizes, marks and addresses; it does not depend on laws or flows.
//!
//! A directed link and the port that feeds it are one thing here: the port queues and serialises, the link adds
//! its propagation delay.

#![forbid(unsafe_code)]

mod arrival;
mod bursts;
mod codel;
mod credit;
mod discipline;
mod fq_codel;
mod ideal;
mod impairment_stage;
mod impairments;
mod ingress_limit;
mod item;
mod losses;
mod mark;
mod network;
mod outages;
mod output;
mod pauses;
mod plain;
mod port;
mod queued;
mod rate_schedule;
mod ring;
mod routing;
mod service;
mod shared;
pub mod topology;

pub use arrival::Arrival;
pub use bursts::{BurstError, Bursts, MAX_IN_GROUP};
pub use codel::{CoDel, EcnResponse, MAX_INTERVAL};
pub use credit::{CreditError, CreditParams, CreditQueue, CreditShaper, Offered};
pub use discipline::Discipline;
pub use fq_codel::{FqCoDel, MAX_QUEUES, MIN_QUANTUM};
pub use ideal::{Burst, Ways, base_one_way, base_rtt};
pub use impairments::{
    AckAggregation, ImpairmentCounters, ImpairmentError, ImpairmentId, Impairments, JitterDistribution, JitterOrder,
    LinkJitter, MAX_BURST, MAX_HOLD, Policer, Reordering,
};
pub use ingress_limit::{IngressLimit, Limit};
pub use item::QueueItem;
pub use losses::Losses;
pub use mark::Marker;
pub use network::{Builder, HostId, Link, LinkClass, LinkId, Network, NetworkError, Node, NodeId, NodeKind, Relay};
pub use outages::Outages;
pub use output::{DropCause, Occupancy, Port, PortExtras, PortMode, PortOutlet, PortService};
pub use pauses::Pauses;
pub use plain::{PlainPort, PortTransit};
pub use port::{Ecn, InService, MarkAt, Phantom, PhantomQueue, PortConfig, PortError, PortParams, Trim};
pub use queued::{Admitted, Exit, QueuedPort};
pub use rate_schedule::{MAX_SCHEDULE, MIN_PERIOD_CAPACITY, RateSchedule, RateStep, ScheduleError};
pub use routing::{Routes, RoutesFrom, path_hash, switch_salt};
pub use service::SLOWEST;
pub use shared::{
    CLASSES, Departure, Pfc, PfcAction, SharedSwitch, Switch, SwitchItem, SwitchOutlet, headroom, reserved_bytes,
};
