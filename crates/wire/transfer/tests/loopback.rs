//! Whole transfers between two endpoints over this machine's loopback.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use laws::{Fixed, Law, fixed};
use proto::closed::{CloseCode, Closed};
use proto::identity::Trust;
use proto::service::Service;
use proto::settings::Settings;
use testing::{DEFAULT_TIMEOUT, block_on};
use transfer::{
    Amount, CHUNK, DataMessage, DestDir, Entry, EntryKind, Error, Hello, Listing, Modes, Mtime, Name, ProgressObserver,
    ReceiveOptions, ReceiverMessage, SendOptions, SourcePath, Summary, TransferOutcome, TransferProgress, receive,
    send, survey,
};
use transport::{Config, Connection, Endpoint};

/// A directory of a test's own, removed when the test passes.
struct TransferDir(PathBuf);

impl TransferDir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("narrows-transfer-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("from")).unwrap();
        Self(path)
    }

    fn from(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join("from").join(name)
    }

    fn to(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join("to").join(name)
    }

    fn write(&self, name: impl AsRef<Path>, bytes: &[u8]) -> PathBuf {
        let path = self.from(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for TransferDir {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// Records notes, and ends a transfer once `ends_at` bytes have moved. One that takes too long fails its test.
struct NoteRecorder {
    notes: Mutex<Vec<String>>,
    ends_at: Option<u64>,
    begun: Instant,
}

impl Default for NoteRecorder {
    #[expect(clippy::disallowed_methods, reason = "a test's timeout is wall-clock time")]
    fn default() -> Self {
        Self { notes: Mutex::default(), ends_at: None, begun: Instant::now() }
    }
}

/// Runs a future of a test to its end.
#[track_caller]
fn wait<T>(future: impl Future<Output = T>) -> T {
    block_on(DEFAULT_TIMEOUT, "both ends finish this part of the test", future)
}

impl ProgressObserver for NoteRecorder {
    fn on_progress(&self, progress: &TransferProgress) -> bool {
        assert!(
            self.begun.elapsed() < DEFAULT_TIMEOUT,
            "not within {DEFAULT_TIMEOUT:?}: the transfer ends; {progress:?}"
        );
        self.ends_at.is_none_or(|max| progress.moved_bytes < max)
    }

    fn note(&self, text: &str) {
        self.notes.lock().unwrap().push(text.to_owned());
    }
}

impl NoteRecorder {
    fn take(&self) -> Vec<String> {
        let mut notes = std::mem::take(&mut *self.notes.lock().unwrap());
        notes.sort();
        notes
    }
}

fn config() -> Config {
    // Few packets a round trip: fast machines, too, are in the middle of a file when a test ends its transfer.
    let law = |path: &laws::PathInfo| {
        let params = fixed::Params { window: path.mss.times(16), ..fixed::Params::for_path(path) };
        Law::Fixed(Fixed::new(path, params))
    };
    Config::new(Settings::new(Service::named("files"), Arc::new(law))).unwrap()
}

/// Results and notes of both ends of a transfer.
struct TransferResults {
    sent: Result<TransferOutcome, Error>,
    received: Result<Summary, Error>,
    sender: Vec<String>,
    receiver: Vec<String>,
}

impl TransferResults {
    #[track_caller]
    fn is_fine(&self) -> TransferOutcome {
        assert_eq!((&self.sender, &self.receiver), (&vec![], &vec![]));
        let sent = *self.sent.as_ref().unwrap();
        assert_eq!(sent.summary, *self.received.as_ref().unwrap());
        assert_eq!((sent.failed, sent.summary.failed), (0, 0));
        sent
    }
}

#[derive(Clone, Copy, Default)]
struct TransferOptions {
    checksum: bool,
    replace: bool,
    modes: Modes,
    ends_at: Option<u64>,
}

/// Two endpoints with a connection between them.
fn connected<S, R: Send>(
    sender: impl FnOnce(&Connection) -> S,
    receiver: impl FnOnce(&Connection) -> R + Send,
) -> (S, R) {
    let config = config();
    let listener = Endpoint::listen("127.0.0.1:0".parse().unwrap(), &config).unwrap();
    let (address, trust) = (listener.address(), Trust::Fingerprint(config.identity.fingerprint()));
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let connection = wait(listener.accept()).unwrap().admit().unwrap();
            let received = receiver(&connection);
            drop(connection);
            listener.shut_down(CloseCode::NONE, "");
            received
        });
        let client = Endpoint::client("127.0.0.1:0".parse().unwrap(), &config).unwrap();
        let connection = wait(client.connect(address, trust, None)).unwrap();
        let sent = sender(&connection);
        client.shut_down(CloseCode::NONE, "");
        (sent, receiving.join().unwrap())
    })
}

fn transfer_of(scratch: &TransferDir, paths: &[PathBuf], options: TransferOptions) -> TransferResults {
    let sources = SourcePath::of_all(paths).unwrap();
    let (sender, receiver) =
        (NoteRecorder::default(), NoteRecorder { ends_at: options.ends_at, ..NoteRecorder::default() });
    let folder = DestDir::take(&scratch.to(""), "test").unwrap();
    let (sent, received) = connected(
        |connection| {
            let amount = survey(&sources, || true);
            send(connection, &sources, SendOptions { lanes: 3, checksum: options.checksum }, amount, &sender)
        },
        |connection| {
            let options = ReceiveOptions { replace: options.replace, modes: options.modes };
            receive(connection, &folder, options, &receiver)
        },
    );
    TransferResults { sent, received, sender: sender.take(), receiver: receiver.take() }
}

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 5 + at * seed + at / CHUNK) as u8).collect()
}

/// A name, its kind and mode, its time and its contents.
type FileNode = (PathBuf, u32, (i64, i64), Vec<u8>);

/// Everything below a directory, by names.
fn tree(root: &Path) -> Vec<FileNode> {
    let mut all = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(path) = open.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let contents = if metadata.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            Vec::new()
        } else if metadata.is_symlink() {
            fs::read_link(&path).unwrap().into_os_string().as_bytes().to_vec()
        } else {
            fs::read(&path).unwrap()
        };
        let relative = path.strip_prefix(root).unwrap().to_path_buf();
        all.push((relative, metadata.mode(), (metadata.mtime(), metadata.mtime_nsec()), contents));
    }
    all.sort();
    all
}

fn set_time(path: &Path, ns: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(ns);
    fs::File::open(path).unwrap().set_modified(time).unwrap();
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Creates a tree with all kinds of entries.
fn everything(scratch: &TransferDir) -> PathBuf {
    let big = scratch.write("tree/big", &pattern(3 * CHUNK + 17, 3));
    scratch.write("tree/whole", &pattern(2 * CHUNK, 7));
    scratch.write("tree/one", &pattern(CHUNK, 11));
    scratch.write("tree/empty", b"");
    let run = scratch.write("tree/sub/run", b"#!/bin/sh\n");
    scratch.write(Path::new("tree/sub").join(OsStr::from_bytes(b"not utf-8 \xff\xfe")), b"odd");
    scratch.write("tree/sub/-rf *\n$(x)", b"odder");
    fs::create_dir_all(scratch.from("tree/hollow/inner")).unwrap();
    for at in 0..300 {
        scratch.write(format!("tree/many/{at}"), format!("file {at}").repeat(at).as_bytes());
    }
    symlink("../big", scratch.from("tree/sub/link")).unwrap();
    symlink("nowhere", scratch.from("tree/dangling")).unwrap();
    symlink("sub", scratch.from("tree/directory")).unwrap();
    set_mode(&big, 0o440);
    set_mode(&run, 0o755);
    set_time(&run, 1_000_000_000_123_456_789);
    set_time(&scratch.from("tree/hollow"), 946_684_800_000_000_001);
    set_mode(&scratch.from("tree/hollow"), 0o555);
    scratch.from("tree")
}

#[test]
fn a_tree_arrives_as_it_was_and_is_not_sent_again() {
    let scratch = TransferDir::new("tree");
    let from = everything(&scratch);
    let lone = scratch.write("lone", b"alone");
    let before = tree(&from);
    let bytes: u64 =
        before.iter().filter(|it| it.1 & 0o170_000 == 0o100_000).map(|it| it.3.len() as u64).sum::<u64>() + 5;
    let exact = TransferOptions { modes: Modes::Exact, ..TransferOptions::default() };
    let outcome = transfer_of(&scratch, &[from.clone(), lone.clone()], exact).is_fine();
    assert_eq!(tree(&scratch.to("tree")), before);
    assert_eq!(fs::read(scratch.to("lone")).unwrap(), b"alone");
    let Summary { made, same, moved_bytes, had_bytes, .. } = outcome.summary;
    assert_eq!((made, same, moved_bytes, had_bytes), (before.len() as u64 + 1, 0, bytes, 0));
    // No file of the program itself is left.
    let mut names: Vec<_> = fs::read_dir(scratch.to("")).unwrap().map(|it| it.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["lone", "tree"]);

    // Again: all files exist.
    let outcome = transfer_of(&scratch, &[from.clone(), lone], exact).is_fine();
    assert_eq!((outcome.summary.moved_bytes, outcome.summary.had_bytes), (0, bytes));
    assert_eq!(tree(&scratch.to("tree")), before);

    // Equal sizes and times hide the difference, hashes do not.
    let one = scratch.to("tree/one");
    let time = fs::metadata(&one).unwrap().modified().unwrap();
    fs::write(&one, pattern(CHUNK, 13)).unwrap();
    fs::File::open(&one).unwrap().set_modified(time).unwrap();
    let outcome = transfer_of(&scratch, std::slice::from_ref(&from), exact).is_fine();
    assert_eq!(outcome.summary.moved_bytes, 0);
    let checksum = TransferOptions { checksum: true, ..exact };
    let ends = transfer_of(&scratch, std::slice::from_ref(&from), checksum);
    let error_text = "`tree/one` is not received: a file that differs is here; --overwrite at the receiver replaces it";
    assert_eq!((&ends.receiver, &ends.sender), (&vec![error_text.to_owned()], &vec![error_text.to_owned()]));
    assert_eq!(ends.sent.unwrap().failed, 1);
    let outcome = transfer_of(&scratch, &[from], TransferOptions { replace: true, ..checksum }).is_fine();
    assert_eq!(outcome.summary.moved_bytes, CHUNK as u64);
    assert_eq!(tree(&scratch.to("tree")), before);
}

#[test]
fn a_file_that_differs_stays_unless_it_may_be_replaced() {
    let scratch = TransferDir::new("differs");
    scratch.write("d/x", b"x");
    let paths = [scratch.write("a", b"new"), scratch.write("b", b"b"), scratch.from("c"), scratch.from("d")];
    symlink("b", &paths[2]).unwrap();
    fs::create_dir(scratch.to("")).unwrap();
    fs::write(scratch.to("a"), "mine").unwrap();
    symlink("a", scratch.to("c")).unwrap();
    // A link that leads out of the folder, in the place of a directory.
    fs::create_dir(scratch.0.join("outside")).unwrap();
    symlink("../outside", scratch.to("d")).unwrap();
    let ends = transfer_of(&scratch, &paths, TransferOptions::default());
    let expected = [
        "`a` is not received: a file that differs is here; --overwrite at the receiver replaces it",
        "`c` is not received: a link to another target is here; --overwrite replaces it",
        "`d/x` is not received: a part of its path is a link or a file here",
        "`d` is not received: there is a link of that name",
    ];
    assert_eq!(ends.receiver, expected);
    assert_eq!(ends.sender, expected);
    assert_eq!((ends.sent.unwrap().failed, ends.received.unwrap().failed), (4, 4));
    assert_eq!(fs::read_to_string(scratch.to("a")).unwrap(), "mine");
    assert_eq!(fs::read_to_string(scratch.to("b")).unwrap(), "b");
    let ends = transfer_of(&scratch, &paths, TransferOptions { replace: true, ..TransferOptions::default() });
    assert_eq!(ends.receiver, expected[2..]);
    assert_eq!(fs::read_to_string(scratch.to("a")).unwrap(), "new");
    assert_eq!(fs::read_link(scratch.to("c")).unwrap(), Path::new("b"));
    assert_eq!(fs::read_dir(scratch.0.join("outside")).unwrap().count(), 0);
}

/// Permissions with the setuid, setgid and sticky bits.
fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// Permissions that this process's umask leaves.
fn mask(scratch: &TransferDir) -> u32 {
    let path = scratch.0.join("probe");
    fs::File::options().write(true).create_new(true).mode(0o777).open(&path).unwrap();
    mode(&path)
}

/// A receiver's permissions are its own: those of the sender apply to new entries, and to all only on request.
#[test]
fn existing_entries_keep_their_mode() {
    let scratch = TransferDir::new("modes");
    let sent =
        [("tree/same", 0o666), ("tree/other", 0o644), ("tree/new", 0o757), ("tree/sub/x", 0o444), ("tree/set", 0o7777)];
    for (name, mode) in sent {
        set_mode(&scratch.write(name, name.as_bytes()), mode);
    }
    let directories = [("tree/sub", 0o3777), ("tree", 0o777)];
    for (name, mode) in directories {
        set_mode(&scratch.from(name), mode);
    }
    fs::create_dir_all(scratch.to("tree")).unwrap();
    fs::write(scratch.to("tree/same"), "tree/same").unwrap();
    fs::write(scratch.to("tree/other"), "mine").unwrap();
    let time = fs::metadata(scratch.from("tree/same")).unwrap().modified().unwrap();
    fs::File::open(scratch.to("tree/same")).unwrap().set_modified(time).unwrap();
    let own = [("tree/same", 0o600), ("tree/other", 0o4640), ("tree", 0o2700)];
    for (name, mode) in own {
        set_mode(&scratch.to(name), mode);
    }

    let modes = |names: &[&str]| names.iter().map(|name| mode(&scratch.to(name))).collect::<Vec<_>>();
    let path = [scratch.from("tree")];
    let ends = transfer_of(&scratch, &path, TransferOptions::default());
    assert_eq!((ends.sent.unwrap().failed, modes(&own.map(|it| it.0))), (1, vec![0o600, 0o4640, 0o2700]));
    transfer_of(&scratch, &path, TransferOptions { replace: true, ..TransferOptions::default() }).is_fine();
    // Replaced files do not keep the setuid bit.
    assert_eq!(modes(&own.map(|it| it.0)), [0o600, 0o640, 0o2700]);
    assert_eq!(fs::read_to_string(scratch.to("tree/other")).unwrap(), "tree/other");
    let mask = mask(&scratch);
    assert_eq!(modes(&["tree/new", "tree/sub/x", "tree/set"]), [0o757 & mask, 0o444 & mask, mask]);
    // A directory inherits the bit from its parent here, and not from the sender.
    assert_eq!(modes(&["tree/sub"]), [0o2000 | mask]);

    let exact = TransferOptions { replace: true, modes: Modes::Exact, ..TransferOptions::default() };
    transfer_of(&scratch, &path, exact).is_fine();
    assert_eq!(modes(&sent.map(|it| it.0)), [0o666, 0o644, 0o757, 0o444, 0o777]);
    assert_eq!(modes(&directories.map(|it| it.0)), [0o2777, 0o2777]);
}

/// A new directory without write permission is open to its owner until all files are complete, also over an
/// interruption.
#[test]
fn a_new_directory_is_closed_when_all_is_in_it() {
    let scratch = TransferDir::new("closed");
    scratch.write("new/file", &pattern(40 * CHUNK, 3));
    scratch.write("old/file", b"x");
    fs::create_dir_all(scratch.to("old")).unwrap();
    set_mode(&scratch.to("old"), 0o750);
    let paths = [scratch.from("new"), scratch.from("old")];
    for path in &paths {
        set_mode(path, 0o555);
    }
    let stop = TransferOptions { ends_at: Some(4 << 20), ..TransferOptions::default() };
    let _ = transfer_of(&scratch, &paths, stop).sent.unwrap_err();
    let mask = mask(&scratch);
    assert_eq!(mode(&scratch.to("new")), 0o755 & mask | 0o700);
    transfer_of(&scratch, &paths, TransferOptions::default()).is_fine();
    assert_eq!(mode(&scratch.to("new")), 0o555 & mask);
    assert_eq!(mode(&scratch.to("old")), 0o750);
    assert!(!scratch.to(transfer::PARTIALS).exists());
    // To allow another user than root to remove it.
    paths.iter().chain(&[scratch.to("new")]).for_each(|path| set_mode(path, 0o755));
}

#[test]
fn unsent_entries_are_reported() {
    let scratch = TransferDir::new("kinds");
    scratch.write("tree/good", b"good");
    let pipe = scratch.from("tree/pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(scratch.from("tree/socket")).unwrap();
    symlink("/etc/passwd", scratch.from("tree/absolute")).unwrap();
    symlink("../../up", scratch.from("tree/up")).unwrap();
    let suid = scratch.write("tree/suid", b"");
    set_mode(&suid, 0o4711);
    let ends = transfer_of(&scratch, &[scratch.from("tree")], TransferOptions::default());
    let from = scratch.from("tree");
    let expected = [
        ("absolute", "it is a link to an absolute path"),
        ("pipe", "it is a pipe, which is not sent"),
        ("socket", "it is a socket, which is not sent"),
        ("up", "it is a link that leads out of the folder, or may do so"),
    ]
    .map(|(name, why)| format!("`{}/{name}` is not sent: {why}", from.display()));
    assert_eq!(ends.sender, expected);
    assert_eq!((ends.sent.unwrap().failed, ends.received.unwrap().failed), (4, 4));
    assert_eq!(fs::read_to_string(scratch.to("tree/good")).unwrap(), "good");
    assert_eq!(mode(&scratch.to("tree/suid")), 0o711 & mask(&scratch));
}

#[test]
fn interrupted_transfers_resume_where_verified() {
    let scratch = TransferDir::new("resume");
    let data = pattern(40 * CHUNK + 5, 3);
    let path = scratch.write("file", &data);
    // Both ends learn that one of them ended it.
    let ends = transfer_of(
        &scratch,
        std::slice::from_ref(&path),
        TransferOptions { ends_at: Some(4 << 20), ..TransferOptions::default() },
    );
    assert!(matches!(ends.received, Err(Error::Interrupted)), "{:?}", ends.received);
    let sent = ends.sent.unwrap_err();
    assert!(matches!(sent, Error::Transport(transport::Error::Closed(Closed::ByPeer { .. }))), "{sent}");
    assert!(!scratch.to("file").exists());
    let partials = scratch.to(transfer::PARTIALS);
    let partial = || {
        let names = fs::read_dir(&partials).unwrap().map(|it| it.unwrap().path());
        names.filter(|it| it.extension().is_none()).collect::<Vec<_>>()
    };
    let [file] = &partial()[..] else { panic!("{:?}", partial()) };
    let whole_chunks = fs::metadata(file).unwrap().len() / CHUNK as u64;
    assert!((4..40).contains(&whole_chunks), "{whole_chunks}");
    // Modified chunks are sent again, and no others: one in the middle, and the first and the last one.
    let mut bytes = fs::read(file).unwrap();
    let damaged = [0, 2, whole_chunks as usize - 1];
    for chunk in damaged {
        bytes[chunk * CHUNK + 9] ^= 1;
    }
    fs::write(file, bytes).unwrap();
    let outcome = transfer_of(&scratch, std::slice::from_ref(&path), TransferOptions::default()).is_fine();
    let had = (whole_chunks - damaged.len() as u64) * CHUNK as u64;
    assert_eq!((outcome.summary.had_bytes, outcome.summary.moved_bytes), (had, data.len() as u64 - had));
    assert!(fs::read(scratch.to("file")).unwrap() == data);
    assert!(!partials.exists());

    // Another version with the same size and time: the receiver's part is of no use.
    fs::remove_file(scratch.to("file")).unwrap();
    let stop = TransferOptions { ends_at: Some(4 << 20), ..TransferOptions::default() };
    let _ = transfer_of(&scratch, std::slice::from_ref(&path), stop).sent.unwrap_err();
    let (other, time) = (pattern(data.len(), 5), fs::metadata(&path).unwrap().modified().unwrap());
    fs::write(&path, &other).unwrap();
    fs::File::open(&path).unwrap().set_modified(time).unwrap();
    let outcome = transfer_of(&scratch, std::slice::from_ref(&path), TransferOptions::default()).is_fine();
    assert_eq!((outcome.summary.had_bytes, outcome.summary.moved_bytes), (0, data.len() as u64));
    assert!(fs::read(scratch.to("file")).unwrap() == other);

    // Another time: the part of the older version is removed, and so are checksums left by a killed process.
    fs::remove_file(scratch.to("file")).unwrap();
    let _ = transfer_of(&scratch, std::slice::from_ref(&path), stop).sent.unwrap_err();
    fs::write(partials.join("00-00.sums"), [0; 32]).unwrap();
    set_time(&path, 5_000_000_000);
    let outcome = transfer_of(&scratch, &[path], TransferOptions::default()).is_fine();
    assert_eq!(outcome.summary.had_bytes, 0);
    assert!(!partials.exists());
}

#[test]
fn a_file_longer_than_its_size_fails_alone() {
    let scratch = TransferDir::new("procfs");
    // Of size 0 until it is read.
    let paths = ["/proc/version".into(), scratch.write("stays", &pattern(9, 3))];
    let ends = transfer_of(&scratch, &paths, TransferOptions::default());
    assert_eq!((ends.sent.unwrap().failed, ends.received.unwrap().failed), (1, 1));
    assert_eq!(ends.sender, ["`/proc/version` is not sent: it has more bytes than its size"]);
    assert!(!scratch.to("version").exists() && scratch.to("stays").exists());
}

#[test]
fn a_file_that_changes_while_it_is_sent_fails_alone() {
    /// Changes a file when the transfer is under way.
    struct Changes(PathBuf, NoteRecorder);
    impl ProgressObserver for Changes {
        fn on_progress(&self, progress: &TransferProgress) -> bool {
            if progress.moved_bytes > 0 {
                fs::File::options().append(true).open(&self.0).unwrap().write_all(b"more").unwrap();
            }
            self.1.on_progress(progress)
        }
        fn note(&self, text: &str) {
            self.1.note(text);
        }
    }
    let scratch = TransferDir::new("changes");
    let paths = [scratch.write("grows", &pattern(64 * CHUNK, 3)), scratch.write("stays", &pattern(9, 3))];
    let sources = SourcePath::of_all(&paths).unwrap();
    let (watch, receiver) = (Changes(paths[0].clone(), NoteRecorder::default()), NoteRecorder::default());
    let folder = DestDir::take(&scratch.to(""), "test").unwrap();
    let (sent, received) = connected(
        |connection| {
            let options = SendOptions { lanes: 2, checksum: false };
            send(connection, &sources, options, survey(&sources, || true), &watch)
        },
        |connection| receive(connection, &folder, ReceiveOptions::default(), &receiver),
    );
    assert_eq!((sent.unwrap().failed, received.unwrap().failed), (1, 1));
    assert_eq!(watch.1.take(), [format!("`{}` is not sent: it changed while it was sent", paths[0].display())]);
    assert_eq!(receiver.take(), ["`grows` is not received: at the sender: it changed while it was sent"]);
    assert!(!scratch.to("grows").exists() && scratch.to("stays").exists());
}

#[test]
fn one_folder_has_one_receiver() {
    let scratch = TransferDir::new("two");
    let first = DestDir::take(&scratch.to(""), "narrows recv to").unwrap();
    let error_text = DestDir::take(&scratch.to(""), "narrows recv to").unwrap_err().to_string();
    assert!(error_text.contains("is in use by process") && error_text.ends_with("narrows recv to"), "{error_text}");
    drop(first);
    let error_text = DestDir::take(&scratch.to("no/such"), "").unwrap_err().to_string();
    assert!(error_text.starts_with("cannot make"), "{error_text}");
}

#[test]
fn sources_have_names_of_their_own() {
    let scratch = TransferDir::new("sources");
    let (a, b) = (scratch.write("x/a", b""), scratch.write("y/a", b""));
    let error_text = |paths: &[PathBuf]| SourcePath::of_all(paths).unwrap_err().to_string();
    assert!(error_text(&[a, b]).ends_with("would both be `a` at the receiver"));
    assert!(error_text(&[scratch.from("none")]).starts_with("cannot read"));
    assert!(error_text(&["/".into()]).contains("has no name"), "{}", error_text(&["/".into()]));
    assert!(SourcePath::of_all(&[scratch.from("x/..")]).is_ok());
}

/// Runs a sender that violates the protocol. Returns the reason that it receives.
fn lied(scratch: &TransferDir, lies: &[&[u8]]) -> (String, Vec<String>) {
    let folder = DestDir::take(&scratch.to(""), "test").unwrap();
    let notes = NoteRecorder::default();
    let (reported, received) = connected(
        |connection| {
            wait(async {
                let (mut first, mut data) = (connection.open().await.unwrap(), None);
                for (at, lie) in lies.iter().enumerate() {
                    // The first two go to the stream of the listing, the others to a stream for data.
                    if at < 2 {
                        let _ = first.0.write_all(lie).await;
                    } else {
                        if data.is_none() {
                            data = connection.open_one_way().await.ok();
                        }
                        if let Some(data) = &mut data {
                            let _ = data.write_all(lie).await;
                        }
                    }
                }
                match connection.closed().await {
                    Closed::ByPeer { code: CloseCode::APPLICATION, reason } => reason,
                    other => panic!("{other}"),
                }
            })
        },
        |connection| receive(connection, &folder, ReceiveOptions::default(), &notes).unwrap_err(),
    );
    assert_eq!(received.to_string().replace("the peer", "this peer"), reported);
    (reported, notes.take())
}

fn hello() -> Vec<u8> {
    let text =
        serde_json::to_vec(&Hello::new(SendOptions { lanes: 1, checksum: false }, Amount { entries: 1, bytes: 1 }))
            .unwrap();
    [&(text.len() as u32).to_be_bytes(), &text[..]].concat()
}

fn frame(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes(), bytes].concat()
}

fn message(message: &impl serde::Serialize) -> Vec<u8> {
    frame(&postcard::to_extend(message, Vec::new()).unwrap())
}

fn listed(name: &str, size: u64) -> Vec<u8> {
    let name = Name::new(name.into()).unwrap();
    message(&Listing::Entry(Entry { name, mode: 0o644, mtime: Mtime { s: 1, ns: 0 }, kind: EntryKind::File { size } }))
}

#[test]
fn a_malicious_sender_gets_an_error_and_writes_nothing() {
    let scratch = TransferDir::new("lies");
    let reported = |lies: &[&[u8]]| lied(&scratch, lies).0;
    let absolute = std::env::temp_dir().join(format!("narrows-lies-{}", std::process::id()));
    for name in ["../x", absolute.to_str().unwrap(), "a/../../x", "a\0", "", ".narrows-partial/x", ".narrows.lock"] {
        // An entry as the codec has it, but for its name.
        let entry = (0u8, name.as_bytes().to_vec(), 0o644u32, (1i64, 0u32), (1u8, 1u64));
        let error_text = reported(&[&hello(), &message(&entry)]);
        assert_eq!(
            error_text, "this peer sent a message that cannot be read, or with a name that may not be",
            "{name}"
        );
    }
    assert_eq!(reported(&[&hello(), &[0xff; 4]]), "this peer sent a message of 4294967295 bytes; it may have 16384");
    assert!(reported(&[&frame(b"{}")]).starts_with("this peer does not transfer files"));
    let end = message(&Listing::End { entries: 2, failed: 0 });
    let error_text = reported(&[&hello(), &[listed("a", 1), end].concat()]);
    assert_eq!(error_text, "this peer reports that it listed 2 entries, and listed 1");
    let twice = [listed("a", 1), listed("a", 1)].concat();
    assert_eq!(reported(&[&hello(), &twice]), "this peer lists `a` twice");
    let file = |number, chunks| message(&DataMessage::File { number, chunks });
    assert_eq!(reported(&[&hello(), &[], &file(5, 0)]), "this peer sends entry 5, which was not asked for");
    let chunk = |len, value| message(&DataMessage::Chunk { len, value });
    let error_text = reported(&[&hello(), &[], &chunk(5, [0; 32]), b"12345"]);
    assert_eq!(error_text, "this peer sent a part of a file out of turn");
    // None of this created a file.
    let names: Vec<_> = fs::read_dir(scratch.to("")).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(names.is_empty(), "{names:?}");
    assert!(!scratch.0.join("x").exists() && !absolute.exists());
}

/// The reason that a sender receives if it violates the protocol after the requests.
#[test]
fn chunks_that_do_not_fit_make_no_file() {
    let scratch = TransferDir::new("chunks");
    let folder = DestDir::take(&scratch.to(""), "test").unwrap();
    let notes = NoteRecorder::default();
    let (replies, received) = connected(
        |connection| {
            wait(async {
                let (mut control, mut replies_stream) = connection.open().await.unwrap();
                control.write_all(&hello()).await.unwrap();
                control.write_all(&listed("bad-chunk", 5)).await.unwrap();
                control.write_all(&listed("bad-hash", 5)).await.unwrap();
                control.write_all(&message(&Listing::End { entries: 2, failed: 0 })).await.unwrap();
                control.finish().unwrap();
                let mut replies = Vec::new();
                let mut lane = None;
                loop {
                    let mut len = [0; 4];
                    let mut at = 0;
                    while at < 4 {
                        match replies_stream.read(&mut len[at..]).await.unwrap() {
                            0 => return replies,
                            count => at += count,
                        }
                    }
                    let mut bytes = vec![0; u32::from_be_bytes(len) as usize];
                    at = 0;
                    while at < bytes.len() {
                        at += replies_stream.read(&mut bytes[at..]).await.unwrap();
                    }
                    if bytes[0] == b'{' {
                        continue;
                    }
                    replies.push(transfer::parse::<ReceiverMessage>(&bytes).unwrap());
                    if replies.len() == 2 {
                        let mut data = connection.open_one_way().await.unwrap();
                        let value = transfer::of_bytes(b"12345");
                        let records = [
                            message(&DataMessage::File { number: 0, chunks: 0 }),
                            message(&DataMessage::Chunk { len: 5, value }),
                            b"12346".to_vec(),
                            message(&DataMessage::End { digest: value }),
                            message(&DataMessage::File { number: 1, chunks: 0 }),
                            message(&DataMessage::Chunk { len: 5, value }),
                            b"12345".to_vec(),
                            message(&DataMessage::End { digest: [7; 32] }),
                        ];
                        data.write_all(&records.concat()).await.unwrap();
                        data.finish().unwrap();
                        lane = Some(data);
                    }
                    assert!(lane.is_some() || replies.len() < 2);
                }
            })
        },
        |connection| receive(connection, &folder, ReceiveOptions::default(), &notes),
    );
    assert_eq!(received.unwrap().failed, 2);
    let failed = replies.iter().filter(|it| matches!(it, ReceiverMessage::Failed { .. })).count();
    assert!(failed == 2 && matches!(replies.last(), Some(ReceiverMessage::Summary(_))), "{replies:?}");
    assert_eq!(
        notes.take(),
        [
            "`bad-chunk` is not received: a part of it came with another checksum than the sender's",
            "`bad-hash` is not received: it came with another checksum than the sender's"
        ]
    );
    drop(folder);
    assert!(!scratch.to("bad-chunk").exists() && !scratch.to("bad-hash").exists());
}
