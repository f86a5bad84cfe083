//! Guesses about a column's values from its type and name.

use helenus_schema::schema::Column;
use helenus_types::types::{CqlType, Native};

/// The words of a name: `is_active`, `isActive` and `IS-ACTIVE` have two.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut before_lower = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && before_lower) {
            words.push(String::new());
        }
        before_lower = letter.is_lowercase();
        if let (true, Some(word)) = (letter.is_alphanumeric(), words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

const FEW: &[&str] = &[
    "active",
    "archived",
    "category",
    "class",
    "color",
    "colour",
    "continent",
    "country",
    "currency",
    "deleted",
    "enabled",
    "env",
    "environment",
    "flag",
    "gender",
    "kind",
    "lang",
    "language",
    "level",
    "locale",
    "mode",
    "phase",
    "plan",
    "platform",
    "priority",
    "processed",
    "published",
    "rating",
    "region",
    "role",
    "severity",
    "sex",
    "size",
    "stage",
    "state",
    "status",
    "tier",
    "type",
    "visibility",
];

const BUCKETS: &[&str] = &[
    "bucket", "date", "day", "days", "hour", "minute", "month", "period", "quarter", "shard", "slot", "week", "window",
    "year", "yyyymm", "yyyymmdd", "epoch",
];

const TIMES: &[&str] = &[
    "at",
    "created",
    "date",
    "datetime",
    "happened",
    "inserted",
    "modified",
    "occurred",
    "on",
    "received",
    "sent",
    "time",
    "timestamp",
    "ts",
    "updated",
    "when",
];

const SEQUENCES: &[&str] = &[
    "counter", "index", "nr", "no", "number", "offset", "position", "seq", "sequence", "serial",
];

const CHANGING: &[&str] = &[
    "balance",
    "count",
    "counter",
    "current",
    "last",
    "latest",
    "modified",
    "online",
    "progress",
    "quantity",
    "remaining",
    "score",
    "seen",
    "stage",
    "state",
    "status",
    "stock",
    "updated",
    "version",
    "views",
];

const GROWING: &[&str] = &[
    "activity",
    "audit",
    "changes",
    "chat",
    "comments",
    "entries",
    "events",
    "feed",
    "followers",
    "following",
    "friends",
    "history",
    "items",
    "likes",
    "log",
    "logs",
    "measurements",
    "members",
    "messages",
    "notifications",
    "orders",
    "readings",
    "samples",
    "transactions",
    "users",
    "views",
    "visits",
];

fn native(column: &Column) -> Option<Native> {
    match column.ty.unfrozen() {
        CqlType::Native(native) => Some(*native),
        _ => None,
    }
}

fn named(column: &Column, of: &[&str]) -> bool {
    let words = words(&column.name);
    // An identifier is not one of few values. `category_id` and `status_id` may be, so they are unknown.
    let identifies = words
        .last()
        .is_some_and(|word| matches!(word.as_str(), "id" | "uuid" | "key" | "hash" | "name"));
    !identifies && words.iter().any(|word| of.contains(&word.as_str()))
}

fn is_text(column: &Column) -> bool {
    matches!(native(column), Some(Native::Text | Native::Ascii))
}

fn is_integer(column: &Column) -> bool {
    matches!(
        native(column),
        Some(Native::Int | Native::Bigint | Native::Smallint | Native::Varint)
    )
}

/// The most values that the type allows, if few.
pub(super) fn values_max(column: &Column) -> Option<u64> {
    match native(column)? {
        Native::Boolean => Some(2),
        Native::Tinyint => Some(256),
        _ => None,
    }
}

/// Whether the name suggests few values.
pub(super) fn few(column: &Column) -> bool {
    (is_text(column) || is_integer(column)) && named(column, FEW) || {
        let first = words(&column.name).into_iter().next().unwrap_or_default();
        is_integer(column) && matches!(first.as_str(), "is" | "has")
    }
}

/// Whether the column is a bucket of time (or a hash) that bounds a partition.
pub(super) fn is_bucket(column: &Column) -> bool {
    native(column) == Some(Native::Date) || ((is_text(column) || is_integer(column)) && named(column, BUCKETS))
}

/// Whether the column is a bucket of time: the current bucket takes all writes.
pub(super) fn is_time_bucket(column: &Column) -> bool {
    is_bucket(column) && !named(column, &["bucket", "shard", "slot"])
}

/// Whether the value grows with time, row after row.
pub(super) fn is_time(column: &Column) -> bool {
    match native(column) {
        Some(Native::Timeuuid | Native::Timestamp | Native::Date) => true,
        Some(Native::Bigint | Native::Varint) => named(column, TIMES) || named(column, SEQUENCES),
        Some(Native::Int | Native::Text | Native::Ascii) => {
            named(column, &["timestamp", "ts", "datetime", "seq", "sequence", "offset"])
        }
        _ => false,
    }
}

/// Whether the values are consecutive numbers.
pub(super) fn is_sequence(column: &Column) -> bool {
    is_integer(column) && named(column, SEQUENCES)
}

/// Whether the value probably changes often.
pub(super) fn changes(column: &Column) -> bool {
    native(column) == Some(Native::Counter) || named(column, CHANGING)
}

/// Whether a collection of this name probably grows over time.
pub(super) fn grows(column: &Column) -> bool {
    named(column, GROWING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_schema::schema::ColumnKind;

    fn column(name: &str, ty: Native) -> Column {
        Column {
            id: 0,
            name: name.to_owned(),
            ty: CqlType::Native(ty),
            kind: ColumnKind::PartitionKey,
            position: 0,
            descending: false,
            by_utf16: false,
            mask: None,
        }
    }

    #[test]
    fn names_tell() {
        assert_eq!(words("isActive_2"), ["is", "active", "2"]);
        assert!(few(&column("order_status", Native::Text)) && few(&column("countryCode", Native::Text)));
        assert!(!few(&column("category_id", Native::Text)) && !few(&column("status", Native::Uuid)));
        assert!(!few(&column("estate", Native::Text)));
        assert!(is_time_bucket(&column("day", Native::Text)) && is_time_bucket(&column("d", Native::Date)));
        assert!(is_bucket(&column("shard", Native::Int)) && !is_time_bucket(&column("shard", Native::Int)));
        assert!(is_time(&column("t", Native::Timeuuid)) && is_time(&column("created_at", Native::Bigint)));
        assert!(!is_time(&column("amount", Native::Bigint)));
    }
}
