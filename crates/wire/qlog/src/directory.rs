//! A directory of logs, and the thread that writes them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proto::observe::{ConnectionStart, Observer, ObserverMaker};

use crate::frames::Hex;
use crate::log::{ConnectionLog, LogHandle};
use crate::record::end;
use crate::wakeup::{Urgency, WriterWakeup};

/// Directory of connection logs: one new file for each connection; existing files are kept. When it is dropped, all
/// events so far are written, and none after.
pub struct Directory {
    path: PathBuf,
    wakeup: Arc<WriterWakeup>,
    logs: Arc<Mutex<Vec<Arc<ConnectionLog>>>>,
    thread: Option<JoinHandle<()>>,
}

impl Directory {
    /// Opens the log directory, and creates it if it does not exist. `report` receives, in a line, the reason why a log
    /// cannot be written; the connection continues.
    ///
    /// # Errors
    /// If it cannot be created, or no file can be created in it.
    pub fn open(path: &Path, report: impl Fn(&str) + Send + 'static) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        let probe = path.join(format!(".narrows-{}-{}", std::process::id(), now().as_nanos()));
        OpenOptions::new().write(true).create_new(true).open(&probe)?;
        fs::remove_file(&probe)?;
        let (wakeup, logs) = (Arc::new(WriterWakeup::default()), Arc::new(Mutex::new(Vec::new())));
        let mut writer =
            LogWriter { path: path.to_path_buf(), logs: logs.clone(), files: Vec::new(), report: Box::new(report) };
        let writer_wakeup = wakeup.clone();
        let thread = thread::Builder::new().name("narrows qlog".into()).spawn(move || {
            loop {
                let is_over = writer_wakeup.wait();
                writer.write();
                if is_over {
                    return;
                }
            }
        })?;
        Ok(Self { path: path.to_path_buf(), wakeup, logs, thread: Some(thread) })
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the observers of connections, for [`proto::settings::Settings::observe`].
    pub fn observer(&self) -> ObserverMaker {
        let (wakeup, logs) = (self.wakeup.clone(), self.logs.clone());
        Arc::new(move |start: &ConnectionStart| {
            let log = Arc::new(ConnectionLog::new(*start, now().as_millis() as u64));
            logs.lock().unwrap_or_else(PoisonError::into_inner).push(log.clone());
            wakeup.notify(Urgency::Soon);
            Some(Arc::new(LogHandle { log, wakeup: wakeup.clone() }) as Arc<dyn Observer>)
        })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        self.wakeup.end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns the time since 1970, by the wall clock.
#[expect(clippy::disallowed_methods, reason = "a log has its creation time; nothing is decided by it")]
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns the name of a log: the start of the connection, the ID that both ends know it by, and the end that wrote it.
fn name_of(log: &ConnectionLog) -> String {
    let began = UNIX_EPOCH + Duration::from_millis(log.began_ms);
    let time = humantime::format_rfc3339_millis(began).to_string().replace(['-', ':'], "");
    format!("{time}-{}-{}.sqlog", Hex(log.start.original_destination_id.as_bytes()), end(log.start.side))
}

/// Writes logs.
struct LogWriter {
    path: PathBuf,
    logs: Arc<Mutex<Vec<Arc<ConnectionLog>>>>,
    files: Vec<(Arc<ConnectionLog>, Option<File>)>,
    report: Box<dyn Fn(&str) + Send>,
}

impl LogWriter {
    fn write(&mut self) {
        let new = std::mem::take(&mut *self.logs.lock().unwrap_or_else(PoisonError::into_inner));
        self.files.extend(new.into_iter().map(|log| (log, None)));
        let Self { path, files, report, .. } = self;
        files.retain_mut(|(log, file)| {
            let (bytes, is_over) = {
                let mut waiting = log.lock();
                (waiting.take(), waiting.is_over)
            };
            if let Err(error) = append(path, log, file, &bytes) {
                report(&format!(
                    "the log `{}` ends here, and its connection goes on: {error}",
                    path.join(name_of(log)).display()
                ));
                log.give_up();
                return false;
            }
            !is_over
        });
    }
}

fn append(path: &Path, log: &ConnectionLog, file: &mut Option<File>, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let file = match file {
        Some(file) => file,
        None => file.insert(OpenOptions::new().write(true).create_new(true).open(path.join(name_of(log)))?),
    };
    file.write_all(bytes)
}
