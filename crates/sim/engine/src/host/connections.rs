//! Connections that outlive their flows, and the path metrics that hosts keep of those that do not.
//!
//! A flow that is `kept` ([`experiment::FlowSpec::kept`]) goes on a connection of its pair of hosts, class and law that has
//! nothing to send, of several on that which was opened first. If there is none, it opens one. So a connection carries a
//! message at a time, and there are as many as were ever needed at once, as in a pool of connections of an application.

use std::collections::BTreeMap;

use experiment::FlowSpec;
use flow::{DestinationMetrics, FlowConfig, IdleConnection, Sender, TcpConfig};
use laws::ControlLaw;
use units::Time;

use super::sending::Active;

/// A connection by the host that opened it, its destination, its class, its law, and the flow that it was opened for.
type ConnectionKey = (u32, u32, u8, u16, u32);

/// The connections of the hosts of one partition, numbered locally.
pub(super) struct Connections<L> {
    /// Those that have nothing to send.
    idle: BTreeMap<ConnectionKey, IdleConnection<L>>,
    /// Per-destination state of a host.
    remembered: BTreeMap<(u32, u32), DestinationMetrics>,
}

impl<L: ControlLaw> Connections<L> {
    pub(super) fn new() -> Self {
        Self { idle: BTreeMap::new(), remembered: BTreeMap::new() }
    }

    /// Returns the sender of a flow that starts, and the flow that its connection was opened for. If that is this one,
    /// it has the law `first`, and each of its other subflows one of `others`.
    pub(super) fn open(
        &mut self,
        host: usize,
        spec: &FlowSpec,
        config: FlowConfig,
        first: L,
        others: impl Fn() -> L,
        now: Time,
    ) -> (Sender<L>, u32) {
        let key = |number| (host as u32, spec.dst.0, spec.class, spec.kind, number);
        let idle = if spec.kept { self.idle.range(key(0)..=key(u32::MAX)).next().map(|(&key, _)| key) } else { None };
        if let Some((key, connection)) = idle.and_then(|key| self.idle.remove_entry(&key)) {
            return (connection.send(config), key.4);
        }
        let mut sender = Sender::new(config, first, now);
        let laws = config.paths.laws();
        if laws > 1 {
            sender = sender.with_laws((1..laws).map(|_| others()), now);
        }
        if config.tcp.remembers
            && let Some(&remembered) = self.remembered.get(&(host as u32, spec.dst.0))
        {
            sender.remember(remembered);
        }
        (sender, config.number)
    }

    /// Closes a complete flow.
    pub(super) fn close(&mut self, host: usize, spec: &FlowSpec, flow: Active<L>, tcp: TcpConfig) {
        let Active { sender, connection, .. } = flow;
        if spec.kept {
            let key = (host as u32, spec.dst.0, spec.class, spec.kind, connection);
            self.idle.insert(key, sender.into_connection());
        } else if tcp.remembers {
            self.remembered.entry((host as u32, spec.dst.0)).or_default().learn(&sender);
        }
    }
}
