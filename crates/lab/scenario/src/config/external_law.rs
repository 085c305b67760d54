//! `[external_laws.*]`: laws that the calling program supplies, and the names by which schemes refer to laws.

use std::sync::Arc;

use laws::catalog::{LawInfo, LawKind};
use serde_json::{Value as Json, json};

use crate::decode::{Field, Located, NamedValues, table};
use crate::error::{SourceSpan, SpannedError, nearest};
use crate::tree::{Node, Value};

/// A law by its name: one of the catalog, or an external one.
///
/// Names in the catalog begin with a small letter and those of external laws with a capital, so neither hides the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LawName {
    /// A law of the catalog.
    Known(LawKind),
    /// One of `[external_laws]`.
    External(Arc<str>),
}

impl LawName {
    /// Its name in files.
    pub fn name(&self) -> &str {
        match self {
            Self::Known(kind) => kind.info().name,
            Self::External(name) => name,
        }
    }

    /// Its name in prose.
    pub fn title(&self) -> &str {
        match self {
            Self::Known(kind) => kind.info().title,
            Self::External(name) => name,
        }
    }

    /// Returns the catalog's entry for the law; none for an external law.
    pub fn info(&self) -> Option<&'static LawInfo> {
        match self {
            Self::Known(kind) => Some(kind.info()),
            Self::External(_) => None,
        }
    }
}

impl Field for LawName {
    const EXPECTS: &'static str = "the name of a law such as \"unocc\"";
    fn decode(node: &Node) -> Result<Self, SpannedError> {
        let name = String::decode(node)?;
        match LawKind::from_name(&name) {
            Some(kind) => Ok(Self::Known(kind)),
            // Its declaration is checked after all tables are read.
            None if is_external_name(&name) => Ok(Self::External(name.into())),
            None => Err(SpannedError::new(node.origin, format!("unknown law `{name}`"))
                .label("unknown law")
                .suggest(&name, law_names())),
        }
    }
    fn encode(&self) -> Value {
        Value::string(self.name())
    }
    fn schema() -> Json {
        json!({ "anyOf": [{ "enum": law_names().collect::<Vec<_>>() }, { "type": "string", "pattern": "^[A-Z]" }] })
    }
}

fn law_names() -> impl Iterator<Item = &'static str> {
    LawKind::ALL.into_iter().map(|kind| kind.info().name)
}

/// Returns whether a name can be that of an external law: that of a class, in most languages.
fn is_external_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

table! {
    /// A law that the calling program supplies. The Python package writes the table; the command has no such laws.
    ExternalLaw {
        /// Programming language of its source: 1 to 32 letters, digits, spaces and `+`, `#`, `.`, `-`.
        language: Located<String>;
        /// SHA-256 of its source in hexadecimal: a changed law is another run.
        sha256: Located<String>;
        /// Its parameters and their defaults: whole numbers, numbers, or true and false.
        params: NamedValues<Node> = NamedValues::default();
    }
}

impl ExternalLaw {
    /// Its parameters as a JSON object: the defaults, and over them those that a scheme sets.
    pub(crate) fn with(&self, name: &str, set: &NamedValues<Node>) -> Result<Json, SpannedError> {
        let mut all: serde_json::Map<String, Json> =
            self.params.iter().map(|(key, node)| (key.to_owned(), node.to_json())).collect();
        for (key, node) in &set.0 {
            let Some(default) = self.params.get(key) else {
                let names = self.params.iter().map(|(known, _)| known);
                return Err(SpannedError::new(key.origin, format!("{name} has no parameter `{}`", key.value))
                    .label("unknown parameter")
                    .suggest(key, names));
            };
            check_finite(node)?;
            let is_valid = match (&default.value, &node.value) {
                (Value::Integer(_), Value::Integer(_)) | (Value::Boolean(_), Value::Boolean(_)) => true,
                (Value::Float(_), found) => matches!(found, Value::Float(_) | Value::Integer(_)),
                _ => false,
            };
            if !is_valid {
                let expected = kind_of(default).unwrap_or("nothing");
                let error = format!("{name}'s `{}` is {expected}, but was given {}", key.value, node.described());
                return Err(SpannedError::new(node.origin, error).label(format!("expected {expected}")));
            }
            all.insert(key.value.clone(), node.to_json());
        }
        Ok(Json::Object(all))
    }
}

/// Returns the kind of a parameter, from its default; none if the value cannot be a parameter's.
fn kind_of(node: &Node) -> Option<&'static str> {
    match node.value {
        Value::Integer(_) => Some("a whole number"),
        Value::Float(_) => Some("a finite number"),
        Value::Boolean(_) => Some("true or false"),
        _ => None,
    }
}

/// Refuses `inf` and `nan`, which results could not hold.
fn check_finite(node: &Node) -> Result<(), SpannedError> {
    match &node.value {
        Value::Float(number) if !number.parse().is_ok_and(f64::is_finite) => {
            Err(SpannedError::new(node.origin, format!("expected a finite number, found {}", node.described()))
                .label("expected a finite number"))
        }
        _ => Ok(()),
    }
}

/// Returns whether a text can name a language: it is printed in messages and reports.
fn is_language(text: &str) -> bool {
    let accepted = |byte: u8| byte.is_ascii_alphanumeric() || b" +#.-".contains(&byte);
    (1..=32).contains(&text.len()) && text.bytes().all(accepted)
}

impl NamedValues<ExternalLaw> {
    /// Refuses laws that schemes could not name, and parameters of unknown kinds.
    pub(crate) fn check(&self) -> Result<(), SpannedError> {
        for (name, law) in &self.0 {
            if !is_external_name(name) {
                let shown = name.value.escape_debug();
                let error = SpannedError::new(name.origin, format!("`{shown}` cannot be the name of an external law"));
                return Err(error.label("expected a capital letter, then letters, digits and `_`, at most 64"));
            }
            let language = &law.language;
            if !is_language(language) {
                let shown = language.value.escape_debug();
                return Err(SpannedError::new(language.origin, format!("`{shown}` cannot be the name of a language"))
                    .label("expected 1 to 32 letters, digits, spaces and `+`, `#`, `.`, `-`"));
            }
            let is_hash = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !is_hash(&law.sha256) {
                return Err(SpannedError::new(
                    law.sha256.origin,
                    format!("`{}` is no SHA-256", law.sha256.value.escape_debug()),
                )
                .label("expected 64 hexadecimal digits"));
            }
            for (_, node) in &law.params.0 {
                check_finite(node)?;
                if kind_of(node).is_none() {
                    let expected = "expected a whole number, a finite number, or true or false";
                    let error = SpannedError::new(node.origin, format!("{expected}; found {}", node.described()));
                    return Err(error.label(expected));
                }
            }
        }
        Ok(())
    }

    /// The law of that name; an error at `origin` if it is not declared.
    pub(crate) fn find_law(&self, name: &str, origin: SourceSpan) -> Result<&ExternalLaw, SpannedError> {
        self.get(name).ok_or_else(|| {
            let known = law_names().map(str::to_owned).chain(self.iter().map(|(name, _)| name.to_owned()));
            let known: Vec<String> = known.collect();
            let names: Vec<&str> = known.iter().map(String::as_str).collect();
            let error = SpannedError::new(origin, format!("unknown law `{name}`")).label("unknown law");
            match nearest(name, &names) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.help(format!("only narrows.run(..., laws=[{name}]) can run a law in Python")),
            }
        })
    }
}
