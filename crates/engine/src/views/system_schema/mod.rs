//! `system_schema` and `system_virtual_schema`: the schema's definitions.

mod aggregates;
mod column_masks;
mod columns;
mod dropped_columns;
mod functions;
mod indexes;
mod keyspaces;
mod shared;
mod tables;
mod triggers;
mod types;
mod views;
mod virtual_columns;
mod virtual_keyspaces;
mod virtual_tables;

use super::view::View;

pub(super) const VIEWS: &[View] = &[
    aggregates::VIEW,
    column_masks::VIEW,
    columns::VIEW,
    dropped_columns::VIEW,
    functions::VIEW,
    indexes::VIEW,
    keyspaces::VIEW,
    tables::VIEW,
    triggers::VIEW,
    types::VIEW,
    views::VIEW,
    virtual_columns::VIEW,
    virtual_keyspaces::VIEW,
    virtual_tables::VIEW,
];
