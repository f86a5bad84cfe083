//! The periodic jobs of a server: one line in [`spawn`] each. The database's [`Tasks`](helenus_base::tasks::Tasks) owns them.
//!
//! A failed round is logged, and the next round tries again. A stop of the server cancels a round at any point.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use crate::config::Config;
use crate::server::{Certificates, Reload, memory};
use helenus_cql::cql::Database;
use helenus_engine::engine::{Error, LogSizes, MeasuredPartitions, PartitionLimits, PartitionSizes, Repartitioned};
use helenus_engine::partition::LoadLimits;

/// Interval of the check for tables that are due to get more physical partitions.
const GROWTH_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Interval of the check of bytes written to physical partitions, if their sizes are checked: at 1 GB/s one grows by a
/// thirtieth of its limit meanwhile.
const WRITTEN_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Interval of the check of the disk's free space: a disk that takes 500 MB/s fills as much as the usual reserve
/// meanwhile.
const DISK_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Interval of the check of change logs. Without one it costs a look at the schema.
const LOG_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Starts the jobs that the settings enable; an interval of zero switches a job off.
pub(super) fn spawn(config: &Config, database: &Arc<Database>, certificates: Option<&Certificates>) {
    let tasks = database.engine().tasks();
    let every = |interval: Duration| (!interval.is_zero()).then_some(interval);
    memory::spawn_returns(tasks);
    let nodes = Arc::clone(database.engine().nodes());
    tasks.until_stop("times of the fault plan", async move { nodes.keep_time().await });
    if config.disk_reserve_bytes > 0 {
        let database = Arc::clone(database);
        database.engine().upkeep().check_disk();
        tasks.every("disk check", DISK_CHECK_INTERVAL, move || {
            database.engine().upkeep().check_disk();
            std::future::ready(())
        });
    }
    {
        let (database, sizes) = (Arc::clone(database), Arc::new(Mutex::new(LogSizes::default())));
        tasks.every("trimming of change logs", LOG_CHECK_INTERVAL, move || {
            trim_logs(Arc::clone(&database), Arc::clone(&sizes))
        });
    }
    if let Some(interval) = every(config.sweep_interval) {
        let database = Arc::clone(database);
        tasks.every("sweep", interval, move || sweep(Arc::clone(&database)));
    }
    if let Some(interval) = every(config.partition_check_interval) {
        let (database, limits) = (Arc::clone(database), config.partitions);
        let written_database = Arc::clone(&database);
        let sizes = Arc::new(Mutex::new(PartitionSizes::default()));
        tasks.every("size check", interval, move || {
            check_sizes(Arc::clone(&database), limits, Arc::clone(&sizes))
        });
        let (database, measured) = (written_database, Arc::new(Mutex::new(MeasuredPartitions::default())));
        tasks.every(
            "check of written bytes",
            WRITTEN_CHECK_INTERVAL.min(interval),
            move || check_written(Arc::clone(&database), limits, Arc::clone(&measured)),
        );
    }
    if every(config.throughput.split_delay).is_some() {
        let database = Arc::clone(database);
        tasks.every("growth check", GROWTH_CHECK_INTERVAL, move || {
            grow(Arc::clone(&database))
        });
    }
    if let Some(interval) = every(config.heat_check_interval) {
        let (database, limits) = (Arc::clone(database), config.heat);
        tasks.every("heat check", interval, move || {
            check_load(Arc::clone(&database), limits)
        });
    }
    if let (Some(interval), Some(certificates)) = (every(config.tls_reload_interval), certificates) {
        let certificates = certificates.clone();
        tasks.every("certificate check", interval, move || {
            check_certificate(&certificates, false);
            std::future::ready(())
        });
    }
}

/// Sweeps every table.
async fn sweep(database: Arc<Database>) {
    match database.engine().upkeep().sweep().await {
        Ok(swept) => tracing::debug!(
            rows_removed = swept.rows_removed,
            rows_shrunk = swept.rows_shrunk,
            deletions_removed = swept.deletions_removed,
            "swept"
        ),
        Err(error) => tracing::warn!(%error, "a sweep failed"),
    }
}

/// Trims the change logs.
async fn trim_logs(database: Arc<Database>, sizes: Arc<Mutex<LogSizes>>) {
    match database.engine().upkeep().trim_logs(&mut *sizes.lock().await).await {
        Ok(0) => {}
        Ok(logs) => tracing::debug!(logs, "change logs were trimmed"),
        Err(error) => tracing::warn!(%error, "change logs could not be trimmed"),
    }
}

/// Splits physical partitions that are too large.
async fn check_sizes(database: Arc<Database>, limits: PartitionLimits, sizes: Arc<Mutex<PartitionSizes>>) {
    let checked = database
        .engine()
        .upkeep()
        .repartition(limits, &mut *sizes.lock().await)
        .await;
    log_check(checked);
}

/// Splits physical partitions that were filled fast.
async fn check_written(database: Arc<Database>, limits: PartitionLimits, measured: Arc<Mutex<MeasuredPartitions>>) {
    let checked = database
        .engine()
        .upkeep()
        .split_written(limits, &mut *measured.lock().await)
        .await;
    log_check(checked);
}

fn log_check(checked: Result<Repartitioned, Error>) {
    match checked {
        Ok(done) if done == Repartitioned::default() => {}
        Ok(done) => tracing::info!(
            splits = done.splits,
            merges = done.merges,
            "physical partitions changed"
        ),
        Err(error) => tracing::warn!(%error, "a check of the sizes of physical partitions failed"),
    }
}

/// Makes the physical partitions that a higher throughput needs, when they are due.
async fn grow(database: Arc<Database>) {
    match database.engine().upkeep().grow_due().await {
        Ok(0) => {}
        Ok(tables) => tracing::info!(tables, "physical partitions were created for more throughput"),
        Err(error) => tracing::warn!(%error, "physical partitions for more throughput could not be created"),
    }
}

/// Splits physical partitions that use too many request units.
async fn check_load(database: Arc<Database>, limits: LoadLimits) {
    if let Err(error) = database.engine().upkeep().split_by_load(&limits).await {
        tracing::warn!(%error, "a check of the load of physical partitions failed");
    }
}

/// Loads the certificate if its files have changed, or always with `in_any_case`.
pub(super) fn check_certificate(certificates: &Certificates, in_any_case: bool) {
    match certificates.check(in_any_case) {
        Reload::Unchanged => {}
        Reload::Replaced => tracing::info!("new connections get the new certificate"),
        Reload::Kept(error) => tracing::error!(%error, "the new certificate cannot be used; the old one stays in use"),
    }
}
