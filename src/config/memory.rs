//! `memory`: one amount for the whole server, of which caches, memtables, statements and answers take their parts.
//!
//! ```text
//! 1/8  row cache            3/16  answers, buffers, requests (and a quarter more while large ones are parsed)
//! 1/8  block cache          1/8   bodies of requests in work
//! 1/16 key filter           1/16  prepared statements
//! 1/32 a memtable, of which a store has up to four at a time
//! ```
//! An eighth is left for the program, the schema and free pages of the allocator. A setting of one part that was given a
//! value keeps it.

/// Below it the parts are too small to work with.
const BYTES_LEAST: u64 = 64_000_000;

/// Settings that take a part, in sixteenths.
const PARTS: [(&str, u64); 5] = [
    ("row-cache-bytes-max", 2),
    ("block-cache-bytes-max", 2),
    ("key-filter-bytes-max", 1),
    ("connections-memory-bytes-max", 3),
    ("in-flight-bytes-total-max", 2),
];

/// Why a text is not an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoAmount {
    #[error("expected a size such as 512MB, 512MiB, 2GB or 2GiB")]
    Form,
    #[error("expected at least 64MB")]
    TooSmall,
}

/// The amount in bytes.
pub(super) fn amount(text: &str) -> Result<u64, NoAmount> {
    let bytes = parse(text).ok_or(NoAmount::Form)?;
    if bytes < BYTES_LEAST {
        return Err(NoAmount::TooSmall);
    }
    Ok(bytes)
}

/// The defaults of settings by the amount in bytes.
pub(super) fn parts(bytes: u64) -> [(&'static str, u64); 5] {
    PARTS.map(|(name, sixteenths)| (name, bytes / 16 * sixteenths))
}

/// Most bytes of a memtable.
pub(super) const fn memtable_bytes_max(bytes: u64) -> u64 {
    bytes / 32
}

/// Most bytes of prepared statements.
pub(super) fn prepared_bytes_max(bytes: u64) -> usize {
    usize::try_from(bytes / 16).unwrap_or(usize::MAX)
}

/// A number of bytes, or of a unit: decimal ones end in `B`, those of 1024 in `iB`.
fn parse(text: &str) -> Option<u64> {
    let digits = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    let unit: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::{ConfigError, Origin, Values};

    fn gathered(given: &[(&str, &str)]) -> Result<Values, ConfigError> {
        let given: BTreeMap<String, Vec<String>> = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), vec![(*value).to_owned()]))
            .collect();
        Values::gather(None, &given, |_| None)
    }

    #[test]
    fn sizes_are_read_with_their_units() {
        for (text, bytes) in [
            ("64000000", 64_000_000),
            ("512MB", 512_000_000),
            ("512 mib", 512 << 20),
            ("2G", 2 << 30),
            ("1gb", 1_000_000_000),
        ] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
        for text in ["", "MB", "-1MB", "1.5GB", "1TB", "99999999999GiB"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn parts_are_defaults_and_fit_together() {
        let values = gathered(&[("memory", "512MB"), ("row-cache-bytes-max", "1000")]).unwrap();
        assert_eq!(values.text("row-cache-bytes-max"), Some("1000"));
        assert_eq!(values.text("block-cache-bytes-max"), Some("64000000"));
        assert_eq!(values.origin("block-cache-bytes-max"), Some(&Origin::Memory));
        assert_eq!(values.memory().unwrap().map(memtable_bytes_max), Some(16_000_000));
        let sixteenths: u64 = PARTS.iter().map(|(_, part)| part).sum();
        // Prepared statements, four memtables, and large requests while they are parsed.
        let others = 1 + 2 + 1;
        assert!(sixteenths + others <= 14, "{sixteenths}");
    }

    #[test]
    fn no_amount_changes_nothing_and_a_small_one_is_refused() {
        assert_eq!(gathered(&[]).unwrap().memory().unwrap(), None);
        assert_eq!(amount("10MB"), Err(NoAmount::TooSmall));
        assert_eq!(amount("much"), Err(NoAmount::Form));
        assert!(matches!(
            gathered(&[("memory", "10MB")]),
            Err(ConfigError::Value { name: "memory", .. })
        ));
        assert!(matches!(
            gathered(&[("memory", "much")]),
            Err(ConfigError::Value { name: "memory", .. })
        ));
    }
}
