//! `load_balancing` of `[host]`: how a flow's packets choose among equal paths.

use std::num::{NonZeroU8, NonZeroU16, NonZeroU32};

use flow::{LoadBalancing, Plb, Reps, UnoLb};
use serde_json::{Value as Json, json};
use units::Span;

use super::Auto;
use crate::decode::{Changes, Field, Located, kinds, table, unexpected, words};
use crate::error::SpannedError;
use crate::quantity::{Decimal, Share};
use crate::tree::{Node, Value};

const SUBFLOWS: NonZeroU8 = match NonZeroU8::new(10) {
    Some(subflows) => subflows,
    None => NonZeroU8::MIN,
};
const RING: NonZeroU8 = match NonZeroU8::new(8) {
    Some(buffer) => buffer,
    None => NonZeroU8::MIN,
};
const IDLE_ROUNDS: NonZeroU32 = match NonZeroU32::new(3) {
    Some(rounds) => rounds,
    None => NonZeroU32::MIN,
};
const ROUNDS: NonZeroU32 = match NonZeroU32::new(12) {
    Some(rounds) => rounds,
    None => NonZeroU32::MIN,
};

words! {
    /// A way of choosing paths, with its defaults.
    PathWord, "\"ecmp\", \"repath\", \"spray\", \"unolb\", \"plb\", \"reps\" or a table such as { kind = \"unolb\", subflows = 8 }" {
        /// One path per flow, by a hash.
        Ecmp = "ecmp",
        /// One path per flow, another one after each timeout.
        Repath = "repath",
        /// One path per packet.
        Spray = "spray",
        /// Subflows in turn.
        UnoLb = "unolb",
        /// One path per flow, another one on congestion.
        Plb = "plb",
        /// The path of a packet that was acknowledged without a mark, for each packet.
        Reps = "reps",
    }
}

words! {
    /// New path of a bad subflow.
    RerouteWord, "\"acked\" or \"random\"" {
        /// The path of a subflow with a recent acknowledgement.
        Acked = "acked",
        /// A random one.
        Random = "random",
    }
}

words! {
    /// Owner of a law.
    LawsWord, "\"flow\" or \"subflow\"" {
        /// The flow.
        Flow = "flow",
        /// Each subflow.
        Subflow = "subflow",
    }
}

table! {
    /// Uno's load balancer (Algorithm 2): a flow's packets go round robin over subflows, each on a path of its own; a NACK for a block or a timeout moves a subflow that lost a packet, at most once in a base RTT.
    UnoLbTable {
        /// Subflows (n), 1 to 64.
        subflows: Located<NonZeroU8> = Located::default_of(SUBFLOWS);
        /// Maximum age of an acknowledgement on another subflow for a bad subflow to take its path. `auto`: one base
        /// RTT.
        recent: Auto<Span> = Auto::Auto;
        /// `acked`: a bad subflow takes the path of a random one with recent acknowledgements. `random`: every subflow
        /// without any for half a base RTT draws a path, as in Uno's published simulator.
        reroute: RerouteWord = RerouteWord::Acked;
        /// `flow`: one law for all subflows, and packets take them in turn. `subflow`: each has a law of its own, which
        /// receives the feedback of its packets alone, and packets take the next one in turn that may send. Together
        /// they may have as much in flight as that number of flows. Needs selective recovery, `ack_every` = 1 and no
        /// segments; not with `nack` = "gaps" or a history in `coding`.
        law_per: Located<LawsWord> = Located::default_of(LawsWord::Flow);
    }
}

table! {
    /// PLB: one path per flow, and another one after consecutive congested round trips, and after a timeout.
    PlbTable {
        /// A round trip in which more than this share was marked is congested (K).
        threshold: Share = Share(Decimal::new(5, 1));
        /// Consecutive congested round trips after which the path is changed when nothing is in flight (N).
        idle_rounds: NonZeroU32 = IDLE_ROUNDS;
        /// Consecutive congested round trips after which it is changed at once (M).
        rounds: NonZeroU32 = ROUNDS;
    }
}

table! {
    /// REPS: each packet takes the entropy of a packet that was acknowledged without a mark, and draws one of `entropies` if there is none.
    RepsTable {
        /// Number of entropies that are kept, the newest ones.
        buffer: NonZeroU8 = RING;
        /// Time after a timeout in which no packet draws: kept entropies are used again and again.
        freeze: Span = Span::from_ms(10);
        /// Number of packets that draw after that, to find paths.
        explore: u16 = 16;
    }
}

kinds! {
    /// A way of choosing paths, with its settings.
    PathTable {
        /// Subflows in turn.
        UnoLb(UnoLbTable) = "unolb",
        /// One path per flow, another one on congestion.
        Plb(PlbTable) = "plb",
        /// The path of a packet that was acknowledged without a mark, for each packet.
        Reps(RepsTable) = "reps",
    }
}

/// Choice of packets among equal paths.
#[derive(Clone, PartialEq, Debug)]
pub enum LoadBalancingConfig {
    /// One path a flow.
    Ecmp,
    /// One path per flow, another one after each timeout.
    Repath,
    /// One path per packet.
    Spray,
    /// A way of choosing paths with settings.
    Table(PathTable),
}

impl Field for LoadBalancingConfig {
    const EXPECTS: &'static str = PathWord::EXPECTS;
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        let defaults = Node::empty_table();
        match &node.value {
            Value::Table(_) => PathTable::decode(node).map(Self::Table),
            Value::String(_) => Ok(match PathWord::decode(node)? {
                PathWord::Ecmp => Self::Ecmp,
                PathWord::Repath => Self::Repath,
                PathWord::Spray => Self::Spray,
                PathWord::UnoLb => Self::Table(PathTable::UnoLb(UnoLbTable::decode(&defaults)?)),
                PathWord::Plb => Self::Table(PathTable::Plb(PlbTable::decode(&defaults)?)),
                PathWord::Reps => Self::Table(PathTable::Reps(RepsTable::decode(&defaults)?)),
            }),
            _ => Err(unexpected::<Self>(node)),
        }
    }
    fn encode(&self) -> Value {
        match self {
            Self::Ecmp => PathWord::Ecmp.encode(),
            Self::Repath => PathWord::Repath.encode(),
            Self::Spray => PathWord::Spray.encode(),
            Self::Table(table) => table.encode(),
        }
    }
    fn schema() -> Json {
        json!({ "oneOf": [PathWord::schema(), PathTable::schema()] })
    }
    fn changed(&self, changes: &mut Changes) {
        if let Self::Table(table) = self {
            table.changed(changes);
        }
    }
}

impl LoadBalancingConfig {
    /// Refuses combinations that single values cannot show. `incompatible`: the setting that a law for each subflow would
    /// need.
    pub(super) fn check(&self, incompatible: Option<&str>) -> Result<(), SpannedError> {
        let Self::Table(PathTable::UnoLb(uno_lb)) = self else { return Ok(()) };
        let subflows = uno_lb.subflows;
        if subflows.get() > UnoLb::MAX_SUBFLOWS {
            return Err(SpannedError::new(subflows.origin, format!("{} subflows are too many", subflows.get()))
                .label(format!("expected 1 to {}", UnoLb::MAX_SUBFLOWS)));
        }
        match incompatible {
            Some(needed) if *uno_lb.law_per == LawsWord::Subflow && subflows.get() > 1 => {
                Err(SpannedError::new(uno_lb.law_per.origin, "a law for each subflow deals with each packet alone")
                    .label(format!("needs {needed}")))
            }
            _ => Ok(()),
        }
    }

    /// Returns the simulator's settings. `entropies` is the number of paths from which packets draw, sprayed or under
    /// REPS.
    pub(super) fn choice(&self, entropies: NonZeroU16) -> LoadBalancing {
        match self {
            Self::Ecmp => LoadBalancing::PerFlow,
            Self::Repath => LoadBalancing::AfterTimeout,
            Self::Spray => LoadBalancing::PerPacket(entropies.get()),
            Self::Table(PathTable::UnoLb(uno_lb)) => LoadBalancing::UnoLb(UnoLb {
                subflows: uno_lb.subflows.get(),
                recent: uno_lb.recent.value(),
                random: uno_lb.reroute == RerouteWord::Random,
                own_laws: *uno_lb.law_per == LawsWord::Subflow,
            }),
            Self::Table(PathTable::Plb(plb)) => LoadBalancing::Plb(Plb {
                threshold: plb.threshold.0.frac(),
                idle_rounds: plb.idle_rounds.get(),
                rounds: plb.rounds.get(),
            }),
            Self::Table(PathTable::Reps(reps)) => LoadBalancing::Reps(Reps {
                entropies: entropies.get(),
                buffer: reps.buffer.get(),
                freeze: reps.freeze,
                explore: reps.explore,
            }),
        }
    }
}
