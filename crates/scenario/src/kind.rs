//! Whether a file is of the kind asked for.
//!
//! An error shows the line that it is about, but no line of a file of another kind: `file = "/etc/shadow"` in a
//! scenario from somewhere else must not print that file into a log.

use crate::config::Config;
use crate::import::{TIERS, is_setting};

/// A kind of file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Scenario,
    Flows,
    Distribution,
    /// htsim's connection matrix.
    Matrix,
    /// htsim's topology.
    Tiers,
    /// A topology or a list of flows of HPCC's simulator.
    Numbers,
    /// A configuration of HPCC's simulator.
    Settings,
}

impl Kind {
    /// The kind, with its article.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Scenario => "a scenario",
            Self::Flows => "a list of flows",
            Self::Distribution => "a distribution of flow sizes",
            Self::Matrix => "a connection matrix of htsim",
            Self::Tiers => "a topology of htsim",
            Self::Numbers => "a topology or a list of flows of HPCC's simulator",
            Self::Settings => "a configuration of HPCC's simulator",
        }
    }

    /// What such a file looks like.
    pub(crate) const fn expected(self) -> &'static str {
        match self {
            Self::Scenario => "expected TOML with keys such as `name`, `topology`, `schemes` and `traffic`",
            Self::Flows => "expected the header start,src,dst,bytes or start,src,dst,bytes,after",
            Self::Distribution => "expected lines of `bytes cumulative_percent`, the first at 0, the last at 100",
            Self::Matrix => "expected `Nodes N`, `Connections N` and lines such as `0->1 start 0 size 1000`",
            Self::Tiers => "expected lines such as `Nodes 16`, `Tiers 3`, `Tier 0`",
            Self::Numbers => "expected a first line of whole numbers",
            Self::Settings => "expected lines of a key in capitals and its value",
        }
    }

    /// Whether a text may be such a file, mistakes included. `name` is the file's name.
    pub(crate) fn fits(self, name: &str, text: &str) -> bool {
        let mut lines = text.trim_start_matches(files::BYTE_ORDER_MARK).lines().map(str::trim);
        let first = lines.clone().find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default();
        let first_word = first.split_whitespace().next().unwrap_or_default();
        let is_one_of = |words: &[&str]| words.iter().any(|word| first_word.eq_ignore_ascii_case(word));
        match self {
            // A file called .toml may have any mistake.
            Self::Scenario => {
                let names_it = std::path::Path::new(name).extension().is_some_and(|it| it.eq_ignore_ascii_case("toml"));
                let key = |line: &str| {
                    let word = line.trim_start_matches('[').split(['.', ' ', '=', ']']).next().unwrap_or_default();
                    line.contains(['=', '[']) && Config::KEYS.contains(&word)
                };
                names_it || first.is_empty() || lines.any(key)
            }
            Self::Flows => {
                let known = ["start", "src", "dst", "bytes", "size", "after", "source", "destination"];
                let column = |word: &str| {
                    let word = word.trim().trim_matches('"').to_ascii_lowercase();
                    known.iter().any(|known| word.starts_with(known))
                };
                first.is_empty() || first.split([',', ';', '\t', ' ']).filter(|word| column(word)).count() >= 2
            }
            Self::Distribution => first.is_empty() || first.starts_with(|c: char| c.is_ascii_digit()),
            Self::Matrix => {
                let known = ["nodes", "connections", "triggers", "failures", "trigger"];
                first.is_empty() || is_one_of(&known) || first.contains("->")
            }
            Self::Tiers => first.is_empty() || is_one_of(&TIERS),
            Self::Numbers => {
                let number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
                first.is_empty() || first.split_whitespace().any(number)
            }
            Self::Settings => {
                let known = |line: &str| line.split_whitespace().next().is_some_and(is_setting);
                first.is_empty() || lines.any(known)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Kind; 7] =
        [Kind::Scenario, Kind::Flows, Kind::Distribution, Kind::Matrix, Kind::Tiers, Kind::Numbers, Kind::Settings];

    #[test]
    fn files_of_other_programs_are_strangers() {
        for text in [
            "root:$y$j9T$abc:20000:0:99999:7:::\n",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn\n",
            "[client]\npassword = hunter2\n",
            "{\"token\": \"abc\"}",
            "machine example.com login me password secret\n",
        ] {
            for kind in ALL {
                assert!(!kind.fits("/etc/secret", text), "{kind:?}: {text}");
            }
        }
    }

    #[test]
    fn files_of_the_kind_are_shown_with_their_mistakes() {
        assert!(Kind::Scenario.fits("x", "# mine\nnmae = \"a\"\n[topology]\n"));
        assert!(Kind::Scenario.fits("x.toml", "nothing of it"));
        assert!(Kind::Flows.fits("x", "\u{feff}\"start_s\",\"src\",\"dist\",\"bytes\"\n"));
        assert!(Kind::Distribution.fits("x", "# sizes\n0 0\n"));
        assert!(Kind::Matrix.fits("x", "Nodes x\n") && Kind::Matrix.fits("x", "0->1 id 1\n"));
        assert!(Kind::Numbers.fits("x", "5 1 4\n") && Kind::Settings.fits("x", "CC_MODE 3\n"));
    }
}
