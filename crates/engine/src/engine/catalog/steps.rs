//! The change of a partition map as a state machine: which step follows which outcome, without stores, locks or time.
//!
//! [`begin`] gives the first state, [`step`] the next one for each outcome; both list the actions there, in order. The
//! caller performs the actions and reports the outcome of the last one, or of the first one that fails. A split or
//! merge changes the map alone. A lift moves a partition to a new store, a join moves it to one that is there (lift.rs
//! describes the copy).
//!
//! ```text
//! state            actions                                on disk before the outcome       after a crash      on failure
//! ---------------  -------------------------------------  -------------------------------  -----------------  ----------
//! Making           RecordStore, Unlock                    (lift) store: being made         old place          Refused
//! AwaitingRemoval  Unlock, AwaitRemoval                   (join) what was left goes         old place          Undone
//! Tracking         BeginTracking                          –                                old place          Undone
//! Copying          Copy                                   target: part of the rows         old place          Undone
//! CatchingUp       CopyTracked, up to ROUNDS_MAX times    target: nearly all rows          old place          Undone
//! Syncing          MakeDurable                            target: nearly all, durable      old place          Undone
//! Closing          Lock, HoldLatch, CheckUnchanged        the same                         old place          Undone
//! CopyingLast      CopyLast, EndTracking, MakeMap         target: all rows                 old place          Undone
//! Recording        Record                                 map · store                      old or new place   InDoubt
//! Publishing       Publish                                the same, durable                new place          InDoubt
//! InDoubt          WakeWaiters, Unlock, SpawnResolution   as Recording                     old or new place   –
//! Moved            Supersede, LeaveSource,                source: rows go                  new place          –
//!                  EndPublication, Unlock
//! Undone           EndTracking, Release, Unlock,          target: rows go                  old place          –
//!                  RemoveCopied
//! Refused          Unlock                                 (lift) store: being made         old place          –
//! ```
//! `Record` is one commit in the main store, after the target is durable. It holds the map, and the target as a store in
//! use. So after no crash does the map name a store without all rows. Rows outside the map are removed (leftovers.rs),
//! and a target is emptied first, so that no crash brings removed rows back. A split or merge begins at `Recording`,
//! moves no rows, holds no latch and leaves nothing in a source.
//!
//! `InDoubt` ends when the main store has been read again: [`Event::Found`] says which map it holds.

/// Recorded keys that are few enough to be copied while writers wait.
pub(super) const LAST_KEYS: usize = 256;

/// Rounds in which recorded keys are copied while writers work; then the rest is copied while they wait.
pub(super) const ROUNDS_MAX: usize = 16;

/// The kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A split or merge: other partitions in the same store.
    InPlace,
    /// To a new store of its own.
    Lift,
    /// Into a store that is there.
    Join,
}

/// Its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Making,
    AwaitingRemoval,
    Tracking,
    Copying,
    /// After a number of rounds.
    CatchingUp(usize),
    Syncing,
    Closing,
    CopyingLast,
    Recording,
    Publishing,
    InDoubt,
    Moved,
    Undone,
    Refused,
}

/// A change at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) kind: Kind,
    pub(super) phase: Phase,
}

/// A step of the caller. Infallible ones are marked so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Records, durably, that the target is being made.
    RecordStore,
    /// Waits until the target holds no rows of an earlier move.
    AwaitRemoval,
    /// Holds the latch until an empty commit is done; keys written after it are recorded.
    BeginTracking,
    /// Clones the range of the source, or empties that of the target and copies a snapshot.
    Copy,
    /// Copies the recorded keys.
    CopyTracked,
    /// Makes the target durable.
    MakeDurable,
    /// Takes the lock of changes and resolves a change in doubt.
    Lock,
    /// Holds the latch: writers wait. Cannot fail.
    HoldLatch,
    /// Fails if the table changed meanwhile.
    CheckUnchanged,
    /// Copies the last recorded keys.
    CopyLast,
    /// Stops recording keys. Cannot fail.
    EndTracking,
    /// Makes the next map.
    MakeMap,
    /// Records the map, the target as a store in use, and the rows left in the source, in one commit.
    Record,
    /// Publishes the map.
    Publish,
    /// Makes requests that wait for the latch use the new map. Cannot fail.
    Supersede,
    /// Removes the rows in the source, in the background. Cannot fail.
    LeaveSource,
    /// Ends the doubt about the catalog. Cannot fail.
    EndPublication,
    /// Wakes requests that wait for the latch: they are refused while the catalog is in doubt. Cannot fail.
    WakeWaiters,
    /// Resolves the doubt in the background. Cannot fail.
    SpawnResolution,
    /// Releases the latch. Cannot fail.
    Release,
    /// Drops the lock of changes. Cannot fail.
    Unlock,
    /// Removes the copied rows from the target, in the background. Cannot fail.
    RemoveCopied,
}

/// The outcome of a state's actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// All are done.
    Done,
    /// The number of recorded keys that were copied.
    Copied(usize),
    /// One failed; those after it were not begun.
    Failed,
    /// The main store was read again: whether it holds the new map.
    Found(bool),
}

/// The first state of a change that was checked.
pub(super) const fn begin(kind: Kind) -> (State, &'static [Action]) {
    match kind {
        Kind::InPlace => enter(kind, Phase::Recording),
        Kind::Lift => enter(kind, Phase::Making),
        Kind::Join => enter(kind, Phase::AwaitingRemoval),
    }
}

/// The next state and its actions. An outcome that a state cannot have changes nothing.
pub(super) const fn step(state: State, event: Event) -> (State, &'static [Action]) {
    use Phase::{
        AwaitingRemoval, CatchingUp, Closing, Copying, CopyingLast, InDoubt, Making, Moved, Publishing, Recording,
        Refused, Syncing, Tracking, Undone,
    };
    let next = match (state.phase, event) {
        (Making | AwaitingRemoval, Event::Done) => Tracking,
        (Making, Event::Failed) => Refused,
        (Tracking, Event::Done) => Copying,
        (Copying, Event::Done) => CatchingUp(1),
        (CatchingUp(rounds), Event::Copied(keys)) if keys > LAST_KEYS && rounds < ROUNDS_MAX => CatchingUp(rounds + 1),
        (CatchingUp(_), Event::Copied(_)) => Syncing,
        (Syncing, Event::Done) => Closing,
        (Closing, Event::Done) => CopyingLast,
        (CopyingLast, Event::Done) => Recording,
        (AwaitingRemoval | Tracking | Copying | CatchingUp(_) | Syncing | Closing | CopyingLast, Event::Failed) => {
            Undone
        }
        (Recording, Event::Done) => Publishing,
        (Publishing, Event::Done) => Moved,
        (Recording | Publishing, Event::Failed) => InDoubt,
        (InDoubt, Event::Found(true)) => Moved,
        (InDoubt, Event::Found(false)) => Undone,
        _ => return (state, &[]),
    };
    enter(state.kind, next)
}

const fn enter(kind: Kind, phase: Phase) -> (State, &'static [Action]) {
    use Action as A;
    let actions: &'static [Action] = match (phase, kind) {
        (Phase::Making, _) => &[A::RecordStore, A::Unlock],
        (Phase::AwaitingRemoval, _) => &[A::Unlock, A::AwaitRemoval],
        (Phase::Tracking, _) => &[A::BeginTracking],
        (Phase::Copying, _) => &[A::Copy],
        (Phase::CatchingUp(_), _) => &[A::CopyTracked],
        (Phase::Syncing, _) => &[A::MakeDurable],
        (Phase::Closing, _) => &[A::Lock, A::HoldLatch, A::CheckUnchanged],
        (Phase::CopyingLast, _) => &[A::CopyLast, A::EndTracking, A::MakeMap],
        (Phase::Recording, _) => &[A::Record],
        (Phase::Publishing, _) => &[A::Publish],
        (Phase::InDoubt, Kind::InPlace) => &[],
        (Phase::InDoubt, _) => &[A::WakeWaiters, A::Unlock, A::SpawnResolution],
        (Phase::Moved, Kind::InPlace) => &[A::EndPublication],
        (Phase::Moved, _) => &[A::Supersede, A::LeaveSource, A::EndPublication, A::Unlock],
        (Phase::Undone, Kind::InPlace) => &[],
        (Phase::Undone, _) => &[A::EndTracking, A::Release, A::Unlock, A::RemoveCopied],
        (Phase::Refused, _) => &[A::Unlock],
    };
    (State { kind, phase }, actions)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys of the partition, each a bit: two that exist when the move begins, one that is written during the copy, and
    /// one that is written while recorded keys are copied.
    const OLD: u8 = 0b0011;
    const MEANWHILE: u8 = 0b0100;
    const LAST: u8 = 0b1000;
    const ALL: u8 = OLD | MEANWHILE | LAST;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Made {
        No,
        Begun,
        InUse,
    }

    /// The state on disk, which is all that the next start can read.
    #[derive(Clone, Copy, Debug)]
    struct Disk {
        /// Rows of the partition in its old store and in its new one.
        source: u8,
        target: u8,
        /// The record of the new store of a lift.
        made: Made,
        /// Whether the map names the target.
        is_new: bool,
        /// Writes that clients have seen acknowledged.
        acknowledged: u8,
    }

    impl Disk {
        fn at_first(kind: Kind) -> Self {
            Self {
                source: OLD,
                // Rows of an earlier lift.
                target: if kind == Kind::Join { 0b0001 } else { 0 },
                made: Made::No,
                is_new: false,
                acknowledged: OLD,
            }
        }

        /// All states of the disk that a crash during an action may leave, the last of which is that after it.
        fn during(self, kind: Kind, action: Action) -> Vec<Self> {
            let mut all = vec![self];
            let mut then = |change: &dyn Fn(&mut Self)| {
                let mut next = *all.last().unwrap();
                change(&mut next);
                all.push(next);
            };
            match action {
                Action::RecordStore => then(&|disk| disk.made = Made::Begun),
                Action::AwaitRemoval => then(&|disk| disk.target = 0),
                Action::Copy => {
                    then(&|disk| disk.target = 0b0001);
                    then(&|disk| {
                        disk.source |= MEANWHILE;
                        disk.acknowledged |= MEANWHILE;
                    });
                    then(&|disk| disk.target = OLD);
                }
                Action::CopyTracked => {
                    then(&|disk| disk.target |= MEANWHILE);
                    then(&|disk| {
                        disk.source |= LAST;
                        disk.acknowledged |= LAST;
                    });
                }
                Action::CopyLast => then(&|disk| disk.target = disk.source),
                Action::Record => then(&|disk| {
                    disk.is_new = true;
                    if kind == Kind::Lift {
                        disk.made = Made::InUse;
                    }
                }),
                Action::LeaveSource => {
                    then(&|disk| disk.source &= 0b1100);
                    then(&|disk| disk.source = 0);
                }
                Action::RemoveCopied => {
                    then(&|disk| disk.target &= 0b1100);
                    then(&|disk| {
                        disk.target = 0;
                        disk.made = Made::No;
                    });
                }
                _ => {}
            }
            all
        }

        /// The disk after the next start, which removes stores that are not in use, and rows where the map does not
        /// name them.
        fn started(mut self, kind: Kind) -> Self {
            if kind == Kind::Lift && self.made != Made::InUse {
                self.target = 0;
                self.made = Made::No;
            }
            if self.is_new {
                self.source = 0;
            } else {
                self.target = 0;
            }
            self
        }

        fn check(self, kind: Kind, at: &dyn std::fmt::Debug) {
            let (here, there) = match self.is_new {
                true => (self.target, self.source),
                false => (self.source, self.target),
            };
            assert_eq!(here, self.acknowledged, "{at:?}: rows are lost, {self:?}");
            assert_eq!(there, 0, "{at:?}: rows lie where the map does not name them, {self:?}");
            let made = if kind == Kind::Lift && self.is_new {
                Made::InUse
            } else {
                Made::No
            };
            assert_eq!(self.made, made, "{at:?}: {self:?}");
        }
    }

    /// Runs the machine. Crashes at each point, and makes each action that can fail do so at each point too.
    fn follow(kind: Kind, (state, actions): (State, &[Action]), mut disk: Disk, seen: &mut Vec<Phase>) {
        if !seen.contains(&state.phase) {
            seen.push(state.phase);
        }
        for action in actions {
            let points = disk.during(kind, *action);
            for point in &points {
                point.started(kind).check(kind, &(state, action));
                if can_fail(*action) {
                    follow(kind, step(state, Event::Failed), *point, seen);
                }
            }
            disk = *points.last().unwrap();
        }
        let event = match state.phase {
            Phase::Moved | Phase::Undone | Phase::Refused => {
                // Refused leaves the record of a store that the next start removes.
                let disk = if state.phase == Phase::Refused {
                    disk.started(kind)
                } else {
                    disk
                };
                return disk.check(kind, &state);
            }
            Phase::InDoubt => Event::Found(disk.is_new),
            Phase::CatchingUp(_) => Event::Copied(0),
            _ => Event::Done,
        };
        follow(kind, step(state, event), disk, seen);
    }

    fn can_fail(action: Action) -> bool {
        use Action as A;
        !matches!(
            action,
            A::HoldLatch
                | A::EndTracking
                | A::Supersede
                | A::LeaveSource
                | A::EndPublication
                | A::WakeWaiters
                | A::SpawnResolution
                | A::Release
                | A::Unlock
                | A::RemoveCopied
        )
    }

    #[test]
    fn no_crash_and_no_failure_of_a_move_loses_rows_or_leaves_some_elsewhere() {
        for (kind, phases) in [(Kind::Lift, 13), (Kind::Join, 12)] {
            let mut seen = Vec::new();
            follow(kind, begin(kind), Disk::at_first(kind), &mut seen);
            assert_eq!(seen.len(), phases, "{seen:?}");
        }
        // Keys written meanwhile are among the recorded ones.
        let mut disk = Disk::at_first(Kind::Lift);
        let (mut state, mut actions) = begin(Kind::Lift);
        while state.phase != Phase::Moved {
            for action in actions {
                disk = *disk.during(Kind::Lift, *action).last().unwrap();
            }
            let event = match state.phase {
                Phase::CatchingUp(_) => Event::Copied(0),
                _ => Event::Done,
            };
            (state, actions) = step(state, event);
        }
        assert_eq!((disk.target, disk.acknowledged), (ALL, ALL));
    }

    /// The lock that was taken is dropped at every end, and nothing is recorded or published without it.
    #[test]
    fn the_lock_and_the_gate_are_held_from_the_last_copy_to_the_end() {
        fn walk((state, actions): (State, &[Action]), mut locked: bool, mut held: bool, mut tracking: bool) {
            for action in actions {
                match action {
                    Action::Lock => locked = true,
                    Action::Unlock => locked = false,
                    Action::HoldLatch => held = true,
                    Action::BeginTracking => tracking = true,
                    Action::EndTracking => tracking = false,
                    Action::Release | Action::Supersede => held = false,
                    Action::CopyLast => assert!(locked && held && tracking, "{state:?}"),
                    Action::MakeMap | Action::Record | Action::Publish => {
                        assert!(locked && held && !tracking, "{state:?}")
                    }
                    Action::LeaveSource | Action::RemoveCopied => assert!(!held && !tracking, "{state:?}"),
                    Action::RecordStore => assert!(locked, "{state:?}"),
                    _ => {}
                }
                if can_fail(*action) {
                    walk(step(state, Event::Failed), locked, held, tracking);
                }
            }
            match state.phase {
                Phase::Moved | Phase::Undone | Phase::Refused => assert!(!locked && !held && !tracking, "{state:?}"),
                // The resolver of the doubt has taken the lock; the latch stays held.
                Phase::InDoubt => [true, false]
                    .map(|is_new| {
                        assert!(!locked && held, "{state:?}");
                        walk(step(state, Event::Found(is_new)), locked, held, tracking);
                    })
                    .into_iter()
                    .collect(),
                Phase::CatchingUp(_) => walk(step(state, Event::Copied(0)), locked, held, tracking),
                _ => walk(step(state, Event::Done), locked, held, tracking),
            }
        }
        for kind in [Kind::Lift, Kind::Join] {
            // The check of the move has taken the lock.
            walk(begin(kind), true, false, false);
        }
    }

    #[test]
    fn tracked_keys_are_copied_until_few_are_left_or_it_takes_too_long() {
        let at = |phase| State {
            kind: Kind::Lift,
            phase,
        };
        let next = |phase, keys| step(at(phase), Event::Copied(keys)).0.phase;
        assert_eq!(next(Phase::CatchingUp(1), LAST_KEYS + 1), Phase::CatchingUp(2));
        assert_eq!(next(Phase::CatchingUp(1), LAST_KEYS), Phase::Syncing);
        assert_eq!(next(Phase::CatchingUp(ROUNDS_MAX), LAST_KEYS + 1), Phase::Syncing);
    }

    #[test]
    fn a_split_or_merge_is_recorded_and_shown() {
        let (state, actions) = begin(Kind::InPlace);
        assert_eq!(actions, [Action::Record]);
        let (shown, actions) = step(state, Event::Done);
        assert_eq!(actions, [Action::Publish]);
        let (end, actions) = step(shown, Event::Done);
        assert_eq!((end.phase, actions), (Phase::Moved, &[Action::EndPublication][..]));
        for failed in [state, shown] {
            let (doubt, actions) = step(failed, Event::Failed);
            assert_eq!((doubt.phase, actions), (Phase::InDoubt, &[][..]));
            for (is_new, phase) in [(true, Phase::Moved), (false, Phase::Undone)] {
                assert_eq!(step(doubt, Event::Found(is_new)).0.phase, phase);
            }
        }
        // An outcome that a state cannot have changes nothing.
        assert_eq!(step(end, Event::Failed), (end, &[][..]));
        assert_eq!(step(state, Event::Copied(3)), (state, &[][..]));
    }
}
