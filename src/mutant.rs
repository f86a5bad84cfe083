//! Seeded bugs: what the simulation must catch, so that its silence about the real code means something.
//!
//! Each [`Mutant`] is a mistake that could be made in this code, at the place where it would be made. `is_on` is a constant
//! `false` unless the feature `simulation` is on, so a server has none of it; with the feature one is switched on for a thread,
//! by the test that must notice.

/// A seeded bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mutant {
    /// A write is acknowledged before the store has it.
    AcknowledgeBeforeCommit,
    /// A batch goes to the store in two commits.
    BatchInParts,
    /// The stripe lock of a conditional or counter write is let go when its request is, though its commit goes on.
    UnlockAtCancel,
    /// A conditional write does not take its stripe lock.
    SkipStripe,
    /// A condition that was judged before the store was opened again counts as judged after.
    JudgeByOldOpening,
    /// A start does not read the timestamps that were given before it.
    ForgetLastTimestamp,
    /// A write is dated by the clock alone: timestamps repeat, and go back with it.
    TimestampsRepeat,
    /// A conditional write is dated as any other, also where what it reads was dated ahead by a client.
    ConditionBelowRead,
    /// A counter whose commit failed is increased once more.
    RetryCounter,
    /// The right half of a split begins one token too high.
    SplitOffByOne,
    /// A merge keeps the range of its left half only.
    MergeLosesRight,
    /// A split or merge is answered and in force without its record.
    ChangeNotPersisted,
    /// The list of physical partitions that is in force after a change is the one before it. An assertion stops it, so clients see
    /// nothing of it: a test of its own does (tests/database/moves.rs).
    OldListShown,
    /// A change of the catalog stops where its request is dropped.
    ChangeStopsAtCancel,
    /// A change of the catalog that failed counts as not done.
    ForgetUnsureChange,
    /// The next page begins with the last row of the one before.
    PageRepeatsRow,
    /// A read sees the store as it was a commit ago.
    StaleSnapshot,
    /// What a request cost beyond what there was is forgotten.
    ForgetDebt,
    /// A table's throughput is not divided anew when a physical partition is split.
    KeepShareAtSplit,
    /// Units spent under a replaced partition map are charged to no partition.
    StaleRouteIsFree,
    /// What is held back for a request in work stays held when the request goes.
    KeepHeldAtCancel,
    /// The parts of one scan are read as of different moments.
    ScanAtManyMoments,
    /// What is written to a physical partition while it is copied is not copied again.
    NoteNothing,
    /// The batch log is not read at start.
    ForgetBatchLog,
    /// A purge that did not take place, since the row had changed, counts as done: the deletion record goes.
    VoidedPurgeCounts,
    /// A sweep removes tombstones and deletions before their grace is over.
    TombstoneDroppedEarly,
    /// A sweep goes on in a physical partition that is being copied. Sweeps are slower than copies in the simulation, which hardly meets it:
    /// a test of its own does (tests/database/moves.rs).
    SweepWhileCopied,
    /// What an older copy left in the target of a move stays: before rows are copied, after a move that failed, and at start.
    TargetNotEmptied,
    /// A group is answered before it is durable, though the settings say that it is not.
    SkipSync,
    /// A read at QUORUM is answered by one replica, though it lags.
    LagAtQuorum,
    /// A collection that is written anew keeps what was in it.
    OverwriteKeepsElements,
    /// A backup takes its snapshots while writes go on. The simulation makes no backups: a test of its own does (tests/database/backup.rs).
    SnapshotWithoutGates,
}

impl Mutant {
    /// Those that the simulation must catch.
    pub const ALL: [Self; 29] = [
        Self::AcknowledgeBeforeCommit,
        Self::BatchInParts,
        Self::UnlockAtCancel,
        Self::SkipStripe,
        Self::JudgeByOldOpening,
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
        Self::ForgetDebt,
        Self::KeepShareAtSplit,
        Self::StaleRouteIsFree,
        Self::KeepHeldAtCancel,
        Self::ScanAtManyMoments,
        Self::NoteNothing,
        Self::ForgetBatchLog,
        Self::VoidedPurgeCounts,
        Self::TombstoneDroppedEarly,
        Self::TargetNotEmptied,
        Self::SkipSync,
        Self::LagAtQuorum,
        Self::OverwriteKeepsElements,
    ];
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

/// Whether this bug is there.
#[cfg(feature = "simulation")]
#[must_use]
pub(crate) fn is_on(mutant: Mutant) -> bool {
    ON.get() == Some(mutant)
}

/// Whether the next change of the catalog panics between its commit and its publication.
#[cfg(feature = "simulation")]
pub fn panic_before_publication(panics: bool) {
    PANICS.set(panics);
}

/// Panics where [`panic_before_publication`] has asked for it, once.
#[cfg(feature = "simulation")]
pub(crate) fn panic_if_asked() {
    assert!(
        !PANICS.replace(false),
        "a test asked for a panic before the publication"
    );
}

/// Never panics: only a test can ask for it.
#[cfg(not(feature = "simulation"))]
pub(crate) const fn panic_if_asked() {}

/// Whether this bug is there: never.
#[cfg(not(feature = "simulation"))]
#[must_use]
pub(crate) const fn is_on(_: Mutant) -> bool {
    false
}
