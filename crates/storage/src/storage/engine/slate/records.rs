//! The parts of a database that an opening reads, before it writes and after: which tables have deletions, and the
//! store's own records.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use slatedb::DbReadOps;
use slatedb::config::ScanOptions;

use super::home::Home;
use crate::storage::Error;
use crate::storage::batch::Space;
use crate::storage::engine::layout::{OWN, Origin, Own, full_range, parse_own};
use crate::storage::engine::{DeletionTables, table_of};
use crate::storage::key::KeyRange;
use helenus_base::clock::TimeMark;

/// The store's own records.
#[derive(Default)]
pub(super) struct OwnRecords {
    /// The time mark of the last group. `None` means that there is none.
    pub(super) time: Option<TimeMark>,
    /// What the last group names. `None` means that there is no group.
    pub(super) origin: Option<Origin>,
    /// Ranges whose deletion was not finished, by their record's number.
    pub(super) unfinished: Vec<(u64, Space, KeyRange)>,
}

/// Reads the store's own records. `None` means that one of them has a kind that this version does not write.
pub(super) async fn own_records(
    view: &(impl DbReadOps + Sync),
    options: &ScanOptions,
) -> Result<Option<OwnRecords>, slatedb::Error> {
    let mut own = OwnRecords::default();
    let mut entries = view.scan_with_options(vec![OWN].., options).await?;
    while let Some(entry) = entries.next().await? {
        match parse_own(&entry.key, &entry.value) {
            Some(Own::Range(number, space, range)) => own.unfinished.push((number, space, range)),
            Some(Own::Origin(origin, time)) => {
                own.time = time;
                own.origin = Some(origin);
            }
            Some(Own::Chain(..) | Own::Size(..) | Own::Witnessed(_)) | None => return Ok(None),
        }
    }
    Ok(Some(own))
}

pub(super) fn unknown_record(home: &Home) -> Error {
    Error::Corrupt {
        path: home.path(),
        what: "an unknown record of the store's own".to_owned(),
    }
}

/// Tables that have deletion records. Reads one record for each such table.
pub(super) async fn deletion_tables(
    view: &(impl DbReadOps + Sync),
    options: &ScanOptions,
) -> Result<DeletionTables, slatedb::Error> {
    let mut tables = BTreeSet::new();
    let mut rest: VecDeque<u32> = VecDeque::from([0]);
    while let Some(from) = rest.pop_front() {
        let range = KeyRange {
            start: Bound::Included(from.to_be_bytes().to_vec()),
            end: Bound::Unbounded,
        };
        let range = full_range(Space::Deletions, &range);
        let mut entries = view.scan_with_options(range, options).await?;
        if let Some(entry) = entries.next().await?
            && let Some(table) = table_of(entry.key.get(1..).unwrap_or_default())
        {
            tables.insert(table);
            rest.extend(table.checked_add(1));
        }
    }
    Ok(Arc::new(tables))
}
