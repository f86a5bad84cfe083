//! Builds one row.

use bytes::Bytes;

use helenus_schema::schema::Table;

/// Builds one row: values by column name. Columns without a value are null.
pub(crate) struct Cells(Vec<(&'static str, Option<Bytes>)>);

impl Cells {
    pub(super) fn new() -> Self {
        Self(Vec::with_capacity(16))
    }

    pub(super) fn set(mut self, column: &'static str, value: Bytes) -> Self {
        self.0.push((column, Some(value)));
        self
    }

    pub(super) fn set_if(mut self, column: &'static str, value: Option<Bytes>) -> Self {
        self.0.push((column, value));
        self
    }

    pub(super) fn into_row(mut self, table: &Table) -> Vec<Option<Bytes>> {
        let mut at = 0;
        let mut of = |name: &str| {
            // Cells mostly come in the order of the columns, so the next column is checked first.
            let place = (at..self.0.len())
                .chain(0..at)
                .find(|&place| self.0.get(place).is_some_and(|(column, _)| *column == name))?;
            at = place + 1;
            self.0.get_mut(place).and_then(|(_, value)| value.take())
        };
        table.columns.iter().map(|column| of(&column.name)).collect()
    }
}
