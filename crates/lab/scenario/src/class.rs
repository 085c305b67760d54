//! The two classes of flows: inside a datacenter and between two.

/// Whether a flow stays inside its datacenter. As a number, a flow's [`experiment::FlowSpec::kind`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u16)]
pub enum FlowClass {
    /// It does.
    Intra = 0,
    /// It does not.
    Inter = 1,
}

impl FlowClass {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Intra => "intra",
            Self::Inter => "inter",
        }
    }
}
