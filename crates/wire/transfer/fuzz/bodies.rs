//! Bodies of the fuzz targets. A test replays their corpora through the same functions.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use transfer::{
    DataMessage, Entry, EntryKind, Listing, MAX_DEPTH, MAX_PATH, Name, ReceiverMessage, check_target, parse,
};

/// No name leads out of the folder, and neither does a link. A parsed message has only such names.
pub(crate) fn names(bytes: &[u8]) {
    if let Ok(Listing::Entry(Entry { name, kind, .. })) = parse(bytes) {
        inside(&name);
        if let EntryKind::Link { target } = kind {
            link(&name, &target);
        }
    }
    if let Ok(ReceiverMessage::Failed { name, .. }) = parse(bytes) {
        inside(&name);
    }
    let _ = parse::<DataMessage>(bytes);
    // A name, and a target after a NUL.
    let mut parts = bytes.splitn(2, |&byte| byte == 0);
    let (name, target) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if let Ok(name) = Name::new(name.to_vec()) {
        inside(&name);
        link(&name, target);
    }
}

fn inside(name: &Name) {
    let folder = Path::new("/folder");
    let path = name.below(folder);
    let rest = path.strip_prefix(folder).expect("a name is below the folder");
    assert!(rest.components().all(|part| matches!(part, Component::Normal(_))));
    assert!((1..=MAX_DEPTH).contains(&rest.components().count()) && name.bytes().len() <= MAX_PATH);
    assert_eq!(rest.as_os_str().as_bytes(), name.bytes());
    let first = rest.components().next().map(|part| part.as_os_str().to_ascii_lowercase());
    assert!(first.is_some_and(|first| first != ".narrows-partial" && first != ".narrows.lock"));
    assert!(!name.to_string().chars().any(char::is_control));
}

fn link(name: &Name, target: &[u8]) {
    if check_target(name, target).is_err() {
        return;
    }
    // As deep as the link's directory, and never above the folder.
    let mut depth = name.parts().count() - 1;
    for part in Path::new(OsStr::from_bytes(target)).components() {
        match part {
            Component::ParentDir => depth = depth.checked_sub(1).expect("a link stays in the folder"),
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => panic!("an absolute link"),
        }
    }
}
