//! The content of a prefix's lease, and the conclusions drawn from it. Pure: the time is passed in.
//!
//! ```text
//! PREFIX/fleet/owner    helenus lease 1 ⏎ <incarnation> ⏎ <put> ⏎ <live | released> ⏎ <milliseconds> ⏎
//!                       <name> ⏎ <address> ⏎
//! ```
//! An incarnation is one acquisition by one process, which counts its puts. So no two puts have the same body. A tag
//! that S3 computes from the content therefore never recurs. A holder recognises its own put even if the answer to it
//! was lost.

use std::time::Duration;

use slatedb::object_store::UpdateVersion;

use super::{HeardLease, LeasePut};
use crate::storage::bucket_refusal::Refusal;

const FORMAT: &str = "helenus lease 1";

/// Longest part of a lease that a message shows.
const SHOWN_CHARS_MAX: usize = 120;

/// Default length of a lease. A start after a crash waits for it.
pub(super) const LEASE: Duration = Duration::from_millis(2500);

/// The content of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    /// Identifies the acquisition.
    pub(super) incarnation: String,
    /// Number of puts of the incarnation, including this one.
    pub(super) put: u64,
    /// Whether the holder still holds the lease. `false` means that it has released the prefix.
    pub(super) is_live: bool,
    /// How long the lease lasts, counted from when the holder sent it.
    pub(super) length: Duration,
    /// The holder's name.
    pub(super) name: String,
    /// The address at which the holder serves.
    pub(super) address: String,
}

impl Lease {
    pub(super) fn encode(&self) -> String {
        format!(
            "{FORMAT}\n{}\n{}\n{}\n{}\n{}\n{}\n",
            self.incarnation,
            self.put,
            if self.is_live { "live" } else { "released" },
            self.length.as_millis(),
            one_line(&self.name),
            one_line(&self.address),
        )
    }

    /// # Errors
    /// The lease has another version's format.
    pub(super) fn decode(body: &[u8]) -> Result<Self, Refusal> {
        let text = String::from_utf8_lossy(body);
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let lines: Vec<&str> = lines.collect();
        let parsed = match lines.as_slice() {
            [incarnation, put, state, millis, name, address] if first == FORMAT => {
                let state = match *state {
                    "live" => Some(true),
                    "released" => Some(false),
                    _ => None,
                };
                put.parse()
                    .ok()
                    .zip(millis.parse().ok())
                    .zip(state)
                    .map(|((put, millis), is_live)| Self {
                        incarnation: (*incarnation).to_owned(),
                        put,
                        is_live,
                        length: Duration::from_millis(millis),
                        name: one_line(name),
                        address: one_line(address),
                    })
            }
            _ => None,
        };
        parsed.ok_or_else(|| Refusal::OtherFormat {
            object: "fleet/owner",
            found: one_line(first),
            known: FORMAT,
        })
    }
}

/// The part of a store's text that a message may show.
fn one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS_MAX).collect()
}

/// The state of a server that waits for another server's lease to end.
#[derive(Debug, Default)]
pub(super) struct Watch {
    seen: Option<Seen>,
}

/// The lease seen last.
#[derive(Debug)]
struct Seen {
    incarnation: String,
    tag: UpdateVersion,
    /// When this tag was seen first.
    since: Duration,
    /// Whether its holder has changed it once before.
    is_changed: bool,
}

impl Seen {
    /// Whether the lease has lasted too long without a change.
    fn outcome(&self, lease: &Lease, now: Duration) -> Found {
        let longest = lease.length + lease.length / 100 + Duration::from_millis(50);
        if now.saturating_sub(self.since) >= longest {
            Found::Over
        } else {
            Found::Unknown
        }
    }
}

/// A put of which the holder has told this server.
#[derive(Debug)]
pub(super) struct Heard {
    put: LeasePut,
    at: Duration,
}

impl Heard {
    pub(super) fn of(heard: &HeardLease, now: Duration) -> Self {
        Self {
            put: heard.put.clone(),
            at: now.saturating_sub(heard.age),
        }
    }
}

/// The result of one check of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The holder has renewed it.
    Alive,
    /// Too little time has passed for a conclusion.
    Unknown,
    /// It has ended, by any clock.
    Over,
}

impl Watch {
    /// Evaluates the lease found now. The holder counts its lease from before it sent its put; this server counts from
    /// when it first saw the tag, or heard of the put from its holder. So the holder's lease ends first. Only the rates
    /// of the two clocks matter: a hundredth of the length and 50 ms are added for their difference.
    ///
    /// A holder that changes its lease once may be dead: the bucket may carry out its last put late. It cannot carry
    /// out two, as each names the tag of the one before.
    pub(super) fn check(&mut self, lease: &Lease, tag: &UpdateVersion, heard: Option<&Heard>, now: Duration) -> Found {
        if !lease.is_live {
            return Found::Over;
        }
        let is_changed = match &self.seen {
            Some(seen) if seen.tag == *tag => return seen.outcome(lease, now),
            Some(seen) if seen.is_changed || seen.incarnation != lease.incarnation => return Found::Alive,
            Some(_) => true,
            None => false,
        };
        // The holder has sent this put before it spoke of it.
        let is_heard = |heard: &&Heard| heard.put.incarnation == lease.incarnation && heard.put.number == lease.put;
        let seen = Seen {
            incarnation: lease.incarnation.clone(),
            tag: tag.clone(),
            since: heard.filter(is_heard).map_or(now, |heard| heard.at),
            is_changed,
        };
        let found = seen.outcome(lease, now);
        self.seen = Some(seen);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease() -> Lease {
        Lease {
            incarnation: "a-1".into(),
            put: 7,
            is_live: true,
            length: Duration::from_millis(2500),
            name: "node (process 1)".into(),
            address: "127.0.0.1:9042".into(),
        }
    }

    fn tag(text: &str) -> UpdateVersion {
        UpdateVersion {
            e_tag: Some(text.to_owned()),
            version: None,
        }
    }

    #[test]
    fn a_lease_comes_back_and_another_versions_is_refused() {
        assert_eq!(Lease::decode(lease().encode().as_bytes()).unwrap(), lease());
        let newer = lease().encode().replace("helenus lease 1", "helenus lease 2");
        let why = Lease::decode(newer.as_bytes()).unwrap_err().to_string();
        assert!(why.contains("fleet/owner") && why.contains("helenus lease 2"), "{why}");
        let cut = lease().encode().replace("127.0.0.1:9042\n", "");
        assert!(Lease::decode(cut.as_bytes()).is_err());
    }

    #[test]
    fn a_name_of_two_lines_stays_one() {
        let lease = Lease {
            name: "a\nreleased\nb".into(),
            ..lease()
        };
        assert_eq!(Lease::decode(lease.encode().as_bytes()).unwrap().name, "areleasedb");
    }

    #[test]
    fn a_lease_is_over_only_after_its_length_without_a_renewal() {
        let at = Duration::from_millis;
        let mut watch = Watch::default();
        assert_eq!(watch.check(&lease(), &tag("1"), None, at(1000)), Found::Unknown);
        assert_eq!(watch.check(&lease(), &tag("1"), None, at(3570)), Found::Unknown);
        assert_eq!(watch.check(&lease(), &tag("1"), None, at(3575)), Found::Over);
        assert_eq!(
            watch.check(&lease(), &tag("2"), None, at(9000)),
            Found::Unknown,
            "put late"
        );
        assert_eq!(watch.check(&lease(), &tag("2"), None, at(11_574)), Found::Unknown);
        assert_eq!(watch.check(&lease(), &tag("2"), None, at(11_575)), Found::Over);
    }

    #[test]
    fn a_holder_that_renews_twice_or_has_just_come_is_alive() {
        let at = Duration::from_millis;
        let mut watch = Watch::default();
        assert_eq!(watch.check(&lease(), &tag("1"), None, at(1000)), Found::Unknown);
        assert_eq!(watch.check(&lease(), &tag("2"), None, at(1800)), Found::Unknown);
        assert_eq!(watch.check(&lease(), &tag("3"), None, at(2600)), Found::Alive);
        let other = Lease {
            incarnation: "b-1".into(),
            ..lease()
        };
        let mut watch = Watch::default();
        assert_eq!(watch.check(&lease(), &tag("1"), None, at(1000)), Found::Unknown);
        assert_eq!(watch.check(&other, &tag("2"), None, at(3600)), Found::Alive);
    }

    #[test]
    fn a_released_lease_is_over_at_once() {
        let lease = Lease {
            is_live: false,
            ..lease()
        };
        assert_eq!(
            Watch::default().check(&lease, &tag("1"), None, Duration::ZERO),
            Found::Over
        );
    }

    #[test]
    fn a_lease_counts_from_when_its_put_was_heard_of_and_no_other_put() {
        let at = Duration::from_millis;
        let heard = |number| Heard {
            put: LeasePut {
                incarnation: "a-1".into(),
                number,
            },
            at: at(1000),
        };
        let (same, earlier) = (heard(7), heard(6));
        let mut watch = Watch::default();
        assert_eq!(watch.check(&lease(), &tag("1"), Some(&same), at(3000)), Found::Unknown);
        assert_eq!(watch.check(&lease(), &tag("1"), Some(&same), at(3575)), Found::Over);
        assert_eq!(
            Watch::default().check(&lease(), &tag("1"), Some(&same), at(3575)),
            Found::Over
        );
        let mut watch = Watch::default();
        assert_eq!(
            watch.check(&lease(), &tag("1"), Some(&earlier), at(3575)),
            Found::Unknown
        );
        assert_eq!(
            watch.check(&lease(), &tag("1"), Some(&earlier), at(6149)),
            Found::Unknown
        );
        assert_eq!(watch.check(&lease(), &tag("1"), Some(&earlier), at(6150)), Found::Over);
    }
}
