//! The known gaps: `compat/gaps.toml` keeps its rules, `compat/LEDGER.md` is generated from it (`UPDATE_GOLDENFILES=1`), and what cites a
//! gap by its id names one that exists.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Words of what is seen, and of what to do instead.
const WORDS_MAX: usize = 30;

/// Characters of a cell of the ledger. Thirty words fill more than the 120 characters of other tables.
const CELL_CHARACTERS_MAX: usize = 200;

const WHO: [&str; 3] = ["user", "operator", "tool author"];

const SEVERITIES: [&str; 4] = ["wrong answer", "refused", "slower", "cosmetic"];

const HEAD: &str = "# Ledger: known gaps

<!-- Generated from gaps.toml: UPDATE_GOLDENFILES=1 cargo test --test house. -->

What Helenus lacks, one fact a row. What differs from Cassandra and Cosmos and stays so is in [DIFFERENCES.md](DIFFERENCES.md).
The results of the compatibility runs are in [RUNS.md](RUNS.md).

Severity:

- *wrong answer*: an answer or a figure is not what Cassandra, Cosmos or the documentation says, data is lost, or a fault is not found.
- *refused*: a request or a command fails, or the server ends.
- *slower*: the answer is right and comes later.
- *cosmetic*: no answer changes: texts, reports, and what was not tested.

*Shown by* names a test, or a file that measures or lists the gap. Code and documentation cite a gap by its id, as `Gap: bucket-17`.
";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ledger {
    area: Vec<Area>,
    gap: Vec<Gap>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Area {
    name: String,
    title: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Gap {
    id: String,
    area: String,
    who: String,
    seen: String,
    instead: String,
    severity: String,
    shown_by: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn ledger() -> Ledger {
    toml::from_str(&fs::read_to_string(root().join("compat/gaps.toml")).unwrap()).unwrap()
}

/// `LEDGER.md`: a table for each area.
fn print(ledger: &Ledger) -> String {
    let mut text = HEAD.to_owned();
    for area in &ledger.area {
        write!(text, "\n## {}\n\n", area.title).unwrap();
        text.push_str("| id | what is seen | instead | severity | shown by |\n| --- | --- | --- | --- | --- |\n");
        for gap in ledger.gap.iter().filter(|gap| gap.area == area.name) {
            let shown_by = match gap.shown_by.as_str() {
                "" => "–".to_owned(),
                name => format!("`{name}`"),
            };
            let (id, seen, instead, severity) = (&gap.id, &gap.seen, &gap.instead, &gap.severity);
            writeln!(text, "| {id} | {seen} | {instead} | {severity} | {shown_by} |").unwrap();
        }
    }
    text
}

/// Files that may cite a gap or hold a test.
fn files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            let is_skipped = name.starts_with('.') || ["target", "node_modules", "out"].contains(&&*name);
            if path.is_dir() && !is_skipped {
                folders.push(path);
            } else if [".rs", ".md", ".toml", ".cql"].iter().any(|end| name.ends_with(end)) {
                files.push(path);
            }
        }
    }
    files
}

/// Names of the test functions in a file of Rust.
fn tests(text: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim_start) {
        let declared = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some(declared) = declared {
            if is_test {
                names.extend(declared.split('(').next());
            }
            is_test = false;
        }
    }
    names
}

/// The ids that a line cites: what follows `Gap:`, and each id of an area beside a mention of the ledger.
fn cited<'a>(line: &'a str, areas: &BTreeSet<&str>) -> Vec<&'a str> {
    let words = |text: &'a str| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let after = line.split("Gap: ").skip(1).filter_map(|rest| words(rest).next());
    let beside = words(line).filter(|word| {
        let of_area = word
            .split_once('-')
            .is_some_and(|(area, number)| areas.contains(area) && number.starts_with(|c: char| c.is_ascii_digit()));
        of_area && line.contains("LEDGER.md")
    });
    after.chain(beside).collect()
}

#[test]
fn ledger_is_what_gaps_toml_says() {
    let path = root().join("compat/LEDGER.md");
    let printed = print(&ledger());
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        fs::write(&path, &printed).unwrap();
    }
    let is_same = fs::read_to_string(path).unwrap() == printed;
    assert!(
        is_same,
        "compat/LEDGER.md: UPDATE_GOLDENFILES=1 cargo test --test house"
    );
}

#[test]
fn gaps_are_well_formed() {
    let ledger = ledger();
    let areas: BTreeSet<&str> = ledger.area.iter().map(|area| area.name.as_str()).collect();
    let mut ids = BTreeSet::new();
    for gap in &ledger.gap {
        let id = &gap.id;
        let number = id.strip_prefix(&gap.area).and_then(|rest| rest.strip_prefix('-'));
        let number: Option<u32> = number.and_then(|number| number.parse().ok());
        assert!(areas.contains(gap.area.as_str()), "{id}: no such area: {}", gap.area);
        assert_eq!(number.map(|number| format!("{}-{number}", gap.area)).as_ref(), Some(id));
        assert!(ids.insert(id), "{id} is there twice");
        assert!(WHO.contains(&gap.who.as_str()), "{id}: who: {}", gap.who);
        assert!(SEVERITIES.contains(&gap.severity.as_str()), "{id}: {}", gap.severity);
        for text in [&gap.seen, &gap.instead] {
            let words = text.split_whitespace().count();
            assert!((1..=WORDS_MAX).contains(&words), "{id}: {words} words: {text}");
            assert!(text.chars().count() <= CELL_CHARACTERS_MAX, "{id}: {text}");
            assert!(!text.contains(['|', '\n']), "{id}: breaks its table: {text}");
        }
        assert!(gap.seen.ends_with('.'), "{id}: no sentence: {}", gap.seen);
    }
}

#[test]
fn gaps_name_tests_and_files_that_exist() {
    let texts: Vec<String> = files()
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let tests: BTreeSet<&str> = texts.iter().flat_map(|text| tests(text)).collect();
    for gap in ledger().gap.iter().filter(|gap| !gap.shown_by.is_empty()) {
        let name = gap.shown_by.as_str();
        let exists = tests.contains(name) || root().join(name).is_file();
        assert!(exists, "{}: neither a test nor a file: {name}", gap.id);
    }
}

#[test]
fn citations_name_gaps_that_exist() {
    let ledger = ledger();
    let areas: BTreeSet<&str> = ledger.area.iter().map(|area| area.name.as_str()).collect();
    let ids: BTreeSet<&str> = ledger.gap.iter().map(|gap| gap.id.as_str()).collect();
    let own = root().join("tests/house/gaps.rs");
    for path in files().into_iter().filter(|path| *path != own) {
        let text = fs::read_to_string(&path).unwrap();
        for id in text.lines().flat_map(|line| cited(line, &areas)) {
            assert!(ids.contains(id), "{}: no such gap: {id}", path.display());
        }
    }
}

#[test]
fn citations_and_tests_are_seen() {
    let areas = BTreeSet::from(["bucket"]);
    assert_eq!(cited("// Gap: bucket-17, as in bucket-9.", &areas), ["bucket-17"]);
    assert_eq!(cited("see [it](LEDGER.md), bucket-9; port-12", &areas), ["bucket-9"]);
    assert_eq!(cited("Gap: none", &areas), ["none"]);
    let source = "#[test]\nfn a() {}\n#[tokio::test]\nasync fn b() {}\nfn c() {}";
    assert_eq!(tests(source), BTreeSet::from(["a", "b"]));
}
