//! NetFlow or IPFIX records as CSV, as written by nfdump (`nfdump -o csv`).
//!
//! Columns are found by name, those of nfdump 1.6 (`ts`, `sa`, `da`, `ibyt`, `obyt`) and 1.7 (`firstSeen`, `srcAddr`,
//! `dstAddr`, `bytes`), in any case. Times are dates, or seconds since 1970. A record with bytes in both directions is
//! two transfers. Lines after `Summary` are omitted.

use crate::table::CsvTable;
use crate::transfers::{Transfer, Transfers};
use crate::{Error, counted};

/// Reads flow records.
///
/// # Errors
/// If a column is missing, or a time or a number of bytes cannot be read.
pub fn read(text: &str) -> Result<Transfers, Error> {
    let mut table = CsvTable::new(text)?;
    let back = table.column(&["obyt", "outbytes", "out_bytes"]);
    let column = |names: &[&str]| {
        let found = table.column(names);
        found.ok_or_else(|| {
            let expected = "expected the CSV of nfdump: ts,sa,da,ibyt,... or firstSeen,srcAddr,dstAddr,bytes,...";
            Error::text(table.header().at, format!("no column is called `{}`", names[0]), expected)
        })
    };
    let start = column(&["ts", "firstseen", "first", "start", "tsr"])?;
    let from = column(&["sa", "srcaddr", "src4addr", "src_addr"])?;
    let to = column(&["da", "dstaddr", "dst4addr", "dst_addr"])?;
    let bytes = column(&["ibyt", "bytes", "inbytes", "in_bytes"])?;
    let (mut list, mut empty, mut own) = (Vec::new(), 0, 0);
    while let Some(row) = table.next()? {
        if row.cell(0).eq_ignore_ascii_case("summary") || row.cell(0).starts_with("No matched flows") {
            break;
        }
        let start_time = time(row.cell(start)).ok_or_else(|| {
            let expected = "expected such as 2024-05-01 12:00:00.123, or seconds since 1970, such as 1714564800.123";
            table.cell_error(&row, start, &format!("`{}` is no time", row.cell(start)), expected)
        })?;
        let address = |column: usize| match row.cell(column) {
            "" => Err(table.cell_error(&row, column, "this record lacks an address", "expected two addresses")),
            address => Ok(address),
        };
        let number = |column: usize| {
            let cell = row.cell(column);
            let problem = || format!("`{cell}` is no number of bytes");
            cell.parse::<u64>().map_err(|_| table.cell_error(&row, column, &problem(), "expected a whole number"))
        };
        let (from, to, bytes) = (address(from)?, address(to)?, number(bytes)?);
        let back = back.map_or(Ok(0), number)?;
        for (from, to, bytes) in [(from, to, bytes), (to, from, back)] {
            if bytes == 0 {
                continue;
            }
            if from == to {
                own += 1;
                continue;
            }
            list.push((start_time, Transfer { start_ns: 0, from: from.into(), to: to.into(), bytes, at: row.at }));
        }
        empty += usize::from(bytes == 0 && back == 0);
    }
    let mut left_out = Vec::new();
    for (count, noun) in [(empty, "record without bytes"), (own, "record of an address with itself")] {
        if count > 0 {
            left_out.push(counted(count, noun));
        }
    }
    Ok(Transfers::since_the_first(list, left_out))
}

/// Digits of seconds since 1970, up to the year 5138. Milliseconds, as IPFIX counts them, have more since 1973.
const DIGITS_OF_SECONDS: usize = 11;

/// Returns nanoseconds since 1970, from a date and time or from seconds.
fn time(text: &str) -> Option<i128> {
    let (seconds_or_date, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if fraction.len() > 9 || !digits(fraction) {
        return None;
    }
    let nanoseconds: i128 = format!("{fraction:0<9}").parse().ok()?;
    if digits(seconds_or_date) && (1..=DIGITS_OF_SECONDS).contains(&seconds_or_date.len()) {
        return Some(seconds_or_date.parse::<i128>().ok()? * 1_000_000_000 + nanoseconds);
    }
    let (date, clock) = seconds_or_date.split_once([' ', 'T'])?;
    let three = |text: &str, sign: char| {
        let mut parts = text.split(sign).map(|part| part.parse::<i64>().ok().filter(|_| digits(part)));
        let all = [parts.next()??, parts.next()??, parts.next()??];
        parts.next().is_none().then_some(all)
    };
    let ([year, month, day], [hour, minute, second]) = (three(date, '-')?, three(clock, ':')?);
    let in_range = (0..=9_999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !in_range || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days since 1970 in the Gregorian calendar, years counted from March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = year * 365 + leaps + (month * 153 + 2) / 5 + day - 1 - 719_468;
    Some(i128::from(((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000_000 + nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "ts,te,td,sa,da,sp,dp,pr,flg,fwd,stos,ipkt,ibyt,opkt,obyt\n2024-02-29 23:59:59,2024-03-01 00:00:02,3.000,10.0.0.1,10.0.0.2,443,5000,TCP,.AP.SF,0,0,10,1500,3,120\n2024-02-29 23:59:58,2024-03-01 00:00:02,3.000,10.0.0.3,10.0.0.1,1,2,UDP,,0,0,1,0,0,0\n2024-03-01 00:00:00.250,2024-03-01 00:00:02,3.000,10.0.0.3,10.0.0.1,1,2,UDP,,0,0,1,77,0,0\nSummary\nflows,bytes\n3,5\n";

    #[test]
    fn records_are_read() {
        let read = read(OLD).unwrap();
        let shown: Vec<_> =
            read.list.iter().map(|it| (it.start_ns, it.from.as_str(), it.to.as_str(), it.bytes)).collect();
        let (one, two, three) = ("10.0.0.1", "10.0.0.2", "10.0.0.3");
        assert_eq!(shown, [(0, one, two, 1_500), (0, two, one, 120), (1_250_000_000, three, one, 77)]);
        assert_eq!(read.left_out, ["1 record without bytes"]);
        let new = "firstSeen,duration,proto,srcAddr,srcPort,dstAddr,dstPort,packets,bytes,flows\n1709251200.5,0,6,a,1,b,2,1,9,1\n";
        assert_eq!(super::read(new).unwrap().list[0].bytes, 9);
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(time("1970-01-01 00:00:00"), Some(0));
        assert_eq!(time("2024-02-29T12:00:00.000000001"), Some(1_709_208_000_000_000_001));
        assert_eq!(time("1709208000"), time("2024-02-29 12:00:00"));
        for text in
            ["", "2024-13-01 00:00:00", "2024-01-01", "2024-01-01 25:00:00", "-5", "1.0000000001", "x", "+1-1-1 1:1:1"]
        {
            assert_eq!(time(text), None, "{text}");
        }
        // Milliseconds and nanoseconds are no seconds.
        assert_eq!([time("1709208000000"), time("1709208000000000000")], [None; 2]);
    }

    #[test]
    fn errors_have_lines_and_columns() {
        for (from, to, location, name) in [
            ("sa,", "source,", "1:1", "`sa`"),
            ("23:59:59", "23:99:59", "2:1", "column `ts`: "),
            (",1500,", ",1.5 M,", "2:92", "column `ibyt`: `1.5 M`"),
            ("10.0.0.2", "", "2:56", "column `da`: "),
            (",120\n", ",x\n", "2:99", "column `obyt`: `x`"),
        ] {
            let text = OLD.replacen(from, to, 1);
            let error = read(&text).unwrap_err();
            assert_eq!(error.line_and_column(&text), location, "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
