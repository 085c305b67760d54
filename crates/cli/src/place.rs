//! Where a session's results go, and what of earlier ones stays there.

use std::path::{Path, PathBuf};

use results::store::{self, GridManifest, MANIFEST, RUNS, SUMMARY, Staging, run_folder, write_run};
use results::{RunInfo, RunResults};

use crate::exit::Failure;
use crate::page::{self, Page};
use crate::session::{grid_json, program, replace};

/// The directory that results go to. A lone run is written at its end as a whole; of several, each is written when
/// it is finished, and the grid's own files last.
pub(crate) struct Place {
    out: PathBuf,
    alone: bool,
}

impl Place {
    /// Finds out now, not after the runs, whether results can be written. Of what is there, only these runs stay; each is
    /// handed on, with its number, before the next one is asked for.
    pub(crate) fn new(
        out: &Path,
        alone: bool,
        kept: impl IntoIterator<Item = (usize, RunResults)>,
        mut hand_on: impl FnMut(usize, RunResults),
    ) -> Result<Self, Failure> {
        let mut staging = Staging::new(out)?;
        if alone {
            kept.into_iter().for_each(|(number, run)| hand_on(number, run));
            return Ok(Self { out: out.to_path_buf(), alone });
        }
        // Earlier results go as a whole: what is kept takes their place in one step.
        let out = staging.target().to_path_buf();
        for (number, run) in kept {
            run.write(&mut staging, &run_folder(&run.manifest.run))?;
            hand_on(number, run);
        }
        staging.commit()?;
        let runs = out.join(RUNS);
        std::fs::create_dir_all(&runs).map_err(|source| results::Error::Io { action: "create", path: runs, source })?;
        Ok(Self { out, alone })
    }

    /// A run that an earlier session left in a directory, if it is the very run that would be done now: of the same
    /// program, settings and inputs. What cannot be read is not there.
    pub(crate) fn earlier(out: &Path, alone: bool, info: &RunInfo, seed: u64) -> Option<RunResults> {
        let folder = if alone { out.to_path_buf() } else { out.join(run_folder(&info.run)) };
        let same = store::manifest_of(&folder).is_ok_and(|manifest| manifest.is_of(info, &program(), seed));
        if same { store::load(&folder).ok() } else { None }
    }

    /// A run is finished.
    pub(crate) fn keep(&self, run: &RunResults) -> Result<(), Failure> {
        if self.alone {
            return Ok(());
        }
        Ok(write_run(&self.out.join(run_folder(&run.manifest.run)), run)?)
    }

    /// Not all runs were finished: those that were stay, and nothing else. The failure says what is left.
    pub(crate) fn abandon(&self, failure: Failure, finished: usize, all: usize) -> Failure {
        let runs = self.out.join(RUNS);
        if !self.alone && finished == 0 {
            // These remove nothing but empty directories.
            let _ = std::fs::remove_dir(&runs).and_then(|()| std::fs::remove_dir(&self.out));
        }
        match failure {
            Failure::Interrupted(_) if finished == 0 => Failure::Interrupted("no run was finished".to_owned()),
            Failure::Interrupted(_) => {
                Failure::Interrupted(format!("{finished} of {all} runs were finished and are in `{}`", runs.display()))
            }
            failure => failure,
        }
    }

    /// All runs are finished.
    pub(crate) fn finish(
        &self,
        scenario: &str,
        runs: &[RunResults],
        page: &Page,
        shown: Vec<report::Run>,
    ) -> Result<(), Failure> {
        let html = page::render(page, shown);
        if let (true, [run]) = (self.alone, runs) {
            let mut staging = Staging::new(&self.out)?;
            run.write(&mut staging, "")?;
            staging.text(page::REPORT, &html)?;
            return Ok(staging.commit()?);
        }
        let manifest = GridManifest::new(&program(), scenario, runs.iter().map(|run| run.manifest.run.as_str()));
        replace(&self.out.join(page::REPORT), &html)?;
        replace(&self.out.join(SUMMARY), &grid_json(runs))?;
        replace(&self.out.join(MANIFEST), &manifest.to_json())
    }
}
