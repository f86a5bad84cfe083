//! Effects of a fault plan on statements, and consistency levels when replicas are down.
//!
//! Nothing here runs while [`Nodes::is_quiet_at`]: then every replica is alive, none lags, and the level is met.
//!
//! A read: the living replicas are counted; the plan's decision is applied (wait, split, refuse); the replicas are
//! counted again, since a node may have died meanwhile. At ONE a lagging follower may return an earlier state. A write
//! is treated the same, with one more count right before the commit ([`admit_writes`]). A timeout after applying is
//! returned after the write is done.
//!
//! In a fleet the owner of the partitions judges levels, for all nodes and here alone, by the nodes that have seats
//! ([`crate::partition::Seats`]). It counts those that are up before a condition is read and again before the commit. A node that
//! asks it has an older list, and none that changes while there is no owner. So a request that waited for a new owner
//! is judged by what that one knows.
//!
//! Reads that use an index see a replica without lag. The index may be newer than the state that a lagging replica
//! shows.

use std::sync::Arc;
use std::time::Duration;

use super::catalog::Catalog;
use super::error::Error;
use super::failure::FailureCause;
use super::levels;
use super::targets;
use crate::engine::terms::request::Request;
use crate::engine::terms::write::{Routed, WriteRequest};
use crate::partition::faults::{Counts, Outcome, Place, StatementKind, Subject};
use crate::partition::nodes::Ordered;
use crate::partition::replicas::{needed_to_read, needed_to_write};
use crate::partition::{MapError, Nodes, PhysicalPartition, Placed, ReadView, ReplicaSet, Shortage, TablePartitions};
use crate::throughput::activity_id;
use helenus_base::mutant::{self, Mutant};
use helenus_schema::command::{Partitions, Read};
use helenus_schema::profile::Rules;
use helenus_schema::schema::{Table, system};
use helenus_types::consistency::{Consistency, WriteKind};
use helenus_types::token::KeyBound;

/// The counts in a planned timeout of a read or write.
#[derive(Clone, Copy)]
enum Kind {
    Read,
    Write(WriteKind),
}

/// A physical partition as fault plans and replica sets name it.
pub(super) fn place<'a>(table: &'a Table, partition: &PhysicalPartition) -> Place<'a> {
    Place {
        keyspace: &table.keyspace,
        table: &table.name,
        partition: partition.id.0,
    }
}

/// The parts of tables that modifications write, each once.
fn places<'a>(modifications: &[Routed<'a>]) -> Vec<Place<'a>> {
    let mut places: Vec<Place<'a>> = Vec::new();
    for Routed {
        modification,
        partitions,
    } in modifications
    {
        for key in &modification.partition_keys {
            let place = place(&modification.table, partitions.place(key).1);
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    places
}

/// The replica sets of the rows that modifications write.
fn sets_to_write(nodes: &Nodes, modifications: &[Routed<'_>]) -> Vec<ReplicaSet> {
    // Server tables stored as users' tables are exempt from faults.
    let Some(seats) = nodes.seats() else {
        let places = places(modifications).into_iter();
        let of_users = places.filter(|place| !system::is_name(place.keyspace));
        return of_users.map(|place| nodes.replicas(&place)).collect();
    };
    let of_users = modifications.iter();
    let of_users = of_users.filter(|routed| !system::is_name(&routed.modification.table.keyspace));
    let sets = of_users.flat_map(|routed| {
        let keys = routed.modification.partition_keys.iter();
        keys.map(|key| seats.set_of(routed.partitions.token(key).value()))
    });
    sets.collect()
}

/// The replica sets of the rows that a read wants; `places` are the physical partitions that it concerns.
fn sets_to_read(nodes: &Nodes, places: &[Place<'_>], select: &Read, partitions: &TablePartitions) -> Vec<ReplicaSet> {
    match (nodes.seats(), &select.partitions) {
        (None, _) => places.iter().map(|place| nodes.replicas(place)).collect(),
        (Some(seats), Partitions::Keys(keys)) => {
            let sets = keys.iter().map(|key| seats.set_of(partitions.token(key).value()));
            sets.collect()
        }
        (Some(seats), Partitions::Ring(span)) => {
            let sets = span.iter().flat_map(|span| seats.sets_of(span.lower(), span.upper()));
            sets.collect()
        }
    }
}

/// Checks that enough replicas are alive for a write. One load while all are.
///
/// # Errors
/// [`Error::Unavailable`].
pub(super) fn admit_writes(nodes: &Nodes, modifications: &[Routed<'_>], request: &WriteRequest) -> Result<(), Error> {
    if nodes.is_quiet_at(request.consistency) {
        return Ok(());
    }
    for set in sets_to_write(nodes, modifications) {
        match request.write_kind {
            WriteKind::Cas => set.admit_conditional(request.serial_consistency, request.consistency)?,
            WriteKind::Simple
            | WriteKind::Batch
            | WriteKind::UnloggedBatch
            | WriteKind::Counter
            | WriteKind::BatchLog
            | WriteKind::View
            | WriteKind::Cdc => set.admit_write(request.consistency)?,
        }
    }
    Ok(())
}

/// Replicas that are needed.
fn required(kind: Kind, consistency: Consistency, replicas: u32) -> u32 {
    match kind {
        Kind::Read => needed_to_read(consistency, replicas),
        Kind::Write(_) => needed_to_write(consistency, replicas),
    }
}

fn timeout(kind: Kind, consistency: Consistency, replicas: u32, counts: &Counts) -> Error {
    let required = required(kind, consistency, replicas);
    let received = counts.received.unwrap_or_else(|| required.saturating_sub(1));
    match kind {
        Kind::Read => Error::ReadTimeout {
            consistency,
            received,
            required,
            data_present: counts.data_present,
        },
        Kind::Write(write_kind) => Error::WriteTimeout {
            consistency,
            received,
            required,
            write_kind: counts.write_kind.unwrap_or(write_kind),
        },
    }
}

/// Applies the fault plan to statements.
#[derive(Clone, Copy)]
pub(super) struct FaultInjector<'a> {
    pub(super) nodes: &'a Nodes,
    pub(super) catalog: &'a Arc<Catalog>,
    pub(super) rules: &'a Rules,
}

impl FaultInjector<'_> {
    /// Applies the plan before a read, while a plan is active. Returns the moments at which the read sees its stores.
    pub(super) async fn inject_read_fault(
        self,
        request: &Request<'_>,
        select: &Read,
        partitions: &TablePartitions,
    ) -> Result<ReadView, Error> {
        let table = select.table.as_ref();
        if system::is_name(&table.keyspace) {
            return Ok(ReadView::default());
        }
        let asked = request.consistency();
        let lowered = select.nearest.as_ref().and_then(|_| levels::of_nearest(asked));
        let consistency = levels::read(self.rules, lowered.unwrap_or(asked), false)?;
        let mut places: Vec<Place<'_>> = Vec::new();
        for partition in targets::concerned(partitions, select) {
            let place = place(table, partition);
            if !places.contains(&place) {
                places.push(place);
            }
        }
        let admit = || {
            let sets = sets_to_read(self.nodes, &places, select, partitions);
            sets.iter().try_for_each(|set| set.admit(consistency))
        };
        let Some(first) = places.first() else {
            return Ok(ReadView::default());
        };
        let number = self.nodes.begin();
        admit()?;
        let subject = Subject {
            places: &places,
            statement: StatementKind::Read,
            consistency,
            node: request.node(),
        };
        let ordered = self.nodes.decide(number, &subject);
        if ordered.decision.delay_ms > 0 {
            self.nodes.hold(&ordered, ordered.decision.delay_ms).await;
        }
        if ordered.decision.splits {
            let read = |partition: &&Placed| partition.id.0 == first.partition;
            let at = match &select.partitions {
                Partitions::Keys(keys) => keys.first().map(|key| partitions.bound(key)),
                Partitions::Ring(_) => None,
            };
            if let Some(partition) = partitions.all().iter().find(read) {
                self.split_under(table, partition, at).await?;
            }
        }
        admit()?;
        if let Some(error) = self.refusal(&ordered, Kind::Read, consistency).await {
            return Err(error);
        }
        if let Some(Outcome::TimeoutAfter(counts)) = &ordered.decision.outcome {
            // A read has no effects, so a timeout before and one after it are the same.
            return Err(timeout(Kind::Read, consistency, self.nodes.set_size(), counts));
        }
        let is_at_one =
            matches!(consistency, Consistency::One | Consistency::LocalOne) || mutant::is_on(Mutant::LagAtQuorum);
        if !is_at_one || !self.nodes.keeps_moments() || !select.probes.is_empty() {
            return Ok(ReadView::default());
        }
        let overrides = partitions.all().iter().filter_map(|partition| {
            let place = place(table, partition);
            let lag = self.nodes.lag_at_one(&place, request.node(), ordered.request)?;
            Some((partition.id, self.nodes.snapshot_override(partition.store_id, lag)?))
        });
        Ok(ReadView::lagging(overrides.collect()))
    }

    /// Applies the plan before a write, while a plan is active. Returns the error to return after the write is done, if
    /// any.
    pub(super) async fn inject_write_fault(
        self,
        request: &Request<'_>,
        modifications: &[Routed<'_>],
        write: &WriteRequest,
    ) -> Result<Option<Error>, Error> {
        let mut places = places(modifications);
        places.retain(|place| !system::is_name(place.keyspace));
        if places.is_empty() {
            return Ok(None);
        }
        let number = self.nodes.begin();
        admit_writes(self.nodes, modifications, write)?;
        let statement = match write.write_kind {
            WriteKind::Cas => StatementKind::Conditional,
            WriteKind::Counter => StatementKind::Counter,
            WriteKind::Batch | WriteKind::UnloggedBatch => StatementKind::Batch,
            WriteKind::Simple | WriteKind::BatchLog | WriteKind::View | WriteKind::Cdc => StatementKind::Write,
        };
        let subject = Subject {
            places: &places,
            statement,
            consistency: write.consistency,
            node: request.node(),
        };
        let ordered = self.nodes.decide(number, &subject);
        if ordered.decision.delay_ms > 0 {
            self.nodes.hold(&ordered, ordered.decision.delay_ms).await;
        }
        if ordered.decision.splits
            && let Some(Routed {
                modification,
                partitions,
            }) = modifications.first()
            && let Some(key) = modification.partition_keys.first()
        {
            let partition = partitions.place(key).1;
            self.split_under(&modification.table, partition, Some(partitions.bound(key)))
                .await?;
        }
        let kind = Kind::Write(write.write_kind);
        let level = match write.write_kind {
            WriteKind::Cas => write.serial_consistency,
            _ => write.consistency,
        };
        if let Some(error) = self.refusal(&ordered, kind, level).await {
            return Err(error);
        }
        Ok(match &ordered.decision.outcome {
            Some(Outcome::TimeoutAfter(counts)) => Some(timeout(kind, level, self.nodes.set_size(), counts)),
            _ => None,
        })
    }

    /// TRUNCATE requires every replica of every partition, as in Cassandra.
    pub(super) fn admit_truncate(self, table: &Table, partitions: &TablePartitions) -> Result<(), Error> {
        if self.nodes.is_quiet() {
            return Ok(());
        }
        let sets: Vec<ReplicaSet> = match self.nodes.seats() {
            None => {
                let all = partitions.all().iter();
                all.map(|partition| self.nodes.replicas(&place(table, partition)))
                    .collect()
            }
            Some(seats) => seats.sets_of(i64::MIN, i64::MAX).collect(),
        };
        Ok(sets.iter().try_for_each(|set| set.admit(Consistency::All))?)
    }

    /// The error with which the plan ends a request before any work.
    async fn refusal(self, ordered: &Ordered, kind: Kind, consistency: Consistency) -> Option<Error> {
        match ordered.decision.outcome.as_ref()? {
            Outcome::Drop { held_ms } => {
                self.nodes.hold(ordered, *held_ms).await;
                Some(timeout(kind, consistency, self.nodes.set_size(), &Counts::default()))
            }
            // The activity is the request's number, so that every run of a plan has the same text.
            Outcome::Throttle { retry_after_ms } => {
                let retry_after = Duration::from_millis(*retry_after_ms);
                Some(Error::Throttled {
                    activity: activity_id(ordered.request.into()),
                    retry_after,
                })
            }
            Outcome::Unavailable => {
                let required = required(kind, consistency, self.nodes.set_size());
                Some(Error::Unavailable(Shortage {
                    consistency,
                    required,
                    alive: required.saturating_sub(1),
                }))
            }
            Outcome::Fail => Some(self.failure(kind, consistency)),
            Outcome::Timeout(counts) => Some(timeout(kind, consistency, self.nodes.set_size(), counts)),
            Outcome::TimeoutAfter(_) => None,
        }
    }

    /// The planned failure of a read or write.
    fn failure(self, kind: Kind, consistency: Consistency) -> Error {
        match kind {
            Kind::Read => Error::ReadFailure {
                consistency,
                cause: FailureCause::Replica,
            },
            Kind::Write(write_kind) => Error::WriteFailure {
                consistency,
                write_kind,
                cause: if self.rules.profile.is_cosmos() {
                    FailureCause::Conflict
                } else {
                    FailureCause::Replica
                },
            },
        }
    }

    /// Splits a physical partition while a request still holds its partition map: before a key, or in the middle.
    async fn split_under(
        self,
        table: &Table,
        partition: &PhysicalPartition,
        at: Option<KeyBound>,
    ) -> Result<(), Error> {
        let middle = || partition.span.middle_token().map(KeyBound::at_token);
        let at = at.filter(|at| at > partition.span.start()).or_else(middle);
        let at = at.unwrap_or_else(|| partition.span.start().clone());
        match self.catalog.split(table.storage_id, vec![at]).await {
            Ok(_) | Err(Error::Partitions(MapError::TooMany)) => Ok(()),
            Err(error) if error.is_overtaken() => Ok(()),
            Err(error) => Err(error),
        }
    }
}
