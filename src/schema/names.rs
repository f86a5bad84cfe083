//! How texts and sets are written where people read them, as Cassandra writes them.

/// The text as a CQL string.
#[must_use]
pub fn string_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn spread(hash: i32) -> u32 {
    let hash = hash.cast_unsigned();
    hash ^ (hash >> 16)
}

/// The hash of a Java string.
#[must_use]
pub fn java_string_hash(text: &str) -> i32 {
    text.encode_utf16()
        .fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

/// The hash of a Java `ByteBuffer`.
#[must_use]
pub fn java_buffer_hash(bytes: &[u8]) -> i32 {
    bytes.iter().rev().fold(1i32, |hash, &byte| {
        hash.wrapping_mul(31).wrapping_add(i32::from(byte.cast_signed()))
    })
}

/// Puts things into the order in which a Java `HashMap`, into which they went in the given order, yields them. Some of
/// Cassandra's messages list things in that order.
pub fn java_hash_order<T>(things: &mut [T], hash: impl Fn(&T) -> i32) {
    let mut capacity = 16usize;
    while things.len() * 4 > capacity * 3 {
        capacity *= 2;
    }
    things.sort_by_key(|thing| spread(hash(thing)) as usize & (capacity - 1));
}

/// `a, b`, in the order of a Java `HashSet` of strings.
#[must_use]
pub fn java_joined(names: &[&str]) -> String {
    let mut names = names.to_vec();
    java_hash_order(&mut names, |name| java_string_hash(name));
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_order_is_javas() {
        let mut names = ["c1", "l", "s", "v", "a", "b"];
        java_hash_order(&mut names, |name| java_buffer_hash(name.as_bytes()));
        assert_eq!(names, ["a", "b", "s", "c1", "v", "l"]);
    }
}
