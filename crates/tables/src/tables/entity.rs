//! Entities: two keys, a version and properties; their ETags, names, sizes and limits.

use std::cmp::Ordering;

use super::edm::{Edm, Ticks, compare_utf16, utf16_units};
use super::fault::Fault;

/// Units of UTF-16 of a key. Source: Designing a scalable partitioning strategy (1,024 characters).
pub const KEY_UNITS_MAX: usize = 1_024;

/// Properties besides the two keys and the Timestamp. Source: Understanding the Table service data model.
pub const PROPERTIES_MAX: usize = 252;

/// Characters of a property's name. Source: as above.
pub const NAME_UNITS_MAX: usize = 255;

/// Bytes of a value: 64 KiB. Source: as above.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;

/// Bytes of an entity as [`Entity::counted_bytes`] counts them: 1 MiB. Source: as above.
pub const ENTITY_BYTES_MAX: usize = 1024 * 1024;

/// The names of the three properties that every entity has.
pub const PARTITION_KEY: &str = "PartitionKey";
/// See [`PARTITION_KEY`].
pub const ROW_KEY: &str = "RowKey";
/// See [`PARTITION_KEY`].
pub const TIMESTAMP: &str = "Timestamp";

/// One entity.
#[derive(Clone, Debug, PartialEq)]
pub struct Entity {
    /// The key of its partition, which may be empty.
    pub partition_key: String,
    /// Its key in the partition, which may be empty.
    pub row_key: String,
    /// When it last changed, in microseconds since 1970. Zero in an entity that is to be written.
    pub version_micros: i64,
    /// Names and values, by name.
    pub properties: Vec<(String, Edm)>,
}

impl Entity {
    /// An entity without properties.
    #[must_use]
    pub const fn new(partition_key: String, row_key: String) -> Self {
        Self {
            partition_key,
            row_key,
            version_micros: 0,
            properties: Vec::new(),
        }
    }

    /// Its ETag.
    #[must_use]
    pub fn etag(&self) -> String {
        etag(self.version_micros)
    }

    /// Its Timestamp.
    #[must_use]
    pub fn timestamp(&self) -> Ticks {
        Ticks::of_unix_micros(self.version_micros)
    }

    /// The value of a property; `None` means that the entity lacks it.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&Edm> {
        let found = self.properties.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value)
    }

    /// Bytes that Azure counts for it (Understanding the Table service data model).
    #[must_use]
    pub fn counted_bytes(&self) -> usize {
        let keys = 2 * (utf16_units(&self.partition_key) + utf16_units(&self.row_key));
        let of_property = |(name, value): &(String, Edm)| 8 + 2 * utf16_units(name) + value.counted_bytes();
        4 + keys + self.properties.iter().map(of_property).sum::<usize>()
    }

    /// Checks all limits of an entity that is to be written.
    ///
    /// # Errors
    /// The first limit that it breaks: keys, count, names, values, size.
    pub fn check(&self) -> Result<(), Fault> {
        check_key(&self.partition_key)?;
        check_key(&self.row_key)?;
        if self.properties.len() > PROPERTIES_MAX {
            return Err(Fault::TooManyProperties);
        }
        for (name, value) in &self.properties {
            check_name(name)?;
            let is_large = match value {
                Edm::String(text) => 2 * utf16_units(text) > VALUE_BYTES_MAX,
                Edm::Binary(bytes) => bytes.len() > VALUE_BYTES_MAX,
                _ => false,
            };
            if is_large {
                return Err(Fault::PropertyValueTooLarge);
            }
        }
        if self.counted_bytes() > ENTITY_BYTES_MAX {
            return Err(Fault::EntityTooLarge);
        }
        Ok(())
    }
}

/// Checks a key of an entity that is to be written.
///
/// # Errors
/// It is too long, or has a character that is forbidden.
pub fn check_key(key: &str) -> Result<(), Fault> {
    if utf16_units(key) > KEY_UNITS_MAX {
        return Err(Fault::KeyValueTooLarge);
    }
    let is_forbidden = |character: char| matches!(character, '/' | '\\' | '#' | '?') || character.is_control();
    if key.chars().any(is_forbidden) {
        return Err(Fault::OutOfRangeInput);
    }
    Ok(())
}

/// Checks a property's name: a C# identifier of at most [`NAME_UNITS_MAX`] characters.
///
/// # Errors
/// It is none.
pub fn check_name(name: &str) -> Result<(), Fault> {
    if utf16_units(name) > NAME_UNITS_MAX {
        return Err(Fault::PropertyNameTooLong);
    }
    let mut characters = name.chars();
    let begins = characters
        .next()
        .is_some_and(|first| first == '_' || first.is_alphabetic());
    // Marks that join to a letter count as alphanumeric only in part; the general ranges of combining marks are allowed besides.
    let goes_on = |next: char| {
        next == '_' || next.is_alphanumeric() || matches!(next, '\u{300}'..='\u{36F}' | '\u{203F}' | '\u{2040}')
    };
    if begins && characters.all(goes_on) {
        Ok(())
    } else {
        Err(Fault::PropertyNameInvalid)
    }
}

/// Whether a property may have a name: that of no key, and a well-formed one.
#[must_use]
pub fn is_property_name(name: &str) -> bool {
    ![PARTITION_KEY, ROW_KEY, TIMESTAMP].contains(&name) && check_name(name).is_ok()
}

/// Checks a table's name: a letter, then letters and digits, 3 to 63 of them together, not `tables`.
///
/// # Errors
/// It is none.
pub fn check_table_name(name: &str) -> Result<(), Fault> {
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic());
    if !begins && !name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Fault::InvalidResourceName);
    }
    if !(3..=63).contains(&name.len()) {
        return Err(Fault::NameLengthOutOfRange);
    }
    if name.eq_ignore_ascii_case("tables") {
        return Err(Fault::InvalidResourceName);
    }
    Ok(())
}

/// The ETag of a version: `W/"datetime'2020-07-24T14%3A34%3A48.4767Z'"`.
#[must_use]
pub fn etag(version_micros: i64) -> String {
    let moment = Ticks::of_unix_micros(version_micros).to_string();
    format!("W/\"datetime'{}'\"", moment.replace(':', "%3A"))
}

/// The version that an ETag names. An ETag of another form in quotes names no version of ours: `Ok(None)`.
///
/// # Errors
/// It is no ETag, or several.
pub fn parse_etag(text: &str) -> Result<Option<i64>, Fault> {
    let invalid = || Fault::EtagInvalid { etag: text.to_owned() };
    let quoted = text.trim();
    let quoted = quoted.strip_prefix("W/").unwrap_or(quoted);
    let inside = quoted
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .ok_or_else(invalid)?;
    if inside.contains('"') {
        return Err(invalid());
    }
    let moment = inside
        .strip_prefix("datetime'")
        .and_then(|rest| rest.strip_suffix('\''));
    let moment = moment.map(|moment| moment.replace("%3A", ":").replace("%3a", ":"));
    let ticks = moment.and_then(|moment| Ticks::parse(&moment));
    // Our versions are whole microseconds: a tag between two of them is none of ours.
    let ours = ticks.filter(|ticks| ticks.get() % 10 == 0);
    Ok(ours.map(Ticks::unix_micros))
}

/// Keys that a shared access signature allows, both ends among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyBounds {
    /// The first partition key; `None` means from the beginning.
    pub partition_from: Option<String>,
    /// The first row key in the first partition; `None` means from the beginning.
    pub row_from: Option<String>,
    /// The last partition key; `None` means to the end.
    pub partition_to: Option<String>,
    /// The last row key in the last partition; `None` means to the end.
    pub row_to: Option<String>,
}

impl KeyBounds {
    /// Whether an entity with these keys lies inside.
    #[must_use]
    pub fn contains(&self, partition_key: &str, row_key: &str) -> bool {
        let after = |partition: &Option<String>, row: &Option<String>, side: Ordering| {
            let Some(partition) = partition else { return true };
            match compare_utf16(partition_key, partition) {
                Ordering::Equal => row.as_ref().is_none_or(|row| compare_utf16(row_key, row) != side),
                other => other != side,
            }
        };
        after(&self.partition_from, &self.row_from, Ordering::Less)
            && after(&self.partition_to, &self.row_to, Ordering::Greater)
    }
}
