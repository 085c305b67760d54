//! Writer of results: each run is stored as it finishes, and the staged set replaces the old one when it is complete.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use files::{Lock, parent_of};

use super::layout::{self, BUILDING, COMPLETE, JSON, NEXT, OLD, PLAN, entries, refuse_foreign};
use super::load::{PARQUET, differing, flows_of, load_known, manifest_of, plan_of};
use super::manifest::{self, GridManifest, MANIFEST, Manifest, RunEntry, SweepPlan};
use super::page::{REPORT_SEAL, may_replace_report};
use super::settle::settle;
use super::summaries::{SummaryRow, summaries};
use super::{FileHash, REPORT, RUNS, RunResults, SUMMARIES, SUMMARY, run_folder};
use crate::input::{Program, SweepColumns};
use crate::tables::{PauseTable, PortTable, RateTable, SwitchTable};
use crate::{Difference, Differing, Error, json, parquet};

/// The writer of a directory of results: the only one as long as it lives.
#[derive(Debug)]
pub struct ResultsWriter {
    out: PathBuf,
    /// Taken until the writer is dropped.
    lock: Option<Lock>,
    /// The first of the directories that were made for it.
    created_root: Option<PathBuf>,
    plan: SweepPlan,
}

/// Sets of results: their finished runs become part of a new set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reuse {
    /// The staged set only.
    NextSet,
    /// In addition the set that it will replace, and other directories of results.
    AllSets,
}

/// The state of a run that an earlier command left.
#[derive(Debug)]
pub enum Earlier {
    /// No such run.
    Nothing,
    /// The same run, by its key. It is part of the new set.
    Kept(Box<RunResults>),
    /// The same run, but one of its files is gone, damaged or edited.
    Damaged(Error),
}

/// A directory locked for the runs of a plan. Its finished runs are unchanged.
#[derive(Debug)]
pub struct PlannedDirectory {
    writer: ResultsWriter,
    /// Plan of the unfinished set in the directory.
    earlier: Option<SweepPlan>,
}

/// Finished runs in a directory that a new set does not keep. They go when the new set is whole, or before.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ReplacePlan {
    /// Names of runs that the plan lacks, of the same scenario or another one.
    pub left_out: Vec<String>,
    /// Runs that the plan has with other settings or inputs, in the order of their names.
    pub other: Vec<OtherRun>,
    /// Names of runs of the plan that another version of the program did, and that are not done again by now.
    pub outdated: Vec<String>,
}

/// A finished run that differs from the plan's run of its name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OtherRun {
    /// Its name.
    pub run: String,
    /// The first differences: `stop: 5ms -> 6ms`.
    pub difference: String,
}

impl PlannedDirectory {
    /// The lock that keeps others out.
    pub fn lock(&self) -> Option<&Lock> {
        self.writer.lock()
    }

    /// Returns the finished runs that the new set does not keep. Runs that the directory's unfinished set already gave up
    /// for the same plan are left out, because its command had permission. `difference` compares the plan's run of this
    /// number with a finished run that has the same name and another key, and returns nothing if only the program's version
    /// differs.
    pub fn replace_plan(&self, difference: impl Fn(usize, &Manifest) -> Option<String>) -> ReplacePlan {
        let Self { writer, earlier } = self;
        let key_in = |plan: &SweepPlan| -> BTreeMap<String, (usize, String)> {
            let runs = plan.runs.iter().enumerate();
            runs.map(|(number, entry)| (entry.run.clone(), (number, entry.key.clone()))).collect()
        };
        let planned = key_in(&writer.plan);
        let before = earlier.as_ref().filter(|plan| plan.scenario == writer.plan.scenario).map(key_in);
        let inside = |directory: &Path| -> Vec<PathBuf> {
            entries(directory).map_or_else(|_| Vec::new(), |found| found.into_iter().map(|entry| entry.path).collect())
        };
        let folders = [vec![writer.out.clone()], inside(&writer.out.join(RUNS)), inside(&writer.next().join(RUNS))];
        let mut replace_plan = ReplacePlan::default();
        for manifest in folders.iter().flatten().filter_map(|folder| manifest_of(folder).ok()) {
            let is_of_this = manifest.scenario == writer.plan.scenario;
            let entry = planned.get(&manifest.run).filter(|_| is_of_this);
            if entry.is_some_and(|(_, key)| *key == manifest.key) {
                continue;
            }
            let key = entry.map(|(_, key)| key);
            let is_given_up = before.as_ref().is_some_and(|before| {
                let entry = before.get(&manifest.run).filter(|_| is_of_this);
                entry.map(|(_, key)| key) == key
            });
            match entry {
                None if !is_given_up => replace_plan.left_out.push(manifest.run),
                None => {}
                Some(&(number, _)) => match difference(number, &manifest) {
                    Some(difference) if !is_given_up => {
                        replace_plan.other.push(OtherRun { run: manifest.run, difference });
                    }
                    None if !writer.seems_finished(number, Reuse::AllSets, &[]) => {
                        replace_plan.outdated.push(manifest.run);
                    }
                    _ => {}
                },
            }
        }
        for names in [&mut replace_plan.left_out, &mut replace_plan.outdated] {
            names.sort_unstable();
            names.dedup();
        }
        replace_plan.other.sort_unstable();
        replace_plan.other.dedup_by(|one, other| one.run == other.run);
        replace_plan
    }

    /// Begins the new set. From now on the directory's unfinished set is that of the plan.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn begin(self) -> Result<ResultsWriter, Error> {
        let writer = self.writer;
        writer.begin()?;
        // A finished run is on the disk only if its directories are.
        let created = writer
            .out
            .ancestors()
            .take_while(|path| writer.created_root.as_ref().is_some_and(|root| path.starts_with(root)));
        for path in created.map(parent_of).chain([writer.out.as_path(), &writer.next()]) {
            files::sync_directory(path).map_err(Error::io("write", path))?;
        }
        Ok(writer)
    }
}

impl ResultsWriter {
    /// Takes a directory for the runs of a plan. It may be missing or empty, or hold results. Parents are made as needed,
    /// and a link to a directory is followed. Nothing else changes until [`PlannedDirectory::begin`], and earlier results stay until
    /// [`ResultsWriter::finish`]. `command` is the command line that error messages of other processes show.
    ///
    /// # Errors
    /// If another process holds it, if it is inside other results, if it has files that Narrows did not write there, or if
    /// it cannot be written.
    pub fn take(target: &Path, plan: SweepPlan, command: &str) -> Result<PlannedDirectory, Error> {
        let out = directory(target)?;
        if let Some(around) = layout::results_above(&out) {
            return Err(Error::Inside { path: out, around });
        }
        let created_root = out.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).last();
        let created_root = created_root.map(Path::to_path_buf);
        let lock = take(&out, command)?;
        let writer = Self { out, lock: Some(lock), created_root, plan };
        settle(&writer.out)?;
        refuse_foreign(&writer.out)?;
        writer.tidy().map_err(Error::io("write", &writer.out))?;
        let earlier = plan_of(&writer.out).ok().flatten();
        Ok(PlannedDirectory { writer, earlier })
    }

    /// Takes a directory for the runs of a plan and begins the set, whatever finished runs it replaces.
    ///
    /// # Errors
    /// As [`ResultsWriter::take`] and [`PlannedDirectory::begin`].
    pub fn new(target: &Path, plan: SweepPlan, command: &str) -> Result<Self, Error> {
        Self::take(target, plan, command)?.begin()
    }

    /// The lock that keeps others out.
    pub fn lock(&self) -> Option<&Lock> {
        self.lock.as_ref()
    }

    /// Makes the place of the set in the making.
    fn begin(&self) -> Result<(), Error> {
        fs::create_dir_all(self.next().join(RUNS)).map_err(Error::io("create", &self.out))?;
        // The plan lists the runs that the set will have, for readers before it is complete, and marks `.next` as ours.
        Ok(files::replace(&self.next().join(PLAN), &json::text(&self.plan))?)
    }

    /// Makes that place again if it was removed. Runs that finish from now on are kept there.
    fn begin_again(&self) -> Result<(), Error> {
        if self.next().join(PLAN).exists() { Ok(()) } else { self.begin() }
    }

    /// Files of the set that will be replaced that were edited or are gone, without those of its runs.
    pub fn differing(&self) -> Vec<Differing> {
        differing(&self.out)
    }

    /// The key of the plan's run of this number.
    pub(super) fn planned_key(&self, number: usize) -> &String {
        &self.plan.runs[number].key
    }

    /// The folder of the plan's run of this number inside the set.
    pub(super) fn planned_folder(&self, number: usize) -> String {
        self.plan.runs[number].folder()
    }

    /// Returns whether the directory has a set, which the new one will replace.
    pub fn has_results(&self) -> bool {
        self.out.join(MANIFEST).exists()
    }

    /// Refuses to replace an edited report: of the complete set, or of the unfinished one.
    ///
    /// # Errors
    /// When the report was edited.
    pub fn report_may_go(&self) -> Result<(), Error> {
        [self.out.join(REPORT), self.next().join(REPORT)].iter().try_for_each(|report| may_replace_report(report))
    }

    /// Half-written files that stopped commands left in the directory. They are harmless and stay.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        layout::leftovers(&self.out)
    }

    /// The plan's run of this number, if an earlier command finished it: in the set in the making or, with
    /// [`Reuse::AllSets`], in the set that it will replace, or in one of the other directories of results in `from`, whole or not. The run gets
    /// `resolved`, the scenario's settings of now, because its prose may have changed, and its tables `columns`, because the
    /// sweep may have other keys or schemes.
    ///
    /// # Errors
    /// When the run cannot be made part of the new set.
    pub fn earlier(
        &self,
        number: usize,
        reuse: Reuse,
        from: &[PathBuf],
        resolved: &serde_json::Value,
        columns: &SweepColumns,
    ) -> Result<Earlier, Error> {
        let entry = &self.plan.runs[number];
        let folder = entry.folder();
        let staged = self.next().join(&folder);
        let mut damage = None;
        for candidate in self.candidates(number, reuse, from) {
            let found = match manifest_of(&candidate) {
                Ok(manifest) if manifest.key == entry.key => load_known(&candidate),
                Err(error @ Error::Differs(_)) => Err(error),
                Ok(_) | Err(_) => continue,
            };
            // A run of this version has all hashes.
            let found = match found {
                Ok((_, false)) => Err(Error::differs(&candidate.join(MANIFEST), Difference::Unchecked)),
                found => found.map(|(run, _)| run),
            };
            let mut run = match found {
                Ok(run) => run,
                Err(error) => {
                    damage = Some(error);
                    continue;
                }
            };
            let is_updated = run.manifest.update_description(resolved);
            if run.manifest.share(columns) {
                self.keep(&run)?;
            } else if !self.plan.is_alone() && (candidate != staged || is_updated) {
                self.store_run(&folder, |partial| {
                    link_run(&candidate, partial)?;
                    let path = partial.join(MANIFEST);
                    let text = manifest::text_of(&run.manifest);
                    let written = files::create_new(&path, |out| out.write_all(text.as_bytes()));
                    written.and_then(|()| files::sync_directory(partial)).map_err(Error::io("write", &path))
                })?;
            }
            return Ok(Earlier::Kept(Box::new(run)));
        }
        Ok(damage.map_or(Earlier::Nothing, Earlier::Damaged))
    }

    /// Returns whether [`ResultsWriter::earlier`] would find the plan's run of this number, by the manifests alone. No other
    /// file is read.
    pub fn seems_finished(&self, number: usize, reuse: Reuse, from: &[PathBuf]) -> bool {
        let key = &self.plan.runs[number].key;
        self.candidates(number, reuse, from)
            .iter()
            .any(|candidate| manifest_of(candidate).is_ok_and(|it| it.key == *key))
    }

    /// Returns the possible places of the plan's run of this number: first in the staged set, then in the other sets.
    fn candidates(&self, number: usize, reuse: Reuse, from: &[PathBuf]) -> Vec<PathBuf> {
        let folder = self.plan.runs[number].folder();
        let mut candidates = vec![self.next().join(&folder)];
        if reuse == Reuse::AllSets {
            candidates.extend([self.out.join(&folder), self.out.clone()]);
            candidates.extend(from.iter().flat_map(|other| places_in(other, &folder)));
        }
        candidates
    }

    /// Returns the directories of results that have the plan's run of this number by its name, but with other settings,
    /// other inputs or another version of the program.
    pub fn differing_in(&self, number: usize, from: &[PathBuf]) -> Vec<PathBuf> {
        let entry = &self.plan.runs[number];
        let folder = entry.folder();
        let is_other = |candidate: &PathBuf| {
            manifest_of(candidate).is_ok_and(|manifest| manifest.run == entry.run && manifest.key != entry.key)
        };
        from.iter().filter(|other| places_in(other, &folder).iter().any(is_other)).cloned().collect()
    }

    /// Stores a finished run. One of several is on the disk when this returns. A lone run is written by
    /// [`ResultsWriter::finish`].
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, run: &RunResults) -> Result<(), Error> {
        if self.plan.is_alone() {
            return Ok(());
        }
        let folder = run_folder(&run.manifest.run);
        let shown = self.out.join(&folder);
        self.store_run(&folder, |partial| run.write(partial, &shown))
    }

    /// A finished run of several, with its flows as they are on the disk and without its series.
    ///
    /// # Errors
    /// When its flows are gone, damaged or edited.
    pub fn with_flows(&self, run: &RunResults) -> Result<RunResults, Error> {
        let folder = self.next().join(run_folder(&run.manifest.run));
        if !folder.exists() {
            return Err(Error::differs(&folder, Difference::Missing));
        }
        Ok(RunResults {
            manifest: run.manifest.clone(),
            summary: run.summary.clone(),
            flows: flows_of(&folder)?,
            ports: PortTable::default(),
            rates: RateTable::default(),
            switches: SwitchTable::default(),
            pauses: PauseTable::default(),
        })
    }

    /// All runs are finished, and the set takes the old one's place. `summary` is the grid's; a lone run has its own.
    ///
    /// # Errors
    /// When the set cannot be written, or files were put into the directory or its report was edited meanwhile.
    /// Finished runs are kept then. Either the old results are in their place, or the new ones are on their way in and
    /// the next process finishes that. When only the report cannot be written: the new set is in place without it.
    pub fn finish(&self, program: &Program, runs: &[RunResults], summary: &str, html: String) -> Result<(), Error> {
        self.check()?;
        self.report_may_go()?;
        refuse_foreign(&self.out)?;
        self.begin_again()?;
        let built = self.build(program, runs, summary, &REPORT_SEAL.seal(html));
        self.check()?;
        if !self.next().join(COMPLETE).is_dir() {
            let _ = self.tidy();
            return built;
        }
        settle(&self.out)?;
        self.check()?;
        self.forget().map_err(Error::io("write", &self.out))?;
        built
    }

    /// Puts the new set together next to the old one. It is complete without its report, too, which can be made from
    /// it.
    fn build(&self, program: &Program, runs: &[RunResults], summary: &str, html: &str) -> Result<(), Error> {
        let building = self.next().join(BUILDING);
        let text = |name: &str, text: &str| {
            let written = files::create_new(&building.join(name), |out| out.write_all(text.as_bytes()));
            written.map_err(Error::io("write", &self.out.join(name)))
        };
        fs::create_dir(&building).map_err(Error::io("create", &building))?;
        if let (true, [run]) = (self.plan.is_alone(), runs) {
            run.write(&building, &self.out)?;
        } else {
            fs::create_dir(building.join(RUNS)).map_err(Error::io("create", &building))?;
            let mut entries = Vec::with_capacity(runs.len());
            for entry in &self.plan.runs {
                let folder = entry.folder();
                let (from, to) = (self.next().join(&folder), building.join(&folder));
                fs::rename(&from, &to).map_err(|error| match error.kind() {
                    // The run was removed by another process or a user. The other runs are kept.
                    io::ErrorKind::NotFound => Error::differs(&from, Difference::Missing),
                    _ => Error::io("move", &from)(error),
                })?;
                let manifest = files::read(&to.join(MANIFEST), JSON)?;
                entries.push(RunEntry { run: entry.run.clone(), folder, sha256: files::sha256(&manifest) });
            }
            text(SUMMARY, summary)?;
            let summary = manifest::hash_of_summary(summary.as_bytes());
            let summary = summary.map_err(Error::not_json(&self.out.join(SUMMARY)))?;
            let rows: Vec<SummaryRow<'_>> = runs.iter().map(SummaryRow::from).collect();
            let table = building.join(SUMMARIES);
            let shown = self.out.join(SUMMARIES);
            files::create_new(&table, |out| parquet::write(&summaries(&rows), out))
                .map_err(Error::io("write", &shown))?;
            let table = FileHash { name: SUMMARIES.to_owned(), sha256: files::sha256(&files::read(&table, PARQUET)?) };
            text(MANIFEST, &manifest::text_of(&GridManifest::new(program, &self.plan, entries, vec![summary, table])))?;
        }
        let reported = text(REPORT, html).inspect_err(|_| {
            let _ = fs::remove_file(building.join(REPORT));
        });
        let ready = || {
            if building.join(RUNS).is_dir() {
                files::sync_directory(&building.join(RUNS))?;
            }
            files::sync_directory(&building)?;
            fs::rename(&building, self.next().join(COMPLETE))?;
            files::sync_directory(&self.next())
        };
        ready().map_err(Error::io("put the results in place in", &self.out))?;
        reported
    }

    fn next(&self) -> PathBuf {
        self.out.join(NEXT)
    }

    /// Checks that the directory at the path is still the one that was taken, before the next write.
    fn check(&self) -> Result<(), Error> {
        Ok(self.lock.as_ref().map_or(Ok(()), Lock::check)?)
    }

    /// Removes the runs that an unfinished set left and that the new set does not have.
    fn forget(&self) -> io::Result<()> {
        let next = self.next();
        // Out of the way first: a run that is removed half-way must not look finished.
        if next.join(RUNS).is_dir() {
            fs::rename(next.join(RUNS), next.join(OLD))?;
        }
        layout::remove(&next)
    }

    /// Stores a finished run. It replaces one with the same name and other settings.
    pub(super) fn store_run(&self, folder: &str, write: impl FnOnce(&Path) -> Result<(), Error>) -> Result<(), Error> {
        self.check()?;
        self.begin_again()?;
        let target = self.next().join(folder);
        let runs = parent_of(&target);
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let partial = runs.join(layout::partial_run(&name));
        // If the directory was moved meanwhile, that caused the failure.
        let cause = |error: Error| self.check().err().unwrap_or(error);
        let failed = |error: io::Error| Error::io("write", &self.out.join(folder))(error);
        fs::create_dir_all(runs).and_then(|()| fs::create_dir(&partial)).map_err(|error| cause(failed(error)))?;
        let done = write(&partial).and_then(|()| {
            self.check()?;
            let replaced = runs.join(layout::partial_run(&format!("{name}-old")));
            let exchange = || {
                let replaces = target.is_dir();
                if replaces {
                    fs::rename(&target, &replaced)?;
                }
                fs::rename(&partial, &target)?;
                files::sync_directory(runs)?;
                if replaces { layout::remove(&replaced) } else { Ok(()) }
            };
            exchange().map_err(failed)
        });
        if done.is_err() && self.check().is_ok() {
            let _ = layout::remove(&partial);
        }
        done.map_err(cause)
    }

    /// Cleans up after a writer that died: removes partial runs, keeps complete ones as finished.
    fn tidy(&self) -> io::Result<()> {
        let next = self.next();
        let building = next.join(BUILDING);
        if building.join(RUNS).is_dir() {
            fs::create_dir_all(next.join(RUNS))?;
            for run in entries(&building.join(RUNS))? {
                let back = next.join(RUNS).join(&run.name);
                if !back.exists() {
                    fs::rename(&run.path, back)?;
                }
            }
        }
        let old = [building, next.join(OLD)];
        old.iter().filter(|path| path.is_dir()).try_for_each(|path| layout::remove(path))?;
        if next.join(RUNS).is_dir() {
            for run in entries(&next.join(RUNS))?.iter().filter(|run| layout::is_partial_run(&run.name)) {
                layout::remove(&run.path)?;
            }
        }
        Ok(())
    }
}

impl Drop for ResultsWriter {
    /// Removes directories that are empty. If the directory was moved, another one may have its name now.
    fn drop(&mut self) {
        if self.check().is_err() {
            return;
        }
        let next = self.next();
        let unfinished = next.join(RUNS);
        let empty = |path: &Path| fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
        // The assembly of a set, or a report, requires that the plan is known as ours.
        let is_alone =
            entries(&next).is_ok_and(|found| found.iter().all(|it| [RUNS, PLAN].contains(&it.name.as_str())));
        if is_alone && empty(&unfinished) {
            let _ = fs::remove_dir(&unfinished).and_then(|()| fs::remove_file(next.join(PLAN)));
        }
        let _ = layout::remove_empty(&next);
        // First the lock, then the directories: one that another writer takes in between is not empty.
        drop(self.lock.take());
        if let Some(root) = &self.created_root {
            for path in self.out.ancestors().take_while(|path| path.starts_with(root)) {
                let _ = fs::remove_dir(path);
            }
        }
    }
}

/// Makes the directory and locks it.
fn take(out: &Path, command: &str) -> Result<Lock, Error> {
    let mut tries = 100;
    loop {
        fs::create_dir_all(out).map_err(Error::io("create", out))?;
        match Lock::take(out, command) {
            // Another writer that left nothing has just removed the directory that it made.
            Err(error) if error.is_missing() && tries > 0 => tries -= 1,
            lock => return Ok(lock?),
        }
    }
}

/// The target, if it is a directory or does not exist.
fn directory(target: &Path) -> Result<PathBuf, Error> {
    match fs::metadata(target) {
        Ok(metadata) if metadata.is_dir() => Ok(target.to_path_buf()),
        Ok(_) => Err(Error::NoDirectory { path: target.to_path_buf() }),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("create", target)(error)),
        Err(_) if target.is_symlink() => {
            let source = io::Error::new(io::ErrorKind::NotFound, "it is a link to a directory that is not there");
            Err(Error::io("create", target)(source))
        }
        Err(_) if target.file_name().is_some() => Ok(target.to_path_buf()),
        Err(_) => {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "not a name for a directory");
            Err(Error::io("create", target)(source))
        }
    }
}

/// Returns the possible places of a run in a directory of results: in its set, as its only run, or in the set in the
/// making.
fn places_in(directory: &Path, folder: &str) -> [PathBuf; 3] {
    [directory.join(folder), directory.to_path_buf(), directory.join(NEXT).join(folder)]
}

/// Hard links to the files of a run except its manifest, or copies where the file system has no hard links.
pub(super) fn link_run(from: &Path, to: &Path) -> Result<(), Error> {
    for entry in entries(from).map_err(Error::io("read", from))? {
        // The report of a lone run is not a run's file in a grid.
        if entry.is_directory
            || [REPORT, MANIFEST].contains(&entry.name.as_str())
            || !layout::FILES.contains(&entry.name.as_str())
        {
            continue;
        }
        let to = to.join(&entry.name);
        fs::hard_link(&entry.path, &to)
            .or_else(|_| fs::copy(&entry.path, &to).and_then(|_| fs::File::open(&to)?.sync_all()))
            .map_err(Error::io("write", &to))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{load, load_set};
    use crate::testbed::{self, TestbedDir, write_run};

    /// A grid's runs with keys of their own.
    fn runs(names: &[&str]) -> Vec<RunResults> {
        let run = |name: &&str| {
            let mut run = testbed::results();
            run.manifest.run = (*name).to_owned();
            run.summary.run = (*name).to_owned();
            run.manifest.key = format!("key of {name}");
            run
        };
        names.iter().map(run).collect()
    }

    fn writer(target: &Path, runs: &[RunResults]) -> ResultsWriter {
        let keys = runs.iter().map(|run| (run.manifest.run.clone(), run.manifest.key.clone()));
        ResultsWriter::new(target, SweepPlan::new("test", "again", keys), "a test").unwrap()
    }

    /// The earlier run of this number, with the settings that runs of tests have.
    fn earlier(writer: &ResultsWriter, number: usize, reuse: Reuse) -> Option<RunResults> {
        match writer
            .earlier(number, reuse, &[], &testbed::results().manifest.resolved, &SweepColumns::default())
            .unwrap()
        {
            Earlier::Kept(run) => Some(*run),
            Earlier::Nothing => None,
            Earlier::Damaged(error) => panic!("{error}"),
        }
    }

    /// The names of a directory's runs.
    fn names(target: &Path) -> Vec<String> {
        load_set(target).unwrap().runs.into_iter().map(|run| run.manifest.run).collect()
    }

    #[test]
    fn old_results_stay_until_the_new_ones_are_complete() {
        let scratch = TestbedDir::new("stay");
        let target = scratch.path().join("out");
        let (old, new) = (runs(&["a", "b"]), runs(&["b", "c"]));
        let first = writer(&target, &old);
        for run in &old {
            first.keep(run).unwrap();
        }
        first.finish(&Program::default(), &old, "{}", String::new()).unwrap();
        drop(first);
        let second = writer(&target, &new);
        // `b` is the same run in both.
        assert_eq!(earlier(&second, 0, Reuse::AllSets).unwrap().manifest.run, "b");
        assert!(earlier(&second, 1, Reuse::AllSets).is_none());
        assert_eq!(names(&target), ["a", "b"]);
        drop(second);
        let set = load_set(&target).unwrap();
        assert_eq!(set.next_set.unwrap().to_string(), "1 of 2 runs; missing: c");
        let third = writer(&target, &new);
        assert!(earlier(&third, 0, Reuse::NextSet).is_some());
        third.keep(&new[1]).unwrap();
        third.finish(&Program::default(), &new, "{}", String::new()).unwrap();
        drop(third);
        assert_eq!(names(&target), ["b", "c"]);
        assert_eq!(scratch.names("out"), ["manifest.json", "report.html", "runs", "summary.json", "summary.parquet"]);
    }

    #[test]
    fn interruption_during_assembly_loses_no_run() {
        let scratch = TestbedDir::new("together");
        let target = scratch.path().join("out");
        let runs = runs(&["a", "b"]);
        let first = writer(&target, &runs);
        for run in &runs {
            first.keep(run).unwrap();
        }
        drop(first);
        let (from, to) = (target.join(NEXT), target.join(NEXT).join(BUILDING));
        fs::create_dir_all(to.join(RUNS)).unwrap();
        fs::rename(from.join(run_folder("a")), to.join(run_folder("a"))).unwrap();
        fs::write(to.join(SUMMARY), "half").unwrap();
        fs::create_dir(from.join("runs/.partial-7-c")).unwrap();
        fs::write(from.join("runs/.partial-7-c/flows.parquet"), "half").unwrap();
        let second = writer(&target, &runs);
        assert!(earlier(&second, 0, Reuse::NextSet).is_some() && earlier(&second, 1, Reuse::NextSet).is_some());
        assert!(!to.exists() && !from.join("runs/.partial-7-c").exists());
    }

    #[test]
    fn user_files_are_not_replaced() {
        let scratch = TestbedDir::new("ours");
        let target = scratch.path().join("out");
        let run = testbed::results();
        let refused = |target: &Path| {
            let plan = SweepPlan::new("scenario", "", [("a".to_owned(), "key".to_owned())]);
            ResultsWriter::new(target, plan, "a test").unwrap_err().to_string()
        };
        write_run(&target, &run);
        for number in 0..7 {
            fs::write(target.join(format!("note{number}.txt")), "mine").unwrap();
        }
        let message = refused(&target);
        assert!(message.contains("holds 7 files or folders that Narrows did not write"), "{message}");
        assert!(message.contains("`note0.txt`, `note1.txt`, `note2.txt`, `note3.txt`, `note4.txt`, ...;"), "{message}");
        assert!(message.contains("--out"), "{message}");
        assert!(!target.join(NEXT).exists() && !target.join(files::LOCK).exists());

        let file = scratch.path().join("file");
        fs::write(&file, "mine").unwrap();
        assert!(
            refused(&file).ends_with("file`: it is not a directory; choose another name with --out"),
            "{}",
            refused(&file)
        );
        assert!(refused(&file.join("inside")).starts_with("cannot create `"));
        assert!(ResultsWriter::new(Path::new(""), SweepPlan::new("", "", []), "").is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    }

    #[test]
    fn concurrent_files_stop_the_final_move_without_loss() {
        let scratch = TestbedDir::new("meanwhile");
        let target = scratch.path().join("out");
        let old = runs(&["old"]);
        write_run(&target, &old[0]);
        let new = runs(&["a", "b"]);
        let first = writer(&target, &new);
        for run in &new {
            first.keep(run).unwrap();
        }
        fs::write(target.join("note.txt"), "mine").unwrap();
        let message = first.finish(&Program::default(), &new, "{}", String::new()).unwrap_err().to_string();
        assert!(message.contains("`note.txt`"), "{message}");
        drop(first);
        assert_eq!(names(&target), ["old"]);
        fs::remove_file(target.join("note.txt")).unwrap();
        let second = writer(&target, &new);
        assert!((0..2).all(|run| earlier(&second, run, Reuse::NextSet).is_some()));
    }

    /// A refused command changes nothing, so the next one is refused, too. Once a set is begun, its command can continue
    /// it, and the command of another set is refused because of its finished runs.
    #[test]
    fn runs_that_a_plan_gives_up_are_named_until_its_set_is_begun() {
        let scratch = TestbedDir::new("given-up");
        let target = scratch.path().join("out");
        let old = runs(&["a", "b"]);
        let first = writer(&target, &old);
        for run in &old {
            first.keep(run).unwrap();
        }
        first.finish(&Program::default(), &old, "{}", String::new()).unwrap();
        drop(first);
        let taken = |keys: [(&str, &str); 2]| {
            let keys = keys.map(|(run, key)| (run.to_owned(), key.to_owned()));
            ResultsWriter::take(&target, SweepPlan::new("test", "again", keys), "a test").unwrap()
        };
        let new = || taken([("a", "another key"), ("c", "key of c")]);
        let differs = |_: usize, _: &Manifest| Some("stop: 5ms -> 6ms".to_owned());
        let other = OtherRun { run: "a".to_owned(), difference: "stop: 5ms -> 6ms".to_owned() };
        for _ in 0..2 {
            let replace_plan = new().replace_plan(differs);
            assert_eq!(
                (replace_plan.left_out, replace_plan.other, replace_plan.outdated),
                (vec!["b".to_owned()], vec![other.clone()], vec![])
            );
        }
        // Another version of the program is no other run.
        let replace_plan = new().replace_plan(|_, _| None);
        assert_eq!((replace_plan.other, replace_plan.outdated), (vec![], vec!["a".to_owned()]));
        let begun = new().begin().unwrap();
        begun.keep(&runs(&["c"])[0]).unwrap();
        drop(begun);
        assert_eq!(new().replace_plan(differs), ReplacePlan::default());
        let back = taken([("a", "key of a"), ("b", "key of b")]).replace_plan(differs);
        assert_eq!((back.left_out, back.other), (vec!["c".to_owned()], vec![]));
        assert_eq!(names(&target), ["a", "b"]);
    }

    #[test]
    fn a_writer_that_leaves_nothing_leaves_no_directory() {
        let scratch = TestbedDir::new("nothing");
        drop(writer(&scratch.path().join("deep/er/out"), &runs(&["a", "b"])));
        assert_eq!(scratch.names(""), [""; 0]);
        fs::create_dir(scratch.path().join("mine")).unwrap();
        drop(writer(&scratch.path().join("mine"), &runs(&["a", "b"])));
        assert_eq!(scratch.names("mine"), [""; 0]);
    }

    /// Writers repeatedly create and remove a directory. There are never two at a time.
    #[test]
    fn writers_exclude_each_other() {
        let scratch = TestbedDir::new("never-two");
        let target = scratch.path().join("deep/out");
        let (inside, taken) = (std::sync::atomic::AtomicU32::new(0), std::sync::atomic::AtomicU32::new(0));
        let one = || {
            for _ in 0..200 {
                let plan = SweepPlan::new("scenario", "", [("a".to_owned(), "key".to_owned())]);
                let Ok(writer) = ResultsWriter::new(&target, plan, "a test") else { continue };
                taken.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                drop(writer);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(one);
            }
        });
        assert!(taken.into_inner() > 10);
        // The directory itself may stay, empty: the last writer to leave need not be the one that made it.
        assert!(fs::read_dir(&target).map_or(0, Iterator::count) == 0);
    }

    #[test]
    fn reused_run_takes_current_scenario_text() {
        let scratch = TestbedDir::new("prose");
        let target = scratch.path().join("out");
        let runs = runs(&["a", "b"]);
        let mut resolved = runs[0].manifest.resolved.clone();
        let first = writer(&target, &runs);
        first.keep(&runs[0]).unwrap();
        drop(first);
        // From the set in the making, and from a whole one.
        for (reuse, title) in [(Reuse::NextSet, "another"), (Reuse::AllSets, "a third")] {
            resolved["title"] = title.into();
            let second = writer(&target, &runs);
            let Earlier::Kept(kept) = second.earlier(0, reuse, &[], &resolved, &SweepColumns::default()).unwrap()
            else {
                panic!("not kept")
            };
            assert_eq!(kept.manifest.resolved["title"], title);
            assert_eq!(load(&target.join(NEXT).join(run_folder("a"))).unwrap(), *kept);
            second.keep(&runs[1]).unwrap();
            second.finish(&Program::default(), &[*kept, runs[1].clone()], "{}", String::new()).unwrap();
            drop(second);
            assert_eq!(load_set(&target).unwrap().runs[0].manifest.resolved["title"], title);
        }
    }

    #[test]
    fn damaged_runs_are_named_and_not_reused() {
        let scratch = TestbedDir::new("damaged");
        let target = scratch.path().join("out");
        let runs = runs(&["a", "b"]);
        let first = writer(&target, &runs);
        for run in &runs {
            first.keep(run).unwrap();
        }
        first.finish(&Program::default(), &runs, "{}", String::new()).unwrap();
        drop(first);
        let folder = target.join(run_folder("a"));
        for (name, from, to) in [
            (SUMMARY, "\"ecn_marks\": ", "\"ecn_marks\": 1"),
            (SUMMARY, "}", ""),
            (MANIFEST, "\"label\": \"", "\"label\": \"x"),
        ] {
            let path = folder.join(name);
            let before = fs::read_to_string(&path).unwrap();
            fs::write(&path, before.replacen(from, to, 1)).unwrap();
            let second = writer(&target, &runs);
            let resolved = &runs[0].manifest.resolved;
            let Earlier::Damaged(error) =
                second.earlier(0, Reuse::AllSets, &[], resolved, &SweepColumns::default()).unwrap()
            else {
                panic!("kept")
            };
            assert!(error.to_string().contains(&format!("a/{name}`")), "{error}");
            assert!(matches!(
                second.earlier(1, Reuse::AllSets, &[], resolved, &SweepColumns::default()).unwrap(),
                Earlier::Kept(_)
            ));
            assert!(matches!(
                second.earlier(0, Reuse::NextSet, &[], resolved, &SweepColumns::default()).unwrap(),
                Earlier::Nothing
            ));
            drop(second);
            fs::write(&path, before).unwrap();
        }
        let again = |lost: &Path, wanted: &str| {
            let second = writer(&target, &runs);
            let resolved = &runs[0].manifest.resolved;
            let Earlier::Damaged(error) =
                second.earlier(0, Reuse::AllSets, &[], resolved, &SweepColumns::default()).unwrap()
            else {
                panic!("kept")
            };
            assert_eq!(error.to_string(), format!("`{}` {wanted}", lost.display()));
        };
        let (flows, manifest) = (folder.join(super::super::FLOWS), folder.join(MANIFEST));
        let (flows_before, before) = (fs::read(&flows).unwrap(), fs::read_to_string(&manifest).unwrap());
        fs::remove_file(&flows).unwrap();
        again(&flows, "is missing");
        fs::write(&flows, flows_before).unwrap();
        // Nor is a run kept that nothing vouches for.
        let mut value: serde_json::Value = serde_json::from_str(&before).unwrap();
        value.as_object_mut().unwrap().shift_remove("sha256");
        fs::write(&manifest, value.to_string()).unwrap();
        again(&manifest, "lacks hashes, so the run's files cannot be checked");
        fs::write(&manifest, before).unwrap();
        let differing = |how| {
            assert_eq!(writer(&target, &runs).differing(), [Differing { path: target.join(SUMMARY), how }]);
        };
        fs::write(target.join(SUMMARY), "half").unwrap();
        differing(Difference::Changed { known: MANIFEST });
        fs::remove_file(target.join(SUMMARY)).unwrap();
        differing(Difference::Missing);
    }

    /// Flows that were written out of memory are read back unchanged, and missing ones are named.
    #[test]
    fn flows_of_finished_runs_are_read_back() {
        let scratch = TestbedDir::new("flows");
        let runs = runs(&["a", "b"]);
        let writer = writer(&scratch.path().join("out"), &runs);
        for run in &runs {
            writer.keep(run).unwrap();
        }
        let without = RunResults { flows: crate::tables::FlowTable::default(), ..runs[1].clone() };
        let back = writer.with_flows(&without).unwrap();
        assert_eq!((&back.flows, &back.manifest, &back.summary), (&runs[1].flows, &runs[1].manifest, &runs[1].summary));
        assert!(back.ports.rows.is_empty() && back.rates.rows.is_empty() && !runs[1].ports.rows.is_empty());
        let path = writer.next().join(run_folder("b")).join("flows.parquet");
        fs::write(&path, "half").unwrap();
        let message = writer.with_flows(&without).unwrap_err().to_string();
        assert!(message.contains("flows.parquet"), "{message}");
        fs::remove_dir_all(writer.next().join(run_folder("b"))).unwrap();
        let message = writer.with_flows(&without).unwrap_err().to_string();
        assert!(message.ends_with(".next/runs/b` is missing"), "{message}");
    }

    /// After `.next` is removed while a set is in the making, runs that finish later are kept, and the error names the
    /// missing ones.
    #[test]
    fn removed_staging_directory_is_recreated() {
        let scratch = TestbedDir::new("next");
        let target = scratch.path().join("out");
        let runs = runs(&["a", "b"]);
        let first = writer(&target, &runs);
        first.keep(&runs[0]).unwrap();
        fs::remove_dir_all(target.join(NEXT)).unwrap();
        first.keep(&runs[1]).unwrap();
        let message = first.finish(&Program::default(), &runs, "{}", String::new()).unwrap_err().to_string();
        assert!(message.ends_with(".next/runs/a` is missing"), "{message}");
        drop(first);
        assert_eq!(names(&target), ["b"]);
        let second = writer(&target, &runs);
        assert!(earlier(&second, 0, Reuse::NextSet).is_none() && earlier(&second, 1, Reuse::NextSet).is_some());
        drop(second);
        // A lone run has nothing there that could be lost.
        fs::remove_dir_all(&target).unwrap();
        let alone = writer(&target, &runs[..1]);
        fs::remove_dir_all(target.join(NEXT)).unwrap();
        alone.finish(&Program::default(), &runs[..1], "{}", String::new()).unwrap();
        drop(alone);
        assert_eq!(names(&target), ["a"]);
    }

    /// Results may not be inside a directory of results: the outer set's next command could remove them.
    #[test]
    fn nested_results_directories_are_refused() {
        let scratch = TestbedDir::new("inside");
        let target = scratch.path().join("out");
        let runs = runs(&["a", "b"]);
        let outer = writer(&target, &runs);
        let refused = |inner: &str| {
            let plan = SweepPlan::new("s", "narrows run", [("a".to_owned(), "key".to_owned())]);
            ResultsWriter::new(&target.join(inner), plan, "narrows run").unwrap_err().to_string()
        };
        let expected =
            |inner: &str| format!("will not write `{}`: it lies in the results", target.join(inner).display());
        for inner in ["runs/a", "mine/deep", ".next/runs"] {
            assert!(refused(inner).starts_with(&expected(inner)), "{}", refused(inner));
        }
        for run in &runs {
            outer.keep(run).unwrap();
        }
        outer.finish(&Program::default(), &runs, "{}", String::new()).unwrap();
        drop(outer);
        assert!(refused("runs/a").starts_with(&expected("runs/a")));
        drop(writer(&target, &runs));
    }

    #[test]
    fn report_of_an_empty_set_is_recognised() {
        let scratch = TestbedDir::new("report-alone");
        let target = scratch.path().join("out");
        let runs = runs(&["a", "b"]);
        let first = writer(&target, &runs);
        fs::write(target.join(NEXT).join(REPORT), "page").unwrap();
        drop(first);
        assert_eq!(load_set(&target).unwrap().unfinished.unwrap().to_string(), "0 of 2 runs; missing: a; b");
        drop(writer(&target, &runs));
    }

    #[test]
    fn a_link_to_nothing_is_refused() {
        let scratch = TestbedDir::new("nowhere");
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        let plan = SweepPlan::new("test", "", [("a".to_owned(), "key".to_owned())]);
        let message = ResultsWriter::new(&link, plan, "a test").unwrap_err().to_string();
        assert!(message.ends_with("link`: it is a link to a directory that is not there"), "{message}");
        assert_eq!(scratch.names(""), ["link"]);
    }

    #[test]
    fn nothing_is_written_into_a_directory_that_took_the_name() {
        let scratch = TestbedDir::new("stranger");
        let (target, moved) = (scratch.path().join("out"), scratch.path().join("moved"));
        let runs = runs(&["a", "b"]);
        for stranger in [false, true] {
            let first = writer(&target, &runs);
            first.keep(&runs[0]).unwrap();
            fs::rename(&target, &moved).unwrap();
            if stranger {
                fs::create_dir_all(target.join(NEXT).join(RUNS)).unwrap();
            }
            let lost = |result: Result<(), Error>| {
                let message = result.unwrap_err().to_string();
                assert!(message.contains("out` was moved or replaced"), "{message}");
            };
            lost(first.keep(&runs[1]));
            lost(first.finish(&Program::default(), &runs, "{}", String::new()));
            // Also if it is removed while a run is written.
            fs::remove_dir_all(&target).ok();
            fs::rename(&moved, &target).unwrap();
            lost(first.store_run(&run_folder("b"), |_| {
                fs::rename(&target, &moved).unwrap();
                if stranger {
                    fs::create_dir_all(target.join(NEXT).join(RUNS)).unwrap();
                }
                Err(Error::io("write", &target)(io::ErrorKind::NotFound.into()))
            }));
            drop(first);
            assert_eq!(target.join(NEXT).join(RUNS).is_dir(), stranger);
            assert!(!stranger || fs::read_dir(target.join(NEXT).join(RUNS)).unwrap().count() == 0);
            assert_eq!(names(&moved), ["a"]);
            let _ = fs::remove_dir_all(&target);
            fs::remove_dir_all(&moved).unwrap();
        }
    }

    #[test]
    fn run_name_may_look_like_a_partial_name() {
        let scratch = TestbedDir::new("called");
        let target = scratch.path().join("out");
        let runs = runs(&["x.partial-1", ".partial-1-x"]);
        let first = writer(&target, &runs);
        for run in &runs {
            first.keep(run).unwrap();
        }
        drop(first);
        let second = writer(&target, &runs);
        assert!((0..2).all(|run| earlier(&second, run, Reuse::NextSet).is_some()));
    }

    #[test]
    fn a_link_to_a_directory_is_followed() {
        let scratch = TestbedDir::new("link");
        let (real, link) = (scratch.path().join("real"), scratch.path().join("link"));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write_run(&link, &testbed::results());
        assert!(real.join(MANIFEST).exists() && link.is_symlink());
    }
}
