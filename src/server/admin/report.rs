//! The answer of `/readyz`: plain data. Names are part of the interface: fields are added, never renamed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use helenus_engine::engine::{Probe, StoreProbe};

/// `/readyz`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    /// Whether requests are answered.
    pub ready: bool,
    /// Why not. `None` means they are.
    pub why: Option<String>,
    /// How long a durable write took, in the store where it took longest. `None` means it failed in some store.
    pub write_micros: Option<u64>,
    /// How long its read took, likewise.
    pub read_micros: Option<u64>,
    /// Each open store, the main one first; empty if no store was probed.
    #[serde(default)]
    pub stores: Vec<StoreReadiness>,
}

/// A store of `/readyz`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreReadiness {
    /// Its number as in `system_cosmos.partitions`; 0 is the main one.
    pub store: u32,
    /// Whether the record was read back in time.
    pub ready: bool,
    /// How long the write took. `None` means it failed.
    pub write_micros: Option<u64>,
    /// How long its read took.
    pub read_micros: Option<u64>,
}

impl Readiness {
    /// The readiness by the stores' answers. Errors are only logged, because they may name files.
    #[must_use]
    pub fn of(probe: &Probe) -> Self {
        let took = |store: &StoreProbe| store.outcome.as_ref()?.as_ref().ok().copied();
        let store = |probed: &StoreProbe| StoreReadiness {
            store: probed.store,
            ready: took(probed).is_some(),
            write_micros: took(probed).map(|took| micros(took.write)),
            read_micros: took(probed).map(|took| micros(took.read)),
        };
        let faults: Vec<String> = probe.stores.iter().filter_map(fault).collect();
        if probe.stores.is_empty() {
            return Self::not("another probe of the stores took too long");
        }
        let stores: Vec<StoreReadiness> = probe.stores.iter().map(store).collect();
        if !faults.is_empty() {
            return Self {
                stores,
                ..Self::not(&faults.join("; "))
            };
        }
        Self {
            ready: true,
            why: None,
            write_micros: stores.iter().filter_map(|store| store.write_micros).max(),
            read_micros: stores.iter().filter_map(|store| store.read_micros).max(),
            stores,
        }
    }

    /// The readiness of a node of a fleet, which has no store of its own.
    #[must_use]
    pub(crate) fn of_node(may_answer: bool) -> Self {
        if !may_answer {
            return Self::not("this node has not heard from the owner of the stores");
        }
        Self {
            ready: true,
            why: None,
            write_micros: None,
            read_micros: None,
            stores: Vec::new(),
        }
    }

    /// The answer of a server that does not accept requests.
    #[must_use]
    pub fn not(why: &str) -> Self {
        Self {
            ready: false,
            why: Some(why.to_owned()),
            write_micros: None,
            read_micros: None,
            stores: Vec::new(),
        }
    }
}

fn fault(probed: &StoreProbe) -> Option<String> {
    let what = match probed.outcome {
        None => "a write and its read took too long",
        Some(Err(_)) => "a write or its read failed; the server's log says why",
        Some(Ok(_)) => return None,
    };
    Some(match probed.store {
        0 => format!("in the main store {what}"),
        number => format!("in store {number} {what}"),
    })
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
