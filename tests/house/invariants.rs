//! The list of invariants in the book and those in the code are the same; each of them, and each promise, names a test that there is.

use std::collections::BTreeSet;
use std::fs;

use helenus_base::invariant::Invariant;

use super::{root, rust_files};

/// The names of all functions of the sources, tests among them.
fn test_names() -> BTreeSet<String> {
    ["src", "crates", "tests"]
        .into_iter()
        .flat_map(|folder| rust_files(&root().join(folder)))
        .flat_map(|path| {
            let text = fs::read_to_string(path).unwrap();
            let names = text.lines().filter_map(|line| {
                let (_, rest) = line.split_once("fn ")?;
                Some(rest.split_once('(')?.0.to_owned())
            });
            names.collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn every_invariant_is_in_the_book_with_a_test_that_there_is() {
    let book = fs::read_to_string(root().join("docs/src/internals/invariants.md")).unwrap();
    let rows: Vec<Vec<&str>> = book
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| what holds"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    for invariant in Invariant::ALL {
        let of_it = rows.iter().filter(|row| row[0] == invariant.text());
        assert_eq!(
            of_it.count(),
            1,
            "docs/src/internals/invariants.md: {}",
            invariant.text()
        );
    }
    let tests = test_names();
    for row in &rows {
        let named: Vec<&str> = row[2].split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "no test trips: {}", row[0]);
        for test in named {
            assert!(
                tests.contains(test),
                "docs/src/internals/invariants.md names a test that is not there: {test}"
            );
        }
    }
}

#[test]
fn every_promise_is_shown_by_a_test_or_a_run_that_there_is() {
    let book = fs::read_to_string(root().join("docs/src/reference/promises.md")).unwrap();
    let runs = fs::read_to_string(root().join("compat/run")).unwrap();
    let tests = test_names();
    // The first part is the page's head.
    let promises: Vec<&str> = book.split("\n- ").skip(1).collect();
    assert!(promises.len() > 30, "{}", promises.len());
    for promise in promises {
        let (_, shown) = promise
            .split_once("\n  Shown by ")
            .unwrap_or_else(|| panic!("nothing shows: {promise}"));
        let named: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "nothing shows: {promise}");
        for name in named {
            let is_there = match name.strip_prefix("compat ") {
                Some(run) => runs.contains(&format!(" {run}) ")),
                None => tests.contains(name),
            };
            assert!(
                is_there,
                "docs/src/reference/promises.md names what is not there: {name}"
            );
        }
    }
}
