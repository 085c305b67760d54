//! Requirements of credit-scheduled laws on a network, and settings that they refuse.

use std::iter;

use experiment::{FlowSpec, HostConfig};
use fabric::{CreditQueue, Network, Routes};
use laws::catalog::{LawKind, ParamValue};
use units::{Bytes, Span, Time};

use crate::class::FlowClass;
use crate::config::{
    AcksWord, Config, FlowChoice, Host, LawName, LoadBalancingConfig, Located, Scheme, Setting, SwitchBuffers,
};
use crate::error::SpannedError;
use crate::law_plan::LawPlan;
use crate::survey::Survey;

/// Refuses a scheme with two kinds of credits, or with credits that cannot emulate its data.
pub(crate) fn check(scheme: &Scheme, host: &Host, buffers: SwitchBuffers) -> Result<(), SpannedError> {
    if *host.receiver_credits {
        let error = |message: String| SpannedError::new(host.receiver_credits.origin, message);
        if let Some(law) = scheme.credit_law() {
            return Err(error(format!("{} has credits of its own", law.title())).label("expected false"));
        }
        if host.coding.as_ref().is_some() {
            return Err(error("receivers give a credit a packet of data, and none for parity".into())
                .label("expected false, or host.coding = false"));
        }
    }
    let Some(law) = scheme.credit_law() else { return Ok(()) };
    let error = |message: &str| SpannedError::new(law.origin, format!("{} {message}", law.title()));
    if host.load_balancing != LoadBalancingConfig::Ecmp {
        return Err(error("needs its credits and its data on one path")
            .label("sends credits")
            .help("give its `host`, or [host] where that has no `load_balancing`, load_balancing = \"ecmp\""));
    }
    if host.coding.as_ref().is_some() {
        return Err(error("asks for a credit a packet of data, and has none for parity")
            .label("sends credits")
            .help("give the scheme host.coding = false"));
    }
    if buffers == SwitchBuffers::Shared || scheme.reads_reports() {
        return Err(error("needs ports with queues of their own, for data and for credits")
            .label("sends credits")
            .help("give the scheme switch = \"off\", and no law that reads reports of ports"));
    }
    Ok(())
}

/// Refuses receivers that do not acknowledge where something needs acknowledgements.
pub(crate) fn check_acks(config: &Config, scheme: &Scheme, host: &Host) -> Result<(), SpannedError> {
    if *host.acks == AcksWord::All {
        return Ok(());
    }
    // A scheme that switches acknowledgements off leaves `ack_every` of [host] to the others.
    let patch = scheme.host.as_ref();
    let inherited = patch.is_some_and(|patch| patch.acks.is_some() && patch.ack_every.is_none());
    if host.ack_every.get() > 1 && !inherited {
        let message =
            format!("receivers acknowledge nothing, and `ack_every` answers {} packets at a time", host.ack_every);
        return Err(SpannedError::new(host.acks.origin, message).label("expected \"all\", or ack_every = 1"));
    }
    let acknowledged = |title: &str| {
        SpannedError::new(host.acks.origin, format!("{title} sends by what is acknowledged"))
            .label("expected \"all\"")
            .help("acks = \"nack-only\" is for laws that send by credits: expresspass and flashpass")
    };
    for (class, law) in scheme.by_class()? {
        let LawName::Known(kind) = &law.value else { return Err(acknowledged(law.name())) };
        if !kind.info().credits {
            return Err(acknowledged(law.title()));
        }
        let settings = scheme.settings(class, *kind)?;
        let buffer = settings.iter().find(|(name, ..)| name == "send_buffer");
        if let Some((_, Setting::Value(ParamValue::Bytes(size)), at)) = buffer
            && !size.is_zero()
        {
            return Err(SpannedError::new(
                at.origin,
                "a send buffer holds what is not acknowledged, and would never empty",
            )
            .label("expected 0, or [host] acks = \"all\""));
        }
    }
    let sampled = &config.monitor.flows;
    if **sampled != FlowChoice::None {
        return Err(SpannedError::new(sampled.origin, "series of flows are of what is acknowledged, and nothing is")
            .label("expected \"none\", or [host] acks = \"all\""));
    }
    Ok(())
}

/// Refuses a law that repeats a request before a credit can answer it. Each repetition waits in its host's queue, which nothing
/// bounds. A round trip over the law's own default is no reason: few requests fit into it.
pub(crate) fn check_retries(
    scheme: &Scheme,
    flows: &[FlowSpec],
    classes: &[FlowClass],
    survey: &Survey,
) -> Result<(), SpannedError> {
    for (class, law) in scheme.by_class()? {
        let LawName::Known(kind) = &law.value else { continue };
        let settings = scheme.settings(class, *kind)?;
        let Some((_, Setting::Value(ParamValue::Span(retry)), at)) = settings.iter().find(|(name, ..)| name == RETRY)
        else {
            continue;
        };
        let own = flows.iter().zip(classes).filter(|&(_, &of)| of == class).map(|(flow, _)| flow);
        let longest = own.filter_map(|flow| survey.round_trip(flow.src, flow.dst)).max();
        let Some(longest) = longest.filter(|&longest| *retry < longest.min(ALWAYS_LONG_ENOUGH)) else { continue };
        let message = format!(
            "{}'s `{RETRY}` is {retry}, and a credit takes a base round trip to answer a request, up to {longest}",
            law.title()
        );
        return Err(SpannedError::new(at.origin, message)
            .label(format!("expected at least {}", longest.min(ALWAYS_LONG_ENOUGH)))
            .help("a request that is repeated sooner is repeated in vain, and its host's queue grows with each"));
    }
    Ok(())
}

/// The parameter for the time after which a request is repeated.
const RETRY: &str = "retry";

/// Its default.
const ALWAYS_LONG_ENOUGH: Span = Span::from_ms(100);

/// Returns whether a law's credits meet the ports of its data only if the network sends return packets by the reverse
/// path.
pub(crate) fn need_symmetry(laws: &LawPlan) -> bool {
    [FlowClass::Intra, FlowClass::Inter]
        .into_iter()
        .any(|class| laws.law(class).is_some_and(|(kind, _)| kind == LawKind::ExpressPass))
}

/// The longest that an emulation packet and its echo take over any routes that hold at some time: the longest base round
/// trip, and on the way there the longest wait in every credit queue.
pub(crate) fn max_emulation_rtt(
    network: &Network,
    routes: &Routes,
    host: &HostConfig,
    queue: Option<CreditQueue>,
) -> Option<Span> {
    let slowest = network.params().iter().map(|port| port.config().rate).min()?;
    let wait = queue.map_or(Span::ZERO, |queue| {
        slowest.tx_time(Bytes::new(u64::from(queue.credit) + u64::from(queue.data))).times(queue.limit)
    });
    let changes = iter::successors(Some(Time::ZERO), |&time| routes.change_between(time, Time::NEVER));
    let longest = changes.filter_map(|time| {
        let survey = Survey::new(network, routes.at(time), host);
        let ranges = [FlowClass::Intra, FlowClass::Inter].into_iter().filter_map(|class| survey.base_rtt(class));
        Some(ranges.map(|range| range.max).max()? + wait.times(survey.most_links().into()))
    });
    longest.max()
}

/// Returns the time for which data waits after its emulation packet's credit returned; none without a law that times it.
pub(crate) fn data_wait(laws: &LawPlan, host: &HostConfig) -> Option<Span> {
    let timed = [FlowClass::Intra, FlowClass::Inter].into_iter().filter_map(|class| laws.law(class));
    let settings = timed.filter(|(kind, _)| *kind == LawKind::FlashPass).map(|(_, settings)| settings);
    let setting =
        |settings: &[(&str, ParamValue)], name| settings.iter().find(|(key, _)| *key == name).map(|&(_, value)| value);
    let wait = |settings: &[(&str, ParamValue)]| match (setting(settings, "timed"), setting(settings, "wait")) {
        (Some(ParamValue::Switch(false)), _) => None,
        (_, Some(ParamValue::Span(wait))) if !wait.is_zero() => Some(wait),
        _ => host.max_emulation_rtt,
    };
    settings.filter_map(wait).max()
}

impl Scheme {
    /// The law that sends credits, if one does.
    pub(crate) fn credit_law(&self) -> Option<&Located<LawName>> {
        let laws = [&self.law, &self.intra, &self.inter].into_iter().flatten();
        laws.into_iter().find(|law| law.info().is_some_and(|info| info.credits))
    }
}
