//! CREATE, ALTER and DROP KEYSPACE.

use std::collections::BTreeMap;

use grammar::ast::{AlterKeyspace, CreateKeyspace, DropKeyspace};

use super::error::DdlError;
use super::property::Properties;
use super::refusal::{KeyspaceRefusal, NameRefusal};
use super::{Ddl, Right, SchemaOutcome, cosmos};
use crate::command::{ChangeKind, ChangeTarget};
use crate::schema::{Keyspace, LOCATOR_PACKAGE, names, system};

const FACTOR: &str = "replication_factor";

const PROPERTIES: &[&str] = &["replication", "durable_writes", cosmos::PROVISIONED, cosmos::AUTOSCALE];

/// Maximum number of characters of a keyspace's name, since file names contain it. Source: Cassandra's SchemaConstants.
const NAME_CHARACTERS_MAX: usize = names::KEYSPACE_NAME_CHARACTERS_MAX;

/// The replication factor of a new SimpleStrategy without one. Source: Cassandra's default_keyspace_rf.
const DEFAULT_FACTOR: &str = "1";

pub(super) fn create(ddl: &Ddl<'_>, statement: &CreateKeyspace) -> Result<SchemaOutcome, DdlError> {
    let name = statement.name.as_str();
    let properties = Properties::new(&statement.properties)?;
    if system::is_local(name) {
        return Err(KeyspaceRefusal::System(name.to_owned()).into());
    }
    check_name(name)?;
    properties.only(PROPERTIES)?;
    if !properties.has("replication") {
        return Err(KeyspaceRefusal::ReplicationMissing.into());
    }
    let replication = properties.map("replication")?.unwrap_or_default();
    let durable_writes = properties.boolean("durable_writes")?.unwrap_or(true);
    let throughput = cosmos::throughput(&properties, None)?;
    if ddl.schema.keyspace(name).is_some() {
        return if statement.if_not_exists {
            Ok(SchemaOutcome::unchanged(ddl.schema))
        } else {
            Err(DdlError::AlreadyExists {
                keyspace: name.to_owned(),
                table: String::new(),
            })
        };
    }
    let replication = strategy(ddl, name, replication, &BTreeMap::new())?;
    let warnings = too_many_replicas(ddl, name, &replication);
    let mut keyspace = Keyspace::new(name, replication, durable_writes);
    keyspace.throughput = throughput;
    keyspace.throughput_highest = cosmos::highest(0, throughput);
    let schema = ddl.with(keyspace);
    Ok(SchemaOutcome::changed(
        ddl.schema,
        schema,
        ChangeKind::Created,
        ChangeTarget::Keyspace,
        name,
        "",
    )
    .warned(warnings))
}

fn check_name(name: &str) -> Result<(), DdlError> {
    if !names::has_name_characters(name) {
        return Err(KeyspaceRefusal::NameCharacters(name.to_owned()).into());
    }
    let count = name.chars().count();
    if count > NAME_CHARACTERS_MAX {
        return Err(KeyspaceRefusal::NameLength {
            count,
            name: name.to_owned(),
            characters_max: NAME_CHARACTERS_MAX,
        }
        .into());
    }
    Ok(())
}

pub(super) fn alter(ddl: &Ddl<'_>, statement: &AlterKeyspace) -> Result<SchemaOutcome, DdlError> {
    let name = statement.name.as_str();
    let properties = Properties::new(&statement.properties)?;
    Ddl::authorize(name, Right::Alter, &format!("keyspace {name}"))?;
    properties.only(PROPERTIES)?;
    let replication = properties.map("replication")?;
    let durable_writes = properties.boolean("durable_writes")?;
    let Some(before) = ddl.schema.keyspace(name) else {
        return ddl.absent(statement.if_exists, NameRefusal::KeyspaceMissing(name.to_owned()));
    };
    let mut next = Keyspace::clone(before);
    let mut warnings = Vec::new();
    if let Some(replication) = replication {
        next.replication = strategy(ddl, name, replication, &before.replication)?;
        warnings = too_many_replicas(ddl, name, &next.replication);
        if replicas(ddl, &next.replication) > replicas(ddl, &before.replication) {
            warnings.push(
                "When increasing replication factor you need to run a full (-full) repair to distribute the data."
                    .to_owned(),
            );
        }
    }
    next.durable_writes = durable_writes.unwrap_or(next.durable_writes);
    cosmos::alter_keyspace(&properties, &mut next)?;
    let schema = ddl.with(next);
    Ok(SchemaOutcome::changed(
        ddl.schema,
        schema,
        ChangeKind::Updated,
        ChangeTarget::Keyspace,
        name,
        "",
    )
    .warned(warnings))
}

pub(super) fn drop(ddl: &Ddl<'_>, statement: &DropKeyspace) -> Result<SchemaOutcome, DdlError> {
    let name = statement.name.as_str();
    Ddl::authorize(name, Right::Drop, &format!("keyspace {name}"))?;
    let Some(keyspace) = ddl.schema.keyspace(name) else {
        return ddl.absent(statement.if_exists, NameRefusal::KeyspaceMissing(name.to_owned()));
    };
    let schema = ddl.schema.without_keyspace(name);
    let mut outcome = SchemaOutcome::changed(
        ddl.schema,
        schema,
        ChangeKind::Dropped,
        ChangeTarget::Keyspace,
        name,
        "",
    );
    outcome.dropped_storage = keyspace.all_tables().flat_map(|table| table.storage_ids()).collect();
    Ok(outcome)
}

/// Validates and normalises the replication options: full class name, defaults filled in.
fn strategy(
    ddl: &Ddl<'_>,
    keyspace: &str,
    mut options: BTreeMap<String, String>,
    before: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, DdlError> {
    let Some(class) = options.remove("class") else {
        // Differs: Cassandra responds to an empty map with a null pointer exception, 0x0000.
        return Err(KeyspaceRefusal::ClassMissing.into());
    };
    let full = if class.contains('.') {
        class
    } else {
        format!("{LOCATOR_PACKAGE}{class}")
    };
    let kept = match full.strip_prefix(LOCATOR_PACKAGE) {
        Some("SimpleStrategy") => simple(keyspace, options, before)?,
        Some("NetworkTopologyStrategy") => by_data_center(ddl, keyspace, options, before)?,
        Some("LocalStrategy") => {
            return Err(KeyspaceRefusal::LocalStrategy.into());
        }
        _ => return Err(KeyspaceRefusal::UnknownClass(full).into()),
    };
    let mut replication = kept;
    replication.insert("class".to_owned(), full);
    Ok(replication)
}

fn simple(
    keyspace: &str,
    mut options: BTreeMap<String, String>,
    before: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, DdlError> {
    let default = before.get(FACTOR).map_or(DEFAULT_FACTOR, String::as_str).to_owned();
    let factor = options.entry(FACTOR.to_owned()).or_insert(default);
    check_factor(factor)?;
    match options.keys().find(|name| *name != FACTOR) {
        Some(name) => Err(KeyspaceRefusal::SimpleOption {
            option: name.clone(),
            keyspace: keyspace.to_owned(),
        }
        .into()),
        None => Ok(options),
    }
}

fn by_data_center(
    ddl: &Ddl<'_>,
    keyspace: &str,
    mut options: BTreeMap<String, String>,
    before: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, DdlError> {
    let mut factor = options.remove(FACTOR);
    if factor.is_none() && options.is_empty() {
        // A change from SimpleStrategy takes over its factor. Otherwise existing factors stay, and the other data
        // centers get the default.
        factor = Some(before.get(FACTOR).map_or(DEFAULT_FACTOR, String::as_str).to_owned());
    }
    if factor.is_some() {
        for (name, value) in before.iter().filter(|(name, _)| *name != FACTOR && *name != "class") {
            options.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    if let Some(factor) = factor.filter(|factor| check_factor(factor).is_ok()) {
        for (name, _) in &ddl.context.data_centers {
            options.entry(name.clone()).or_insert_with(|| factor.clone());
        }
    }
    options.retain(|_, factor| factor != "0");
    if options.is_empty() {
        return Err(KeyspaceRefusal::NoDataCenter.into());
    }
    if let Some(name) = options
        .keys()
        .find(|name| !ddl.context.data_centers.iter().any(|(known, _)| known == *name))
    {
        return Err(KeyspaceRefusal::DataCenter {
            option: name.clone(),
            keyspace: keyspace.to_owned(),
        }
        .into());
    }
    for factor in options.values() {
        check_factor(factor)?;
    }
    Ok(options)
}

fn check_factor(factor: &str) -> Result<(), DdlError> {
    if let Some((all, transient)) = factor.split_once('/')
        && all.parse::<i32>().is_ok()
        && transient.parse::<i32>().is_ok()
    {
        return Err(KeyspaceRefusal::Transient.into());
    }
    match factor.parse::<i32>() {
        Err(_) => Err(KeyspaceRefusal::FactorText(factor.to_owned()).into()),
        Ok(count) if count < 0 => Err(KeyspaceRefusal::FactorSign(count).into()),
        Ok(_) => Ok(()),
    }
}

/// The total number of replicas.
fn replicas(ddl: &Ddl<'_>, replication: &BTreeMap<String, String>) -> usize {
    let count = |name: &str| {
        replication
            .get(name)
            .and_then(|factor| factor.parse::<usize>().ok())
            .unwrap_or_default()
    };
    count(FACTOR)
        + ddl
            .context
            .data_centers
            .iter()
            .map(|(name, _)| count(name))
            .sum::<usize>()
}

fn too_many_replicas(ddl: &Ddl<'_>, keyspace: &str, replication: &BTreeMap<String, String>) -> Vec<String> {
    let mut warnings = Vec::new();
    // As in Cassandra (`AbstractReplicationStrategy.maybeWarnOnOptions`).
    if system::is_name(keyspace) {
        return warnings;
    }
    let nodes: usize = ddl.context.data_centers.iter().map(|(_, nodes)| nodes).sum();
    let factor = |name: &str| replication.get(name).and_then(|factor| factor.parse::<usize>().ok());
    if let Some(factor) = factor(FACTOR).filter(|factor| *factor > nodes) {
        warnings.push(format!(
            "Your replication factor {factor} for keyspace {keyspace} is higher than the number of nodes {nodes}"
        ));
    }
    for (name, nodes) in &ddl.context.data_centers {
        if let Some(factor) = factor(name).filter(|factor| factor > nodes) {
            warnings.push(format!(
                "Your replication factor {factor} for keyspace {keyspace} is higher than the number of nodes {nodes} \
                 for datacenter {name}"
            ));
        }
    }
    warnings
}
