//! How Cassandra writes texts and sets in messages.

use std::cmp::Ordering;

/// Most characters of a keyspace's name.
pub const KEYSPACE_NAME_CHARACTERS_MAX: usize = 48;
/// Most characters of a table's name.
pub const TABLE_NAME_CHARACTERS_MAX: usize = 222;

/// Whether a keyspace or table name has only valid characters (letters, digits and underscores); the length is not
/// checked.
#[must_use]
pub fn has_name_characters(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The text as a CQL string.
#[must_use]
pub fn string_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn spread(hash: i32) -> u32 {
    let hash = hash.cast_unsigned();
    hash ^ (hash >> 16)
}

/// The hash of a Java `ByteBuffer`.
#[must_use]
pub fn java_buffer_hash(bytes: &[u8]) -> i32 {
    bytes.iter().rev().fold(1i32, |hash, &byte| {
        hash.wrapping_mul(31).wrapping_add(i32::from(byte.cast_signed()))
    })
}

/// Sorts items into the iteration order of a Java `HashMap` filled in the given order. Some of Cassandra's messages
/// list items in that order.
pub fn java_hash_order<T>(things: &mut [T], hash: impl Fn(&T) -> i32) {
    let mut capacity = 16usize;
    while things.len() * 4 > capacity * 3 {
        capacity *= 2;
    }
    things.sort_by_key(|thing| spread(hash(thing)) as usize & (capacity - 1));
}

/// Sorts columns into the order in which Cassandra checks those of one statement. That order decides which error comes
/// first.
pub fn statement_order<T>(columns: &mut [T], name: impl Fn(&T) -> &str) {
    java_hash_order(columns, |column| java_buffer_hash(name(column).as_bytes()));
}

/// The order of columns of one kind: by name, names that start with a non-ASCII character first.
///
/// Cassandra compares the first bytes as if their top bit were a sign (`ColumnMetadata.comparisonOrder`). We do the
/// same, because `SELECT *` shows the order.
#[must_use]
pub fn compare_columns(a: &str, b: &str) -> Ordering {
    let first = |name: &str| name.as_bytes().first().map(|byte| byte ^ 0x80);
    first(a).cmp(&first(b)).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_begin_with_no_ascii_character_come_first() {
        let mut names = ["b", "", "a", "é", "ab", "ö", "a\u{e9}"];
        names.sort_by(|a, b| compare_columns(a, b));
        assert_eq!(names, ["", "é", "ö", "a", "ab", "a\u{e9}", "b"]);
    }

    #[test]
    fn hash_order_is_javas() {
        let mut names = ["c1", "l", "s", "v", "a", "b"];
        java_hash_order(&mut names, |name| java_buffer_hash(name.as_bytes()));
        assert_eq!(names, ["a", "b", "s", "c1", "v", "l"]);
    }
}
