//! Engines and their availability on this processor.

use core::fmt;

/// Tests for processor features. Without `std` they cannot be detected at run time: only the features of the build
/// count.
macro_rules! has {
    ($($feature:tt),+) => {{
        #[cfg(all(feature = "std", target_arch = "x86_64"))]
        let has = $(std::arch::is_x86_feature_detected!($feature))&&+;
        #[cfg(all(feature = "std", target_arch = "aarch64"))]
        let has = $(std::arch::is_aarch64_feature_detected!($feature))&&+;
        #[cfg(not(feature = "std"))]
        let has = $(cfg!(target_feature = $feature))&&+;
        has
    }};
}

/// An implementation of the code's arithmetic. The results are the same bytes with every one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Engine {
    /// Byte by byte by the definition of the field: the reference for all others.
    Naive,
    /// Shifts and XORs on arrays, for any processor.
    Portable,
    /// x86-64 with AVX2: products of half bytes looked up by `VPSHUFB`, 32 bytes at a time.
    Avx2,
    /// x86-64 with GFNI and AVX2: `VGF2P8AFFINEQB`, 32 bytes at a time.
    Gfni256,
    /// x86-64 with GFNI and AVX-512F: `VGF2P8AFFINEQB`, 64 bytes at a time.
    Gfni512,
    /// 64-bit Arm: products of half bytes looked up by `TBL`, 16 bytes at a time.
    Neon,
}

impl Engine {
    /// All engines of all processors, the slowest first.
    pub const ALL: [Self; 6] = [Self::Naive, Self::Portable, Self::Neon, Self::Avx2, Self::Gfni256, Self::Gfni512];
    pub(crate) const NAMES: &str = "naive, portable, neon, avx2, gfni-256, gfni-512";

    /// Its name, as [`FromStr`](core::str::FromStr) takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Gfni256 => "gfni-256",
            Self::Gfni512 => "gfni-512",
            Self::Neon => "neon",
        }
    }

    /// Returns whether it runs on this processor. Without the feature `std` only instructions enabled at compile time count.
    pub fn is_available(self) -> bool {
        match self {
            Self::Naive | Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => has!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni256 => has!("avx2", "gfni"),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni512 => has!("avx512f", "gfni"),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => has!("neon"),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Gfni256 | Self::Gfni512 => false,
            #[cfg(not(target_arch = "aarch64"))]
            Self::Neon => false,
        }
    }

    /// The engines that run here, the slowest first.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|engine| engine.is_available())
    }

    /// The fastest that runs here.
    pub fn fastest() -> Self {
        Self::available().last().unwrap_or(Self::Portable)
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
