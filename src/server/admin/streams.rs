//! Which client may open another stream of a change feed.
//!
//! A stream lasts for as long as its client wants. So a role may have only some of them, and no role takes the last one:
//! it is kept for the operator, who comes with the token or by the socket.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Streams at once: a quarter of the connections, so that probes and scrapers always find a slot.
pub const STREAMS_MAX: usize = super::CONNECTIONS_MAX / 4;

/// Streams of one role at once.
pub const ROLE_STREAMS_MAX: usize = STREAMS_MAX / 2;

/// The open streams of each role; `None` means the operator's.
#[derive(Debug, Default)]
pub(super) struct Streams(Mutex<BTreeMap<Option<String>, usize>>);

/// One open stream. Dropping it frees its place.
#[derive(Debug)]
pub(super) struct Place {
    streams: Arc<Streams>,
    of: Option<String>,
}

impl Streams {
    /// Takes a place, or returns why there is none.
    pub(super) fn open(self: &Arc<Self>, role: Option<&str>) -> Result<Place, String> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = role.map(str::to_owned);
        let all: usize = open.values().sum();
        let own = open.get(&of).copied().unwrap_or_default();
        if role.is_some() && own >= ROLE_STREAMS_MAX {
            return Err(format!(
                "{ROLE_STREAMS_MAX} streams of this role are open, and no more are served"
            ));
        }
        if all >= STREAMS_MAX - usize::from(role.is_some()) {
            return Err(format!("{all} streams are open, and no more are served"));
        }
        open.insert(of.clone(), own + 1);
        Ok(Place {
            streams: Arc::clone(self),
            of,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = open.get(&self.of).map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            open.remove(&self.of);
        } else {
            open.insert(self.of.clone(), left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_has_some_streams_and_the_operator_the_last() {
        let streams = Arc::new(Streams::default());
        let open = |role: Option<&str>| streams.open(role);
        let mut places: Vec<Place> = (0..ROLE_STREAMS_MAX).map(|_| open(Some("ann")).unwrap()).collect();
        assert!(open(Some("ann")).unwrap_err().contains("of this role"));
        places.extend((ROLE_STREAMS_MAX..STREAMS_MAX - 1).map(|_| open(Some("bob")).unwrap()));
        assert!(open(Some("cid")).is_err());
        places.push(open(None).unwrap());
        assert!(open(None).is_err());
        // A closed stream frees a place of its role.
        drop(places.remove(0));
        assert!(open(Some("cid")).is_err());
        drop(places.pop());
        places.push(open(Some("ann")).unwrap());
        drop(places);
        assert_eq!(streams.0.lock().unwrap().len(), 0);
        let all: Vec<Place> = (0..STREAMS_MAX).map(|_| open(None).unwrap()).collect();
        assert_eq!(all.len(), STREAMS_MAX);
    }
}
