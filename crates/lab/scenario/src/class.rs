//! The two classes of flows: inside a datacenter and between two.

/// Class of a flow by its endpoints' datacenters. As a number, a flow's [`experiment::FlowSpec::kind`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u16)]
pub enum FlowClass {
    /// Both hosts are in one datacenter.
    Intra = 0,
    /// The hosts are in two datacenters.
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
