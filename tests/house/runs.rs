//! The last run of each compatibility run: `compat/runs/NAME.toml` keeps its rules, and `compat/RUNS.md` is generated from them
//! (`UPDATE_GOLDENFILES=1`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use serde::Deserialize;

use super::root;

/// Words of a sentence.
const SENTENCE_WORDS_MAX: usize = 30;

/// Characters of what a run does, and of each figure.
const TEXT_CHARACTERS_MAX: usize = 200;

/// The areas in their order, and their titles.
const AREAS: [(&str, &str); 9] = [
    ("answers", "Answers beside Cassandra's"),
    ("clients", "Drivers, tools and libraries"),
    ("kill", "Kills, moves and restarts"),
    ("power", "Power cuts and clocks"),
    ("damage", "Damaged files, failing and full disks, backups"),
    ("fleet", "Fleets"),
    ("buckets", "Buckets"),
    ("load", "Throughput, processor time and memory"),
    ("simulation", "Simulation"),
];

/// *measured*: no bound was asked for. *missed*: an aim was not met, as the figures say.
const VERDICTS: [&str; 4] = ["passed", "failed", "missed", "measured"];

const HEAD: &str = "# Runs

<!-- Generated from runs/*.toml: UPDATE_GOLDENFILES=1 cargo test --test house runs. -->

The last run of each, one row a run. What is missing stands in [LEDGER.md](LEDGER.md), what differs on purpose in [DIFFERENCES.md](DIFFERENCES.md).
Reproduce with `compat/run`, or one run with `compat/run NAME`. Cassandra is 5.0.9.

Verdict:

- *passed*: what was asked for holds.
- *failed*: an answer was wrong, or something was lost.
- *missed*: the answers are right, and an aim of speed or size was not met.
- *measured*: a figure without a bound.

*Lift* and *lower* move a partition to a store of its own, and back.
";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    area: String,
    /// What it does, without a full stop.
    what: String,
    /// Empty if it was not recorded, as of the next two.
    command: String,
    commit: String,
    machine: String,
    figures: Vec<String>,
    verdict: String,
}

/// The runs by name.
fn runs() -> BTreeMap<String, Run> {
    let mut runs = BTreeMap::new();
    for entry in fs::read_dir(root().join("compat/runs")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let run = toml::from_str(&fs::read_to_string(&path).unwrap());
        runs.insert(name, run.unwrap_or_else(|error| panic!("{}: {error}", path.display())));
    }
    runs
}

/// `RUNS.md`: a table for each area.
fn print(runs: &BTreeMap<String, Run>) -> String {
    let mut text = HEAD.to_owned();
    for (area, title) in AREAS {
        let of_area: Vec<_> = runs.iter().filter(|(_, run)| run.area == area).collect();
        if of_area.is_empty() {
            continue;
        }
        write!(text, "\n## {title}\n\n").unwrap();
        text.push_str("| run | what it does | figures | verdict | command | commit; machine |\n");
        text.push_str("| --- | --- | --- | --- | --- | --- |\n");
        for (name, run) in of_area {
            let command = match run.command.as_str() {
                "" => "not recorded".to_owned(),
                command => format!("`{command}`"),
            };
            let commit = if run.commit.is_empty() {
                "not recorded"
            } else {
                &run.commit
            };
            let (what, verdict, machine) = (&run.what, &run.verdict, &run.machine);
            let figures = run.figures.join(" ");
            writeln!(
                text,
                "| {name} | {what} | {figures} | {verdict} | {command} | {commit}; {machine} |"
            )
            .unwrap();
        }
    }
    text
}

#[test]
fn runs_md_is_what_the_runs_say() {
    let path = root().join("compat/RUNS.md");
    let printed = print(&runs());
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        fs::write(&path, &printed).unwrap();
    }
    let is_same = fs::read_to_string(path).unwrap() == printed;
    assert!(
        is_same,
        "compat/RUNS.md: UPDATE_GOLDENFILES=1 cargo test --test house runs"
    );
}

#[test]
fn runs_are_well_formed() {
    for (name, run) in runs() {
        assert!(AREAS.iter().any(|(area, _)| *area == run.area), "{name}: {}", run.area);
        assert!(VERDICTS.contains(&run.verdict.as_str()), "{name}: {}", run.verdict);
        let is_commit = |text: &str| (7..=40).contains(&text.len()) && text.chars().all(|c| c.is_ascii_hexdigit());
        assert!(
            run.commit.is_empty() || is_commit(&run.commit),
            "{name}: {}",
            run.commit
        );
        assert!(!run.figures.is_empty(), "{name} has no figures");
        let figures = run.figures.iter().inspect(|figure| {
            assert!(figure.ends_with('.'), "{name}: no sentence: {figure}");
        });
        for text in figures.chain([&run.what]) {
            assert!(text.chars().count() <= TEXT_CHARACTERS_MAX, "{name}: too long: {text}");
            for sentence in text.split(". ") {
                let words = sentence.split_whitespace().count();
                assert!(
                    (1..=SENTENCE_WORDS_MAX).contains(&words),
                    "{name}: {words} words: {sentence}"
                );
            }
        }
        for text in run.figures.iter().chain([&run.what, &run.command, &run.machine]) {
            assert!(!text.contains(['|', '\n']), "{name}: breaks its table: {text}");
        }
    }
}
