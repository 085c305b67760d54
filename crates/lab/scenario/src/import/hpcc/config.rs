//! The simulator's configuration: a key, then one value; maps and `LINK_DOWN` have several.

use std::collections::BTreeMap;

use units::{Rate, Span};

use super::{HpccTokens, parsed};
use crate::decode::Field;
use crate::error::{SourceSpan, SpannedError};
use crate::quantity::Decimal;
use crate::tree::{Node, Value};

/// Settings of a configuration, each value with its span.
#[derive(Default)]
pub(super) struct Config {
    values: BTreeMap<&'static str, (String, SourceSpan)>,
    maps: BTreeMap<&'static str, Map>,
    /// Keys without effect here.
    pub(super) ignored: Vec<&'static str>,
}

/// Value of a switch that a configuration does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SwitchDefault {
    Off = 0,
    On = 1,
}

/// A threshold or probability for each link rate.
struct Map {
    span: SourceSpan,
    /// By link rate in bits per second.
    entries: BTreeMap<u64, (Decimal, SourceSpan)>,
}

/// The keys of maps.
const MAPS: [&str; 3] = ["KMIN_MAP", "KMAX_MAP", "PMAX_MAP"];

/// Keys that change the simulation.
const SUPPORTED_KEYS: [&str; 28] = [
    "CC_MODE",
    "ENABLE_QCN",
    "BUFFER_SIZE",
    "PACKET_PAYLOAD_SIZE",
    "RATE_AI",
    "RATE_HAI",
    "MIN_RATE",
    "DCTCP_RATE_AI",
    "ALPHA_RESUME_INTERVAL",
    "RATE_DECREASE_INTERVAL",
    "RP_TIMER",
    "EWMA_GAIN",
    "FAST_RECOVERY_TIMES",
    "CLAMP_TARGET_RATE",
    "HAS_WIN",
    "VAR_WIN",
    "GLOBAL_T",
    "FAST_REACT",
    "U_TARGET",
    "MI_THRESH",
    "MULTI_RATE",
    "SAMPLE_FEEDBACK",
    "L2_ACK_INTERVAL",
    "L2_BACK_TO_ZERO",
    "ERROR_RATE_PER_LINK",
    "SIMULATOR_STOP_TIME",
    "RATE_BOUND",
    "INT_MULTI",
];

/// Keys of its outputs, keys that it does not read, and keys without a choice here.
const IGNORED: [&str; 18] = [
    "USE_DYNAMIC_PFC_THRESHOLD",
    "PAUSE_TIME",
    "DATA_RATE",
    "LINK_DELAY",
    "L2_CHUNK_SIZE",
    "TOPOLOGY_FILE",
    "FLOW_FILE",
    "TRACE_FILE",
    "TRACE_OUTPUT_FILE",
    "FCT_OUTPUT_FILE",
    "PFC_OUTPUT_FILE",
    "QLEN_MON_FILE",
    "QLEN_MON_START",
    "QLEN_MON_END",
    "ENABLE_TRACE",
    "ACK_HIGH_PRIO",
    "PINT_LOG_BASE",
    "PINT_PROB",
];

/// Returns whether a word is a key of a configuration, in upper or lower case.
pub(crate) fn is_setting(text: &str) -> bool {
    let mut known = SUPPORTED_KEYS.iter().chain(&IGNORED).chain(&MAPS);
    known.any(|key| key.eq_ignore_ascii_case(text))
}

pub(super) fn read(text: &str, source: u32) -> Result<Config, SpannedError> {
    // Comments are in braces; blanks in their place keep all places.
    let mut depth = 0;
    let plain: String = text
        .char_indices()
        .map(|(_, c)| {
            depth += i32::from(c == '{');
            let in_comment = depth > 0 && c != '\n';
            depth -= i32::from(c == '}' && depth > 0);
            if in_comment { " ".repeat(c.len_utf8()) } else { c.to_string() }
        })
        .collect();
    let mut tokens = HpccTokens::new(&plain, source);
    let mut config = Config::default();
    while let Some((key, origin)) = tokens.next() {
        if let Some(map) = MAPS.into_iter().find(|map| *map == key) {
            let mut entries = BTreeMap::new();
            for _ in 0..tokens.number::<u32>("how many link rates follow")? {
                let rate = tokens.number::<u64>("a link rate in bits per second")?;
                let (token, span) = tokens.needed("a threshold or probability")?;
                let bad = || SpannedError::new(span, format!("expected a threshold or probability, found `{token}`"));
                let value = parsed(token, span, || bad().label("not such a number"))?;
                entries.insert(rate, (value, span));
            }
            config.maps.insert(map, Map { span: origin, entries });
            continue;
        }
        match key {
            "LINK_DOWN" => {
                let time: u64 = tokens.number("a time")?;
                let _: (u32, u32) = (tokens.number("a node")?, tokens.number("a node")?);
                if time > 0 {
                    return Err(
                        SpannedError::new(origin, "links that go down cannot be imported").label("not supported")
                    );
                }
            }
            key => {
                let value = tokens.needed("a value")?;
                if let Some(known) = SUPPORTED_KEYS.into_iter().find(|known| *known == key) {
                    config.values.insert(known, (value.0.to_owned(), value.1));
                } else if let Some(known) = IGNORED.into_iter().find(|known| *known == key) {
                    config.ignored.push(known);
                } else {
                    let known = SUPPORTED_KEYS.into_iter().chain(IGNORED).chain(MAPS).chain(["LINK_DOWN"]);
                    return Err(SpannedError::new(origin, format!("`{key}` is no key of a configuration"))
                        .label("expected a key such as CC_MODE")
                        .suggest(key, known)
                        .help("a key that the simulator does not read either has to be taken out"));
                }
            }
        }
    }
    Ok(config)
}

impl Config {
    /// Returns a map's entry for links of this rate, with its span.
    pub(super) fn mapped(&self, key: &'static str, rate: Rate) -> Result<(Decimal, SourceSpan), SpannedError> {
        let Some(map) = self.maps.get(key) else {
            return Err(SpannedError::new(SourceSpan::NOWHERE, format!("the configuration has no {key}"))
                .help("it needs one entry for each rate of links; ENABLE_QCN 0 marks nothing"));
        };
        map.entries.get(&rate.bps()).copied().ok_or_else(|| {
            SpannedError::new(map.span, format!("{key} has no entry for links of {} bit/s", rate.bps()))
                .label("needs one for each link rate")
        })
    }

    /// Returns the span of a key's value; none without the key.
    pub(super) fn span(&self, key: &str) -> Option<SourceSpan> {
        self.values.get(key).map(|value| value.1)
    }

    fn parsed<T>(
        &self,
        key: &str,
        default: T,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, SpannedError> {
        let Some((text, origin)) = self.values.get(key) else { return Ok(default) };
        parse(text).ok_or_else(|| {
            SpannedError::new(*origin, format!("{key} is {expected}, not `{text}`"))
                .label(format!("expected {expected}"))
        })
    }

    pub(super) fn count(&self, key: &str, default: u32) -> Result<u32, SpannedError> {
        let Some((text, origin)) = self.values.get(key) else { return Ok(default) };
        let label = "expected a whole number";
        parsed(text, *origin, || {
            SpannedError::new(*origin, format!("{key} is a whole number, not `{text}`")).label(label)
        })
    }

    pub(super) fn switch(&self, key: &str, default: SwitchDefault) -> Result<bool, SpannedError> {
        self.count(key, default as u32).map(|value| value != 0)
    }

    pub(super) fn decimal(&self, key: &str, default: Decimal) -> Result<Decimal, SpannedError> {
        self.parsed(key, default, "a number that is not negative", Decimal::parse)
    }

    /// Returns a time that is given as a number of units of `unit_ps` picoseconds.
    pub(super) fn time(&self, key: &str, default: Span, unit_ps: u64) -> Result<Span, SpannedError> {
        let span = |text: &str| {
            let ps = Decimal::parse(text)?.of(unit_ps);
            i64::try_from(ps).ok().filter(|&ps| ps <= 1_000_000_000_000_000_000).map(Span::from_ps)
        };
        self.parsed(key, default, "a time", span)
    }

    /// A rate such as `50Mb/s`.
    pub(super) fn rate(&self, key: &str, default: Rate) -> Result<Rate, SpannedError> {
        match self.values.get(key) {
            Some((text, origin)) => Rate::decode(&Node { value: Value::string(text), origin: *origin }),
            None => Ok(default),
        }
    }
}
