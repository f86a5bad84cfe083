//! `system_cosmos.memory`: what holds the memory of the process.

use super::super::figure;
use super::super::memory::{FIGURES, holders};
use super::super::view::{Own, Rows, View};
use super::common::COSMOS;

pub(super) const VIEW: View = View {
    keyspace: COSMOS,
    name: "memory",
    own: Some(Own {
        comment: "what holds the memory of the process",
        columns: || figure::columns(FIGURES),
        shows_sizes: false,
    }),
    rows: Rows::All(|sources| figure::cells(FIGURES, holders(sources))),
};
