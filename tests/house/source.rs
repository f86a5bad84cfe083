//! Rust files as tokens: without comments, texts and tests. Not a parser: it knows what `mod`, `use` and paths look like.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A piece of code that matters to paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Name(String),
    /// `::`
    Separator,
    Sign(char),
}

impl Token {
    fn is(&self, sign: char) -> bool {
        *self == Self::Sign(sign)
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self, Self::Name(own) if own == name)
    }
}

/// One leaf of a `use`: `use a::{b as c, d::*}` has two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) is_public: bool,
    /// As written, `self` at the end dropped; the segments before `*` of a glob.
    pub(crate) path: Vec<String>,
    /// What it is called here; `None` for a glob.
    pub(crate) name: Option<String>,
}

/// A file of the crate, tests left out.
pub(crate) struct File {
    /// From the repository's root: `crates/schema/src/planner/select.rs`.
    pub(crate) path: String,
    /// From the source folder: `planner/select.rs`.
    pub(crate) name: String,
    /// `["planner", "select"]`
    pub(crate) module: Vec<String>,
    pub(crate) imports: Vec<Import>,
    /// Paths of two segments or more, outside of `use`.
    pub(crate) paths: BTreeSet<Vec<String>>,
    /// Names of the items that the file defines, at any depth.
    pub(crate) items: BTreeSet<String>,
    children: Vec<Child>,
}

struct Child {
    name: String,
    is_test: bool,
}

/// Every file below `folder` except tests, by module.
pub(crate) fn files(root: &Path, source: &str) -> BTreeMap<Vec<String>, File> {
    let folder = root.join(source);
    let mut found = BTreeMap::new();
    let mut open = vec![(folder.join("lib.rs"), Vec::new())];
    while let Some((path, module)) = open.pop() {
        let mut file = read(&folder, &path, module.clone());
        file.path = format!("{source}/{}", file.name);
        let is_folder = path.ends_with("mod.rs") || path.ends_with("lib.rs");
        let inside = if is_folder {
            path.parent().unwrap().to_owned()
        } else {
            path.with_extension("")
        };
        for child in file.children.iter().filter(|child| !child.is_test) {
            let of_child = [&module[..], std::slice::from_ref(&child.name)].concat();
            open.push((existing(&inside, &child.name), of_child));
        }
        found.insert(module, file);
    }
    found
}

fn existing(folder: &Path, name: &str) -> PathBuf {
    let flat = folder.join(format!("{name}.rs"));
    if flat.exists() {
        flat
    } else {
        folder.join(name).join("mod.rs")
    }
}

fn read(folder: &Path, path: &Path, module: Vec<String>) -> File {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let name = path.strip_prefix(folder).unwrap().to_string_lossy().replace('\\', "/");
    parse(&text, name, module)
}

pub(crate) fn parse(text: &str, name: String, module: Vec<String>) -> File {
    let tokens = tokens(text);
    let mut file = File {
        path: name.clone(),
        name,
        module,
        imports: Vec::new(),
        paths: BTreeSet::new(),
        items: BTreeSet::new(),
        children: Vec::new(),
    };
    let (mut at, mut is_test, mut is_public) = (0, false, false);
    while let Some(token) = tokens.get(at) {
        let next = tokens.get(at + 1);
        match token {
            Token::Sign('#') => {
                let end = end_of_group(&tokens, at + 1);
                let words: Vec<&Token> = tokens[at..end].iter().collect();
                is_test |= words
                    .windows(3)
                    .any(|of| of[0].is_name("cfg") && of[1].is('(') && of[2].is_name("test"));
                at = end;
                continue;
            }
            Token::Name(word) if word == "pub" => {
                is_public = true;
                at += 1;
                if next.is_some_and(|next| next.is('(')) {
                    at = end_of_group(&tokens, at);
                }
                continue;
            }
            Token::Name(word) if word == "mod" && tokens.get(at + 2).is_some_and(|sign| sign.is(';')) => {
                if let Some(Token::Name(name)) = next {
                    file.children.push(Child {
                        name: name.clone(),
                        is_test,
                    });
                }
                at += 3;
            }
            _ if is_test => at = end_of_item(&tokens, at),
            Token::Name(word) if word == "use" => {
                let end = (at..tokens.len()).find(|end| tokens[*end].is(';')).unwrap();
                leaves(&tokens[at + 1..end], &[], is_public, &mut file.imports);
                at = end + 1;
            }
            Token::Name(word) => {
                if let (true, Some(Token::Name(name))) = (DEFINES.contains(&word.as_str()), next) {
                    file.items.insert(name.clone());
                }
                let path = path_at(&tokens[at..]);
                at += path.len() * 2 - 1;
                if path.len() > 1 {
                    file.paths.insert(path);
                }
            }
            _ => at += 1,
        }
        (is_test, is_public) = (false, false);
    }
    file
}

const DEFINES: &[&str] = &[
    "fn",
    "struct",
    "enum",
    "trait",
    "type",
    "const",
    "static",
    "macro_rules",
    "union",
];

/// `a::b::C` at the start of these tokens.
fn path_at(tokens: &[Token]) -> Vec<String> {
    let mut path = Vec::new();
    for pair in tokens.chunks(2) {
        let Some(Token::Name(name)) = pair.first() else { break };
        path.push(name.clone());
        if pair.get(1) != Some(&Token::Separator) {
            break;
        }
    }
    path
}

/// Behind the group (of any bracket) that begins at or after `at`, or behind `at` where a name comes first.
fn end_of_group(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']' | '}') => {
                depth -= 1;
                if depth == 0 {
                    return index + 1;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

/// Behind the item that begins at `at`: its `;`, or its block.
fn end_of_item(tokens: &[Token], at: usize) -> usize {
    let is_use = tokens[at].is_name("use");
    let mut index = at;
    while let Some(token) = tokens.get(index) {
        match token {
            Token::Sign(';') => return index + 1,
            Token::Sign('{') if !is_use => return end_of_group(tokens, index),
            Token::Sign('(' | '[' | '{') => index = end_of_group(tokens, index),
            // The field or variant before the end of what holds it.
            Token::Sign(',') => return index + 1,
            Token::Sign('}') => return index,
            _ => index += 1,
        }
    }
    index
}

fn leaves(tree: &[Token], before: &[String], is_public: bool, into: &mut Vec<Import>) {
    let mut path = before.to_vec();
    let mut at = 0;
    while let Some(token) = tree.get(at) {
        match token {
            Token::Name(word) if word == "as" => {
                let Some(Token::Name(name)) = tree.get(at + 1) else {
                    return;
                };
                let name = Some(name.clone());
                into.push(Import { is_public, path, name });
                return;
            }
            Token::Name(word) => path.push(word.clone()),
            Token::Sign('*') => {
                let name = None;
                into.push(Import { is_public, path, name });
                return;
            }
            Token::Sign('{') => {
                let inner = &tree[at + 1..end_of_group(tree, at) - 1];
                for part in split(inner) {
                    leaves(part, &path, is_public, into);
                }
                return;
            }
            _ => {}
        }
        at += 1;
    }
    if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
        path.pop();
    }
    let name = path.last().cloned();
    into.push(Import { is_public, path, name });
}

/// The parts between commas outside of brackets.
fn split(tokens: &[Token]) -> Vec<&[Token]> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Sign('{') => depth += 1,
            Token::Sign('}') => depth -= 1,
            Token::Sign(',') if depth == 0 => {
                parts.push(&tokens[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tokens[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(length) = skipped(rest) {
            rest = &rest[length..];
        } else if first.is_alphanumeric() || first == '_' {
            let end = rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            tokens.push(Token::Name(rest[..end].to_owned()));
            rest = &rest[end..];
        } else if let Some(behind) = rest.strip_prefix("::") {
            tokens.push(Token::Separator);
            rest = behind;
        } else {
            tokens.push(Token::Sign(first));
            rest = &rest[first.len_utf8()..];
        }
    }
    tokens
}

/// Bytes of the space, comment, text, character or lifetime that `rest` begins with.
fn skipped(rest: &str) -> Option<usize> {
    let first = rest.chars().next()?;
    if first.is_whitespace() {
        return Some(first.len_utf8());
    }
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(rest.find("*/").map_or(rest.len(), |end| end + 2));
    }
    let raw = rest.strip_prefix('b').unwrap_or(rest);
    let prefix = rest.len() - raw.len();
    if let Some(hashes) = raw.strip_prefix('r') {
        let count = hashes.len() - hashes.trim_start_matches('#').len();
        if let Some(inside) = hashes[count..].strip_prefix('"') {
            let end = format!("\"{}", "#".repeat(count));
            return Some(prefix + 1 + count + 1 + inside.find(&end)? + end.len());
        }
    }
    if raw.starts_with('"') {
        return Some(prefix + quoted(raw, '"')?);
    }
    if raw.starts_with('\'') {
        let mut inside = raw.chars().skip(1);
        let is_character = inside.next() == Some('\\') || inside.next() == Some('\'');
        return if is_character {
            Some(prefix + quoted(raw, '\'')?)
        } else {
            Some(prefix + 1)
        };
    }
    None
}

/// Bytes of a text or character with its quotes.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if character == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}
