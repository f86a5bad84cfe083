//! What clients did and were told, and what a pair of registers would have answered.

/// Values of the two rows of a partition; `None`: there is no row.
pub(super) type Pair = [Option<i32>; 2];

/// What a client asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action {
    /// SELECT of both rows at SERIAL.
    Read,
    /// INSERT IF NOT EXISTS.
    Insert { row: usize, value: i32 },
    /// UPDATE IF v = expected (`None` is null: no row, too).
    Update {
        row: usize,
        expected: Option<i32>,
        value: i32,
    },
    /// UPDATE IF EXISTS.
    UpdateExisting { row: usize, value: i32 },
    /// DELETE IF v = expected.
    Delete { row: usize, expected: Option<i32> },
    /// DELETE IF EXISTS.
    DeleteExisting { row: usize },
    /// A batch of two UPDATEs, each IF v = expected.
    Both { expected: Pair, values: [i32; 2] },
    /// A batch of two INSERTs IF NOT EXISTS.
    InsertBoth { values: [i32; 2] },
    /// A batch: one row is updated IF v = expected, the other as it comes, or deleted.
    Beside {
        row: usize,
        expected: Option<i32>,
        value: i32,
        other: Option<i32>,
    },
}

/// What it was told. Of rows that an answer does not show, it tells nothing: the outer `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// `[applied]` true.
    Applied,
    /// `[applied]` false, with the values shown.
    Refused([Option<Option<i32>>; 2]),
    /// What a read showed.
    Seen(Pair),
}

/// One operation of one client.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    /// The partition.
    pub(super) pair: i32,
    /// When it was sent.
    pub(super) called: u64,
    /// When and what was answered; `None`: the server was gone.
    pub(super) answer: Option<(u64, Answer)>,
    pub(super) action: Action,
}

impl Operation {
    /// Whether it is known to have written.
    pub(super) fn was_applied(&self) -> bool {
        matches!(self.answer, Some((_, Answer::Applied)))
    }

    /// Whether the answer can be that of this state.
    pub(super) fn explained_by(&self, before: &Pair) -> Option<Pair> {
        let after = self.action.applied_to(before);
        match (&self.answer, after) {
            // In doubt: it counts only where it writes.
            (None, after) => after.filter(|after| after != before),
            (Some((_, Answer::Applied)), after) => after,
            (Some((_, Answer::Seen(seen))), _) => (seen == before).then_some(*before),
            (Some((_, Answer::Refused(shown))), None) => {
                let agrees = |(shown, value): (&Option<Option<i32>>, &Option<i32>)| shown.is_none_or(|v| v == *value);
                shown.iter().zip(before).all(agrees).then_some(*before)
            }
            (Some((_, Answer::Refused(_))), Some(_)) => None,
        }
    }
}

impl Action {
    /// The state that it leaves; `None`: it is refused. A read leaves what is there.
    pub(super) fn applied_to(&self, before: &Pair) -> Option<Pair> {
        let of = |row: &usize| before.get(*row).copied().flatten();
        let with = |row: &usize, value: Option<i32>| {
            let mut after = *before;
            if let Some(slot) = after.get_mut(*row) {
                *slot = value;
            }
            after
        };
        match self {
            Self::Read => Some(*before),
            Self::Insert { row, value } => of(row).is_none().then(|| with(row, Some(*value))),
            Self::Update { row, expected, value } => (of(row) == *expected).then(|| with(row, Some(*value))),
            Self::UpdateExisting { row, value } => of(row).is_some().then(|| with(row, Some(*value))),
            Self::Delete { row, expected } => (of(row) == *expected).then(|| with(row, None)),
            Self::DeleteExisting { row } => of(row).is_some().then(|| with(row, None)),
            Self::Both { expected, values } => (before == expected).then_some(values.map(Some)),
            Self::InsertBoth { values } => (*before == [None, None]).then_some(values.map(Some)),
            Self::Beside {
                row,
                expected,
                value,
                other,
            } => (of(row) == *expected).then(|| {
                let mut after = [*other; 2];
                if let Some(slot) = after.get_mut(*row) {
                    *slot = Some(*value);
                }
                after
            }),
        }
    }

    /// The rows whose values a refusal shows.
    pub(super) fn shows(&self) -> [bool; 2] {
        match self {
            Self::Read | Self::Both { .. } | Self::InsertBoth { .. } => [true, true],
            Self::Insert { row, .. }
            | Self::Update { row, .. }
            | Self::UpdateExisting { row, .. }
            | Self::Delete { row, .. }
            | Self::DeleteExisting { row }
            | Self::Beside { row, .. } => [*row == 0, *row == 1],
        }
    }

    /// Changes the values that it writes.
    pub(super) fn for_each_written(&mut self, mut change: impl FnMut(&mut i32)) {
        match self {
            Self::Read | Self::Delete { .. } | Self::DeleteExisting { .. } => {}
            Self::Insert { value, .. } | Self::Update { value, .. } | Self::UpdateExisting { value, .. } => {
                change(value)
            }
            Self::Both { values, .. } | Self::InsertBoth { values } => values.iter_mut().for_each(change),
            Self::Beside { value, other, .. } => {
                change(value);
                other.iter_mut().for_each(change);
            }
        }
    }

    /// The values that it writes.
    pub(super) fn written(&self) -> Vec<i32> {
        match self {
            Self::Read | Self::Delete { .. } | Self::DeleteExisting { .. } => Vec::new(),
            Self::Insert { value, .. } | Self::Update { value, .. } | Self::UpdateExisting { value, .. } => {
                vec![*value]
            }
            Self::Both { values, .. } | Self::InsertBoth { values } => values.to_vec(),
            Self::Beside { value, other, .. } => std::iter::once(*value).chain(*other).collect(),
        }
    }
}

/// The operations of each pair, in order of their calls.
pub(super) fn by_pair(history: &[Operation], pairs: i32) -> Vec<Vec<Operation>> {
    (0..pairs)
        .map(|pair| {
            let mut of_pair: Vec<_> = history.iter().filter(|o| o.pair == pair).cloned().collect();
            of_pair.sort_by_key(|operation| operation.called);
            of_pair
        })
        .collect()
}
