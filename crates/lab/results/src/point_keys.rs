//! Keys of a grid's points, by their full path (`traffic.0.load`) or by the end of it (`load`).

/// Returns true if `name` is the key itself or its end behind a dot: `load` for `traffic.0.load`.
pub(crate) fn is_called(key: &str, name: &str) -> bool {
    key == name || key.strip_suffix(name).is_some_and(|before| before.ends_with('.'))
}

/// Outcome of looking for a key or a run by a name that may be shortened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Lookup<'a> {
    /// The one of that name, or else the only one that the name abbreviates.
    One(&'a str),
    /// None.
    None,
    /// Several that the name abbreviates, in their order.
    Several(Vec<&'a str>),
}

/// Finds the key with the name `name`. Indices may be in brackets: `traffic[0].load`.
pub(crate) fn find<'a>(keys: impl Iterator<Item = &'a str>, name: &str) -> Lookup<'a> {
    let name = name.replace('[', ".").replace(']', "");
    let name = name.as_str();
    let mut found: Vec<&str> = Vec::new();
    for key in keys.filter(|key| is_called(key, name)) {
        if key == name {
            return Lookup::One(key);
        }
        if !found.contains(&key) {
            found.push(key);
        }
    }
    Lookup::of(found)
}

impl<'a> Lookup<'a> {
    fn of(found: Vec<&'a str>) -> Self {
        match found[..] {
            [] => Self::None,
            [one] => Self::One(one),
            _ => Self::Several(found),
        }
    }
}

/// Returns true if `name` means the run `id`: the same scheme and the same values of the same keys, in the same order, each
/// key in full or by an end that no other key has. `uno,load=0.4` means `uno,traffic.0.load=0.4`.
pub(crate) fn is_run(id: &str, name: &str) -> bool {
    let keys = || id.split(',').filter_map(|part| Some(part.split_once('=')?.0));
    let is_unique =
        |part: &str| part.split_once('=').is_none_or(|(key, _)| !matches!(find(keys(), key), Lookup::Several(_)));
    if id != name && !name.split(',').all(is_unique) {
        return false;
    }
    let (mut parts, mut names) = (id.split(','), name.split(','));
    loop {
        match (parts.next(), names.next()) {
            (None, None) => return true,
            (Some(part), Some(name)) if is_part(part, name) => {}
            _ => return false,
        }
    }
}

/// Finds the run with the id `name`, else the runs with `name` as an abbreviation of their ids.
pub fn find_run<'a>(ids: impl Iterator<Item = &'a str>, name: &str) -> Lookup<'a> {
    let mut found: Vec<&str> = Vec::new();
    for id in ids.filter(|id| is_run(id, name)) {
        if id == name {
            return Lookup::One(id);
        }
        found.push(id);
    }
    Lookup::of(found)
}

fn is_part(part: &str, name: &str) -> bool {
    match (part.split_once('='), name.split_once('=')) {
        (Some((key, value)), Some((name, requested))) => value == requested && is_called(key, name),
        _ => part == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_match_in_full_or_by_a_unique_suffix() {
        let of = |name: &str| find(["traffic.0.size", "traffic.1.size", "port.buffer", "size"].into_iter(), name);
        assert_eq!(of("size"), Lookup::One("size"));
        assert_eq!(of("buffer"), Lookup::One("port.buffer"));
        assert_eq!(
            [of("1.size"), of("traffic[1].size")],
            [Lookup::One("traffic.1.size"), Lookup::One("traffic.1.size")]
        );
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
        let two = "a,traffic.0.load=1,traffic.1.load=2";
        assert!(is_run(two, two) && is_run(two, "a,0.load=1,1.load=2") && !is_run(two, "a,load=1,load=2"));
        let ids = ["a,traffic.0.size=1", "a,traffic.1.size=1", "a,traffic.1.size=2"];
        let of = |name: &str| find_run(ids.into_iter(), name);
        assert_eq!(
            [of("a,size=2"), of("a,1.size=1"), of("a")],
            [Lookup::One(ids[2]), Lookup::One(ids[1]), Lookup::None]
        );
        assert_eq!(of("a,size=1"), Lookup::Several(ids[..2].to_vec()));
    }
}
