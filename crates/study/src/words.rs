//! Counts and lists in words.

/// `1 flow`, `2 flows`.
pub fn count(n: usize, what: &str) -> String {
    let plural = match what {
        _ if n == 1 => "",
        "switch" => "es",
        _ => "s",
    };
    format!("{n} {what}{plural}")
}

/// Up to five of a list, and how many more there are.
pub fn first_of(list: &[String], separator: &str) -> String {
    const SHOWN: usize = 5;
    let shown = list[..list.len().min(SHOWN)].join(separator);
    if list.len() > SHOWN { format!("{shown}{separator}and {} more", list.len() - SHOWN) } else { shown }
}
