//! Files that a scenario names: read once, kept with their text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use files::Limit;

use crate::decode::At;
use crate::error::{Fault, Sources};
use crate::kind::Kind;

/// A scenario file.
pub const SCENARIO: Limit = Limit { what: "a scenario", mib: 64 };
/// A list of flows, or a distribution of sizes: twenty million flows.
pub const LIST: Limit = Limit { what: "a list", mib: 1 << 10 };
/// A file of another simulator.
pub const FOREIGN: Limit = Limit { what: "another simulator's file", mib: 1 << 10 };

/// A file that a scenario was made from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    /// Its path as opened.
    pub path: PathBuf,
    /// Its text.
    pub text: Arc<str>,
}

/// The files read so far. Runs of one scenario share them, and each knows which it named itself.
#[derive(Clone, Default, Debug)]
pub(crate) struct Inputs {
    directory: PathBuf,
    files: Arc<Mutex<BTreeMap<String, (u32, Input)>>>,
    sources: Arc<Mutex<Sources>>,
    named: Arc<Mutex<BTreeSet<String>>>,
}

impl Inputs {
    /// Files are found beside `origin`.
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
    pub(crate) fn read(&self, name: &At<String>, kind: Kind) -> Result<(u32, Arc<str>), Fault> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).insert(name.value.clone());
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let sources = || self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((source, input)) = files.get(&name.value) {
            sources().expect(*source, kind);
            return Ok((*source, Arc::clone(&input.text)));
        }
        let path = self.directory.join(&name.value);
        let text = files::text(&path, LIST).map_err(|error| {
            Fault::new(name.origin, error.to_string())
                .label("this file")
                .help("a path is relative to the scenario's file")
        })?;
        Ok(self.insert(&mut files, &name.value, &text, kind))
    }

    /// Takes a text for that of a file, which need not exist.
    #[cfg(feature = "import")]
    pub(crate) fn give(&self, name: &str, text: &str, kind: Kind) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        self.insert(&mut files, name, text, kind);
    }

    fn insert(
        &self,
        files: &mut BTreeMap<String, (u32, Input)>,
        name: &str,
        text: &str,
        kind: Kind,
    ) -> (u32, Arc<str>) {
        let path = self.directory.join(name);
        let shown = path.display().to_string();
        let source = self.sources.lock().unwrap_or_else(PoisonError::into_inner).add_file(shown, text, kind);
        let text: Arc<str> = Arc::from(text);
        files.insert(name.to_owned(), (source, Input { path, text: Arc::clone(&text) }));
        (source, text)
    }

    /// Whether something of that name exists beside the scenario.
    pub(crate) fn is_there(&self, name: &str) -> bool {
        self.directory.join(name).symlink_metadata().is_ok()
    }

    /// What was read so far, by name.
    pub(crate) fn all(&self) -> Vec<Input> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.values().map(|(_, input)| input.clone()).collect()
    }

    /// What this run named, by name.
    pub(crate) fn named(&self) -> Vec<Input> {
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        named.iter().filter_map(|name| files.get(name)).map(|(_, input)| input.clone()).collect()
    }

    /// Explains a fault, whichever text it is in.
    pub(crate) fn explain(&self, fault: Fault) -> crate::Error {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).explain(fault)
    }
}
