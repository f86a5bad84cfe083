//! The parts of a read that are known before its first row: its shape and its limits.

use crate::engine::row::layout::Layout;
use helenus_schema::command::{Expression, Read};
use helenus_schema::guardrails::Threshold;

/// The part of a SELECT that does not depend on values: made once for a plan.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The columns to read of each row.
    pub(crate) layout: Layout,
    /// The positions of the columns, if the selection consists of columns only.
    pub(super) plain: Option<Vec<usize>>,
}

impl Shape {
    /// The shape of a SELECT.
    #[must_use]
    pub fn of(select: &Read) -> Self {
        let selection = &select.selection;
        let columns_only = || {
            let places = selection.expressions.iter().map(|expression| match expression {
                Expression::Column(place) => Some(*place),
                _ => None,
            });
            places.collect::<Option<Vec<_>>>()
        };
        let is_plain = selection.json_columns.is_none() && selection.aggregates.is_empty() && select.group_by.is_none();
        let needed = selection.needed.iter().copied();
        Self {
            layout: Layout::new(&select.table, needed, selection.needs_metadata),
            plain: if is_plain { columns_only() } else { None },
        }
    }
}

/// The limits of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Rows that LIMIT still allows. `None` means no limit.
    pub(crate) rows: Option<u32>,
    /// Rows of a page. `None` means that the read is not paged.
    pub(crate) page_rows: Option<u32>,
    /// Bytes after which a page ends, if the read is paged.
    pub(crate) page_bytes: usize,
    /// Bytes to reserve at once.
    pub(crate) content_bytes_ahead: usize,
    /// Tombstones at which a read warns, and at which it fails.
    pub(crate) tombstones: Threshold,
}

impl Limits {
    /// How many rows a page of a read may still take. `None` means no limit, or that it is not known, as with groups.
    pub(crate) fn rows_wanted(&self, read: &Read) -> Option<usize> {
        if read.is_grouped() || !read.sort.is_empty() || read.nearest.is_some() {
            return None;
        }
        let wanted = self.page_rows.into_iter().chain(self.rows).min()?;
        usize::try_from(wanted).ok()
    }
}
