//! The laws that the transport runs.

use laws::catalog::LawKind;

/// Returns a requirement of a law that the transport does not meet; none if the transport's packets carry all signals
/// that it needs.
pub(crate) fn needs(kind: LawKind) -> Option<&'static str> {
    match kind.info() {
        info if info.credits => Some("credits from the receiver"),
        info if info.reads_reports => Some("reports of switches (INT)"),
        _ => None,
    }
}

/// The names of the laws that the transport runs.
pub(crate) fn accepted() -> Vec<&'static str> {
    LawKind::ALL.iter().filter(|&&kind| needs(kind).is_none()).map(|kind| kind.info().name).collect()
}
