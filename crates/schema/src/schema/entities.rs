//! Tables that hold the entities of a table service: their layout, by which both front ends know them.
//!
//! ```text
//! CREATE TABLE tables_account."T" (
//!     "PartitionKey" text, "RowKey" text, properties map<text, frozen<edm>>, version bigint,
//!     PRIMARY KEY ("PartitionKey", "RowKey")) WITH placement = 'ordered'
//! CREATE TYPE edm (s text, i int, l bigint, d double, b boolean, t bigint, g uuid, x blob)          one field is set
//! ```
//! Every write of a row renews its version, so that an ETag made of it tells every change, whoever makes it.

use helenus_types::types::{CqlType, Native, UserType};

use super::{Column, ColumnKind, Table};

/// What the name of a keyspace of entities begins with; the account's name follows.
pub const KEYSPACE_PREFIX: &str = "tables_";

/// The column of the partition key.
pub const PARTITION_KEY: &str = "PartitionKey";
/// The clustering column.
pub const ROW_KEY: &str = "RowKey";
/// The column of the properties.
pub const PROPERTIES: &str = "properties";
/// The column of the version.
pub const VERSION: &str = "version";
/// The type of a property's value.
pub const VALUE_TYPE: &str = "edm";

/// The fields of [`VALUE_TYPE`], of which a value sets one.
pub const VALUE_FIELDS: [(&str, Native); 8] = [
    ("s", Native::Text),
    ("i", Native::Int),
    ("l", Native::Bigint),
    ("d", Native::Double),
    ("b", Native::Boolean),
    ("t", Native::Bigint),
    ("g", Native::Uuid),
    ("x", Native::Blob),
];

/// The positions of the columns of a table of entities, in `table.columns`. The keys have positions 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityLayout {
    /// That of the properties.
    pub properties: usize,
    /// That of the version.
    pub version: usize,
}

/// Whether a type of a keyspace is the one of properties' values.
#[must_use]
pub fn is_value_type(user_type: &UserType) -> bool {
    user_type.keyspace.starts_with(KEYSPACE_PREFIX)
        && user_type.name == VALUE_TYPE
        && has_value_fields(&user_type.fields)
}

impl Table {
    /// Where the columns of entities are; `None` means that it is no table of entities. Rows of one with a time to live would lose
    /// their version: it is none.
    #[must_use]
    pub fn entity_layout(&self) -> Option<EntityLayout> {
        let options = &self.options;
        let may_be =
            options.is_ordered && options.default_time_to_live == 0 && self.keyspace.starts_with(KEYSPACE_PREFIX);
        if !may_be {
            return None;
        }
        let is_text = |place: usize, name: &str, kind: ColumnKind| {
            let column = self.columns.get(place);
            column.is_some_and(|column| {
                column.name == name
                    && column.kind == kind
                    && column.ty == CqlType::Native(Native::Text)
                    && !column.descending
            })
        };
        let has_keys = self.partition_key_count == 1
            && self.clustering_count == 1
            && is_text(0, PARTITION_KEY, ColumnKind::PartitionKey)
            && is_text(1, ROW_KEY, ColumnKind::Clustering);
        let place = |name: &str, is_such: fn(&Column) -> bool| {
            let (place, column) = self.column(name)?;
            (column.kind == ColumnKind::Regular && is_such(column)).then_some(place)
        };
        let properties = place(PROPERTIES, |column| is_properties(&column.ty))?;
        let version = place(VERSION, |column| column.ty == CqlType::Native(Native::Bigint))?;
        has_keys.then_some(EntityLayout { properties, version })
    }
}

/// Whether it is `map<text, frozen<edm>>`.
fn is_properties(ty: &CqlType) -> bool {
    let CqlType::Map(name, value) = ty else { return false };
    let CqlType::User(user) = value.unfrozen() else {
        return false;
    };
    **name == CqlType::Native(Native::Text) && has_value_fields(&user.fields)
}

fn has_value_fields(fields: &[(String, CqlType)]) -> bool {
    let mut pairs = fields.iter().zip(VALUE_FIELDS);
    fields.len() == VALUE_FIELDS.len()
        && pairs.all(|((name, ty), (wanted, native))| name == wanted && *ty == CqlType::Native(native))
}
