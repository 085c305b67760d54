//! The ledger of a study: its runs, their attempts and durations, and the errors of failed runs.
//!
//! It is an SQLite database next to the results, so that others can read it during the runs. The results themselves decide
//! whether a run is finished; their files are checked by hash. A lost or damaged ledger loses failures and times, but no
//! run.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use results::store::{LEDGER, LEDGER_JOURNAL, LEDGER_MARK, is_ledger};
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql, TransactionBehavior, params};

use crate::clock::{Stopwatch, seconds_since_1970};
use crate::error::Error;
use crate::recorder::{AttemptRecorder, StudyRun};

/// Time that a reader waits for a writer, and that the last write of a study waits for a reader. Longer delays by
/// another program are reported.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Time between attempts to write while another program holds a lock.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The table. Times are seconds since 1970.
const CREATE_TABLE: &str = "
    CREATE TABLE IF NOT EXISTS run (
        run TEXT PRIMARY KEY,
        key TEXT NOT NULL,
        scheme TEXT NOT NULL,
        point TEXT NOT NULL,
        seed INTEGER NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'finished', 'failed')),
        tries INTEGER NOT NULL DEFAULT 0,
        began_unix_s INTEGER,
        ended_unix_s INTEGER,
        wall_s REAL,
        error TEXT
    ) STRICT, WITHOUT ROWID";

/// State of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Waiting: not attempted, or the last attempt was interrupted.
    Waiting,
    /// In progress, or the process that executed it was killed.
    Running,
    /// Its results are complete.
    Finished,
    /// The run failed.
    Failed,
}

impl State {
    /// Returns the state's name in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
        }
    }
}

/// An entry of a ledger.
#[derive(Clone, PartialEq, Debug)]
pub struct LedgerEntry {
    /// The run.
    pub run: String,
    /// Its state.
    pub state: State,
    /// Number of attempts.
    pub tries: u32,
    /// Start of the last attempt, in seconds since 1970.
    pub began: Option<u64>,
    /// Duration of the last finished attempt, in seconds.
    pub wall_s: Option<f64>,
    /// Error of a failed run.
    pub error: Option<String>,
}

/// The ledger of a results directory. Its writer holds the directory's lock.
///
/// Runs do not wait for it: while another program prevents writes, notes are queued and retried.
#[derive(Default)]
pub struct Ledger(Mutex<Option<OpenLedger>>);

/// An open ledger.
struct OpenLedger {
    path: PathBuf,
    /// None after an error that prevents further writes.
    connection: Option<Connection>,
    /// Queue of notes to be written, in order.
    waiting: Vec<Note>,
    /// Time since the oldest of them could not be written.
    blocked_since: Option<Stopwatch>,
    /// Time since the last attempt that another program prevented.
    last_attempt: Option<Stopwatch>,
    /// Set once the user has been warned of the other program.
    warned: bool,
}

/// A change of the ledger.
enum Note {
    /// The study has these runs and no other.
    Planned(Vec<LedgerRow>),
    /// Results of a run exist from an earlier command.
    Reused { run: String },
    /// A run began.
    Started { run: String, now_unix_s: i64 },
    /// A run ended.
    Ended { run: String, now_unix_s: i64, wall_s: f64, error: Option<String> },
    /// A run was interrupted.
    Interrupted { run: String },
}

/// A planned run.
struct LedgerRow {
    run: String,
    key: String,
    scheme: String,
    point: String,
    seed: i64,
}

impl Note {
    fn write(&self, change: &Connection) -> rusqlite::Result<()> {
        let update = |set: &str, values: &[&dyn ToSql]| {
            let text = format!("UPDATE run SET {set} WHERE run = ?1");
            change.prepare_cached(&text).and_then(|mut update| update.execute(values)).map(drop)
        };
        match self {
            Self::Planned(rows) => plan(change, rows),
            Self::Reused { run } => update("state = 'finished', error = NULL", &[run]),
            Self::Started { run, now_unix_s } => update(
                "state = 'running', tries = tries + 1, began_unix_s = ?2, ended_unix_s = NULL",
                &[run, now_unix_s],
            ),
            Self::Ended { run, now_unix_s, wall_s, error } => {
                let state = if error.is_some() { State::Failed } else { State::Finished };
                update(
                    "state = ?2, ended_unix_s = ?3, wall_s = ?4, error = ?5",
                    &[run, &state.name(), now_unix_s, wall_s, error],
                )
            }
            Self::Interrupted { run } => update("state = 'waiting'", &[run]),
        }
    }
}

impl OpenLedger {
    /// Opens the ledger and notes the study's runs.
    fn begin(path: &Path, runs: &[StudyRun<'_>]) -> Result<Self, LedgerError> {
        if path.exists() && !is_ledger(path) {
            return Err(LedgerError::NotOurs);
        }
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::ZERO)?;
        // A killed process loses nothing this way. A power failure may damage the file, and then it is created again.
        connection.pragma_update(None, "synchronous", "OFF")?;
        let row = |it: &StudyRun<'_>| LedgerRow {
            run: it.run.to_owned(),
            key: it.key.to_owned(),
            scheme: it.scheme.to_owned(),
            point: it.point.clone(),
            seed: it.seed as i64,
        };
        let mut opened = Self {
            path: path.to_path_buf(),
            connection: Some(connection),
            waiting: vec![Note::Planned(runs.iter().map(row).collect())],
            blocked_since: None,
            last_attempt: None,
            warned: false,
        };
        opened.write()?;
        Ok(opened)
    }

    /// Writes a note and all queued before it, unless another program prevented a write a moment ago.
    fn add(&mut self, note: Note) -> Result<(), String> {
        if self.connection.is_none() {
            return Ok(());
        }
        self.waiting.push(note);
        if self.last_attempt.as_ref().is_some_and(|last_attempt| last_attempt.elapsed() < RETRY_INTERVAL) {
            return Ok(());
        }
        self.write_queued()?;
        if self.blocked_since.as_ref().is_some_and(|since| since.elapsed() >= BUSY_TIMEOUT) {
            return self.warn_of_lock();
        }
        Ok(())
    }

    /// Writes the queued notes, waiting at most the usual time.
    fn end(&mut self) -> Result<(), String> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        if let Some(connection) = &self.connection {
            let _ = connection.busy_timeout(BUSY_TIMEOUT);
        }
        self.write_queued()?;
        if self.waiting.is_empty() { Ok(()) } else { self.warn_of_lock() }
    }

    /// Writes the queued notes. After the first error other than another program's lock, nothing is recorded any more.
    fn write_queued(&mut self) -> Result<(), String> {
        self.write().map_err(|error| {
            self.connection = None;
            self.waiting.clear();
            not_written(&self.path, &error)
        })
    }

    /// Writes the queued notes in one transaction. While another program has a lock, all of them stay queued.
    fn write(&mut self) -> rusqlite::Result<()> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        let mut write = || {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            self.waiting.iter().try_for_each(|note| note.write(&change))?;
            change.commit()
        };
        match write() {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                self.last_attempt = Some(Stopwatch::start());
                self.blocked_since.get_or_insert_with(Stopwatch::start);
                Ok(())
            }
            Ok(()) => {
                self.waiting.clear();
                (self.blocked_since, self.last_attempt) = (None, None);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Warns the user once that another program prevents writes.
    fn warn_of_lock(&mut self) -> Result<(), String> {
        if std::mem::replace(&mut self.warned, true) {
            return Ok(());
        }
        Err(format!(
            "warning: another program has kept `{}` open for reading for {} s, so notes of runs wait until it closes it; notes \
             that wait when the command ends are lost, results are not",
            self.path.display(),
            BUSY_TIMEOUT.as_secs()
        ))
    }
}

impl Ledger {
    fn note(&self, note: impl FnOnce() -> Note) -> Result<(), String> {
        self.lock().as_mut().map_or(Ok(()), |opened| opened.add(note()))
    }

    fn lock(&self) -> MutexGuard<'_, Option<OpenLedger>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the warning about a ledger that cannot be written.
fn not_written(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("warning: `{}` is not written: {error}; results are", path.display())
}

fn now_unix_s() -> i64 {
    seconds_since_1970() as i64
}

impl AttemptRecorder for Ledger {
    fn planned(&self, out: &Path, runs: &[StudyRun<'_>]) -> Result<(), String> {
        let path = out.join(LEDGER);
        let mut opened = OpenLedger::begin(&path, runs);
        let mut damaged = Ok(());
        if opened.as_ref().is_err_and(LedgerError::is_damage) {
            // It is ours, by its mark, and holds nothing that results need.
            self.clear(out);
            opened = OpenLedger::begin(&path, runs);
            damaged = Err(format!("`{}` was damaged: it is replaced by a new one", path.display()));
        }
        let message = opened.as_ref().map(drop).map_err(|error| not_written(&path, error));
        *self.lock() = opened.ok();
        message.and(damaged)
    }

    fn reused(&self, run: &str) -> Result<(), String> {
        self.note(|| Note::Reused { run: run.to_owned() })
    }

    fn started(&self, run: &str) -> Result<(), String> {
        self.note(|| Note::Started { run: run.to_owned(), now_unix_s: now_unix_s() })
    }

    fn ended(&self, run: &str, wall: Duration, error: Option<&str>) -> Result<(), String> {
        self.note(|| Note::Ended {
            run: run.to_owned(),
            now_unix_s: now_unix_s(),
            wall_s: wall.as_secs_f64(),
            error: error.map(str::to_owned),
        })
    }

    fn interrupted(&self, run: &str) -> Result<(), String> {
        self.note(|| Note::Interrupted { run: run.to_owned() })
    }

    fn end(&self) -> Result<(), String> {
        self.lock().as_mut().map_or(Ok(()), OpenLedger::end)
    }

    fn clear(&self, out: &Path) {
        drop(self.lock().take());
        let path = out.join(LEDGER);
        if is_ledger(&path) {
            // First the leftovers of a writer that was killed: without the ledger, they could not be recognised later.
            let _ = std::fs::remove_file(out.join(LEDGER_JOURNAL));
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Creates the table if there is none, and enters the study's runs. Runs that are no longer in the study are deleted.
fn plan(change: &Connection, rows: &[LedgerRow]) -> rusqlite::Result<()> {
    change.pragma_update(None, "application_id", i32::from_be_bytes(LEDGER_MARK))?;
    change.execute(CREATE_TABLE, [])?;
    change.execute("CREATE TEMP TABLE planned (run TEXT PRIMARY KEY) WITHOUT ROWID", [])?;
    {
        let mut name = change.prepare("INSERT OR IGNORE INTO planned VALUES (?1)")?;
        let mut add = change.prepare(
            "INSERT INTO run (run, key, scheme, point, seed, state) VALUES (?1, ?2, ?3, ?4, ?5, 'waiting')
             ON CONFLICT (run) DO UPDATE SET key = excluded.key, point = excluded.point, seed = excluded.seed,
                 state = 'waiting', tries = iif(key = excluded.key, tries, 0), error = iif(key = excluded.key, error, NULL),
                 began_unix_s = iif(key = excluded.key, began_unix_s, NULL), wall_s = iif(key = excluded.key, wall_s, NULL),
                 ended_unix_s = iif(key = excluded.key, ended_unix_s, NULL)",
        )?;
        for LedgerRow { run, key, scheme, point, seed } in rows {
            name.execute(params![run])?;
            add.execute(params![run, key, scheme, point, seed])?;
        }
    }
    change.execute("DELETE FROM run WHERE run NOT IN (SELECT run FROM planned)", [])?;
    change.execute("DROP TABLE planned", []).map(drop)
}

/// Error of a ledger that cannot be written.
#[derive(Debug, thiserror::Error)]
enum LedgerError {
    #[error("another program wrote the file; move it away")]
    NotOurs,
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
}

impl LedgerError {
    /// Returns whether the file is damaged.
    fn is_damage(&self) -> bool {
        let code = |error: &rusqlite::Error| error.sqlite_error_code();
        matches!(self, Self::Database(error) if matches!(code(error), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)))
    }
}

/// Returns the entries of the ledger in a results directory, in the order of the runs' names; none if there is no
/// ledger.
///
/// # Errors
/// If it cannot be read.
pub fn read(out: &Path) -> Result<Option<Vec<LedgerEntry>>, Error> {
    let path = out.join(LEDGER);
    if !path.exists() {
        return Ok(None);
    }
    if !is_ledger(&path) {
        return Err(Error::invalid_request(format!("`{}` is not a ledger that Narrows wrote", path.display()), ""));
    }
    let entries = || -> rusqlite::Result<Vec<LedgerEntry>> {
        // A writer that was killed may have left a journal, which is rolled back first, where that may be.
        let open = |how| Connection::open_with_flags(&path, how | OpenFlags::SQLITE_OPEN_NO_MUTEX);
        let connection = open(OpenFlags::SQLITE_OPEN_READ_WRITE).or_else(|_| open(OpenFlags::SQLITE_OPEN_READ_ONLY))?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        let mut rows =
            connection.prepare("SELECT run, state, tries, began_unix_s, wall_s, error FROM run ORDER BY run")?;
        let entry = |row: &rusqlite::Row<'_>| {
            let name: String = row.get(1)?;
            let states = [State::Waiting, State::Running, State::Finished, State::Failed];
            Ok(LedgerEntry {
                run: row.get(0)?,
                state: states.into_iter().find(|state| state.name() == name).unwrap_or(State::Waiting),
                tries: row.get(2)?,
                began: row.get::<_, Option<i64>>(3)?.map(i64::unsigned_abs),
                wall_s: row.get(4)?,
                error: row.get(5)?,
            })
        };
        rows.query_map([], entry)?.collect()
    };
    let read =
        entries().map_err(|error| Error::invalid_request(format!("cannot read `{}`: {error}", path.display()), ""))?;
    Ok(Some(read))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct LedgerDir(PathBuf);

    impl LedgerDir {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("narrows-ledger-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for LedgerDir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn plan_of(ledger: &Ledger, out: &Path, names: &[String]) {
        let run = |run: &'static str| StudyRun { run, key: "k", scheme: "s", point: "{}".to_owned(), seed: 1 };
        let names = names.iter().map(|name| run(name.clone().leak())).collect::<Vec<_>>();
        ledger.planned(out, &names).unwrap();
    }

    /// A program that has begun to read the ledger and pauses, like one that shows it page by page.
    fn reader(out: &Path) -> Connection {
        let reader = Connection::open(out.join(LEDGER)).unwrap();
        reader.execute_batch("BEGIN; SELECT * FROM run").unwrap();
        let begun: i64 = reader.query_row("SELECT count(*) FROM run", [], |row| row.get(0)).unwrap();
        assert!(begun > 0);
        reader
    }

    fn finished(out: &Path) -> usize {
        read(out).unwrap().unwrap().iter().filter(|entry| entry.state == State::Finished).count()
    }

    /// Runs do not wait for a reader that never finishes. Their notes are written after it has finished.
    #[test]
    fn concurrent_ledger_reader_does_not_block_runs() {
        let scratch = LedgerDir::new("reader");
        let ledger = Ledger::default();
        let names: Vec<String> = (0..100).map(|run| format!("run {run}")).collect();
        plan_of(&ledger, &scratch.0, &names);
        let reader = reader(&scratch.0);
        let clock = Stopwatch::start();
        for name in &names {
            ledger.started(name).unwrap();
            ledger.ended(name, Duration::from_secs(1), None).unwrap();
        }
        // Each note alone would wait that long if it waited for the reader.
        assert!(clock.elapsed() < BUSY_TIMEOUT, "{:?}", clock.elapsed());
        assert_eq!(finished(&scratch.0), 0);
        drop(reader);
        ledger.end().unwrap();
        let entries = read(&scratch.0).unwrap().unwrap();
        assert!(entries.len() == 100 && entries.iter().all(|it| it.state == State::Finished && it.tries == 1));
    }

    /// Also one that read before the study began. Of one that never ends there is one warning.
    #[test]
    fn blocking_ledger_reader_is_warned_of_once() {
        let scratch = LedgerDir::new("warned");
        let names = ["a".to_owned(), "b".to_owned()];
        plan_of(&Ledger::default(), &scratch.0, &names);
        let reader = reader(&scratch.0);
        let ledger = Ledger::default();
        plan_of(&ledger, &scratch.0, &names);
        ledger.reused("a").unwrap();
        let message = ledger.end().unwrap_err();
        assert!(message.contains("another program has kept") && message.contains("results are not"), "{message}");
        ledger.reused("b").unwrap();
        ledger.end().unwrap();
        drop(reader);
        ledger.end().unwrap();
        assert_eq!(finished(&scratch.0), 2);
    }
}
