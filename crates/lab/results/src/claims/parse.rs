//! The claim language from text. Errors point at their column.

use std::fmt;

use super::ast::{
    Check, ClaimWindow, Comparison, Expr, Function, Metric, Operator, Order, Subject, is_name, normal_point,
};
use super::keywords::{self, CRITICAL, ClosedSet, IT, Part, SampleStat, Sampled, SpreadKey, Stat, TierKey, TotalKey};
use crate::quantity::{Dimension, Unit};

/// The longest text of an expression: every walk over its tree is no deeper than this.
pub const MAX: usize = 1_000;
/// The deepest nesting of parentheses and signs.
const DEEPEST: u32 = 50;

/// A syntax error in an expression, and its location.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// The expression.
    pub text: String,
    /// The bytes of it that are wrong; empty at its end.
    pub span: std::ops::Range<usize>,
    /// The error.
    pub message: String,
}

impl ParseError {
    /// The column, in characters from 1.
    pub fn column(&self) -> usize {
        self.text.get(..self.span.start).unwrap_or(&self.text).chars().count() + 1
    }
}

impl std::error::Error for ParseError {}

/// The message, the expression, and carets under the error.
impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wrong = self.text.get(self.span.clone()).unwrap_or("").chars().count().max(1);
        let line = self.text.replace(['\n', '\r', '\t'], " ");
        let (column, carets) = (self.column(), "^".repeat(wrong));
        write!(f, "column {column}: {}\n  {line}\n  {carets:>1$}", self.message, column - 1 + wrong)
    }
}

/// Reads a check: comparisons joined by `and`.
///
/// # Errors
/// When it is none, with the column.
pub fn check(text: &str) -> Result<Check, ParseError> {
    Parser::new(text)?.checks()
}

/// Reads an expression without a comparison.
///
/// # Errors
/// When it is none, with the column.
pub fn expression(text: &str) -> Result<Expr, ParseError> {
    let mut parser = Parser::new(text)?;
    let expr = parser.sum()?;
    parser.end("an operator or the end")?;
    Ok(expr)
}

/// Reads an expression about one run, which it does not name, or names `it`: `inter.slowdown.p99`. A short form is accepted:
/// `slowdown.p99` for `all.slowdown.p99`.
///
/// # Errors
/// When it is none, with the column.
pub fn expression_of_a_run(text: &str) -> Result<Expr, ParseError> {
    let mut parser = Parser { names_runs: false, ..Parser::new(text)? };
    let expr = parser.sum()?;
    parser.end("an operator or the end")?;
    Ok(expr)
}

/// Reads comparisons about one run, as [`expression_of_a_run`] reads their sides.
///
/// # Errors
/// When it is none, with the column.
pub fn check_of_a_run(text: &str) -> Result<Check, ParseError> {
    Parser { names_runs: false, ..Parser::new(text)? }.checks()
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    /// Set if metrics begin with a run's name.
    names_runs: bool,
}

type Parsed<T> = Result<T, ParseError>;

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parsed<Self> {
        let parser = Self { text, at: 0, depth: 0, names_runs: true };
        match text.char_indices().nth(MAX) {
            Some((at, _)) => parser.wrong(at..at, format!("an expression has at most {MAX} characters")),
            None => Ok(parser),
        }
    }

    fn wrong<T>(&self, span: std::ops::Range<usize>, message: impl Into<String>) -> Parsed<T> {
        Err(ParseError { text: self.text.to_owned(), span, message: message.into() })
    }

    /// An error at the next character.
    fn expected<T>(&mut self, item: &str) -> Parsed<T> {
        let rest = self.rest();
        match rest.chars().next() {
            None => self.wrong(self.at..self.at, format!("expected {item}, but it ends here")),
            Some(first) => {
                let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
                self.wrong(self.at..self.at + length.max(first.len_utf8()), format!("expected {item}"))
            }
        }
    }

    /// Returns the remaining text, without leading space.
    fn rest(&mut self) -> &'a str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    fn need(&mut self, sign: &str) -> Parsed<()> {
        if self.sign(sign) { Ok(()) } else { self.expected(&format!("`{sign}`")) }
    }

    /// The next token, if it is a name.
    fn peek_name(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        Some(&rest[..end]).filter(|name| is_name(name))
    }

    fn keyword(&mut self, keyword: &str) -> bool {
        let found = self.peek_name() == Some(keyword);
        if found {
            self.at += keyword.len();
        }
        found
    }

    fn end(&mut self, item: &str) -> Parsed<()> {
        if self.rest().is_empty() { Ok(()) } else { self.expected(item) }
    }

    /// Comparisons joined by `and`, and nothing else.
    fn checks(mut self) -> Parsed<Check> {
        let mut all = vec![self.comparison()?];
        while self.keyword("and") {
            all.push(self.comparison()?);
        }
        self.end("`and`, an operator or the end")?;
        Ok(Check { all })
    }

    fn comparison(&mut self) -> Parsed<Comparison> {
        let left = self.sum()?;
        let Some(order) = Order::ALL.into_iter().find(|order| self.sign(order.sign())) else {
            return self.expected("a comparison: <, <=, >, >=, == or !=");
        };
        Ok(Comparison { left, order, right: self.sum()? })
    }

    fn sum(&mut self) -> Parsed<Expr> {
        let mut expr = self.product()?;
        while let Some(operator) = self.operator([Operator::Plus, Operator::Minus]) {
            expr = Expr::Binary(Box::new(expr), operator, Box::new(self.product()?));
        }
        Ok(expr)
    }

    fn product(&mut self) -> Parsed<Expr> {
        let mut expr = self.signed()?;
        while let Some(operator) = self.operator([Operator::Times, Operator::Over]) {
            expr = Expr::Binary(Box::new(expr), operator, Box::new(self.signed()?));
        }
        Ok(expr)
    }

    fn operator(&mut self, known: [Operator; 2]) -> Option<Operator> {
        let first = self.rest().chars().next()?;
        let found = known.into_iter().find(|operator| operator.sign() == first)?;
        self.at += first.len_utf8();
        Some(found)
    }

    fn signed(&mut self) -> Parsed<Expr> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.expected(&format!("at most {DEEPEST} levels of parentheses and signs"));
        }
        let operand = if self.sign("-") { Expr::Negative(Box::new(self.signed()?)) } else { self.atom()? };
        self.depth -= 1;
        Ok(operand)
    }

    fn atom(&mut self) -> Parsed<Expr> {
        const EXPECTED: &str = "a number, a run's name, a function or `(`";
        let Some(first) = self.rest().chars().next() else { return self.expected(EXPECTED) };
        if first.is_ascii_digit() {
            return self.literal();
        }
        if first == '(' {
            self.at += 1;
            let inner = self.sum()?;
            self.need(")")?;
            return Ok(inner);
        }
        if let Some(name) = self.peek_name()
            && self.text[self.at + name.len()..].trim_start().starts_with('(')
        {
            return self.call(name);
        }
        if first == '"' || first == '\'' || self.peek_name().is_some() {
            return self.metric().map(Expr::Metric);
        }
        self.expected(EXPECTED)
    }

    fn call(&mut self, name: &str) -> Parsed<Expr> {
        match (named::<Stat>(name), named::<Sampled>(name), named::<Part>(name)) {
            (Some(stat), ..) if function_named(name).is_none() || self.spread_follows(name) => {
                return self.statistic(name, stat).map(Expr::Metric);
            }
            (_, Some(_), _) | (_, _, Some(Part::Flows)) if !self.names_runs => return self.metric().map(Expr::Metric),
            _ => {}
        }
        let start = self.at;
        let Some(function) = function_named(name) else {
            let statistics = names::<Stat>().join(", ");
            let message = format!("no such function; known are min, max and abs, and of times {statistics}");
            return self.wrong(start..start + name.len(), message);
        };
        self.at += name.len();
        self.need("(")?;
        let mut args = vec![self.sum()?];
        while self.sign(",") {
            args.push(self.sum()?);
        }
        self.need(")")?;
        if function == Function::Abs && args.len() != 1 {
            return self.wrong(start..self.at, format!("abs takes one value, not {}", args.len()));
        }
        Ok(Expr::Call(function, args))
    }

    fn literal(&mut self) -> Parsed<Expr> {
        let rest = self.rest();
        let start = self.at;
        let count = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let mut end = count(rest);
        if rest[end..].starts_with('.') && count(&rest[end + 1..]) > 0 {
            end += 1 + count(&rest[end + 1..]);
        }
        if let Some(tail) = rest[end..].strip_prefix(['e', 'E']) {
            let sign = usize::from(tail.starts_with(['+', '-']));
            let digits = count(&tail[sign..]);
            if digits > 0 {
                end += 1 + sign + digits;
            }
        }
        let amount = match rest[..end].parse::<f64>() {
            Ok(amount) if amount.is_finite() => amount,
            _ => return self.wrong(start..start + end, "this number is too large"),
        };
        self.at += end;
        Ok(Expr::Literal(amount, self.unit()?))
    }

    /// A unit right after a number, or after spaces.
    fn unit(&mut self) -> Parsed<Option<Unit>> {
        let tail = &self.text[self.at..];
        let space = tail.len() - tail.trim_start().len();
        let unit_text = &tail[space..];
        let end = if unit_text.starts_with('%') {
            1
        } else {
            unit_text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(unit_text.len())
        };
        if end == 0 {
            return Ok(None);
        }
        let start = self.at + space;
        match Unit::from_name(&unit_text[..end]) {
            Some(unit) => {
                self.at = start + end;
                Ok(Some(unit))
            }
            // A word after a space belongs to the enclosing expression.
            None if space > 0 => Ok(None),
            None => {
                let known: Vec<&str> = Unit::ALL.iter().map(|unit| unit.name).collect();
                self.wrong(start..start + end, format!("no such unit; known are {}", known.join(", ")))
            }
        }
    }

    /// A name, or a text in quotes. Also returns whether it was quoted.
    fn name(&mut self, item: &str) -> Parsed<(String, bool)> {
        if let Some(name) = self.peek_name() {
            self.at += name.len();
            return Ok((name.to_owned(), false));
        }
        let rest = self.rest();
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
            return self.expected(item);
        };
        let (start, mut text, mut escaped) = (self.at, String::new(), false);
        for (offset, c) in rest.char_indices().skip(1) {
            if escaped || (c != quote && c != '\\') {
                text.push(c);
                escaped = false;
            } else if c == '\\' {
                escaped = true;
            } else {
                self.at += offset + 1;
                if text.is_empty() {
                    return self.wrong(start..self.at, format!("expected {item}, but this is empty"));
                }
                return Ok((text, true));
            }
        }
        self.wrong(start..self.text.len(), format!("this has no closing {quote}"))
    }

    /// One of a set of words.
    fn one_of<W: ClosedSet>(&mut self, item: &str) -> Parsed<W> {
        match self.one_of_if_any() {
            Some(value) => Ok(value),
            None => self.expected(&format!("{item}: {}", names::<W>().join(", "))),
        }
    }

    /// The next token, if it is one of a set of words.
    fn one_of_if_any<W: ClosedSet>(&mut self) -> Option<W> {
        let found = self.peek_name()?;
        let value = named(found)?;
        self.at += found.len();
        Some(value)
    }

    /// A class of links, in quotes or not, by which a total of the network is counted.
    fn tier(&mut self, key: TierKey) -> Parsed<&'static str> {
        let known: Vec<&str> = key.tiers().collect();
        let item = format!("a class of links by which `{}` counts: {}", key.name(), known.join(", "));
        self.rest();
        let start = self.at;
        let (name, _) = self.name(&item)?;
        match key.tiers().find(|&tier| tier == name) {
            Some(tier) => Ok(tier),
            None => self.wrong(start..self.at, format!("expected {item}")),
        }
    }

    /// Two times, such as `20ms, 50ms`.
    fn window(&mut self) -> Parsed<ClaimWindow> {
        self.rest();
        let start = self.at;
        let from_ns = self.time()?;
        self.need(",")?;
        let to_ns = self.time()?;
        if to_ns < from_ns {
            return self.wrong(start..self.at, "this ends before it begins");
        }
        Ok(ClaimWindow { from_ns, to_ns })
    }

    /// A time in whole nanoseconds.
    fn time(&mut self) -> Parsed<u64> {
        const EXPECTED: &str = "a time such as 20ms";
        if !self.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return self.expected(EXPECTED);
        }
        let start = self.at;
        if let Expr::Literal(amount, Some(unit)) = self.literal()?
            && let time = unit.of(amount)
            && time.dimension == Dimension::TIME
        {
            return Ok(time.amount.round() as u64);
        }
        self.wrong(start..self.at, format!("expected {EXPECTED}"))
    }

    fn metric(&mut self) -> Parsed<Metric> {
        let run = self.run()?;
        Ok(Metric { run, subject: self.subject()? })
    }

    /// The run's name and its dot; empty where runs are not named, with or without [`IT`].
    fn run(&mut self) -> Parsed<String> {
        if !self.names_runs {
            if self.peek_name() == Some(IT) && self.text[self.at + IT.len()..].trim_start().starts_with('.') {
                self.at += IT.len();
                self.need(".")?;
            }
            return Ok(String::new());
        }
        let (mut run, _) = self.name("a run's name")?;
        if self.sign("[") {
            let start = self.at;
            let Some(length) = self.text[start..].find(']') else {
                return self.wrong(start - 1..self.text.len(), "this has no closing ]");
            };
            let Some(point) = normal_point(&self.text[start..start + length]) else {
                let message = "expected the point of a grid, such as [load=0.4]";
                return self.wrong(start - 1..start + length + 1, message);
            };
            self.at = start + length + 1;
            run = format!("{run},{point}");
        }
        self.need(".")?;
        Ok(run)
    }

    /// `STAT(CLASS.fct)`, for `CLASS.fct.STAT`.
    fn statistic(&mut self, name: &str, stat: Stat) -> Parsed<Metric> {
        self.at += name.len();
        self.need("(")?;
        let run = self.run()?;
        let (mut class, quoted) = self.name("a class of flows")?;
        let key = match named::<SpreadKey>(&class) {
            Some(key) if !quoted => {
                ALL_FLOWS.clone_into(&mut class);
                key
            }
            _ => {
                if !self.sign(".") {
                    let times = names::<SpreadKey>().join(", ");
                    return self.expected(&format!("a time of flows ({times}), or `.` behind a class of them"));
                }
                self.one_of("a time of flows")?
            }
        };
        self.need(")")?;
        Ok(Metric { run, subject: Subject::Spread { class, key, stat } })
    }

    /// Returns whether the parentheses after a function's name contain `CLASS.fct` or similar, and not an expression.
    fn spread_follows(&self, name: &str) -> bool {
        let mut lookahead = Self { text: self.text, at: self.at, ..*self };
        named(name).is_some_and(|stat| lookahead.statistic(name, stat).is_ok())
    }

    /// Parses a part of a run and its value.
    fn subject(&mut self) -> Parsed<Subject> {
        let start = self.at;
        let known = keywords::parts().collect::<Vec<_>>().join(", ");
        let (part, quoted) = self.name(&format!("all, intra, inter, a size bin, or one of {known}"))?;
        let subject = match (named::<Part>(&part), named::<Sampled>(&part)) {
            (Some(part), _) if !quoted => self.part(part)?,
            (_, Some(of)) if !quoted => self.samples(of)?,
            _ if !quoted && !self.names_runs && is_metric_of_flows(&part) => {
                self.at = start;
                self.metric_of(ALL_FLOWS.to_owned())?
            }
            _ => self.class(part)?,
        };
        Ok(subject)
    }

    /// Parses the rest of a metric, after a part of a run.
    fn part(&mut self, part: Part) -> Parsed<Subject> {
        if part == Part::Flows {
            self.need("(")?;
            let window = self.window()?;
            self.need(")")?;
            self.need(".")?;
            return Ok(Subject::Flows { window, key: self.one_of("a measure of sampled flows")? });
        }
        self.need(".")?;
        Ok(match part {
            Part::Fairness => Subject::Fairness(self.one_of("a measure of fairness")?),
            Part::Predicts => Subject::Predicts(self.one_of("what predicts a delay")?),
            Part::Law => Subject::Law(self.one_of("what a law does")?),
            Part::Credits => Subject::Credits(self.one_of("a count of credits")?),
            Part::Network | Part::Flows => match self.one_of_if_any() {
                Some(key) => {
                    self.need(".")?;
                    Subject::Tier { key, tier: self.tier(key)? }
                }
                None => Subject::Network(self.one_of("a total of the network")?),
            },
        })
    }

    /// Parses the rest of a metric, after a word for samples.
    fn samples(&mut self, of: Sampled) -> Parsed<Subject> {
        self.need("(")?;
        let item = match of {
            Sampled::Buffer => "switches in quotes, such as \"all\"",
            Sampled::Rate => "flows in quotes, such as \"all\", \"0\" or \"0..4\"",
            Sampled::Queue | Sampled::Phantom | Sampled::Ingress | Sampled::Pseudo | Sampled::Feedback => {
                "ports in quotes, such as \"receiver\""
            }
        };
        let (chosen, _) = self.name(item)?;
        let window = if self.sign(",") { Some(self.window()?) } else { None };
        self.need(")")?;
        self.need(".")?;
        Ok(Subject::Samples { of, chosen, window, stat: self.one_of::<SampleStat>("a statistic")? })
    }

    /// Parses the rest of a metric, after a class of flows.
    fn class(&mut self, class: String) -> Parsed<Subject> {
        self.need(".")?;
        self.metric_of(class)
    }

    /// Parses the rest of a metric, after a class of flows and its dot.
    fn metric_of(&mut self, class: String) -> Parsed<Subject> {
        if let Some(key) = self.one_of_if_any() {
            self.need(".")?;
            return Ok(Subject::Spread { class, key, stat: self.one_of("a statistic")? });
        }
        if self.keyword(CRITICAL) {
            self.need(".")?;
            let (step, _) = self.name("a kind of step on the critical path, such as compute or pipeline")?;
            return Ok(Subject::Critical { job: class, step });
        }
        if let Some(key) = self.one_of_if_any() {
            return Ok(Subject::Class { class, key });
        }
        let known = [names::<SpreadKey>(), names::<TotalKey>(), vec![CRITICAL]].concat().join(", ");
        self.expected(&format!("a metric of flows: {known}"))
    }
}

/// The class of all flows.
const ALL_FLOWS: &str = "all";

/// Returns whether a word is a metric of a class of flows. Such a word means that of all flows where a class is
/// expected.
fn is_metric_of_flows(name: &str) -> bool {
    name == CRITICAL || named::<SpreadKey>(name).is_some() || named::<TotalKey>(name).is_some()
}

fn function_named(name: &str) -> Option<Function> {
    Function::ALL.into_iter().find(|function| function.name() == name)
}

/// Returns the names of a set of words.
fn names<W: ClosedSet>() -> Vec<&'static str> {
    W::ALL.iter().map(|value| value.name()).collect()
}

/// The word of that name.
fn named<W: ClosedSet>(name: &str) -> Option<W> {
    W::ALL.iter().copied().find(|value| value.name() == name)
}
