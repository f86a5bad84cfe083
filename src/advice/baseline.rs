//! The findings that a team has accepted, as a file. A finding is identified by its rule, table and text, not by its
//! place.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Advice, Finding};

/// The version of the file format.
const VERSION: u32 = 1;

/// Accepted findings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    version: u32,
    accepted: BTreeSet<Accepted>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Accepted {
    rule: String,
    table: String,
    message: String,
}

impl Accepted {
    fn of(finding: &Finding) -> Self {
        Self {
            rule: finding.rule.to_owned(),
            table: finding.table.clone(),
            message: finding.message.clone(),
        }
    }
}

impl Baseline {
    /// A baseline of all findings.
    #[must_use]
    pub fn of(advice: &Advice) -> Self {
        Self {
            version: VERSION,
            accepted: advice.findings.iter().map(Accepted::of).collect(),
        }
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// The text is no baseline, or has another version.
    pub fn parse(text: &str) -> Result<Self, String> {
        let baseline: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if baseline.version == VERSION {
            Ok(baseline)
        } else {
            Err(format!(
                "it has version {}, this program reads {VERSION}",
                baseline.version
            ))
        }
    }

    /// Whether a finding is accepted.
    #[must_use]
    pub fn has(&self, finding: &Finding) -> bool {
        self.accepted.contains(&Accepted::of(finding))
    }
}
