//! Feed ranges: the parts of the ring by which readers share a change feed, as text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

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
