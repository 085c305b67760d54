//! Descriptions of laws: each is defined in the file of its law.

use crate::params::ParamInfo;

/// Name, source and input signals of a law.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LawInfo {
    /// Its name in files.
    pub name: &'static str,
    /// Its name in prose.
    pub title: &'static str,
    /// Its behaviour, in a sentence.
    pub summary: &'static str,
    /// The paper or standard, with sections.
    pub source: &'static str,
    /// Its input signals, in words.
    pub signals: &'static str,
    /// Use of ECN marks.
    pub marks: EcnSupport,
    /// True if it reacts to congestion notifications, direct ones included.
    pub notified: bool,
    /// True if it reads the remaining bytes of a flow ([`Ack::bytes_remaining`](crate::Ack::bytes_remaining)).
    pub reads_bytes_remaining: bool,
    /// True if it reads the reports of ports (INT), so that packets must carry them.
    pub reads_reports: bool,
    /// True if credits schedule its flows ([`ControlLaw::credits`](crate::ControlLaw::credits)).
    pub credits: bool,
    /// Its name in Linux, if Linux has an equivalent law.
    pub linux: Option<&'static str>,
    /// Its parameters.
    pub params: &'static [ParamInfo],
    /// Pairs of parameters: the first must not exceed the second. Their defaults depend on no path.
    pub pairs: &'static [(&'static str, &'static str)],
}

/// Use of ECN marks in acknowledgements by a law.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnSupport {
    /// Marks are ignored.
    Ignored,
    /// Marks are used.
    Used,
    /// Marks are used if this switch parameter is on.
    If(&'static str),
}

impl LawInfo {
    /// Describes a law without a name that has these parameters and reacts to acknowledgements and losses only.
    pub(crate) const fn of(params: &'static [ParamInfo]) -> Self {
        Self {
            name: "",
            title: "",
            summary: "",
            source: "none",
            signals: "none",
            marks: EcnSupport::Ignored,
            notified: false,
            reads_bytes_remaining: false,
            reads_reports: false,
            credits: false,
            linux: None,
            params,
            pairs: &[],
        }
    }

    /// The parameter of that name.
    pub fn param(&self, name: &str) -> Option<&'static ParamInfo> {
        self.params.iter().find(|param| param.name == name)
    }
}
