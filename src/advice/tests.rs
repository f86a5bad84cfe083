//! Scripts with the advice they get. Rewrite with `UPDATE_GOLDENFILES=1`, and read the difference.

use std::path::{Path, PathBuf};

use super::figures::{LogicalFigures, PhysicalFigures};
use super::{
    Advice, Baseline, Input, Level, RULES, Script, Style, TableFigures, advise, explained, forecast, json, sarif, text,
};
use crate::profile::Profile;

const TODAY: i64 = 20_000;
const BYTES_MAX: u64 = 20 << 30;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/advice/golden")
}

fn advice(schema: &str, queries: Option<&str>, figures: Option<&[TableFigures]>) -> Advice {
    advise(&Input {
        schema: &Script::new("schema.cql", schema),
        queries: queries.map(|text| Script::new("queries.cql", text)).as_ref(),
        keyspace: "app",
        figures,
        logical_bytes_max: BYTES_MAX,
        today: TODAY,
        profile: Profile::Cosmos,
        baseline: None,
    })
}

fn rules(advice: &Advice) -> Vec<(&str, Level)> {
    advice
        .findings
        .iter()
        .map(|finding| (finding.rule, finding.level))
        .collect()
}

#[test]
fn golden_advice() {
    let mut seen = 0;
    let mut names: Vec<PathBuf> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    for schema in names
        .iter()
        .filter(|path| path.to_string_lossy().ends_with("schema.cql"))
    {
        let stem = schema.to_string_lossy().replace("schema.cql", "");
        let queries = std::fs::read_to_string(format!("{stem}queries.cql")).ok();
        let found = advice(&std::fs::read_to_string(schema).unwrap(), queries.as_deref(), None);
        let told = text(&found, BYTES_MAX, TODAY, Style::default());
        let file = format!("{stem}advice.txt");
        if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
            std::fs::write(&file, &told).unwrap();
        }
        assert_eq!(told, std::fs::read_to_string(&file).unwrap_or_default(), "{file}");
        seen += 1;
    }
    assert!(seen >= 3);
}

/// Every rule that goes by a schema and queries is in a golden script.
#[test]
fn every_rule_is_shown() {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            all.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
    let by_figures = [
        "few-partitions",
        "hot-range",
        "partition-cap-forecast",
        "partition-near-cap",
    ];
    for rule in RULES.iter().filter(|rule| !by_figures.contains(&rule.id)) {
        assert!(
            all.contains(&format!("[{}]", rule.id)),
            "{} is in no golden advice",
            rule.id
        );
    }
    let mut ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), RULES.len());
}

#[test]
fn a_good_model_gets_none() {
    let found = advice(
        "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};\n\
         CREATE TABLE shop.orders (customer uuid, month int, placed timeuuid, total decimal, PRIMARY KEY ((customer, month), placed));",
        Some("SELECT total FROM shop.orders WHERE customer = ? AND month = ? AND placed > ?;"),
        None,
    );
    assert_eq!(rules(&found), []);
    assert_eq!(
        text(&found, BYTES_MAX, TODAY, Style::default()),
        "0 errors, 0 warnings, 0 notes\n"
    );
}

fn logical(key: &str, bytes: u64, daily: &[(i64, u64)]) -> LogicalFigures {
    LogicalFigures {
        key: key.to_owned(),
        rows: 10_000,
        bytes,
        daily: daily.to_vec(),
    }
}

#[test]
fn a_forecast_is_a_line() {
    let gib = 1 << 30;
    let daily: Vec<(i64, u64)> = (TODAY - 20..=TODAY).map(|day| (day, gib / 2)).collect();
    let found = forecast(&logical("1", 10 * gib, &daily), BYTES_MAX, TODAY).unwrap();
    assert_eq!((found.bytes_per_day, found.full_on), (gib / 2, TODAY + 20));
    // What ceased to grow has none, nor what began today.
    assert_eq!(
        forecast(&logical("1", gib, &[(TODAY - 30, gib)]), BYTES_MAX, TODAY),
        None
    );
    assert_eq!(forecast(&logical("1", gib, &[(TODAY, gib)]), BYTES_MAX, TODAY), None);
    assert_eq!(forecast(&logical("1", BYTES_MAX, &daily), BYTES_MAX, TODAY), None);
}

#[test]
fn figures_are_judged() {
    let gib = 1 << 30;
    let daily: Vec<(i64, u64)> = (TODAY - 13..=TODAY).map(|day| (day, gib / 4)).collect();
    let hot = logical("'a', 1", 16 * gib, &daily);
    let physical = |id, last_day_bytes| PhysicalFigures {
        id,
        last_day_bytes,
        ..PhysicalFigures::default()
    };
    let figures = TableFigures {
        keyspace: "app".to_owned(),
        table: "t".to_owned(),
        rows: 100_000,
        bytes: 40 * gib,
        logical: 9,
        last_day: Some(TODAY),
        last_day_bytes: gib / 2,
        partitions: vec![
            physical(1, gib / 2),
            physical(2, 0),
            physical(3, 0),
            physical(4, 0),
            physical(5, 0),
        ],
        largest: vec![hot.clone()],
        busiest: vec![hot],
    };
    let empty = TableFigures {
        keyspace: "app".to_owned(),
        table: "u".to_owned(),
        ..TableFigures::default()
    };
    let found = advice(
        "CREATE TABLE t (a text, b int, v int, PRIMARY KEY ((a, b)));CREATE TABLE u (k uuid PRIMARY KEY);",
        None,
        Some(&[figures, empty]),
    );
    assert_eq!(
        rules(&found),
        [
            ("partition-cap-forecast", Level::Error),
            ("few-partitions", Level::Warning),
            ("hot-range", Level::Warning),
            ("hot-range", Level::Warning),
            ("partition-near-cap", Level::Warning),
            ("unused-table", Level::Note),
        ]
    );
    let told = text(&found, BYTES_MAX, TODAY, Style::default());
    assert!(
        told.contains("partition 'a', 1 has 16.0 GiB and gets 256.0 MiB a day: full on 2024-10-20, in 16 days"),
        "{told}"
    );
    let value = json(&found, BYTES_MAX, TODAY);
    assert_eq!(value["tables"][0]["largest"][0]["forecast"]["full_on"], "2024-10-20");
    assert_eq!(
        (value["version"].as_u64(), value["errors"].as_u64()),
        (Some(1), Some(1))
    );
}

/// What the standard requires (§3.14, §3.18, §3.27, §3.29, §3.30, §3.49).
#[test]
fn sarif_is_valid() {
    let schema = std::fs::read_to_string(folder().join("events.schema.cql")).unwrap();
    let value = sarif(&advice(&schema, None, None));
    assert_eq!(value["version"], "2.1.0");
    let runs = value["runs"].as_array().unwrap();
    let driver = &runs[0]["tool"]["driver"];
    assert!(driver["name"].is_string());
    let rules = driver["rules"].as_array().unwrap();
    let results = runs[0]["results"].as_array().unwrap();
    assert!(!results.is_empty());
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "schema.cql");
        let region = &place["region"];
        assert!(region["startLine"].as_u64().unwrap() >= 1 && region["startColumn"].as_u64().unwrap() >= 1);
        assert!(region["endColumn"].as_u64() > region["startColumn"].as_u64());
    }
}

/// Looks at a schema and queries in a profile, with a baseline.
fn judged(schema: &str, queries: &str, profile: Profile, baseline: Option<&Baseline>) -> Advice {
    advise(&Input {
        schema: &Script::new("schema.cql", schema),
        queries: Some(&Script::new("queries.cql", queries)),
        keyspace: "app",
        figures: None,
        logical_bytes_max: BYTES_MAX,
        today: TODAY,
        profile,
        baseline,
    })
}

const JOBS: &str = "CREATE TABLE jobs (topic text, at timeuuid, body text, PRIMARY KEY (topic, at));";

#[test]
fn a_comment_accepts_what_rules_find_in_its_statement() {
    let queries = |comment: &str| format!("SELECT * FROM jobs;\n{comment}SELECT * FROM jobs WHERE topic = ?;");
    let of = |comment: &str| judged(JOBS, &queries(comment), Profile::Cosmos, None);
    let all = of("");
    assert_eq!(
        rules(&all),
        [
            ("unbounded-partition", Level::Warning),
            ("full-scan", Level::Warning),
            ("unbounded-read", Level::Warning),
        ]
    );
    for comment in [
        "-- helenus: accept unbounded-read small for good\n",
        "/* helenus: accept wide-in, unbounded-read */ ",
        "// helenus: accept unbounded-read\n\n-- more\n",
    ] {
        let found = of(comment);
        assert_eq!((found.findings.len(), found.accepted), (2, 1), "{comment}");
        assert!(
            text(&found, BYTES_MAX, TODAY, Style::default()).ends_with("0 errors, 2 warnings, 0 notes, 1 accepted\n")
        );
    }
    for comment in [
        "-- helenus: accept full-scan\n",
        "-- accept unbounded-read\n",
        "-- helenus: accept\n",
    ] {
        assert_eq!(of(comment).findings.len(), 3, "{comment}");
    }
    // Behind the semicolon it is still the line's statement.
    let found = judged(
        JOBS,
        "SELECT * FROM jobs; -- helenus: accept full-scan nightly",
        Profile::Cosmos,
        None,
    );
    assert_eq!(rules(&found), [("unbounded-partition", Level::Warning)]);
}

#[test]
fn a_baseline_accepts_what_was_there_wherever_it_stands_now() {
    let first = judged(JOBS, "SELECT * FROM jobs;", Profile::Cosmos, None);
    let written = serde_json::to_string(&Baseline::of(&first)).unwrap();
    let baseline = Baseline::parse(&written).unwrap();
    let queries = "\n\nSELECT * FROM jobs; SELECT * FROM jobs WHERE topic = ?;";
    let found = judged(JOBS, queries, Profile::Cosmos, Some(&baseline));
    assert_eq!(
        (rules(&found), found.accepted),
        (vec![("unbounded-read", Level::Warning)], 2)
    );
    for wrong in ["{}", "[]", "{\"version\":2,\"accepted\":[]}"] {
        assert!(Baseline::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn reasons_are_the_profiles() {
    let why = |profile| judged(JOBS, "SELECT * FROM jobs;", profile, None).findings[0].why;
    assert!(why(Profile::Cosmos).contains("20 GB") && why(Profile::Cassandra).contains("100 MB"));
    let both = "CREATE TABLE t (k uuid PRIMARY KEY, v int);CREATE INDEX ON t (v);";
    let asked = "SELECT * FROM t WHERE k = ? AND v = 1;";
    let told = |profile| rules(&judged(both, asked, profile, None)).len();
    assert_eq!(told(Profile::Cosmos), told(Profile::Cassandra) + 1);
    for rule in RULES {
        let text = explained(rule.id).unwrap();
        assert!(text.starts_with(rule.id) && text.contains("on Cassandra: "));
    }
    assert_eq!(explained("no-rule"), None);
}

#[test]
fn queues_and_constant_buckets_are_seen() {
    let work = "SELECT * FROM jobs WHERE topic = 'a' LIMIT 10; DELETE FROM jobs WHERE topic = 'a' AND at = ?;";
    let found = judged(JOBS, work, Profile::Cassandra, None);
    assert_eq!(
        rules(&found),
        [
            ("queue", Level::Warning),
            ("constant-bucket", Level::Warning),
            ("unbounded-partition", Level::Warning),
        ]
    );
    // One that reads on from where it was is none, nor is a key that differs.
    let work = "SELECT * FROM jobs WHERE topic = ? AND at > ? LIMIT 10; DELETE FROM jobs WHERE topic = 'b' AND at = ?;";
    assert_eq!(
        rules(&judged(JOBS, work, Profile::Cassandra, None)),
        [("unbounded-partition", Level::Warning)]
    );
}

#[test]
fn the_caret_stands_under_what_is_meant() {
    let found = judged(JOBS, "\tSELECT * FROM jobs;", Profile::Cosmos, None);
    let told = text(&found, BYTES_MAX, TODAY, Style::default());
    let lines: Vec<&str> = told.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("queries.cql")).unwrap();
    assert_eq!(lines[at + 1], "    1 |  SELECT * FROM jobs;");
    assert_eq!(lines[at + 2], "      |  ^^^^^^");
    let coloured = text(&found, BYTES_MAX, TODAY, Style { colour: true });
    assert!(coloured.contains("\u{1b}[1;33mwarning\u{1b}[0m") && coloured.contains("\u{1b}[1;33m^^^^^^"));
    let long = format!("SELECT {}* FROM jobs;", "/* \u{1b} */".repeat(40));
    let told = text(
        &judged(JOBS, &long, Profile::Cosmos, None),
        BYTES_MAX,
        TODAY,
        Style::default(),
    );
    assert!(!told.contains('\u{1b}') && told.lines().all(|line| line.chars().count() < 500));
}
