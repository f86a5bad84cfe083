//! Definite assignment and reachability (JLS §16, §14.22).

use std::sync::Arc;

/// The locals that are definitely assigned at a point of the body.
#[derive(Clone, Debug)]
pub(super) struct Assigned(
    /// One flag for each local, by its number. `None` means that the point is unreachable.
    Option<Vec<bool>>,
);

impl Assigned {
    pub(super) fn start() -> Self {
        Self(Some(Vec::new()))
    }

    pub(super) fn unreached() -> Self {
        Self(None)
    }

    pub(super) fn is_reachable(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn declare(&mut self, local: usize) {
        if let Some(known) = &mut self.0 {
            known.resize(local + 1, false);
        }
    }

    pub(super) fn assign(&mut self, local: usize) {
        if let Some(known) = &mut self.0
            && let Some(known) = known.get_mut(local)
        {
            *known = true;
        }
    }

    pub(super) fn has(&self, local: usize) -> bool {
        self.0
            .as_ref()
            .is_none_or(|known| known.get(local).copied().unwrap_or(false))
    }

    /// The state where two paths join.
    pub(super) fn merged(self, other: &Self) -> Self {
        match (self.0, &other.0) {
            (None, other) => Self(other.clone()),
            (known, None) => Self(known),
            (Some(mut known), Some(other)) => {
                for (at, is) in known.iter_mut().enumerate() {
                    *is = *is && other.get(at).copied().unwrap_or(false);
                }
                Self(Some(known))
            }
        }
    }

    /// The state after two pieces that run one after the other.
    pub(super) fn and_then(self, other: &Self) -> Self {
        match (self.0, &other.0) {
            (Some(known), Some(other)) => {
                let longest = known.len().max(other.len());
                let has = |of: &[bool], at: usize| of.get(at).copied().unwrap_or(false);
                Self(Some((0..longest).map(|at| has(&known, at) || has(other, at)).collect()))
            }
            _ => Self(None),
        }
    }

    /// After a mistake, treats all locals as assigned, so that no further mistake follows from it.
    pub(super) fn assume_all_assigned(&mut self, locals: usize) {
        self.0 = Some(vec![true; locals]);
    }
}

/// A statement that `break` or `continue` may leave.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) number: u32,
    pub(super) label: Option<Arc<str>>,
    pub(super) is_loop: bool,
    /// Whether a `break` without a label may leave it.
    pub(super) is_breakable: bool,
    pub(super) breaks: Assigned,
    pub(super) continues: Assigned,
}
