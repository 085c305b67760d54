//! Clients that read from servers and request the next read when one completes: a closed loop.
//!
//! Each connection of a client is a chain of flows; each flow waits for the previous one. If the client reads until the
//! stop, a chain has as many reads as fit with the two hosts' links as the only limit, so it never ends before the stop.
//! Reads that do not start are not part of the results.

use experiment::{Dependency, FlowId};
use fabric::HostId;
use units::{Bytes, Rate, Span};

use super::{DraftFlow, DraftStart, TrafficContext, TrafficFlows, later};
use crate::config::{ClosedLoop, Connections};
use crate::decode::Located;
use crate::distribution::Distribution;
use crate::error::SpannedError;
use crate::index::index32;
use crate::random::Draws;

/// More reads than this are a mistake.
const MAX_FLOWS: usize = 10_000_000;

/// A closed loop of reads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadLoop {
    /// The traffic entry, from 0.
    pub traffic: usize,
    /// Number of clients.
    pub clients: usize,
    /// Reads that each keeps under way.
    pub outstanding: u32,
    /// Mean size of a read.
    pub mean_size: Bytes,
    /// Reads of each client; none if it reads until the stop.
    pub reads: Option<u32>,
    /// The rate of these clients' links together, which limits their reads.
    pub at_most: Rate,
}

/// Sizes of reads.
enum ReadSizes {
    Same(Bytes),
    Drawn(Distribution),
}

/// A connection: each read on it follows the one before.
struct Chain {
    number: u64,
    server: HostId,
    client: HostId,
    /// The slower one of the two hosts' links.
    rate: Rate,
    /// Time that a request takes.
    request: Span,
    /// Reads still to be made; none if they go on until the stop.
    left: Option<u32>,
    /// Start of the next read if nothing delays those before: not later than in any run.
    earliest: Span,
    /// The last read so far.
    last: Option<FlowId>,
}

pub(crate) fn make(
    entry: &ClosedLoop,
    traffic: usize,
    draws: Draws,
    context: &TrafficContext<'_>,
) -> Result<TrafficFlows, SpannedError> {
    let sizes = ReadSizes::of(entry, context)?;
    let pairs = pairs(entry, context)?;
    let reads = entry.reads.map(|reads| reads.get());
    check_count(entry, pairs.len())?;
    let mut chains = chains(entry, &pairs, context)?;
    let mut output = TrafficFlows { open_ended: reads.is_none(), ..TrafficFlows::default() };
    // The first reads of all connections, then the second ones, and so on.
    for turn in 0u64.. {
        chains.retain(|chain| chain.goes_on(context.stop));
        if chains.is_empty() {
            break;
        }
        check_fits(entry, output.flows.len() + chains.len())?;
        for chain in &mut chains {
            // By connection and turn, under 2^32 each: a read has its size, whichever other clients read, and for how
            // long.
            let size = sizes.size(draws.at((chain.number << 32) + turn), context)?;
            chain.read(size, entry, &mut output);
        }
    }
    output.closed_loop = Some(ReadLoop {
        traffic,
        clients: pairs.len(),
        outstanding: entry.outstanding.get(),
        mean_size: sizes.mean(),
        reads,
        at_most: Rate::from_bps(pairs.iter().map(|&(client, _)| context.downlink_rate(client).bps()).sum()),
    });
    Ok(output)
}

/// The connections of all clients, those of a client one after the other.
fn chains(
    entry: &ClosedLoop,
    pairs: &[(HostId, HostId)],
    context: &TrafficContext<'_>,
) -> Result<Vec<Chain>, SpannedError> {
    let outstanding = entry.outstanding.get();
    check_fits(entry, pairs.len().saturating_mul(outstanding as usize))?;
    let mut chains = Vec::new();
    let mut start = entry.start;
    for &(client, server) in pairs {
        for index in 0..outstanding {
            chains.push(Chain {
                number: chains.len() as u64,
                server,
                client,
                rate: context.uplink_rate(server).min(context.downlink_rate(client)),
                request: context.survey.ack_delay(client, server).unwrap_or(Span::ZERO),
                left: entry.reads.map(|reads| reads.get() / outstanding + u32::from(index < reads.get() % outstanding)),
                earliest: start,
                last: None,
            });
            start = later(start, entry.stagger);
        }
    }
    Ok(chains)
}

impl Chain {
    /// Returns whether one more read is made.
    fn goes_on(&self, stop: Span) -> bool {
        match self.left {
            Some(left) => left > 0,
            None => self.last.is_none() || self.earliest < stop,
        }
    }

    /// Makes the next read.
    fn read(&mut self, size: Bytes, entry: &ClosedLoop, output: &mut TrafficFlows) {
        let start = match self.last {
            None => DraftStart::At(self.earliest),
            Some(last) => {
                // A request carries the last acknowledgement of its connection. It is not sent as a packet here, and so may
                // not be the earlier one.
                let acknowledged = (entry.connections == Connections::Persistent).then_some(Dependency::Complete(last));
                let dependencies =
                    output.dependencies.add([Dependency::Received(last)].into_iter().chain(acknowledged));
                DraftStart::Waits { dependencies, after: entry.compute }
            }
        };
        self.last = Some(FlowId(index32(output.flows.len())));
        output.flows.push(DraftFlow { src: self.server, dst: self.client, size, start });
        self.left = self.left.map(|left| left - 1);
        let min_times = [self.rate.tx_time(size), self.request, entry.compute];
        self.earliest = min_times.into_iter().fold(self.earliest, later);
    }
}

/// Each client that reads, and its server: clients in order, evenly spread over the servers in order.
fn pairs(entry: &ClosedLoop, context: &TrafficContext<'_>) -> Result<Vec<(HostId, HostId)>, SpannedError> {
    let hosts = |set| -> Result<Vec<HostId>, SpannedError> {
        let members = context.members(set)?;
        Ok((0..index32(members.len())).map(HostId).filter(|host| members[host.index()]).collect())
    };
    let (clients, servers) = (hosts(&entry.clients)?, hosts(&entry.servers)?);
    let active = match entry.active {
        Some(active) if active.value as usize > clients.len() => {
            return Err(SpannedError::new(active.origin, format!("{} of {} clients", active.value, clients.len()))
                .label(format!("expected 0 to {}", clients.len())));
        }
        Some(active) => active.value as usize,
        None => clients.len(),
    };
    let server = |index: usize| servers[index * servers.len() / clients.len()];
    let pairs: Vec<(HostId, HostId)> =
        clients.iter().take(active).enumerate().map(|(index, &client)| (client, server(index))).collect();
    match pairs.iter().find(|(client, server)| client == server) {
        Some((HostId(host), _)) => {
            Err(SpannedError::new(entry.clients.origin, format!("host {host} would read from itself"))
                .label("also among `servers`"))
        }
        None => Ok(pairs),
    }
}

/// Refuses an implausible number of reads, if the number is known.
fn check_count(entry: &ClosedLoop, clients: usize) -> Result<(), SpannedError> {
    match entry.reads {
        Some(reads) if (reads.get() as usize).saturating_mul(clients) > MAX_FLOWS => {
            Err(SpannedError::new(reads.origin, format!("{} reads of each of {clients} clients", reads.get()))
                .label(format!("expected at most {MAX_FLOWS} in all")))
        }
        _ => Ok(()),
    }
}

/// The same where it is not.
fn check_fits(entry: &ClosedLoop, flows: usize) -> Result<(), SpannedError> {
    if flows <= MAX_FLOWS {
        return Ok(());
    }
    Err(SpannedError::new(entry.outstanding.origin, format!("over {MAX_FLOWS} reads could start by the stop"))
        .label("expected fewer")
        .help("set the number of reads (`reads`), or let the run stop earlier"))
}

impl ReadSizes {
    fn of(entry: &ClosedLoop, context: &TrafficContext<'_>) -> Result<Self, SpannedError> {
        match (entry.size, &entry.sizes) {
            (Some(size), None) => context.size(size).map(Self::Same),
            (None, Some(name)) => Distribution::named(name, context.inputs).map(Self::Drawn),
            (Some(_), Some(name)) => {
                Err(SpannedError::new(name.origin, "`size` and `sizes` both set the size of reads: give one"))
            }
            (None, None) => {
                Err(SpannedError::new(entry.clients.origin, "these clients read nothing: reads have no size")
                    .help("give size = \"64KB\" or sizes = \"websearch\""))
            }
        }
    }

    /// The size of a read, for which `bits` were drawn.
    fn size(&self, bits: u64, context: &TrafficContext<'_>) -> Result<Bytes, SpannedError> {
        match self {
            Self::Same(size) => Ok(*size),
            Self::Drawn(sizes) => context.size(Located::default_of(Bytes::new(sizes.sample(bits)))),
        }
    }

    fn mean(&self) -> Bytes {
        match self {
            Self::Same(size) => *size,
            Self::Drawn(sizes) => Bytes::new(sizes.mean_bits() >> 16),
        }
    }
}
