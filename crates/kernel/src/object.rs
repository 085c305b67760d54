//! The objects that the build made, and how they are opened and loaded.

use std::sync::{Mutex, MutexGuard, PoisonError};

use libbpf_rs::{MapCore as _, MapFlags, Object, ObjectBuilder, OpenObject, PrintLevel};

use crate::host::Config;
use crate::{Error, Row};

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
const LONGEST_NAME: usize = 15;

/// The object of a law.
fn bytes(row: &Row) -> &'static [u8] {
    OBJECTS.iter().find(|(name, _)| *name == row.name).map_or(&[], |(_, bytes)| bytes)
}

/// The object of each law as a file, `LAW.bpf.o`. With a file `sources` beside them, whose first line is [`crate::BUILD`], they
/// are what a build on a machine without clang takes (`NARROWS_BPF_OBJECTS`).
pub fn objects() -> impl Iterator<Item = (String, &'static [u8])> {
    OBJECTS.iter().map(|&(name, bytes)| (format!("{name}.bpf.o"), bytes))
}

/// Whether a file is the object of a law, of this build or another: it holds the law's name in the kernel.
pub fn is_object(file: &[u8]) -> bool {
    const NAME: &[u8] = b"narrows_";
    file.starts_with(b"\x7fELF") && file.windows(NAME.len()).any(|bytes| bytes == NAME)
}

/// Loads a law's programs and maps, under a name of its own, and fills its map of settings. Nothing is attached.
pub(crate) fn load(row: &Row, tcp_name: &str, config: &Config) -> Result<Object, Error> {
    if tcp_name.len() > LONGEST_NAME {
        return Err(Error::LongName { name: tcp_name.to_owned() });
    }
    // `bpf_obj_name_cpy` in the kernel's source.
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
    if tcp_name.is_empty() || !tcp_name.bytes().all(is_fit) {
        return Err(Error::WrongName { name: tcp_name.to_owned() });
    }
    let said = Said::listen();
    let refused = |error: libbpf_rs::Error| Error::Refused {
        law: row.kind.info().title.to_owned(),
        reason: Said::reason(&error),
    };
    let mut open = ObjectBuilder::default().open_memory(bytes(row)).map_err(refused)?;
    rename(&mut open, row.tcp_name, tcp_name)?;
    let object = open.load().map_err(refused)?;
    let words: Vec<u8> = config.words().iter().flat_map(|word| word.to_ne_bytes()).collect();
    let map = object.maps().find(|map| map.name() == "config").ok_or(Error::Failed {
        action: "set the law's parameters",
        reason: "the object has no map `config`".to_owned(),
    })?;
    map.update(&0u32.to_ne_bytes(), &words, MapFlags::ANY)
        .map_err(|error| Error::Failed { action: "set the law's parameters", reason: error.to_string() })?;
    drop(said);
    Ok(object)
}

/// The name stands in the initial values of the congestion control and of the program that chooses it.
fn rename(open: &mut OpenObject, from: &str, to: &str) -> Result<(), Error> {
    let mut old = from.as_bytes().to_vec();
    old.resize(LONGEST_NAME + 1, 0);
    let mut new = to.as_bytes().to_vec();
    new.resize(LONGEST_NAME + 1, 0);
    let mut places = 0;
    for mut map in open.maps_mut() {
        let Some(value) = map.initial_value_mut() else { continue };
        if let Some(at) = value.windows(old.len()).position(|window| window == old) {
            value[at..at + new.len()].copy_from_slice(&new);
            places += 1;
        }
    }
    if places == 2 {
        return Ok(());
    }
    Err(Error::Failed { action: "name the law", reason: format!("its name stands in {places} places, not 2") })
}

/// What libbpf says while this is held, so that an error can tell why.
struct Said(#[allow(dead_code, reason = "held so that one load listens at a time")] MutexGuard<'static, ()>);

static TURN: Mutex<()> = Mutex::new(());
static HEARD: Mutex<String> = Mutex::new(String::new());

impl Said {
    fn listen() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        HEARD.lock().unwrap_or_else(PoisonError::into_inner).clear();
        libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| {
            HEARD.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
        })));
        Self(turn)
    }

    /// The error, and the last lines that libbpf said of it.
    fn reason(error: &libbpf_rs::Error) -> String {
        let heard = HEARD.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = heard.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines[lines.len().saturating_sub(4)..].join("; ");
        if last.is_empty() { error.to_string() } else { format!("{error} ({last})") }
    }
}
