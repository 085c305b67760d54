//! Flows as plain CSV: `start,from,to,bytes`. Values have their units, or the header has them: `start_s`, `size_KB`.

use crate::graph::Quoted;
use crate::table::Table;
use crate::{Error, Place};

/// A flow, its values as the file has them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    /// When it starts, with the unit.
    pub start: Quoted,
    /// Who sends.
    pub from: String,
    /// Who receives.
    pub to: String,
    /// How much: a number of bytes, or a size with its unit.
    pub bytes: Quoted,
    /// Where it stands.
    pub at: Place,
}

/// Reads flows.
///
/// # Errors
/// When a column is missing or unknown, or a cell is empty.
pub fn read(text: &str) -> Result<Vec<Flow>, Error> {
    const EXPECTED: &str = "expected start,from,to,bytes; a unit may stand in it, as in start_s and size_KB";
    let mut table = Table::new(text)?;
    let header = |what: String| Error::text(table.header_at, what, EXPECTED);
    let [mut start, mut from, mut to, mut bytes] = [const { None }; 4];
    for (column, heading) in table.header().iter().enumerate() {
        let (name, unit) = heading.split_once('_').unwrap_or((heading, ""));
        let place = match name {
            "start" | "time" => &mut start,
            "from" | "source" | "src" => &mut from,
            "to" | "target" | "destination" | "dst" => &mut to,
            "bytes" | "size" => &mut bytes,
            _ => return Err(header(format!("unknown column `{heading}`"))),
        };
        if place.replace((column, unit.to_owned())).is_some() {
            return Err(header(format!("`{heading}` says what another column says")));
        }
    }
    let (Some(start), Some((from, _)), Some((to, _)), Some(bytes)) = (start, from, to, bytes) else {
        return Err(header("this is not the header of a list of flows".into()));
    };
    let mut flows = Vec::new();
    while let Some(row) = table.next()? {
        let cell = |column: usize, what: &str| match row.cell(column) {
            "" => Err(Error::text(row.at, format!("this flow has no {what}"), "expected a value in every column")),
            cell => Ok(cell.to_owned()),
        };
        let quoted = |(column, unit): &(usize, String), what: &str| {
            let text = cell(*column, what)?;
            let bare =
                text.parse::<f64>().is_ok() && !text.contains(|c: char| c.is_alphabetic() && c != 'e' && c != 'E');
            Ok(Quoted { text: if bare { format!("{text}{}", size_unit(unit)) } else { text }, at: row.at })
        };
        flows.push(Flow {
            start: quoted(&start, "start")?,
            from: cell(from, "sender")?,
            to: cell(to, "receiver")?,
            bytes: quoted(&bytes, "size")?,
            at: row.at,
        });
    }
    Ok(flows)
}

/// The unit as it is written elsewhere: headings lost their capitals.
fn size_unit(unit: &str) -> &str {
    match unit {
        "bytes" | "b" => "B",
        "kb" => "KB",
        "kib" => "KiB",
        "mb" => "MB",
        "mib" => "MiB",
        "gb" => "GB",
        "gib" => "GiB",
        "tb" => "TB",
        unit => unit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_read_as_other_programs_write_them() {
        let text = "time_s;source;destination;size_KB\n0.5;\"a;b\";c;3\n1e-3;c;x;2MB\n";
        let flows = read(text).unwrap();
        let shown: Vec<_> =
            flows.iter().map(|flow| [&flow.start.text, &flow.from, &flow.to, &flow.bytes.text]).collect();
        assert_eq!(shown, [["0.5s", "a;b", "c", "3KB"], ["1e-3s", "c", "x", "2MB"]]);
        assert_eq!(&text[flows[1].at.range()], "1e-3;c;x;2MB");
        assert_eq!(read("start,from,to,bytes\n1us,0,1,100\n").unwrap()[0].bytes.text, "100");
    }

    #[test]
    fn mistakes_have_their_line() {
        for (text, part) in [
            ("", "empty"),
            ("start,from,to\n", "not the header"),
            ("start,from,to,bytes,cost\n", "unknown column `cost`"),
            ("start,time,to,bytes\n", "`time` says what"),
            ("start,from,to,bytes\n0s,a,,5\n", "no receiver"),
            ("start,from,to,bytes\n0s,a\n", "no receiver"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
