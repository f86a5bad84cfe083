//! Scripts with the advice they get. Rewrite with `UPDATE_GOLDENFILES=1`, and read the difference.

use std::path::{Path, PathBuf};

use super::figures::{LogicalFigures, PhysicalFigures};
use super::{Advice, Input, Level, RULES, Script, TableFigures, advise, forecast, json, sarif, text};

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
        let told = text(&found, BYTES_MAX, TODAY);
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
    assert_eq!(text(&found, BYTES_MAX, TODAY), "0 errors, 0 warnings, 0 notes\n");
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
    let told = text(&found, BYTES_MAX, TODAY);
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
