//! How the committer opens its store, and releases the original files.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::Receiver;

use arc_swap::{ArcSwap, ArcSwapOption};

use super::super::super::DeletionTables;
use super::super::super::acknowledged::ChainEnd;
use super::super::super::directory::{Directory, Wanted};
use super::super::opening::{Provisional, Recovered};
use super::super::request::Command;
use super::super::{Engine, FORMAT, Shared};
use super::free_space::FreeSpace;
use super::maintenance::Maintenance;
use super::{Committer, Found, Health, RangeJob, Ranges};
use crate::storage::absence::Absence;
use crate::storage::cache::RowCache;
use crate::storage::engine::options::Options;
use crate::storage::identity::Identity;
use crate::storage::sizes::Sizes;
use crate::storage::{Error, Result};
use helenus_base::clock::Clock;

impl Committer {
    /// `identity` is that of a side store. `None` means a main store, which names itself.
    ///
    /// Locks the directory, opens the engine, checks it, and publishes the first snapshot. Accepts the engine at once,
    /// unless the options say that this comes later.
    pub(in crate::storage::engine::fjall) fn open(
        path: &Path,
        identity: Option<Identity>,
        options: Options,
        clock: Clock,
        commands: Receiver<Command>,
    ) -> Result<(Self, Arc<Shared>)> {
        let wanted = Wanted {
            identity,
            ..Wanted::main(&options, FORMAT)
        };
        let directory = Directory::open(path, wanted)?;
        let lost = Arc::default();
        let (recovered, provisional) = Engine::open(&directory, &options, &lost)?;
        directory.write_holder();
        let shared = Arc::new(Shared {
            directory: directory.path().to_owned(),
            identity: directory.identity(),
            published: ArcSwapOption::empty(),
            cache: RowCache::new(options.row_cache_bytes_max),
            derivations: ArcSwap::default(),
            sweeps: Arc::default(),
            openings: AtomicU64::default(),
            durable: Arc::default(),
            lost,
            key_filter_bytes: AtomicU64::default(),
        });
        let absence = Absence::new(options.key_filter_bytes_max, options.fill_searches_min);
        let drawn = options.times().drawn();
        let mut committer = Self {
            directory,
            options,
            clock,
            commands,
            shared: Arc::clone(&shared),
            acknowledged: None,
            engine: None,
            provisional: None,
            end: ChainEnd::default(),
            time: None,
            sizes: Sizes::default(),
            absence,
            deletion_tables: DeletionTables::default(),
            jobs: VecDeque::new(),
            next_range: 0,
            drawn,
            health: Health::Well,
            free_space: FreeSpace::default(),
            maintenance: Maintenance::default(),
            unsynced_since: None,
            witnessed: Vec::new(),
            witnessed_changes: 0,
        };
        let is_accepted_later = committer.options.is_accepted_later && !provisional.is_new();
        let unfinished = committer.take_over(recovered);
        committer.provisional = Some(Found {
            provisional,
            unfinished,
        });
        committer.publish();
        if !is_accepted_later {
            committer.accept()?;
        }
        Ok((committer, shared))
    }

    /// Deletes the links to the original files, and completes unfinished range deletions. From now on the engine may be
    /// written to.
    pub(super) fn accept(&mut self) -> Result<()> {
        let Some(found) = self.provisional.take() else {
            return Ok(());
        };
        let accepted = found.provisional.accept(&self.directory, self.end);
        // After a failure refuse writes: the next opening may have to restore the original files.
        self.acknowledged = Some(accepted.inspect_err(|error| self.fail(error))?);
        self.resume(found.unfinished);
        // Complete them before any read: no reader may see a half-deleted range.
        while self.step_range_job() {}
        match &self.health {
            Health::Well => Ok(()),
            Health::Full => Err(Error::DiskFull {
                directory: self.directory.path().to_owned(),
            }),
            Health::Failed(cause) => Err(Error::clone(cause)),
        }
    }

    /// Continues with an engine that was reopened, and accepts it.
    pub(super) fn take_over_again(&mut self, recovered: Recovered, provisional: Provisional) -> Result<()> {
        let acknowledged = provisional.accept(&self.directory, recovered.end)?;
        self.acknowledged = Some(acknowledged);
        let unfinished = self.take_over(recovered);
        self.resume(unfinished);
        Ok(())
    }

    /// Takes ownership of an engine; returns the ranges whose deletion was not finished.
    fn take_over(&mut self, recovered: Recovered) -> Ranges {
        self.engine = Some(Arc::new(recovered.engine));
        self.end = recovered.end;
        self.shared.durable.raise(self.end);
        self.shared.durable.found(&recovered.history);
        self.witnessed = recovered.witnessed;
        self.witnessed_changes = 0;
        self.time = recovered.time;
        self.options.times().found(self.time);
        self.sizes = recovered.sizes;
        // A failed group may have taken effect all the same, so the filter starts empty.
        self.absence.begin(self.sizes.tables_with_rows());
        self.deletion_tables = recovered.deletion_tables;
        let numbers = recovered.unfinished.iter().map(|(number, ..)| number + 1);
        self.next_range = numbers.max().unwrap_or(0);
        recovered.unfinished.into()
    }

    fn resume(&mut self, unfinished: Ranges) {
        if !unfinished.is_empty() {
            self.jobs.push_back(RangeJob {
                ranges: unfinished,
                request: None,
            });
        }
    }
}
