//! Files that a scenario names: read once, kept with their text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::decode::At;
use crate::error::{Fault, Sources};

/// A file that a scenario was made from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    /// Its path as opened.
    pub path: PathBuf,
    /// Its text.
    pub text: Arc<str>,
}

/// The files read so far. Runs of one scenario share them.
#[derive(Clone, Default, Debug)]
pub(crate) struct Inputs {
    directory: PathBuf,
    files: Arc<Mutex<BTreeMap<String, (u32, Input)>>>,
    sources: Arc<Mutex<Sources>>,
}

impl Inputs {
    /// Files are found beside `origin`.
    pub(crate) fn new(origin: &str, sources: Sources) -> Self {
        Self {
            directory: Path::new(origin).parent().map(Path::to_path_buf).unwrap_or_default(),
            files: Arc::default(),
            sources: Arc::new(Mutex::new(sources)),
        }
    }

    /// The text of a file and its number among the sources.
    pub(crate) fn read(&self, name: &At<String>) -> Result<(u32, Arc<str>), Fault> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((source, input)) = files.get(&name.value) {
            return Ok((*source, Arc::clone(&input.text)));
        }
        let path = self.directory.join(&name.value);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            Fault::new(name.origin, format!("cannot read `{}`: {error}", path.display()))
                .label("this file")
                .help("a path is relative to the scenario's file")
        })?;
        let shown = path.display().to_string();
        let source = self.sources.lock().unwrap_or_else(PoisonError::into_inner).add(shown, &text);
        let text: Arc<str> = Arc::from(text);
        files.insert(name.value.clone(), (source, Input { path, text: Arc::clone(&text) }));
        Ok((source, text))
    }

    /// What was read so far, by name.
    pub(crate) fn all(&self) -> Vec<Input> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.values().map(|(_, input)| input.clone()).collect()
    }

    /// Explains a fault, whichever text it is in.
    pub(crate) fn explain(&self, fault: Fault) -> crate::Error {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).explain(fault)
    }
}
