//! Refusals are data: a file of the rooms that judge statements makes no text of a refusal where it finds the fault. It returns a
//! variant with its payload (`planner/refusal/`, `planner/ddl/refusal/`), and `Display` alone makes the text.
//!
//! No file makes one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms that judge statements.
const ROOMS: &[&str] = &[
    "cql/src/cql",
    "engine/src/engine",
    "schema/src/planner",
    "schema/src/schema",
    "types/src/functions",
    "types/src/types",
];

/// Forms that make a refusal of a text.
const FORMS: &[&str] = &[
    "invalid!(",
    "Error::invalid(",
    "Error::Invalid(",
    "Error::Syntax(",
    "Error::Unauthorized(",
    "Error::Unsupported(",
    "Error::Configuration(",
    "Refusal::Invalid(",
    "Refusal::Syntax(",
    "Refusal::Server(",
    "Refusal::Configuration(",
    "Problem::Invalid(",
    "Problem::Failed(",
    "Problem::Operation(",
];

/// The source up to the body of its first module of tests. `mod tests;` has its body elsewhere, and the code goes on after it.
fn without_tests(source: &str) -> &str {
    let mut starts = source.match_indices("#[cfg(test)]\nmod ").map(|(at, _)| at);
    let end = starts.find(|at| {
        let declaration = source[*at..].lines().nth(1);
        declaration.is_some_and(|line| line.ends_with('{'))
    });
    &source[..end.unwrap_or(source.len())]
}

/// How many refusals a source makes of texts: comments and tests left out.
fn texts(source: &str) -> usize {
    let lines = without_tests(source)
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines
        .map(|line| FORMS.iter().map(|form| line.matches(form).count()).sum::<usize>())
        .sum()
}

#[test]
fn refusals_are_data() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
    let mut open: Vec<PathBuf> = ROOMS.iter().map(|room| root.join(room)).collect();
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                open.push(path);
            } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
                let count = texts(&fs::read_to_string(&path).unwrap());
                if count > 0 {
                    found.insert(name, count);
                }
            }
        }
    }
    assert!(
        found.is_empty(),
        "files and how many texts they make of refusals; make a refusal a variant: {found:?}"
    );
}

#[test]
fn a_text_is_seen() {
    let source = "fn f() { return invalid!(\"no {x}\"); }\n// Error::invalid(\nError::invalid(\n\"no\")";
    assert_eq!(texts(source), 2);
    assert_eq!(texts("Err(BoundRefusal::EmptyKey.into())"), 0);
    assert_eq!(texts("#[cfg(test)]\nmod tests {\nError::invalid(\"no\") }"), 0);
    assert_eq!(texts("#[cfg(test)]\nmod tests;\nfn f() { Error::invalid(\"no\") }"), 1);
}
