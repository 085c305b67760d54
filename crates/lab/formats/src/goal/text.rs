//! Textual GOAL: `num_ranks N`, then one block per rank.
//!
//! LogGOPSim's reader requires one statement per line and labels before their use. This one treats blanks and line ends
//! alike, and accepts labels anywhere in their rank's block.

use std::collections::BTreeMap;

use super::{Goal, Op, OpDependency, OpKind, Other, Rank, other_rank, peer};
use crate::index::index32;
use crate::{ByteRange, Error};

/// A token of the text and its place.
type GoalToken<'a> = (&'a str, ByteRange);

/// The tokens of a schedule: runs of letters, digits, `_`, `-` and `.`, and other characters one by one; without comments.
struct GoalTokens<'a> {
    text: &'a str,
    at: usize,
    /// Lookahead: a token that was read but not consumed.
    peeked: Option<GoalToken<'a>>,
}

impl<'a> GoalTokens<'a> {
    fn next(&mut self) -> Result<Option<GoalToken<'a>>, Error> {
        if let Some(token) = self.peeked.take() {
            return Ok(Some(token));
        }
        self.read()
    }

    fn peek(&mut self) -> Result<Option<GoalToken<'a>>, Error> {
        self.peeked = self.next()?;
        Ok(self.peeked)
    }

    fn read(&mut self) -> Result<Option<GoalToken<'a>>, Error> {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.len() - rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}').len();
            self.at += blank;
            let rest = &rest[blank..];
            if let Some(comment) = rest.strip_prefix("//") {
                self.at += 2 + comment.find('\n').unwrap_or(comment.len());
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let Some(end) = comment.find("*/") else {
                    let at = ByteRange::new(self.at..self.at + 2);
                    return Err(Error::text(at, "this comment is not closed", "expected `*/` behind it"));
                };
                self.at += end + 4;
            } else {
                break;
            }
        }
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else { return Ok(None) };
        let of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let length = rest.find(|c| !of_word(c)).unwrap_or(rest.len()).max(first.len_utf8());
        let span = ByteRange::new(self.at..self.at + length);
        self.at += length;
        Ok(Some((&rest[..length], span)))
    }

    /// Returns the next token, or an error at the end.
    fn needed(&mut self, expected: &str) -> Result<GoalToken<'a>, Error> {
        self.next()?.ok_or_else(|| {
            let end = self.text.len();
            Error::text(ByteRange::new(end..end), "the schedule ends here", format!("expected {expected}"))
        })
    }

    /// Reads a token that must be `wanted`.
    fn token(&mut self, wanted: &str) -> Result<ByteRange, Error> {
        let (token, at) = self.needed(&format!("`{wanted}`"))?;
        if token == wanted { Ok(at) } else { Err(unexpected((token, at), &format!("`{wanted}`"))) }
    }

    fn number<T: std::str::FromStr>(&mut self, expected: &str) -> Result<(T, ByteRange), Error> {
        let (token, at) = self.needed(expected)?;
        let number = token.parse().map_err(|_| unexpected((token, at), expected))?;
        Ok((number, at))
    }

    /// Consumes the next token if it is `wanted`.
    fn consume_if(&mut self, wanted: &str) -> Result<bool, Error> {
        let is = self.peek()?.is_some_and(|(token, _)| token == wanted);
        if is {
            self.peeked = None;
        }
        Ok(is)
    }
}

fn unexpected((token, at): GoalToken<'_>, expected: &str) -> Error {
    Error::text(at, format!("`{token}` is not expected here"), format!("expected {expected}"))
}

pub(super) fn read(text: &str) -> Result<Goal, Error> {
    let mut tokens = GoalTokens { text, at: 0, peeked: None };
    tokens.token("num_ranks")?;
    let (count, count_at) = tokens.number::<u32>("the number of ranks")?;
    let mut ranks: BTreeMap<u32, Rank> = BTreeMap::new();
    while let Some((token, at)) = tokens.next()? {
        if token != "rank" {
            return Err(unexpected((token, at), "`rank`"));
        }
        let (rank, rank_at) = tokens.number::<u32>("a rank")?;
        if rank >= count {
            let problem = format!("there is no rank {rank}: `num_ranks` is {count}");
            return Err(Error::text(rank_at, problem, format!("expected 0 to {}", count.saturating_sub(1))));
        }
        tokens.token("{")?;
        if ranks.insert(rank, block(&mut tokens, rank, count)?).is_some() {
            return Err(Error::text(rank_at, format!("rank {rank} has two blocks"), "expected one"));
        }
    }
    if ranks.len() != count as usize {
        let missing = (0..count).find(|rank| !ranks.contains_key(rank)).unwrap_or(0);
        let problem = format!("rank {missing} has no block: `num_ranks` is {count}, and {} have one", ranks.len());
        return Err(Error::text(count_at, problem, format!("expected `rank {missing} {{ ... }}`")));
    }
    Ok(Goal { ranks: ranks.into_values().collect() })
}

/// A dependency by its labels.
struct LabelledDependency<'a> {
    op: GoalToken<'a>,
    on: GoalToken<'a>,
    begun: bool,
}

fn block(tokens: &mut GoalTokens<'_>, rank: u32, ranks: u32) -> Result<Rank, Error> {
    let mut schedule = Rank::default();
    let mut labels: BTreeMap<&str, u32> = BTreeMap::new();
    let mut named: Vec<LabelledDependency<'_>> = Vec::new();
    loop {
        let first = tokens.needed("an operation, a dependency or `}`")?;
        match first.0 {
            "}" => break,
            "send" | "recv" | "calc" => schedule.ops.push(operation(tokens, first, rank, ranks)?),
            label if label.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') => {
                let next = tokens.needed("`:`, `requires` or `irequires`")?;
                match next.0 {
                    ":" => {
                        if labels.insert(label, index32(schedule.ops.len())).is_some() {
                            let problem = format!("two operations of rank {rank} are labelled `{label}`");
                            return Err(Error::text(first.1, problem, "expected another label"));
                        }
                        let token = tokens.needed("`send`, `recv` or `calc`")?;
                        if !matches!(token.0, "send" | "recv" | "calc") {
                            return Err(unexpected(token, "`send`, `recv` or `calc`"));
                        }
                        schedule.ops.push(operation(tokens, token, rank, ranks)?);
                    }
                    "requires" | "irequires" => {
                        let on = tokens.needed("a label")?;
                        named.push(LabelledDependency { op: first, on, begun: next.0 == "irequires" });
                    }
                    _ => return Err(unexpected(next, "`:`, `requires` or `irequires`")),
                }
            }
            _ => return Err(unexpected(first, "an operation, a dependency or `}`")),
        }
    }
    let find = |(label, at): GoalToken<'_>| {
        let found = labels.get(label).copied();
        found.ok_or_else(|| Error::text(at, format!("rank {rank} has no operation `{label}`"), "expected a label"))
    };
    for LabelledDependency { op, on, begun } in named {
        schedule.edges.push(OpDependency { op: find(op)?, on: find(on)?, begun });
    }
    schedule.edges.sort_unstable();
    schedule.edges.dedup();
    Ok(schedule)
}

/// Reads the rest of an operation that begins with `first`.
fn operation(tokens: &mut GoalTokens<'_>, first: GoalToken<'_>, rank: u32, ranks: u32) -> Result<Op, Error> {
    let (mut cpu, mut tag) = (0, 0);
    let kind;
    if first.0 == "calc" {
        let (ns, _) = tokens.number("a time in nanoseconds")?;
        kind = OpKind::Calc { ns };
        if tokens.consume_if("cpu")? {
            cpu = tokens.number("a processor")?.0;
        }
    } else {
        let bytes = bytes(tokens)?;
        let sends = first.0 == "send";
        tokens.token(if sends { "to" } else { "from" })?;
        let (token, at) = tokens.needed("a rank")?;
        let other = match token {
            "-1" => Other::Any,
            _ => Other::Rank(token.parse().map_err(|_| unexpected((token, at), "a rank"))?),
        };
        let other = peer(other, rank, ranks).map_err(|problem| Error::text(at, problem, other_rank(ranks)))?;
        if tokens.consume_if("tag")? {
            let (token, at) = tokens.needed("a tag")?;
            if token == "-1" {
                let problem = "a receive of any tag cannot be read: which send it takes is known only at run time";
                return Err(Error::text(at, problem, "expected the tag of a send"));
            }
            tag = token.parse().map_err(|_| unexpected((token, at), "a tag, a whole number"))?;
        }
        if tokens.consume_if("cpu")? {
            cpu = tokens.number("a processor")?.0;
        }
        if tokens.consume_if("nic")? {
            tokens.number::<u32>("a NIC")?;
        }
        kind = if sends { OpKind::Send { bytes, to: other, tag } } else { OpKind::Recv { bytes, from: other, tag } };
    }
    Ok(Op { kind, cpu, at: first.1.to(ByteRange::new(tokens.at..line_end(tokens))) })
}

/// Returns the end of the operation that was just read, at most the end of its line.
fn line_end(tokens: &GoalTokens<'_>) -> usize {
    tokens.peeked.map_or(tokens.at, |(_, at)| at.range().start.min(tokens.at))
}

/// Reads a size in bytes: `10b` or `10 b`.
fn bytes(tokens: &mut GoalTokens<'_>) -> Result<u64, Error> {
    const EXPECTED: &str = "a size such as 100b, over 0";
    let (token, at) = tokens.needed(EXPECTED)?;
    let digits = if let Some(digits) = token.strip_suffix('b') {
        digits
    } else {
        tokens.token("b")?;
        token
    };
    match digits.parse() {
        Ok(bytes) if bytes > 0 => Ok(bytes),
        Ok(_) => Err(Error::text(at, "a message of no bytes", format!("expected {EXPECTED}"))),
        Err(_) => Err(unexpected((token, at), EXPECTED)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RING: &str = "num_ranks 2\n\nrank 0 { // first\n  l1: calc 100\n  l2: send 10b to 1 tag 5 cpu 1 nic 0\n  l3: recv 8 b from 1 tag 6\n\
                        l2 requires l1\n  l3 irequires l2 }\nrank 1 {\n/* both\nways */ recv 10b from 0 tag 5\nx: send 8b to 0 tag 6 nic 1\n}\n";

    #[test]
    fn a_schedule_is_read() {
        let goal = read(RING).unwrap();
        assert_eq!(goal.ranks.len(), 2);
        let [first, second] = goal.ranks.as_slice() else { panic!() };
        let kinds: Vec<OpKind> = first.ops.iter().map(|op| op.kind).collect();
        let [calc, send, recv] = [
            OpKind::Calc { ns: 100 },
            OpKind::Send { bytes: 10, to: 1, tag: 5 },
            OpKind::Recv { bytes: 8, from: 1, tag: 6 },
        ];
        assert_eq!(kinds, [calc, send, recv]);
        assert_eq!(
            first.edges,
            [OpDependency { op: 1, on: 0, begun: false }, OpDependency { op: 2, on: 1, begun: true }]
        );
        assert_eq!((first.ops[1].cpu, second.ops.len(), second.edges.len()), (1, 2, 0));
        assert!(RING[first.ops[1].at.range()].starts_with("send 10b to 1 tag 5 cpu 1 nic 0"));
    }

    #[test]
    fn errors_have_byte_ranges() {
        for (from, to, location, name) in [
            ("num_ranks 2", "num_ranks 3", "1:11", ""),
            ("num_ranks 2", "num_ranks 1", "5:19", ""),
            ("num_ranks 2", "num_ranks 4000000000", "1:11", ""),
            ("rank 1 {", "rank 0 {", "11:23", ""),
            ("l2: send", "l1: send", "5:3", "`l1`"),
            ("requires l1", "requires l9", "7:13", "`l9`"),
            ("10b to 1", "0b to 1", "5:12", ""),
            ("10b to 1", "10b to 7", "5:19", ""),
            ("10b to 1", "10b to 0", "5:19", ""),
            ("10b to 1", "10kb to 1", "5:12", "`10kb`"),
            ("from 1 tag 6", "from -1 tag 6", "6:21", ""),
            ("from 1 tag 6", "from 1 tag -1", "6:27", ""),
            ("calc 100", "calc x", "4:12", "`x`"),
            ("*/", "", "10:1", ""),
            ("nic 1\n}", "nic 1\n", "14:1", ""),
            ("l3 irequires", "l3 needs", "8:6", "`needs`"),
        ] {
            let text = RING.replacen(from, to, 1);
            let error = read(&text).unwrap_err();
            assert_eq!(error.line_and_column(&text), location, "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
        assert!(read("").is_err() && read("num_ranks").is_err() && read("num_ranks 0").unwrap().ranks.is_empty());
    }
}
