//! Every law with its parameters: what scenario files, validation and documentation are made from.

use core::error::Error;
use core::fmt;

use crate::{Bbr, Cubic, Dctcp, Fixed, Gemini, Law, MpRdma, NewReno, Path, UnoCc};
use crate::{bbr, cubic, dctcp, fixed, gemini, mprdma, newreno, unocc};

pub use crate::params::{ParamInfo, Quantity, Value};

/// A law by name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Uno's loop.
    UnoCc,
    /// GEMINI.
    Gemini,
    /// DCTCP.
    Dctcp,
    /// MPRDMA.
    MpRdma,
    /// BBR, version 1.
    Bbr,
    /// Cubic.
    Cubic,
    /// `NewReno`.
    NewReno,
    /// A constant window.
    Fixed,
}

/// What there is to say about a law.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LawInfo {
    /// Its name in files.
    pub name: &'static str,
    /// Its name in prose.
    pub title: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// The paper or standard, and where in it.
    pub source: &'static str,
    /// What it listens to.
    pub signals: &'static str,
    /// What can be set.
    pub params: &'static [ParamInfo],
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::UnoCc, Self::Gemini, Self::Dctcp, Self::MpRdma, Self::Bbr, Self::Cubic, Self::NewReno, Self::Fixed];

    /// The law of that name, as in files.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.info().name == name)
    }

    /// What there is to say about it.
    pub const fn info(self) -> &'static LawInfo {
        match self {
            Self::UnoCc => &UNOCC,
            Self::Gemini => &GEMINI,
            Self::Dctcp => &DCTCP,
            Self::MpRdma => &MPRDMA,
            Self::Bbr => &BBR,
            Self::Cubic => &CUBIC,
            Self::NewReno => &NEWRENO,
            Self::Fixed => &FIXED,
        }
    }
}

impl LawInfo {
    /// The parameter of that name.
    pub fn param(&self, name: &str) -> Option<&'static ParamInfo> {
        self.params.iter().find(|param| param.name == name)
    }
}

const UNOCC: LawInfo = LawInfo {
    name: "unocc",
    title: "UnoCC",
    summary: "AIMD on marks at the granularity of the intra-datacenter RTT for all flows, with Quick Adapt",
    source: "Uno (SC 2025), §4.1, Algorithm 1",
    signals: "ECN, delay, acknowledged bytes",
    params: unocc::Params::TABLE,
};

const GEMINI: LawInfo = LawInfo {
    name: "gemini",
    title: "GEMINI",
    summary: "AIMD on marks inside a datacenter and on delay between them, both scaled with the BDP",
    source: "Zeng et al. (ICNP 2019; journal version), §III, Algorithm 1",
    signals: "ECN, delay, loss",
    params: gemini::Params::TABLE,
};

const DCTCP: LawInfo = LawInfo {
    name: "dctcp",
    title: "DCTCP",
    summary: "cuts the window in proportion to the fraction of marked bytes",
    source: "Alizadeh et al. (SIGCOMM 2010), §3; RFC 8257",
    signals: "ECN, loss",
    params: dctcp::Params::TABLE,
};

const MPRDMA: LawInfo = LawInfo {
    name: "mprdma",
    title: "MPRDMA",
    summary: "one packet more a round trip, half a packet less a marked packet",
    source: "Lu et al. (NSDI 2018), §3.1",
    signals: "ECN, loss",
    params: mprdma::Params::TABLE,
};

const BBR: LawInfo = LawInfo {
    name: "bbr",
    title: "BBR",
    summary: "paces at the measured bandwidth and keeps about two measured BDPs in flight (version 1)",
    source: "Cardwell et al. (ACM Queue 2016); draft-cardwell-iccrg-bbr-congestion-control-00",
    signals: "delivery rate, delay, timeout",
    params: bbr::Params::TABLE,
};

const CUBIC: LawInfo = LawInfo {
    name: "cubic",
    title: "Cubic",
    summary: "grows as a cubic function of the time since the last cut",
    source: "RFC 9438, §4; RFC 8511 for marks",
    signals: "loss, ECN if switched on",
    params: cubic::Params::TABLE,
};

const NEWRENO: LawInfo = LawInfo {
    name: "newreno",
    title: "NewReno",
    summary: "one packet more a round trip, half the window at a loss",
    source: "RFC 5681, §3; RFC 6582; RFC 8511 for marks",
    signals: "loss, ECN if switched on",
    params: newreno::Params::TABLE,
};

const FIXED: LawInfo = LawInfo {
    name: "fixed",
    title: "Fixed window",
    summary: "a constant window, whatever happens: a baseline and an aid to tests",
    source: "none",
    signals: "none",
    params: fixed::Params::TABLE,
};

/// A setting that a law cannot take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SettingError<'a> {
    /// The law has no parameter of that name.
    UnknownParam {
        /// The law.
        law: &'static LawInfo,
        /// The name given.
        name: &'a str,
    },
    /// The parameter is of another kind.
    WrongQuantity {
        /// The law.
        law: &'static LawInfo,
        /// The parameter.
        param: &'static ParamInfo,
        /// What was given.
        got: Value,
    },
    /// The value is outside the parameter's range.
    OutOfRange {
        /// The law.
        law: &'static LawInfo,
        /// The parameter.
        param: &'static ParamInfo,
        /// What was given.
        got: Value,
    },
}

impl fmt::Display for SettingError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownParam { law, name } => {
                write!(f, "{} has no parameter `{name}`; it has", law.title)?;
                for (index, param) in law.params.iter().enumerate() {
                    write!(f, "{} `{}`", if index == 0 { "" } else { "," }, param.name)?;
                }
                Ok(())
            }
            Self::WrongQuantity { law, param, got } => write!(
                f,
                "{}'s `{}` is {}, but was given {} ({got})",
                law.title,
                param.name,
                param.quantity,
                got.quantity()
            ),
            Self::OutOfRange { law, param, got } => {
                write!(f, "{}'s `{}` is {got}; it must be {} to {}", law.title, param.name, param.lowest, param.highest)
            }
        }
    }
}

impl Error for SettingError<'_> {}

/// Makes the law `kind` for a flow on `path`, with defaults for all that `settings` do not name. Of two settings of
/// one name the later holds.
///
/// # Errors
/// If a setting names no parameter of the law, is of another kind, or is out of range.
pub fn build<'a>(kind: Kind, path: &Path, settings: &[(&'a str, Value)]) -> Result<Law, SettingError<'a>> {
    /// Defaults, then each setting, then the law.
    macro_rules! make {
        ($law:ident, $module:ident) => {{
            let mut params = $module::Params::for_path(path);
            for (name, value) in settings {
                check(kind.info(), name, *value)?;
                params.set(name, *value);
            }
            Law::$law($law::new(path, params))
        }};
    }
    Ok(match kind {
        Kind::UnoCc => make!(UnoCc, unocc),
        Kind::Gemini => make!(Gemini, gemini),
        Kind::Dctcp => make!(Dctcp, dctcp),
        Kind::MpRdma => make!(MpRdma, mprdma),
        Kind::Bbr => make!(Bbr, bbr),
        Kind::Cubic => make!(Cubic, cubic),
        Kind::NewReno => make!(NewReno, newreno),
        Kind::Fixed => make!(Fixed, fixed),
    })
}

/// Whether a law would take a setting: what [`build`] asks, for those who check files before they run.
///
/// # Errors
/// As [`build`].
pub fn check<'a>(law: &'static LawInfo, name: &'a str, value: Value) -> Result<(), SettingError<'a>> {
    let Some(param) = law.param(name) else {
        return Err(SettingError::UnknownParam { law, name });
    };
    if value.quantity() != param.quantity {
        return Err(SettingError::WrongQuantity { law, param, got: value });
    }
    if !param.allows(value) {
        return Err(SettingError::OutOfRange { law, param, got: value });
    }
    Ok(())
}
