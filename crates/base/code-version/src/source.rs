//! One source file as tokens: those that count as its code, and the items that it refers to.
//!
//! Comments, doc comments, lint levels, formatting, `mod` declarations and everything under `#[cfg(test)]` are left out.
//! `use` declarations count as a sorted set, since `rustfmt` orders them.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// A path of identifiers, such as `crate::window::Window`.
pub type IdentPath = Vec<String>;

/// A name that a `use` declaration brings into scope.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Import {
    /// The path as written.
    pub path: IdentPath,
    /// The name in scope; `*` for a glob.
    pub name: String,
    /// Visibility outside the module.
    pub visibility: Visibility,
}

/// Visibility of an import.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Visibility {
    /// Only this module and its children.
    Private,
    /// A re-export.
    Reexport,
}

/// The type, or the trait of a foreign type, to which an `impl` block belongs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Impl {
    /// The implementing type.
    pub subject: IdentPath,
    /// The implemented trait, if any.
    pub of_trait: Option<IdentPath>,
}

/// A source file.
#[derive(Clone, Default, Debug)]
pub struct SourceFile {
    /// The counted tokens as text, one a line. Equal text means equal code.
    pub code: String,
    /// Modules declared here that have files of their own.
    pub children: BTreeSet<String>,
    /// Names in scope through `use`.
    pub imports: BTreeSet<Import>,
    /// Items defined at the top level.
    pub items: BTreeSet<String>,
    /// Macros defined by `macro_rules!`.
    pub macros: BTreeSet<String>,
    /// Paths of two segments or more, outside `use`.
    pub paths: BTreeSet<IdentPath>,
    /// All other identifiers.
    pub names: BTreeSet<String>,
    /// Macros that are invoked by their name alone.
    pub invoked: BTreeSet<String>,
    /// `impl` blocks.
    pub impls: BTreeSet<Impl>,
    /// Files included by `include_str!` or `include_bytes!`, relative to the source file. Of a build script's output the
    /// macro's argument, which names no file.
    pub included: BTreeSet<String>,
    /// Rows of the macro named in [`SourceFile::parse`]: module name and the row's tokens.
    pub rows: Vec<MacroRow>,
}

/// A row `Type in module (for target)?;` of a table macro.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MacroRow {
    /// The type's name.
    pub item: String,
    /// Its module in the crate.
    pub module: String,
    /// The row as counted tokens.
    pub code: String,
}

/// Error of a text that is not Rust.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not Rust: {0}")]
pub struct NotRust(String);

/// Attributes that decide nothing at run time.
const IGNORED_ATTRIBUTES: [&str; 8] = ["doc", "allow", "expect", "warn", "deny", "forbid", "must_use", "rustfmt"];

/// Keywords that begin an item. Items end with a `;` or a brace group.
const ITEMS: [&str; 14] = [
    "fn",
    "struct",
    "enum",
    "union",
    "trait",
    "impl",
    "mod",
    "use",
    "const",
    "static",
    "type",
    "extern",
    "macro_rules",
    "unsafe",
];

impl SourceFile {
    /// Reads a file's text. The rows of the macro `table` go to `rows`, not to `code`.
    ///
    /// # Errors
    /// If the text has no tokens.
    pub fn parse(text: &str, table: Option<&str>) -> Result<Self, NotRust> {
        let stream: TokenStream = text.parse().map_err(|error: proc_macro2::LexError| NotRust(error.to_string()))?;
        let mut source = Self::default();
        source.module(&significant_tokens(stream), table);
        let imports: Vec<String> = source
            .imports
            .iter()
            .map(|import| {
                let visibility = if import.visibility == Visibility::Reexport { "pub " } else { "" };
                format!("{visibility}use {} as {}\n", import.path.join("::"), import.name)
            })
            .collect();
        source.code.push_str(&imports.concat());
        Ok(source)
    }

    /// Reads the items of a module, of the file's own or of an inline one.
    fn module(&mut self, tokens: &[TokenTree], table: Option<&str>) {
        let mut rest = tokens;
        while !rest.is_empty() {
            let (item, after) = split_first_item(rest);
            rest = after;
            self.item(item, table);
        }
    }

    fn item(&mut self, item: &[TokenTree], table: Option<&str>) {
        let attributes = attribute_tokens(item);
        let body = &item[attributes..];
        let bare = without_visibility(body);
        match identifier(bare.first()).as_deref() {
            Some("use") => {
                let visibility = if bare.len() < body.len() { Visibility::Reexport } else { Visibility::Private };
                self.imports.extend(imports(&bare[1..], visibility));
                // A `#[cfg]` on a `use` changes the meaning of the name.
                self.count(&item[..attributes]);
                return;
            }
            Some("mod") => {
                let name = identifier(bare.get(1)).unwrap_or_default();
                if let Some(TokenTree::Group(group)) = bare.get(2) {
                    // An inline module counts as part of its file.
                    self.count(&item[..item.len() - 1]);
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    self.module(&inner, table);
                } else {
                    self.children.insert(name);
                    self.count(&item[..attributes]);
                }
                return;
            }
            Some("macro_rules") => {
                let name = identifier(bare.get(2)).unwrap_or_default();
                self.macros.insert(name.clone());
                if let (true, Some(TokenTree::Group(group))) = (table == Some(&name), bare.last()) {
                    self.rows = rows(group.stream());
                    self.count(&item[..item.len() - 1]);
                    return;
                }
            }
            Some("impl") => self.impls.extend(impl_of(&bare[1..])),
            _ => self.items.extend(name_of(bare)),
        }
        self.count(item);
        self.scan(item);
    }

    /// Adds tokens to the counted code.
    fn count(&mut self, tokens: &[TokenTree]) {
        write(tokens, &mut self.code);
    }

    /// Collects the names that tokens refer to.
    fn scan(&mut self, tokens: &[TokenTree]) {
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    self.scan(&inner);
                    at += 1;
                }
                TokenTree::Ident(ident) if ident == "use" && !is_punct(tokens.get(at.wrapping_sub(1)), '.') => {
                    // In a function's body, or in a macro. `use<'a>` of a return type has no path.
                    let end =
                        tokens[at..].iter().position(|it| is_punct(Some(it), ';')).map_or(tokens.len(), |it| at + it);
                    for import in imports(&tokens[at + 1..end], Visibility::Private) {
                        self.paths.insert(import.path);
                    }
                    at = end.max(at + 1);
                }
                TokenTree::Ident(ident) if ident == "impl" => {
                    self.impls.extend(impl_of(&tokens[at + 1..]));
                    at += 1;
                }
                TokenTree::Ident(_) => {
                    let (path, length) = path_at(&tokens[at..]);
                    let is_field =
                        is_punct(tokens.get(at.wrapping_sub(1)), '.') && !is_punct(tokens.get(at.wrapping_sub(2)), '.');
                    let is_lifetime = is_punct(tokens.get(at.wrapping_sub(1)), '\'');
                    if path.len() > 1 {
                        self.included.extend(included(&tokens[at + length..], path.last()));
                        self.paths.insert(path);
                    } else if !is_field && !is_lifetime {
                        self.included.extend(included(&tokens[at + length..], path.last()));
                        let names =
                            if is_punct(tokens.get(at + length), '!') { &mut self.invoked } else { &mut self.names };
                        names.extend(path);
                    }
                    at += length;
                }
                _ => at += 1,
            }
        }
    }
}

/// The file named by `include_str!("...")`, if these tokens follow that word.
fn included(after: &[TokenTree], name: Option<&String>) -> Option<String> {
    let includes = name.is_some_and(|name| name == "include_str" || name == "include_bytes");
    let [TokenTree::Punct(mark), TokenTree::Group(group), ..] = after else { return None };
    if !includes || mark.as_char() != '!' {
        return None;
    }
    let text = group.stream().to_string();
    let literal = text.trim().strip_prefix('"').and_then(|text| text.strip_suffix('"')).map(str::to_owned);
    literal.or(Some(text))
}

/// Returns the tokens without irrelevant attributes and without test-only code.
fn significant_tokens(stream: TokenStream) -> Vec<TokenTree> {
    let all: Vec<TokenTree> = stream.into_iter().collect();
    let mut kept = Vec::with_capacity(all.len());
    let mut rest = all.as_slice();
    while let Some((first, after)) = rest.split_first() {
        if let Some((attribute, length)) = attribute_at(rest) {
            if is_test(&attribute) {
                rest = &rest[length..];
                // Attributes of the same item follow.
                while let Some((_, length)) = attribute_at(rest) {
                    rest = &rest[length..];
                }
                rest = skip_item(rest);
                continue;
            }
            if !is_ignored(&attribute) {
                kept.extend(rest[..length].iter().cloned());
            }
            rest = &rest[length..];
            continue;
        }
        kept.push(match first {
            TokenTree::Group(group) => {
                let inner = significant_tokens(group.stream());
                TokenTree::Group(proc_macro2::Group::new(group.delimiter(), inner.into_iter().collect()))
            }
            other => other.clone(),
        });
        rest = after;
    }
    kept
}

/// The words of an attribute at the beginning of tokens, and its length.
fn attribute_at(tokens: &[TokenTree]) -> Option<(Vec<TokenTree>, usize)> {
    if !is_punct(tokens.first(), '#') {
        return None;
    }
    let inner = usize::from(is_punct(tokens.get(1), '!'));
    match tokens.get(1 + inner) {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => {
            Some((group.stream().into_iter().collect(), 2 + inner))
        }
        _ => None,
    }
}

fn is_ignored(attribute: &[TokenTree]) -> bool {
    let is = |name: &str| identifier(attribute.first()).as_deref() == Some(name);
    IGNORED_ATTRIBUTES.iter().any(|name| is(name)) || (is("cfg_attr") && is_test_condition(attribute.get(1)))
}

/// `cfg(test)` and `cfg(all(test, ...))`.
fn is_test(attribute: &[TokenTree]) -> bool {
    identifier(attribute.first()).as_deref() == Some("test")
        || (identifier(attribute.first()).as_deref() == Some("cfg") && is_test_condition(attribute.get(1)))
}

fn is_test_condition(condition: Option<&TokenTree>) -> bool {
    let Some(TokenTree::Group(group)) = condition else { return false };
    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
    match identifier(inner.first()).as_deref() {
        Some("test") => true,
        Some("all") => is_test_condition(inner.get(1)),
        _ => false,
    }
}

/// Returns the tokens after the first item, field, variant, arm or statement.
fn skip_item(tokens: &[TokenTree]) -> &[TokenTree] {
    let is_item = identifier(without_visibility(tokens).first()).is_some_and(|word| ITEMS.contains(&word.as_str()));
    if is_item {
        return split_first_item(tokens).1;
    }
    let ends = |token: &TokenTree| {
        is_punct(Some(token), ';')
            || is_punct(Some(token), ',')
            || matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
    };
    tokens.iter().position(ends).map_or(&[], |end| &tokens[end + 1..])
}

/// The first item, with its attributes, and the tokens behind it.
fn split_first_item(tokens: &[TokenTree]) -> (&[TokenTree], &[TokenTree]) {
    let start = attribute_tokens(tokens);
    let bare = without_visibility(&tokens[start..]);
    // A constant's value may have braces; `const fn` is a function.
    let is_value = match identifier(bare.first()).as_deref() {
        Some("use" | "static" | "type") => true,
        Some("const") => !matches!(identifier(bare.get(1)).as_deref(), Some("fn" | "unsafe" | "extern" | "async")),
        _ => false,
    };
    let ends = |token: &TokenTree| match token {
        TokenTree::Punct(mark) => mark.as_char() == ';',
        TokenTree::Group(group) => !is_value && group.delimiter() == Delimiter::Brace,
        _ => false,
    };
    let end = tokens[start..].iter().position(ends).map_or(tokens.len(), |end| start + end + 1);
    tokens.split_at(end.max(1))
}

/// The number of tokens of the attributes at the beginning.
fn attribute_tokens(tokens: &[TokenTree]) -> usize {
    let mut length = 0;
    while let Some((_, more)) = attribute_at(&tokens[length..]) {
        length += more;
    }
    length
}

fn without_visibility(tokens: &[TokenTree]) -> &[TokenTree] {
    if identifier(tokens.first()).as_deref() != Some("pub") {
        return tokens;
    }
    match tokens.get(1) {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => &tokens[2..],
        _ => &tokens[1..],
    }
}

/// The name of an item that is no `impl`, `use`, `mod` or macro definition.
fn name_of(bare: &[TokenTree]) -> Option<String> {
    const ITEM_KEYWORDS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "static", "const"];
    const MODIFIERS: [&str; 5] = ["const", "unsafe", "async", "extern", "mut"];
    let at =
        bare.iter().position(|token| identifier(Some(token)).is_some_and(|it| ITEM_KEYWORDS.contains(&it.as_str())))?;
    bare[at + 1..].iter().find_map(|token| {
        let name = identifier(Some(token))?;
        (!MODIFIERS.contains(&name.as_str()) && !ITEM_KEYWORDS.contains(&name.as_str())).then_some(name)
    })
}

/// The block to which the tokens behind `impl` belong; none where `impl` is a type (`impl Fn()`), or its subject is made by a
/// macro.
fn impl_of(tokens: &[TokenTree]) -> Option<Impl> {
    let body =
        tokens.iter().position(|it| matches!(it, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace))?;
    let mut header = &tokens[..body];
    if is_punct(header.first(), '<') {
        header = &header[generics_length(header)..];
    }
    let mut depth = 0i32;
    let mut split = None;
    for (at, token) in header.iter().enumerate() {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '<' => depth += 1,
            TokenTree::Punct(mark) if mark.as_char() == '>' && !is_punct(header.get(at.wrapping_sub(1)), '-') => {
                depth -= 1;
            }
            TokenTree::Punct(mark) if mark.as_char() == ';' || mark.as_char() == ',' && depth == 0 => return None,
            TokenTree::Ident(ident) if depth == 0 && ident == "for" => {
                split.get_or_insert(at);
            }
            _ => {}
        }
    }
    let first = |tokens: &[TokenTree]| {
        let keywords = ["dyn", "mut", "const"];
        let is_name = |at: usize| {
            identifier(tokens.get(at)).is_some_and(|it| !keywords.contains(&it.as_str()))
                && !is_punct(tokens.get(at.wrapping_sub(1)), '\'')
        };
        (0..tokens.len()).find(|&at| is_name(at)).map(|at| path_at(&tokens[at..]).0)
    };
    match split {
        Some(at) => {
            Some(Impl { subject: first(&header[at + 1..]).unwrap_or_default(), of_trait: first(&header[..at]) })
        }
        None => Some(Impl { subject: first(header)?, of_trait: None }),
    }
}

/// The number of tokens of a list in angle brackets at the beginning.
fn generics_length(tokens: &[TokenTree]) -> usize {
    let mut depth = 0i32;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '<' => depth += 1,
            TokenTree::Punct(mark) if mark.as_char() == '>' && !is_punct(tokens.get(at.wrapping_sub(1)), '-') => {
                depth -= 1;
            }
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// The path at the beginning of tokens, and its length in tokens.
fn path_at(tokens: &[TokenTree]) -> (IdentPath, usize) {
    let mut path: IdentPath = identifier(tokens.first()).into_iter().collect();
    let mut length = 1;
    while let (true, true, Some(next)) =
        (is_punct(tokens.get(length), ':'), is_punct(tokens.get(length + 1), ':'), identifier(tokens.get(length + 2)))
    {
        path.push(next);
        length += 3;
    }
    (path, length)
}

/// The names that a `use` tree brings into scope.
fn imports(tree: &[TokenTree], visibility: Visibility) -> Vec<Import> {
    let mut found = Vec::new();
    leaves(tree, &[], visibility, &mut found);
    found
}

fn leaves(tree: &[TokenTree], prefix: &[String], visibility: Visibility, found: &mut Vec<Import>) {
    let branches = tree.split(|token| is_punct(Some(token), ','));
    for branch in branches.filter(|branch| !branch.is_empty()) {
        let mut path = prefix.to_vec();
        let mut name = None;
        let mut renamed = false;
        for token in branch {
            match token {
                TokenTree::Ident(ident) if renamed => name = Some(ident.to_string()),
                TokenTree::Ident(ident) if ident == "as" => renamed = true,
                TokenTree::Ident(ident) => path.push(ident.to_string()),
                TokenTree::Punct(mark) if mark.as_char() == '*' => name = Some("*".to_owned()),
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    leaves(&inner, &path, visibility, found);
                    name = Some(String::new());
                }
                _ => {}
            }
        }
        // `use a::{self}` names `a`.
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let name = name.or_else(|| path.last().cloned()).unwrap_or_default();
        if !name.is_empty() && !path.is_empty() {
            found.push(Import { path, name, visibility });
        }
    }
}

/// The rows of a table macro: `... => { $then! { ROW; ROW; } }`.
fn rows(definition: TokenStream) -> Vec<MacroRow> {
    let tokens: Vec<TokenTree> = definition.into_iter().collect();
    let mut found = Vec::new();
    for token in &tokens {
        let TokenTree::Group(group) = token else { continue };
        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
        for row in inner.split(|token| is_punct(Some(token), ';')) {
            let bare = &row[attribute_tokens(row)..];
            if let [TokenTree::Ident(item), TokenTree::Ident(within), TokenTree::Ident(module), ..] = bare
                && within == "in"
            {
                let mut code = String::new();
                write(bare, &mut code);
                found.push(MacroRow { item: item.to_string(), module: module.to_string(), code });
            }
        }
        found.extend(rows(group.stream()));
    }
    found
}

/// Writes tokens one a line. A comma before a closing delimiter is formatting, but for that of a tuple of one.
fn write(tokens: &[TokenTree], code: &mut String) {
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let commas = inner.iter().filter(|token| is_punct(Some(token), ',')).count();
                let is_trailing = is_punct(inner.last(), ',');
                let is_tuple =
                    group.delimiter() == Delimiter::Parenthesis && !is_callee(tokens.get(at.wrapping_sub(1)));
                let counts = is_trailing && is_tuple && commas == 1;
                let inner = if is_trailing && !counts { &inner[..inner.len() - 1] } else { &inner[..] };
                code.push_str(open);
                code.push('\n');
                write(inner, code);
                code.push_str(close);
                code.push('\n');
            }
            TokenTree::Ident(ident) => {
                code.push_str(&ident.to_string());
                code.push('\n');
            }
            TokenTree::Punct(mark) => {
                code.push(mark.as_char());
                // `&&` and `& &` are different tokens.
                if mark.spacing() == Spacing::Joint {
                    code.push('+');
                }
                code.push('\n');
            }
            TokenTree::Literal(literal) => {
                code.push_str(&literal.to_string());
                code.push('\n');
            }
        }
    }
}

/// Returns true if parentheses behind a token hold arguments or parameters, and not a tuple.
fn is_callee(token: Option<&TokenTree>) -> bool {
    const BEFORE_TUPLES: [&str; 12] =
        ["as", "break", "else", "if", "in", "let", "match", "move", "mut", "ref", "return", "while"];
    match token {
        Some(TokenTree::Ident(ident)) => !BEFORE_TUPLES.iter().any(|word| ident == word),
        Some(TokenTree::Punct(mark)) => matches!(mark.as_char(), '>' | '!' | '?'),
        Some(TokenTree::Group(_)) => true,
        _ => false,
    }
}

fn identifier(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    }
}

fn is_punct(token: Option<&TokenTree>, mark: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        SourceFile::parse(text, None).expect("tokens").code
    }

    #[test]
    fn comments_formatting_lints_and_tests_do_not_count() {
        let plain = "use b::C; use a::B; fn f(x: u64) -> u64 { g(x, 2) }";
        let dressed = "//! A module.\n#![allow(dead_code)]\nuse a::B;\nuse b::C;\n/// Adds.\n#[must_use]\n\
            fn f(x: u64,) -> u64 {\n    // why\n    g(\n        x,\n        2,\n    )\n}\n\
            #[cfg(test)]\nmod tests { fn t() {} }\n#[cfg(test)]\n#[derive(Debug)]\nstruct T { a: u8 }\n#[cfg(test)]\nmod testbed;\n";
        assert_eq!(code(plain), code(dressed));
    }

    #[test]
    fn tests_inside_items_do_not_count() {
        let plain = "impl A { fn f(&self) {} } struct S { a: u8 }";
        let dressed = "impl A { #[cfg(test)] fn t<X, Y>(&self) { h(); } fn f(&self) {} #[cfg(all(test, unix))] const N: [u8; 2] = [0; 2]; }\n\
            struct S { #[cfg(test)] t: Vec<u8>, a: u8 }";
        assert_eq!(code(plain), code(dressed));
    }

    #[test]
    fn code_counts() {
        let plain = "fn f(x: u64) -> u64 { x + 1 }";
        for other in [
            "fn f(x: u64) -> u64 { x + 2 }",
            "fn f(x: u64) -> u64 { x - 1 }",
            "fn f(y: u64) -> u64 { y + 1 }",
            "#[inline] fn f(x: u64) -> u64 { x + 1 }",
            "use a::x; fn f(x: u64) -> u64 { x + 1 }",
        ] {
            assert_ne!(code(plain), code(other), "{other}");
        }
        assert_ne!(code("const A: (u8,) = (1,);"), code("const A: (u8,) = (1);"), "a tuple of one");
        assert_ne!(code("use a::b;"), code("pub use a::b;"));
        assert_ne!(code("fn f() { a && b }"), code("fn f() { a & &b }"));
        assert_ne!(code("mod a { fn f() {} }"), code("mod b { fn f() {} }"));
    }

    #[test]
    fn references_are_found() {
        let text = "use crate::a::{B, c::{self, D as E}, f::*}; mod child; pub use child::Thing;
            fn f() -> g::H { let x = laws::info::I::new(); x.field; use super::z::Z; m!(k::l); 0..j::J }
            impl<T: Q<u8>> o::O<T> { } impl<'a> p::P for &'a mut r::R<T> { }
            const D: &str = include_str!(\"../data/x.txt\"); macro_rules! mine { () => { $crate::n::N } }";
        let source = SourceFile::parse(text, None).expect("tokens");
        let has = |path: &str| {
            let path: IdentPath = path.split("::").map(str::to_owned).collect();
            assert!(source.paths.contains(&path), "{path:?} in {:?}", source.paths);
        };
        ["g::H", "laws::info::I::new", "super::z::Z", "k::l", "j::J", "crate::n::N"].into_iter().for_each(has);
        let names: Vec<&str> = source.imports.iter().map(|import| import.name.as_str()).collect();
        assert!(["Thing", "B", "c", "E", "*"].iter().all(|name| names.contains(name)), "{names:?}");
        assert_eq!(source.children.iter().collect::<Vec<_>>(), ["child"]);
        assert!(source.macros.contains("mine") && source.included.contains("../data/x.txt"));
        let of = |subject: &str| {
            source
                .impls
                .iter()
                .find(|it| it.subject.join("::") == subject)
                .unwrap_or_else(|| panic!("{:?}", source.impls))
        };
        assert_eq!(of("o::O").of_trait, None);
        assert_eq!(of("r::R").of_trait, Some(vec!["p".to_owned(), "P".to_owned()]));
    }

    #[test]
    fn the_rows_of_a_table_are_kept_apart() {
        let table = |rows: &str| {
            let text = format!("macro_rules! laws {{ ($then:ident) => {{ $then! {{ {rows} }} }}; }}");
            SourceFile::parse(&text, Some("laws")).expect("tokens")
        };
        let one = table("/// Uno.\n UnoCc in unocc for kernel;");
        let two = table("/// Uno's loop.\n UnoCc in unocc for kernel; /// D.\n Dctcp in dctcp;");
        assert_eq!(one.code, two.code);
        assert_eq!(one.rows[0], two.rows[0]);
        assert_eq!((two.rows[1].item.as_str(), two.rows[1].module.as_str()), ("Dctcp", "dctcp"));
        assert_ne!(table("UnoCc in unocc;").rows[0].code, one.rows[0].code);
    }
}
