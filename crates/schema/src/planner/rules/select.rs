//! SELECT in the profile `cosmos`.

use grammar::ast::{Operator, OrderBy, Relation, RelationTarget, RelationValue, Select, Selection, Selector, Term};

use super::{CLUSTERING_INDEX_CLASS, Refusal};
use crate::planner::ast::Name;
use crate::profile::Strict;
use crate::schema::{ColumnKind, Table};

const AGGREGATES: &[&str] = &["avg", "count", "max", "min", "sum"];

/// JSON functions, which Cosmos lacks although it has SELECT JSON and INSERT JSON.
const JSON_FUNCTIONS: &[&str] = &["from_json", "fromjson", "to_json", "tojson"];

/// The functions in Cosmos's documented list, in lower case, besides those that convert values to and from blobs.
const LISTED: &[&str] = &[
    "avg",
    "count",
    "dateof",
    "max",
    "min",
    "mintimeuuid",
    "now",
    "sum",
    "todate",
    "token",
    "totimestamp",
    "tounixtimestamp",
    "unixtimestampof",
];

/// Refuses features that Cosmos lacks, and names the count of rows as Cosmos does.
pub(super) fn translate(select: &mut Select, strict: &Strict) -> Result<(), Refusal> {
    if select.distinct {
        return Err(Refusal::Unsupported("SELECT DISTINCT"));
    }
    if strict.clauses {
        if !select.group_by.is_empty() {
            return Err(Refusal::Unsupported("GROUP BY"));
        }
        if select.per_partition_limit.is_some() {
            return Err(Refusal::Unsupported("PER PARTITION LIMIT"));
        }
        if select
            .relations
            .iter()
            .any(|relation| relation.operator == Operator::Like)
        {
            return Err(Refusal::Unsupported("LIKE"));
        }
    }
    relations(&select.relations, strict)?;
    let Selection::Selectors(selectors) = &mut select.selection else {
        return Ok(());
    };
    for selected in selectors {
        selector(&selected.selector, strict)?;
        if let (Selector::CountRows(what), None) = (&selected.selector, &selected.alias) {
            // Cassandra's name is `count`; clients of Cosmos expect this one.
            selected.alias = Some(Name(format!("system.count({what})")));
        }
    }
    Ok(())
}

/// Checks the relations of a WHERE clause.
pub(super) fn relations(relations: &[Relation], strict: &Strict) -> Result<(), Refusal> {
    for relation in relations {
        let of_token = matches!(relation.target, RelationTarget::Token(_));
        let values = match &relation.value {
            RelationValue::Term(term) => std::slice::from_ref(term),
            RelationValue::Terms(terms) => terms.as_slice(),
            RelationValue::None => &[],
        };
        for value in values {
            if of_token && matches!(value, Term::Function { name, .. } if name.name.as_str() == "token") {
                return Err(Refusal::Unsupported("token() on the right side of a comparison"));
            }
            term(value, strict)?;
        }
    }
    Ok(())
}

fn function(name: &str, strict: &Strict) -> Result<(), Refusal> {
    let name = name.to_lowercase();
    if JSON_FUNCTIONS.contains(&name.as_str()) {
        return Err(Refusal::Function(name));
    }
    let converts_blobs = name.ends_with("asblob") || name.starts_with("blobas");
    if strict.functions && !converts_blobs && !LISTED.contains(&name.as_str()) {
        return Err(Refusal::Function(name));
    }
    Ok(())
}

/// Checks the functions in a term.
pub(super) fn term(value: &Term, strict: &Strict) -> Result<(), Refusal> {
    match value {
        Term::Literal(_) | Term::BindMarker { .. } => Ok(()),
        Term::List(parts) | Term::Set(parts) | Term::Tuple(parts) => {
            parts.iter().try_for_each(|part| term(part, strict))
        }
        Term::Map(pairs) => pairs.iter().try_for_each(|(key, value)| {
            term(key, strict)?;
            term(value, strict)
        }),
        Term::Udt(fields) => fields.iter().try_for_each(|(_, value)| term(value, strict)),
        Term::Function { name, arguments, .. } => {
            function(name.name.as_str(), strict)?;
            arguments.iter().try_for_each(|argument| term(argument, strict))
        }
        Term::TypeHint { term: of, .. } | Term::Negate { of, .. } | Term::Cast { term: of, .. } => term(of, strict),
        Term::Arithmetic { left, right, .. } => {
            term(left, strict)?;
            term(right, strict)
        }
    }
}

fn selector(selected: &Selector, strict: &Strict) -> Result<(), Refusal> {
    match selected {
        Selector::Term(of) => term(of, strict),
        Selector::Function { name, arguments, .. } => {
            let name = name.name.as_str();
            function(name, strict)?;
            if AGGREGATES.contains(&name)
                && arguments
                    .iter()
                    .any(|argument| matches!(argument, Selector::Cast { .. }))
            {
                return Err(Refusal::Unsupported("CAST within an aggregate"));
            }
            arguments.iter().try_for_each(|argument| selector(argument, strict))
        }
        other => parts(other).into_iter().try_for_each(|part| selector(part, strict)),
    }
}

/// The parts of a selector that is no function.
fn parts(selected: &Selector) -> Vec<&Selector> {
    match selected {
        Selector::Column(_) | Selector::Term(_) | Selector::CountRows(_) => Vec::new(),
        Selector::Function { arguments: parts, .. }
        | Selector::Tuple(parts)
        | Selector::List(parts)
        | Selector::Set(parts) => parts.iter().collect(),
        Selector::Metadata { of, .. }
        | Selector::Field { of, .. }
        | Selector::Element { of, .. }
        | Selector::Slice { of, .. }
        | Selector::Cast { selector: of, .. }
        | Selector::TypeHint { selector: of, .. }
        | Selector::Negate { of, .. } => vec![of],
        Selector::Arithmetic { left, right, .. } => vec![left, right],
        Selector::Map(pairs) => pairs.iter().flat_map(|(key, value)| [key, value]).collect(),
    }
}

/// Checks a SELECT of this table.
pub(super) fn check(select: &Select, table: &Table) -> Result<(), Refusal> {
    if let Selection::Selectors(selectors) = &select.selection {
        for selected in selectors {
            aggregates_of_keys(&selected.selector, table)?;
        }
    }
    order_by(select, table)
}

fn aggregates_of_keys(selected: &Selector, table: &Table) -> Result<(), Refusal> {
    if let Selector::Function { name, arguments, .. } = selected
        && AGGREGATES.contains(&name.name.as_str())
    {
        for argument in arguments {
            if let Selector::Column(column) = argument
                && let Some((_, column)) = table.column(column.as_str())
                && matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Clustering)
            {
                return Err(Refusal::AggregateOfKey {
                    function: name.name.as_str().to_owned(),
                    column: column.name.clone(),
                });
            }
        }
    }
    parts(selected)
        .into_iter()
        .try_for_each(|part| aggregates_of_keys(part, table))
}

/// Refuses ORDER BY beside both an IN and a range, unless the table has the index that sorts such rows.
fn order_by(select: &Select, table: &Table) -> Result<(), Refusal> {
    let sorts = select.order_by.iter().any(|order| matches!(order, OrderBy::Column(..)));
    let has = |operators: &[Operator]| {
        select
            .relations
            .iter()
            .any(|relation| operators.contains(&relation.operator))
    };
    let ranges = [Operator::Lt, Operator::Lte, Operator::Gt, Operator::Gte];
    let is_indexed = || {
        let class = |index: &crate::schema::Index| index.options.get("class_name").cloned();
        table
            .indexes
            .values()
            .any(|index| class(index).as_deref() == Some(CLUSTERING_INDEX_CLASS))
    };
    if sorts && has(&[Operator::In]) && has(&ranges) && !is_indexed() {
        return Err(Refusal::OrderWithoutIndex);
    }
    Ok(())
}
