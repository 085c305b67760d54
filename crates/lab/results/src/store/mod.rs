//! Runs on disk. A new set is next to the old one until it is complete. Therefore no partially written run looks finished,
//! and no data is lost if the writer is killed. [`ResultsWriter`] has the steps.

mod layout;
mod load;
mod manifest;
mod page;
mod rekey;
mod settle;
mod summaries;
mod writer;

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use experiment::{Outcome, Setup};
use sha2::{Digest, Sha256};

pub use layout::{LEDGER, LEDGER_JOURNAL, LEDGER_MARK, NEXT, is_ledger, results_around};
pub use load::{Set, Unfinished, load, load_set, lock, manifest_of};
pub use manifest::{FileHash, GridManifest, MANIFEST, Manifest, PlannedRun, Rekeyed, RunEntry, SweepPlan};
pub use page::{REPORT_SEAL, may_replace_report};
pub use rekey::{Adoption, Equal, Rename, Unequal, compare};
pub use summaries::{SummaryRow, summary_table};
pub use writer::{Earlier, OtherRun, PlannedDirectory, ReplacePlan, ResultsWriter, Reuse};

use crate::input::{EngineTimes, Program, RunInfo};
use crate::summary::{Summary, summarise};
use crate::tables::{FlowTable, PauseTable, PortTable, RateTable, SwitchTable};
use crate::{Error, parquet};

/// The name of a run's summary.
pub const SUMMARY: &str = "summary.json";
/// The name of a run's table of flows.
pub const FLOWS: &str = "flows.parquet";
/// The name of a run's table of port samples.
pub const PORTS: &str = "port_samples.parquet";
/// The name of a run's table of flow samples.
pub const RATES: &str = "flow_samples.parquet";
/// The name of a run's table of samples of shared buffers, where there are any.
pub const SWITCHES: &str = "switches.parquet";
/// The name of a run's table of pauses of sampled ports, where there are any.
pub const PAUSES: &str = "pauses.parquet";

/// The name of a grid's table of summaries: a row a run.
pub const SUMMARIES: &str = "summary.parquet";

/// The name of a report.
pub const REPORT: &str = "report.html";
/// The folder of a grid's runs.
pub const RUNS: &str = "runs";

/// All results of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunResults {
    /// The manifest, from which the run can be repeated.
    pub manifest: Manifest,
    /// The summary.
    pub summary: Summary,
    /// Its flows.
    pub flows: FlowTable,
    /// Sampled ports.
    pub ports: PortTable,
    /// Sampled flows.
    pub rates: RateTable,
    /// Sampled switches.
    pub switches: SwitchTable,
    /// Pauses of sampled ports.
    pub pauses: PauseTable,
}

impl RunResults {
    /// Collects all results of a run.
    ///
    /// # Errors
    /// When the description does not fit the run.
    pub fn new(
        info: &RunInfo,
        program: &Program,
        setup: &Setup,
        outcome: &Outcome,
        times: EngineTimes,
    ) -> Result<Self, Error> {
        let flows = FlowTable::new(info, setup, outcome)?;
        let rates = RateTable::new(outcome);
        let summary = summarise(info, setup, outcome, &flows, &rates, times);
        let manifest = Manifest::new(info, program, setup.seed);
        let (ports, switches) = (PortTable::new(setup, outcome), SwitchTable::new(setup, outcome));
        let pauses = PauseTable::new(setup, outcome);
        Ok(Self { manifest, summary, flows, ports, rates, switches, pauses })
    }

    /// Writes all files into an empty directory. Errors name them as in `shown`, their final place.
    pub(crate) fn write(&self, directory: &Path, shown: &Path) -> Result<(), Error> {
        if !directory.is_dir() {
            fs::create_dir(directory).map_err(Error::io("create", shown))?;
        }
        let file = |name: &str, write: &mut dyn FnMut(&mut (dyn Write + Send)) -> io::Result<()>| {
            files::create_new(&directory.join(name), write).map_err(Error::io("write", &shown.join(name)))
        };
        let text = |name: &str, text: &str| file(name, &mut |out| out.write_all(text.as_bytes()));
        let mut manifest = self.manifest.clone();
        manifest.files.clear();
        let summary = self.summary.to_json();
        text(SUMMARY, &summary)?;
        manifest
            .files
            .push(manifest::hash_of_summary(summary.as_bytes()).map_err(Error::not_json(&shown.join(SUMMARY)))?);
        let tables = [
            (FLOWS, self.flows.frame()),
            (PORTS, self.ports.frame()),
            (RATES, self.rates.frame_with(&manifest.traces)),
        ];
        // Few runs sample switches or see pauses: the others leave the files that they always left.
        let switches = (!self.switches.rows.is_empty()).then(|| (SWITCHES, self.switches.frame()));
        let pauses = (!self.pauses.rows.is_empty()).then(|| (PAUSES, self.pauses.frame()));
        for (name, frame) in tables.into_iter().chain(switches).chain(pauses) {
            let frame = frame.with_point_columns(&manifest.columns);
            let mut hash = Sha256::new();
            file(name, &mut |out| parquet::write(&frame, &mut Hashed { out, hash: &mut hash }))?;
            manifest.files.push(FileHash { name: name.to_owned(), sha256: files::hexadecimal(&hash.finalize()) });
        }
        // Last, because it has the hashes of the other files.
        text(MANIFEST, &manifest::text_of(&manifest))?;
        files::sync_directory(directory).map_err(Error::io("write", shown))
    }
}

/// A writer that hashes the bytes written through it.
struct Hashed<'a> {
    out: &'a mut (dyn Write + Send),
    hash: &'a mut Sha256,
}

impl Write for Hashed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The maximum length of a folder's path, in bytes: file systems take names of 255, and one in the making is longer
/// than the final one.
const MAX_FOLDER: usize = 200;

/// Returns the folder of a run in the directory of a grid: `runs/` and its ID, with every character but letters, digits
/// and `-_.+,=` as `%` and two hexadecimal digits a byte; a leading dot likewise. A long ID is cut, and a hash added.
pub fn run_folder(run: &str) -> String {
    let mut name = format!("{RUNS}/");
    for (index, byte) in run.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || b"-_+,=".contains(&byte) || (byte == b'.' && index > 0);
        if plain {
            name.push(byte.into());
        } else {
            name.push('%');
            name.push_str(&files::hexadecimal(&[byte]).to_ascii_uppercase());
        }
    }
    if run.is_empty() {
        name.push('%');
    }
    if name.len() > MAX_FOLDER {
        name.truncate(MAX_FOLDER - 20);
        name = format!("{name}...{}", &files::sha256(run.as_bytes())[..16]);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_safe_names() {
        assert_eq!(run_folder("uno,load=0.4"), "runs/uno,load=0.4");
        assert_eq!(run_folder("../a b/é"), "runs/%2E.%2Fa%20b%2F%C3%A9");
        assert_eq!(run_folder(""), "runs/%");
        let [one, other] = ["a=1", "a=2"].map(|end| run_folder(&format!("{}{end}", "key=1,".repeat(60))));
        assert!(one != other && one.len() < MAX_FOLDER && one.starts_with("runs/key=1,"), "{one}");
    }
}
