//! Requests to a bucket, by store, cause and kind, and what they cost.
//!
//! Counted where the engine asks; a request that the client sends again is one. A list counts once, however many pages it has.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BucketRequest {
    /// Puts an object or a part of one.
    Put,
    /// Reads an object or a part of one.
    Get,
    /// Looks whether an object is there.
    Head,
    /// Lists objects.
    List,
    /// Removes an object. The clouds charge nothing for it.
    Delete,
}

impl BucketRequest {
    /// As labels have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Head => "head",
            Self::List => "list",
            Self::Delete => "delete",
        }
    }
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BucketCause {
    /// The log: what makes commits durable, and what an opening reads.
    Log,
    /// Tables: rows that are read, written by flushes and by the compactor.
    Tables,
    /// Which tables there are.
    Manifests,
    /// What the compactor has to do.
    Compactions,
    /// How far objects were removed.
    CleanUp,
    /// Who owns the prefix, and whose it is.
    Lease,
    /// Anything else.
    Other,
}

impl BucketCause {
    /// As labels have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Tables => "tables",
            Self::Manifests => "manifests",
            Self::Compactions => "compactions",
            Self::CleanUp => "clean_up",
            Self::Lease => "lease",
            Self::Other => "other",
        }
    }
}

type Asked = (u32, BucketCause, BucketRequest);

/// A lock is nothing beside a request to a bucket.
static ASKED: Mutex<BTreeMap<Asked, u64>> = Mutex::new(BTreeMap::new());

/// Counts a request for a store; 0 is the main one.
pub fn count_bucket_request(store: u32, cause: BucketCause, request: BucketRequest) {
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    *asked.entry((store, cause, request)).or_default() += 1;
}

/// All requests that were counted: store, cause, kind, how many.
#[must_use]
pub fn bucket_requests() -> Vec<(u32, BucketCause, BucketRequest, u64)> {
    let asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let all = asked.iter();
    all.map(|((store, cause, request), count)| (*store, *cause, *request, *count))
        .collect()
}

/// What a look for a part of a table in the local cache came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachedPart {
    /// It was there.
    Found,
    /// It was not, and is read from the bucket.
    Missing,
    /// It did not match its checksum, and is read from the bucket.
    Damaged,
}

/// How many looks in the local cache came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachedParts {
    /// Parts that were there.
    pub found: u64,
    /// Parts that were not.
    pub missing: u64,
    /// Parts that did not match their checksums.
    pub damaged: u64,
}

static FOUND: AtomicU64 = AtomicU64::new(0);
static MISSING: AtomicU64 = AtomicU64::new(0);
static DAMAGED: AtomicU64 = AtomicU64::new(0);

/// Counts a look in the local cache.
pub fn count_cached_part(part: CachedPart) {
    let counter = match part {
        CachedPart::Found => &FOUND,
        CachedPart::Missing => &MISSING,
        CachedPart::Damaged => &DAMAGED,
    };
    counter.fetch_add(1, Ordering::Relaxed);
}

/// All looks in the local cache.
#[must_use]
pub fn cached_parts() -> CachedParts {
    CachedParts {
        found: FOUND.load(Ordering::Relaxed),
        missing: MISSING.load(Ordering::Relaxed),
        damaged: DAMAGED.load(Ordering::Relaxed),
    }
}

/// What a million requests cost, in any money: puts and lists, gets and heads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BucketPrices {
    /// A million puts and lists.
    pub puts: f64,
    /// A million gets and heads.
    pub gets: f64,
}

impl BucketPrices {
    /// What so many requests cost.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn cost(self, puts: u64, gets: u64) -> f64 {
        (self.puts * puts as f64 + self.gets * gets as f64) / 1e6
    }
}

/// A text that is no price list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPrices;

impl fmt::Display for NoPrices {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("expected two numbers: what a million puts cost, a comma, what a million gets cost, as 5,0.4")
    }
}

impl FromStr for BucketPrices {
    type Err = NoPrices;

    fn from_str(text: &str) -> Result<Self, NoPrices> {
        let price = |text: &str| {
            text.trim()
                .parse()
                .ok()
                .filter(|price: &f64| price.is_finite() && *price >= 0.0)
        };
        let (puts, gets) = text.split_once(',').ok_or(NoPrices)?;
        Ok(Self {
            puts: price(puts).ok_or(NoPrices)?,
            gets: price(gets).ok_or(NoPrices)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_of_a_million() {
        let prices: BucketPrices = "5, 0.4".parse().unwrap();
        assert!((prices.cost(2_000_000, 500_000) - 10.2).abs() < 1e-9);
        for wrong in ["5", "5,", "-1,0", "a,b", "5,0.4,1", "inf,1"] {
            assert_eq!(wrong.parse::<BucketPrices>(), Err(NoPrices), "{wrong}");
        }
    }

    #[test]
    fn requests_are_counted_by_store_cause_and_kind() {
        let of = |store: u32| {
            bucket_requests()
                .into_iter()
                .filter(|row| row.0 == store)
                .collect::<Vec<_>>()
        };
        for _ in 0..3 {
            count_bucket_request(4_000_000, BucketCause::Log, BucketRequest::Put);
        }
        count_bucket_request(4_000_000, BucketCause::Tables, BucketRequest::Get);
        assert_eq!(
            of(4_000_000),
            [
                (4_000_000, BucketCause::Log, BucketRequest::Put, 3),
                (4_000_000, BucketCause::Tables, BucketRequest::Get, 1)
            ]
        );
    }
}
