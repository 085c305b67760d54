//! From the bytes of a file to text.

/// Mark that some editors put before the text. Readers skip it.
pub const BYTE_ORDER_MARK: char = '\u{feff}';

/// Decodes UTF-8.
///
/// # Errors
/// If the bytes are not UTF-8. The message has the line, the byte in the line and in the file, and the probable kind of the
/// file.
pub fn utf8(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let line = bytes[..at].split(|&byte| byte == b'\n').count();
        let line_start = bytes[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |before| before + 1);
        let hint = if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            "it seems to be text in UTF-16: save it in UTF-8"
        } else if bytes.iter().take(1 << 16).any(|&byte| byte == 0) {
            "it seems to be a binary file"
        } else {
            "if it is text in Latin-1, save it in UTF-8"
        };
        format!(
            "it is not UTF-8 text: line {line}, byte {} of the line (offset {at} in the file) is 0x{:02x}; {hint}",
            at - line_start + 1,
            bytes[at],
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_utf8_is_an_error_with_its_position() {
        assert_eq!(utf8("\u{feff}a \u{3bc}s".into()).unwrap(), "\u{feff}a \u{3bc}s");
        let latin = utf8(b"one\n# caf\xe9\n".to_vec()).unwrap_err();
        assert!(latin.contains("line 2, byte 6 of the line (offset 9 in the file) is 0xe9"), "{latin}");
        assert!(latin.contains("Latin-1"), "{latin}");
        let binary = utf8(vec![0x7f, b'E', 0, b'\n', 0x80]).unwrap_err();
        assert!(binary.contains("line 2, byte 1") && binary.contains("a binary file"), "{binary}");
        assert!(utf8(vec![0xff, 0xfe, b'a', 0]).unwrap_err().contains("UTF-16"));
        // A character that is cut off by the end of the file.
        assert!(utf8(vec![b'a', 0xc3]).unwrap_err().contains("offset 1 in the file) is 0xc3"));
    }
}
