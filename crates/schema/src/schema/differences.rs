//! The tables that differ between two versions of a keyspace.

use std::sync::{Arc, LazyLock};

use imbl::OrdMap;
use imbl::ordmap::DiffItem;

use super::{Keyspace, Table};

/// A table before and after a change; `None` where it does not exist.
pub type TableChange<'a> = (Option<&'a Arc<Table>>, Option<&'a Arc<Table>>);

static NO_TABLES: LazyLock<OrdMap<String, Arc<Table>>> = LazyLock::new(OrdMap::new);

/// The tables that differ between two versions of a keyspace, by name; `None` is a keyspace that does not exist. Views
/// are not among them.
///
/// The cost depends on the changes, not on the number of tables: what both versions share is skipped.
pub fn table_changes<'a>(was: Option<&'a Keyspace>, is: Option<&'a Keyspace>) -> impl Iterator<Item = TableChange<'a>> {
    let tables = |keyspace: Option<&'a Keyspace>| keyspace.map_or_else(|| &*NO_TABLES, |keyspace| &keyspace.tables);
    tables(was).diff(tables(is)).map(|change| match change {
        DiffItem::Add(_, is) => (None, Some(is)),
        DiffItem::Update { old, new } => (Some(old.1), Some(new.1)),
        DiffItem::Remove(_, was) => (Some(was), None),
    })
}
