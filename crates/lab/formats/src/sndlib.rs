//! SNDlib's native network format. Orlowski, Pióro, Tomaszewski, Wessäly, "SNDlib 1.0", Networks 55(3), 2010.
//!
//! Sections have names: `NODES` and `LINKS` are read; `META`, `DEMANDS` and `ADMISSIBLE_PATHS` are not. The format
//! states no unit of capacities. A link's capacity is the pre-installed one, or that of its first module. Coordinates
//! are geographic or those of a drawing, which the format does not state either: if one node's are not degrees, none
//! are.

use crate::graph::{Capacity, Graph, GraphLink, GraphNode, LinkDirection, NodeNames, Position};
use crate::{ByteRange, Error};

type SndlibToken<'a> = (&'a str, ByteRange);

/// Words, and brackets one by one; without comments and the line `?SNDlib ...`.
fn tokens(text: &str) -> Vec<SndlibToken<'_>> {
    let mut tokens = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let content = line.split('#').next().unwrap_or_default();
        if !content.trim_start_matches('\u{feff}').starts_with('?') {
            let mut at = 0;
            while at < content.len() {
                let rest = &content[at..];
                let ends = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',');
                let length = match rest.chars().next() {
                    Some('(' | ')') => 1,
                    Some(c) if ends(c) || c == '\u{feff}' => {
                        at += c.len_utf8();
                        continue;
                    }
                    _ => rest.find(ends).unwrap_or(rest.len()),
                };
                tokens.push((&rest[..length], ByteRange::new(start + at..start + at + length)));
                at += length;
            }
        }
        start += line.len();
    }
    tokens
}

struct TokenReader<'a> {
    tokens: Vec<SndlibToken<'a>>,
    at: usize,
    end: usize,
}

impl<'a> TokenReader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).map(|token| token.0)
    }

    fn needed(&mut self, expected: &str) -> Result<SndlibToken<'a>, Error> {
        let token = self.tokens.get(self.at).copied();
        self.at += 1;
        token.ok_or_else(|| {
            Error::text(ByteRange::new(self.end..self.end), "the file ends here", format!("expected {expected}"))
        })
    }

    fn bracket(&mut self, bracket: &str) -> Result<(), Error> {
        let (token, at) = self.needed(&format!("`{bracket}`"))?;
        if token == bracket {
            Ok(())
        } else {
            Err(Error::text(at, format!("`{token}`"), format!("expected `{bracket}`")))
        }
    }

    fn number(&mut self, expected: &str) -> Result<(f64, ByteRange), Error> {
        let (token, at) = self.needed(expected)?;
        let number = token.parse().ok().filter(|number: &f64| number.is_finite());
        let number =
            number.ok_or_else(|| Error::text(at, format!("`{token}` is no number"), format!("expected {expected}")))?;
        Ok((number, at))
    }

    /// Skips to the end of an open section, after its closing bracket.
    fn skip(&mut self) -> Result<(), Error> {
        let mut open = 1;
        while open > 0 {
            match self.needed("`)`")?.0 {
                "(" => open += 1,
                ")" => open -= 1,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Reads a network.
///
/// # Errors
/// If the text is not in SNDlib's native format, or a link has an unknown end.
pub fn read(text: &str) -> Result<Graph, Error> {
    let mut reader = TokenReader { tokens: tokens(text), at: 0, end: text.len() };
    let mut graph = Graph::default();
    let mut names = NodeNames::default();
    let mut ends: Vec<[SndlibToken<'_>; 2]> = Vec::new();
    let mut drawn = false;
    while reader.peek().is_some() {
        let (section, at) = reader.needed("a section")?;
        reader.bracket("(")?;
        match section {
            "NODES" => {
                while reader.peek() != Some(")") {
                    let (name, at) = reader.needed("a node")?;
                    let mut position = None;
                    if reader.peek() == Some("(") {
                        reader.bracket("(")?;
                        let (longitude, _) = reader.number("a longitude")?;
                        let (latitude, _) = reader.number("a latitude")?;
                        reader.bracket(")")?;
                        position = Position::of(latitude, longitude);
                        drawn |= position.is_none();
                        // The sections that may follow do not describe the network.
                        while reader.peek() == Some("(") {
                            reader.bracket("(")?;
                            reader.skip()?;
                        }
                    }
                    names.add(&mut graph, GraphNode { name: name.to_owned(), position, at })?;
                }
                reader.bracket(")")?;
            }
            "LINKS" => {
                while reader.peek() != Some(")") {
                    let at = reader.needed("a link")?.1;
                    reader.bracket("(")?;
                    ends.push([reader.needed("a node")?, reader.needed("a node")?]);
                    reader.bracket(")")?;
                    let rate = capacity(&mut reader)?.map(Capacity::Units);
                    graph.links.push(GraphLink { ends: [0; 2], direction: LinkDirection::Both, rate, delay: None, at });
                }
                reader.bracket(")")?;
            }
            "META" => reader.skip()?,
            "DEMANDS" | "ADMISSIBLE_PATHS" => {
                graph.left_out.push(section.to_owned());
                reader.skip()?;
            }
            _ => {
                let expected = "expected META, NODES, LINKS, DEMANDS or ADMISSIBLE_PATHS";
                return Err(Error::text(at, format!("unknown section `{section}`"), expected));
            }
        }
    }
    if drawn {
        graph.nodes.iter_mut().for_each(|node| node.position = None);
        graph.left_out.push("coordinates: some are no degrees, so all are taken for those of a drawing".into());
    }
    // Links may precede nodes.
    for (link, [a, b]) in graph.links.iter_mut().zip(ends) {
        link.ends = [names.known(a.0, a.1)?, names.known(b.0, b.1)?];
    }
    Ok(graph)
}

/// Reads the fields after a link's ends: the installed capacity and its cost, routing cost, setup cost, and modules in
/// brackets. Each of these may be missing from some place on.
fn capacity(reader: &mut TokenReader<'_>) -> Result<Option<f64>, Error> {
    let mut found = None;
    let is_number = |reader: &TokenReader<'_>| reader.peek().is_some_and(|token| token.parse::<f64>().is_ok());
    for field in 0..4 {
        // A number may also be the name of the next link, which a bracket follows.
        if !is_number(reader) || reader.tokens.get(reader.at + 1).is_some_and(|token| token.0 == "(") && field == 0 {
            break;
        }
        let (number, _) = reader.number("a number")?;
        found = if field == 0 && number > 0.0 { Some(number) } else { found };
    }
    if reader.peek() == Some("(") {
        reader.bracket("(")?;
        let mut index = 0;
        while reader.peek() != Some(")") {
            let (number, _) = reader.number("a module's capacity")?;
            found = found.or((index == 0 && number > 0.0).then_some(number));
            index += 1;
        }
        reader.bracket(")")?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "?SNDlib native format; type: network; version: 1.0\n# small\nMETA (\n  granularity = x\n)\nNODES (\n  Bonn ( 7.10 50.74 )\n  Ulm ( 9.99, 48.40 )\n  Far ( 17.0 12.0 )\n)\nLINKS (\n  L1 ( Bonn Ulm ) 40.00 1.0 0.0 0.0 ( 155.00 1.00 622.00 2.00 )\n  L2 ( Ulm Far ) 0.00 0.0 0.0 0.0 ( 155.00 1.00 )\n  L3 ( Bonn Far ) 0.00 0.0 0.0 0.0 ( )\n)\nDEMANDS (\n  D1 ( Bonn Ulm ) 1 5.00 UNLIMITED\n)\n";

    #[test]
    fn a_network_is_read() {
        let graph = read(SMALL).unwrap();
        let names: Vec<&str> = graph.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["Bonn", "Ulm", "Far"]);
        assert_eq!(graph.nodes[1].position, Some(Position { latitude: 48.40, longitude: 9.99 }));
        let links: Vec<_> = graph.links.iter().map(|link| (link.ends, link.rate.clone())).collect();
        let units = |number| Some(Capacity::Units(number));
        assert_eq!(links, [([0, 1], units(40.0)), ([1, 2], units(155.0)), ([0, 2], None)]);
        assert_eq!(graph.left_out, ["DEMANDS"]);
    }

    /// Drawings in which some coordinates look like degrees.
    #[test]
    fn drawing_coordinates_are_not_positions() {
        let graph = read(&SMALL.replacen("17.0 12.0", "700.0 12.0", 1)).unwrap();
        assert!(graph.nodes.iter().all(|node| node.position.is_none()));
        assert!(graph.left_out.iter().any(|what| what.starts_with("coordinates")), "{:?}", graph.left_out);
    }

    #[test]
    fn errors_have_byte_ranges() {
        for (from, to, location, name) in [
            ("( Bonn Ulm ) 40", "( Bonn Um ) 40", "12:13", "`Um`"),
            ("Ulm (", "Bonn (", "8:3", "`Bonn`"),
            ("7.10", "x", "7:10", "`x`"),
            ("LINKS", "LINK", "11:1", "`LINK`"),
            ("UNLIMITED\n)", "", "18:1", ""),
        ] {
            let text = SMALL.replacen(from, to, 1);
            let error = read(&text).unwrap_err();
            assert_eq!(error.line_and_column(&text), location, "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
        assert_eq!(read("").unwrap(), Graph::default());
    }

    /// A node may have up to two more groups, as the format's own description states.
    #[test]
    fn text_after_a_position_is_skipped() {
        let more = SMALL.replacen("( 9.99, 48.40 )", "( 9.99 48.40 ) () ( 2 x )", 1);
        assert!(more != SMALL);
        assert_eq!(read(&more).unwrap().nodes.len(), 3);
    }
}
