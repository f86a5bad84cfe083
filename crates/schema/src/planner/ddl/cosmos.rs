//! Options of Cosmos and of Helenus: throughput, flags of cells, physical partitions.
//!
//! ALTER TABLE splits, merges and moves physical partitions, with an option that allows no other option beside it:
//!
//! ```text
//! ALTER TABLE ks.t WITH helenus_split_at = -42                      the first token of the new right-hand partition
//! ALTER TABLE ks.t WITH helenus_split_at = 'Full'                   its first partition key, in a table of `placement = 'ordered'`
//! ALTER TABLE ks.t WITH helenus_merge = {'left': 3, 'right': 4}     ids of two neighbours (system_cosmos.partitions)
//! ALTER TABLE ks.t WITH helenus_lift = 3                            into a new store of its own, while it is in use
//! ALTER TABLE ks.t WITH helenus_lower = 3                           back into the main store
//! ```
//! Every driver can send this CQL and cqlsh accepts it. It requires ALTER permission on the table, and runs in sequence
//! with other DDL. A table to insert changes into would need both anew. It changes no schema: the response is Void, and
//! no event follows.
//!
//! Sources: Azure Cosmos DB's messages as clients have reported them; if none is known, the message is ours.

use bytes::Bytes;
use grammar::ast::{AlterTable, AlterTableAction, Literal, Name, Property, PropertyValue, Statement};

use super::error::DdlError;
use super::property::Properties;
use super::refusal::CosmosRefusal;
use crate::command::{PartitionChange, PartitionChangeOf, SchemaOutcome};
use crate::schema::{FullFidelity, Keyspace, Schema, Table, TableOptions, Throughput};
use helenus_types::token::Token;

pub(super) const PROVISIONED: &str = "cosmosdb_provisioned_throughput";
pub(super) const AUTOSCALE: &str = "cosmosdb_autoscale_max_throughput";
pub(super) const CELL_TIMESTAMP: &str = "cosmosdb_cell_level_timestamp";
pub(super) const CELL_TOMBSTONES: &str = "cosmosdb_cell_level_timestamp_tombstones";
pub(super) const CELL_TIME_TO_LIVE: &str = "cosmosdb_cell_level_timetolive";
pub(super) const RETENTION_SECONDS: &str = "cosmosdb_full_fidelity_retention_seconds";
pub(super) const RETENTION_BYTES: &str = "cosmosdb_full_fidelity_retention_bytes";
pub(super) const PARTITIONS: &str = "helenus_partitions";
/// Cassandra has no such option: its partitioner is of the whole cluster.
pub(super) const PLACEMENT: &str = "placement";
const SPLIT_AT: &str = "helenus_split_at";
const MERGE: &str = "helenus_merge";
const LIFT: &str = "helenus_lift";
const LOWER: &str = "helenus_lower";

/// Maximum number of physical partitions of a new table; the engine's partition map allows at least as many.
const PARTITIONS_MAX: u16 = 1024;

/// The partition change that an ALTER TABLE requests; `None` means that it is about other options. `is_ordered`: the table lies in the
/// order of its partition key.
pub(super) fn partition_change(written: &[Property], is_ordered: bool) -> Result<Option<PartitionChange>, DdlError> {
    let properties = Properties::new(written)?;
    let change = if let Some(text) = properties.text(SPLIT_AT)?.filter(|_| is_ordered) {
        PartitionChange::Split {
            at: Token::OF_ORDERED.value(),
            partition_key: text.into(),
        }
    } else if let Some(text) = properties.text(SPLIT_AT)? {
        let at = text.parse().map_err(|_| CosmosRefusal::Token(text.to_owned()))?;
        PartitionChange::Split {
            at,
            partition_key: Bytes::new(),
        }
    } else if let Some(map) = properties.map(MERGE)? {
        let id = |name: &str| map.get(name).and_then(|text| text.parse().ok());
        let (Some(left), Some(right), 2) = (id("left"), id("right"), map.len()) else {
            return Err(CosmosRefusal::Merge.into());
        };
        PartitionChange::Merge { left, right }
    } else if let Some(id) = id_of(&properties, LIFT)? {
        PartitionChange::Lift { id }
    } else if let Some(id) = id_of(&properties, LOWER)? {
        PartitionChange::Lower { id }
    } else {
        return Ok(None);
    };
    if written.len() > 1 {
        return Err(CosmosRefusal::NotAlone.into());
    }
    Ok(Some(change))
}

/// The id of a physical partition in an option.
fn id_of(properties: &Properties<'_>, name: &'static str) -> Result<Option<u64>, DdlError> {
    let Some(text) = properties.text(name)? else {
        return Ok(None);
    };
    let id = text
        .parse()
        .map_err(|_| CosmosRefusal::PartitionId { text, option: name })?;
    Ok(Some(id))
}

/// Adds the throughput in the request's payload to the statement's options. The statement's own options take
/// precedence, and statements without throughput do not change. `None` means that the statement is unchanged.
#[must_use]
pub fn with_payload<'a>(statement: &Statement, value_of: impl Fn(&str) -> Option<&'a [u8]>) -> Option<Statement> {
    let mut given = Vec::new();
    for name in [PROVISIONED, AUTOSCALE] {
        // The number as text; the reader of the options refuses other texts.
        if let Some(value) = value_of(name) {
            let text = String::from_utf8_lossy(value).trim().to_owned();
            given.push(Property {
                name: Name::from(name),
                value: PropertyValue::Literal(Literal::Integer(text)),
            });
        }
    }
    if given.is_empty() {
        return None;
    }
    let mut statement = statement.clone();
    let properties = match &mut statement {
        Statement::CreateKeyspace(statement) => &mut statement.properties,
        Statement::AlterKeyspace(statement) => &mut statement.properties,
        Statement::CreateTable(statement) => &mut statement.options.properties,
        Statement::AlterTable(AlterTable {
            action: AlterTableAction::Options(options),
            ..
        }) => &mut options.properties,
        _ => return None,
    };
    let says = |name: &str| properties.iter().any(|property| property.name.as_str() == name);
    if says(PROVISIONED) || says(AUTOSCALE) {
        return None;
    }
    properties.extend(given);
    Some(statement)
}

/// The outcome of an ALTER TABLE with a partition change.
pub(super) fn outcome(schema: &Schema, table: &Table, change: PartitionChange) -> SchemaOutcome {
    SchemaOutcome {
        partition_change: Some(PartitionChangeOf {
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            change,
        }),
        ..SchemaOutcome::unchanged(schema)
    }
}

/// Reads the options of a table on top of its existing ones; `None` means a new table.
pub(super) fn table(
    properties: &Properties<'_>,
    before: Option<&TableOptions>,
    options: &mut TableOptions,
) -> Result<(), DdlError> {
    let only_at_first = |name: &'static str| match before {
        Some(_) => Err(CosmosRefusal::OnlyAtFirst(name)),
        None => Ok(()),
    };
    if let Some(count) = properties.int(PARTITIONS)? {
        let count = u16::try_from(count)
            .ok()
            .filter(|count| (1..=PARTITIONS_MAX).contains(count));
        let count = count.ok_or(CosmosRefusal::Partitions(PARTITIONS_MAX))?;
        only_at_first(PARTITIONS)?;
        options.partitions = Some(count);
    }
    if let Some(placement) = properties.text(PLACEMENT)? {
        let is_ordered = match placement.as_str() {
            "ordered" => true,
            "hash" => false,
            _ => return Err(CosmosRefusal::Placement(placement).into()),
        };
        only_at_first(PLACEMENT)?;
        options.is_ordered = is_ordered;
    }
    let flags = &mut options.cell_level;
    for (name, flag) in [
        (CELL_TIMESTAMP, &mut flags.timestamp),
        (CELL_TOMBSTONES, &mut flags.timestamp_tombstones),
        (CELL_TIME_TO_LIVE, &mut flags.time_to_live),
    ] {
        if let Some(value) = properties.boolean(name)? {
            only_at_first(name)?;
            *flag = value;
        }
    }
    options.full_fidelity = full_fidelity(properties, options.full_fidelity)?;
    options.throughput = throughput(properties, options.throughput)?;
    options.throughput_highest = highest(options.throughput_highest, options.throughput);
    Ok(())
}

/// Reads the retention of the full fidelity change feed: either option switches it on, and no seconds switch it off.
fn full_fidelity(properties: &Properties<'_>, before: Option<FullFidelity>) -> Result<Option<FullFidelity>, DdlError> {
    let number = |name: &'static str, least: u64, most: u64| match properties.text(name)? {
        None => Ok(None),
        Some(text) => match text.parse::<u64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(DdlError::from(CosmosRefusal::Retention {
                text,
                option: name,
                least,
                most,
            })),
        },
    };
    let seconds = number(RETENTION_SECONDS, 0, FullFidelity::RETENTION_SECONDS_MAX.into())?;
    let bytes = number(RETENTION_BYTES, 1, FullFidelity::RETENTION_BYTES_MAX)?;
    if seconds.is_none() && bytes.is_none() {
        return Ok(before);
    }
    let before = before.unwrap_or_default();
    let after = FullFidelity {
        log: before.log,
        retention_seconds: seconds
            .and_then(|seconds| u32::try_from(seconds).ok())
            .unwrap_or(before.retention_seconds),
        retention_bytes: bytes.unwrap_or(before.retention_bytes),
    };
    Ok((after.retention_seconds > 0).then_some(after))
}

/// Reads throughput; without an option the existing value stays.
pub(super) fn throughput(
    properties: &Properties<'_>,
    before: Option<Throughput>,
) -> Result<Option<Throughput>, DdlError> {
    match (properties.int(PROVISIONED)?, properties.int(AUTOSCALE)?) {
        (None, None) => Ok(before),
        (Some(_), Some(_)) => Err(CosmosRefusal::BothThroughputs.into()),
        (Some(units), None) => Ok(Some(Throughput::Manual(offer(units, 400, 100)?))),
        (None, Some(_)) if matches!(before, Some(Throughput::Manual(_))) => Err(CosmosRefusal::Migration.into()),
        // The minimum was 4000 when the message was reported; it is 1000 now.
        (None, Some(units)) => Ok(Some(Throughput::Autoscale(offer(units, 1000, 1000)?))),
    }
}

/// The highest throughput so far, in request units a second.
pub(super) fn highest(before: u32, throughput: Option<Throughput>) -> u32 {
    before.max(throughput.map_or(0, Throughput::most))
}

/// Maximum throughput in request units a second that Cosmos grants without a support request.
const UNITS_MAX: u32 = 1_000_000;

fn offer(units: i32, least: u32, step: u32) -> Result<u32, CosmosRefusal> {
    let valid = u32::try_from(units).ok();
    let valid = valid.filter(|units| (least..=UNITS_MAX).contains(units) && units % step == 0);
    valid.ok_or(CosmosRefusal::Throughput {
        least,
        step,
        most: UNITS_MAX,
    })
}

/// Reads the throughput of ALTER KEYSPACE.
pub(super) fn alter_keyspace(properties: &Properties<'_>, keyspace: &mut Keyspace) -> Result<(), DdlError> {
    if keyspace.throughput.is_none() && (properties.has(PROVISIONED) || properties.has(AUTOSCALE)) {
        return Err(CosmosRefusal::NotShared.into());
    }
    keyspace.throughput = throughput(properties, keyspace.throughput)?;
    keyspace.throughput_highest = highest(keyspace.throughput_highest, keyspace.throughput);
    Ok(())
}
