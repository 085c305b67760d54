//! The simulator's configuration: a key, then one value; maps and `LINK_DOWN` have several.

use std::collections::BTreeMap;

use units::{Rate, Span};

use super::Words;
use crate::decode::Field;
use crate::error::{Fault, Origin};
use crate::quantity::Decimal;
use crate::tree::{Node, Value};

/// What a configuration says, each value with its place.
#[derive(Default)]
pub(super) struct Config {
    values: BTreeMap<&'static str, (String, Origin)>,
    /// By link rate in bits per second.
    pub(super) kmin: BTreeMap<u64, Decimal>,
    pub(super) kmax: BTreeMap<u64, Decimal>,
    pub(super) pmax: BTreeMap<u64, Decimal>,
    /// Where the maps stand.
    pub(super) maps: Option<Origin>,
    /// Keys that say nothing here, and those that nobody knows.
    pub(super) ignored: Vec<String>,
}

/// Keys that change what is simulated.
const HEEDED: [&str; 28] = [
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

/// Keys of what it writes, of what it does not read, and of what is no choice here.
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

pub(super) fn read(text: &str, source: u32) -> Result<Config, Fault> {
    // Comments are in braces; blanks in their place keep all places.
    let mut depth = 0;
    let plain: String = text
        .char_indices()
        .map(|(_, c)| {
            depth += i32::from(c == '{');
            let hidden = depth > 0 && c != '\n';
            depth -= i32::from(c == '}' && depth > 0);
            if hidden { " ".repeat(c.len_utf8()) } else { c.to_string() }
        })
        .collect();
    let mut words = Words::new(&plain, source);
    let mut config = Config::default();
    while let Some((key, origin)) = words.next() {
        match key {
            "KMIN_MAP" | "KMAX_MAP" | "PMAX_MAP" => {
                config.maps.get_or_insert(origin);
                let map = config.map(key);
                for _ in 0..words.number::<u32>("how many link rates follow")? {
                    let rate = words.number::<u64>("a link rate in bits per second")?;
                    map.insert(rate, words.number::<Decimal>("a threshold or probability")?);
                }
            }
            "LINK_DOWN" => {
                let time: u64 = words.number("a time")?;
                let _: (u32, u32) = (words.number("a node")?, words.number("a node")?);
                if time > 0 {
                    return Err(Fault::new(origin, "links that go down cannot be imported").label("not supported"));
                }
            }
            key => {
                let value = words.needed("a value")?;
                if let Some(known) = HEEDED.into_iter().find(|known| *known == key) {
                    config.values.insert(known, (value.0.to_owned(), value.1));
                } else {
                    config.ignored.push(key.to_owned());
                    if !IGNORED.contains(&key) && !key.starts_with(|c: char| c.is_ascii_uppercase()) {
                        return Err(Fault::new(origin, format!("`{key}` is no key of a configuration"))
                            .label("expected a key such as CC_MODE")
                            .suggest(key, HEEDED));
                    }
                }
            }
        }
    }
    Ok(config)
}

impl Config {
    fn map(&mut self, key: &str) -> &mut BTreeMap<u64, Decimal> {
        match key {
            "KMIN_MAP" => &mut self.kmin,
            "KMAX_MAP" => &mut self.kmax,
            _ => &mut self.pmax,
        }
    }

    /// Whether there is a key, and where its value stands.
    pub(super) fn place(&self, key: &str) -> Option<Origin> {
        self.values.get(key).map(|value| value.1)
    }

    /// The keys that it left out as unknown, beside those that are known to say nothing here.
    pub(super) fn unknown(&self) -> Vec<&str> {
        self.ignored.iter().map(String::as_str).filter(|key| !IGNORED.contains(key)).collect()
    }

    fn parsed<T>(&self, key: &str, default: T, what: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, Fault> {
        let Some((text, origin)) = self.values.get(key) else { return Ok(default) };
        parse(text).ok_or_else(|| {
            Fault::new(*origin, format!("{key} is {what}, not `{text}`")).label(format!("expected {what}"))
        })
    }

    pub(super) fn count(&self, key: &str, default: u32) -> Result<u32, Fault> {
        self.parsed(key, default, "a whole number", |text| text.parse().ok())
    }

    pub(super) fn switch(&self, key: &str, default: bool) -> Result<bool, Fault> {
        self.count(key, u32::from(default)).map(|value| value != 0)
    }

    pub(super) fn decimal(&self, key: &str, default: Decimal) -> Result<Decimal, Fault> {
        self.parsed(key, default, "a number that is not negative", Decimal::parse)
    }

    /// A number of a unit that is so many picoseconds.
    pub(super) fn time(&self, key: &str, default: Span, unit_ps: u64) -> Result<Span, Fault> {
        let span = |text: &str| {
            let ps = Decimal::parse(text)?.of(unit_ps);
            i64::try_from(ps).ok().filter(|&ps| ps <= 1_000_000_000_000_000_000).map(Span::from_ps)
        };
        self.parsed(key, default, "a time", span)
    }

    /// A rate such as `50Mb/s`.
    pub(super) fn rate(&self, key: &str, default: Rate) -> Result<Rate, Fault> {
        match self.values.get(key) {
            Some((text, origin)) => Rate::decode(&Node { value: Value::string(text), origin: *origin }),
            None => Ok(default),
        }
    }
}
