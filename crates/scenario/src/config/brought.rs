//! `[laws.*]`: laws that the program brings which runs a scenario, and the names by which schemes choose among these and
//! those of the catalog.

use std::sync::Arc;

use laws::catalog::{Kind, LawInfo};
use serde_json::{Value as Json, json};

use crate::decode::{At, Field, Named, table, unexpected};
use crate::error::{Fault, Origin, nearest};
use crate::tree::{Node, Value};

/// A law by its name: one of the catalog, or one that is brought.
///
/// Names in the catalog begin with a small letter and those of laws that are brought with a capital, so neither hides the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LawName {
    /// A law of the catalog.
    Known(Kind),
    /// One of `[laws]`.
    Brought(Arc<str>),
}

impl LawName {
    /// Its name in files.
    pub fn name(&self) -> &str {
        match self {
            Self::Known(kind) => kind.info().name,
            Self::Brought(name) => name,
        }
    }

    /// Its name in prose.
    pub fn title(&self) -> &str {
        match self {
            Self::Known(kind) => kind.info().title,
            Self::Brought(name) => name,
        }
    }

    /// What the catalog has to say about it: nothing of a law that is brought.
    pub fn info(&self) -> Option<&'static LawInfo> {
        match self {
            Self::Known(kind) => Some(kind.info()),
            Self::Brought(_) => None,
        }
    }
}

impl Field for LawName {
    const EXPECTS: &'static str = "the name of a law such as \"unocc\"";
    fn decode(node: &Node) -> Result<Self, Fault> {
        let name = String::decode(node)?;
        match Kind::from_name(&name) {
            Some(kind) => Ok(Self::Known(kind)),
            // Whether it is there is asked when all tables are read.
            None if is_brought(&name) => Ok(Self::Brought(name.into())),
            None => Err(Fault::new(node.origin, format!("unknown law `{name}`"))
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
    Kind::ALL.into_iter().map(|kind| kind.info().name)
}

/// Whether a name can be that of a law that is brought: of a class, in most languages.
fn is_brought(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

table! {
    /// A law that the program brings which runs the scenario. The Python package writes the table; the command has no such laws.
    BroughtLaw {
        /// What it is written in.
        language: At<String>;
        /// The SHA-256 of its source in hexadecimal: a law that was changed is another run.
        sha256: At<String>;
        /// Its parameters and their defaults: whole numbers, numbers, or true and false.
        params: Named<Node> = Named::default();
    }
}

impl BroughtLaw {
    /// Its parameters as a JSON object: the defaults, and over them those that a scheme sets.
    pub(crate) fn with(&self, name: &str, set: Option<&Named<Node>>) -> Result<Json, Fault> {
        let mut all: serde_json::Map<String, Json> =
            self.params.iter().map(|(key, node)| (key.to_owned(), node.to_json())).collect();
        for (key, node) in set.into_iter().flat_map(|set| &set.0) {
            let Some(default) = self.params.get(key) else {
                let names = self.params.iter().map(|(known, _)| known);
                return Err(Fault::new(key.origin, format!("{name} has no parameter `{}`", key.value))
                    .label("unknown parameter")
                    .suggest(key, names));
            };
            let fits = match (&default.value, &node.value) {
                (Value::Integer(_), Value::Integer(_)) | (Value::Boolean(_), Value::Boolean(_)) => true,
                (Value::Float(_), found) => matches!(found, Value::Float(_) | Value::Integer(_)),
                _ => false,
            };
            if !fits {
                let expected = kind_of(default).unwrap_or("nothing");
                let fault = format!("{name}'s `{}` is {expected}, but was given {}", key.value, node.described());
                return Err(Fault::new(node.origin, fault).label(format!("expected {expected}")));
            }
            all.insert(key.value.clone(), node.to_json());
        }
        Ok(Json::Object(all))
    }
}

/// What a parameter is, by its default; none if it can be no parameter's.
fn kind_of(node: &Node) -> Option<&'static str> {
    match node.value {
        Value::Integer(_) => Some("a whole number"),
        Value::Float(_) => Some("a number"),
        Value::Boolean(_) => Some("true or false"),
        _ => None,
    }
}

impl Named<BroughtLaw> {
    /// Refuses laws that schemes could not name, and parameters of kinds that there are not.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        for (name, law) in &self.0 {
            if !is_brought(name) {
                let fault =
                    Fault::new(name.origin, format!("`{}` cannot be the name of a law that is brought", name.value));
                return Err(fault.label("expected a capital letter, then letters, digits and `_`, at most 64"));
            }
            let is_hash = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !is_hash(&law.sha256) {
                return Err(Fault::new(law.sha256.origin, format!("`{}` is no SHA-256", law.sha256.value))
                    .label("expected 64 hexadecimal digits"));
            }
            if let Some((_, node)) = law.params.0.iter().find(|(_, node)| kind_of(node).is_none()) {
                return Err(unexpected::<Node>(node).label("expected a whole number, a number, or true and false"));
            }
        }
        Ok(())
    }

    /// The law of that name; a fault at `at` if it is not brought.
    pub(crate) fn brought(&self, name: &str, origin: Origin) -> Result<&BroughtLaw, Fault> {
        self.get(name).ok_or_else(|| {
            let known = law_names().map(str::to_owned).chain(self.iter().map(|(name, _)| name.to_owned()));
            let known: Vec<String> = known.collect();
            let names: Vec<&str> = known.iter().map(String::as_str).collect();
            let fault = Fault::new(origin, format!("unknown law `{name}`")).label("unknown law");
            match nearest(name, &names) {
                Some(near) => fault.help(format!("did you mean `{near}`?")),
                None => fault
                    .help(format!("a law of a Python program is given to the run: narrows.run(..., laws=[{name}])")),
            }
        })
    }
}
