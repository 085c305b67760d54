//! Text that can be identified: its last line is a comment with a hash of all above.

use std::path::Path;

use sha2::{Digest, Sha256};

use crate::Error;
use crate::read::{SizeLimit, read};

/// The largest file that is read to determine which program wrote it.
const MAX_REPLACED: SizeLimit = SizeLimit { kind: "a file to be replaced", mib: 1 << 10 };

/// The last line of a kind of text file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IntegrityTrailer {
    /// The kind, with its article and the program that writes it: ``a report that `narrows report` wrote``.
    pub kind: &'static str,
    /// Text before the hash.
    pub before: &'static str,
    /// Text after the hash, with the line's end.
    pub after: &'static str,
}

impl IntegrityTrailer {
    /// Returns the text with the last line that identifies it.
    pub fn seal(&self, mut text: String) -> String {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let hash = sha256(text.as_bytes());
        text + self.before + &hash + self.after
    }

    /// Returns the reason why an existing file may not be replaced; none if it may: it is empty, or as it was sealed.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn refusal(&self, path: &Path) -> Result<Option<String>, Error> {
        let bytes = read(path, MAX_REPLACED)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let lines = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let (above, last) = bytes.split_at(lines.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1));
        let hash = last.strip_prefix(self.before.as_bytes()).and_then(|rest| rest.strip_suffix(self.after.as_bytes()));
        if hash.is_some_and(|hash| hash == sha256(above).as_bytes()) {
            return Ok(None);
        }
        // Lines may have been added after the last one, or line ends changed.
        let is_marked = bytes.split(|&byte| byte == b'\n').any(|line| line.starts_with(self.before.as_bytes()));
        Ok(Some(if is_marked {
            "it was edited after Narrows wrote it".to_owned()
        } else {
            format!("it is not {}, or its last line was removed since", self.kind)
        }))
    }
}

/// The SHA-256 of some bytes in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// Bytes in hexadecimal, two small digits each.
pub fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(if value < 10 { b'0' + value } else { b'a' + value - 10 });
    bytes.iter().flat_map(|&byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testbed::ScratchDir;

    #[test]
    fn sealed_files_are_recognised_until_edited() {
        let scratch = ScratchDir::new("seal");
        let path = scratch.path().join("file");
        let refusal = |seal: IntegrityTrailer, bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            seal.refusal(&path).unwrap()
        };
        let page = IntegrityTrailer { kind: "a page", before: "<!-- all above: ", after: " -->\n" };
        let list = IntegrityTrailer { kind: "a list", before: "# list, all above: ", after: "\n" };
        for seal in [page, list] {
            let text = seal.seal("one\ntwo".to_owned());
            assert!(text.starts_with("one\ntwo\n") && text.lines().count() == 3);
            assert_eq!(refusal(seal, text.as_bytes()), None);
            assert_eq!(refusal(seal, b""), None);
            for edited in [text.replace("two", "too"), format!("\n{text}"), text.replacen('\n', "\r\n", 1)] {
                assert_eq!(refusal(seal, edited.as_bytes()).unwrap(), "it was edited after Narrows wrote it");
            }
            // The last line may be cut, have other ends, or not be the last any more.
            let ends = [text[..text.len() - 2].to_owned(), text.replace('\n', "\r\n"), format!("{text}three\n")];
            for edited in ends {
                assert_eq!(refusal(seal, edited.as_bytes()).unwrap(), "it was edited after Narrows wrote it");
            }
            for other in [&b"\n"[..], b"one", b"\xff\n\n", b"one\ntwo\n"] {
                let reason = refusal(seal, other).unwrap();
                assert!(reason.starts_with("it is not a ") && reason.ends_with("or its last line was removed since"));
            }
        }
        assert!(refusal(list, page.seal("x\n".to_owned()).as_bytes()).unwrap().starts_with("it is not a list"));
    }

    #[test]
    fn the_hash_is_sha256() {
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
