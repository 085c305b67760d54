//! Assigns the keys of a newer build to finished runs, if two builds produce the same results. A tool for developers,
//! for use after a refactoring.
//!
//!     rekey OLD NEW RESULTS [--sample N] [--seed S] [--rename TABLE.OLD=NEW]... -- SCENARIO [options of `narrows sweep`]
//!
//! OLD and NEW are two builds of the command; RESULTS is a directory of results that OLD made of SCENARIO with these
//! options. A sample of its runs, drawn with a seed, is done again by both builds. Only if the results of both and the kept
//! results are equal, value by value, every finished run of RESULTS gets the key that NEW has for it, with the evidence in
//! its manifest. The runs then lie in RESULTS as an unfinished set: the command that made them puts it in place, and runs
//! nothing.
//!
//! A change of `results` alone changes no key, and needs none of this.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use results::CodeVersions;
use results::store::{
    Adoption, Equal, Manifest, NEXT, RUNS, Rekeyed, Rename, ResultsWriter, SweepPlan, compare, manifest_of,
};
use serde_json::Value;

const USAGE: &str =
    "usage: rekey OLD NEW RESULTS [--sample N] [--seed S] [--rename TABLE.OLD=NEW]... -- SCENARIO [OPTIONS]";

fn main() -> ExitCode {
    match CommandLine::read(std::env::args().skip(1)).and_then(|options| options.rekey()) {
        Ok(done) => {
            println!("{done}");
            ExitCode::SUCCESS
        }
        Err(RekeyError::Usage(why)) => {
            eprintln!("error: {why}\n{USAGE}");
            ExitCode::from(2)
        }
        Err(RekeyError::NotEqual(why)) => {
            eprintln!("error: {why}\nno key was changed");
            ExitCode::FAILURE
        }
    }
}

/// Reasons to change nothing.
enum RekeyError {
    Usage(String),
    NotEqual(String),
}

fn not_equal(why: impl std::fmt::Display) -> RekeyError {
    RekeyError::NotEqual(why.to_string())
}

/// The command line.
struct CommandLine {
    old: PathBuf,
    new: PathBuf,
    results: PathBuf,
    sample: Option<usize>,
    seed: u64,
    renames: Vec<Rename>,
    /// The scenario, and options of `narrows sweep`.
    words: Vec<String>,
}

/// A run as a build plans it.
struct RekeyedRun {
    run: String,
    key: String,
    code: CodeVersions,
}

impl CommandLine {
    fn read(args: impl Iterator<Item = String>) -> Result<Self, RekeyError> {
        let usage = |why: &str| RekeyError::Usage(why.to_owned());
        let (mut names, mut sample, mut seed, mut renames, mut words) = (Vec::new(), None, 1, Vec::new(), Vec::new());
        let mut args = args;
        while let Some(word) = args.next() {
            let mut value = || args.next().ok_or_else(|| usage(&format!("{word} needs a value")));
            let number = |text: &str| text.parse::<u64>().map_err(|_| usage(&format!("`{text}` is no whole number")));
            match word.as_str() {
                "--sample" => sample = Some(number(&value()?)?.max(1) as usize),
                "--seed" => seed = number(&value()?)?,
                "--rename" => renames.push(value()?.parse().map_err(RekeyError::Usage)?),
                "--" => words = args.by_ref().collect(),
                option if option.starts_with('-') => return Err(usage(&format!("unknown option {option}"))),
                _ => names.push(PathBuf::from(word)),
            }
        }
        match <[PathBuf; 3]>::try_from(names) {
            Ok([old, new, results]) if !words.is_empty() => {
                Ok(Self { old, new, results, sample, seed, renames, words })
            }
            _ => Err(usage("expected two programs, a directory of results, and a scenario after `--`")),
        }
    }

    fn rekey(&self) -> Result<String, RekeyError> {
        let planned = self.planned(&self.new)?;
        let before: BTreeMap<String, String> =
            self.planned(&self.old)?.into_iter().map(|planned| (planned.run, planned.key)).collect();
        let kept: BTreeMap<String, PathBuf> = folders(&self.results);
        let finished: Vec<usize> = (0..planned.len()).filter(|&run| kept.contains_key(&planned[run].run)).collect();
        if finished.is_empty() {
            return Err(not_equal(format!("`{}` has no finished run of this scenario", self.results.display())));
        }
        if let Some(stranger) = kept.keys().find(|run| planned.iter().all(|planned| planned.run != **run)) {
            return Err(not_equal(format!(
                "`{}` has a run `{stranger}` that these options do not plan",
                self.results.display()
            )));
        }
        // A run of another build or with other options has a key that differs from the old build's key for it.
        for (run, place) in &kept {
            let manifest = manifest_of(place).map_err(not_equal)?;
            if before.get(run) != Some(&manifest.key) {
                return Err(not_equal(format!("`{run}` was kept under another key than the old build gives it")));
            }
        }
        let sample = self.draw(&finished, &planned);
        let scratch = std::env::temp_dir().join(format!("narrows-rekey-{}", std::process::id()));
        let compared = self.compare_all(&sample, &planned, &kept, &scratch);
        let _ = std::fs::remove_dir_all(&scratch);
        let compared = compared?;
        self.adopt(&finished, &planned, &kept, &sample, &compared)?;
        Ok(format!(
            "{} runs have the keys of the new build; {} of them were done again by both: {} columns, {} values equal\n\
             put the set in place with the command that made it",
            finished.len(),
            sample.len(),
            compared.equal.columns,
            compared.equal.values,
        ))
    }

    /// Returns the runs of the scenario, with their keys under a build.
    fn planned(&self, build: &Path) -> Result<Vec<RekeyedRun>, RekeyError> {
        let words = ["--list", "--json"].map(str::to_owned);
        let text = output(build, &["sweep"], self.words.iter().chain(&words))?;
        let listed: Value = serde_json::from_str(&text).map_err(not_equal)?;
        let planned = |run: &Value| {
            Some(RekeyedRun {
                run: run["run"].as_str()?.to_owned(),
                key: run["key"].as_str()?.to_owned(),
                code: serde_json::from_value(run["code"].clone()).ok()?,
            })
        };
        let runs = listed["runs"].as_array().map(|runs| runs.iter().map(planned).collect::<Option<Vec<_>>>());
        runs.flatten().ok_or_else(|| not_equal(format!("`{}` lists no keys of runs", build.display())))
    }

    /// Returns the runs to repeat: a twentieth, at least three and one of each combination of code versions.
    fn draw(&self, finished: &[usize], planned: &[RekeyedRun]) -> Vec<usize> {
        let wanted = self.sample.unwrap_or((finished.len() / 20).max(3)).min(finished.len());
        let mut order: Vec<usize> = finished.to_vec();
        let chance =
            |run: usize| planned[run].run.bytes().fold(self.seed, |hash, byte| units::mix64(hash ^ u64::from(byte)));
        order.sort_by_key(|&run| chance(run));
        let mut chosen: Vec<usize> = Vec::new();
        for &run in &order {
            if chosen.iter().all(|&other| planned[other].code != planned[run].code) {
                chosen.push(run);
            }
        }
        for run in order {
            if chosen.len() < wanted && !chosen.contains(&run) {
                chosen.push(run);
            }
        }
        chosen
    }

    fn compare_all(
        &self,
        sample: &[usize],
        planned: &[RekeyedRun],
        kept: &BTreeMap<String, PathBuf>,
        scratch: &Path,
    ) -> Result<Compared, RekeyError> {
        let mut all = Compared::default();
        for (number, &index) in sample.iter().enumerate() {
            let name = &planned[index].run;
            eprintln!("[{}/{}] {name}", number + 1, sample.len());
            let once = |program: &Path, build: &str| -> Result<(PathBuf, Manifest), RekeyError> {
                let out = scratch.join(build).join(number.to_string());
                let shard = format!("{}/{}", index + 1, planned.len());
                let mut words = self.words.clone();
                words.extend(["--quiet", "--shard", &shard, "--out"].map(str::to_owned));
                words.push(out.display().to_string());
                output(program, &["sweep"], words.iter())?;
                let place = folders(&out).remove(name);
                let place = place.ok_or_else(|| not_equal(format!("{} left no run `{name}`", program.display())))?;
                let manifest = manifest_of(&place).map_err(not_equal)?;
                Ok((place, manifest))
            };
            let (before, old) = once(&self.old, "old")?;
            let (after, new) = once(&self.new, "new")?;
            if new.key != planned[index].key {
                return Err(not_equal(format!("the new build gives `{name}` another key than it lists")));
            }
            let equal = compare(&before, &after, &self.renames).map_err(not_equal)?;
            // The kept run is equal to the new one too.
            compare(&kept[name], &after, &self.renames).map_err(not_equal)?;
            all.equal.columns += equal.columns;
            all.equal.values += equal.values;
            (all.old_commit, all.new_commit, all.record) = (old.commit, new.commit, new.record);
        }
        Ok(all)
    }

    fn adopt(
        &self,
        finished: &[usize],
        planned: &[RekeyedRun],
        kept: &BTreeMap<String, PathBuf>,
        sample: &[usize],
        compared: &Compared,
    ) -> Result<(), RekeyError> {
        let manifest = manifest_of(&kept[&planned[finished[0]].run]).map_err(not_equal)?;
        let keys = planned.iter().map(|planned| (planned.run.clone(), planned.key.clone()));
        let command = format!("narrows sweep {}", self.words.join(" "));
        let writer = ResultsWriter::new(&self.results, SweepPlan::new(&manifest.scenario, &command, keys), "rekey")
            .map_err(not_equal)?;
        for &run in finished {
            let evidence = Rekeyed {
                from_key: String::new(),
                from_code: CodeVersions::default(),
                old_commit: compared.old_commit.clone(),
                new_commit: compared.new_commit.clone(),
                sample: sample.iter().map(|&run| planned[run].run.clone()).collect(),
                sample_seed: self.seed,
                columns: compared.equal.columns,
                values: compared.equal.values,
                renamed: self.renames.iter().map(ToString::to_string).collect(),
            };
            let adoption = Adoption {
                code: planned[run].code.clone(),
                record: compared.record.clone(),
                evidence,
                renames: &self.renames,
            };
            writer.adopt(run, &kept[&planned[run].run], &adoption).map_err(not_equal)?;
        }
        Ok(())
    }
}

/// Result of comparing the two builds.
#[derive(Default)]
struct Compared {
    equal: Equal,
    old_commit: String,
    new_commit: String,
    record: String,
}

/// Returns the folders of a directory's finished runs, by name. Only manifests are read: tables may have other columns.
fn folders(results: &Path) -> BTreeMap<String, PathBuf> {
    let mut places = vec![results.to_path_buf()];
    for parent in [results.join(RUNS), results.join(NEXT).join(RUNS)] {
        let entries = std::fs::read_dir(parent).into_iter().flatten();
        places.extend(entries.filter_map(Result::ok).map(|entry| entry.path()));
    }
    let run = |place: PathBuf| manifest_of(&place).ok().map(|manifest| (manifest.run, place));
    places.into_iter().filter_map(run).collect()
}

/// Runs a program and returns its standard output.
fn output<'a>(program: &Path, first: &[&str], words: impl Iterator<Item = &'a String>) -> Result<String, RekeyError> {
    let done = Command::new(program).args(first).args(words).stdin(Stdio::null()).output();
    let done = done.map_err(|error| RekeyError::Usage(format!("{}: {error}", program.display())))?;
    if !done.status.success() {
        let stderr = String::from_utf8_lossy(&done.stderr);
        return Err(not_equal(format!("{} ended with {}: {}", program.display(), done.status, stderr.trim())));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}
