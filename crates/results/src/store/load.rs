//! Runs read back.

use std::fs;
use std::io;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::manifest::{self, GRID, GridManifest, MANIFEST, Manifest, PROGRAM, RUN};
use super::{FLOWS, PORTS, RATES, RUNS, RunResults, SUMMARY, SWITCHES, sha256};
use crate::Error;
use crate::summary::{self, Summary};
use crate::tables::{FlowTable, PortTable, RateTable, SwitchTable};

/// Reads the directory of one run.
///
/// # Errors
/// When it is no such directory, or a file is missing, damaged or of another version.
pub fn load(directory: &Path) -> Result<RunResults, Error> {
    let value = open_manifest(directory)?;
    match value["kind"].as_str() {
        Some(RUN) => load_run(directory, value),
        _ => Err(not_results(directory, "its manifest is not that of a single run")),
    }
}

/// Reads the manifest of one run.
///
/// # Errors
/// When it is no directory of a run, or the manifest is damaged or of another version.
pub fn manifest_of(directory: &Path) -> Result<Manifest, Error> {
    decode(open_manifest(directory)?, &directory.join(MANIFEST))
}

/// Reads the directory of one run or of a grid of runs, in the grid's order.
///
/// # Errors
/// As [`load`].
pub fn load_all(directory: &Path) -> Result<Vec<RunResults>, Error> {
    let value = open_manifest(directory)?;
    match value["kind"].as_str() {
        Some(RUN) => Ok(vec![load_run(directory, value)?]),
        Some(GRID) => {
            let grid: GridManifest = decode(value, &directory.join(MANIFEST))?;
            grid.runs.iter().map(|entry| load(&directory.join(&entry.folder))).collect()
        }
        _ => Err(not_results(directory, "its manifest is neither that of a run nor of a grid")),
    }
}

fn not_results(directory: &Path, reason: &str) -> Error {
    Error::NotResults { path: directory.to_path_buf(), reason: reason.to_owned() }
}

fn open_manifest(directory: &Path) -> Result<Value, Error> {
    let path = directory.join(MANIFEST);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let reason = match directory {
                _ if !directory.exists() => "it does not exist",
                _ if directory.join(RUNS).is_dir() => "it has no manifest.json; finished runs may be under `runs`",
                _ => "it has no manifest.json",
            };
            return Err(not_results(directory, reason));
        }
        Err(error) => return Err(Error::io("read", &path)(error)),
    };
    let value = json(&text, &path)?;
    if value["program"] != PROGRAM {
        return Err(not_results(directory, "its manifest.json is another program's"));
    }
    check_schema(&value, manifest::SCHEMA, &path)?;
    Ok(value)
}

fn load_run(directory: &Path, manifest: Value) -> Result<RunResults, Error> {
    let manifest_path = directory.join(MANIFEST);
    let manifest: Manifest = decode(manifest, &manifest_path)?;
    let read = |name: &str| {
        let path = directory.join(name);
        fs::read(&path).map(|bytes| (bytes, path.clone())).map_err(Error::io("read", &path))
    };
    // Parquet's reader trusts its input, so a table must be the one that was written.
    let read_table = |name: &str| {
        let (bytes, path) = read(name)?;
        let known = manifest.files.iter().find(|file| file.name == name);
        let known = known.ok_or_else(|| Error::Json {
            path: manifest_path.clone(),
            key: "files".into(),
            reason: format!("has no `{name}`"),
        })?;
        if known.sha256 == sha256(&bytes) {
            return Ok((bytes, path));
        }
        let reason = "is not as it was written: its SHA-256 is not the one in manifest.json".to_owned();
        Err(Error::Parquet { path, reason })
    };
    let (text, path) = read(SUMMARY)?;
    let value = json(&text, &path)?;
    check_schema(&value, summary::SCHEMA, &path)?;
    let summary: Summary = decode(value, &path)?;
    let (flows, flows_path) = read_table(FLOWS)?;
    let (ports, ports_path) = read_table(PORTS)?;
    let (rates, rates_path) = read_table(RATES)?;
    let switches = if manifest.files.iter().any(|file| file.name == SWITCHES) {
        let (bytes, path) = read_table(SWITCHES)?;
        SwitchTable::read(bytes, &path)?
    } else {
        SwitchTable::default()
    };
    Ok(RunResults {
        summary,
        flows: FlowTable::read(flows, &flows_path)?,
        ports: PortTable::read(ports, &ports_path)?,
        rates: RateTable::read(rates, &rates_path)?,
        switches,
        manifest,
    })
}

fn json(text: &[u8], path: &Path) -> Result<Value, Error> {
    serde_json::from_slice(text).map_err(|error| Error::Json {
        path: path.to_path_buf(),
        key: ".".into(),
        reason: format!("not JSON: {error}"),
    })
}

fn check_schema(value: &Value, known: u64, path: &Path) -> Result<(), Error> {
    match value.get("schema") {
        Some(found) if *found == known => Ok(()),
        found => {
            let found = found.map_or_else(|| "none".to_owned(), Value::to_string);
            Err(Error::Schema { path: path.to_path_buf(), found, known })
        }
    }
}

fn decode<T: DeserializeOwned>(value: Value, path: &Path) -> Result<T, Error> {
    serde_path_to_error::deserialize(value).map_err(|error| Error::Json {
        path: path.to_path_buf(),
        key: error.path().to_string(),
        reason: error.inner().to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Program;
    use crate::store::{Staging, run_folder, write_run};
    use crate::testbed::{self, Scratch};

    /// As before it was written: without the hashes of its files.
    fn forgetful(mut run: RunResults) -> RunResults {
        let names: Vec<&str> = run.manifest.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, [FLOWS, PORTS, RATES]);
        run.manifest.files.clear();
        run
    }

    #[test]
    fn what_is_written_is_read_and_twice_the_same() {
        let scratch = Scratch::new("roundtrip");
        let run = testbed::results();
        assert!(!run.ports.rows.is_empty() && !run.rates.rows.is_empty() && !run.rates.traces.is_empty());
        let (one, two) = (scratch.path().join("one"), scratch.path().join("two"));
        write_run(&one, &run).unwrap();
        write_run(&two, &run).unwrap();
        assert_eq!(
            scratch.names("one"),
            ["flows.parquet", "manifest.json", "ports.parquet", "rates.parquet", "summary.json"]
        );
        for name in scratch.names("one") {
            assert_eq!(fs::read(one.join(&name)).unwrap(), fs::read(two.join(&name)).unwrap(), "{name}");
        }
        assert_eq!(forgetful(load(&one).unwrap()), run);
        assert_eq!(load_all(&one).unwrap().into_iter().map(forgetful).collect::<Vec<_>>(), [run]);
    }

    #[test]
    fn tables_are_the_same_files_at_any_number_of_threads_and_twice_in_a_row() {
        let scratch = Scratch::new("threads");
        let (info, setup, _) = testbed::mesh();
        let tables = |at: usize, threads| {
            let folder = scratch.path().join(at.to_string());
            let outcome = testbed::run(&setup, threads);
            assert_eq!(outcome.engine.threads, threads as u32);
            write_run(&folder, &testbed::results_of(&info, &setup, &outcome)).unwrap();
            [FLOWS, PORTS, RATES].map(|name| fs::read(folder.join(name)).unwrap())
        };
        let first = tables(0, 1);
        for (at, threads) in (1..).zip([1, 2, 3, 8]) {
            assert!(tables(at, threads) == first, "{threads} threads");
        }
    }

    #[test]
    fn samples_of_switches_have_their_own_file() {
        let scratch = Scratch::new("switches");
        let mut run = testbed::results();
        run.switches.names.push("dc0.border".into());
        let row = |time_ns| crate::tables::SwitchRow { time_ns, switch: 0, buffer_bytes: 7 };
        run.switches.rows.extend([row(1), row(2)]);
        let target = scratch.path().join("run");
        write_run(&target, &run).unwrap();
        assert!(scratch.names("run").iter().any(|name| name == SWITCHES));
        assert_eq!(load(&target).unwrap().switches, run.switches);
    }

    #[test]
    fn a_run_without_samples_is_read_back() {
        let scratch = Scratch::new("bare");
        let (info, setup, outcome) = testbed::one_flow();
        let run = testbed::results_of(&info, &setup, &outcome);
        let target = scratch.path().join("run");
        write_run(&target, &run).unwrap();
        assert_eq!(forgetful(load(&target).unwrap()), run);
    }

    #[test]
    fn a_grid_is_read_in_its_order() {
        let scratch = Scratch::new("grid");
        let target = scratch.path().join("grid");
        let mut runs = vec![testbed::results(), testbed::results()];
        for (run, id) in runs.iter_mut().zip(["z,load=0.4", "a,load=0.4"]) {
            run.manifest.run = id.into();
            run.summary.run = id.into();
        }
        let mut staging = Staging::new(&target).unwrap();
        for run in &runs {
            run.write(&mut staging, &run_folder(&run.manifest.run)).unwrap();
        }
        let ids = runs.iter().map(|run| run.manifest.run.as_str());
        let grid = GridManifest::new(&Program::default(), "scenario", ids);
        staging.text(MANIFEST, &grid.to_json()).unwrap();
        staging.commit().unwrap();
        assert_eq!(load_all(&target).unwrap().into_iter().map(forgetful).collect::<Vec<_>>(), runs);
        let error = load(&target).unwrap_err().to_string();
        assert!(error.contains("not that of a single run"), "{error}");
    }

    #[test]
    fn errors_name_file_and_key() {
        let scratch = Scratch::new("errors");
        let target = scratch.path().join("run");
        let message = |result: Result<RunResults, Error>| result.map(|_| "no error").unwrap_err().to_string();
        assert!(message(load(&target)).ends_with("it does not exist"));
        fs::create_dir(&target).unwrap();
        assert!(message(load(&target)).ends_with("it has no manifest.json"));
        fs::remove_dir(&target).unwrap();
        write_run(&target, &testbed::results()).unwrap();

        let edit = |name: &str, from: &str, to: &str| {
            let path = target.join(name);
            let before = fs::read_to_string(&path).unwrap();
            assert!(before.contains(from), "{from}");
            fs::write(&path, before.replacen(from, to, 1)).unwrap();
            let said = message(load(&target));
            fs::write(&path, before).unwrap();
            said
        };
        let said = edit("summary.json", "\"ecn_marks\": ", "\"ecn_marks\": \"x\", \"old\": ");
        assert!(said.contains("run/summary.json`, key `network.ecn_marks`: invalid type: string"), "{said}");
        let said = edit("summary.json", "\"jain_final\"", "\"jain_last\"");
        assert!(said.contains("key `fairness`: missing field `jain_final`"), "{said}");
        let said = edit("summary.json", "\"count\"", "\"number\"");
        assert!(said.contains("summary.json`, key `flows.all`: missing field `count`"), "{said}");
        let said = edit("summary.json", "\"schema\": 1", "\"schema\": 2");
        assert!(said.contains("summary.json` has schema 2; this version reads schema 1"), "{said}");
        let said = edit("manifest.json", "{", "{{");
        assert!(said.contains("manifest.json`, key `.`: not JSON"), "{said}");
        let said = edit("manifest.json", "\"seed\": 1", "\"seed\": -1");
        assert!(said.contains("manifest.json`, key `seed`"), "{said}");

        let said = edit("manifest.json", "\"name\": \"ports.parquet\"", "\"name\": \"x\"");
        assert!(said.contains("manifest.json`, key `files`: has no `ports.parquet`"), "{said}");

        let mut bytes = fs::read(target.join(FLOWS)).unwrap();
        bytes[100] ^= 1;
        fs::write(target.join(FLOWS), bytes).unwrap();
        let said = message(load(&target));
        assert!(said.contains("flows.parquet`: is not as it was written"), "{said}");
        fs::remove_file(target.join(FLOWS)).unwrap();
        assert!(message(load(&target)).starts_with("cannot read `"));
    }
}
