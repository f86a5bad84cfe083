//! `system`, and the computed table of `system_distributed`. Tables for features that Helenus lacks (hints, paxos, compactions, ranges in transfer …) are empty.

mod built_views;
mod estimates;
mod index_info;
mod local;
mod peers;
mod peers_v2;
mod prepared_statements;
mod tokens;
mod view_build_status;

use super::view::View;

pub(super) const VIEWS: &[View] = &[
    built_views::VIEW,
    estimates::OF_SIZES,
    estimates::OF_TABLES,
    index_info::VIEW,
    local::VIEW,
    peers::VIEW,
    peers_v2::VIEW,
    prepared_statements::VIEW,
    view_build_status::VIEW,
];
