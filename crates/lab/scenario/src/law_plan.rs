//! The laws of a run's flows, as the simulator's hosts make them: all that is left of a scheme once a run is built.

use std::sync::Arc;

use experiment::FlowSpec;
use laws::catalog::{LawKind, ParamValue, build};
use laws::{ControlLaw as _, Law, PathInfo, SendLimits};

use crate::class::FlowClass;

/// Makes each flow's law. Everything was checked when it was made.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LawPlan {
    laws: [PlannedLaw; 2],
}

/// The law of a class of flows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum PlannedLaw {
    /// One of the catalog, and the parameters that the scenario sets.
    Known(LawKind, Vec<(&'static str, ParamValue)>),
    /// One that the calling program supplies.
    External(ExternalLawPlan),
}

/// A law that the calling program supplies (Python).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ExternalLawPlan {
    /// Its name.
    pub name: Arc<str>,
    /// Language of its source.
    pub language: String,
    /// The SHA-256 of its source in hexadecimal.
    pub sha256: String,
    /// All its parameters, a JSON object.
    pub params: serde_json::Value,
}

impl LawPlan {
    /// The laws inside datacenters and between them.
    pub(crate) fn new(laws: [PlannedLaw; 2]) -> Self {
        Self { laws }
    }

    /// The law of a class of flows, and the parameters that the scenario sets; none where that is not of the catalog.
    pub fn law(&self, class: FlowClass) -> Option<(LawKind, &[(&'static str, ParamValue)])> {
        match &self.laws[class as usize] {
            PlannedLaw::Known(kind, settings) => Some((*kind, settings)),
            PlannedLaw::External(_) => None,
        }
    }

    /// The name of the law of a class of flows.
    pub fn name(&self, class: FlowClass) -> &str {
        match &self.laws[class as usize] {
            PlannedLaw::Known(kind, _) => kind.info().name,
            PlannedLaw::External(law) => &law.name,
        }
    }

    /// Returns the send limits before the first acknowledgement; none for external laws, and where credits schedule packets.
    pub(crate) fn first_send_limits(&self, class: FlowClass, path: &PathInfo) -> Option<SendLimits> {
        let (kind, settings) = self.law(class)?;
        let law = build(kind, path, settings).ok()?;
        (!kind.info().credits).then(|| law.send_limits())
    }

    /// The laws that the calling program must supply, each once.
    pub fn external_laws(&self) -> impl Iterator<Item = &ExternalLawPlan> {
        let other = if self.laws[0] == self.laws[1] { &[][..] } else { &self.laws[1..] };
        self.laws[..1].iter().chain(other).filter_map(|law| match law {
            PlannedLaw::Known(..) => None,
            PlannedLaw::External(law) => Some(law),
        })
    }

    /// The external law of a flow; none for one of the catalog.
    pub fn external_law_of(&self, flow: &FlowSpec) -> Option<&ExternalLawPlan> {
        match self.of(flow) {
            PlannedLaw::Known(..) => None,
            PlannedLaw::External(law) => Some(law),
        }
    }

    fn of(&self, flow: &FlowSpec) -> &PlannedLaw {
        &self.laws[usize::from(flow.kind != FlowClass::Intra as u16)]
    }

    /// The law of a flow on `path`.
    ///
    /// # Panics
    /// If it is not of the catalog ([`LawPlan::external_law_of`]): hosts without external laws refuse such runs.
    pub fn make(&self, flow: &FlowSpec, path: &PathInfo) -> Law {
        match self.of(flow) {
            PlannedLaw::Known(kind, settings) => match build(*kind, path, settings) {
                Ok(law) => law,
                Err(error) => unreachable!("checked when the plan was made: {error}"),
            },
            PlannedLaw::External(law) => panic!("the external law {} is missing", law.name),
        }
    }
}
