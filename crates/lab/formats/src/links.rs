//! A network as CSV: one link per row, `from,to,rate,delay`. Units are in the values or in the header: `delay_ms`,
//! `rate_Gbps`. `rate` and `delay` may be missing, as columns or in rows.

use crate::graph::{Capacity, Delay, Graph, GraphLink, LinkDirection, NodeNames, Quoted};
use crate::table::{CsvTable, Heading, with_unit};
use crate::{ByteRange, Error};

/// Reads a network.
///
/// # Errors
/// If the header lacks `from` or `to`, a column is unknown, or a name is empty.
pub fn read(text: &str) -> Result<Graph, Error> {
    let mut table = CsvTable::new(text)?;
    let (mut from, mut to, mut rate, mut delay) = (None, None, None, None);
    let header = table.header();
    for (column, heading) in table.columns().enumerate() {
        let Heading { name, unit } = Heading::of(heading, &["kbps", "Mbps", "Gbps", "Tbps"]);
        let target = match name.as_str() {
            "from" | "source" | "src" | "a" => &mut from,
            "to" | "target" | "dst" | "b" => &mut to,
            "rate" | "bandwidth" | "capacity" => &mut rate,
            "delay" | "latency" => &mut delay,
            _ => return Err(header_error(header.cell_at(column), &format!("unknown column `{heading}`"))),
        };
        if target.replace((column, unit)).is_some() {
            let problem = format!("column `{heading}` has the meaning of another column");
            return Err(header_error(header.cell_at(column), &problem));
        }
    }
    let (Some((from, _)), Some((to, _))) = (from, to) else {
        return Err(header_error(header.at, "this is not the header of a list of links"));
    };
    let mut graph = Graph::default();
    let mut names = NodeNames::default();
    while let Some(row) = table.next()? {
        let quoted = |column: &Option<(usize, String)>| {
            let (column, unit) = column.as_ref()?;
            let cell = row.cell(*column);
            (!cell.is_empty()).then(|| Quoted { text: with_unit(cell, unit), at: row.cell_at(*column) })
        };
        let (rate, delay) = (quoted(&rate).map(Capacity::Rate), quoted(&delay).map(Delay::Time));
        let node = |column: usize| match row.cell(column) {
            "" => Err(table.cell_error(&row, column, "this link lacks an end", "expected the names of two nodes")),
            name => Ok(name),
        };
        let ends = [node(from)?, node(to)?].map(|name| names.of(&mut graph, name, row.at));
        graph.links.push(GraphLink { ends, direction: LinkDirection::Both, rate, delay, at: row.at });
    }
    Ok(graph)
}

fn header_error(at: ByteRange, problem: &str) -> Error {
    Error::text(at, problem, "expected from,to,rate,delay; a unit may follow the name, as in delay_ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_read() {
        let text = "# a net\nfrom,to,rate_Gbps,delay\na,\"b, c\",100,1us\na,d,,\n d ,a,400Mbps,2ms\n";
        let graph = read(text).unwrap();
        let names: Vec<&str> = graph.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["a", "b, c", "d"]);
        let rate = |link: &GraphLink| match &link.rate {
            Some(Capacity::Rate(rate)) => rate.text.clone(),
            _ => String::new(),
        };
        let links: Vec<_> = graph.links.iter().map(|link| (link.ends, rate(link))).collect();
        assert_eq!(links, [([0, 1], "100Gbps".into()), ([0, 2], String::new()), ([2, 0], "400Mbps".into())]);
        assert!(matches!(&graph.links[2].delay, Some(Delay::Time(delay)) if delay.text == "2ms"));
        assert_eq!(&text[graph.links[1].at.range()], "a,d,,");
    }

    /// `MBps` is bytes, `Mbps` bits: lower case does not distinguish them.
    #[test]
    fn units_keep_their_capitals() {
        for (heading, cell, text) in [
            ("rate_Gbps", "100", "100Gbps"),
            ("rate_gbps", "1e2", "1e2Gbps"),
            ("Rate_MBps", "100", "100MBps"),
            ("rate_Gb/s", "100", "100Gb/s"),
            ("rate_mbps", "4Gbps", "4Gbps"),
            ("BANDWIDTH_bps", "2.5e9", "2.5e9bps"),
        ] {
            let graph = read(&format!("from,to,{heading}\na,b,{cell}\n")).unwrap();
            assert!(matches!(&graph.links[0].rate, Some(Capacity::Rate(rate)) if rate.text == text), "{heading}");
        }
        let graph = read("From,TO,Delay_MS\na,b,3\n").unwrap();
        assert!(matches!(&graph.links[0].delay, Some(Delay::Time(delay)) if delay.text == "3ms"));
    }

    #[test]
    fn errors_have_lines_and_columns() {
        for (text, location, name) in [
            ("", "1:1", ""),
            ("from,rate\na,1\n", "1:1", ""),
            ("from,to,cost\n", "1:9", "`cost`"),
            ("from,to,delay,latency_ms\n", "1:15", "column `latency_ms`"),
            ("from,to\na,\n", "2:3", "column `to`: "),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.line_and_column(text), location, "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
