//! The length of functions, from the line of `fn` to the closing bracket: none has more than a hundred lines, and few more than a screen.

use std::fs;

use super::imports::Imports;
use super::root;

const LINES_MAX: usize = 100;

/// A screen. Clippy asks a longer function for its reason.
const SCREEN_LINES: usize = 70;

/// Functions of more than a screen, of a thousand. May only go down.
const LONG_PER_MILLE_MAX: usize = 7;

/// Words that may stand before `fn`.
const BEFORE: [&str; 5] = ["async", "const", "default", "extern", "unsafe"];

struct Function<'a> {
    name: &'a str,
    lines: usize,
}

/// The name of the function that begins in this line.
fn begun(line: &str) -> Option<&str> {
    let (before, after) = line.trim_start().split_once("fn ")?;
    let is_known = |word: &str| BEFORE.contains(&word) || word.starts_with("pub") || word.ends_with(')');
    if !before.split_whitespace().all(is_known) {
        return None;
    }
    after.split(['(', '<']).next().filter(|name| !name.is_empty())
}

/// The functions of a file as rustfmt lays them out: a body ends with the first bracket as far left as its `fn`.
fn functions(text: &str) -> Vec<Function<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = begun(line) else { continue };
        let ends = |end: &&str| indent(end) == indent(line) && (end.trim_start() == "}" || end.ends_with(';'));
        let rest = match line.ends_with(['}', ';']) {
            true => Some(0),
            false => lines[at + 1..].iter().position(ends).map(|last| last + 1),
        };
        found.extend(rest.map(|rest| Function { name, lines: rest + 1 }));
    }
    found
}

#[test]
fn functions_are_short() {
    let mut sources = vec![Imports::of_rooms(root())];
    sources.extend(["grammar/src", "java/src", "compat/src"].map(|folder| Imports::of(root(), folder)));
    let (mut count, mut long, mut too_long) = (0, Vec::new(), Vec::new());
    let is_test = |path: &str| path.ends_with("tests.rs");
    let files = sources.iter().flat_map(Imports::files);
    for file in files.filter(|file| !is_test(&file.path)) {
        let text = fs::read_to_string(root().join(&file.path)).unwrap();
        let program = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for function in functions(program) {
            count += 1;
            let line = format!("{} {}: {}", function.lines, file.path, function.name);
            if function.lines > LINES_MAX {
                too_long.push(line.clone());
            }
            if function.lines > SCREEN_LINES {
                long.push(line);
            }
        }
    }
    let share = long.len() * 1000;
    println!(
        "{} of {count} functions have more than {SCREEN_LINES} lines: {long:#?}",
        long.len()
    );
    assert!(count > 5000, "{count}");
    assert!(too_long.is_empty(), "cut these along what they do: {too_long:#?}");
    assert!(share <= LONG_PER_MILLE_MAX * count, "cut one of these: {long:#?}");
}

#[test]
fn lengths_are_counted_from_fn_to_its_bracket() {
    let text = "impl A {\n    pub(in a::b) async fn of(\n        self,\n    ) -> B {\n        if x {\n        }\n    }\n\n    fn one() {}\n    \
                fn none(&self);\n}\nlet fn_ = 1;\nconst fn f<T>() {\n}\n";
    let found: Vec<(&str, usize)> = functions(text).iter().map(|of| (of.name, of.lines)).collect();
    assert_eq!(found, [("of", 6), ("one", 1), ("none", 1), ("f", 2)]);
}
