//! Options of CUSTOM indexes, checked in the order of Cassandra's `validateOptions`.

use std::collections::BTreeMap;

use grammar::ast::IndexTargetKind;

use super::refusal::IndexOptionRefusal;
use crate::planner::text::owned;
use crate::schema::index::{SASI_CLASS, is_sai_class};
use crate::schema::{Column, ColumnKind, IndexPart, Table};
use helenus_types::types::{CqlType, Native};

/// SAI's options for the analysis of texts.
const ANALYSIS_OPTIONS: &[&str] = &["ascii", "case_sensitive", "normalize"];
/// SAI's options for vector indexes.
const VECTOR_OPTIONS: &[&str] = &[
    "construction_beam_width",
    "maximum_node_connections",
    "optimize_for",
    "similarity_function",
];

const ANALYZERS: &str = "org.apache.cassandra.index.sasi.analyzer.";

/// Warning for each storage-attached vector index of a table.
const VECTOR_WARNING: &str = "SAI ANN indexes on vector columns are experimental and are not recommended for production use.\nThey don't yet support SELECT queries with:\n * Consistency level higher than ONE/LOCAL_ONE.\n * Paging.\n * No LIMIT clauses.\n * PER PARTITION LIMIT clauses.\n * GROUP BY clauses.\n * Aggregation functions.\n * Filters on columns without a SAI index.";

/// The part of a column that an index target names.
pub(super) fn part_of(kind: IndexTargetKind) -> IndexPart {
    match kind {
        IndexTargetKind::Simple => IndexPart::Value,
        IndexTargetKind::Values => IndexPart::Values,
        IndexTargetKind::Keys => IndexPart::Keys,
        IndexTargetKind::Entries => IndexPart::Entries,
        IndexTargetKind::Full => IndexPart::Full,
    }
}

/// Refuses options that only the server sets.
pub(super) fn reserved(given: &BTreeMap<String, String>) -> Result<(), IndexOptionRefusal> {
    for option in ["class_name", "target"] {
        if given.contains_key(option) {
            return Err(IndexOptionRefusal::Reserved(option));
        }
    }
    Ok(())
}

/// Refuses an unknown class, and options and targets that the class does not support. `given` is in order of writing.
pub(super) fn validate(
    class: &str,
    given: &[(String, String)],
    table: &Table,
    targets: &[(IndexTargetKind, &Column)],
) -> Result<(), IndexOptionRefusal> {
    if is_sai_class(class) {
        attached(given, table, targets)
    } else if class == SASI_CLASS {
        sasi(given, targets)
    } else {
        Err(IndexOptionRefusal::UnknownClass(class.to_owned()))
    }
}

/// The warnings after CREATE INDEX: one for each vector index of the table, and one for SASI. `None` means an index
/// without a class.
pub(super) fn warnings(class: Option<&str>, table: &Table) -> Vec<String> {
    let mut warnings = of_vectors(table);
    if class == Some(SASI_CLASS) {
        warnings.push("SASI indexes are experimental and are not recommended for production use.".to_owned());
    }
    warnings
}

/// A warning for each vector index of a table.
pub(super) fn of_vectors(table: &Table) -> Vec<String> {
    let of_vectors = table.indexes.values().filter(|index| index.is_of_vectors(table));
    of_vectors.map(|_| VECTOR_WARNING.to_owned()).collect()
}

/// The only target; `Err` holds the names of the columns if there are none or several.
fn single<'c>(targets: &[(IndexTargetKind, &'c Column)]) -> Result<(IndexTargetKind, &'c Column), Vec<String>> {
    match targets {
        [(kind, column)] => Ok((*kind, column)),
        _ => {
            let names: Vec<&str> = targets.iter().map(|(_, column)| column.name.as_str()).collect();
            Err(owned(names))
        }
    }
}

fn is_text(ty: &CqlType) -> bool {
    matches!(ty, CqlType::Native(Native::Text | Native::Ascii))
}

/// The type that an index target stores; `None` means a map's entries.
fn kept(kind: IndexTargetKind, ty: &CqlType) -> Option<&CqlType> {
    match part_of(kind).kept(ty) {
        Some((_, Some(_))) => None,
        Some((kept, None)) => Some(kept),
        None => Some(ty),
    }
}

/// Cassandra's class name for a map's entries.
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

#[expect(
    clippy::too_many_lines,
    reason = "the checks of an index, in the order of the faults of Cassandra"
)]
fn attached(
    given: &[(String, String)],
    table: &Table,
    targets: &[(IndexTargetKind, &Column)],
) -> Result<(), IndexOptionRefusal> {
    let unknown: Vec<&str> = given
        .iter()
        .map(|(option, _)| option.as_str())
        .filter(|option| !ANALYSIS_OPTIONS.contains(option) && !VECTOR_OPTIONS.contains(option))
        .collect();
    if !unknown.is_empty() {
        return Err(IndexOptionRefusal::NotUnderstood(owned(unknown)));
    }
    let (kind, column) = match single(targets) {
        Ok(target) => target,
        Err(names) if names.is_empty() => return Err(IndexOptionRefusal::NoTarget),
        Err(names) => {
            return Err(IndexOptionRefusal::SeveralTargets(names));
        }
    };
    let taken = table.indexes.values().any(|other| {
        other.options.get("class_name").is_some_and(|class| is_sai_class(class))
            && other
                .target_column()
                .is_some_and(|(part, name)| name == column.name && part_of(kind) == part)
    });
    if taken {
        return Err(IndexOptionRefusal::Taken(column.name.clone()));
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
        return Err(IndexOptionRefusal::AnalysisOfKey(texts));
    }
    let ty = kept(kind, &column.ty);
    if !analysis.is_empty() && !ty.is_some_and(is_text) {
        return match ty {
            Some(ty) => Err(IndexOptionRefusal::AnalysisOfType(ty.clone())),
            None => Err(IndexOptionRefusal::AnalysisOfEntries(entries_class(&column.ty))),
        };
    }
    for (option, value) in analysis {
        match value.to_lowercase().as_str() {
            "" => return Err(IndexOptionRefusal::EmptyBoolean(option.clone())),
            "true" | "false" => {}
            _ => {
                return Err(IndexOptionRefusal::IllegalBoolean {
                    option: option.clone(),
                    value: value.clone(),
                });
            }
        }
    }
    let Some(ty) = ty else {
        // Entries: both the type of keys and the type of values must be supported.
        return match column.ty.unfrozen() {
            CqlType::Map(key, value) => [key, value].into_iter().try_for_each(|ty| can_be_kept(ty)),
            _ => Ok(()),
        };
    };
    if let CqlType::Vector(element, dimension) = ty {
        return vector(element, *dimension, given);
    }
    if !is(VECTOR_OPTIONS).is_empty() {
        return Err(IndexOptionRefusal::VectorOptions(ty.clone()));
    }
    can_be_kept(ty)
}

fn can_be_kept(ty: &CqlType) -> Result<(), IndexOptionRefusal> {
    match ty {
        CqlType::Native(Native::Blob | Native::Duration | Native::Counter) => Err(IndexOptionRefusal::Type(ty.clone())),
        _ => Ok(()),
    }
}

fn vector(element: &CqlType, dimension: u32, given: &[(String, String)]) -> Result<(), IndexOptionRefusal> {
    let option = |name: &str| given.iter().find(|(option, _)| option == name).map(|(_, value)| value);
    if !matches!(element, CqlType::Native(Native::Float)) {
        return Err(IndexOptionRefusal::VectorElement);
    }
    let whole = |name: &str, what: &'static str, max: i32| match option(name) {
        None => Ok(()),
        Some(text) => match text.parse::<i32>() {
            Ok(number) if (1..=max).contains(&number) => Ok(()),
            Ok(number) => Err(IndexOptionRefusal::NumberRange { what, max, number }),
            Err(_) => Err(IndexOptionRefusal::NumberText {
                what,
                text: text.clone(),
            }),
        },
    };
    whole("maximum_node_connections", "Maximum number of connections", 512)?;
    whole("construction_beam_width", "Construction beam width", 3200)?;
    let similarity = option("similarity_function").map_or_else(|| "COSINE".to_owned(), |name| name.to_uppercase());
    if !["EUCLIDEAN", "DOT_PRODUCT", "COSINE"].contains(&similarity.as_str()) {
        return Err(IndexOptionRefusal::Similarity(similarity));
    }
    if let Some(optimize) = option("optimize_for").map(|name| name.to_uppercase())
        && !["LATENCY", "RECALL"].contains(&optimize.as_str())
    {
        return Err(IndexOptionRefusal::Optimize(optimize));
    }
    if dimension == 1 && similarity == "COSINE" {
        return Err(IndexOptionRefusal::CosineOfOne);
    }
    Ok(())
}

fn sasi(given: &[(String, String)], targets: &[(IndexTargetKind, &Column)]) -> Result<(), IndexOptionRefusal> {
    let (_, column) = single(targets).map_err(IndexOptionRefusal::SasiTargets)?;
    if column.ty.is_multi_cell() {
        return Err(IndexOptionRefusal::SasiMultiCell);
    }
    if column.kind == ColumnKind::PartitionKey {
        return Err(IndexOptionRefusal::SasiPartitionKey);
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
            return Err(IndexOptionRefusal::Analyzer(class.clone()));
        };
        if !is_text(&column.ty) && name != "NoOpAnalyzer" {
            return Err(IndexOptionRefusal::AnalyzerType {
                analyzer: name.to_owned(),
                ty: column.ty.clone(),
            });
        }
        if name == "NonTokenizingAnalyzer" {
            let (lower, upper) = (option("normalize_lowercase"), option("normalize_uppercase"));
            if option("case_sensitive").is_some() && (lower.is_some() || upper.is_some()) {
                return Err(IndexOptionRefusal::CaseTwice);
            }
            // Differs: Cassandra detects this too late, and the index stays.
            if lower.is_some() && upper.is_some() {
                return Err(IndexOptionRefusal::BothCases);
            }
        }
        if name == "DelimiterAnalyzer" && option("delimiter").is_some_and(|text| text.chars().count() != 1) {
            return Err(IndexOptionRefusal::Delimiter(
                option("delimiter").cloned().unwrap_or_default(),
            ));
        }
    }
    if let Some(mode) = option("mode") {
        match mode.to_lowercase().as_str() {
            "prefix" | "contains" => {}
            "sparse" if is_text(&column.ty) => {
                return Err(IndexOptionRefusal::SparseText);
            }
            "sparse" => {}
            _ => return Err(IndexOptionRefusal::Mode(mode.clone())),
        }
    }
    Ok(())
}
