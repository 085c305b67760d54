//! Files that a scenario names: read once, kept with their text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use files::SizeLimit;

use crate::decode::Located;
use crate::error::{Sources, SpannedError};
use crate::kind::FileKind;

/// A scenario file.
pub const SCENARIO: SizeLimit = SizeLimit { kind: "a scenario", mib: 64 };
/// A list of flows, or a distribution of sizes: twenty million flows.
pub const LIST: SizeLimit = SizeLimit { kind: "a list", mib: 1 << 10 };
/// A file of another simulator.
pub const FOREIGN: SizeLimit = SizeLimit { kind: "another simulator's file", mib: 1 << 10 };

/// A file that a scenario was made from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    /// Its path as opened.
    pub path: PathBuf,
    /// Contents of the file.
    pub content: FileContent,
}

/// Contents of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileContent {
    /// Text in UTF-8.
    Text(Arc<str>),
    /// Bytes that are no such text.
    Bytes(Arc<[u8]>),
}

impl FileContent {
    /// The file's bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// A file that was read, and its number among the sources, which files that are no text lack.
type Numbered = (Option<u32>, Input);

/// The files read so far. Runs of one scenario share them, and each knows which it named itself.
#[derive(Clone, Default, Debug)]
pub(crate) struct Inputs {
    directory: PathBuf,
    files: Arc<Mutex<BTreeMap<String, Numbered>>>,
    sources: Arc<Mutex<Sources>>,
    named: Arc<Mutex<BTreeSet<String>>>,
}

impl Inputs {
    /// Creates an empty set of files, which are found next to `origin`.
    pub(crate) fn new(origin: &str, sources: Sources) -> Self {
        Self {
            directory: Path::new(origin).parent().map(Path::to_path_buf).unwrap_or_default(),
            files: Arc::default(),
            sources: Arc::new(Mutex::new(sources)),
            named: Arc::default(),
        }
    }

    /// The same files, for one run.
    pub(crate) fn of_a_run(&self) -> Self {
        Self { named: Arc::default(), ..self.clone() }
    }

    /// The text of a file and its number among the sources. If the text is not of the kind, errors show nothing of it.
    pub(crate) fn read(&self, name: &Located<String>, kind: FileKind) -> Result<(Option<u32>, Arc<str>), SpannedError> {
        let open = |path: &Path| files::text(path, LIST).map(|text| FileContent::Text(text.into()));
        let (source, input) = self.open(name, Some(kind), open)?;
        match input.content {
            FileContent::Text(text) => Ok((source, text)),
            FileContent::Bytes(bytes) => {
                let reason = files::utf8(bytes.to_vec()).err().unwrap_or_default();
                let message = format!("cannot read `{}`: {reason}", input.path.display());
                Err(SpannedError::new(name.origin, message).label("this file"))
            }
        }
    }

    /// A file and its number among the sources, which bytes have none of: nor has text if no kind of text is expected.
    #[cfg(feature = "import")]
    pub(crate) fn read_foreign(
        &self,
        name: &Located<String>,
        kind: Option<FileKind>,
    ) -> Result<Numbered, SpannedError> {
        self.open(name, kind, |path| {
            let bytes = files::read(path, FOREIGN)?;
            Ok(match std::str::from_utf8(&bytes) {
                Ok(text) => FileContent::Text(text.into()),
                Err(_) => FileContent::Bytes(bytes.into()),
            })
        })
    }

    /// A file that was read before, or is opened now.
    fn open(
        &self,
        name: &Located<String>,
        kind: Option<FileKind>,
        open: impl FnOnce(&Path) -> Result<FileContent, files::Error>,
    ) -> Result<Numbered, SpannedError> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).insert(name.value.clone());
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((source, input)) = files.get_mut(&name.value) {
            let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
            match (kind, &input.content) {
                (Some(kind), FileContent::Text(text)) if source.is_none() => {
                    *source = Some(sources.add_file(input.path.display().to_string(), text, kind));
                }
                (Some(kind), _) => {
                    if let Some(source) = *source {
                        sources.expect(source, kind);
                    }
                }
                (None, _) => {}
            }
            return Ok((*source, input.clone()));
        }
        let content = open(&self.directory.join(&name.value)).map_err(|error| {
            SpannedError::new(name.origin, error.to_string())
                .label("this file")
                .help("a path is relative to the scenario's file")
        })?;
        Ok(self.insert(&mut files, &name.value, content, kind))
    }

    /// Takes a text for that of a file, which need not exist.
    #[cfg(feature = "import")]
    pub(crate) fn give(&self, name: &str, text: &str, kind: FileKind) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        self.insert(&mut files, name, FileContent::Text(text.into()), Some(kind));
    }

    fn insert(
        &self,
        files: &mut BTreeMap<String, Numbered>,
        name: &str,
        content: FileContent,
        kind: Option<FileKind>,
    ) -> Numbered {
        let path = self.directory.join(name);
        let source = match (&content, kind) {
            (FileContent::Text(text), Some(kind)) => {
                let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
                Some(sources.add_file(path.display().to_string(), text, kind))
            }
            _ => None,
        };
        let input = Input { path, content };
        files.insert(name.to_owned(), (source, input.clone()));
        (source, input)
    }

    /// Returns whether a file or folder of that name exists next to the scenario.
    pub(crate) fn is_there(&self, name: &str) -> bool {
        self.directory.join(name).symlink_metadata().is_ok()
    }

    /// Returns the files read so far, by name.
    pub(crate) fn all(&self) -> Vec<Input> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.values().map(|(_, input)| input.clone()).collect()
    }

    /// Returns the files that this run named, by name.
    pub(crate) fn named(&self) -> Vec<Input> {
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        named.iter().filter_map(|name| files.get(name)).map(|(_, input)| input.clone()).collect()
    }

    /// Explains an error at some bytes of a string.
    pub(crate) fn explain_within(
        &self,
        error: SpannedError,
        text: &str,
        bytes: &std::ops::Range<usize>,
    ) -> crate::Error {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).explain_within(error, text, bytes)
    }

    /// Explains an error, whichever text it is in.
    pub(crate) fn explain(&self, error: SpannedError) -> crate::Error {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).explain(error)
    }
}
