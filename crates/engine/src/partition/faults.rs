//! The fault plan: deliberate faults by which a team can observe its driver and its retries. Pure: the caller passes
//! the time, the number of the request and its subject. The same plan with the same requests in the same order makes
//! the same decisions.
//!
//! ```toml
//! seed = 7
//!
//! [[fault]]                  # the second node is down from 5 s to 15 s after the plan became active
//! action = "down"
//! node = 2
//! from-ms = 5000
//! until-ms = 15000
//!
//! [[fault]] # one in ten writes to shop.orders is applied and answered with a timeout, 20 times at most
//! action = "timeout-after"
//! keyspace = "shop"
//! table = "orders"
//! statement = "write"
//! probability = 0.1
//! count = 20
//! ```
//! | action | what happens | own keys |
//! | --- | --- | --- |
//! | `down` | the node accepts no connections, cuts its open ones, and its replicas are dead | `node` |
//! | `replica-down` | the replicas on the node are dead, its clients stay connected | `node`, `keyspace`, `table`, `partition` |
//! | `lag` | replicas on the node that do not write return rows of up to `ms` or `commits` ago at ONE and LOCAL_ONE | the same; `ms`, `commits` |
//! | `delay` | the request waits before it is executed | `ms`, `jitter-ms` |
//! | `drop` | the request is not executed, and gets a timeout after `ms` (30,000 unless given) | `ms` |
//! | `throttle` | not executed, Overloaded | `ms`: when to retry |
//! | `unavailable` | not executed, Unavailable with one replica too few | |
//! | `fail` | not executed, ReadFailure or WriteFailure; in the `cosmos` profile a write fails with the text of a conflict (HTTP's 449) | |
//! | `timeout` | not executed, ReadTimeout or WriteTimeout | `received`, `data-present`, `write-type` |
//! | `timeout-after` | executed, ReadTimeout or WriteTimeout | `received`, `data-present` |
//! | `offload` | the range is loaded elsewhere: not executed, the first request ReadTimeout or WriteTimeout, the others Unavailable | |
//! | `split` | the physical partition that is read or written is split while the request holds the old partition map | |
//!
//! Every fault but the first three applies to requests, selected by `keyspace`, `table`, `partition` (of any of its
//! tables), `statement`, `consistency` and `node` (where the client is connected). The first `skip` matching requests
//! are not hit. Each later one is hit with `probability`, until `count` were hit. A fault is in effect from `from-ms`
//! to `until-ms` after the plan became active. It is in effect from the `from-request`th to before the
//! `until-request`th request on users' tables since then. If several faults hit one request, their delays add up, and
//! the first refusal counts. Requests on system tables, DDL and logins are exempt.
//!
//! A draw depends on the seed, the index of the fault in the plan and the number of the match. It depends on no clock,
//! and requests that do not match do not change it.

mod course;

use serde::{Deserialize, Serialize};

pub use self::course::{Counts, Course, Decision, Moment, Outcome, Place, Progress, Subject};
use super::replicas::REPLICAS;
use helenus_types::consistency::{Consistency, WriteKind};

/// Most faults in a plan.
pub const FAULTS_MAX: usize = 256;

/// Longest delay, and longest time without an answer: 60 s.
pub const HELD_MS_MAX: u64 = 60_000;

/// How long a dropped request is held unless the plan sets it: longer than drivers wait.
const DROPPED_MS: u64 = 30_000;

/// The effect of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the table above says what each is")]
pub enum Action {
    Down,
    ReplicaDown,
    Lag,
    Delay,
    Drop,
    Throttle,
    Unavailable,
    Fail,
    Timeout,
    TimeoutAfter,
    Split,
    Offload,
}

impl Action {
    /// Whether it affects nodes and replicas, not requests.
    #[must_use]
    pub const fn is_standing(self) -> bool {
        matches!(self, Self::Down | Self::ReplicaDown | Self::Lag)
    }
}

/// Kinds of statements that a fault can select.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StatementKind {
    /// SELECT.
    Read,
    /// Unconditional INSERT, UPDATE or DELETE, without counters.
    Write,
    /// A change of a counter, alone or in a batch.
    Counter,
    /// A batch without conditions, of no counters.
    Batch,
    /// Statements and batches with IF.
    Conditional,
}

/// One fault: its effect, the requests that it selects, its time and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the module's text says what each is")]
pub struct Fault {
    pub action: Action,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyspace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<StatementKind>,
    /// The name of a consistency level, as `QUORUM`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consistency: Option<String>,
    /// From 1 to 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_request: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_request: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_present: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_type: Option<WriteKind>,
}

/// A plan: a seed and faults. The empty plan has no faults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Plan {
    /// The seed of random draws.
    #[serde(default)]
    pub seed: u64,
    /// The faults, in the order in which they are checked.
    #[serde(default, rename = "fault")]
    pub faults: Vec<Fault>,
}

/// Why a plan is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// It cannot be parsed.
    #[error("{0}")]
    Form(String),
    /// A fault has contradictory or invalid keys.
    #[error("fault {number}: {what}")]
    Fault {
        /// Its position in the plan, from 1.
        number: usize,
        /// The flaw.
        what: &'static str,
    },
    /// It has more than [`FAULTS_MAX`] faults.
    #[error("a plan has at most {FAULTS_MAX} faults")]
    TooMany,
}

impl Plan {
    /// Reads a plan in TOML.
    ///
    /// # Errors
    /// [`PlanError`] describes the flaw.
    pub fn from_toml(text: &str) -> Result<Self, PlanError> {
        let keys = || toml::from_str(text).ok().map(Loose::keys);
        let plan: Self = toml::from_str(text).map_err(|error| form(&error, keys()))?;
        plan.check()?;
        Ok(plan)
    }

    /// Reads a plan in JSON: the same keys.
    ///
    /// # Errors
    /// [`PlanError`] describes the flaw.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        let keys = || serde_json::from_str(text).ok().map(Loose::keys);
        let plan: Self = serde_json::from_str(text).map_err(|error| form(&error, keys()))?;
        plan.check()?;
        Ok(plan)
    }

    /// Whether it takes a node down.
    #[must_use]
    pub fn takes_nodes_down(&self) -> bool {
        self.faults.iter().any(|fault| fault.action == Action::Down)
    }

    fn check(&self) -> Result<(), PlanError> {
        if self.faults.len() > FAULTS_MAX {
            return Err(PlanError::TooMany);
        }
        for (place, fault) in self.faults.iter().enumerate() {
            fault.check().map_err(|what| PlanError::Fault {
                number: place + 1,
                what,
            })?;
        }
        Ok(())
    }
}

/// A plan of any keys, for a hint at what was meant.
#[derive(Deserialize)]
struct Loose {
    #[serde(default)]
    fault: Vec<std::collections::BTreeMap<String, serde_json::Value>>,
}

impl Loose {
    /// The keys of all faults, and whether their values are texts.
    fn keys(self) -> Vec<(String, bool)> {
        let keys = self.fault.into_iter().flatten();
        keys.map(|(key, value)| (key, value.is_string())).collect()
    }
}

/// Keys by which people give a time, where the key is `ms`.
const TIMES: [&str; 10] = [
    "delay",
    "delay-ms",
    "delay-millis",
    "duration",
    "duration-ms",
    "millis",
    "milliseconds",
    "retry-after-ms",
    "seconds",
    "time",
];

/// Why a plan cannot be parsed, with a hint at the key that holds a time.
fn form(error: &impl std::fmt::Display, keys: Option<Vec<(String, bool)>>) -> PlanError {
    let is_time = |(key, is_text): &(String, bool)| {
        let key = key.replace('_', "-");
        TIMES.contains(&key.as_str()) || (*is_text && key == "ms")
    };
    let hint = match keys.unwrap_or_default().iter().any(is_time) {
        true => "\na time is a whole number of milliseconds under the key ms, such as ms = 200",
        false => "",
    };
    PlanError::Form(format!("{}{hint}", error.to_string().trim_end()))
}

impl Fault {
    #[expect(clippy::too_many_lines, reason = "a list of refusals, a line or two for each")]
    fn check(&self) -> Result<(), &'static str> {
        let refuse = |wrong: bool, what: &'static str| if wrong { Err(what) } else { Ok(()) };
        let of_requests = self.statement.is_some()
            || self.consistency.is_some()
            || self.probability.is_some()
            || self.skip.is_some()
            || self.count.is_some();
        let of_places = self.keyspace.is_some() || self.table.is_some() || self.partition.is_some();
        let action = self.action;
        if action.is_standing() {
            refuse(self.node.is_none(), "which node? from 1 to 6")?;
            refuse(
                of_requests,
                "statement, consistency, probability, skip and count are for faults of requests",
            )?;
        }
        refuse(
            action == Action::Down && of_places,
            "a node is down for all tables; replica-down is for some",
        )?;
        refuse(
            self.node.is_some_and(|node| !(1..=6).contains(&node)),
            "a node is one of 1 to 6",
        )?;
        refuse(
            self.probability.is_some_and(|chance| !(0.0..=1.0).contains(&chance)),
            "a probability lies between 0 and 1",
        )?;
        let is_level = |name: &String| Consistency::ALL.iter().any(|level| level.name() == name.as_str());
        refuse(
            self.consistency.as_ref().is_some_and(|name| !is_level(name)),
            "no consistency level has this name",
        )?;
        refuse(
            self.partition.is_some() && self.table.is_none(),
            "a partition is one of a table",
        )?;
        refuse(
            action == Action::Lag && self.ms.is_none() && self.commits.is_none(),
            "how far behind? ms or commits",
        )?;
        refuse(
            action == Action::Delay && self.ms.is_none(),
            "how long? Give milliseconds, such as ms = 200",
        )?;
        let takes_ms = matches!(action, Action::Lag | Action::Delay | Action::Drop | Action::Throttle);
        refuse(
            self.ms.is_some() && !takes_ms,
            "ms is for lag, delay, drop and throttle",
        )?;
        let ms_max = self.ms.unwrap_or(0).saturating_add(self.jitter_ms.unwrap_or(0));
        refuse(ms_max > HELD_MS_MAX, "more than 60,000 ms")?;
        refuse(
            self.jitter_ms.is_some() && action != Action::Delay,
            "jitter-ms is for delay",
        )?;
        refuse(self.commits.is_some() && action != Action::Lag, "commits is for lag")?;
        let times_out = matches!(action, Action::Timeout | Action::TimeoutAfter);
        refuse(
            (self.received.is_some() || self.data_present.is_some()) && !times_out,
            "received and data-present are for timeout and timeout-after",
        )?;
        refuse(
            self.received.is_some_and(|received| received > REPLICAS),
            "no more than four replicas answer",
        )?;
        refuse(
            self.write_type.is_some() && action != Action::Timeout,
            "write-type is for timeout",
        )?;
        refuse(
            matches!(self.write_type, Some(WriteKind::View | WriteKind::Cdc)),
            "no write of this server is of the type VIEW or CDC",
        )
    }

    /// Whether it is in effect at a moment.
    #[must_use]
    pub fn holds(&self, now: Moment) -> bool {
        let within = |from: Option<u64>, until: Option<u64>, at: u64| {
            from.is_none_or(|from| at >= from) && until.is_none_or(|until| at < until)
        };
        within(self.from_ms, self.until_ms, now.passed_ms)
            && within(self.from_request, self.until_request, now.requests)
    }

    /// Whether it applies to this part of a table.
    #[must_use]
    pub fn concerns(&self, place: &Place<'_>) -> bool {
        self.keyspace.as_ref().is_none_or(|name| name == place.keyspace)
            && self.table.as_ref().is_none_or(|name| name == place.table)
            && self.partition.is_none_or(|id| id == place.partition)
    }

    /// Whether it applies to replicas on this node, counted from 0.
    #[must_use]
    pub fn is_of_node(&self, node: usize) -> bool {
        self.node.is_some_and(|number| usize::from(number) == node + 1)
    }

    fn matches(&self, subject: &Subject<'_>) -> bool {
        !self.action.is_standing()
            && self.statement.is_none_or(|kind| kind == subject.statement)
            && self
                .consistency
                .as_ref()
                .is_none_or(|name| name == subject.consistency.name())
            && (self.node.is_none() || self.is_of_node(subject.node))
            && subject.places.iter().any(|place| self.concerns(place))
    }
}

#[cfg(test)]
mod tests;
