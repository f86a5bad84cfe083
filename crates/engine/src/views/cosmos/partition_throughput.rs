//! `system_cosmos.partition_throughput`: the budgets of physical partitions.

use super::super::figure::{self, Figure, Kind, Value};
use super::super::view::{Own, Rows, Sources, View};
use super::common::{COSMOS, units};
use crate::engine::shown::AccountShown;

pub(super) const VIEW: View = View {
    keyspace: COSMOS,
    name: "partition_throughput",
    own: Some(Own {
        comment: "request units of physical partitions",
        columns: || figure::columns(FIGURES),
        shows_sizes: false,
    }),
    rows: Rows::All(|sources| figure::cells(FIGURES, accounts(sources))),
};

/// A budget and its table; no table for a keyspace's shared budget.
struct AccountRow {
    keyspace: String,
    table: String,
    account: AccountShown,
}

static FIGURES: &[Figure<AccountRow>] = &[
    Figure::new("The table's keyspace.", |of: &AccountRow| Value::text(&of.keyspace)).keyed(
        Kind::Partition,
        "keyspace_name",
        "text",
    ),
    Figure::new("The table.", |of: &AccountRow| Value::text(&of.table)).keyed(Kind::Clustering, "table_name", "text"),
    Figure::new(
        "The physical partition's number; 0 for a keyspace.",
        |of: &AccountRow| Value::Count(of.account.id),
    )
    .keyed(Kind::Clustering, "id", "bigint"),
    Figure::new(
        "Request units that may be spent now; negative is debt.",
        |of: &AccountRow| Value::Float(units(of.account.balance_hundredths)),
    )
    .column("balance", "double"),
    Figure::new("Request units that are banked for bursts.", |of: &AccountRow| {
        Value::Float(units(of.account.bank_hundredths))
    })
    .column("banked", "double"),
    Figure::new(
        "The highest use in a second of the last minute, percent.",
        |of: &AccountRow| Value::Count(of.account.normalized_percent.into()),
    )
    .column("normalized_consumption", "int"),
    Figure::new("Request units that come in a second.", |of: &AccountRow| {
        Value::Float(units(
            i64::try_from(of.account.per_second_hundredths).unwrap_or(i64::MAX),
        ))
    })
    .column("per_second", "double"),
];

fn accounts(sources: Sources<'_>) -> Vec<AccountRow> {
    let shown = sources.of_services(|figures| figures.throughput()).into_iter();
    let rows = shown.flat_map(|shown| {
        let (keyspace, table) = (shown.keyspace, shown.table);
        shown.partitions.into_iter().map(move |account| AccountRow {
            keyspace: keyspace.clone(),
            table: table.clone(),
            account,
        })
    });
    rows.collect()
}
