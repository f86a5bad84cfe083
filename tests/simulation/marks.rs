//! Coverage marks: a campaign that never reached one of these events has proved nothing.

use std::collections::BTreeMap;

/// An event without which the checks prove little.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    SplitDuringWrite,
    CrashInSplit,
    CrashInWrite,
    CrashInTruncate,
    CrashInRecovery,
    CrashWithWritesQueued,
    MediumDied,
    RequestDropped,
    ClockSetBack,
    ClockSetForward,
    StaleRoute,
    PageOverSplit,
    PageOverCrash,
    UnknownHappened,
    UnknownDidNotHappen,
    ConditionMet,
    ConditionNotMet,
    SplitBySize,
    MergeBySize,
    SplitByStatement,
    MergeByStatement,
    MergeOfTwoStores,
    IndexRead,
    Throttled,
    DebtCarried,
    SpentByOldList,
    ReplicasMissed,
    Lifted,
    Lowered,
    CrashInLift,
    BatchWhileApart,
    DatedByServer,
    DatedAhead,
    RowsSwept,
    DeletionsSwept,
    SweptDuringLift,
    CameLate,
    Expired,
    LowerFailed,
    LoweredAgain,
    CollectionGrown,
    CollectionShrunk,
    BatchOfManyRows,
    ReplicasLagged,
    WriteTorn,
    Command,
    ViewCompared,
    ViewWhileApart,
    FeedFollowed,
    AskedFormerOwner,
}

impl Mark {
    pub(crate) const ALL: [Self; 50] = [
        Self::SplitDuringWrite,
        Self::CrashInSplit,
        Self::CrashInWrite,
        Self::CrashInTruncate,
        Self::CrashInRecovery,
        Self::CrashWithWritesQueued,
        Self::MediumDied,
        Self::RequestDropped,
        Self::ClockSetBack,
        Self::ClockSetForward,
        Self::StaleRoute,
        Self::PageOverSplit,
        Self::PageOverCrash,
        Self::UnknownHappened,
        Self::UnknownDidNotHappen,
        Self::ConditionMet,
        Self::ConditionNotMet,
        Self::SplitBySize,
        Self::MergeBySize,
        Self::SplitByStatement,
        Self::MergeByStatement,
        Self::MergeOfTwoStores,
        Self::IndexRead,
        Self::Throttled,
        Self::DebtCarried,
        Self::SpentByOldList,
        Self::ReplicasMissed,
        Self::Lifted,
        Self::Lowered,
        Self::CrashInLift,
        Self::BatchWhileApart,
        Self::DatedByServer,
        Self::DatedAhead,
        Self::RowsSwept,
        Self::DeletionsSwept,
        Self::SweptDuringLift,
        Self::CameLate,
        Self::Expired,
        Self::LowerFailed,
        Self::LoweredAgain,
        Self::CollectionGrown,
        Self::CollectionShrunk,
        Self::BatchOfManyRows,
        Self::ReplicasLagged,
        Self::WriteTorn,
        Self::Command,
        Self::ViewCompared,
        Self::ViewWhileApart,
        Self::FeedFollowed,
        Self::AskedFormerOwner,
    ];
}

/// How often each was reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks(BTreeMap<Mark, u64>);

impl Marks {
    pub(crate) fn note(&mut self, mark: Mark) {
        *self.0.entry(mark).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (mark, count) in &other.0 {
            *self.0.entry(*mark).or_default() += count;
        }
    }

    pub(crate) fn count(&self, mark: Mark) -> u64 {
        self.0.get(&mark).copied().unwrap_or_default()
    }

    /// The marks that were never reached.
    pub(crate) fn missing(&self) -> Vec<Mark> {
        Mark::ALL.into_iter().filter(|mark| self.count(*mark) == 0).collect()
    }
}
