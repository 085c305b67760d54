//! What there is to say about a law: each says it in its own file.

use crate::params::ParamInfo;

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
    /// What it listens to, in words.
    pub signals: &'static str,
    /// Whether it listens to marks.
    pub marks: Marks,
    /// Whether it listens to notifications of congestion, direct ones too.
    pub notified: bool,
    /// Whether it reads how much of a flow is left ([`Ack::left`](crate::Ack::left)).
    pub reads_left: bool,
    /// Whether it reads the reports of ports (INT), so that packets must carry them.
    pub reads_reports: bool,
    /// Whether credits schedule its flows ([`ControlLaw::credits`](crate::ControlLaw::credits)).
    pub credits: bool,
    /// Its name in Linux, where Linux has a law of its own that stands for it.
    pub linux: Option<&'static str>,
    /// What can be set.
    pub params: &'static [ParamInfo],
    /// Pairs of parameters, of which the first must not be over the second. Their defaults depend on no path.
    pub pairs: &'static [(&'static str, &'static str)],
}

/// Whether a law listens to marks in acknowledgements (ECN).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Marks {
    /// It does not.
    Deaf,
    /// It does.
    Heard,
    /// Where this parameter of it, a switch, is on.
    If(&'static str),
}

impl LawInfo {
    /// A law without a name that takes these parameters and hears of acknowledgements and losses alone.
    pub(crate) const fn of(params: &'static [ParamInfo]) -> Self {
        Self {
            name: "",
            title: "",
            summary: "",
            source: "none",
            signals: "none",
            marks: Marks::Deaf,
            notified: false,
            reads_left: false,
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
