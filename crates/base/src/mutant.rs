//! Seeded bugs: the simulation must catch them, so that its silence about the real code is evidence.
//!
//! Each [`Mutant`] is a plausible mistake, at the place where it would be made. `is_on` is a constant `false` unless
//! the feature `simulation` is on, so a server contains none of it. With the feature, the test that must notice a bug
//! switches it on for its thread.

/// A seeded bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mutant {
    /// A write is acknowledged before the store has it.
    AcknowledgeBeforeCommit,
    /// A batch goes to the store in two commits.
    BatchInParts,
    /// The locks of a conditional or counter write are released with its request, though its commit goes on.
    UnlockAtCancel,
    /// A conditional write does not lock its partition.
    SkipLock,
    /// A condition that was checked before the store was reopened counts as checked after it.
    CheckByOldOpening,
    /// A start does not read the timestamps issued before it.
    ForgetLastTimestamp,
    /// A write's timestamp comes from the clock alone: timestamps repeat, and go back with the clock.
    TimestampsRepeat,
    /// A conditional write gets a timestamp like any other, even if a client's timestamp on the row that it reads is
    /// later.
    ConditionBelowRead,
    /// A counter whose commit failed is increased again.
    RetryCounter,
    /// The right half of a split begins one token too high.
    SplitOffByOne,
    /// A merge keeps the range of its left half only.
    MergeLosesRight,
    /// A split or merge is answered and published without its record.
    ChangeNotPersisted,
    /// The partition map published after a change is the one before it. An assertion stops it, so clients do not see
    /// it: a separate test does (tests/database/moves.rs).
    OldListShown,
    /// A change of the catalog is cancelled with its request.
    ChangeStopsAtCancel,
    /// A failed change of the catalog counts as not done.
    ForgetUnsureChange,
    /// The next page begins with the last row of the one before.
    PageRepeatsRow,
    /// A read sees the store as it was one commit ago.
    StaleSnapshot,
    /// A server that another one has replaced answers reads.
    FormerOwnerAnswers,
    /// The overdraft of a request is forgotten.
    ForgetDebt,
    /// A table's throughput is not divided again when a physical partition is split.
    KeepShareAtSplit,
    /// Units spent under a replaced partition map are charged to no partition.
    StaleRouteIsFree,
    /// Units reserved for a request in progress stay reserved after the request ends.
    KeepHeldAtCancel,
    /// The parts of one scan are read at different snapshots.
    ScanAtManyMoments,
    /// Writes to a physical partition during its copy are not copied again.
    RecordNothing,
    /// The batch log is not read at start.
    ForgetBatchLog,
    /// Only the main store's batch log is read at start.
    ForgetLogsBeside,
    /// Writes that are sent to their owner are dated by the sender, before the owner has locked their partition.
    DatedBySender,
    /// A write is sent to its owner without its condition.
    ConditionStaysBehind,
    /// A purge that did not take place, because the row had changed, counts as done: the deletion record is removed.
    VoidedPurgeCounts,
    /// A sweep removes tombstones and deletions before their grace is over.
    TombstoneDroppedEarly,
    /// A sweep goes on in a physical partition that is being copied. Sweeps are slower than copies in the simulation,
    /// which hardly meets it: a separate test does (tests/database/moves.rs).
    SweepWhileCopied,
    /// Rows of an older copy stay in the target of a move: before rows are copied, after a failed move, and at the
    /// start.
    TargetNotEmptied,
    /// A group is answered before it is durable, though the settings require durability.
    SkipSync,
    /// A read at QUORUM is answered by one replica, although it lags.
    LagAtQuorum,
    /// A collection that is overwritten keeps its old elements.
    OverwriteKeepsElements,
    /// A row whose key in a view changes stays under its old key too.
    ViewKeepsOldRow,
    /// A replay of a logged batch computes no rows of views anew.
    ReplayForgetsViews,
    /// A backup takes its snapshots while writes go on. The simulation makes no backups: a separate test does
    /// (tests/database/backup.rs).
    SnapshotWithoutLatches,
    /// A node asks the owner again, though it may have carried out the first question, which must not be done twice.
    ResendForwarded,
    /// The owner executes a message that was planned by another definition of its table.
    ForeignDefinition,
    /// The owner acknowledges a change of the schema before all nodes have applied it.
    AnswerBeforeApplied,
    /// A node that has lost touch with the owner goes on answering.
    StaleEdge,
}

impl Mutant {
    /// The bugs that the simulation must catch.
    pub const ALL: [Self; 35] = [
        Self::AcknowledgeBeforeCommit,
        Self::BatchInParts,
        Self::UnlockAtCancel,
        Self::SkipLock,
        Self::CheckByOldOpening,
        Self::ForgetLastTimestamp,
        Self::TimestampsRepeat,
        Self::ConditionBelowRead,
        Self::RetryCounter,
        Self::SplitOffByOne,
        Self::MergeLosesRight,
        Self::ChangeNotPersisted,
        Self::ChangeStopsAtCancel,
        Self::ForgetUnsureChange,
        Self::PageRepeatsRow,
        Self::StaleSnapshot,
        Self::FormerOwnerAnswers,
        Self::ForgetDebt,
        Self::KeepShareAtSplit,
        Self::StaleRouteIsFree,
        Self::KeepHeldAtCancel,
        Self::ScanAtManyMoments,
        Self::RecordNothing,
        Self::ForgetBatchLog,
        Self::ForgetLogsBeside,
        Self::DatedBySender,
        Self::ConditionStaysBehind,
        Self::VoidedPurgeCounts,
        Self::TombstoneDroppedEarly,
        Self::TargetNotEmptied,
        Self::SkipSync,
        Self::LagAtQuorum,
        Self::OverwriteKeepsElements,
        Self::ViewKeepsOldRow,
        Self::ReplayForgetsViews,
    ];

    /// The bugs that the simulation of fleets must catch. With the second, an edge that goes takes the locks of its
    /// conditional write along, while the owner's commit goes on.
    pub const OF_FLEETS: [Self; 5] = [
        Self::ResendForwarded,
        Self::UnlockAtCancel,
        Self::ForeignDefinition,
        Self::AnswerBeforeApplied,
        Self::StaleEdge,
    ];

    /// Whether it is made where messages are sent, so that only a run through bytes meets it.
    #[must_use]
    pub const fn is_of_messages(self) -> bool {
        matches!(self, Self::DatedBySender | Self::ConditionStaysBehind)
    }
}

#[cfg(feature = "simulation")]
thread_local! {
    static ON: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
    static PANICS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Switches one on for this thread, or all off.
#[cfg(feature = "simulation")]
pub fn set(mutant: Option<Mutant>) {
    ON.set(mutant);
}

/// Whether this bug is on.
#[cfg(feature = "simulation")]
#[must_use]
pub fn is_on(mutant: Mutant) -> bool {
    ON.get() == Some(mutant)
}

/// Makes the next change of the catalog panic between its commit and its publication, or not.
#[cfg(feature = "simulation")]
pub fn panic_before_publication(panics: bool) {
    PANICS.set(panics);
}

/// Panics once if [`panic_before_publication`] requested it.
#[cfg(feature = "simulation")]
pub fn panic_if_asked() {
    assert!(
        !PANICS.replace(false),
        "a test asked for a panic before the publication"
    );
}

/// Never panics: only a test can request it.
#[cfg(not(feature = "simulation"))]
pub const fn panic_if_asked() {}

/// Whether this bug is on: never.
#[cfg(not(feature = "simulation"))]
#[must_use]
pub const fn is_on(_: Mutant) -> bool {
    false
}
