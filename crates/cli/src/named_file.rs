//! Files that a command line names for Narrows to write: a report, a page of tables, an imported scenario, a capture, and
//! those in a directory that it names: manual pages, laws' objects.
//!
//! One rule for all. A missing or empty file is made. A file of the same kind that Narrows wrote, and that was not
//! edited since, is replaced as a whole. A pipe, a terminal and `/dev/null` get the text. Anything else is refused and
//! stays as it is. A path inside a results directory is refused, too: only the files of Narrows lie there.
//!
//! Text is known again by its last line, a comment with a hash of all above. A capture is known by the program that it
//! names, a trace by its first track, a law's object by the law's name in the kernel.

use std::io::Write;
use std::path::{Path, PathBuf};

use files::{AtomicFile, IntegrityTrailer, SizeLimit};
use results::store::{REPORT_SEAL, results_around};

use crate::exit::{CommandFailure, print_stderr};

/// The kind of file that is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OutputKind {
    /// `narrows report`.
    Report,
    /// The page of `narrows compare --flows`.
    Tables,
    /// A scenario of `narrows import`.
    #[cfg_attr(not(feature = "import"), allow(dead_code))]
    Scenario,
    /// The flows next to it.
    #[cfg_attr(not(feature = "import"), allow(dead_code))]
    Flows,
    /// A trace of `narrows export perfetto`.
    Timeline,
    /// A log of `narrows export qlog`.
    Log,
    /// A capture of the packets that left a port.
    #[cfg(target_os = "linux")]
    Capture,
    /// A reference of `narrows score`.
    Reference,
    /// The values of published tables, of `narrows reproduce --values`.
    Values,
    /// A page of `narrows man`.
    Manual,
    /// A law for the kernel.
    #[cfg(feature = "bpf")]
    Object,
    /// The sources of such laws.
    #[cfg(feature = "bpf")]
    Sources,
}

/// The largest file that is read to determine which program wrote it.
const MAX_REPLACED_SIZE: SizeLimit = SizeLimit { kind: "a file to be replaced", mib: 1 << 10 };
/// Bytes of a capture or a trace that are read to find out its kind.
const HEAD: u64 = 4 << 10;

impl OutputKind {
    /// The kind, with its article.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Report => REPORT_SEAL.kind,
            Self::Tables => "a page that `narrows compare --flows` wrote",
            Self::Scenario => "a scenario that `narrows import` wrote",
            Self::Flows => "a list of flows that `narrows import` wrote",
            Self::Timeline => "a trace that `narrows export perfetto` wrote",
            Self::Log => "a log that `narrows export qlog` wrote",
            #[cfg(target_os = "linux")]
            Self::Capture => "a capture that `narrows emulate` wrote",
            Self::Reference => "a reference that `narrows score` wrote",
            Self::Values => "a file of values that `narrows reproduce --values` wrote",
            Self::Manual => "a page that `narrows man` wrote",
            #[cfg(feature = "bpf")]
            Self::Object => "a law that `narrows kernel export` wrote",
            #[cfg(feature = "bpf")]
            Self::Sources => "a note that `narrows kernel export` wrote",
        }
    }

    /// The last line that identifies it; none for kinds without lines.
    const fn trailer(self) -> Option<IntegrityTrailer> {
        let (before, after) = match self {
            Self::Report => return Some(REPORT_SEAL),
            Self::Tables => ("<!-- narrows compare, SHA-256 of all above: ", " -->\n"),
            Self::Scenario => ("# narrows import, SHA-256 of all above: ", "\n"),
            Self::Flows => ("# narrows import of flows, SHA-256 of all above: ", "\n"),
            Self::Timeline | Self::Log => return None,
            #[cfg(target_os = "linux")]
            Self::Capture => return None,
            Self::Reference => ("# narrows score, SHA-256 of all above: ", "\n"),
            Self::Values => ("# narrows reproduce, SHA-256 of all above: ", "\n"),
            Self::Manual => (".\\\" narrows man, SHA-256 of all above: ", "\n"),
            #[cfg(feature = "bpf")]
            Self::Object => return None,
            #[cfg(feature = "bpf")]
            Self::Sources => ("# narrows kernel export, SHA-256 of all above: ", "\n"),
        };
        Some(IntegrityTrailer { kind: self.description(), before, after })
    }

    /// Returns the text with the last line that identifies it.
    pub(crate) fn sealed(self, text: String) -> String {
        match self.trailer() {
            Some(trailer) => trailer.seal(text),
            None => text,
        }
    }

    /// Returns the reason why an existing file may not be replaced; none if it may: it is as Narrows wrote it.
    pub(crate) fn refusal(self, path: &Path) -> Result<Option<String>, CommandFailure> {
        match self.trailer() {
            Some(trailer) => Ok(trailer.refusal(path)?),
            None => Ok((!self.is_of_kind(path)?).then(|| format!("it is not {}", self.description()))),
        }
    }

    /// Returns whether an existing file without lines is empty or of the kind.
    fn is_of_kind(self, path: &Path) -> Result<bool, CommandFailure> {
        let detect: Option<fn(&[u8]) -> bool> = match self {
            Self::Timeline => Some(results::timeline::is_timeline),
            Self::Log => Some(crate::flow_log::is_flow_log),
            #[cfg(target_os = "linux")]
            Self::Capture => Some(emulator::is_capture),
            _ => None,
        };
        if let Some(is_ours) = detect {
            let head = files::head(path, HEAD)?;
            return Ok(head.is_empty() || is_ours(&head));
        }
        #[cfg(feature = "bpf")]
        if self == Self::Object {
            let bytes = files::read(path, MAX_REPLACED_SIZE)?;
            return Ok(bytes.is_empty() || kernel::is_object(&bytes));
        }
        Ok(files::read(path, MAX_REPLACED_SIZE)?.is_empty())
    }
}

/// A file that may be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NamedFile {
    path: PathBuf,
    kind: OutputKind,
    /// The option that named it.
    option: &'static str,
}

impl NamedFile {
    /// Checks that a file may be written, and changes nothing. `option` is the option that named the file.
    ///
    /// # Errors
    /// If the file may not be replaced, is in a results directory, or cannot be written.
    pub(crate) fn new(path: &Path, kind: OutputKind, option: &'static str) -> Result<Self, CommandFailure> {
        if path == Path::new("-") {
            return Err(CommandFailure::Input(format!(
                "error: {option} - names no file\nhelp: give it the name of a file"
            )));
        }
        let file = Self { path: path.to_path_buf(), kind, option };
        file.check()?;
        files::writable(path)?;
        print_leftovers(path);
        Ok(file)
    }

    /// Writes the text with its last line, if the file may still be written. Returns the path.
    pub(crate) fn write(self, text: String) -> Result<PathBuf, CommandFailure> {
        let text = self.kind.sealed(text);
        self.put(text.as_bytes())
    }

    /// Writes the whole file, if it may still be written. Returns the path.
    pub(crate) fn put(self, bytes: &[u8]) -> Result<PathBuf, CommandFailure> {
        self.check()?;
        let write = || {
            let mut draft = AtomicFile::new(&self.path)?;
            draft.write_all(bytes)?;
            draft.put()
        };
        write().map_err(|error| CommandFailure::file("write", &self.path, &error))?;
        Ok(self.path)
    }

    fn check(&self) -> Result<(), CommandFailure> {
        let Self { path, kind, option } = self;
        outside_of_results(path, option)?;
        // A pipe or a terminal has no content to lose. A path that is no output is refused when it is written.
        let refusal = if path.metadata().is_ok_and(|metadata| metadata.is_file()) { kind.refusal(path)? } else { None };
        match refusal {
            None => Ok(()),
            Some(reason) => Err(CommandFailure::Input(format!(
                "error: will not replace `{}`: {reason}\nhelp: give {option} another name, or remove that file first",
                path.display()
            ))),
        }
    }
}

/// Writes whole files into a directory that a command line names. It is made if need be; no file is written unless all may be.
pub(crate) fn write_into(directory: &Path, files: &[(String, OutputKind, Vec<u8>)]) -> Result<(), CommandFailure> {
    const OPTION: &str = "DIRECTORY";
    outside_of_results(directory, OPTION)?;
    std::fs::create_dir_all(directory).map_err(|error| CommandFailure::file("make", directory, &error))?;
    let named = files.iter().map(|(name, kind, _)| NamedFile::new(&directory.join(name), *kind, OPTION));
    let named = named.collect::<Result<Vec<_>, _>>()?;
    for (file, (_, _, bytes)) in named.into_iter().zip(files) {
        file.put(bytes)?;
    }
    Ok(())
}

/// Prints the half-written files of this name that stopped commands left next to it. A live process's are not among
/// them.
pub(crate) fn print_leftovers(path: &Path) {
    for left in files::leftovers(path) {
        print_stderr(&files::leftover_message(&left));
    }
}

/// Refuses a path in a results directory.
pub(crate) fn outside_of_results(path: &Path, option: &str) -> Result<(), CommandFailure> {
    match results_around(path) {
        Some(directory) => Err(inside(path, &directory, option)),
        None => Ok(()),
    }
}

/// Refuses a path in the directory where this run's results will be.
pub(crate) fn outside_of(path: &Path, directory: &Path, option: &str) -> Result<(), CommandFailure> {
    if resolved(path).starts_with(resolved(directory)) { Err(inside(path, directory, option)) } else { Ok(()) }
}

fn inside(path: &Path, directory: &Path, option: &str) -> CommandFailure {
    CommandFailure::Input(format!(
        "error: will not write `{}`: it lies in the results directory `{}`, which has the files of Narrows and no \
         others\nhelp: give {option} a name outside of it",
        path.display(),
        directory.display()
    ))
}

/// A path without links, as far as it exists.
#[cfg(target_os = "linux")]
pub(crate) fn resolved(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| match path.file_name() {
        Some(name) => resolved(files::parent_of(path)).join(name),
        None => path.to_path_buf(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn written_files_are_recognized_until_edited() {
        let folder = std::env::temp_dir().join(format!("narrows-named-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        let refusal = |kind: OutputKind, bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            kind.refusal(&path).unwrap()
        };
        for kind in [
            OutputKind::Report,
            OutputKind::Tables,
            OutputKind::Scenario,
            OutputKind::Flows,
            OutputKind::Reference,
            OutputKind::Manual,
        ] {
            let text = kind.sealed("one\ntwo".to_owned());
            assert!(text.starts_with("one\ntwo\n") && text.lines().count() == 3);
            assert_eq!(refusal(kind, text.as_bytes()), None);
            assert_eq!(refusal(kind, b""), None);
            for edited in [text.replace("two", "too"), format!("\n{text}"), text.replacen('\n', "\r\n", 1)] {
                assert_eq!(refusal(kind, edited.as_bytes()).unwrap(), "it was edited after Narrows wrote it");
            }
            // The last line may be cut, have other ends, or not be the last any more.
            let ends = [text[..text.len() - 2].to_owned(), text.replace('\n', "\r\n"), format!("{text}three\n")];
            for edited in ends {
                assert_eq!(refusal(kind, edited.as_bytes()).unwrap(), "it was edited after Narrows wrote it");
            }
            for other in [&b"\n"[..], b"one", b"\xff\n\n", b"one\ntwo\n"] {
                let refused = refusal(kind, other).unwrap();
                assert!(refused.starts_with("it is not a ") && refused.ends_with("or its last line was removed since"));
            }
        }
        let other = OutputKind::Scenario.sealed("x\n".to_owned());
        assert!(refusal(OutputKind::Flows, other.as_bytes()).unwrap().starts_with("it is not a list of flows"));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn existing_parts_of_a_path_are_resolved() {
        let current_dir = fs::canonicalize(".").unwrap();
        assert_eq!(resolved(Path::new("src")), current_dir.join("src"));
        assert_eq!(resolved(Path::new("src/../none/x")), current_dir.join("none/x"));
        assert_eq!(resolved(Path::new("none")), current_dir.join("none"));
        assert_eq!(resolved(Path::new("/none/x/y")), Path::new("/none/x/y"));
    }
}
