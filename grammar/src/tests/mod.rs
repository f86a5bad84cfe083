//! Scripts, the grammar as people read it, bounds, and properties.

mod generate;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use test_each_file::test_each_path;

use crate::input::tests::ENTERED;
use crate::{markers, parse, parse_term, parse_type};

test_each_path! { in "grammar/golden" as golden => run_script }

fn run_script(path: &Path) {
    goldenscript::run(&mut Runner, path).expect("the script can be read");
}

/// Runs scripts: a line's text is parsed and printed again. Tags: `[ast]` shows the tree too, `[markers]` the bind markers, `[term]`
/// and `[type]` parse those rather than a statement. An error is shown as a client sees it.
struct Runner;

impl goldenscript::Runner for Runner {
    type Command = goldenscript::Command;

    fn run(&mut self, command: &Self::Command, context: &goldenscript::Context) -> Result<String, Box<dyn Error>> {
        let text = command.name.as_str();
        if context.tags.contains("term") {
            let tree = parse_term(text)?;
            assert_eq!(parse_term(&tree.to_string()).as_ref(), Ok(&tree), "{tree}");
            return Ok(show(&tree, &tree, context));
        }
        if context.tags.contains("type") {
            let tree = parse_type(text)?;
            assert_eq!(parse_type(&tree.to_string()).as_ref(), Ok(&tree), "{tree}");
            return Ok(show(&tree, &tree, context));
        }
        let tree = parse(text)?;
        assert_eq!(parse(&tree.to_string()).as_ref(), Ok(&tree), "{tree}");
        if context.tags.contains("markers") {
            let names: Vec<String> = markers(&tree)
                .into_iter()
                .map(|marker| marker.name.map_or("?".to_owned(), |name| format!(":{name}")))
                .collect();
            return Ok(format!("{}\n", names.join(" ")));
        }
        Ok(show(&tree, &tree, context))
    }
}

fn show(text: &impl std::fmt::Display, tree: &impl std::fmt::Debug, context: &goldenscript::Context) -> String {
    if context.tags.contains("ast") {
        format!("{text}\n{tree:?}\n")
    } else {
        format!("{text}\n")
    }
}

/// A production of cql.ebnf: its name and its text, blanks made one.
fn productions() -> BTreeMap<String, String> {
    let text = include_str!("../../cql.ebnf");
    let mut outside = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("(*") {
        outside.push_str(before);
        rest = comment.split_once("*)").expect("the comment is closed").1;
    }
    outside.push_str(rest);
    let mut all = BTreeMap::new();
    for production in outside.split(" ;\n") {
        let production = production.split_whitespace().collect::<Vec<_>>().join(" ");
        if production.is_empty() {
            continue;
        }
        let (name, _) = production.split_once(" = ").expect("a production has a name");
        assert!(
            all.insert(name.to_owned(), production.clone()).is_none(),
            "{name} is there once"
        );
    }
    all
}

/// The source files of the productions.
fn sources() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let list = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .collect()
    };
    list(&root).into_iter().chain(list(&root.join("statement"))).collect()
}

#[test]
fn every_production_has_its_function_and_every_function_its_production() {
    let productions = productions();
    let mut documented = BTreeMap::new();
    for path in sources() {
        let source = fs::read_to_string(&path).unwrap();
        let mut documentation = String::new();
        let mut function = String::new();
        for line in source.lines().map(str::trim) {
            if let Some(text) = line.strip_prefix("///") {
                documentation.push_str(text);
            } else if line.contains("fn ") {
                let name = line.split_once("fn ").unwrap().1.trim_start_matches("r#");
                function = name
                    .chars()
                    .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                    .collect();
            } else if let Some(name) = line.strip_prefix("enter(\"").and_then(|rest| rest.strip_suffix("\");")) {
                assert_eq!(function, name, "a function notes its own name, in {}", path.display());
                let quoted = documentation.split_whitespace().collect::<Vec<_>>().join(" ");
                documented.insert(name.to_owned(), quoted);
                documentation.clear();
            } else if !line.starts_with("fn ") && line.ends_with('}') || line.ends_with(';') {
                documentation.clear();
            }
        }
    }
    let names = |map: &BTreeMap<String, String>| map.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(&productions), names(&documented));
    for (name, production) in &productions {
        let quoted = format!("`{production}`");
        assert!(
            documented[name].contains(&quoted),
            "{name}: {production}\nis documented as {}",
            documented[name]
        );
    }
    for production in productions.values() {
        let words = production
            .split(' ')
            .filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
        for word in words {
            assert!(
                productions.contains_key(word),
                "{word} is a production, in {production}"
            );
        }
    }
}

#[test]
fn every_production_has_its_script() {
    ENTERED.with(|entered| entered.borrow_mut().clear());
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("golden")).unwrap() {
        run_script(&entry.unwrap().path());
    }
    let entered: BTreeSet<String> = ENTERED.with(|entered| entered.borrow().iter().map(ToString::to_string).collect());
    let productions: BTreeSet<String> = productions().into_keys().collect();
    assert_eq!(
        productions.difference(&entered).collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
    assert_eq!(
        entered.difference(&productions).collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
}

/// Texts that would hurt a parser that recurses freely, backtracks or copies.
fn adversarial() -> Vec<(&'static str, String)> {
    let long = crate::TOKENS_MAX - 100;
    let where_k = "SELECT * FROM t WHERE k = ";
    let repeated = |prefix: &str, part: &str| format!("{prefix}{}", part.repeat((long - prefix.len()) / part.len()));
    vec![
        ("parentheses", repeated("", "(")),
        ("parentheses in a relation", repeated("SELECT * FROM t WHERE ", "(")),
        ("parentheses in a term", repeated(where_k, "(")),
        ("parentheses in a selector", repeated("SELECT ", "(")),
        ("type hints in a selector", repeated("SELECT ", "(a)")),
        ("type hints and braces", repeated("SELECT ", "{(a)")),
        ("type hints in a term", repeated(where_k, "(int)")),
        ("brackets", repeated(where_k, "[")),
        ("braces", repeated(where_k, "{")),
        ("maps", repeated(where_k, "{1:")),
        ("functions", repeated(where_k, "f(")),
        ("types", repeated("CREATE TABLE t (a ", "frozen<list<")),
        ("additions", repeated(where_k, "1+ ")),
        ("negations", repeated("SELECT ", "- ")),
        ("selector additions", repeated("SELECT a", "+a")),
        ("fields", repeated("SELECT a", ".a")),
        ("elements", repeated("SELECT a", "[1]")),
        ("nested elements", repeated("SELECT a", "[f(")),
        ("json", repeated("SELECT ", "JSON ")),
        ("distinct", repeated("SELECT JSON ", "DISTINCT ")),
        ("a string", repeated(where_k, "'")),
        ("a string that does not end", repeated("SELECT '", "a")),
        ("dollars", repeated(where_k, "$")),
        ("a comment that does not end", repeated("SELECT /*", "* ")),
        ("a line comment that does not end", repeated("SELECT --", "-")),
        ("blanks", repeated("", " ")),
        ("lines", repeated("", "\n")),
        ("digits", repeated(where_k, "1")),
        ("durations", repeated(where_k, "1d")),
        ("letters", repeated("", "a")),
        ("dots", repeated("SELECT ", ".")),
        ("commas", repeated("SELECT a", ",a")),
        ("relations", repeated("SELECT * FROM t WHERE a = 1", " AND a = 1")),
        ("properties", repeated("CREATE KEYSPACE k WITH a = 1", " AND a = 1")),
        (
            "a map of properties",
            repeated("CREATE KEYSPACE k WITH a = {1:1", ",1:1"),
        ),
        ("assignments", repeated("UPDATE t SET a = 1", ",a = 1")),
        ("values of IN", repeated("SELECT * FROM t WHERE a IN (1", ",1")),
        ("markers", repeated("INSERT INTO t (a) VALUES (?", ",?")),
        ("a batch", repeated("BEGIN BATCH ", "DELETE FROM t WHERE a=1;")),
        ("semicolons", repeated("USE k", ";")),
    ]
}

#[test]
fn no_text_takes_long_or_overflows_the_stack() {
    // A thread of a server has 2 MiB; debug builds need far more of it than release builds.
    for (what, text) in adversarial() {
        let parsed = parse(&text);
        // What parses must also print and drop.
        if let Ok(tree) = parsed {
            assert!(!tree.to_string().is_empty(), "{what}");
        }
    }
}

#[test]
fn bounds_are_told() {
    let error = |text: &str| parse(text).unwrap_err().to_string();
    let nested = |levels: usize| {
        format!(
            "SELECT * FROM t WHERE k = {}1{}",
            "[".repeat(levels),
            "]".repeat(levels)
        )
    };
    assert!(parse(&nested(crate::NESTING_LEVELS_MAX - 1)).is_ok());
    assert_eq!(
        error(&nested(crate::NESTING_LEVELS_MAX)),
        "line 1:154 the statement is nested deeper than 128 levels"
    );
    let sum = |operators: usize| format!("SELECT * FROM t WHERE k = 1{}", " + 1".repeat(operators));
    assert!(parse(&sum(crate::OPERATORS_MAX)).is_ok());
    assert!(error(&sum(crate::OPERATORS_MAX + 1)).ends_with("an expression has more than 256 operators"));
    let markers = |count: usize| format!("INSERT INTO t (a) VALUES (?{})", ",?".repeat(count - 1));
    assert!(parse(&markers(crate::MARKERS_MAX)).is_ok());
    let more = format!("{} USING TTL ?", markers(crate::MARKERS_MAX));
    assert!(error(&more).ends_with("the statement has more than 65535 bind markers"));
    let values = |count: usize| format!("SELECT * FROM t WHERE a IN (1{})", ",1".repeat(count - 1));
    assert!(parse(&values(crate::IN_VALUES_MAX)).is_ok());
    assert!(error(&values(crate::IN_VALUES_MAX + 1)).ends_with("an IN relation has more than 100000 values"));
    let columns = |count: usize| format!("SELECT a{} FROM t", ",a".repeat(count - 1));
    assert!(parse(&columns(crate::LIST_ELEMENTS_MAX)).is_ok());
    assert!(error(&columns(crate::LIST_ELEMENTS_MAX + 1)).ends_with("a list has more than 65535 elements"));
    let long = " ".repeat(crate::TEXT_BYTES_MAX + 1);
    assert_eq!(error(&long), "the statement is longer than 16777216 bytes");
    let tokens = |count: usize| format!("USE k{}", ";".repeat(count - 3));
    assert!(parse(&tokens(crate::TOKENS_MAX)).is_ok());
    let more = tokens(crate::TOKENS_MAX + 1);
    assert_eq!(error(&more), "the statement has more than 1048576 words and signs");
}

#[test]
fn a_literal_may_be_long_and_a_collection_may_have_many_elements() {
    let insert = |value: &str| parse(&format!("INSERT INTO t (k, v) VALUES (1, {value})"));
    let long = "x".repeat(10 << 20);
    assert!(insert(&format!("'{long}'")).unwrap().to_string().contains(&long));
    assert!(insert(&format!("0x{}", "0".repeat(10 << 20))).is_ok());
    let many = |one: &str| format!("{one}{}", format!(",{one}").repeat(100_000));
    for value in [
        format!("[{}]", many("1")),
        format!("{{{}}}", many("1")),
        format!("{{{}}}", many("1:1")),
    ] {
        let tree = insert(&value).unwrap();
        assert_eq!(parse(&tree.to_string()), Ok(tree));
    }
    // An error in a text of this length names the place and quotes no excerpt.
    let error = insert(&format!("'{long}' 1")).unwrap_err().to_string();
    assert_eq!(error, "line 1:10485795 no viable alternative at input '1'");
}

/// The point of a field must not become a number's.
#[test]
fn a_field_of_a_number_is_printed_apart_from_it() {
    for text in [
        "SELECT (int) 0 .a FROM t",
        "SELECT 0 .a FROM t",
        "SELECT (int) (int) 0 .a.b FROM t",
    ] {
        let tree = parse(text).unwrap();
        assert_eq!(parse(&tree.to_string()), Ok(tree), "{text}");
    }
}

#[test]
fn names_are_quoted_as_cassandra_does() {
    for (name, quoted) in [
        ("a1_", "a1_"),
        ("A", "\"A\""),
        ("1a", "\"1a\""),
        ("", "\"\""),
        ("a\"b", "\"a\"\"b\""),
        ("select", "\"select\""),
        ("token", "\"token\""),
        ("key", "key"),
        ("é", "\"é\""),
    ] {
        assert_eq!(crate::quote_if_needed(name), quoted);
    }
    assert!(crate::is_reserved("Select") && crate::is_reserved("NAN") && !crate::is_reserved("ttl"));
}

/// Words and signs of the language, to make texts that are nearly statements.
const SOUP: [&str; 96] = [
    "SELECT",
    "FROM",
    "t",
    "ks",
    ".",
    "*",
    "WHERE",
    "k",
    "=",
    "1",
    "AND",
    "IN",
    "(",
    ")",
    ",",
    "?",
    ":",
    "x",
    "'s'",
    "\"Q\"",
    "\"\"",
    "INSERT",
    "INTO",
    "VALUES",
    "JSON",
    "UPDATE",
    "SET",
    "+",
    "-",
    "+=",
    "-=",
    "DELETE",
    "IF",
    "EXISTS",
    "NOT",
    "USING",
    "TTL",
    "TIMESTAMP",
    "BEGIN",
    "BATCH",
    "APPLY",
    "CREATE",
    "TABLE",
    "PRIMARY",
    "KEY",
    "int",
    "map",
    "<",
    ">",
    "frozen",
    "WITH",
    "{",
    "}",
    "[",
    "]",
    "CLUSTERING",
    "ORDER",
    "BY",
    "DESC",
    "ASC",
    "LIMIT",
    "PER",
    "PARTITION",
    "ALLOW",
    "FILTERING",
    "token",
    "CONTAINS",
    "LIKE",
    "IS",
    "NULL",
    "ALTER",
    "ADD",
    "DROP",
    "TYPE",
    "INDEX",
    "ON",
    "GRANT",
    "ALL",
    "TO",
    "ROLE",
    "LIST",
    "DESCRIBE",
    "CAST",
    "AS",
    "COUNT",
    "1.5",
    "0xab",
    "1d",
    "true",
    "NaN",
    "..",
    "/",
    "%",
    "!=",
    "expr(",
    ";",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_text_never_panics(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn parts_stand_at_different_places(tree in generate::statement()) {
        let shown = format!("{:?}", parse(&tree.to_string()));
        let places: Vec<_> = shown.split("Site(").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        let different: BTreeSet<_> = places.iter().collect();
        prop_assert_eq!(different.len(), places.len(), "{}", tree);
    }

    #[test]
    fn random_words_never_panic(words in proptest::collection::vec(proptest::sample::select(&SOUP[..]), 0..40)) {
        if let Ok(tree) = parse(&words.join(" ")) {
            prop_assert_eq!(parse(&tree.to_string()), Ok(tree));
        }
    }

    #[test]
    fn random_signs_never_panic(text in "[-'\"$/*.,;:()\\[\\]{}<>=!+%?0-9a-fPTx \\n]{0,60}") {
        let _ = parse(&format!("SELECT {text}"));
        let _ = parse_term(&text);
        let _ = parse_type(&text);
    }

    #[test]
    fn printing_a_term_keeps_it(term in generate::term()) {
        prop_assert_eq!(parse_term(&term.to_string()), Ok(term));
    }

    #[test]
    fn printing_a_type_keeps_it(of in generate::cql_type()) {
        prop_assert_eq!(parse_type(&of.to_string()), Ok(of));
    }

    #[test]
    fn printing_a_statement_keeps_it(statement in generate::statement()) {
        let text = statement.to_string();
        match parse(&text) {
            Err(error) => prop_assert!(false, "{error}\n{text}"),
            Ok(parsed) if parsed == statement => {}
            Ok(parsed) => {
                let (now, before) = (format!("{parsed:?}"), format!("{statement:?}"));
                let same = now.chars().zip(before.chars()).take_while(|(a, b)| a == b).count();
                let tail = |text: &str| text.chars().skip(same.saturating_sub(60)).take(200).collect::<String>();
                prop_assert!(false, "{}\nwas {}\n{text}", tail(&now), tail(&before));
            }
        }
    }
}
