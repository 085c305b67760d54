//! Record of reproduced figures: CSV files in `PAPER/results/SCALE` of a directory of papers.
//!
//! `figures.csv`, `claims.csv` and `causes.csv` have rows of all figures, and each figure has a file of its tables with
//! a row per cell. A figure's rows are replaced when that figure is run again; other rows keep their values. Files are
//! written in one form, so that equal records are equal bytes: a byte order mark, CRLF line ends and unneeded quotation
//! marks of a file that was edited are read, and not written again.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use files::{AtomicFile, FileIdentity, SizeLimit};
use results::claims::Verdict;
use results::claims::suspects::TrialOutcome;

use crate::exit::CommandFailure;
use crate::named_file::print_leftovers;

/// A file of a record.
const FILE: SizeLimit = SizeLimit { kind: "a file of recorded results", mib: 64 };

/// The folder of a paper's record, next to its scenario files.
const FOLDER: &str = "results";

/// Kind of a file in a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RecordKind {
    /// A row per figure: what it is, what was scaled, seeds, version.
    Figures,
    /// A row per claim.
    Claims,
    /// A row per claim and suspected cause.
    Causes,
    /// One figure's tables: a row per cell.
    Tables,
}

impl RecordKind {
    /// The files with rows of all figures.
    pub(crate) const SHARED: [Self; 3] = [Self::Figures, Self::Claims, Self::Causes];

    pub(crate) const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Figures => &["figure", "in_paper", "title", "scaled", "seeds", "version", "engine"],
            Self::Claims => &["figure", "id", "claim", "paper", "measured", "verdict", "note", "seeds"],
            Self::Causes => &[
                "figure",
                "claim",
                "cause",
                "text",
                "change",
                "measured",
                "with_change",
                "outcome",
                "removed_percent",
                "seeds",
                "engine",
            ],
            Self::Tables => &["table", "point", "scheme", "metric", "mean", "half", "unit", "note"],
        }
    }

    /// File stem; `None` for a figure's own file, which has the figure's name.
    pub(crate) const fn stem(self) -> Option<&'static str> {
        match self {
            Self::Figures => Some("figures"),
            Self::Claims => Some("claims"),
            Self::Causes => Some("causes"),
            Self::Tables => None,
        }
    }

    /// Number of leading columns that identify a row: no two rows have the same values there, and none is empty. Zero if rows
    /// are not identified.
    const fn key_columns(self) -> usize {
        match self {
            Self::Figures => 1,
            Self::Claims => 2,
            Self::Causes => 3,
            Self::Tables => 0,
        }
    }

    /// Returns what a column accepts instead of a value; none if it accepts the value.
    fn expected(self, column: &str, value: &str) -> Option<String> {
        let one_of = |known: &[&str]| (!known.contains(&value)).then(|| format!("one of: {}", known.join(", ")));
        match (self, column) {
            (Self::Claims, "verdict") => one_of(&Verdict::ALL.map(Verdict::name)),
            (Self::Causes, "outcome") => one_of(&TrialOutcome::ALL.map(TrialOutcome::name)),
            (Self::Claims | Self::Causes, "seeds") if !is_count(value) => Some("a number of seeds".to_owned()),
            (Self::Figures, "seeds") if !value.split(" to ").all(is_count) => {
                Some("a number of seeds, or a range such as `2 to 5`".to_owned())
            }
            (Self::Causes, "removed_percent") if !value.is_empty() && !value.parse().is_ok_and(f64::is_finite) => {
                Some("a number, or nothing".to_owned())
            }
            _ => None,
        }
    }
}

/// Returns whether a text is a number over zero, without a sign.
fn is_count(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u32>().is_ok_and(|count| count > 0)
}

/// A row: one text per column of its kind.
pub(crate) type RecordRow = Vec<String>;

/// Returns the value of a row's column; empty if its kind has no such column.
pub(crate) fn field<'a>(kind: RecordKind, row: &'a [String], column: &str) -> &'a str {
    let index = kind.columns().iter().position(|&known| known == column);
    index.and_then(|index| row.get(index)).map_or("", String::as_str)
}

/// The record of one figure.
pub(crate) struct FigureRecord {
    /// Row of `figures.csv`.
    pub(crate) figure: RecordRow,
    /// Rows of `claims.csv`.
    pub(crate) claims: Vec<RecordRow>,
    /// Rows of `causes.csv`; none if no cause was tried: recorded ones stay.
    pub(crate) causes: Option<Vec<RecordRow>>,
    /// Rows of the figure's own file.
    pub(crate) tables: Vec<RecordRow>,
}

/// The folder of a paper's record at a scale.
pub(crate) struct RecordFolder(PathBuf);

impl RecordFolder {
    /// The folder in a directory of papers. `paper` and `scale` are names.
    pub(crate) fn new(papers: &Path, paper: &str, scale: &str) -> Self {
        Self(papers.join(paper).join(FOLDER).join(scale))
    }

    fn path(&self, kind: RecordKind, figure: &str) -> PathBuf {
        self.0.join(format!("{}.csv", kind.stem().unwrap_or(figure)))
    }

    /// Checks that a figure's rows can be replaced. Changes nothing.
    ///
    /// # Errors
    /// If a file there is not of its kind or cannot be written, or the figure has the name of a shared file.
    pub(crate) fn check(&self, figure: &str) -> Result<(), CommandFailure> {
        if let Some(reserved) = RecordKind::SHARED.into_iter().find(|kind| kind.stem() == Some(figure)) {
            return Err(CommandFailure::Input(format!(
                "error: --results: a figure `{figure}` would be recorded in `{}`, which has rows of all figures\nhelp: rename \
                 its scenario file; reserved names: {}",
                self.path(reserved, figure).display(),
                RecordKind::SHARED.map(|kind| format!("{}.toml", kind.stem().unwrap_or_default())).join(", ")
            )));
        }
        // A folder that is missing is created under the nearest one that exists.
        if let Some(parent) = self.0.ancestors().find(|it| it.as_os_str().is_empty() || it.symlink_metadata().is_ok())
            && parent != self.0
        {
            if !parent.as_os_str().is_empty() && !parent.is_dir() {
                return Err(CommandFailure::file("create", &self.0, &ErrorKind::NotADirectory.into()));
            }
            return Ok(files::writable(&parent.join(FOLDER))?);
        }
        for kind in RecordKind::SHARED.into_iter().chain([RecordKind::Tables]) {
            let path = self.path(kind, figure);
            RecordFile::read(&path, kind)?;
            files::writable(&path)?;
            print_leftovers(&path);
        }
        Ok(())
    }

    /// Replaces the rows of a figure. Each file is replaced as a whole, after all of them were read.
    ///
    /// # Errors
    /// If a file is not of its kind, cannot be written, or was changed by others meanwhile.
    pub(crate) fn put(&self, figure: &str, record: FigureRecord) -> Result<(), CommandFailure> {
        std::fs::create_dir_all(&self.0).map_err(|error| CommandFailure::file("create", &self.0, &error))?;
        let mut shared = [Some(vec![record.figure]), Some(record.claims), record.causes].into_iter();
        let mut changed = Vec::new();
        for kind in RecordKind::SHARED {
            let Some(rows) = shared.next().flatten() else { continue };
            let mut file = RecordFile::read(&self.path(kind, figure), kind)?;
            file.rows.retain(|row| row.first().is_none_or(|of| of != figure));
            file.rows.extend(rows);
            file.rows.sort_by_key(|row| natural(row.first().map_or("", String::as_str)));
            changed.push(file);
        }
        let mut tables = RecordFile::read(&self.path(RecordKind::Tables, figure), RecordKind::Tables)?;
        tables.rows = record.tables;
        changed.push(tables);
        changed.iter().try_for_each(RecordFile::write)
    }

    /// Reads a file with rows of all figures; empty if it does not exist.
    ///
    /// # Errors
    /// If the file is not of this kind.
    pub(crate) fn rows(&self, kind: RecordKind) -> Result<Vec<RecordRow>, CommandFailure> {
        Ok(RecordFile::read(&self.path(kind, ""), kind)?.rows)
    }
}

/// Returns the papers with a record in a directory of papers, sorted by name.
///
/// # Errors
/// If the directory cannot be read.
pub(crate) fn recorded_papers(papers: &Path) -> Result<Vec<String>, CommandFailure> {
    let entries = std::fs::read_dir(papers).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = entries.map_err(|error| CommandFailure::file("read", papers, &error))?;
    let mut names = Vec::new();
    for entry in entries {
        let folder = entry.path().join(FOLDER);
        match folder.metadata() {
            Ok(metadata) if !metadata.is_dir() => continue,
            Ok(_) => {}
            Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => continue,
            Err(error) => return Err(CommandFailure::file("read", &folder, &error)),
        }
        names.push(entry.file_name().into_string().map_err(|_| {
            CommandFailure::Input(format!(
                "error: the name of `{}` is not UTF-8\nhelp: rename the folder: it is the name of a paper",
                entry.path().display()
            ))
        })?);
    }
    names.sort_unstable();
    Ok(names)
}

/// Orders `fig9` before `fig10`.
pub(crate) fn natural(name: &str) -> (String, u32, String) {
    let start = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
    let rest = &name[start..];
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    (name[..start].to_owned(), rest[..end].parse().unwrap_or(0), rest[end..].to_owned())
}

/// A file of a record as it was read.
struct RecordFile {
    path: PathBuf,
    kind: RecordKind,
    rows: Vec<RecordRow>,
    /// The file that was read: no other one is replaced.
    identity: FileIdentity,
}

impl RecordFile {
    /// Reads a file, if it exists.
    fn read(path: &Path, kind: RecordKind) -> Result<Self, CommandFailure> {
        let identity = FileIdentity::of(path);
        let text = match files::text(path, FILE) {
            Err(error) if error.is_missing() => String::new(),
            text => text?,
        };
        let rows = parsed(&text, kind).map_err(|error| {
            CommandFailure::Input(format!(
                "error: {}:{}: {}\nhelp: correct the file or remove it; `narrows reproduce FIGURE --results DIR` writes it again",
                path.display(),
                error.line,
                error.message
            ))
        })?;
        Ok(Self { path: path.to_path_buf(), kind, rows, identity })
    }

    /// Writes the file in the place of the one that was read. A file without rows is not made.
    fn write(&self) -> Result<(), CommandFailure> {
        if self.rows.is_empty() && !self.path.exists() {
            return Ok(());
        }
        let text = self.text().map_err(anyhow::Error::from)?;
        let write = || {
            let mut draft = AtomicFile::replacing(&self.path, self.identity)?;
            draft.write_all(text.as_bytes())?;
            draft.put()
        };
        write().map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => CommandFailure::Input(format!(
                "error: cannot write `{}`: {error}\nhelp: repeat the command: it replaces its rows in the current file, and keeps \
                 finished runs",
                self.path.display()
            )),
            _ => CommandFailure::file("write", &self.path, &error),
        })
    }

    fn text(&self) -> Result<String, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.kind.columns())?;
        for row in &self.rows {
            // A row is a line.
            writer.write_record(row.iter().map(|text| text.replace("\r\n", " ").replace(['\n', '\r'], " ")))?;
        }
        let bytes = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// A wrong line of a file.
#[derive(Debug)]
struct LineError {
    line: u64,
    /// The value and what is accepted.
    message: String,
}

/// Reads the rows of a file's text; none of an empty file.
fn parsed(text: &str, kind: RecordKind) -> Result<Vec<RecordRow>, LineError> {
    let columns = kind.columns();
    // A row is a line. A quotation mark that is missing would join the rows after it.
    if let Some((line, _)) = (1..).zip(text.lines()).find(|(_, text)| text.matches('"').count() % 2 == 1) {
        let message = "a quotation mark is missing, or a field has a line end; expected one row per line".to_owned();
        return Err(LineError { line, message });
    }
    let (mut rows, mut keys) = (Vec::new(), BTreeSet::new());
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    for (number, record) in reader.records().enumerate() {
        let record = record.map_err(|error| LineError {
            line: error.position().map_or(1, csv::Position::line),
            message: format!("{error}; expected CSV"),
        })?;
        let line = record.position().map_or(1, csv::Position::line);
        let row: RecordRow = record.iter().map(str::to_owned).collect();
        if number == 0 {
            if row != columns {
                let message = format!("found the columns `{}`; expected `{}`", row.join(","), columns.join(","));
                return Err(LineError { line, message });
            }
            continue;
        }
        if row.len() != columns.len() {
            let message = format!("found {}; expected {}", study::count(row.len(), "field"), columns.len());
            return Err(LineError { line, message });
        }
        for (column, value) in columns.iter().zip(&row) {
            if let Some(expected) = kind.expected(column, value) {
                return Err(LineError { line, message: format!("{column} `{value}`; expected {expected}") });
            }
        }
        let key = &row[..kind.key_columns()];
        if let Some(empty) = key.iter().position(String::is_empty) {
            return Err(LineError { line, message: format!("no {}; expected a name", columns[empty]) });
        }
        if !key.is_empty() && !keys.insert(key.to_vec()) {
            let key = columns.iter().zip(key).map(|(column, value)| format!("{column} `{value}`"));
            let key = key.collect::<Vec<_>>().join(", ");
            return Err(LineError { line, message: format!("another row with {key}; expected one") });
        }
        rows.push(row);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn claim(figure: &str, id: &str, verdict: &str) -> RecordRow {
        [figure, id, "a, \"b\"\nc", "2", "1 ± 0.5", verdict, "", "5"].map(str::to_owned).to_vec()
    }

    fn record(figure: &str, ids: &[&str], causes: Option<Vec<RecordRow>>) -> FigureRecord {
        let mut of = vec!["1".to_owned(); RecordKind::Figures.columns().len()];
        figure.clone_into(&mut of[0]);
        let claims = ids.iter().map(|id| claim(figure, id, "reproduced")).collect();
        let tables = vec![["T", "", "a", "FCT", "1", "", "ms", ""].map(str::to_owned).to_vec()];
        FigureRecord { figure: of, claims, causes, tables }
    }

    #[test]
    fn figures_are_in_the_order_of_their_numbers() {
        let mut names = ["uno/fig10", "uno/fig9", "uno/fig1b", "uno/fig8-mixed"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["uno/fig1b", "uno/fig8-mixed", "uno/fig9", "uno/fig10"]);
    }

    #[test]
    fn a_figures_rows_are_replaced_and_others_stay() {
        let papers = std::env::temp_dir().join(format!("narrows-record-{}", std::process::id()));
        let folder = RecordFolder::new(&papers, "p", "quick");
        folder.check("fig10").unwrap();
        folder.put("fig10", record("fig10", &["z", "a"], None)).unwrap();
        let cause = RecordKind::Causes.columns().iter().map(|column| match *column {
            "figure" => "fig9".to_owned(),
            "outcome" => "shown".to_owned(),
            "seeds" => "5".to_owned(),
            "claim" | "cause" => "b".to_owned(),
            _ => String::new(),
        });
        folder.put("fig9", record("fig9", &["b"], Some(vec![cause.collect()]))).unwrap();
        let ids = || {
            let rows = folder.rows(RecordKind::Claims).unwrap();
            rows.iter().map(|row| format!("{}/{}", row[0], row[1])).collect::<Vec<_>>()
        };
        assert_eq!(ids(), ["fig9/b", "fig10/z", "fig10/a"]);
        let path = papers.join("p/results/quick/claims.csv");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("fig9,b,\"a, \"\"b\"\" c\",2,1 ± 0.5,reproduced,,5\n"), "{text}");
        // Equal records are equal bytes. Causes stay unless they were tried.
        folder.put("fig9", record("fig9", &["b"], None)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert_eq!(folder.rows(RecordKind::Causes).unwrap().len(), 1);
        folder.put("fig9", record("fig9", &[], Some(Vec::new()))).unwrap();
        assert_eq!(
            (ids(), folder.rows(RecordKind::Causes).unwrap().len()),
            (vec!["fig10/z".into(), "fig10/a".into()], 0)
        );
        assert!(folder.check("claims").unwrap_err().to_string().contains("reserved names: figures.toml, claims.toml"));
        std::fs::write(papers.join("notes.md"), "# Notes\n").unwrap();
        assert_eq!(recorded_papers(&papers).unwrap(), ["p"]);
        // A paper is not left out because of its name.
        let unnamed = papers.join(OsStr::from_bytes(b"q\xff"));
        std::fs::create_dir_all(unnamed.join(FOLDER)).unwrap();
        assert!(recorded_papers(&papers).unwrap_err().to_string().contains("is not UTF-8"));
        std::fs::remove_dir_all(&papers).unwrap();
    }

    #[test]
    fn edited_files_are_written_in_one_form() {
        let papers = std::env::temp_dir().join(format!("narrows-record-form-{}", std::process::id()));
        let folder = RecordFolder::new(&papers, "p", "quick");
        for figure in ["fig9", "fig10"] {
            folder.put(figure, record(figure, &["b"], None)).unwrap();
        }
        let path = papers.join("p/results/quick/claims.csv");
        let text = std::fs::read_to_string(&path).unwrap();
        let edited = format!("\u{feff}{}", text.replace('\n', "\r\n").replace(",b,", ",\"b\","));
        std::fs::write(&path, edited).unwrap();
        folder.put("fig9", record("fig9", &["b"], None)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        std::fs::remove_dir_all(&papers).unwrap();
    }

    #[test]
    fn invalid_lines_are_reported() {
        let head = RecordKind::Claims.columns().join(",");
        let parse_error = |text: &str| {
            let error = parsed(text, RecordKind::Claims).unwrap_err();
            (error.line, error.message)
        };
        assert!(parsed("", RecordKind::Claims).unwrap().is_empty());
        let (line, message) = parse_error("figure,id\n");
        assert!(line == 1 && message.contains("`figure,id`; expected `figure,id,claim,"), "{message}");
        assert_eq!(
            parse_error(&format!("{head}\n\nf,i,\"a, b\",2,1,reproduced,,5\nf,i\n")),
            (4, "found 2 fields; expected 8".into())
        );
        let (line, message) = parse_error(&format!("{head}\nf,i,t,2,1,proved,,5\n"));
        assert!(
            line == 2 && message.starts_with("verdict `proved`; expected one of: reproduced, direction only,"),
            "{message}"
        );
        assert_eq!(
            parse_error(&format!("{head}\nf,i,t,2,1,reproduced,,many\n")),
            (2, "seeds `many`; expected a number of seeds".into())
        );
        // A missing quotation mark takes no rows with it.
        for open in ["f,i,t,2,1,reproduced,\"note,5\ng,i,t,2,1,reproduced,n\",5\n", "f,i,t,2,1,reproduced,,\"5"] {
            let (line, message) = parse_error(&format!("{head}\n{open}"));
            assert!(line == 2 && message.starts_with("a quotation mark is missing"), "{line}: {message}");
        }
        let row = "f,i,t,2,1,reproduced,,5\n";
        assert_eq!(
            parse_error(&format!("{head}\n{row}{row}")),
            (3, "another row with figure `f`, id `i`; expected one".into())
        );
        assert_eq!(parse_error(&format!("{head}\n,i,t,2,1,reproduced,,5\n")), (2, "no figure; expected a name".into()));
        for seeds in ["0", "+5", "-1", "4294967296"] {
            let (_, message) = parse_error(&format!("{head}\nf,i,t,2,1,reproduced,,{seeds}\n"));
            assert!(message.ends_with("expected a number of seeds"), "{message}");
        }
        let causes = RecordKind::Causes.columns().join(",");
        let share = format!("{causes}\nf,i,c,t,x,1,2,shown,NaN,5,e\n");
        assert_eq!(
            parsed(&share, RecordKind::Causes).unwrap_err().message,
            "removed_percent `NaN`; expected a number, or nothing"
        );
    }
}
