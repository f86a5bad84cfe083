//! Building blocks of printed columns and lines: a row of JSON, and numbers in readable units.

use serde_json::Value;

/// Characters of a key that a table prints.
const KEY_CHARACTERS_MAX: usize = 40;

/// A row of the admin port's JSON. A name that it lacks, because another version served it, is empty or zero.
pub(in crate::views) struct Row<'a>(pub(in crate::views) &'a Value);

impl Row<'_> {
    pub(in crate::views) fn get(&self, path: &str) -> &Value {
        path.split('.')
            .fold(self.0, |value, name| value.get(name).unwrap_or(&Value::Null))
    }

    /// As text; the elements of a list separated by commas.
    pub(in crate::views) fn text(&self, path: &str) -> String {
        match self.get(path) {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            Value::Array(all) => {
                let texts: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
                texts.join(", ")
            }
            other => other.to_string(),
        }
    }

    pub(in crate::views) fn count(&self, path: &str) -> u64 {
        self.get(path).as_u64().unwrap_or_default()
    }

    pub(in crate::views) fn float(&self, path: &str) -> f64 {
        self.get(path).as_f64().unwrap_or_default()
    }

    pub(in crate::views) fn is_true(&self, path: &str) -> bool {
        self.get(path).as_bool().unwrap_or_default()
    }

    /// Its text; `None` for null.
    pub(in crate::views) fn some(&self, path: &str) -> Option<String> {
        (!self.get(path).is_null()).then(|| self.text(path))
    }

    /// `keyspace.table`.
    pub(in crate::views) fn table(&self) -> String {
        format!("{}.{}", self.text("keyspace"), self.text("table"))
    }

    /// The partition key, truncated if long.
    pub(in crate::views) fn key(&self) -> String {
        let key = self.text("partition_key");
        match key.char_indices().nth(KEY_CHARACTERS_MAX) {
            Some((end, _)) => format!("{}…", key.get(..end).unwrap_or_default()),
            None => key,
        }
    }
}

/// A line above the tables: its name and its text. `None` means that the line is omitted.
pub(in crate::views) struct Line(
    pub(in crate::views) &'static str,
    pub(in crate::views) fn(&Row<'_>) -> Option<String>,
);

/// A column of a printed table.
pub(in crate::views) struct Printed {
    pub(in crate::views) name: &'static str,
    pub(in crate::views) is_left: bool,
    pub(in crate::views) show: fn(&Row<'_>) -> String,
}

impl Printed {
    /// A left-aligned text column.
    pub(in crate::views) const fn left(name: &'static str, show: fn(&Row<'_>) -> String) -> Self {
        Self {
            name,
            is_left: true,
            show,
        }
    }

    /// A right-aligned number column.
    pub(in crate::views) const fn right(name: &'static str, show: fn(&Row<'_>) -> String) -> Self {
        Self {
            name,
            is_left: false,
            show,
        }
    }
}

pub(in crate::views) fn counted(count: u64, of: &str) -> String {
    format!("{count} {of}{}", if count == 1 { "" } else { "s" })
}

/// Microseconds in a readable unit.
pub(in crate::views) fn time(micros: u64) -> String {
    match micros {
        0..1000 => format!("{micros} µs"),
        1000..1_000_000 => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        _ => format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
}

/// Bytes in a readable unit.
pub(in crate::views) fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let Some(unit) = (bytes.checked_ilog2().unwrap_or(0) / 10).checked_sub(1) else {
        return format!("{bytes} B");
    };
    let unit = unit.min(3);
    let tenths = (bytes >> (10 * unit)) * 10 / 1024;
    let name = units.get(unit as usize).copied().unwrap_or_default();
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

/// Seconds, as days, hours, minutes.
pub(in crate::views) fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_suit() {
        let sizes = [0, 1023, 1024, 1536, 5 << 20, (1 << 30) - 1, 3 << 40, u64::MAX].map(size);
        assert_eq!(
            sizes,
            [
                "0 B",
                "1023 B",
                "1.0 KiB",
                "1.5 KiB",
                "5.0 MiB",
                "1023.9 MiB",
                "3.0 TiB",
                "16777215.9 TiB"
            ]
        );
        let times = [0, 999, 1000, 12_345, 2_500_000].map(time);
        assert_eq!(times, ["0 µs", "999 µs", "1.0 ms", "12.3 ms", "2.5 s"]);
        let durations = [5, 65, 3_700, 90_000].map(duration);
        assert_eq!(durations, ["5 s", "1 min 5 s", "1 h 1 min", "1 d 1 h"]);
    }
}
