//! Where a physical partition of a map is served: here, or by another machine, which messages reach.
//!
//! ```text
//! Placed::Here(Hosted)    descriptor · store · latch · load
//! Placed::There(Remote)   descriptor · owner                    read and written by messages alone
//! ```
//! Both have the descriptor, by which statements route, admit and count. Work in the background, locks, latches and
//! snapshots need the live parts: they take [`Placed::here`] and leave the rest to its owner.

use std::ops::Deref;
use std::sync::Arc;

use super::hosted::Hosted;
use super::ring::{PhysicalPartition, Placement};
use helenus_types::token::Token;

/// A physical partition of a table's map.
#[derive(Clone, Debug)]
pub enum Placed {
    /// It is served here.
    Here(Arc<Hosted>),
    /// Another machine serves it.
    There(Arc<Remote>),
}

/// A physical partition that another machine serves.
#[derive(Debug)]
pub struct Remote {
    descriptor: PhysicalPartition,
    placement: Placement,
    /// The machine that serves it.
    pub owner: Owner,
}

/// The machine that serves a physical partition, by the name of its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner(pub Arc<str>);

impl Deref for Placed {
    type Target = PhysicalPartition;

    fn deref(&self) -> &PhysicalPartition {
        self.descriptor()
    }
}

impl Placed {
    /// What is known of it wherever it is served.
    #[must_use]
    pub fn descriptor(&self) -> &PhysicalPartition {
        match self {
            Self::Here(hosted) => hosted.descriptor(),
            Self::There(remote) => &remote.descriptor,
        }
    }

    /// Its live parts, if it is served here.
    #[must_use]
    pub const fn here(&self) -> Option<&Arc<Hosted>> {
        match self {
            Self::Here(hosted) => Some(hosted),
            Self::There(_) => None,
        }
    }

    /// The machine that serves it, if it is another one.
    #[must_use]
    pub fn owner(&self) -> Option<&Owner> {
        match self {
            Self::Here(_) => None,
            Self::There(remote) => Some(&remote.owner),
        }
    }

    /// The token of a partition key of its table.
    #[must_use]
    pub fn token(&self, partition_key: &[u8]) -> Token {
        self.placement().token(partition_key)
    }

    /// How the partition keys of its table get their tokens.
    #[must_use]
    pub fn placement(&self) -> Placement {
        match self {
            Self::Here(hosted) => hosted.placement(),
            Self::There(remote) => remote.placement,
        }
    }

    /// A number that spreads logical partitions evenly; see [`Placement::spread`].
    #[must_use]
    pub fn spread(&self, token: Token, partition_key: &[u8]) -> i64 {
        self.placement().spread(token, partition_key)
    }

    /// The same partition, as a machine sees it that does not serve it.
    #[must_use]
    pub fn at(&self, owner: &Owner) -> Self {
        Self::There(Arc::new(Remote::new(
            self.descriptor().clone(),
            self.placement(),
            owner.clone(),
        )))
    }
}

impl Remote {
    pub(super) const fn new(descriptor: PhysicalPartition, placement: Placement, owner: Owner) -> Self {
        Self {
            descriptor,
            placement,
            owner,
        }
    }
}
