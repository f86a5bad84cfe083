//! Tables whose rows are written before the tables exist: a restore.
//!
//! ```text
//! numbers taken, durable ─► rows written under them ─► one commit: the schema
//! ```
//! Until that commit the rows belong to no table, and the next start removes them (leftovers.rs): an interrupted restore
//! leaves nothing.

use std::ops::Range;
use std::sync::Arc;

use uuid::Uuid;

use super::partition_maps::NewTables;
use super::{Catalog, to_the_end};
use crate::engine::{Error, storage_write};
use crate::partition::{StoreId, TablePartitions};
use helenus_schema::schema::{Schema, StorageId};
use helenus_types::token::KeyBound;

impl Catalog {
    /// Reserves numbers in the stores for future tables and indexes. The next start removes the rows written under
    /// them, unless [`Catalog::adopt`] assigns them to tables.
    ///
    /// # Errors
    /// A store fails.
    pub(in crate::engine) async fn take_numbers(self: &Arc<Self>, count: u32) -> Result<Range<StorageId>, Error> {
        let catalog = Arc::clone(self);
        to_the_end(&self.published.tasks, async move {
            let mut changing = catalog.changing.lock().await;
            catalog.resolve_locked(&mut changing).await?;
            let first = changing.next_storage_id;
            let next = first
                .checked_add(count)
                .ok_or_else(|| Error::Fault("there are no numbers left for tables".to_owned()))?;
            changing.next_storage_id = next;
            catalog.take_up_to(next).await?;
            let durable = catalog.stores().make_durable(catalog.main()).await;
            durable.map_err(|error| storage_write(&error))?;
            Ok(first..next)
        })
        .await
    }

    /// Publishes tables whose rows lie in the main store under reserved numbers. `next` makes the schema from the
    /// published one; `splits` are the tokens at which the physical partitions of a table begin, except for the first.
    ///
    /// # Errors
    /// The error of `next`; a store fails. Then the tables do not exist.
    pub(in crate::engine) async fn adopt(
        self: &Arc<Self>,
        splits: Vec<(StorageId, Vec<i64>)>,
        next: impl FnOnce(&Schema, &mut dyn FnMut() -> Uuid) -> Result<Schema, Error> + Send + 'static,
    ) -> Result<(), Error> {
        let catalog = Arc::clone(self);
        to_the_end(&self.published.tasks, async move {
            let mut changing = catalog.changing.lock().await;
            catalog.resolve_locked(&mut changing).await?;
            let before = Arc::clone(&catalog.load().schema);
            let next = next(&before, &mut || catalog.table_id(&mut changing))?;
            catalog.schemas.offers.check_metered(Some(&before), &next)?;
            let tables = NewTables {
                is_emptied: false,
                are_empty: false,
                are_in_main: true,
            };
            catalog
                .publish(&mut changing, &before, Arc::new(next), &[], tables, Default::default())
                .await?;
            catalog.begin_views();
            for (table, splits) in splits.into_iter().filter(|(_, splits)| !splits.is_empty()) {
                let main = catalog.main().clone();
                catalog
                    .change_map(table, move |_| {
                        let mut map = TablePartitions::whole(StoreId::MAIN, main);
                        for at in splits {
                            map = map.split(&KeyBound::at_token(at))?;
                        }
                        Ok(map)
                    })
                    .await?;
            }
            let durable = catalog.stores().make_durable(catalog.main()).await;
            durable.map_err(|error| storage_write(&error))
        })
        .await
    }

    /// Removes the rows written under reserved numbers.
    pub(in crate::engine) fn discard_numbers(&self, numbers: Range<StorageId>) {
        for id in numbers {
            self.orphans.remove_number(id, None);
        }
    }
}
