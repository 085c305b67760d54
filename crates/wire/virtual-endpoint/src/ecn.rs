//! The ECN field of IP headers (RFC 3168 §5) as a codepoint.

use flow::Codepoint;

/// Returns the ECN field of a codepoint.
pub const fn field(codepoint: Codepoint) -> u8 {
    match codepoint {
        Codepoint::NotEct => 0,
        Codepoint::Ect1 => 1,
        Codepoint::Ect0 => 2,
        Codepoint::Ce => 3,
    }
}

/// Returns the codepoint of an ECN field, which is the two lowest bits of this byte.
pub const fn codepoint(ecn: u8) -> Codepoint {
    match ecn & 3 {
        0 => Codepoint::NotEct,
        1 => Codepoint::Ect1,
        2 => Codepoint::Ect0,
        _ => Codepoint::Ce,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_a_codepoint() {
        for ecn in 0..4 {
            assert_eq!(field(codepoint(ecn)), ecn);
        }
        assert_eq!([codepoint(1), codepoint(2)], [Codepoint::Ect1, Codepoint::Ect0]);
    }
}
