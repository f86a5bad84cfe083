//! Reads of the change feed: their start, the part of the ring that they read, and where they go on.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// From where the first page of the change feed is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedStart {
    /// The first change.
    Beginning,
    /// The changes after the read begins.
    Now,
    /// The changes from this time on, µs since 1970-01-01 UTC.
    At(i64),
}

impl FeedStart {
    /// The position after which changes are returned; `horizon` is the last position at present.
    #[must_use]
    pub const fn after(self, horizon: i64) -> i64 {
        match self {
            Self::Beginning => 0,
            Self::Now => horizon,
            Self::At(micros) => micros.saturating_sub(1),
        }
    }
}

/// Where a read of the change feed goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedPosition {
    /// All changes up to this position were returned.
    pub after: i64,
    /// The sweep that the page ended in. `None` means that the next page begins one.
    pub sweep: Option<FeedSweep>,
}

/// The place inside a sweep over the change feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedSweep {
    /// The position up to which it returns changes.
    pub until: i64,
    /// The last entry that it has passed; empty means none.
    pub reached: Bytes,
}

/// A part of the ring: the tokens from `lower` to `upper`, both inclusive. As text it is JSON in the form of Cosmos's
/// feed ranges, with the tokens as decimal numbers: `min` is inclusive, `max` is exclusive, an empty one is the end of
/// the ring.
///
/// ```text
/// {"Range":{"min":"-4611686018427387904","max":""}}
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedRange {
    /// The lowest token.
    pub lower: i64,
    /// The highest token.
    pub upper: i64,
}

/// A text that is no feed range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not JSON of the form {{\"Range\":{{\"min\":\"TOKEN\",\"max\":\"TOKEN\"}}}} with min below max")]
pub struct NoFeedRange;

#[derive(Serialize, Deserialize)]
struct RangeText {
    #[serde(rename = "Range")]
    range: Bounds,
}

#[derive(Serialize, Deserialize)]
struct Bounds {
    min: String,
    max: String,
}

impl fmt::Display for FeedRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let max = self.upper.checked_add(1).map(|max| max.to_string()).unwrap_or_default();
        let min = if self.lower == i64::MIN {
            String::new()
        } else {
            self.lower.to_string()
        };
        let text = serde_json::to_string(&RangeText {
            range: Bounds { min, max },
        });
        out.write_str(&text.map_err(|_| fmt::Error)?)
    }
}

impl FromStr for FeedRange {
    type Err = NoFeedRange;

    fn from_str(text: &str) -> Result<Self, NoFeedRange> {
        let RangeText { range } = serde_json::from_str(text).map_err(|_| NoFeedRange)?;
        let token = |text: &str| text.parse::<i64>().map_err(|_| NoFeedRange);
        let lower = if range.min.is_empty() {
            i64::MIN
        } else {
            token(&range.min)?
        };
        let upper = if range.max.is_empty() {
            i64::MAX
        } else {
            token(&range.max)?.checked_sub(1).ok_or(NoFeedRange)?
        };
        (lower <= upper).then_some(Self { lower, upper }).ok_or(NoFeedRange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_read_as_they_print() {
        for (lower, upper) in [(i64::MIN, i64::MAX), (i64::MIN, -1), (0, i64::MAX), (-5, 7)] {
            let range = FeedRange { lower, upper };
            assert_eq!(range.to_string().parse(), Ok(range));
        }
        let whole = FeedRange {
            lower: i64::MIN,
            upper: i64::MAX,
        };
        assert_eq!(whole.to_string(), r#"{"Range":{"min":"","max":""}}"#);
        for text in [
            "",
            "{}",
            r#"{"Range":{"min":"3","max":"3"}}"#,
            r#"{"Range":{"min":"x","max":""}}"#,
        ] {
            assert_eq!(text.parse::<FeedRange>(), Err(NoFeedRange), "{text}");
        }
    }
}
