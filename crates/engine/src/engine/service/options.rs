//! Construction of an engine from its options.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::super::admission::Admission;
use super::super::batch_log;
use super::super::catalog::{Catalog, Define, Identity, Opening, Unfinished};
use super::super::counts::Counts;
use super::super::draws::Draws;
use super::super::error::Error;
use super::super::failure::OpeningFailure;
use super::super::ledger::Ledger;
use super::super::limits::SizeLimits;
use super::super::logical::{Counting, Guarded, LogicalPartitions};
use super::super::meter::Meter;
use super::super::offers::{Offers, ThroughputRules};
use super::super::owner::Carrier;
use super::super::owner::moments::Moments;
use super::super::probe::Prober;
use super::super::write::WriteServices;
use super::Engine;
use super::authority::Authority;
use crate::engine::terms::clock::{ListKeys, WriteClock};
use crate::engine::virtual_tables::VirtualTables;
use crate::partition::{Nodes, Stores};
use crate::throughput::Coefficients;
use arc_swap::ArcSwapOption;
use helenus_base::clock::{Clock, Timestamps};
use helenus_base::tasks::Tasks;
use helenus_schema::command::MaskCalls;
use helenus_schema::guardrails::Guardrails;
use helenus_schema::profile::{Account, Profile, Rules};
use helenus_schema::schema::node::NodeInfo;
use helenus_storage::storage::{self as store, Url};
use helenus_types::functions::{CallLimits, Timeuuids};
use uuid::Uuid;

/// The options of a database.
#[derive(Clone)]
pub struct Options {
    /// Where data is kept.
    pub url: Url,
    /// Settings of the store.
    pub store: store::Options,
    /// The clock.
    pub clock: Clock,
    /// The seed of all randomness.
    pub seed: u64,
    /// This node and its peers, as the system tables show them. Its `host_id` comes from the store; those of the other
    /// virtual nodes are derived from it.
    pub node: NodeInfo,
    /// Bytes of rows after which a page ends, if the client requests pages.
    pub page_bytes_max: usize,
    /// Limits that cause warnings or refusals.
    pub guardrails: Guardrails,
    /// Prices of operations, in request units.
    pub prices: Coefficients,
    /// Size limits.
    pub limits: SizeLimits,
    /// Limits of the bodies of user functions.
    pub call_limits: CallLimits,
    /// Reaction to a jump of the wall clock.
    pub clock_rules: ClockRules,
    /// Statements that the request log keeps; 0 means none.
    pub request_log_max: usize,
    /// Rows that are counted for one view of sizes, in all tables together; a larger table shows its last count.
    pub count_at_once_rows_max: u64,
    /// The compatibility profile.
    pub profile: Profile,
    /// Treatment of throughput.
    pub throughput: ThroughputRules,
    /// The account that it emulates, in the profile `cosmos`.
    pub account: Account,
    /// The tables that the server computes.
    pub virtual_tables: Arc<dyn VirtualTables>,
    /// Makes the calls that mask columns for a client that may not see their values.
    pub mask_calls: MaskCalls,
    /// Another machine owns all partitions: this one follows its catalog and asks it. `None` means that this one owns them.
    pub elsewhere: Option<Elsewhere>,
}

/// How a machine without partitions reaches their owner, and what it has in common with it.
#[derive(Clone)]
pub struct Elsewhere {
    /// Carries messages to the owner.
    pub carrier: Arc<dyn Carrier>,
    /// This node's id.
    pub host_id: Uuid,
    /// The secret of paging states, which is the owner's: a client may ask any machine for the next page.
    pub paging_key: [u8; 16],
}

/// Reaction to a jump ahead of the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct ClockRules {
    /// How far it may be ahead of the recorded time plus the time passed. Beyond it expired cells are not removed.
    pub jump_max: Duration,
    /// An operator confirms that the clock is right.
    pub is_confirmed: bool,
}

impl Default for ClockRules {
    fn default() -> Self {
        Self {
            jump_max: Timestamps::JUMP_MAX,
            is_confirmed: false,
        }
    }
}

impl Options {
    /// Rows that are counted for one view, unless options say otherwise.
    pub const COUNT_AT_ONCE_ROWS_MAX: u64 = 100_000;
    /// Default bytes after which a page ends: enough that a page of 5,000 small rows is whole, little enough that
    /// many clients' pages fit into memory.
    pub const PAGE_BYTES_MAX: usize = 1024 * 1024;

    /// Opens the database.
    ///
    /// # Errors
    /// As [`Engine::open`].
    #[expect(
        clippy::too_many_lines,
        reason = "the services are made in the order in which they need each other"
    )]
    pub(super) async fn open(self) -> Result<Engine, Error> {
        let timestamps = Timestamps::new(self.clock.clone(), self.clock_rules.jump_max);
        let stores = self.open_stores(&timestamps).await?;
        let mut random = fastrand::Rng::with_seed(self.seed);
        let timeuuids = Arc::new(Timeuuids::new(random.u64(..)));
        let draws = Arc::new(Draws::new(random.u64(..)));
        let write_clock = WriteClock::new(timestamps.clone());
        let list_keys = ListKeys::new(write_clock.clone(), random.u32(..));
        let mut node = self.node.clone();
        let nodes = Arc::new(Nodes::new(node.virtual_nodes, self.clock.clone()));
        let data_centers = data_centers(&node);
        let meter = Meter::new(self.throughput.is_metered, self.request_log_max, self.clock.clone());
        let admission = Admission::new(self.throughput, self.clock.clone(), Arc::clone(&draws));
        let offers = Offers::new(self.throughput, self.clock.clone());
        let rules = Rules {
            profile: self.profile,
            account: self.account,
        };
        let tasks = Tasks::default();
        let tables = Arc::clone(&self.virtual_tables);
        let define: Define = Arc::new(move |schema| tables.define(schema));
        let opening = Opening {
            stores: stores.clone(),
            clock: self.clock.clone(),
            random,
            data_centers,
            offers,
            rules,
            define,
            timestamps: write_clock.clone(),
            tasks: tasks.clone(),
            elsewhere: self.elsewhere.as_ref().map(|elsewhere| Identity {
                host_id: elsewhere.host_id,
                paging_key: elsewhere.paging_key,
            }),
        };
        let (catalog, unfinished) = open_catalog(opening).await?;
        let left = batch_log::replay_all(&catalog.published, &unfinished.batches).await?;
        if self.clock_rules.is_confirmed {
            timestamps.confirm();
        }
        write_clock.catch_up().await;
        node.host_id = catalog.identity().host_id;
        node.name_virtual_nodes();
        let logical = LogicalPartitions::new(self.counting(&catalog, &write_clock, tasks), &catalog.logical);
        let catalog = Arc::new(catalog);
        for logged in left {
            batch_log::spawn_replay(&catalog.published, logged);
        }
        catalog.remove_strays(unfinished.numbers);
        catalog.begin_views();
        let locks = Arc::clone(&catalog.published.locks);
        Ok(Engine {
            catalog: Arc::clone(&catalog),
            stores,
            writes: WriteServices {
                catalog,
                clock: write_clock,
                list_keys,
                locks,
                limits: self.limits,
                logical: Arc::new(logical),
                nodes: Arc::clone(&nodes),
                ttl_of_rows: rules.profile.is_cosmos(),
            },
            seen: (0..nodes.count()).map(|place| node.seen_from(place)).collect(),
            nodes,
            virtual_tables: self.virtual_tables,
            page_bytes_max: self.page_bytes_max,
            statements: Arc::default(),
            prober: Prober::default(),
            guardrails: self.guardrails,
            ledger: Ledger {
                prices: self.prices,
                rules,
                admission,
                meter,
            },
            counts: Counts::new(self.clock.clone(), self.count_at_once_rows_max),
            clock: self.clock,
            rules,
            timeuuids,
            draws,
            call_limits: self.call_limits,
            mask_calls: self.mask_calls,
            authority: Authority::default(),
            audit_log: OnceLock::new(),
            elsewhere: self.elsewhere.map(|elsewhere| elsewhere.carrier),
            moments: Moments::default(),
            ring: ArcSwapOption::empty(),
            fleet: ArcSwapOption::empty(),
        })
    }

    /// What logical partitions are counted with.
    fn counting(&self, catalog: &Catalog, timestamps: &WriteClock, tasks: Tasks) -> Counting {
        Counting {
            cap: self.limits.logical_partition_bytes_max,
            guarded: Guarded {
                bytes: self.guardrails.partition_bytes,
                tombstones: self.guardrails.partition_tombstones,
            },
            clock: self.clock.clone(),
            timestamps: timestamps.clone(),
            pending: Arc::clone(&catalog.published.pending),
            tasks,
        }
    }

    /// Opens the stores, which take no writes yet.
    async fn open_stores(&self, timestamps: &Timestamps) -> Result<Stores, Error> {
        let options = store::Options {
            timestamps: Some(timestamps.clone()),
            ..self.store.clone()
        };
        let opened = Stores::open(&self.url, &options, self.clock.clone()).await;
        Ok(opened.map_err(OpeningFailure::from)?)
    }
}

/// Opens the catalog. Closes the stores if it cannot be opened, so that the directory is restored or later writes become durable.
async fn open_catalog(opening: Opening) -> Result<(Catalog, Unfinished), Error> {
    let stores = opening.stores.clone();
    let opened = Catalog::open(opening).await;
    if opened.is_err() {
        // The error already has the cause.
        drop(stores.close().await);
    }
    opened
}

fn data_centers(node: &NodeInfo) -> Vec<(String, usize)> {
    let mut names: Vec<&String> = node.peers.iter().map(|peer| &peer.data_center).collect();
    names.push(&node.data_center);
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .map(|name| (name.clone(), node.nodes_in(name)))
        .collect()
}
