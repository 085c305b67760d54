//! Keys of a grid's points, by their full path (`traffic.0.load`) or by the end of it (`load`).

/// Returns true if `name` is the key itself or its end behind a dot: `load` for `traffic.0.load`.
pub(crate) fn is_called(key: &str, name: &str) -> bool {
    key == name || key.strip_suffix(name).is_some_and(|before| before.ends_with('.'))
}

/// Outcome of looking for a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Lookup<'a> {
    /// The key of that name, or else the only one that ends with it.
    One(&'a str),
    /// No key.
    None,
    /// Several keys that end with it, in their order.
    Several(Vec<&'a str>),
}

/// Finds the key that `name` stands for.
pub(crate) fn find<'a>(keys: impl Iterator<Item = &'a str>, name: &str) -> Lookup<'a> {
    let mut found: Vec<&str> = Vec::new();
    for key in keys.filter(|key| is_called(key, name)) {
        if key == name {
            return Lookup::One(key);
        }
        if !found.contains(&key) {
            found.push(key);
        }
    }
    match found[..] {
        [] => Lookup::None,
        [key] => Lookup::One(key),
        _ => Lookup::Several(found),
    }
}

/// Returns true if `name` stands for the run `id`: the same scheme and the same values of the same keys, in the same order, each
/// key in full or by its end. `uno,load=0.4` stands for `uno,traffic.0.load=0.4`.
pub(crate) fn is_run(id: &str, name: &str) -> bool {
    let (mut parts, mut names) = (id.split(','), name.split(','));
    loop {
        match (parts.next(), names.next()) {
            (None, None) => return true,
            (Some(part), Some(name)) if is_part(part, name) => {}
            _ => return false,
        }
    }
}

/// Returns the place of the run of that name: its id, or else the only id for which the name stands with ends of keys.
pub fn run_place(ids: &[&str], name: &str) -> Option<usize> {
    let mut ends = (0..ids.len()).filter(|&place| is_run(ids[place], name));
    let exact = ids.iter().position(|id| *id == name);
    exact.or_else(|| ends.next().filter(|_| ends.next().is_none()))
}

fn is_part(part: &str, name: &str) -> bool {
    match (part.split_once('='), name.split_once('=')) {
        (Some((key, value)), Some((name, asked))) => value == asked && is_called(key, name),
        _ => part == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_full_or_by_an_end_that_is_its_alone() {
        let of = |name: &str| find(["traffic.0.size", "traffic.1.size", "port.buffer", "size"].into_iter(), name);
        assert_eq!(of("size"), Lookup::One("size"));
        assert_eq!(of("buffer"), Lookup::One("port.buffer"));
        assert_eq!(of("1.size"), Lookup::One("traffic.1.size"));
        assert_eq!([of("uffer"), of("t.buffer"), of("")], [Lookup::None, Lookup::None, Lookup::None]);
        let several = find(["traffic.0.size", "traffic.1.size", "traffic.0.size"].into_iter(), "size");
        assert_eq!(several, Lookup::Several(vec!["traffic.0.size", "traffic.1.size"]));
    }

    #[test]
    fn a_run_is_named_by_ends_of_its_keys() {
        let id = "uno,traffic.0.load=0.4,port.buffer=1MB,variant=far";
        for name in [id, "uno,load=0.4,buffer=1MB,variant=far", "uno,0.load=0.4,port.buffer=1MB,variant=far"] {
            assert!(is_run(id, name), "{name}");
        }
        for name in
            ["uno", "uno,load=0.4", "bbr,load=0.4,buffer=1MB,variant=far", "uno,load=0.8,buffer=1MB,variant=far"]
        {
            assert!(!is_run(id, name), "{name}");
        }
        assert!(is_run("uno", "uno") && !is_run("uno", "") && is_run("", ""));
        let ids = ["a,traffic.0.size=1", "a,traffic.1.size=1", "a,traffic.1.size=2"];
        let place = |name: &str| run_place(&ids, name);
        assert_eq!(
            [place("a,size=1"), place("a,size=2"), place("a,1.size=1"), place("a")],
            [None, Some(2), Some(1), None]
        );
    }
}
