//! File names below a folder, as received from a peer.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// The most bytes of a path: Linux takes 4,096 with the final NUL.
pub const MAX_PATH: usize = 4_095;
/// The most bytes of a component: file systems take no more.
pub const MAX_NAME: usize = 255;
/// The most components: each is a system call when the path is opened, and trees made by hand are not that deep.
pub const MAX_DEPTH: usize = 128;
/// The directory in a folder for incomplete files.
pub const PARTIALS: &str = ".narrows-partial";
/// First components that are reserved by this program, in either case: some file systems ignore case.
const RESERVED: [&str; 2] = [PARTIALS, files::LOCK];

/// An error in a name.
#[derive(Clone, Copy, PartialEq, Eq, Error, Debug)]
pub enum NameError {
    /// No component, or one without a letter.
    #[error("a part of the name is empty")]
    Empty,
    /// `.` or `..`.
    #[error("a part of the name is `.` or `..`")]
    Dots,
    /// A NUL byte.
    #[error("the name has a NUL byte")]
    Nul,
    /// More than [`MAX_PATH`] bytes, or [`MAX_NAME`] in a component.
    #[error("the name is too long: a path has at most {MAX_PATH} bytes, a part of it {MAX_NAME}")]
    TooLong,
    /// More than [`MAX_DEPTH`] components.
    #[error("the name has more than {MAX_DEPTH} parts")]
    TooDeep,
    /// A name of this program's own.
    #[error("this name is kept for what `narrows recv` itself writes")]
    Reserved,
    /// The target of a link is absolute.
    #[error("it is a link to an absolute path")]
    AbsoluteTarget,
    /// The target of a link leads out.
    #[error("it is a link that leads out of the folder, or may do so")]
    TargetOutside,
    /// The target of a link is empty, too long or has a NUL byte.
    #[error("it is a link to what cannot be a path")]
    BadTarget,
}

/// A path below a folder: components that are neither empty nor `.` nor `..`, joined by `/`. So it is relative, and never
/// leads out of the folder. It need not be UTF-8.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(Vec<u8>);

impl Name {
    /// Creates a name of these bytes.
    ///
    /// # Errors
    /// If one of its components is not allowed.
    pub fn new(bytes: Vec<u8>) -> Result<Self, NameError> {
        if bytes.len() > MAX_PATH {
            return Err(NameError::TooLong);
        }
        if bytes.contains(&0) {
            return Err(NameError::Nul);
        }
        for (at, part) in bytes.split(|&byte| byte == b'/').enumerate() {
            match part {
                b"" => return Err(NameError::Empty),
                b"." | b".." => return Err(NameError::Dots),
                _ if part.len() > MAX_NAME => return Err(NameError::TooLong),
                _ if at >= MAX_DEPTH => return Err(NameError::TooDeep),
                _ if at == 0 && RESERVED.iter().any(|own| part.eq_ignore_ascii_case(own.as_bytes())) => {
                    return Err(NameError::Reserved);
                }
                _ => {}
            }
        }
        Ok(Self(bytes))
    }

    /// Returns the name of an entry in the directory of this name.
    ///
    /// # Errors
    /// If it is not allowed.
    pub fn join(&self, part: &[u8]) -> Result<Self, NameError> {
        Self::new([&self.0, b"/".as_slice(), part].concat())
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its components.
    pub fn parts(&self) -> impl Iterator<Item = &OsStr> {
        self.0.split(|&byte| byte == b'/').map(OsStr::from_bytes)
    }

    /// Splits the name: its directory, empty for the folder itself, and its last component.
    pub fn split(&self) -> (&[u8], &OsStr) {
        let end = self.0.iter().rposition(|&byte| byte == b'/');
        let (parent, last) = end.map_or((&[][..], &self.0[..]), |end| (&self.0[..end], &self.0[end + 1..]));
        (parent, OsStr::from_bytes(last))
    }

    /// Returns its path in a folder.
    pub fn below(&self, folder: &Path) -> PathBuf {
        folder.join(OsStr::from_bytes(&self.0))
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Vec::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// Displays the name with terminal control characters escaped.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", OsStr::from_bytes(&self.0))
    }
}

/// Returns a peer's bytes for display: control characters, and those that change the direction of text, are escaped.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let is_odd = |it: char| {
        it.is_control() || matches!(it, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut text = String::new();
    for it in String::from_utf8_lossy(bytes).chars() {
        if is_odd(it) {
            text.extend(it.escape_default());
        } else {
            text.push(it);
        }
    }
    text
}

/// Checks whether a link of this name may have this target. It may lead to anything in the folder, as seen from the
/// link's directory: `..` is allowed only at the target's beginning, where it counts real directories. After another
/// component it could follow a link of the peer's and lead elsewhere.
///
/// # Errors
/// If the target is not allowed.
pub fn check_target(name: &Name, target: &[u8]) -> Result<(), NameError> {
    if target.is_empty() || target.len() > MAX_PATH || target.contains(&0) {
        return Err(NameError::BadTarget);
    }
    if target[0] == b'/' {
        return Err(NameError::AbsoluteTarget);
    }
    let mut ups_left = name.parts().count() - 1;
    let mut is_leading = true;
    for part in target.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if is_leading && ups_left > 0 => ups_left -= 1,
            b".." => return Err(NameError::TargetOutside),
            _ => is_leading = false,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::path::Component;

    use super::*;

    fn error(text: &str) -> Option<NameError> {
        Name::new(text.as_bytes().to_vec()).err()
    }

    #[test]
    fn names_have_plain_components_alone() {
        for text in ["a", "a/b", ".a", "..a/...", "a b\n", "-", "a/.narrows-partial", "~", "C:\\x"] {
            assert_eq!(error(text), None, "{text}");
        }
        assert_eq!(Name::new(vec![0xff, 0xfe]).unwrap().split().1.as_bytes(), [0xff, 0xfe]);
        for (text, expected) in [
            ("", NameError::Empty),
            ("/", NameError::Empty),
            ("/etc/passwd", NameError::Empty),
            ("a//b", NameError::Empty),
            ("a/", NameError::Empty),
            (".", NameError::Dots),
            ("..", NameError::Dots),
            ("a/../b", NameError::Dots),
            ("a/.", NameError::Dots),
            ("a\0b", NameError::Nul),
            (".narrows-partial/x", NameError::Reserved),
            (".Narrows.Lock", NameError::Reserved),
        ] {
            assert_eq!(error(text), Some(expected), "{text}");
        }
        assert_eq!(error(&"x".repeat(MAX_NAME)), None);
        assert_eq!(error(&"x".repeat(MAX_NAME + 1)), Some(NameError::TooLong));
        assert_eq!(error(&vec!["x"; MAX_DEPTH].join("/")), None);
        assert_eq!(error(&vec!["x"; MAX_DEPTH + 1].join("/")), Some(NameError::TooDeep));
        assert_eq!(error(&vec!["x".repeat(100); 41].join("/")), Some(NameError::TooLong));
    }

    #[test]
    fn links_stay_in_the_folder() {
        let check = |name: &str, target: &str| check_target(&Name::new(name.into()).unwrap(), target.as_bytes());
        for (name, target) in
            [("a", "b"), ("a", "./b//c/"), ("d/a", "../b"), ("d/e/a", "../../b/c"), ("d/a", ".."), ("a", "..b")]
        {
            assert_eq!(check(name, target), Ok(()), "{name} -> {target}");
        }
        for (name, target, expected) in [
            ("a", "", NameError::BadTarget),
            ("a", "b\0", NameError::BadTarget),
            ("a", "/etc", NameError::AbsoluteTarget),
            ("a", "..", NameError::TargetOutside),
            ("d/a", "../..", NameError::TargetOutside),
            ("d/a", "./.././..", NameError::TargetOutside),
            // `b` may be a link itself.
            ("d/a", "b/..", NameError::TargetOutside),
        ] {
            assert_eq!(check(name, target), Err(expected), "{name} -> {target}");
        }
    }

    #[test]
    fn printed_names_contain_no_control_characters() {
        assert_eq!(shown(b"a\x1b[31m\n"), "a\\u{1b}[31m\\n");
        assert_eq!(shown("über\u{202e}".as_bytes()), "über\\u{202e}");
    }

    proptest! {
        #[test]
        fn no_name_escapes_the_directory(bytes in proptest::collection::vec(prop_oneof![Just(b'/'), Just(b'.'), any::<u8>()], 0..40)) {
            if let Ok(name) = Name::new(bytes.clone()) {
                let path = name.below(Path::new("/folder"));
                prop_assert!(path.starts_with("/folder") && path != Path::new("/folder"));
                prop_assert!(path.components().skip(1).all(|part| matches!(part, Component::Normal(_))));
                prop_assert_eq!(name.bytes(), &bytes[..]);
                let (parent, last) = name.split();
                let parts: Vec<&OsStr> = name.parts().collect();
                prop_assert_eq!(parts.last().copied(), Some(last));
                prop_assert_eq!(parent.is_empty(), parts.len() == 1);
            }
        }
    }
}
