//! Scripts with the advice they get. Rewrite with `UPDATE_GOLDENFILES=1`, and read the difference.

use std::path::{Path, PathBuf};

use super::figures::{LogicalFigures, PhysicalFigures};
use super::report::{help_uri, section};
use super::{
    Advice, Baseline, Input, Level, RULES, Script, Style, TableFigures, advise, explained, forecast, json, sarif, text,
};
use helenus_schema::profile::Profile;

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

#[test]
fn a_keyspace_that_no_statement_creates_is_reported() {
    let create = "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};";
    let table = "TABLE %.t (k uuid PRIMARY KEY, v int);";
    let told = |before: &str, keyspace: &str| {
        let schema = format!("{before} CREATE {}", table.replace('%', keyspace));
        let found = advice(&schema, None, None).findings;
        let mut found = found
            .into_iter()
            .filter(|finding| finding.message.contains("creates the keyspace"));
        found
            .next()
            .map(|finding| (finding.level, finding.message.contains("CREATE KEYSPACE nope,")))
    };
    assert_eq!(told(create, "shop"), None);
    assert_eq!(told(create, "nope"), Some((Level::Warning, true)));
    assert_eq!(told("", "nope"), Some((Level::Note, true)));
    assert_eq!(told("USE nope;", "nope"), Some((Level::Note, true)));
    assert_eq!(told(create, "system"), None);
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
    // Figures are not in scripts, and views are not in the profile of these.
    let elsewhere = [
        "few-partitions",
        "hot-range",
        "partition-cap-forecast",
        "partition-near-cap",
        "unused-view",
    ];
    for rule in RULES.iter().filter(|rule| !elsewhere.contains(&rule.id)) {
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
fn figures_are_checked() {
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
        is_view: false,
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
    let value = sarif(&advice(&schema, None, None), Profile::Cosmos);
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

/// Each rule's help names its section, which stands in the page; the address is absolute or missing (§3.49.12).
#[test]
fn rules_of_a_sarif_report_lead_to_sections_of_the_book() {
    let value = sarif(&Advice::default(), Profile::Cosmos);
    let rules = value["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
    for (rule, shown) in RULES.iter().zip(rules) {
        let section = section(rule);
        let (page, anchor) = section.split_once('#').unwrap();
        let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap();
        // The headings are lower case with hyphens, so a heading is its own anchor.
        assert!(page.lines().any(|line| line == format!("## {anchor}")), "{section}");
        assert!(shown["help"]["text"].as_str().unwrap().ends_with(&section), "{shown}");
        let uri = shown.get("helpUri").and_then(|uri| uri.as_str());
        assert!(uri.is_none_or(|uri| uri.starts_with("https://")), "{shown}");
        assert_eq!(help_uri("", rule), None);
        let uri = format!("https://example.com/helenus/blob/HEAD/{section}");
        assert_eq!(help_uri("https://example.com/helenus", rule), Some(uri));
    }
}

/// Looks at a schema and queries in a profile, with a baseline.
fn advised(schema: &str, queries: &str, profile: Profile, baseline: Option<&Baseline>) -> Advice {
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
    let of = |comment: &str| advised(JOBS, &queries(comment), Profile::Cosmos, None);
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
        "/* helenus: accept unbounded-read */ ",
        "// helenus: accept unbounded-read\n\n-- more\n",
    ] {
        let found = of(comment);
        assert_eq!((found.findings.len(), found.accepted), (2, 1), "{comment}");
        assert!(
            text(&found, BYTES_MAX, TODAY, Style::default()).ends_with("0 errors, 2 warnings, 0 notes, 1 accepted\n")
        );
    }
    assert_eq!(of("-- accept unbounded-read\n").findings.len(), 3);
    // Behind the semicolon it is still the line's statement.
    let found = advised(
        JOBS,
        "SELECT * FROM jobs; -- helenus: accept full-scan nightly",
        Profile::Cosmos,
        None,
    );
    assert_eq!(rules(&found), [("unbounded-partition", Level::Warning)]);
}

#[test]
fn a_comment_that_accepts_nothing_is_told_with_its_line() {
    let of = |comment: &str, profile| {
        let queries = format!("SELECT * FROM jobs;\n{comment}\nSELECT * FROM jobs WHERE topic = ? LIMIT 1;");
        let found = advised(JOBS, &queries, profile, None).findings;
        let idle: Vec<_> = found
            .into_iter()
            .filter(|found| found.rule == "accepts-nothing")
            .collect();
        idle.into_iter()
            .map(|found| {
                assert_eq!(
                    (found.level, found.line, found.file.as_str()),
                    (Level::Warning, 2, "queries.cql")
                );
                assert!(found.column == 1 && found.width > 10, "{found:?}");
                found.message
            })
            .collect::<Vec<_>>()
    };
    for (comment, said) in [
        ("-- helenus: accept nosuchrule", "there is no rule nosuchrule"),
        ("-- helenus: acept full-scan", "\"acept\""),
        ("/* helenus: accept */", "names no rule"),
        ("// helenus: accept full-scan, here", "full-scan finds nothing"),
        (
            "-- helenus: accept unbounded-read as before",
            "unbounded-read finds nothing",
        ),
    ] {
        let told = of(comment, Profile::Cosmos);
        assert!(
            told.first().is_some_and(|told| told.contains(said)),
            "{comment}: {told:?}"
        );
    }
    // What it needs is not there: another run may find it.
    for rule in ["partition-near-cap", "missing-partition-key-index"] {
        assert_eq!(
            of(&format!("-- helenus: accept {rule}"), Profile::Cassandra).len(),
            0,
            "{rule}"
        );
    }
    let unused = "-- helenus: accept unused-table later\nCREATE TABLE t (k uuid PRIMARY KEY);";
    assert_eq!(rules(&advice(unused, None, None)), []);
}

#[test]
fn what_the_server_refuses_is_told() {
    let refused = |schema: &str, profile| -> Vec<(usize, String)> {
        let found = advised(schema, "", profile, None).findings;
        let found = found.into_iter().filter(|found| found.rule == "invalid-statement");
        found.map(|found| (found.line, found.message)).collect()
    };
    let function = "CREATE FUNCTION f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;';\n\
                    CREATE AGGREGATE g (int) SFUNC f STYPE int;";
    let told = refused(function, Profile::Cosmos);
    let lines: Vec<usize> = told.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [1, 2], "{told:?}");
    let why = "not supported in the profile cosmos";
    assert!(told.iter().all(|(_, message)| message.contains(why)), "{told:?}");
    let others = "CREATE TABLE t (k uuid PRIMARY KEY, v uuid);\n\
                  CREATE MATERIALIZED VIEW w AS SELECT * FROM t WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k);\n\
                  CREATE ROLE r;\nGRANT SELECT ON t TO r;\nALTER ROLE r WITH LOGIN = true;\nDROP ROLE r;\nLIST ROLES;";
    let told = refused(others, Profile::Cosmos);
    assert_eq!(
        told.iter().map(|(line, _)| *line).collect::<Vec<_>>(),
        [2, 3, 4, 5, 6, 7],
        "{told:?}"
    );
    assert_eq!(refused(others, Profile::Cassandra), []);
    let commands = "SOURCE 'x.cql'\nCREATE TABLE t (k uuid PRIMARY KEY);\nCOPY t FROM 'x.csv';\nTRACING ON";
    let told = refused(commands, Profile::Cassandra);
    assert_eq!(told.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 3]);
    assert!(told[0].1.contains("name that file itself") && told[1].1.contains("helenus import"));
}

#[test]
fn a_refused_table_has_no_further_findings() {
    let queries =
        "SELECT * FROM sessions WHERE id = ?; INSERT INTO sessions (id) VALUES (?); CREATE INDEX i ON sessions (a);";
    for create in [
        "CREATE TABLE sessions (id uuid PRIMARY KEY, a nosuchtype);",
        "CREATE TABLE IF NOT EXISTS sessions (id uuid, a int, PRIMARY KEY (id), PRIMARY KEY (a));",
        "CREATE TABLE sessions (id uuid PRIMARY KEY, a int",
    ] {
        let found = advised(&format!("{create}\n;{queries}"), "", Profile::Cassandra, None).findings;
        let lines: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
        assert_eq!(lines.len(), 1, "{create} {lines:?}");
    }
    // A table that nobody tried to create stays a finding.
    let found = advised("SELECT * FROM sessions WHERE id = ?;", "", Profile::Cassandra, None).findings;
    assert!(
        found.iter().any(|found| found.message.contains("sessions")),
        "{found:?}"
    );
}

const VIEW: &str = "CREATE TABLE orders (id uuid PRIMARY KEY, status text, placed timestamp);\n\
                    CREATE MATERIALIZED VIEW by_status AS SELECT * FROM orders\n\
                    WHERE status IS NOT NULL AND id IS NOT NULL PRIMARY KEY (status, id);";

#[test]
fn views_are_checked_as_tables() {
    let asked = "INSERT INTO orders (id) VALUES (?); SELECT * FROM by_status WHERE status = ?;";
    let found = advised(VIEW, asked, Profile::Cassandra, None);
    assert_eq!(rules(&found), [("low-cardinality-key", Level::Warning)]);
    let finding = &found.findings[0];
    assert_eq!(
        (finding.table.as_str(), finding.line, finding.column),
        ("app.by_status", 3, 58)
    );
    let scan = "INSERT INTO orders (id) VALUES (?); SELECT * FROM by_status;";
    let found = advised(VIEW, scan, Profile::Cassandra, None);
    assert_eq!(rules(&found)[1..], [("full-scan", Level::Warning)]);
    let found = advised(VIEW, "SELECT * FROM orders WHERE id = ?;", Profile::Cassandra, None);
    assert_eq!(
        rules(&found),
        [("unused-view", Level::Warning), ("low-cardinality-key", Level::Warning)]
    );
    // A partition of a view grows as one of a table does, unless the table's rows expire.
    let view = |with: &str| {
        format!(
            "CREATE TABLE e (id uuid, at timeuuid, user uuid, PRIMARY KEY (id, at)){with};\
             CREATE MATERIALIZED VIEW v AS SELECT * FROM e WHERE user IS NOT NULL AND id IS NOT NULL AND at IS NOT NULL \
             PRIMARY KEY (user, at, id);"
        )
    };
    let grows = |with: &str| {
        rules(&advised(
            &view(with),
            "SELECT * FROM v WHERE user = ? LIMIT 1;",
            Profile::Cassandra,
            None,
        ))
        .len()
    };
    assert_eq!((grows(""), grows(" WITH default_time_to_live = 60")), (3, 1));
}

#[test]
fn findings_for_cassandra_do_not_speak_of_cosmos() {
    let schema = std::fs::read_to_string(folder().join("queries.schema.cql")).unwrap();
    let queries = std::fs::read_to_string(folder().join("queries.queries.cql")).unwrap();
    let found = advised(&schema, &queries, Profile::Cassandra, None);
    let mut told = text(&found, BYTES_MAX, TODAY, Style::default());
    assert!(told.contains("full-scan"), "{told}");
    let value = sarif(&found, Profile::Cassandra);
    for rule in value["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap() {
        // It is of Cosmos alone, and never found here.
        if rule["id"] != "missing-partition-key-index" {
            told += &format!("{}\n", rule["fullDescription"]);
        }
    }
    for word in [
        "hysical partition",
        " RU ",
        "RU/s",
        "change feed",
        "20 GB",
        "paid for",
        "charge",
    ] {
        assert_eq!(told.lines().find(|line| line.contains(word)), None, "{word}");
    }
}

#[test]
fn a_baseline_accepts_what_was_there_wherever_it_stands_now() {
    let first = advised(JOBS, "SELECT * FROM jobs;", Profile::Cosmos, None);
    let written = serde_json::to_string(&Baseline::of(&first)).unwrap();
    let baseline = Baseline::parse(&written).unwrap();
    let queries = "\n\nSELECT * FROM jobs; SELECT * FROM jobs WHERE topic = ?;";
    let found = advised(JOBS, queries, Profile::Cosmos, Some(&baseline));
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
    let why = |profile| advised(JOBS, "SELECT * FROM jobs;", profile, None).findings[0].why;
    assert!(why(Profile::Cosmos).contains("20 GB") && why(Profile::Cassandra).contains("100 MB"));
    let both = "CREATE TABLE t (k uuid PRIMARY KEY, v int);CREATE INDEX ON t (v);";
    let asked = "SELECT * FROM t WHERE k = ? AND v = 1;";
    let told = |profile| rules(&advised(both, asked, profile, None)).len();
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
    let found = advised(JOBS, work, Profile::Cassandra, None);
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
        rules(&advised(JOBS, work, Profile::Cassandra, None)),
        [("unbounded-partition", Level::Warning)]
    );
}

#[test]
fn the_caret_stands_under_what_is_meant() {
    let found = advised(JOBS, "\tSELECT * FROM jobs;", Profile::Cosmos, None);
    let told = text(&found, BYTES_MAX, TODAY, Style::default());
    let lines: Vec<&str> = told.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("queries.cql")).unwrap();
    assert_eq!(lines[at + 1], "    1 |  SELECT * FROM jobs;");
    assert_eq!(lines[at + 2], "      |  ^^^^^^");
    let coloured = text(&found, BYTES_MAX, TODAY, Style { colour: true });
    assert!(coloured.contains("\u{1b}[1;33mwarning\u{1b}[0m") && coloured.contains("\u{1b}[1;33m^^^^^^"));
    let long = format!("SELECT {}* FROM jobs;", "/* \u{1b} */".repeat(40));
    let told = text(
        &advised(JOBS, &long, Profile::Cosmos, None),
        BYTES_MAX,
        TODAY,
        Style::default(),
    );
    assert!(!told.contains('\u{1b}') && told.lines().all(|line| line.chars().count() < 500));
}
