//! Running the program, and directories to run it in.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;
use testing::{Bounded, DEFAULT_TIMEOUT, Process, eventually};

pub(crate) use testing::skipped;

/// A directory of a test's own, removed when the test passes.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let unique = format!("{name}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(unique);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Every file and directory below, sorted.
    pub(crate) fn tree(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut todo = vec![self.0.clone()];
        while let Some(directory) = todo.pop() {
            for entry in fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                found.push(path.strip_prefix(&self.0).unwrap().to_string_lossy().into_owned());
                if path.is_dir() && !path.is_symlink() {
                    todo.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// Returns the files under `name`, without the directories.
    pub(crate) fn files(&self, name: &str) -> Vec<String> {
        let prefix = format!("{name}/");
        let under = self.tree().into_iter().filter(|path| !self.path(path).is_dir());
        under.filter_map(|path| path.strip_prefix(&prefix).map(str::to_owned)).collect()
    }

    /// The files under `out` and their contents, without the parts that differ between repetitions by design: durations
    /// of runs, and the page and the ledger, which include these, too.
    pub(crate) fn comparable(&self, out: &str) -> BTreeMap<String, Vec<u8>> {
        let bytes = |name: String| {
            let mut bytes = fs::read(self.path(out).join(&name)).unwrap();
            if name.ends_with("summary.json") {
                let mut summary: Value = serde_json::from_slice(&bytes).unwrap();
                strip_engine(&mut summary);
                bytes = summary.to_string().into_bytes();
            }
            (name, bytes)
        };
        let differs = |name: &str| name.ends_with("report.html") || name == "ledger.sqlite";
        self.files(out).into_iter().filter(|name| !differs(name)).map(bytes).collect()
    }

    /// The program, to be run here: no terminal, no colour settings of the tests' environment.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
        command.args(args).current_dir(&self.0).stdin(Stdio::null());
        for name in ["NO_COLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "COLUMNS", "SSLKEYLOGFILE"] {
            command.env_remove(name);
        }
        command
    }

    /// Runs the program with the words of a line.
    pub(crate) fn narrows(&self, line: &str) -> ProgramRun {
        ProgramRun::new(line, &self.command(line.split_whitespace()).finish())
    }
}

/// Removes `engine` of a summary, or of each of a grid's.
fn strip_engine(summary: &mut Value) {
    match summary.get_mut("runs").and_then(Value::as_array_mut) {
        Some(runs) => runs.iter_mut().for_each(strip_engine),
        None => assert!(summary.as_object_mut().unwrap().shift_remove("engine").is_some()),
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// The result of a run of the program.
pub(crate) struct ProgramRun {
    pub(crate) line: String,
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl ProgramRun {
    pub(crate) fn new(line: &str, output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let ran = Self {
            line: line.to_owned(),
            code: code(output.status),
            out: text(&output.stdout),
            err: text(&output.stderr),
        };
        assert!(!ran.err.contains("panicked"), "{ran}");
        // No terminal: no escape codes.
        assert!(!ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'), "{ran}");
        ran
    }

    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self}");
        self
    }

    /// Asserts a failure that prints nothing on standard output, and a message with all these parts.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, parts: &[&str]) -> Self {
        assert_eq!(self.code, code, "{self}");
        assert_eq!(self.out, "", "{self}");
        self.reports(parts)
    }

    #[track_caller]
    pub(crate) fn reports(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.err.contains(part), "no `{part}` in {self}");
        }
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {self}"))
    }
}

impl std::fmt::Display for ProgramRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { line, code, out, err } = self;
        write!(f, "narrows {line}\nexit code {code}\n--- standard output\n{out}\n--- standard error\n{err}")
    }
}

/// The exit code; of a process that a signal ended, 128 and the signal, as a shell has it.
pub(crate) fn code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap()
}

/// The keys of an object in their order.
#[track_caller]
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap_or_else(|| panic!("no object: {value}")).keys().map(String::as_str).collect()
}

/// One scheme on one switch, some flows: a hundredth of a second.
pub(crate) const ONE: &str = r#"
name = "one"
stop = "10ms"
[topology]
kind = "single-switch"
hosts = 5
[schemes.dctcp]
law = "dctcp"
[[traffic]]
kind = "incast"
intra = 4
size = "64KiB"
[monitor]
interval = "5us"
ports = ["receiver"]
flows = "all"
"#;

/// A grid of one scheme on one switch: three flows of each of these sizes, such as `"4KiB", "9TiB"`, until they have ended.
pub(crate) fn grid_of(sizes: &str) -> String {
    let lone = ONE.split("[monitor]").next().unwrap_or_default().replace("10ms", "100000s");
    format!(
        "{}[grid]\n\"traffic.0.size\" = [{sizes}]\n",
        lone.replace("hosts = 5", "hosts = 4").replace("intra = 4", "intra = 3")
    )
}

/// Two datacenters, three schemes, two points of a grid, everything that draws on the seed.
pub(crate) const GRID: &str = r#"
name = "grid"
stop = "20ms"
[topology]
kind = "fat-trees"
k = 2
inter_rtt = "100us"
border_links_per_core = 1
inter_links = 2
[port]
loss_probability = 0.001
[schemes.uno]
label = "Uno"
law = "unocc"
host.load_balancing = "spray"
port = { ecn = "off", phantom = { size = "1MB" } }
[schemes.mixed]
intra = "mprdma"
inter = "bbr"
[schemes.cubic]
law = "cubic"
[[traffic]]
kind = "poisson"
intra = "google-rpc"
inter = "websearch"
load = 0.4
ratio = "4:1"
flows = 40
[[traffic]]
kind = "permutation"
size = "100KB"
[sizes]
small = "0..10KB"
large = "10KB.."
[monitor]
interval = "20us"
ports = ["class:inter", "class:host"]
flows = 8
[grid]
"traffic.0.load" = [0.2, 0.6]
"#;

/// Waits for an expected event while the program runs, and fails at once if the program ends instead.
#[track_caller]
pub(crate) fn wait_for(process: &mut Process, event: &str, mut condition: impl FnMut() -> bool) {
    eventually(DEFAULT_TIMEOUT, event, || {
        // Checked in this order: events before the program's end count.
        let status = process.try_status();
        let has_happened = condition();
        assert!(has_happened || status.is_none(), "the program ended with {status:?} before this: {event}");
        has_happened
    });
}

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns all files below a folder, sorted, except those that are built.
pub(crate) fn sources(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let (path, kind) = entry.map(|entry| (entry.path(), entry.file_type().unwrap())).unwrap();
            let is_built = ["target", ".git", ".tools", "book", "out"].iter().any(|name| path.ends_with(name));
            if kind.is_dir() && !is_built {
                open.push(path);
            } else if kind.is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
