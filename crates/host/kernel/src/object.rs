//! The objects that the build made, and how they are opened and loaded.

use std::sync::{Mutex, MutexGuard, PoisonError};

use libbpf_rs::{MapCore as _, MapFlags, MapType, Object, ObjectBuilder, OpenObject, PrintLevel, ProgramType};
use nix::errno::Errno;

use crate::tcp_adapter::Config;
use crate::{Error, KernelLaw};

macro_rules! objects {
    ($(#[doc = $doc:literal] $law:ident in $module:ident $(for $kernel:ident)?;)*) => {
        /// The object of each law.
        const OBJECTS: &[(&str, &[u8])] = &[$($(object!($module $kernel),)?)*];
    };
}
macro_rules! object {
    ($module:ident kernel) => {
        (stringify!($module), include_bytes!(concat!(env!("OUT_DIR"), "/", stringify!($module), ".bpf.o")))
    };
}
laws::laws!(objects);

/// The longest name of a congestion control in the kernel, without its end.
const MAX_NAME: usize = 15;

/// The object of a law.
fn bytes(row: &KernelLaw) -> &'static [u8] {
    OBJECTS.iter().find(|(name, _)| *name == row.name).map_or(&[], |(_, bytes)| bytes)
}

/// Returns the object of each law as a file, `LAW.bpf.o`. With a file `sources` next to them that has [`crate::BUILD`] as
/// its first line, a build on a machine without clang can use them (`NARROWS_BPF_OBJECTS`).
pub fn objects() -> impl Iterator<Item = (String, &'static [u8])> {
    OBJECTS.iter().map(|&(name, bytes)| (format!("{name}.bpf.o"), bytes))
}

/// Returns whether a file is the object of a law, of this build or another: it contains the law's name in the kernel.
pub fn is_object(file: &[u8]) -> bool {
    const NAME: &[u8] = b"narrows_";
    file.starts_with(b"\x7fELF") && file.windows(NAME.len()).any(|bytes| bytes == NAME)
}

/// The programs of a law's object to load. A kernel may refuse one type of program and accept the others, so only the
/// required ones are loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Programs {
    /// The law's hooks (type `struct_ops`).
    Law,
    /// The same, and the program that chooses the law for a cgroup's sockets (type `sock_ops`).
    LawAndCgroup,
    /// The same as `Law`, and the program with which tests call the law (type `syscall`).
    LawAndTrial,
}

impl Programs {
    fn include(self, program: &str) -> bool {
        match program {
            "choose" => self == Self::LawAndCgroup,
            "try_call" => self == Self::LawAndTrial,
            _ => true,
        }
    }
}

/// Loads a law's programs and maps, under a name of its own, and fills its map of settings. Nothing is attached.
pub(crate) fn load(row: &KernelLaw, tcp_name: &str, config: &Config, programs: Programs) -> Result<Object, Error> {
    if tcp_name.len() > MAX_NAME {
        return Err(Error::LongName { name: tcp_name.to_owned() });
    }
    // `bpf_obj_name_cpy` in the kernel's source.
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
    if tcp_name.is_empty() || !tcp_name.bytes().all(is_allowed) {
        return Err(Error::WrongName { name: tcp_name.to_owned() });
    }
    let log = LibbpfLog::capture();
    let law = row.kind.info().title;
    let open_error = |error: libbpf_rs::Error| refusal(law, &ObjectNames::default(), &error, &log.lines());
    let mut open = ObjectBuilder::default().open_memory(bytes(row)).map_err(open_error)?;
    rename(&mut open, row.tcp_name, tcp_name)?;
    for mut program in open.progs_mut() {
        if !programs.include(&program.name().to_string_lossy()) {
            program.set_autoload(false);
        }
    }
    let parts = ObjectNames::of(&open);
    let object = open.load().map_err(|error| refusal(law, &parts, &error, &log.lines()))?;
    let words: Vec<u8> = config.words().iter().flat_map(|word| word.to_ne_bytes()).collect();
    let map = object.maps().find(|map| map.name() == "config").ok_or(Error::Failed {
        action: "set the law's parameters",
        reason: "the object has no map `config`".to_owned(),
    })?;
    map.update(&0u32.to_ne_bytes(), &words, MapFlags::ANY)
        .map_err(|error| Error::Failed { action: "set the law's parameters", reason: error.to_string() })?;
    drop(log);
    Ok(object)
}

/// The name is in the initial values of the congestion control and of the program that chooses it.
fn rename(open: &mut OpenObject, from: &str, to: &str) -> Result<(), Error> {
    let mut old = from.as_bytes().to_vec();
    old.resize(MAX_NAME + 1, 0);
    let mut new = to.as_bytes().to_vec();
    new.resize(MAX_NAME + 1, 0);
    let mut occurrences = 0;
    for mut map in open.maps_mut() {
        let Some(value) = map.initial_value_mut() else { continue };
        if let Some(at) = value.windows(old.len()).position(|window| window == old) {
            value[at..at + new.len()].copy_from_slice(&new);
            occurrences += 1;
        }
    }
    if occurrences == 2 {
        return Ok(());
    }
    Err(Error::Failed { action: "name the law", reason: format!("its name occurs {occurrences} times, not 2") })
}

/// Names and types of an object's programs and maps.
#[derive(Default)]
struct ObjectNames {
    programs: Vec<(String, &'static str)>,
    maps: Vec<(String, &'static str)>,
}

impl ObjectNames {
    fn of(open: &OpenObject) -> Self {
        let programs = open.progs().map(|it| (it.name().to_string_lossy().into_owned(), program_type(it.prog_type())));
        let maps = open.maps().map(|it| (it.name().to_string_lossy().into_owned(), map_type(it.map_type())));
        Self { programs: programs.collect(), maps: maps.collect() }
    }
}

/// The kernel's name of a program type.
const fn program_type(of: ProgramType) -> &'static str {
    match of {
        ProgramType::StructOps => "struct_ops",
        ProgramType::SockOps => "sock_ops",
        ProgramType::Syscall => "syscall",
        _ => "unknown",
    }
}

/// The kernel's name of a map type.
const fn map_type(of: MapType) -> &'static str {
    match of {
        MapType::SkStorage => "sk_storage",
        MapType::Array => "array",
        MapType::StructOps => "struct_ops",
        _ => "unknown",
    }
}

/// The error for an object that cannot be loaded: the part that the kernel refused, its type and the errno, which
/// libbpf writes only to its log.
fn refusal(law: &str, parts: &ObjectNames, error: &libbpf_rs::Error, log: &[String]) -> Error {
    let part = log.iter().find_map(|line| {
        let (program, errno) = part_of(line, "prog '", "': BPF program load failed: ")
            .map_or((None, None), |(name, errno)| (Some(name), Some(errno)));
        let (map, map_errno) = part_of(line, "map '", "': failed to create: ")
            .map_or((None, None), |(name, errno)| (Some(name), Some(errno)));
        let describe = |part_kind: &str, name: &str, all: &[(String, &str)]| {
            let kind = all.iter().find(|(known, _)| known == name).map_or("unknown", |(_, kind)| *kind);
            format!("the {part_kind} `{name}` of type {kind}")
        };
        let object = match (program, map) {
            (Some(name), _) => describe("program", name, &parts.programs),
            (None, Some(name)) => describe("map", name, &parts.maps),
            (None, None) => return None,
        };
        Some((object, errno.or(map_errno).unwrap_or_default().to_owned()))
    });
    let (object, errno) = part.unwrap_or_else(|| ("the object".to_owned(), errno_of(error)));
    let last = log[log.len().saturating_sub(4)..].join("; ");
    let reason = if last.is_empty() { format!("{error:#}") } else { format!("{error} ({last})") };
    Error::Refused { law: law.to_owned(), object, errno, reason }
}

/// The name of the part and of the errno in a line of libbpf's log.
fn part_of<'a>(line: &'a str, before: &str, between: &str) -> Option<(&'a str, &'a str)> {
    let (_, rest) = line.split_once(before)?;
    let (name, errno) = rest.split_once(between)?;
    Some((name, errno.trim().trim_start_matches('-')))
}

/// The name of an error's errno. libbpf-rs provides it only in the text.
pub(crate) fn errno_of(error: &libbpf_rs::Error) -> String {
    let text = format!("{error:#}");
    let number = text.rsplit_once("(os error ").and_then(|(_, rest)| rest.strip_suffix(')')?.parse().ok());
    number.map_or_else(|| "no errno".to_owned(), |number| format!("{:?}", Errno::from_raw(number)))
}

/// libbpf's log while this is held, so that an error can give the reason.
struct LibbpfLog(#[allow(dead_code, reason = "held so that one load logs at a time")] MutexGuard<'static, ()>);

static CAPTURE_LOCK: Mutex<()> = Mutex::new(());
static LOG: Mutex<String> = Mutex::new(String::new());

impl LibbpfLog {
    fn capture() -> Self {
        let guard = CAPTURE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        LOG.lock().unwrap_or_else(PoisonError::into_inner).clear();
        libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| {
            LOG.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
        })));
        Self(guard)
    }

    #[expect(clippy::unused_self, reason = "the log is this load's only while this is held")]
    fn lines(&self) -> Vec<String> {
        let log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
        log.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(log: &[&str]) -> String {
        let parts = ObjectNames {
            programs: vec![("choose".into(), "sock_ops"), ("hook_init".into(), "struct_ops")],
            maps: vec![("flows".into(), "sk_storage")],
        };
        let log: Vec<String> = log.iter().map(|line| (*line).to_owned()).collect();
        let error = libbpf_rs::Error::from_raw_os_error(libc::EPERM);
        match refusal("DCTCP", &parts, &error, &log) {
            Error::Refused { object, errno, .. } => format!("{object}: {errno}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn refusal_names_part_type_and_errno() {
        let program = "libbpf: prog 'choose': BPF program load failed: -EPERM";
        assert_eq!(
            refused(&["libbpf: load bpf program failed", program]),
            "the program `choose` of type sock_ops: EPERM"
        );
        let map = "libbpf: map 'flows': failed to create: -EINVAL";
        assert_eq!(refused(&[map]), "the map `flows` of type sk_storage: EINVAL");
        // A libbpf with other messages.
        assert_eq!(refused(&["libbpf: no"]), "the object: EPERM");
        assert_eq!(refused(&[]), "the object: EPERM");
    }

    #[test]
    fn only_needed_programs_are_loaded() {
        let of = |programs: Programs| ["hook_init", "choose", "try_call"].map(|name| programs.include(name));
        assert_eq!(of(Programs::Law), [true, false, false]);
        assert_eq!(of(Programs::LawAndCgroup), [true, true, false]);
        assert_eq!(of(Programs::LawAndTrial), [true, false, true]);
    }
}
