//! Configuration of a law's flows, and its form in the kernel's map.

use laws::PathInfo;
use laws::catalog::{self, LawKind, ParamValue};
use units::{Rate, Span};

use crate::tcp_adapter::Config;
use crate::{BUILD, Error, KernelLaw};

/// Configuration of a law's flows when they begin. A kernel does not know the path as a simulator does.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Rate of the narrowest link that flows are expected to cross.
    pub line_rate: Rate,
    /// The base round trip of all flows; none means the RTT of a flow's handshake, then the minimum that it measures.
    pub base_rtt: Option<Span>,
    /// The base round trip inside a datacenter.
    pub intra_rtt: Span,
    /// Parameters of the law that are not to have their defaults; the later of two of one name holds.
    pub params: Vec<(String, ParamValue)>,
}

impl Default for Settings {
    /// 10 Gb/s, and 100 us inside a datacenter: the delay of the kernel's own stack and switches.
    fn default() -> Self {
        Self { line_rate: Rate::from_gbps(10), base_rtt: None, intra_rtt: Span::from_us(100), params: Vec::new() }
    }
}

impl Settings {
    /// Returns the configuration in the form that flows read.
    ///
    /// # Errors
    /// When a parameter is unknown, of another kind, out of range, or over the one that bounds it.
    pub fn config(&self, row: &KernelLaw) -> Result<Config, Error> {
        if self.line_rate.is_zero() {
            return Err(Error::NoRate);
        }
        for (name, value) in &self.params {
            catalog::check(row.kind.info(), name, *value).map_err(|error| Error::Setting(error.to_string()))?;
        }
        catalog::check_pairs(row.kind, self.values()).map_err(|error| Error::Setting(error.to_string()))?;
        let mut given = 0;
        for (name, _) in &self.params {
            given |= row.kind.info().params.iter().position(|param| param.name == name).map_or(0, |bit| 1 << bit);
        }
        Ok(Config {
            line_rate: self.line_rate,
            base_rtt: self.base_rtt.unwrap_or(Span::ZERO),
            intra_rtt: self.intra_rtt,
            given,
            params: self.words(row.kind),
            build: BUILD,
        })
    }

    /// Returns the parameters as words. They depend on no path.
    fn words(&self, kind: LawKind) -> [u64; catalog::MAX_PARAMS] {
        catalog::words(kind, &PathInfo::NONE, self.values())
    }

    fn values(&self) -> impl Iterator<Item = (&str, ParamValue)> {
        self.params.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

impl Config {
    /// Number of words in the kernel's map.
    pub const WORDS: usize = size_of::<Self>() / 8;

    /// Returns its words, in order.
    pub fn words(&self) -> [u64; Self::WORDS] {
        let mut words = [0; Self::WORDS];
        words[0] = self.line_rate.bps();
        words[1] = self.base_rtt.ps() as u64;
        words[2] = self.intra_rtt.ps() as u64;
        words[3] = self.given;
        words[4..4 + catalog::MAX_PARAMS].copy_from_slice(&self.params);
        words[4 + catalog::MAX_PARAMS] = self.build;
        words
    }

    /// From words, in order.
    pub fn of_words(words: &[u64; Self::WORDS]) -> Self {
        let mut params = [0; catalog::MAX_PARAMS];
        params.copy_from_slice(&words[4..4 + catalog::MAX_PARAMS]);
        Self {
            line_rate: Rate::from_bps(words[0]),
            base_rtt: Span::from_ps(words[1] as i64),
            intra_rtt: Span::from_ps(words[2] as i64),
            given: words[3],
            params,
            build: words[4 + catalog::MAX_PARAMS],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows;
    use crate::tcp_adapter::{KernelFlow, SocketReport};
    use laws::{ControlLaw, Gemini};
    use units::{Bytes, Frac};

    #[test]
    fn config_round_trips() {
        for row in rows() {
            let param = &row.kind.info().params[0];
            let settings = Settings { params: vec![(param.name.into(), param.highest)], ..Settings::default() };
            let config = settings.config(row).unwrap();
            assert_eq!(Config::of_words(&config.words()), config);
            assert_eq!(config.given, 1);
        }
    }

    #[test]
    fn bad_parameters_are_refused_by_name() {
        let row = KernelLaw::of_name("gemini").unwrap();
        let with = |name: &str, value| Settings { params: vec![(name.into(), value)], ..Settings::default() };
        let error = with("kk", ParamValue::Bytes(Bytes::new(1))).config(row).unwrap_err().to_string();
        assert!(error.contains("`kk`") && error.contains("`delay_threshold`"), "{error}");
        let error = with("beta", ParamValue::Fraction(Frac::from_bits(2 << 32))).config(row).unwrap_err().to_string();
        assert_eq!(error, "GEMINI's `beta` is 2; it must be 0 to 1");
        let slow = Settings { line_rate: Rate::ZERO, ..Settings::default() };
        assert!(slow.config(row).is_err());
    }

    /// A flow on a path learnt from its handshake is the law that the simulator would make for that path.
    #[test]
    fn flow_begins_as_in_the_simulator() {
        let row = KernelLaw::of_name("gemini").unwrap();
        let beta = ParamValue::Fraction(Frac::millionths(100_000));
        let settings = Settings { params: vec![("beta".into(), beta)], ..Settings::default() };
        let report =
            SocketReport { srtt_eighths_us: 8 * 20_000, mss: 1448, now_us: 5, delivered: 1, ..SocketReport::default() };
        let flow = KernelFlow::<Gemini>::new(&settings.config(row).unwrap(), &report);
        let path = PathInfo {
            base_rtt: Span::from_ms(20),
            intra_rtt: settings.intra_rtt,
            line_rate: settings.line_rate,
            mss: Bytes::new(1448),
        };
        let laws::Law::Gemini(law) = catalog::build(LawKind::Gemini, &path, &[("beta", beta)]).unwrap() else {
            panic!("another law")
        };
        assert_eq!(flow.law, law);
        assert_eq!(flow.socket_settings().window_packets, law.send_limits().window.get() / 1448);
    }
}
