//! `codel` and `fq_codel` of `[port]`: queue disciplines.

use std::num::NonZeroU32;

use fabric::{CoDel, Discipline, EcnResponse, FqCoDel, MAX_INTERVAL, MAX_QUEUES, MIN_QUANTUM};
use units::Span;

use crate::decode::{Located, table};
use crate::error::{SourceSpan, SpannedError};

table! {
    /// CoDel (RFC 8289): drops, or marks, when packets have waited longer than `target` for a whole `interval`. The defaults are the RFC's, for wide-area networks; inside a datacenter a `target` of some ten microseconds and an `interval` of the longest RTT serve.
    CoDelTable {
        /// Acceptable sojourn time.
        target: Located<Span> = Located::default_of(CoDel::RFC.target);
        /// Time for which the sojourn time must exceed `target` before the first drop; about the longest RTT.
        interval: Located<Span> = Located::default_of(CoDel::RFC.interval);
        /// ECN-capable packets are marked instead of dropped.
        ecn: bool = true;
    }
}

table! {
    /// FQ-CoDel (RFC 8290): a queue per hash of the flow, served by deficit round robin with new flows first, and CoDel in each queue.
    FqCoDelTable {
        /// Number of queues.
        queues: Located<NonZeroU32> = Located::default_of(NonZeroU32::MIN.saturating_add(FqCoDel::RFC.queues - 1));
        /// Bytes that a queue may send in a round; about the MTU.
        quantum: Located<NonZeroU32> = Located::default_of(NonZeroU32::MIN.saturating_add(FqCoDel::RFC.quantum - 1));
        /// Acceptable sojourn time.
        target: Located<Span> = Located::default_of(CoDel::RFC.target);
        /// Time for which the sojourn time must exceed `target` before the first drop; about the longest RTT.
        interval: Located<Span> = Located::default_of(CoDel::RFC.interval);
        /// ECN-capable packets are marked instead of dropped.
        ecn: bool = true;
    }
}

impl CoDelTable {
    pub(super) fn discipline(&self) -> Result<Discipline, SpannedError> {
        let response = if self.ecn { EcnResponse::Mark } else { EcnResponse::Drop };
        codel(self.target, self.interval, response).map(Discipline::CoDel)
    }
}

impl FqCoDelTable {
    pub(super) fn discipline(&self) -> Result<Discipline, SpannedError> {
        let queues = self.queues.get();
        if queues > MAX_QUEUES {
            return Err(SpannedError::new(self.queues.origin, format!("{queues} queues"))
                .label(format!("expected at most {MAX_QUEUES}")));
        }
        let quantum = self.quantum.get();
        if quantum < MIN_QUANTUM {
            let message = format!("a quantum of {quantum} B takes many rounds for a packet");
            return Err(
                SpannedError::new(self.quantum.origin, message).label(format!("expected at least {MIN_QUANTUM}"))
            );
        }
        let response = if self.ecn { EcnResponse::Mark } else { EcnResponse::Drop };
        let codel = codel(self.target, self.interval, response)?;
        Ok(Discipline::FqCoDel(FqCoDel { codel, queues, quantum }))
    }
}

fn codel(target: Located<Span>, interval: Located<Span>, response: EcnResponse) -> Result<CoDel, SpannedError> {
    if target.value <= Span::ZERO {
        return Err(SpannedError::new(target.origin, "a target of no time").label("expected more than 0"));
    }
    if interval.value > MAX_INTERVAL {
        let message = format!("an interval of {}", interval.value);
        return Err(SpannedError::new(interval.origin, message).label(format!("expected at most {MAX_INTERVAL}")));
    }
    if target.value > interval.value {
        let message = format!("a target of {} is longer than the interval, {}", target.value, interval.value);
        let error = SpannedError::new(target.origin, message);
        return Err(if target.origin == SourceSpan::NOWHERE {
            error
                .at_least(interval.origin)
                .label(format!("expected at least {}", target.value))
                .help("or give `target`")
        } else {
            error.label(format!("expected at most {}", interval.value))
        });
    }
    Ok(CoDel { target: target.value, interval: interval.value, response })
}
