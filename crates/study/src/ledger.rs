//! The ledger of a study: which runs it has, which were tried when, how long each took, and what failed why.
//!
//! It lies beside the results as an SQLite database, so that others can read it while runs go. What is finished is decided
//! by the results themselves, whose files are checked by their hashes: a ledger that is lost or damaged costs its memory
//! of failures and times, and no run.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use results::store::{LEDGER, LEDGER_JOURNAL, LEDGER_MARK, is_ledger};
use rusqlite::{Connection, ErrorCode, OpenFlags, params};

use crate::clock::seconds_since_1970;
use crate::error::Error;
use crate::notes::{Notes, Planned};

/// How long a writer or reader waits for another one.
const PATIENCE: Duration = Duration::from_secs(5);

/// The table. Times are seconds since 1970.
const TABLE: &str = "
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

/// What became of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It was not tried, or its last try was cut off.
    Waiting,
    /// It is being done, or the process that did it was killed.
    Running,
    /// Its results are there.
    Finished,
    /// It failed.
    Failed,
}

impl State {
    /// The word in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
        }
    }
}

/// A line of a ledger.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The run.
    pub run: String,
    /// What became of it.
    pub state: State,
    /// How often it was begun.
    pub tries: u32,
    /// When it was last begun, in seconds since 1970.
    pub began: Option<u64>,
    /// How long its last finished try took, in seconds.
    pub wall_s: Option<f64>,
    /// Why it failed.
    pub error: Option<String>,
}

/// The ledger of a directory of results, whose lock its writer holds.
#[derive(Default)]
pub struct Ledger(Mutex<Option<Opened>>);

/// An open ledger, until it cannot be written any more.
struct Opened {
    path: PathBuf,
    connection: Option<Connection>,
}

impl Ledger {
    /// Notes something. After the first time that this cannot be done, nothing is noted any more.
    fn note(&self, change: &str, values: impl rusqlite::Params) -> Result<(), String> {
        let mut open = self.lock();
        let Some(Opened { path, connection: held }) = &mut *open else { return Ok(()) };
        let Some(connection) = held else { return Ok(()) };
        let noted = connection.prepare_cached(change).and_then(|mut change| change.execute(values)).map(drop);
        noted.map_err(|error| {
            // Somebody who reads for long is no reason to end.
            if error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) {
                *held = None;
            }
            not_written(path, &error)
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Opened>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the user is told of a ledger that cannot be written.
fn not_written(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("warning: `{}` is not written: {error}; results are", path.display())
}

impl Notes for Ledger {
    fn planned(&self, out: &Path, runs: &[Planned<'_>]) -> Result<(), String> {
        let path = out.join(LEDGER);
        let mut begun = begin(&path, runs);
        let mut damaged = Ok(());
        if begun.as_ref().is_err_and(Trouble::is_damage) {
            // It is ours, by its mark, and holds nothing that results need.
            self.forget(out);
            begun = begin(&path, runs);
            damaged = Err(format!("`{}` was damaged: it is begun anew", path.display()));
        }
        let said = begun.as_ref().map(drop).map_err(|error| not_written(&path, error));
        *self.lock() = Some(Opened { path, connection: begun.ok() });
        said.and(damaged)
    }

    fn kept(&self, run: &str) -> Result<(), String> {
        self.note("UPDATE run SET state = 'finished', error = NULL WHERE run = ?1", params![run])
    }

    fn begun(&self, run: &str) -> Result<(), String> {
        let now = seconds_since_1970() as i64;
        let change = "UPDATE run SET state = 'running', tries = tries + 1, began_unix_s = ?2, ended_unix_s = NULL WHERE run = ?1";
        self.note(change, params![run, now])
    }

    fn ended(&self, run: &str, wall: Duration, error: Option<&str>) -> Result<(), String> {
        let state = if error.is_some() { State::Failed } else { State::Finished };
        let now = seconds_since_1970() as i64;
        let change = "UPDATE run SET state = ?2, ended_unix_s = ?3, wall_s = ?4, error = ?5 WHERE run = ?1";
        self.note(change, params![run, state.name(), now, wall.as_secs_f64(), error])
    }

    fn cut(&self, run: &str) -> Result<(), String> {
        self.note("UPDATE run SET state = 'waiting' WHERE run = ?1", params![run])
    }

    fn forget(&self, out: &Path) {
        drop(self.lock().take());
        let path = out.join(LEDGER);
        if is_ledger(&path) {
            // First what a writer that was killed left beside it: alone, nobody would know it again.
            let _ = std::fs::remove_file(out.join(LEDGER_JOURNAL));
            let _ = std::fs::remove_file(path);
        }
    }
}

fn begin(path: &Path, runs: &[Planned<'_>]) -> Result<Connection, Trouble> {
    if path.exists() && !is_ledger(path) {
        return Err(Trouble::NotOurs);
    }
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(PATIENCE)?;
    // A killed process loses nothing so; a machine that loses its power may damage it, and then it is begun anew.
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.pragma_update(None, "application_id", i32::from_be_bytes(LEDGER_MARK))?;
    connection.execute(TABLE, [])?;
    let change = connection.transaction()?;
    // Those that the study no longer has go with their results.
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
        for run in runs {
            name.execute(params![run.run])?;
            add.execute(params![run.run, run.key, run.scheme, run.point, run.seed as i64])?;
        }
    }
    change.execute("DELETE FROM run WHERE run NOT IN (SELECT run FROM planned)", [])?;
    change.execute("DROP TABLE planned", [])?;
    change.commit()?;
    Ok(connection)
}

/// Why a ledger cannot be written.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("another program wrote the file; move it away")]
    NotOurs,
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
}

impl Trouble {
    /// Whether the file is damaged.
    fn is_damage(&self) -> bool {
        let code = |error: &rusqlite::Error| error.sqlite_error_code();
        matches!(self, Self::Database(error) if matches!(code(error), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)))
    }
}

/// What the ledger of a directory of results says, in the order of the runs' names; nothing where there is none.
///
/// # Errors
/// When it cannot be read.
pub fn read(out: &Path) -> Result<Option<Vec<Entry>>, Error> {
    let path = out.join(LEDGER);
    if !path.exists() {
        return Ok(None);
    }
    if !is_ledger(&path) {
        return Err(Error::asked(format!("`{}` is not a ledger that Narrows wrote", path.display()), ""));
    }
    let entries = || -> rusqlite::Result<Vec<Entry>> {
        // A writer that was killed may have left a journal, which is rolled back first, where that may be.
        let open = |how| Connection::open_with_flags(&path, how | OpenFlags::SQLITE_OPEN_NO_MUTEX);
        let connection = open(OpenFlags::SQLITE_OPEN_READ_WRITE).or_else(|_| open(OpenFlags::SQLITE_OPEN_READ_ONLY))?;
        connection.busy_timeout(PATIENCE)?;
        let mut rows =
            connection.prepare("SELECT run, state, tries, began_unix_s, wall_s, error FROM run ORDER BY run")?;
        let entry = |row: &rusqlite::Row<'_>| {
            let word: String = row.get(1)?;
            let states = [State::Waiting, State::Running, State::Finished, State::Failed];
            Ok(Entry {
                run: row.get(0)?,
                state: states.into_iter().find(|state| state.name() == word).unwrap_or(State::Waiting),
                tries: row.get(2)?,
                began: row.get::<_, Option<i64>>(3)?.map(i64::unsigned_abs),
                wall_s: row.get(4)?,
                error: row.get(5)?,
            })
        };
        rows.query_map([], entry)?.collect()
    };
    let read = entries().map_err(|error| Error::asked(format!("cannot read `{}`: {error}", path.display()), ""))?;
    Ok(Some(read))
}
