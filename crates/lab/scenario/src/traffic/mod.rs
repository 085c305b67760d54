//! Expansion of `[[traffic]]` and `[[job]]` entries into flows.

mod allreduce;
mod closed_loop;
mod collective;
mod groups;
#[cfg(feature = "import")]
mod import;
#[cfg(not(feature = "import"))]
mod import {
    //! Stub for builds without the feature `import`: `kind = "import"` is an error.

    use super::{TrafficContext, TrafficFlows};
    use crate::WITHOUT_IMPORT;
    use crate::config::ImportedTraffic;
    use crate::error::SpannedError;

    pub(super) fn make(entry: &ImportedTraffic, _: &TrafficContext<'_>) -> Result<TrafficFlows, SpannedError> {
        Err(SpannedError::new(entry.format.origin, WITHOUT_IMPORT))
    }
}
mod incast;
mod job;
mod list;
mod permutation;
mod placement;
mod poisson;
mod ready;
mod requests;
mod steps;

pub(crate) use list::{FLOWS, read as read_list};

use experiment::{Dependencies, DependencySet, HostConfig};
use fabric::{HostId, Network, Routes};
use units::{Bytes, Rate, Span};

pub use closed_loop::ReadLoop;
pub(crate) use job::make as make_job;
pub use job::{JobFlows, JobIteration, StepKind};
pub use poisson::Arrivals;
pub use requests::RequestArrivals;

use crate::class::FlowClass;
use crate::config::{HostRef, HostSet, LongFlows, Traffic};
use crate::decode::Located;
use crate::error::{SourceSpan, SpannedError};
use crate::index::index32;
use crate::inputs::Inputs;
use crate::random::Draws;
use crate::survey::Survey;

/// A flow before it has a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DraftFlow {
    pub(crate) src: HostId,
    pub(crate) dst: HostId,
    pub(crate) size: Bytes,
    pub(crate) start: DraftStart,
}

/// Start of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DraftStart {
    /// At this time since the run began.
    At(Span),
    /// The time `after` after the last of its dependencies is met. Dependencies name flows by their index within the
    /// entry.
    Waits {
        /// A set of [`TrafficFlows::dependencies`].
        dependencies: DependencySet,
        /// Computation time of the sender.
        after: Span,
    },
}

/// Inputs from which traffic is made.
pub(crate) struct TrafficContext<'a> {
    pub(crate) network: &'a Network,
    pub(crate) routes: &'a Routes,
    /// Base round trips and links of the paths between hosts.
    pub(crate) survey: &'a Survey,
    pub(crate) host: &'a HostConfig,
    pub(crate) inputs: &'a Inputs,
    pub(crate) stop: Span,
    pub(crate) seed: u64,
}

/// Flows that an entry produces.
#[derive(Default)]
pub(crate) struct TrafficFlows {
    pub(crate) flows: Vec<DraftFlow>,
    /// Dependencies of the flows, which name flows by their index within the entry.
    pub(crate) dependencies: Dependencies,
    pub(crate) receivers: Vec<HostId>,
    pub(crate) arrivals: Vec<Arrivals>,
    pub(crate) demands: Vec<Demand>,
    pub(crate) requested: Option<RequestArrivals>,
    pub(crate) closed_loop: Option<ReadLoop>,
    /// Set if more flows are generated than can start before `stop`. Those that never start are not reported as losses.
    pub(crate) open_ended: bool,
    pub(crate) warnings: Vec<String>,
    /// Notes for the user that are not warnings.
    pub(crate) notes: Vec<String>,
    /// Flows of each request, which completes with the last of them, as half-open ranges of indices within the entry.
    pub(crate) requests: Vec<(u32, u32)>,
    /// Flows of each collective operation, as the same kind of ranges.
    pub(crate) collectives: Vec<(u32, u32)>,
    /// A training job.
    pub(crate) job: Option<JobFlows>,
    /// Time at which the ranks of an imported schedule begin.
    pub(crate) schedule: Option<Span>,
}

/// Offered load of random flows. Each sender draws its receivers with equal probability.
pub(crate) struct Demand {
    /// The traffic entry, from 0.
    pub(crate) traffic: usize,
    /// For each host, whether it sends. A sender without a possible receiver sends nothing.
    pub(crate) senders: Vec<bool>,
    /// For each host, whether it receives. No host receives from itself.
    pub(crate) receivers: Vec<bool>,
    /// Flows inside a datacenter or between two; `None` for both.
    pub(crate) class: Option<FlowClass>,
    /// Payload per second, of all senders.
    pub(crate) offered: Rate,
    /// Start of the arrivals.
    pub(crate) from_time: Span,
    /// End of the arrivals; the expected end if the number of flows is given instead.
    pub(crate) to_time: Span,
}

/// Makes the flows of the entry numbered `index`.
pub(crate) fn make(
    traffic: &Located<Traffic>,
    index: usize,
    context: &TrafficContext<'_>,
) -> Result<TrafficFlows, SpannedError> {
    let draws = Draws::new(context.seed, index as u64);
    let output = match &traffic.value {
        Traffic::Incast(entry) => incast::make(entry, context),
        Traffic::Long(entry) => long(entry, context),
        Traffic::Permutation(entry) => permutation::make(entry, draws, context),
        Traffic::Poisson(entry) => poisson::make(entry, index, draws, context),
        Traffic::Requests(entry) => requests::make(entry, index, draws, context),
        Traffic::ClosedLoop(entry) => closed_loop::make(entry, index, draws, context),
        Traffic::Allreduce(entry) => allreduce::make(entry, draws, context),
        Traffic::Collective(entry) => collective::make(entry, context),
        Traffic::List(entry) => list::make(entry, context),
        Traffic::Import(entry) => import::make(entry, context),
    };
    let output = output.map_err(|error| error.at_least(traffic.origin))?;
    if output.flows.is_empty() {
        let help = match &traffic.value {
            // An entry without flows is valid: a point of a grid may have no client.
            Traffic::ClosedLoop(_) => return Ok(output),
            Traffic::Incast(_) => "set `intra`, `inter` or both to a number of senders",
            Traffic::Long(_) | Traffic::List(_) | Traffic::Import(_) => "list at least one flow, or remove the entry",
            Traffic::Permutation(_) => "with this `scope`, no host has another one to send to",
            Traffic::Allreduce(_) | Traffic::Collective(_) => "give `groups`, or `count`",
            Traffic::Requests(_) => "let requests arrive for longer, or set `requests` to their number",
            Traffic::Poisson(_) => "let flows arrive for longer, or set `flows` to their number",
        };
        return Err(SpannedError::new(traffic.origin, "this traffic has zero flows").label("zero flows").help(help));
    }
    Ok(output)
}

fn long(long: &LongFlows, context: &TrafficContext<'_>) -> Result<TrafficFlows, SpannedError> {
    let mut output = TrafficFlows::default();
    let mut start = long.start;
    for pair in long.flows.iter() {
        let [src, dst] = pair.as_slice() else {
            return Err(
                SpannedError::new(pair.origin, "a flow is a pair of hosts").label("expected [sender, receiver]")
            );
        };
        let (src, dst) = context.two_hosts(src, dst)?;
        let size = match long.size {
            Some(size) => context.size(size)?,
            None => context.unlimited_size(src, dst, start),
        };
        output.flows.push(DraftFlow { src, dst, size, start: DraftStart::At(start) });
        start = later(start, long.stagger);
    }
    Ok(output)
}

/// Returns the sum of `start` and `span`. A value in a scenario file is at most a tenth of the longest span, so the sum
/// of two is exact; longer sums saturate.
pub(crate) fn later(start: Span, span: Span) -> Span {
    Span::from_ps(start.ps().saturating_add(span.ps()))
}

impl TrafficContext<'_> {
    /// Returns the host with this index or name.
    pub(crate) fn host_of(&self, at: &Located<HostRef>) -> Result<HostId, SpannedError> {
        let hosts = self.network.hosts();
        match &at.value {
            HostRef::Index(index) => self.host_at(*index, at.origin),
            HostRef::Name(name) => {
                let name_of = |node: &fabric::NodeId| self.network.nodes()[node.index()].name.as_str();
                match hosts.iter().position(|node| name_of(node) == name) {
                    Some(index) => Ok(HostId(index32(index))),
                    None => Err(SpannedError::new(at.origin, format!("unknown host `{name}`"))
                        .label("unknown host")
                        .suggest(name, hosts.iter().map(name_of))),
                }
            }
        }
    }

    fn host_at(&self, index: u32, origin: SourceSpan) -> Result<HostId, SpannedError> {
        let count = self.network.hosts().len();
        if (index as usize) < count {
            return Ok(HostId(index));
        }
        Err(SpannedError::new(origin, format!("there is no host {index}: the network has {count}"))
            .label(format!("expected 0 to {}", count - 1)))
    }

    /// Returns, for each host, whether it is in the set.
    pub(crate) fn members(&self, at: &Located<HostSet>) -> Result<Vec<bool>, SpannedError> {
        let count = self.network.hosts().len();
        let members: Vec<bool> = match &at.value {
            HostSet::All => vec![true; count],
            HostSet::Even => (0..count).map(|host| host.is_multiple_of(2)).collect(),
            HostSet::Odd => (0..count).map(|host| !host.is_multiple_of(2)).collect(),
            &HostSet::Range(low, high) => {
                self.host_at(high - 1, at.origin)?;
                (0..count).map(|host| (low as usize..high as usize).contains(&host)).collect()
            }
            HostSet::Listed(hosts) => {
                let mut members = vec![false; count];
                for host in hosts {
                    members[self.host_of(host)?.index()] = true;
                }
                members
            }
        };
        if members.contains(&true) { Ok(members) } else { Err(SpannedError::new(at.origin, "no host").label("empty")) }
    }

    fn two_hosts(&self, src: &Located<HostRef>, dst: &Located<HostRef>) -> Result<(HostId, HostId), SpannedError> {
        let (from, to) = (self.host_of(src)?, self.host_of(dst)?);
        if from == to {
            return Err(SpannedError::new(dst.origin, "sender and receiver of this flow are the same host")
                .label("expected another host"));
        }
        Ok((from, to))
    }

    /// Checks the size of a flow: at least a byte, below 2^32 packets.
    pub(crate) fn size(&self, size: Located<Bytes>) -> Result<Bytes, SpannedError> {
        if size.is_zero() {
            return Err(SpannedError::new(size.origin, "a flow has at least 1 byte").label("expected a size over 0"));
        }
        if size.get().div_ceil(u64::from(self.host.mss)) > u64::from(u32::MAX) {
            return Err(SpannedError::new(size.origin, "a flow has at most 4294967295 packets").label("too large"));
        }
        Ok(*size)
    }

    /// Returns the rate of the link from a host.
    pub(crate) fn uplink_rate(&self, host: HostId) -> Rate {
        self.network.port(self.network.uplink(host)).config().rate
    }

    /// Returns the rate of the link to a host.
    pub(crate) fn downlink_rate(&self, host: HostId) -> Rate {
        let reverse = self.network.links()[self.network.uplink(host).index()].reverse;
        self.network.port(reverse).config().rate
    }

    /// Returns a size that no flow can complete: more than its slowest link carries from `start` to `stop`.
    fn unlimited_size(&self, src: HostId, dst: HostId, start: Span) -> Bytes {
        let path = self.routes.path(self.network, src, dst, |_, _| 0);
        let rates = path.iter().map(|&link| self.network.port(link).config().rate);
        let max_size = Bytes::new(u64::from(self.host.mss) * u64::from(u32::MAX));
        let time = Span::from_ps(self.stop.ps().saturating_sub(start.ps()).max(1));
        let capacity = rates.fold(Rate::MAX, Rate::min).bytes_in(time);
        capacity.saturating_add(Bytes::new(u64::from(self.host.mss))).min(max_size)
    }
}
