//! File type detection: errors never quote an unrelated file.
//!
//! An error shows the line that it is about, but no line of a file of another kind: `file = "/etc/shadow"` in a
//! scenario from somewhere else must not print that file into a log. Each kind is defined where such files are read.

/// A kind of file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileKind {
    /// The kind, with its article.
    pub(crate) name: &'static str,
    /// The expected form of such a file, for messages.
    pub(crate) expected: &'static str,
    /// Test whether a text may be such a file, mistakes included.
    pub(crate) matches: fn(&FileHead) -> bool,
}

/// A file as far as its kind shows.
pub(crate) struct FileHead<'a> {
    /// The file's name.
    name: &'a str,
    text: &'a str,
}

impl FileKind {
    /// Returns whether a text may be such a file, mistakes included. `name` is the file's name.
    pub(crate) fn matches(&self, name: &str, text: &str) -> bool {
        let head = FileHead { name, text: text.trim_start_matches(files::BYTE_ORDER_MARK) };
        head.first().is_empty() || (self.matches)(&head)
    }
}

impl<'a> FileHead<'a> {
    /// Its lines, without blanks around them.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &'a str> {
        self.text.lines().map(str::trim)
    }

    /// The first line that is neither empty nor a comment; empty if there is none.
    pub(crate) fn first(&self) -> &'a str {
        self.lines().find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default()
    }

    /// Returns whether the first keyword of that line is one of these, in capitals or not.
    #[cfg(feature = "import")]
    pub(crate) fn begins_with(&self, keywords: &[&str]) -> bool {
        let first = self.first().split_whitespace().next().unwrap_or_default();
        keywords.iter().any(|keyword| first.eq_ignore_ascii_case(keyword))
    }

    /// Returns whether the file's name has this extension.
    pub(crate) fn is_called(&self, extension: &str) -> bool {
        std::path::Path::new(self.name).extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
    }
}

#[cfg(all(test, feature = "import"))]
mod tests {
    use super::*;
    use crate::distribution::DISTRIBUTION;
    use crate::foreign::{GOAL, MSCCL, PLAIN, RECORDS, SIMAI, TRACE};
    use crate::import::{GRAPHML, LAB, LINKS, MATRIX, NUMBERS, SETTINGS, SNDLIB, TIERS};
    use crate::load::SCENARIO_FILE;
    use crate::traffic::FLOWS;

    const ALL: [FileKind; 17] = [
        SCENARIO_FILE,
        FLOWS,
        DISTRIBUTION,
        MATRIX,
        TIERS,
        NUMBERS,
        SETTINGS,
        GOAL,
        GRAPHML,
        LINKS,
        LAB,
        SNDLIB,
        PLAIN,
        RECORDS,
        MSCCL,
        SIMAI,
        TRACE,
    ];

    #[test]
    fn files_of_other_programs_are_foreign() {
        for text in [
            "root:$y$j9T$abc:20000:0:99999:7:::\n",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn\n",
            "[client]\npassword = hunter2\n",
            "{\"token\": \"abc\"}",
            "machine example.com login me password secret\n",
        ] {
            for kind in ALL {
                assert!(!kind.matches("/etc/secret", text), "{kind:?}: {text}");
            }
        }
    }

    #[test]
    fn errors_quote_files_of_the_expected_kind_only() {
        assert!(SCENARIO_FILE.matches("x", "# mine\nnmae = \"a\"\n[topology]\n"));
        assert!(SCENARIO_FILE.matches("x.toml", "nothing of it"));
        assert!(FLOWS.matches("x", "\u{feff}\"start_s\",\"src\",\"dist\",\"bytes\"\n"));
        assert!(DISTRIBUTION.matches("x", "# sizes\n0 0\n"));
        assert!(MATRIX.matches("x", "Nodes x\n") && MATRIX.matches("x", "0->1 id 1\n"));
        assert!(NUMBERS.matches("x", "5 1 4\n") && SETTINGS.matches("x", "CC_MODE 3\n"));
    }
}
