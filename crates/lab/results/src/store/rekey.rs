//! New keys for finished runs, after two builds were shown to have the same results: a comparison of two builds' results
//! for a run, value by value, and the adoption of kept runs under the keys of the newer build.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use thiserror::Error as ThisError;

use super::layout::JSON;
use super::load::{PARQUET, load_known};
use super::manifest::{self, FileHash, MANIFEST, Rekeyed};
use super::writer::{ResultsWriter, link_run};
use super::{FLOWS, PAUSES, PORTS, RATES, SUMMARY, SWITCHES};
use crate::frame::{Column, DataFrame};
use crate::input::CodeVersions;
use crate::{Difference, Error, parquet};

/// The tables of a run: file and name.
const TABLES: [(&str, &str); 5] =
    [(FLOWS, "flows"), (PORTS, "ports"), (RATES, "rates"), (SWITCHES, "switches"), (PAUSES, "pauses")];

/// Keys of a summary that differ between builds by design: times and prose.
const IGNORED_KEYS: [&str; 3] = ["engine", "notes", "label"];

/// A column, or a key of the summary, that has another name in the new build.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rename {
    /// The table, such as `flows`; `summary` for the summary.
    pub table: String,
    /// The name in the old build.
    pub old: String,
    /// The name in the new build.
    pub new: String,
}

impl std::str::FromStr for Rename {
    type Err = String;

    /// Reads `flows.held_ns=on_ramp_hold_ns`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=').and_then(|(left, new)| Some((left.split_once('.')?, new)));
        let Some(((table, old), new)) = parts else {
            return Err(format!("`{text}` is no rename: expected TABLE.OLD=NEW, as in flows.held_ns=on_ramp_hold_ns"));
        };
        let known = TABLES.iter().any(|(_, name)| *name == table) || table == "summary";
        if !known || old.is_empty() || new.is_empty() {
            let tables: Vec<&str> = TABLES.iter().map(|(_, name)| *name).chain(["summary"]).collect();
            return Err(format!("`{text}`: expected one of the tables {}, and two names", tables.join(", ")));
        }
        Ok(Self { table: table.to_owned(), old: old.to_owned(), new: new.to_owned() })
    }
}

impl std::fmt::Display for Rename {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}={}", self.table, self.old, self.new)
    }
}

/// Counts of compared values, all equal.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Equal {
    /// Columns, and numbers and texts of the summary.
    pub columns: u64,
    /// Values.
    pub values: u64,
}

/// Reason for which two recordings of a run differ.
#[derive(Debug, ThisError)]
pub enum Unequal {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] Error),
    /// Values, names or lengths differ.
    #[error("`{}` and `{}` differ: {difference}", old.display(), new.display())]
    Differs {
        /// The old build's file.
        old: PathBuf,
        /// The new build's file.
        new: PathBuf,
        /// The first difference.
        difference: String,
    },
}

/// Compares the results of a run by two builds, in two directories, bit by bit. Columns are compared by position; their
/// names may differ as listed in `renames`.
///
/// # Errors
/// If a file cannot be read, or anything differs.
pub fn compare(old: &Path, new: &Path, renames: &[Rename]) -> Result<Equal, Unequal> {
    let mut equal = Equal::default();
    for (file, name) in TABLES {
        let (old, new) = (old.join(file), new.join(file));
        if !old.exists() && !new.exists() {
            continue;
        }
        let differs = |difference: String| Unequal::Differs { old: old.clone(), new: new.clone(), difference };
        let frames = [&old, &new].map(|path| read(name, path));
        let [before, after] = frames;
        let (before, after) = (renamed(before?, name, renames), after?);
        if before.columns.len() != after.columns.len() {
            return Err(differs(format!("{} columns and {}", before.columns.len(), after.columns.len())));
        }
        for ((old_name, values), (new_name, others)) in before.columns.iter().zip(&after.columns) {
            if old_name != new_name {
                return Err(differs(format!(
                    "the column `{old_name}` is called `{new_name}`: --rename {name}.{old_name}={new_name} allows that"
                )));
            }
            if let Some(row) = first_difference(values, others) {
                return Err(differs(format!("column `{new_name}`, {row}")));
            }
            equal.columns += 1;
            equal.values += values.len() as u64;
        }
    }
    let (old, new) = (old.join(SUMMARY), new.join(SUMMARY));
    let mut before = json(&old)?;
    let mut after = json(&new)?;
    rename_keys(&mut before, renames);
    strip(&mut before);
    strip(&mut after);
    let values = same_json("", &before, &after).map_err(|difference| Unequal::Differs { old, new, difference })?;
    equal.columns += values;
    equal.values += values;
    Ok(equal)
}

fn read(name: &'static str, path: &Path) -> Result<DataFrame, Error> {
    parquet::read(name, files::read(path, PARQUET)?, path)
}

fn json(path: &Path) -> Result<Value, Error> {
    serde_json::from_slice(&files::read(path, JSON)?).map_err(Error::not_json(path))
}

fn renamed(mut frame: DataFrame, table: &str, renames: &[Rename]) -> DataFrame {
    for (name, _) in &mut frame.columns {
        if let Some(rename) = renames.iter().find(|rename| rename.table == table && rename.old == *name) {
            name.clone_from(&rename.new);
        }
    }
    frame
}

/// Returns the first difference of two columns, in words. Numbers are compared by their bits.
fn first_difference(one: &Column, other: &Column) -> Option<String> {
    fn first_unequal<T: PartialEq + std::fmt::Debug>(one: &[T], other: &[T]) -> Option<String> {
        if one.len() != other.len() {
            return Some(format!("{} rows and {}", one.len(), other.len()));
        }
        let row = one.iter().zip(other).position(|(one, other)| one != other)?;
        Some(format!("row {row}: {:?} and {:?}", one[row], other[row]))
    }
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let bits_or_none = |values: &[Option<f64>]| values.iter().map(|it| it.map(f64::to_bits)).collect::<Vec<_>>();
    match (one, other) {
        (Column::Int(one), Column::Int(other)) => first_unequal(one, other),
        (Column::OptInt(one), Column::OptInt(other)) => first_unequal(one, other),
        (Column::Real(one), Column::Real(other)) => first_unequal(&bits(one), &bits(other)),
        (Column::OptReal(one), Column::OptReal(other)) => first_unequal(&bits_or_none(one), &bits_or_none(other)),
        (Column::Flag(one), Column::Flag(other)) => first_unequal(one, other),
        (Column::Text(one), Column::Text(other)) => {
            let texts = |texts: &crate::frame::Texts| {
                (0..texts.rows.len()).map(|row| texts.get(row).to_owned()).collect::<Vec<_>>()
            };
            first_unequal(&texts(one), &texts(other))
        }
        _ => Some("values of another type".to_owned()),
    }
}

/// Renames keys of the summary, at every depth.
fn rename_keys(value: &mut Value, renames: &[Rename]) {
    match value {
        Value::Object(map) => {
            let old = std::mem::take(map);
            for (key, mut value) in old {
                rename_keys(&mut value, renames);
                let rename = renames.iter().find(|rename| rename.table == "summary" && rename.old == key);
                map.insert(rename.map_or(key, |rename| rename.new.clone()), value);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| rename_keys(value, renames)),
        _ => {}
    }
}

fn strip(summary: &mut Value) {
    if let Some(map) = summary.as_object_mut() {
        for key in IGNORED_KEYS {
            map.shift_remove(key);
        }
    }
}

/// The number of equal values.
fn same_json(path: &str, one: &Value, other: &Value) -> Result<u64, String> {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let names = |map: &serde_json::Map<String, Value>| map.keys().cloned().collect::<Vec<_>>();
            if one.keys().ne(other.keys()) {
                return Err(format!("keys of `{path}`: {:?} and {:?}", names(one), names(other)));
            }
            let pairs = one.iter().zip(other.values());
            pairs.map(|((key, one), other)| same_json(&format!("{path}/{key}"), one, other)).sum()
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let pairs = one.iter().zip(other).enumerate();
            pairs.map(|(index, (one, other))| same_json(&format!("{path}/{index}"), one, other)).sum()
        }
        // `-0.0 == 0.0`, and their texts differ.
        (Value::Number(one), Value::Number(other)) if one.to_string() != other.to_string() => {
            Err(format!("`{path}`: {one} and {other}"))
        }
        (one, other) if one == other => Ok(1),
        (one, other) => Err(format!("`{path}`: {one} and {other}")),
    }
}

/// The key that a kept run gets, and why.
#[derive(Clone, Debug)]
pub struct Adoption<'a> {
    /// Code versions of the new build.
    pub code: CodeVersions,
    /// The new build's version of the code that records runs.
    pub record: String,
    /// Evidence; its `from_key` and `from_code` are filled in from the run.
    pub evidence: Rekeyed,
    /// Columns that have new names.
    pub renames: &'a [Rename],
}

impl ResultsWriter {
    /// Keeps a finished run of another key as the plan's run of this number. Its files are checked by their hashes.
    ///
    /// # Errors
    /// If the run is damaged, its hashes are incomplete, or it cannot be written.
    pub fn adopt(&self, number: usize, from: &Path, adoption: &Adoption<'_>) -> Result<(), Error> {
        // Files of other names are not read as tables here; their hashes vouch for them.
        let known = load_known(from);
        let (manifest, is_checked) = match known {
            Ok((run, is_checked)) => (run.manifest, is_checked),
            Err(_) if !adoption.renames.is_empty() => (super::load::manifest_of(from)?, true),
            Err(error) => return Err(error),
        };
        if !is_checked {
            return Err(Error::differs(&from.join(MANIFEST), Difference::Unchecked));
        }
        let mut manifest = manifest;
        let evidence =
            Rekeyed { from_key: manifest.key.clone(), from_code: manifest.code.clone(), ..adoption.evidence.clone() };
        manifest.rekeyed.push(evidence);
        manifest.key.clone_from(self.planned_key(number));
        manifest.code = adoption.code.clone();
        manifest.record.clone_from(&adoption.record);
        self.store_run(&self.planned_folder(number), |partial| {
            if adoption.renames.is_empty() {
                link_run(from, partial)?;
            } else {
                rewrite(from, partial, adoption.renames, &mut manifest.files)?;
            }
            let path = partial.join(MANIFEST);
            let text = manifest::text_of(&manifest);
            let written = files::create_new(&path, |out| out.write_all(text.as_bytes()));
            written.and_then(|()| files::sync_directory(partial)).map_err(Error::io("write", &path))
        })
    }
}

/// Copies a run's files with new names of columns, and their hashes.
fn rewrite(from: &Path, to: &Path, renames: &[Rename], hashes: &mut Vec<FileHash>) -> Result<(), Error> {
    let known = std::mem::take(hashes);
    let is_as_written =
        |name: &str, bytes: &[u8]| known.iter().any(|known| known.name == name && known.sha256 == files::sha256(bytes));
    let (path, shown) = (from.join(SUMMARY), to.join(SUMMARY));
    let text = files::read(&path, JSON)?;
    let hash = manifest::hash_of_summary(&text).map_err(Error::not_json(&path))?;
    if !known.contains(&hash) {
        return Err(Error::differs(&path, Difference::Changed { known: MANIFEST }));
    }
    let mut summary: Value = serde_json::from_slice(&text).map_err(Error::not_json(&path))?;
    rename_keys(&mut summary, renames);
    let text = crate::json::text(&summary);
    files::create_new(&shown, |out| out.write_all(text.as_bytes())).map_err(Error::io("write", &shown))?;
    hashes.push(manifest::hash_of_summary(text.as_bytes()).map_err(Error::not_json(&path))?);
    for (file, name) in TABLES {
        let (path, shown) = (from.join(file), to.join(file));
        if !path.exists() {
            continue;
        }
        let bytes = files::read(&path, PARQUET)?;
        if !is_as_written(file, &bytes) {
            return Err(Error::differs(&path, Difference::Changed { known: MANIFEST }));
        }
        let frame = renamed(parquet::read(name, bytes, &path)?, name, renames);
        files::create_new(&shown, |out| parquet::write(&frame, out)).map_err(Error::io("write", &shown))?;
        let written = fs::read(&shown).map_err(Error::io("read", &shown))?;
        hashes.push(FileHash { name: file.to_owned(), sha256: files::sha256(&written) });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::SweepColumns;
    use crate::store::{Reuse, SweepPlan, load};
    use crate::testbed::{self, TestbedDir, write_run};

    fn evidence() -> Rekeyed {
        Rekeyed {
            from_key: String::new(),
            from_code: CodeVersions::default(),
            old_commit: "old".into(),
            new_commit: "new".into(),
            sample: vec!["a".into()],
            sample_seed: 1,
            columns: 9,
            values: 99,
            renamed: Vec::new(),
        }
    }

    #[test]
    fn equal_recordings_are_counted_and_one_bit_is_found() {
        let scratch = TestbedDir::new("rekey-compare");
        let (one, other) = (scratch.path().join("one"), scratch.path().join("other"));
        let mut run = testbed::results();
        write_run(&one, &run);
        run.summary.engine.wall_s += 1.0;
        write_run(&other, &run);
        let equal = compare(&one, &other, &[]).unwrap();
        assert!(equal.columns > 30 && equal.values > equal.columns, "{equal:?}");
        // The least change of a number of the summary.
        run.summary.flows.all.goodput_bps += 1;
        let last = scratch.path().join("last");
        write_run(&last, &run);
        let error = compare(&one, &last, &[]).unwrap_err().to_string();
        assert!(error.contains("goodput_bps"), "{error}");
    }

    #[test]
    fn rekeying_refuses_a_different_table() {
        let scratch = TestbedDir::new("rekey-table");
        let (one, other) = (scratch.path().join("one"), scratch.path().join("other"));
        let mut run = testbed::results();
        write_run(&one, &run);
        run.ports.rows.pop();
        write_run(&other, &run);
        assert!(
            matches!(compare(&one, &other, &[]), Err(Unequal::Differs { difference, .. }) if difference.contains("rows"))
        );
    }

    #[test]
    fn rekeyed_run_has_the_new_key_and_evidence() {
        let scratch = TestbedDir::new("rekey-adopt");
        let (from, out) = (scratch.path().join("old"), scratch.path().join("out"));
        let run = testbed::results();
        write_run(&from, &run);
        let plan = SweepPlan::new("test", "narrows run x", [(run.manifest.run.clone(), "new key".to_owned())]);
        let writer = ResultsWriter::new(&out, plan, "rekey").unwrap();
        let code = CodeVersions { engine: "2".into(), ..CodeVersions::default() };
        let adoption = Adoption { code: code.clone(), record: "3".into(), evidence: evidence(), renames: &[] };
        writer.adopt(0, &from, &adoption).unwrap();
        let found = writer.earlier(0, Reuse::AllSets, &[], &run.manifest.resolved, &SweepColumns::default()).unwrap();
        let crate::store::Earlier::Kept(kept) = found else { panic!("{found:?}") };
        assert_eq!((kept.manifest.key.as_str(), &kept.manifest.code), ("new key", &code));
        assert_eq!(kept.manifest.rekeyed[0].from_key, run.manifest.key);
        assert_eq!((&kept.summary, &kept.flows), (&run.summary, &run.flows));
        // The run that it was made from is as it was.
        assert_eq!(load(&from).unwrap().manifest.key, run.manifest.key);
        // A run that was edited is not adopted.
        fs::write(
            from.join(SUMMARY),
            fs::read_to_string(from.join(SUMMARY)).unwrap().replace("\"seed\": ", "\"seed\": 1"),
        )
        .unwrap();
        assert!(writer.adopt(0, &from, &adoption).is_err());
    }

    #[test]
    fn renamed_columns_are_compared_by_position() {
        let rename: Rename = "summary.drops=lost".parse().unwrap();
        let mut old = serde_json::json!({ "network": { "drops": 3, "marks": 1 } });
        rename_keys(&mut old, std::slice::from_ref(&rename));
        assert_eq!(same_json("", &old, &serde_json::json!({ "network": { "lost": 3, "marks": 1 } })), Ok(2));
        let other = same_json("", &old, &serde_json::json!({ "network": { "marks": 1, "lost": 3 } }));
        assert!(other.unwrap_err().contains("/network"));
        for text in ["flows", "flows.a", "elsewhere.a=b", "flows.=b", "flows.a="] {
            assert!(text.parse::<Rename>().is_err(), "{text}");
        }
    }

    #[test]
    fn rekeying_accepts_renamed_columns() {
        let scratch = TestbedDir::new("rekey-rename");
        let (from, out) = (scratch.path().join("old"), scratch.path().join("out"));
        let run = testbed::results();
        write_run(&from, &run);
        let plan = SweepPlan::new("test", "narrows run x", [(run.manifest.run.clone(), "new key".to_owned())]);
        let writer = ResultsWriter::new(&out, plan, "rekey").unwrap();
        let renames: Vec<Rename> = vec!["ports.port=link".parse().unwrap(), "summary.drops=lost".parse().unwrap()];
        let adoption =
            Adoption { code: CodeVersions::default(), record: String::new(), evidence: evidence(), renames: &renames };
        writer.adopt(0, &from, &adoption).unwrap();
        let place = out.join(super::super::NEXT).join(writer.planned_folder(0));
        let frame = read("ports", &place.join(PORTS)).unwrap();
        assert!(
            frame.columns.iter().any(|(name, _)| name == "link"),
            "{:?}",
            frame.columns.iter().map(|it| &it.0).collect::<Vec<_>>()
        );
        assert_eq!(compare(&from, &place, &renames).unwrap().columns, compare(&from, &from, &[]).unwrap().columns);
        assert!(compare(&from, &place, &[]).is_err());
    }
}
