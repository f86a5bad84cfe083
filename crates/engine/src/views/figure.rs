//! The definition of a figure: its meaning, its source, and its name in each output.
//!
//! ```text
//! FIGURES: &[Figure<R>] ─┬─ columns, cells   the columns of a virtual table, and a row R as cells
//!  (one for each kind    ├─ json             a row R as an object
//!   of row R)            └─ samples          rows R as families of Prometheus
//! ```
//! A figure is written once, as an entry of such a list; every output is made from the list. `helenus status` prints
//! the JSON by the list of printed columns below the figures, in the same file.

use std::net::IpAddr;

use bytes::Bytes;
use serde_json::{Map, json};
use uuid::Uuid;

use super::cells::Cells;
use helenus_base::metrics::exposition::Text;
use helenus_base::metrics::{Counter, Distribution};
use helenus_schema::schema::encode;

/// The value of a figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// No value.
    Null,
    Text(String),
    Texts(Vec<String>),
    Bool(bool),
    Int(i64),
    Count(u64),
    Float(f64),
    Inet(IpAddr),
    Uuid(Uuid),
    /// A blob; JSON shows hexadecimal digits, as CQL prints a blob.
    Bytes(Vec<u8>),
    /// A latency histogram, µs.
    Times(Distribution),
}

impl Value {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub(crate) fn size(size: usize) -> Self {
        Self::Count(size as u64)
    }

    pub(crate) fn optional<T>(value: Option<T>, of: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Null, of)
    }

    /// Converts the value to a column of this type. A number out of range becomes the type's maximum.
    fn cell(&self, ty: &str) -> Option<Bytes> {
        let int = |number: i64| match ty {
            "int" => encode::int(i32::try_from(number).unwrap_or(i32::MAX)),
            _ => encode::bigint(number),
        };
        Some(match self {
            Self::Null | Self::Texts(_) | Self::Times(_) => return None,
            Self::Text(text) => encode::text(text),
            Self::Bool(value) => encode::boolean(*value),
            Self::Int(number) => int(*number),
            Self::Count(number) => int(i64::try_from(*number).unwrap_or(i64::MAX)),
            Self::Float(number) => encode::double(*number),
            Self::Inet(address) => encode::inet(*address),
            Self::Uuid(uuid) => encode::uuid(*uuid),
            Self::Bytes(bytes) => Bytes::copy_from_slice(bytes),
        })
    }

    fn json(&self) -> serde_json::Value {
        match self {
            Self::Null => json!(null),
            Self::Text(text) => json!(text),
            Self::Texts(texts) => json!(texts),
            Self::Bool(value) => json!(value),
            Self::Int(number) => json!(number),
            Self::Count(number) => json!(number),
            Self::Float(number) => json!(number),
            Self::Inet(address) => json!(address.to_string()),
            Self::Uuid(uuid) => json!(uuid.to_string()),
            Self::Bytes(bytes) => {
                let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                json!(format!("0x{digits}"))
            }
            Self::Times(times) => json!({
                "count": times.count(),
                "p50_micros": times.quantile(0.5),
                "p99_micros": times.quantile(0.99),
                "p999_micros": times.quantile(0.999),
                "max_micros": times.max(),
                "total_micros": times.sum(),
            }),
        }
    }

    /// As text: the value of a label or of a sample. `None` means that there is no sample.
    fn plain(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Int(number) => Some(number.to_string()),
            Self::Count(number) => Some(number.to_string()),
            Self::Float(number) => Some(number.to_string()),
            Self::Null
            | Self::Texts(_)
            | Self::Bool(_)
            | Self::Inet(_)
            | Self::Uuid(_)
            | Self::Bytes(_)
            | Self::Times(_) => None,
        }
    }
}

/// The kind of a virtual table's column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Partition,
    Clustering,
    Descending,
    Regular,
}

/// A column of a virtual table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Its type as CQL writes it.
    pub(crate) ty: &'static str,
    /// Its meaning and its unit, a sentence.
    pub(crate) meaning: &'static str,
}

/// The Prometheus type of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// A gauge: the value rises and falls.
    Gauge(&'static str),
    /// A counter: the value only rises.
    Counter(&'static str),
    /// A histogram of durations.
    Times(&'static str),
    /// A label that names the row of the other samples.
    Label(&'static str),
    /// The family is already in [`helenus_base::metrics::ALL`].
    Elsewhere(&'static str),
}

/// A figure of rows of one kind.
pub(crate) struct Figure<R: 'static> {
    /// Its meaning and its unit, a sentence.
    help: &'static str,
    read: fn(&R) -> Value,
    column: Option<Column>,
    /// Its name in the row's object; a dot separates the name of a nested object. `None` means not in JSON.
    json: Option<&'static str>,
    family: Option<Family>,
}

impl<R> Figure<R> {
    pub(crate) const fn new(help: &'static str, read: fn(&R) -> Value) -> Self {
        Self {
            help,
            read,
            column: None,
            json: None,
            family: None,
        }
    }

    /// A counter of the process; its metric already has a name and help text. `read` returns its value.
    pub(crate) const fn of_counter(counter: &'static Counter, read: fn(&R) -> Value) -> Self {
        let mut figure = Self::new(counter.help(), read);
        figure.family = Some(Family::Elsewhere(counter.name()));
        figure
    }

    /// Adds a column of this CQL type.
    pub(crate) const fn column(self, name: &'static str, ty: &'static str) -> Self {
        self.keyed(Kind::Regular, name, ty)
    }

    /// Adds a column of the primary key.
    pub(crate) const fn keyed(mut self, kind: Kind, name: &'static str, ty: &'static str) -> Self {
        self.column = Some(Column {
            name,
            kind,
            ty,
            meaning: self.help,
        });
        self
    }

    pub(crate) const fn json(mut self, name: &'static str) -> Self {
        self.json = Some(name);
        self
    }

    pub(crate) const fn gauge(mut self, name: &'static str) -> Self {
        self.family = Some(Family::Gauge(name));
        self
    }

    pub(crate) const fn counter(mut self, name: &'static str) -> Self {
        self.family = Some(Family::Counter(name));
        self
    }

    pub(crate) const fn times(mut self, name: &'static str) -> Self {
        self.family = Some(Family::Times(name));
        self
    }

    pub(crate) const fn label(mut self, name: &'static str) -> Self {
        self.family = Some(Family::Label(name));
        self
    }
}

/// The columns of these figures: key columns in order, then the others by name, as in a table.
pub(crate) fn columns<R>(figures: &'static [Figure<R>]) -> Vec<Column> {
    let of = |kind: Kind| {
        figures
            .iter()
            .filter_map(|figure| figure.column)
            .filter(move |column| column.kind == kind)
    };
    let mut others: Vec<Column> = of(Kind::Regular).collect();
    others.sort_by_key(|column| column.name);
    let clustering = figures.iter().filter_map(|figure| figure.column);
    let clustering = clustering.filter(|column| matches!(column.kind, Kind::Clustering | Kind::Descending));
    of(Kind::Partition).chain(clustering).chain(others).collect()
}

/// Rows as cells by column.
pub(crate) fn cells<R>(figures: &'static [Figure<R>], rows: impl IntoIterator<Item = R>) -> Vec<Cells> {
    let cells = |row: R| {
        let shown = figures.iter().filter_map(|figure| Some((figure, figure.column?)));
        shown.fold(Cells::new(), |cells, (figure, column)| {
            cells.set_if(column.name, (figure.read)(&row).cell(column.ty))
        })
    };
    rows.into_iter().map(cells).collect()
}

/// A row as an object.
pub(crate) fn json<R>(figures: &'static [Figure<R>], row: &R) -> serde_json::Value {
    let mut object = Map::new();
    for figure in figures {
        let Some(path) = figure.json else { continue };
        put(&mut object, path, (figure.read)(row).json());
    }
    serde_json::Value::Object(object)
}

fn put(object: &mut Map<String, serde_json::Value>, path: &str, value: serde_json::Value) {
    match path.split_once('.') {
        None => drop(object.insert(path.to_owned(), value)),
        Some((outer, inner)) => {
            let within = object.entry(outer).or_insert_with(|| json!({}));
            if let Some(within) = within.as_object_mut() {
                put(within, inner, value);
            }
        }
    }
}

/// Rows as samples; a family without samples is left out.
pub(crate) fn samples<R>(text: &mut Text, figures: &'static [Figure<R>], rows: &[R]) {
    let labels_of = |row: &R| -> Vec<(&'static str, String)> {
        let labels = figures.iter().filter_map(|figure| match figure.family {
            Some(Family::Label(name)) => Some((name, (figure.read)(row).plain().unwrap_or_default())),
            _ => None,
        });
        labels.collect()
    };
    let labels: Vec<Vec<(&'static str, String)>> = rows.iter().map(labels_of).collect();
    let labels: Vec<Vec<(&str, &str)>> = labels
        .iter()
        .map(|labels| labels.iter().map(|(name, value)| (*name, value.as_str())).collect())
        .collect();
    for figure in figures {
        let all = || labels.iter().map(Vec::as_slice).zip(rows.iter().map(figure.read));
        let plain: Vec<_> = all()
            .filter_map(|(labels, value)| Some((labels, value.plain()?)))
            .collect();
        match figure.family {
            Some(Family::Gauge(name)) if !plain.is_empty() => text.gauges(name, figure.help, plain),
            Some(Family::Counter(name)) if !plain.is_empty() => text.counters(name, figure.help, plain),
            Some(Family::Times(name)) => {
                let times: Vec<_> = all()
                    .filter_map(|(labels, value)| match value {
                        Value::Times(times) => Some((labels, times)),
                        _ => None,
                    })
                    .collect();
                if !times.is_empty() {
                    text.times(name, figure.help, times.iter().map(|(labels, times)| (*labels, times)));
                }
            }
            Some(Family::Gauge(_) | Family::Counter(_) | Family::Label(_) | Family::Elsewhere(_)) | None => {}
        }
    }
}

/// The names of each figure, one line each: column, JSON, family, meaning.
#[cfg(test)]
pub(crate) fn appearances<R>(figures: &'static [Figure<R>]) -> Vec<String> {
    let line = |figure: &Figure<R>| {
        let column = figure.column.map(|column| format!("{} {}", column.name, column.ty));
        let family = figure.family.map(|family| match family {
            Family::Gauge(name) => format!("gauge {name}"),
            Family::Counter(name) => format!("counter {name}"),
            Family::Times(name) => format!("times {name}"),
            Family::Label(name) => format!("label {name}"),
            Family::Elsewhere(name) => format!("counter {name} (of the process)"),
        });
        let or_none = |name: Option<String>| name.unwrap_or_else(|| "-".to_owned());
        let json = figure.json.map(str::to_owned);
        format!(
            "{} | {} | {} | {}",
            or_none(column),
            or_none(json),
            or_none(family),
            figure.help.trim()
        )
    };
    figures.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_base::metrics::Histogram;

    struct Row {
        name: &'static str,
        bytes: u64,
    }

    static FIGURES: &[Figure<Row>] = &[
        Figure::new("The name.", |row: &Row| Value::text(row.name))
            .keyed(Kind::Partition, "its_name", "text")
            .json("name")
            .label("of"),
        Figure::new("Bytes that it takes.", |row: &Row| Value::Count(row.bytes))
            .column("bytes", "bigint")
            .json("inner.bytes")
            .gauge("row_bytes"),
        Figure::new("How long it took.", |_| {
            let times = Histogram::new();
            times.add(17, 1);
            Value::Times(times.load())
        })
        .json("inner.took")
        .times("row_seconds"),
        Figure::new("What some lack.", |row: &Row| {
            Value::optional((row.bytes > 1).then_some(row.bytes), Value::Count)
        })
        .column("a_lack", "int")
        .json("lack")
        .counter("lack_total"),
    ];

    #[test]
    fn one_definition_appears_in_table_json_and_prometheus() {
        let rows = [Row { name: "a", bytes: 1 }, Row { name: "b", bytes: 2 }];
        let names: Vec<&str> = columns(FIGURES).iter().map(|column| column.name).collect();
        assert_eq!(names, ["its_name", "a_lack", "bytes"]);
        let object = json(FIGURES, &rows[0]);
        assert_eq!(object["inner"]["bytes"], 1);
        assert_eq!(object["inner"]["took"]["count"], 1);
        assert_eq!((&object["name"], &object["lack"]), (&json!("a"), &json!(null)));
        let mut text = Text::new();
        samples(&mut text, FIGURES, &rows);
        let text = text.finish();
        for line in [
            "# HELP helenus_row_bytes Bytes that it takes.",
            "helenus_row_bytes{of=\"a\"} 1",
            "helenus_row_seconds_count{of=\"b\"} 1",
            "helenus_lack_total{of=\"b\"} 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("helenus_lack_total{of=\"a\"}"), "{text}");
        assert_eq!(cells(FIGURES, rows).len(), 2);
    }
}
