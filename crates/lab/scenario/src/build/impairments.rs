//! Conversion of `impair` of `[port]` to the impairments of links.

use std::cell::RefCell;
use std::sync::Arc;

use fabric::{
    AckAggregation, ImpairmentId, Impairments, JitterDistribution, JitterOrder, LinkJitter, MAX_BURST, MAX_HOLD,
    Policer, RateSchedule, RateStep, Reordering, ScheduleError,
};
use units::{Bytes, Frac, Rate, Span};

use crate::config::{DelayDistribution, ImpairTable, LinkJitterTable, OffOr, RateStepTable};
use crate::decode::Located;
use crate::error::{SourceSpan, SpannedError};
use crate::inputs::Inputs;
use crate::quantity::Share;

/// The impairments of a network's ports, equal ones once.
#[derive(Default)]
pub(super) struct ImpairmentList(RefCell<Vec<Arc<Impairments>>>);

impl ImpairmentList {
    /// Adds the impairments of a port. Returns their index; none if they impair nothing.
    ///
    /// # Errors
    /// If there are more than 65,536 different ones.
    pub(super) fn add(
        &self,
        impairments: Impairments,
        origin: SourceSpan,
    ) -> Result<Option<ImpairmentId>, SpannedError> {
        if impairments.is_none() {
            return Ok(None);
        }
        let mut list = self.0.borrow_mut();
        let known = list.iter().position(|known| **known == impairments);
        let index = known.unwrap_or_else(|| {
            list.push(Arc::new(impairments));
            list.len() - 1
        });
        let refused = |_| SpannedError::new(origin, "over 65,536 different impairments");
        u16::try_from(index).map(|index| Some(ImpairmentId(index))).map_err(refused)
    }

    /// Returns the impairments by their index.
    pub(super) fn all(&self) -> Vec<Arc<Impairments>> {
        self.0.borrow().clone()
    }
}

/// Returns the impairments of a port at this rate.
pub(super) fn impairments(table: &ImpairTable, rate: Rate, inputs: &Inputs) -> Result<Impairments, SpannedError> {
    let jitter = table.jitter.as_ref().map(jitter).transpose()?;
    let reordering = table
        .reorder
        .as_ref()
        .map(|reorder| Ok(Reordering { probability: part(reorder.probability)?, delay: hold(reorder.delay)? }));
    let policer = table.police.as_ref().map(|police| {
        let burst = *police.burst;
        if burst.is_zero() || burst > MAX_BURST {
            return Err(SpannedError::new(police.burst.origin, format!("a token bucket of {burst}"))
                .label(format!("expected at least 1 B and at most {MAX_BURST}")));
        }
        Ok(Policer { rate: police.rate, burst })
    });
    let ack_aggregation = table.ack_aggregation.as_ref().map(|aggregation| {
        let packets = aggregation.packets.get();
        if packets < 2 {
            return Err(
                SpannedError::new(aggregation.packets.origin, "a group of one packet").label("expected at least 2")
            );
        }
        Ok(AckAggregation { period: hold(aggregation.period)?, packets, max_size: aggregation.max_size.get().into() })
    });
    Ok(Impairments {
        policer: policer.transpose()?,
        mtu: table.mtu.map(|mtu| mtu.get().into()),
        jitter,
        reordering: reordering.transpose()?,
        duplication: part(table.duplicate)?,
        corruption: part(table.corrupt)?,
        ack_aggregation: ack_aggregation.transpose()?,
        rate_schedule: rate_schedule(table, rate, inputs)?.map(Arc::new),
    })
}

fn jitter(table: &LinkJitterTable) -> Result<LinkJitter, SpannedError> {
    Ok(LinkJitter {
        max: hold(table.max)?,
        distribution: match table.distribution {
            DelayDistribution::Uniform => JitterDistribution::Uniform,
            DelayDistribution::Normal => JitterDistribution::Normal,
        },
        order: if table.keep_order { JitterOrder::Kept } else { JitterOrder::Free },
    })
}

/// Refuses a delay out of range.
fn hold(span: Located<Span>) -> Result<Span, SpannedError> {
    if *span <= Span::ZERO || *span > MAX_HOLD {
        return Err(SpannedError::new(span.origin, format!("packets held for {}", *span))
            .label(format!("expected over 0 and at most {MAX_HOLD}")));
    }
    Ok(*span)
}

/// Refuses a probability of 1.
fn part(share: Located<Share>) -> Result<Frac, SpannedError> {
    let part = share.0.frac();
    if part >= Frac::ONE {
        return Err(SpannedError::new(share.origin, "every packet").label("expected a share under 1"));
    }
    Ok(part)
}

fn rate_schedule(table: &ImpairTable, rate: Rate, inputs: &Inputs) -> Result<Option<RateSchedule>, SpannedError> {
    let (schedule, origin) = match (&table.rate_steps, &table.rate_trace) {
        (None, None) => {
            return match table.rate_period {
                Some(period) => {
                    Err(SpannedError::new(period.origin, "a period of no rates").label("needs `rate_steps`"))
                }
                None => Ok(None),
            };
        }
        (Some(_), Some(trace)) => {
            return Err(SpannedError::new(trace.origin, "`rate_steps` and `rate_trace` are both given")
                .label("expected one of them"));
        }
        (Some(steps), None) => (of_steps(steps, table.rate_period)?, steps.origin),
        (None, Some(trace)) => {
            if let Some(period) = table.rate_period {
                return Err(SpannedError::new(period.origin, "a trace has its own period: its last time")
                    .label("goes with `rate_steps`"));
            }
            (of_trace(trace, inputs)?, trace.origin)
        }
    };
    let max = schedule.max_rate();
    if max > rate {
        return Err(SpannedError::new(origin, format!("rates of up to {max} on a link of {rate}"))
            .label(format!("expected rates of at most {rate}"))
            .help(format!("raise the link's rate to {max}: ideal times and buffers depend on it")));
    }
    Ok(Some(schedule))
}

fn of_steps(steps: &Located<Vec<RateStepTable>>, period: Option<Located<Span>>) -> Result<RateSchedule, SpannedError> {
    let step = |step: &RateStepTable| RateStep {
        at: *step.at,
        rate: match *step.rate {
            OffOr::Off => Rate::ZERO,
            OffOr::On(rate) => rate,
        },
    };
    let schedule = RateSchedule::new(steps.iter().map(step).collect(), period.map(|period| *period));
    schedule.map_err(|error| {
        let at = |index: usize| steps.get(index).map_or(steps.origin, |step| step.at.origin);
        let last = steps.last().map_or(steps.origin, |step| step.rate.origin);
        let end = period.map_or(last, |period| period.origin);
        let (origin, label) = match &error {
            ScheduleError::NoFirstStep => {
                (steps.first().map_or(steps.origin, |step| step.at.origin), "expected \"0s\"")
            }
            ScheduleError::NotInOrder { index, .. } => (at(*index), "expected a later time"),
            ScheduleError::AfterPeriod { index, .. } => (at(*index), "expected a time before `rate_period`"),
            ScheduleError::RateTooLow { index, .. } => (
                steps.get(*index).map_or(steps.origin, |step| step.rate.origin),
                "expected \"off\" or \"1Mbps\" and more",
            ),
            ScheduleError::TooLong { .. } => (end, "expected less"),
            ScheduleError::EndsWithout => (last, "expected a rate, or a `rate_period`"),
            ScheduleError::CarriesTooLittle { .. } => (end, "expected a longer period, or higher rates"),
        };
        SpannedError::new(origin, error.to_string()).label(label).at_least(steps.origin)
    })
}

/// Reads a trace: each millisecond has the rate of its opportunities.
#[cfg(feature = "import")]
fn of_trace(name: &Located<String>, inputs: &Inputs) -> Result<RateSchedule, SpannedError> {
    use crate::foreign::{Foreign, TRACE};
    use formats::mahimahi::{self, OPPORTUNITY_BYTES, Slot};

    let (source, text) = inputs.read(name, TRACE)?;
    let file = Foreign { name, bytes: text.as_bytes(), source };
    let trace = mahimahi::read(&text).map_err(|error| file.error(error).at_least(name.origin))?;
    let ms = |ms: u64| Span::from_ms(i64::try_from(ms).unwrap_or(i64::MAX));
    let mut steps: Vec<RateStep> = Vec::new();
    let mut next_ms = 0;
    for Slot { start_ms, opportunities } in trace.slots() {
        let bytes = Bytes::new(opportunities.saturating_mul(OPPORTUNITY_BYTES));
        let rate = Rate::of(bytes, Span::from_ms(1));
        if start_ms > next_ms {
            push(&mut steps, RateStep { at: ms(next_ms), rate: Rate::ZERO });
        }
        push(&mut steps, RateStep { at: ms(start_ms), rate });
        next_ms = start_ms + 1;
    }
    RateSchedule::new(steps, Some(ms(trace.period_ms())))
        .map_err(|error| SpannedError::new(SourceSpan::new(source, 0..text.len()), error.to_string()))
}

/// Adds a step, unless the rate is that of the step before it.
#[cfg(feature = "import")]
fn push(steps: &mut Vec<RateStep>, step: RateStep) {
    if steps.last().is_none_or(|last| last.rate != step.rate) {
        steps.push(step);
    }
}

#[cfg(not(feature = "import"))]
fn of_trace(name: &Located<String>, _: &Inputs) -> Result<RateSchedule, SpannedError> {
    let _ = (Bytes::ZERO, SourceSpan::NOWHERE);
    Err(SpannedError::new(name.origin, crate::WITHOUT_IMPORT))
}
