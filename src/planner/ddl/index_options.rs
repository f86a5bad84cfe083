//! The options of CUSTOM indexes: what their classes refuse, in the order in which Cassandra's `validateOptions` look.

use std::collections::BTreeMap;

use grammar::ast::IndexTargetKind;

use super::error::{DdlError, configuration, invalid};
use super::index::part_of;
use crate::schema::index::{SASI_CLASS, is_sai_class};
use crate::schema::{Column, ColumnKind, Table};
use crate::types::{CqlType, Native};

/// What SAI does to texts.
const ANALYSIS_OPTIONS: &[&str] = &["ascii", "case_sensitive", "normalize"];
/// What SAI's indexes of vectors are told.
const VECTOR_OPTIONS: &[&str] = &[
    "construction_beam_width",
    "maximum_node_connections",
    "optimize_for",
    "similarity_function",
];

const ANALYZERS: &str = "org.apache.cassandra.index.sasi.analyzer.";

/// Said whenever a table has a storage-attached index of vectors.
const VECTOR_WARNING: &str = "SAI ANN indexes on vector columns are experimental and are not recommended for production use.\nThey don't yet support SELECT queries with:\n * Consistency level higher than ONE/LOCAL_ONE.\n * Paging.\n * No LIMIT clauses.\n * PER PARTITION LIMIT clauses.\n * GROUP BY clauses.\n * Aggregation functions.\n * Filters on columns without a SAI index.";

/// Refuses options that the user may not write at all.
pub(super) fn reserved(given: &BTreeMap<String, String>) -> Result<(), DdlError> {
    for option in ["class_name", "target"] {
        if given.contains_key(option) {
            return Err(invalid!("Cannot specify {option} as a CUSTOM option"));
        }
    }
    Ok(())
}

/// Refuses a class that there is not, and what it cannot do with these options and targets. `given` is in order of writing.
pub(super) fn judge(
    class: &str,
    given: &[(String, String)],
    table: &Table,
    targets: &[(IndexTargetKind, &Column)],
) -> Result<(), DdlError> {
    if is_sai_class(class) {
        attached(given, table, targets)
    } else if class == SASI_CLASS {
        sasi(given, targets)
    } else {
        Err(configuration!("Unable to find custom indexer class '{class}'"))
    }
}

/// What is said when an index was added to a table; `None`: one of no class. Every one is told of each of the vectors' indexes.
pub(super) fn warnings(class: Option<&str>, table: &Table) -> Vec<String> {
    let mut warnings = of_vectors(table);
    if class == Some(SASI_CLASS) {
        warnings.push("SASI indexes are experimental and are not recommended for production use.".to_owned());
    }
    warnings
}

/// A warning for each index of vectors that a table has.
pub(super) fn of_vectors(table: &Table) -> Vec<String> {
    let of_vectors = table.indexes.values().filter(|index| index.is_of_vectors(table));
    of_vectors.map(|_| VECTOR_WARNING.to_owned()).collect()
}

/// The names of several columns, or the one that there is.
fn single<'c>(targets: &[(IndexTargetKind, &'c Column)]) -> Result<(IndexTargetKind, &'c Column), String> {
    match targets {
        [(kind, column)] => Ok((*kind, column)),
        _ => {
            let names: Vec<&str> = targets.iter().map(|(_, column)| column.name.as_str()).collect();
            Err(names.join(", "))
        }
    }
}

fn is_text(ty: &CqlType) -> bool {
    matches!(ty, CqlType::Native(Native::Text | Native::Ascii))
}

/// The type of what a target keeps; `None` for a map's entries.
fn kept(kind: IndexTargetKind, ty: &CqlType) -> Option<&CqlType> {
    match part_of(kind).kept(ty) {
        Some((_, Some(_))) => None,
        Some((kept, None)) => Some(kept),
        None => Some(ty),
    }
}

/// The class by which Cassandra writes a map's entries.
fn entries_class(ty: &CqlType) -> String {
    match ty {
        CqlType::Map(key, value) => format!(
            "org.apache.cassandra.db.marshal.CompositeType({},{})",
            key.marshal_name(),
            value.marshal_name()
        ),
        other => other.marshal_name(),
    }
}

fn attached(given: &[(String, String)], table: &Table, targets: &[(IndexTargetKind, &Column)]) -> Result<(), DdlError> {
    let unknown: Vec<&str> = given
        .iter()
        .map(|(option, _)| option.as_str())
        .filter(|option| !ANALYSIS_OPTIONS.contains(option) && !VECTOR_OPTIONS.contains(option))
        .collect();
    if !unknown.is_empty() {
        return Err(configuration!(
            "Properties specified [{}] are not understood by StorageAttachedIndex",
            unknown.join(", ")
        ));
    }
    let (kind, column) = match single(targets) {
        Ok(target) => target,
        Err(names) if names.is_empty() => return Err(invalid!("Failed to retrieve target column for: ")),
        Err(names) => {
            return Err(invalid!(
                "A storage-attached index cannot be created over multiple columns: {names}"
            ));
        }
    };
    let taken = table.indexes.values().any(|other| {
        other.options.get("class_name").is_some_and(|class| is_sai_class(class))
            && other
                .target_column()
                .is_some_and(|(part, name)| name == column.name && super::index::part_of(kind) == part)
    });
    if taken {
        return Err(invalid!(
            "Cannot create more than one storage-attached index on the same column: {}",
            column.name
        ));
    }
    let is = |options: &'static [&'static str]| {
        let mut found: Vec<&(String, String)> = given
            .iter()
            .filter(|(option, _)| options.contains(&option.as_str()))
            .collect();
        found.sort();
        found
    };
    let analysis = is(ANALYSIS_OPTIONS);
    if !analysis.is_empty() && matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering) {
        let texts: Vec<String> = analysis
            .iter()
            .map(|(option, value)| format!("'{option}': '{value}'"))
            .collect();
        return Err(invalid!(
            "Analysis options are not supported on primary key columns, but found {{{}}}",
            texts.join(", ")
        ));
    }
    let ty = kept(kind, &column.ty);
    if !analysis.is_empty() && !ty.is_some_and(is_text) {
        return match ty {
            Some(ty) => Err(invalid!("CQL type {} cannot be analyzed.", ty.cql_name())),
            None => Err(invalid!("CQL type '{}' cannot be analyzed.", entries_class(&column.ty))),
        };
    }
    for (option, value) in analysis {
        match value.to_lowercase().as_str() {
            "" => return Err(invalid!("Empty value for boolean option '{option}'")),
            "true" | "false" => {}
            _ => return Err(invalid!("Illegal value for boolean option '{option}': {value}")),
        }
    }
    let Some(ty) = ty else {
        // Entries: of their keys and values each has to be one that can be kept.
        return match column.ty.unfrozen() {
            CqlType::Map(key, value) => [key, value].into_iter().try_for_each(|ty| can_be_kept(ty)),
            _ => Ok(()),
        };
    };
    if let CqlType::Vector(element, dimension) = ty {
        return vector(element, *dimension, given);
    }
    if !is(VECTOR_OPTIONS).is_empty() {
        return Err(invalid!("CQL type {} cannot have vector options", ty.cql_name()));
    }
    can_be_kept(ty)
}

fn can_be_kept(ty: &CqlType) -> Result<(), DdlError> {
    match ty {
        CqlType::Native(Native::Blob | Native::Duration | Native::Counter) => {
            Err(invalid!("Unsupported type: {}", ty.cql_name()))
        }
        _ => Ok(()),
    }
}

fn vector(element: &CqlType, dimension: u32, given: &[(String, String)]) -> Result<(), DdlError> {
    let option = |name: &str| given.iter().find(|(option, _)| option == name).map(|(_, value)| value);
    if !matches!(element, CqlType::Native(Native::Float)) {
        return Err(invalid!(
            "SAI ANN indexes are only allowed on vector columns with float elements"
        ));
    }
    let whole = |name: &str, what: &str, max: i32| match option(name) {
        None => Ok(()),
        Some(text) => match text.parse::<i32>() {
            Ok(number) if (1..=max).contains(&number) => Ok(()),
            Ok(number) => Err(invalid!(
                "{what} for index null cannot be <= 0 or > {max}, was {number}"
            )),
            Err(_) => Err(invalid!("{what} {text} is not a valid integer for index null")),
        },
    };
    whole("maximum_node_connections", "Maximum number of connections", 512)?;
    whole("construction_beam_width", "Construction beam width", 3200)?;
    let similarity = option("similarity_function").map_or_else(|| "COSINE".to_owned(), |name| name.to_uppercase());
    if !["EUCLIDEAN", "DOT_PRODUCT", "COSINE"].contains(&similarity.as_str()) {
        return Err(invalid!(
            "Similarity function {similarity} was not recognized for index null. Valid values are: EUCLIDEAN, DOT_PRODUCT, COSINE"
        ));
    }
    if let Some(optimize) = option("optimize_for").map(|name| name.to_uppercase())
        && !["LATENCY", "RECALL"].contains(&optimize.as_str())
    {
        return Err(invalid!(
            "optimize_for '{optimize}' was not recognized for index null. Valid values are: LATENCY, RECALL"
        ));
    }
    if dimension == 1 && similarity == "COSINE" {
        return Err(invalid!(
            "Cosine similarity is not supported for single-dimension vectors"
        ));
    }
    Ok(())
}

fn sasi(given: &[(String, String)], targets: &[(IndexTargetKind, &Column)]) -> Result<(), DdlError> {
    let (_, column) =
        single(targets).map_err(|names| configuration!("failed to retrieve target column for: {names}"))?;
    if column.ty.is_multi_cell() {
        return Err(configuration!("complex columns are not yet supported by SASI"));
    }
    if column.kind == ColumnKind::PartitionKey {
        return Err(configuration!("partition key columns are not yet supported by SASI"));
    }
    let option = |name: &str| given.iter().find(|(option, _)| option == name).map(|(_, value)| value);
    if let Some(class) = option("analyzer_class") {
        let name = class.strip_prefix(ANALYZERS);
        let Some(name) = name.filter(|name| {
            [
                "NonTokenizingAnalyzer",
                "StandardAnalyzer",
                "DelimiterAnalyzer",
                "NoOpAnalyzer",
            ]
            .contains(name)
        }) else {
            return Err(configuration!("Unable to find analyzer class '{class}'"));
        };
        if !is_text(&column.ty) && name != "NoOpAnalyzer" {
            return Err(configuration!("{name} does not support type {}", column.ty.cql_name()));
        }
        if name == "NonTokenizingAnalyzer" {
            let (lower, upper) = (option("normalize_lowercase"), option("normalize_uppercase"));
            if option("case_sensitive").is_some() && (lower.is_some() || upper.is_some()) {
                return Err(configuration!(
                    "case_sensitive option cannot be specified together with either normalize_lowercase or normalize_uppercase"
                ));
            }
            // Differs: Cassandra notices too late, and leaves the index behind.
            if lower.is_some() && upper.is_some() {
                return Err(configuration!(
                    "normalize_lowercase and normalize_uppercase cannot be specified together"
                ));
            }
        }
        if name == "DelimiterAnalyzer" && option("delimiter").is_some_and(|text| text.chars().count() != 1) {
            return Err(configuration!(
                "Only single character delimiters supported, was {}",
                option("delimiter").map(String::as_str).unwrap_or_default()
            ));
        }
    }
    if let Some(mode) = option("mode") {
        match mode.to_lowercase().as_str() {
            "prefix" | "contains" => {}
            "sparse" if is_text(&column.ty) => {
                return Err(configuration!("SPARSE mode is only supported on non-literal columns."));
            }
            "sparse" => {}
            _ => return Err(configuration!("Incorrect index mode: {mode}")),
        }
    }
    Ok(())
}
