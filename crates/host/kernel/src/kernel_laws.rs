//! The laws that the kernel can run: those that `laws::laws!` declares as built for it.

use laws::catalog::{EcnSupport, LawKind};

/// A law that the kernel can run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelLaw {
    /// The law.
    pub kind: LawKind,
    /// Its name in files.
    pub name: &'static str,
    /// Its default name in the kernel: at most 15 bytes.
    pub tcp_name: &'static str,
    /// True if it uses marks: its sockets request ECN.
    pub ecn: bool,
}

macro_rules! rows {
    ($(#[doc = $doc:literal] $law:ident in $module:ident $(for $kernel:ident)?;)*) => {
        const ROWS: &[KernelLaw] = &[$($(row!($law $module $kernel),)?)*];
    };
}
macro_rules! row {
    ($law:ident $module:ident kernel) => {
        KernelLaw {
            kind: LawKind::$law,
            name: LawKind::$law.info().name,
            tcp_name: concat!("narrows_", stringify!($module)),
            ecn: matches!(LawKind::$law.info().marks, EcnSupport::Used),
        }
    };
}
laws::laws!(rows);

/// All of them.
pub const fn rows() -> &'static [KernelLaw] {
    ROWS
}

impl KernelLaw {
    /// The row of a law, by its name in files.
    pub fn of_name(name: &str) -> Option<&'static Self> {
        ROWS.iter().find(|row| row.name == name)
    }

    /// The row of a law.
    pub fn of(kind: LawKind) -> Option<&'static Self> {
        ROWS.iter().find(|row| row.kind == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_catalogs_and_fit_the_kernel() {
        for row in rows() {
            assert_eq!(row.kind.info().name, row.name);
            assert!(row.tcp_name.len() < 16, "{}", row.tcp_name);
            assert_eq!(KernelLaw::of_name(row.name), Some(row));
        }
    }
}
