//! Functions take enums and structs, not flags and anonymous tuples: `open(path, true, (3, 4))` cannot be read alone.
//!
//! Looked at are the sources of crates without their tests. Functions of C interfaces are excepted, and so are the types of
//! closures and of type aliases.

use std::fs;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

use crate::support::{repository, sources};

/// A parameter that a function should not have.
#[derive(PartialEq, Eq, Debug)]
struct UnnamedParameter {
    line: usize,
    function: String,
    is_tuple: bool,
}

fn is_punct(token: &TokenTree, char: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == char)
}

fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == name)
}

/// Returns the change of the depth in angle brackets; the arrow `->` is none.
fn angle(tokens: &[TokenTree], at: usize) -> i32 {
    let is_arrow = at > 0
        && matches!(&tokens[at - 1], TokenTree::Punct(dash) if dash.as_char() == '-' && dash.spacing() == Spacing::Joint);
    i32::from(is_punct(&tokens[at], '<')) - i32::from(is_punct(&tokens[at], '>') && !is_arrow)
}

/// Returns the position of a token at depth 0 of angle brackets from `start` on.
fn find(tokens: &[TokenTree], start: usize, is_found: impl Fn(usize) -> bool) -> Option<usize> {
    let mut depth = 0;
    (start..tokens.len()).find(|&at| {
        let found = depth == 0 && is_found(at);
        depth += angle(tokens, at);
        found
    })
}

/// Returns whether the type of a parameter is a flag or a tuple, and which.
fn unnamed(parameter: &[TokenTree]) -> Option<bool> {
    let is_colon = |at: usize| {
        let joins = |at: usize| matches!(&parameter[at], TokenTree::Punct(punct) if punct.as_char() == ':' && punct.spacing() == Spacing::Joint);
        is_punct(&parameter[at], ':') && !joins(at) && !(at > 0 && joins(at - 1))
    };
    let colon = find(parameter, 0, is_colon)?;
    let is_reference = |token: &TokenTree| is_punct(token, '&') || is_ident(token, "mut");
    let of_type: Vec<&TokenTree> = parameter[colon + 1..].iter().skip_while(|token| is_reference(token)).collect();
    match &of_type[..] {
        [token] if is_ident(token, "bool") => Some(false),
        [TokenTree::Group(group)] if group.delimiter() == Delimiter::Parenthesis => {
            let inside: Vec<TokenTree> = group.stream().into_iter().collect();
            find(&inside, 0, |at| is_punct(&inside[at], ',')).map(|_| true)
        }
        _ => None,
    }
}

fn read(stream: TokenStream, found: &mut Vec<UnnamedParameter>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        if let [module, name, ..] = &tokens[at..]
            && is_ident(module, "mod")
            && is_ident(name, "tests")
        {
            at += 3;
            continue;
        }
        let is_list =
            |at: usize| matches!(&tokens[at], TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis);
        let is_of_c = at > 0 && matches!(&tokens[at - 1], TokenTree::Literal(_));
        if let [keyword, TokenTree::Ident(name), ..] = &tokens[at..]
            && is_ident(keyword, "fn")
            && !is_of_c
            && let Some(list) = find(&tokens, at + 2, is_list)
            && let TokenTree::Group(group) = &tokens[list]
        {
            let parameters: Vec<TokenTree> = group.stream().into_iter().collect();
            let mut start = 0;
            while start < parameters.len() {
                let end = find(&parameters, start, |at| is_punct(&parameters[at], ',')).unwrap_or(parameters.len());
                if let Some(is_tuple) = unnamed(&parameters[start..end]) {
                    found.push(UnnamedParameter {
                        line: name.span().start().line,
                        function: name.to_string(),
                        is_tuple,
                    });
                }
                start = end + 1;
            }
            at = list + 1;
            continue;
        }
        if let TokenTree::Group(group) = &tokens[at] {
            read(group.stream(), found);
        }
        at += 1;
    }
}

fn unnamed_parameters(text: &str) -> Vec<UnnamedParameter> {
    let mut found = Vec::new();
    read(text.parse().unwrap(), &mut found);
    found
}

#[test]
fn parameters_have_named_types() {
    let (mut files, mut wrong) = (0, Vec::new());
    for path in sources(&repository().join("crates")) {
        let name = path.strip_prefix(repository()).unwrap().display().to_string();
        let is_test = ["tests.rs", "testbed.rs"].iter().any(|end| name.ends_with(end))
            || ["/tests/", "/benches/", "/examples/", "/fuzz/"].iter().any(|part| name.contains(part));
        if !name.contains("/src/") || path.extension().is_none_or(|it| it != "rs") || is_test {
            continue;
        }
        files += 1;
        let text = fs::read_to_string(&path).unwrap();
        let kind = |it: &UnnamedParameter| if it.is_tuple { "a tuple" } else { "a flag" };
        let lines = unnamed_parameters(&text);
        wrong.extend(lines.iter().map(|it| format!("{name}:{}: `{}` takes {}", it.line, it.function, kind(it))));
    }
    assert!(files > 400, "{files} files");
    assert!(wrong.is_empty(), "\n{}\ngive the parameter an enum or a struct", wrong.join("\n"));
}

#[test]
fn flags_and_tuples_are_found() {
    let one = |line, is_tuple| UnnamedParameter { line, function: "f".to_owned(), is_tuple };
    for (text, expected) in [
        ("fn f(a: bool) {}", vec![one(1, false)]),
        ("impl A {\n    pub fn f<F: Fn(bool) -> u8>(&self, make: F, flag: &mut bool) -> u8;\n}", vec![one(2, false)]),
        ("fn f((a, b): (u8, u8), c: u8) {}", vec![one(1, true)]),
        ("fn f(a: &(u8, Vec<(u8, u8)>)) {}", vec![one(1, true)]),
        ("fn f(a: Map<bool, (u8, u8)>, b: Option<bool>, c: &[bool], d: (), e: fn(bool), g: (u8)) {}", vec![]),
        ("pub unsafe extern \"C\" fn f(a: bool) {}", vec![]),
        ("mod tests {\n    fn f(a: bool) {}\n}", vec![]),
        ("fn f<T>(a: a::B<T, u8>, b: bool) {}", vec![one(1, false)]),
    ] {
        assert_eq!(unnamed_parameters(text), expected, "{text}");
    }
}
