//! Relations of the change feed.

/// What a relation says about a read of the change feed, as in Azure Cosmos DB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FeedFunction {
    /// `cosmos_changefeed_start_time()`
    StartTime,
    /// `cosmos_changefeed_from_start()`
    FromStart,
    /// `cosmos_feedrange()`
    FeedRange,
    /// `cosmos_fullfidelity_changefeed()`
    FullFidelity,
}

impl FeedFunction {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::StartTime, Self::FromStart, Self::FeedRange, Self::FullFidelity];

    /// The name of the function, as a name is folded.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StartTime => "cosmos_changefeed_start_time",
            Self::FromStart => "cosmos_changefeed_from_start",
            Self::FeedRange => "cosmos_feedrange",
            Self::FullFidelity => "cosmos_fullfidelity_changefeed",
        }
    }
}
