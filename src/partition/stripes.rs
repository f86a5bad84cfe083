//! Stripe locks: a request whose result depends on a logical partition's rows locks the stripe of its key first.
//!
//! Conditional statements, counters, list positions and reads before writes lock; plain writes never do. A stripe is shared by
//! many keys, so a request that needs several takes them in order of stripe, each once ([`Stripes::lock_all`]): no two requests can
//! wait for each other.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

/// Number of stripes: enough that unrelated keys rarely collide, few enough to keep them all (64 bytes each).
const STRIPES: usize = 1024;

/// A fixed number of locks; each logical partition maps to one.
#[derive(Debug)]
pub struct Stripes {
    locks: Vec<Arc<Mutex<()>>>,
}

/// Holds stripes until it is dropped.
#[derive(Debug)]
pub struct Held {
    _guards: Vec<OwnedMutexGuard<()>>,
}

impl Default for Stripes {
    fn default() -> Self {
        Self {
            locks: (0..STRIPES).map(|_| Arc::new(Mutex::new(()))).collect(),
        }
    }
}

impl Stripes {
    /// Locks the stripes of these logical partitions, each given by its table's number and the number that
    /// the placement made of its key ([`super::Placement::spread`]).
    ///
    /// Two keys of one number share a stripe, which costs only a wait.
    pub async fn lock_all(&self, partitions: impl IntoIterator<Item = (u32, i64)>) -> Held {
        let mut stripes: Vec<usize> = partitions
            .into_iter()
            .map(|(table, spread)| stripe_of(table, spread))
            .collect();
        stripes.sort_unstable();
        stripes.dedup();
        let mut guards = Vec::with_capacity(stripes.len());
        for stripe in stripes {
            if let Some(lock) = self.locks.get(stripe) {
                guards.push(Arc::clone(lock).lock_owned().await);
            }
        }
        Held { _guards: guards }
    }
}

fn stripe_of(table: u32, spread: i64) -> usize {
    // `spread` is a hash already; the table's number only separates equal keys of different tables.
    let mixed = spread.cast_unsigned() ^ u64::from(table).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    usize::try_from(mixed % STRIPES as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn opposite_orders_do_not_deadlock() {
        let stripes = Arc::new(Stripes::default());
        let tasks: Vec<_> = (0..64)
            .map(|index| {
                let stripes = Arc::clone(&stripes);
                tokio::spawn(async move {
                    let keys = if index % 2 == 0 {
                        [(1, 7), (1, 8)]
                    } else {
                        [(1, 8), (1, 7)]
                    };
                    for _ in 0..100 {
                        let _held = stripes.lock_all(keys).await;
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    }

    #[tokio::test]
    async fn one_key_twice_is_locked_once() {
        let stripes = Stripes::default();
        drop(stripes.lock_all([(3, 5), (3, 5)]).await);
    }
}
