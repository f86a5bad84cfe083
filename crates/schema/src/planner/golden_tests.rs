//! Golden scripts of statements and their plans, and WHERE clauses compared with a brute-force evaluation.
//!
//! A script's line `> statement` prints the plan's markers and result; `[bound]> statement` prints the command that
//! results from binding without values. Rewrite with `UPDATE_GOLDENFILES=1`, and read the difference.

use std::fmt::Write as _;
use std::sync::Arc;

use goldenscript::{Command, Runner};
use proptest::prelude::*;

use super::tests::World;
use super::{Plan, Planned};
use crate::command::{Clustering, ClusteringRange, Partitions, Value, WriteTarget};
use helenus_types::functions::{Context, Timeuuids};
use helenus_types::types::{CqlType, Native, hex};

fn context() -> Context {
    Context::new(1_600_000_000_000_000, Arc::new(Timeuuids::new(1)), 1)
}

fn ranges(ranges: &[ClusteringRange]) -> String {
    let texts: Vec<String> = ranges
        .iter()
        .map(|range| {
            format!(
                "[{}, {})",
                hex(&range.start),
                range.end.as_deref().map_or("end".to_owned(), hex)
            )
        })
        .collect();
    if texts.is_empty() {
        "none".to_owned()
    } else {
        texts.join(" ")
    }
}

fn keys<K: AsRef<[u8]>>(keys: &[K]) -> String {
    keys.iter()
        .map(|key| format!("<{}>", hex(key.as_ref())))
        .collect::<Vec<_>>()
        .join(" ")
}

fn describe(planned: &Planned) -> String {
    let mut text = String::new();
    for marker in planned.markers.iter() {
        writeln!(
            text,
            "marker {}.{} {} {}",
            marker.keyspace,
            marker.table,
            marker.name,
            marker.ty.cql_name()
        )
        .unwrap();
    }
    if !planned.partition_key_markers.is_empty() {
        writeln!(text, "partition key by {:?}", planned.partition_key_markers).unwrap();
    }
    for column in planned.result.iter().flat_map(|result| result.columns.iter()) {
        writeln!(text, "column {} {}", column.name, column.ty.cql_name()).unwrap();
    }
    if text.is_empty() { "nothing\n".to_owned() } else { text }
}

#[expect(clippy::too_many_lines, reason = "one arm for each line that a script prints")]
fn bound(planned: &Planned) -> Result<String, super::Error> {
    let mut text = String::new();
    let lines = |text: &mut String, line: String| writeln!(text, "{line}").unwrap();
    match &planned.plan {
        Plan::Select(plan) => {
            let select = plan.bind(&[], &context(), false)?;
            lines(
                &mut text,
                match &select.partitions {
                    Partitions::Keys(found) => format!("partitions {}", keys(found)),
                    Partitions::Ring(None) => "no tokens".to_owned(),
                    Partitions::Ring(Some(span)) => format!("tokens {} ..= {}", span.lower(), span.upper()),
                },
            );
            lines(
                &mut text,
                match &select.rows {
                    Clustering::All => "all rows".to_owned(),
                    Clustering::Keys(found) => format!("rows {}", keys(found)),
                    Clustering::Ranges(found) => format!("ranges {}", ranges(found)),
                },
            );
            for filter in select.filter.required() {
                lines(
                    &mut text,
                    format!(
                        "filter {:?} {:?} {:?}",
                        filter.target, filter.comparison, filter.operands
                    ),
                );
            }
            if select.reversed {
                lines(&mut text, "reversed".to_owned());
            }
            if !select.sort.is_empty() {
                lines(&mut text, format!("sort {:?}", select.sort));
            }
            if let Some(groups) = &select.group_by {
                lines(&mut text, format!("groups {groups:?}"));
            }
            if select.limit_rows.is_some() || select.per_partition_limit_rows.is_some() {
                lines(
                    &mut text,
                    format!("limits {:?} {:?}", select.limit_rows, select.per_partition_limit_rows),
                );
            }
            lines(&mut text, format!("expressions {:?}", select.selection.expressions));
            if !select.selection.aggregates.is_empty() {
                lines(&mut text, format!("aggregates {:?}", select.selection.aggregates));
            }
            lines(&mut text, format!("needed {:?}", select.selection.needed));
        }
        Plan::Modify(plan) => {
            let modification = plan.bind(&[], &context())?;
            lines(
                &mut text,
                format!("{:?} {}", modification.kind, keys(&modification.partition_keys)),
            );
            lines(
                &mut text,
                match &modification.target {
                    WriteTarget::Rows(found) => format!("rows {}", keys(found)),
                    WriteTarget::Ranges(found) => format!("ranges {}", ranges(found)),
                    WriteTarget::Static => "static row".to_owned(),
                    WriteTarget::Partition => "partition".to_owned(),
                },
            );
            for (column, operation) in &modification.operations {
                lines(&mut text, format!("column {column} {operation:?}"));
            }
            lines(
                &mut text,
                format!(
                    "timestamp {:?} ttl {:?}",
                    modification.timestamp, modification.ttl_seconds
                ),
            );
            lines(
                &mut text,
                format!(
                    "if {:?} answers {:?}",
                    modification.condition, modification.condition_columns
                ),
            );
        }
        Plan::Batch(plan) => {
            let batch = plan.bind(&[], &context())?;
            lines(
                &mut text,
                format!(
                    "{:?} of {}, conditional {}",
                    batch.kind,
                    batch.modifications.len(),
                    batch.conditional
                ),
            );
        }
        other => lines(&mut text, format!("{other:?}")),
    }
    Ok(text)
}

struct Script(World);

impl Runner for Script {
    type Command = Command;

    fn run(
        &mut self,
        command: &Command,
        context: &goldenscript::Context,
    ) -> Result<String, Box<dyn std::error::Error>> {
        Ok(match self.0.run(&command.name) {
            Ok(None) => String::new(),
            Ok(Some(planned)) if context.tags.contains("bound") => {
                bound(&planned).unwrap_or_else(|error| format!("{error}\n"))
            }
            Ok(Some(planned)) => describe(&planned),
            Err(error) => format!("{error}\n"),
        })
    }
}

#[test]
fn scripts() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/planner/golden");
    for entry in std::fs::read_dir(folder).unwrap() {
        goldenscript::run(&mut Script(World::golden()), entry.unwrap().path()).unwrap();
    }
}

/// One relation of the property below: its text and its predicate on a row (a, b, c).
#[derive(Clone, Debug)]
enum RelationSpec {
    Compare(usize, &'static str, i32),
    In(usize, Vec<i32>),
    Tuple(usize, usize, &'static str, Vec<i32>),
}

const COLUMNS: [&str; 3] = ["a", "b", "c"];

impl RelationSpec {
    fn text(&self) -> String {
        let list = |values: &[i32]| values.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Self::Compare(column, operator, value) => format!("{} {operator} {value}", COLUMNS[*column]),
            Self::In(column, values) => format!("{} IN ({})", COLUMNS[*column], list(values)),
            Self::Tuple(first, count, operator, values) => {
                format!(
                    "({}) {operator} ({})",
                    COLUMNS[*first..first + count].join(", "),
                    list(values)
                )
            }
        }
    }

    fn holds(&self, row: &[i32; 3]) -> bool {
        let compare = |order: std::cmp::Ordering, operator: &str| match operator {
            "=" => order.is_eq(),
            "<" => order.is_lt(),
            "<=" => order.is_le(),
            ">" => order.is_gt(),
            _ => order.is_ge(),
        };
        match self {
            Self::Compare(column, operator, value) => compare(row[*column].cmp(value), operator),
            Self::In(column, values) => values.contains(&row[*column]),
            Self::Tuple(first, count, operator, values) => compare(row[*first..first + count].cmp(values), operator),
        }
    }
}

fn operator() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("="), Just("<"), Just("<="), Just(">"), Just(">=")]
}

fn relation_specs() -> impl Strategy<Value = RelationSpec> {
    let value = 0..4_i32;
    prop_oneof![
        (0..3_usize, operator(), value.clone())
            .prop_map(|(column, operator, value)| RelationSpec::Compare(column, operator, value)),
        (0..3_usize, proptest::collection::vec(value.clone(), 2..4))
            .prop_map(|(column, values)| RelationSpec::In(column, values)),
        (0..3_usize, operator(), proptest::collection::vec(value, 1..4)).prop_map(|(first, operator, values)| {
            let count = values.len().min(3 - first);
            RelationSpec::Tuple(first, count, operator, values[..count].to_vec())
        }),
    ]
}

fn world(orders: [bool; 3]) -> World {
    let mut world = World::new();
    world
        .run("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        .unwrap();
    world.run("USE ks").unwrap();
    let order = |column: usize| format!("{} {}", COLUMNS[column], if orders[column] { "DESC" } else { "ASC" });
    let text = format!(
        "CREATE TABLE t (k int, a int, b int, c int, v int, PRIMARY KEY (k, a, b, c)) WITH CLUSTERING ORDER BY ({}, {}, {})",
        order(0),
        order(1),
        order(2)
    );
    world.run(&text).unwrap();
    world
}

/// The key of a row.
fn key(row: &[i32; 3], orders: [bool; 3]) -> Vec<u8> {
    let mut key = Vec::new();
    for (value, descending) in row.iter().zip(orders) {
        CqlType::Native(Native::Int).encode_key(&value.to_be_bytes(), descending, &mut key);
    }
    key
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// For every clause that Cassandra's rules accept, the bound keys and ranges hold the rows of the relations, in key
    /// order.
    #[test]
    fn rows_are_what_relations_say(
        relations in proptest::collection::vec(relation_specs(), 1..4),
        orders in any::<[bool; 3]>(),
    ) {
        let mut world = world(orders);
        let texts: Vec<String> = relations.iter().map(RelationSpec::text).collect();
        let statement = format!("SELECT v FROM t WHERE k = 1 AND {}", texts.join(" AND "));
        let Ok(Some(planned)) = world.run(&statement) else { return Ok(()) };
        let Plan::Select(plan) = &planned.plan else { unreachable!() };
        let bound = plan.bind(&[], &context(), false).unwrap();
        prop_assert!(bound.filter.is_none());
        for index in 0..64 {
            let row = [index / 16, index / 4 % 4, index % 4];
            let key = key(&row, orders);
            let found = match &bound.rows {
                Clustering::All => true,
                Clustering::Keys(keys) => keys.contains(&key),
                Clustering::Ranges(ranges) => ranges.iter().any(|range| {
                    range.start <= key && range.end.as_ref().is_none_or(|end| key < *end)
                }),
            };
            let expected = relations.iter().all(|relation| relation.holds(&row));
            prop_assert_eq!(found, expected, "{} {:?}", statement, row);
        }
        match &bound.rows {
            Clustering::Keys(keys) => prop_assert!(keys.windows(2).all(|pair| pair[0] < pair[1])),
            Clustering::Ranges(ranges) => {
                prop_assert!(ranges.windows(2).all(|pair| pair[0].end.as_ref().is_some_and(|end| *end <= pair[1].start)));
            }
            Clustering::All => {}
        }
    }

    /// Arbitrary bound bytes bind or are refused, and nothing panics.
    #[test]
    fn any_bytes_bind_or_are_refused(
        statement in 0..STATEMENTS.len(),
        values in proptest::collection::vec(proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40)), 0..8),
    ) {
        let mut world = World::golden();
        let planned = world.run(STATEMENTS[statement]).unwrap().unwrap();
        let mut values: Vec<Value> =
            values.into_iter().map(|value| value.map_or(Value::Null, |bytes| Value::Bytes(bytes.into()))).collect();
        values.resize(planned.markers.len(), Value::Unset);
        match &planned.plan {
            Plan::Select(plan) => drop(plan.bind(&values, &context(), false)),
            Plan::Modify(plan) => drop(plan.bind(&values, &context())),
            _ => {}
        }
    }
}

const STATEMENTS: &[&str] = &[
    "SELECT * FROM wide WHERE k = ? AND (c1, c2) > ? AND c1 < ? LIMIT ?",
    "SELECT m[?], s[?..?] FROM collections WHERE k IN ?",
    "SELECT * FROM wide WHERE k IN ? AND (c1, c2) IN ?",
    "SELECT * FROM compound WHERE token(a, b) > ? AND token(a, b) <= token(?, ?)",
    "SELECT * FROM collections WHERE m[?] = ? AND l CONTAINS ? AND fm = ? ALLOW FILTERING",
    "INSERT INTO collections (k, l, s, m, fl, fs, fm) VALUES (?, ?, ?, ?, ?, ?, ?)",
    "INSERT INTO collections (k, tu, u, fu) VALUES (?, ?, ?, ?) USING TTL ? AND TIMESTAMP ?",
    "UPDATE collections SET l[?] = ?, m[?] = ?, u.a = ?, s = s - ? WHERE k = ? IF l[?] = ?",
    "INSERT INTO scalars (k, de, du, vi, ve, i) VALUES (?, ?, ?, ?, ?, ?)",
    "INSERT INTO simple JSON ?",
];
