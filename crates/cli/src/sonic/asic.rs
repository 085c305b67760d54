//! Parameters of switch chips in the formula.

/// A switch chip, as SONiC's `ASIC_TABLE` describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Asic {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// Bytes of a cell: a packet takes whole ones.
    pub(crate) cell_bytes: u64,
    /// Capacity of the pipeline when the switch resumes, in KiB.
    pub(crate) pipeline_kib: u64,
    /// Capacity of the egress pipeline and the PHY when a pause is made, in thousandths of a KiB.
    pub(crate) mac_phy_milli_kib: u64,
    /// Set if the formula counts the capacity of tiles (Spectrum-4 and -5).
    pub(crate) has_tiles: bool,
    /// Bytes that the formula adds at the end (Spectrum-6).
    pub(crate) extra_bytes: u64,
}

const SPECTRUM_3: Asic = Asic {
    name: "spectrum-3",
    cell_bytes: 144,
    pipeline_kib: 18,
    mac_phy_milli_kib: 800,
    has_tiles: false,
    extra_bytes: 0,
};

/// Chips with numbers in SONiC's design documents (cells of 96 bytes on Spectrum, 144 on -2 and -3; a pipeline of 18 KiB;
/// 0.8 KiB of egress and PHY). The later ones have -3's cells and their own terms of the formula: state `--cell` where
/// yours differ.
pub(crate) const ASICS: [Asic; 6] = [
    Asic { name: "spectrum", cell_bytes: 96, ..SPECTRUM_3 },
    Asic { name: "spectrum-2", ..SPECTRUM_3 },
    SPECTRUM_3,
    Asic { name: "spectrum-4", has_tiles: true, ..SPECTRUM_3 },
    Asic { name: "spectrum-5", has_tiles: true, ..SPECTRUM_3 },
    Asic { name: "spectrum-6", extra_bytes: 18_432, ..SPECTRUM_3 },
];

impl Asic {
    /// The chip of that name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        ASICS.into_iter().find(|asic| asic.name == name)
    }
}
