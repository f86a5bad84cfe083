//! SELECT.

use crate::ast::{Direction, GroupBy, Name, OrderBy, QualifiedName, Relation, Select, Selection, Statement, Term};
use crate::input::{Input, Parsed, enter, expect, expect_all, given, separated};
use crate::keyword::Kind;
use crate::name::{column_name, table_name};
use crate::relation::where_clause;
use crate::selector::{selectors, unaliased_selector};
use crate::term::{int_value, term};

/// `select = "SELECT" [ "JSON" ] select_clause "FROM" table_name [ "WHERE" where_clause ] group_by order_by per_partition_limit
/// limit [ "ALLOW" "FILTERING" ]`
pub(super) fn select(input: Input<'_>) -> Parsed<'_, Statement> {
    enter("select");
    let (input, (json, (distinct, selection))) = json_clause(input.skip(1))?;
    let (input, ()) = expect(input, Kind::From)?;
    let (input, table): (_, QualifiedName) = table_name(input)?;
    let (input, relations) = optional_where(input)?;
    let (input, group_by) = group_by(input)?;
    let (input, order_by) = order_by(input)?;
    let (input, per_partition_limit) = per_partition_limit(input)?;
    let (input, limit) = limit(input)?;
    let (input, allow_filtering) = given(input, Kind::Allow);
    let (input, ()) = if allow_filtering {
        expect(input, Kind::Filtering)?
    } else {
        (input, ())
    };
    let select = Select {
        json,
        distinct,
        selection,
        table,
        relations,
        group_by,
        order_by,
        per_partition_limit,
        limit,
        allow_filtering,
    };
    Ok((input, Statement::Select(select)))
}

type Clause = (bool, Selection);

/// JSON is a column's name too: it is the keyword only where a whole clause follows it.
fn json_clause(input: Input<'_>) -> Parsed<'_, (bool, Clause)> {
    if input.is(Kind::Json) {
        let reported = input.reported();
        if let Ok((input, clause)) = select_clause(input.skip(1)) {
            return Ok((input, (true, clause)));
        }
        input.take_back(reported);
    }
    super::map(select_clause(input), |clause| (false, clause))
}

/// `select_clause = [ "DISTINCT" ] selectors`; DISTINCT is a column's name too, as JSON is.
fn select_clause(input: Input<'_>) -> Parsed<'_, Clause> {
    enter("select_clause");
    if input.is(Kind::Distinct) {
        let reported = input.reported();
        if let Ok((input, selection)) = selectors(input.skip(1)) {
            return Ok((input, (true, selection)));
        }
        input.take_back(reported);
    }
    super::map(selectors(input), |selection| (false, selection))
}

/// `WHERE`, if it is given.
pub(super) fn optional_where(input: Input<'_>) -> Parsed<'_, Vec<Relation>> {
    let (input, restricted) = given(input, Kind::Where);
    if restricted {
        where_clause(input)
    } else {
        Ok((input, Vec::new()))
    }
}

/// `group_by = [ "GROUP" "BY" unaliased_selector { "," unaliased_selector } ]`
fn group_by(input: Input<'_>) -> Parsed<'_, Vec<GroupBy>> {
    enter("group_by");
    let (input, grouped) = given(input, Kind::Group);
    if !grouped {
        return Ok((input, Vec::new()));
    }
    let (input, ()) = expect(input, Kind::By)?;
    separated(input, Kind::Comma, |input| {
        super::map(unaliased_selector(input), GroupBy)
    })
}

/// `order_by = [ "ORDER" "BY" ordering { "," ordering } ]`
fn order_by(input: Input<'_>) -> Parsed<'_, Vec<OrderBy>> {
    enter("order_by");
    let (input, ordered) = given(input, Kind::Order);
    if !ordered {
        return Ok((input, Vec::new()));
    }
    let (input, ()) = expect(input, Kind::By)?;
    separated(input, Kind::Comma, ordering)
}

/// `ordering = column_name [ "ANN" "OF" term ] [ "ASC" | "DESC" ]`
fn ordering(input: Input<'_>) -> Parsed<'_, OrderBy> {
    enter("ordering");
    let (input, column): (_, Name) = column_name(input)?;
    let (input, nearest) = given(input, Kind::Ann);
    let (input, to) = if nearest {
        let (input, ()) = expect(input, Kind::Of)?;
        super::map(term(input), Some)?
    } else {
        (input, None)
    };
    let (input, direction) = direction(input);
    let ordering = match to {
        Some(to) => OrderBy::Ann(column, to, direction),
        None => OrderBy::Column(column, direction),
    };
    Ok((input, ordering))
}

/// ASC, which is the default, or DESC.
fn direction(input: Input<'_>) -> (Input<'_>, Direction) {
    match input.kind() {
        Kind::Asc => (input.skip(1), Direction::Ascending),
        Kind::Desc => (input.skip(1), Direction::Descending),
        _ => (input, Direction::Ascending),
    }
}

/// `per_partition_limit = [ "PER" "PARTITION" "LIMIT" int_value ]`
fn per_partition_limit(input: Input<'_>) -> Parsed<'_, Option<Term>> {
    enter("per_partition_limit");
    let (input, limited) = given(input, Kind::Per);
    if !limited {
        return Ok((input, None));
    }
    let (input, ()) = expect_all(input, &[Kind::Partition, Kind::Limit])?;
    super::map(int_value(input), Some)
}

/// `limit = [ "LIMIT" int_value ]`
fn limit(input: Input<'_>) -> Parsed<'_, Option<Term>> {
    enter("limit");
    let (input, limited) = given(input, Kind::Limit);
    if limited {
        super::map(int_value(input), Some)
    } else {
        Ok((input, None))
    }
}
