//! How often passwords are compared: guesses are rate-limited, no client is locked out.
//!
//! A wrong password uses a turn in up to three lines. Each line grants its first turns at once and then one per
//! interval:
//!
//! | line | one for | turns at once | then one every |
//! | --- | --- | --- | --- |
//! | block | an IPv4 address, an IPv6 /64 | 5 | 300 ms |
//! | range | an IPv4 /24, an IPv6 /48 | 20 | 75 ms |
//! | user | a name, for all blocks from which it has never logged in | 20 | 75 ms |
//!
//! A login waits for its turn in the slowest of its lines, at most [`WAIT_MAX`]. If it had to wait longer, it is
//! refused without a comparison. The right password uses no turn. So a pool of connections logs in at once, and a block
//! from which the user has logged in does not wait for guesses from other blocks. A right password is answered as late
//! as a wrong one would be: otherwise the absence of an early answer would reveal a wrong guess before its turn.
//!
//! ```text
//! next turn       now            now + WAIT_MAX
//!    │  at once    │   waits its turn   │   refused, not compared
//! ───┴─────────────┴────────────────────┴──────────────────────────► next turn of the slowest line
//! ```
//! Lines are selected by a keyed hash in tables of fixed size, so memory is bounded and an attack evicts nothing. Two
//! sources with one line share its turns. The key is a parameter, so that no client can choose the clients with which
//! it shares a line.
//!
//! The disadvantage: while `n` guesses at a time come from one address, another client at this address waits `n + 1`
//! turns. With more than five guesses at a time it may be refused and has to retry, since before the comparison it
//! cannot be distinguished from the others.

use std::hash::{BuildHasher, Hash};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use foldhash::quality::FixedState;

/// The longest wait of a login for its turn. Drivers time out after 5 s or more.
pub(super) const WAIT_MAX: Duration = Duration::from_millis(1800);

/// Lines of blocks, and flags of successful logins by user and block. A collision causes waiting, never an extra
/// comparison.
const BLOCK_LINES: usize = 16 * 1024;

/// Lines of ranges.
const RANGE_LINES: usize = 1024;

/// Lines of users.
const USER_LINES: usize = 1024;

/// The pace of a line.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Turns at once of a line that has rested.
    free: u32,
    /// Time between turns after that.
    spacing: Duration,
}

const BLOCK: Pace = Pace {
    free: 5,
    spacing: Duration::from_millis(300),
};

const RANGE: Pace = Pace {
    free: 20,
    spacing: Duration::from_millis(75),
};

const USER: Pace = RANGE;

/// A line: the time at which it has rested, by the caller's clock.
#[derive(Clone, Copy, Debug, Default)]
struct Line(Duration);

impl Line {
    fn wait(self, pace: Pace, now: Duration) -> Duration {
        let at_once = pace.spacing * pace.free.saturating_sub(1);
        self.0.saturating_sub(now + at_once)
    }

    fn take(&mut self, pace: Pace, now: Duration) {
        self.0 = self.0.max(now) + pace.spacing;
    }

    fn give_back(&mut self, pace: Pace) {
        self.0 = self.0.saturating_sub(pace.spacing);
    }
}

/// The outcome of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// The password is right; answer after this time.
    Right(Duration),
    /// It is wrong; answer after this time.
    Wrong(Duration),
    /// The line is too long: the password was not compared.
    NotCompared,
}

#[derive(Debug)]
struct Lines {
    blocks: Box<[Line]>,
    ranges: Box<[Line]>,
    users: Box<[Line]>,
    /// Whether a user has logged in from a block since the start.
    known: Box<[bool]>,
}

/// The lines of all clients that guess.
#[derive(Debug)]
pub(super) struct Guesses {
    hash: FixedState,
    lines: Mutex<Lines>,
}

impl Guesses {
    /// Empty lines. `key` decides which clients share a line.
    pub(super) fn new(key: u64) -> Self {
        Self {
            hash: FixedState::with_seed(key),
            lines: Mutex::new(Lines {
                blocks: vec![Line::default(); BLOCK_LINES].into(),
                ranges: vec![Line::default(); RANGE_LINES].into(),
                users: vec![Line::default(); USER_LINES].into(),
                known: vec![false; BLOCK_LINES].into(),
            }),
        }
    }

    /// Compares if it is this login's turn, or will be soon. `is_right` does the comparison.
    pub(super) fn check(&self, from: IpAddr, user: &str, now: Duration, is_right: impl FnOnce() -> bool) -> Checked {
        let (block, range) = places(from);
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let Lines {
            blocks,
            ranges,
            users,
            known,
        } = &mut *lines;
        let (Some(block_line), Some(range_line), Some(user_line), Some(known)) = (
            blocks.get_mut(self.slot(block, BLOCK_LINES)),
            ranges.get_mut(self.slot(range, RANGE_LINES)),
            users.get_mut(self.slot(user, USER_LINES)),
            known.get_mut(self.slot((block, user), BLOCK_LINES)),
        ) else {
            return Checked::NotCompared;
        };
        let mut wait = block_line.wait(BLOCK, now).max(range_line.wait(RANGE, now));
        if !*known {
            wait = wait.max(user_line.wait(USER, now));
        }
        if wait > WAIT_MAX {
            return Checked::NotCompared;
        }
        if is_right() {
            *known = true;
            return Checked::Right(wait);
        }
        // Only wrong passwords use turns.
        block_line.take(BLOCK, now);
        range_line.take(RANGE, now);
        if !*known {
            user_line.take(USER, now);
        }
        Checked::Wrong(wait)
    }

    /// Returns the turn of a login that counted as wrong before its comparison, and was right.
    pub(super) fn give_back(&self, from: IpAddr, user: &str) {
        let (block, range) = places(from);
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.blocks.get_mut(self.slot(block, BLOCK_LINES)) {
            line.give_back(BLOCK);
        }
        if let Some(line) = lines.ranges.get_mut(self.slot(range, RANGE_LINES)) {
            line.give_back(RANGE);
        }
        let Some(known) = lines.known.get_mut(self.slot((block, user), BLOCK_LINES)) else {
            return;
        };
        if !std::mem::replace(known, true)
            && let Some(line) = lines.users.get_mut(self.slot(user, USER_LINES))
        {
            line.give_back(USER);
        }
    }

    fn slot(&self, of: impl Hash, slots: usize) -> usize {
        let slots = u64::try_from(slots).unwrap_or(u64::MAX);
        usize::try_from(self.hash.hash_one(of) % slots).unwrap_or_default()
    }
}

/// The block and the range of an address, as numbers distinct between the address families.
fn places(address: IpAddr) -> ((bool, u64), (bool, u64)) {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let bits = u64::from(address.to_bits());
            ((false, bits), (false, bits >> 8))
        }
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments().map(u64::from);
            let range = a << 32 | b << 16 | c;
            ((true, range << 16 | d), (true, range))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    const HOME: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Comparisons granted to 10,000 guesses, one each millisecond or all at once.
    fn compared(guesses: &Guesses, step: Duration, from: impl Fn(u32) -> IpAddr) -> usize {
        (0..10_000)
            .filter(|number| guesses.check(from(*number), "u", step * *number, || false) != Checked::NotCompared)
            .count()
    }

    #[test]
    fn ten_thousand_guesses_reach_few_comparisons() {
        let v6 = |number: u32| IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(number)));
        let in_range = |number: u32| IpAddr::V4(Ipv4Addr::from_bits(0xC000_0200 | (number % 256)));
        let everywhere = |number: u32| IpAddr::V4(Ipv4Addr::from_bits(number << 12));
        let of = |step: u64, from: &dyn Fn(u32) -> IpAddr| compared(&Guesses::new(1), millis(step), from);
        for (name, at_once, in_ten_seconds) in [
            ("one address", of(0, &|_| HOME), of(1, &|_| HOME)),
            ("one IPv6 /64", of(0, &v6), of(1, &v6)),
        ] {
            assert!(
                at_once <= 11 && in_ten_seconds < 50,
                "{name}: {at_once}, {in_ten_seconds}"
            );
            assert!(
                in_ten_seconds > 30,
                "{name}: those who wait their turn are compared: {in_ten_seconds}"
            );
        }
        for (name, at_once, in_ten_seconds) in [
            ("one /24", of(0, &in_range), of(1, &in_range)),
            ("10,000 ranges", of(0, &everywhere), of(1, &everywhere)),
        ] {
            assert!(
                at_once < 50 && in_ten_seconds < 200,
                "{name}: {at_once}, {in_ten_seconds}"
            );
        }
    }

    #[test]
    fn the_right_password_waits_its_turn_and_no_longer() {
        let guesses = Guesses::new(1);
        // Five clients at this address guess without end, each again as soon as it is answered.
        let mut free_at = [Duration::ZERO; 5];
        for now in (0..60_000).map(millis) {
            for free_at in &mut free_at {
                if *free_at <= now {
                    *free_at = match guesses.check(HOME, "u", now, || false) {
                        Checked::Wrong(wait) => now + wait,
                        other => panic!("there are places enough: {other:?}"),
                    };
                }
            }
            if now.subsec_millis() == 777 {
                let Checked::Right(wait) = guesses.check(HOME, "u", now, || true) else {
                    panic!("refused at {now:?}");
                };
                assert!(wait <= WAIT_MAX, "{wait:?}");
            }
        }
        let later = Duration::from_secs(70);
        assert_eq!(guesses.check(HOME, "u", later, || true), Checked::Right(Duration::ZERO));
    }

    #[test]
    fn guesses_from_everywhere_stop_no_client_that_was_here_before() {
        let guesses = Guesses::new(1);
        assert_eq!(
            guesses.check(HOME, "u", Duration::ZERO, || true),
            Checked::Right(Duration::ZERO)
        );
        let attackers = |number: u32| IpAddr::V4(Ipv4Addr::from_bits(0x0A00_0000 | number << 8));
        compared(&guesses, Duration::ZERO, attackers);
        assert_eq!(
            guesses.check(HOME, "u", millis(1), || true),
            Checked::Right(Duration::ZERO)
        );
        // The first login from elsewhere has to wait, or to retry.
        let elsewhere = "203.0.113.1".parse().unwrap();
        assert_ne!(
            guesses.check(elsewhere, "u", millis(1), || true),
            Checked::Right(Duration::ZERO)
        );
        assert_eq!(
            guesses.check(elsewhere, "other", millis(1), || true),
            Checked::Right(Duration::ZERO)
        );
    }

    #[test]
    fn right_passwords_take_no_turn() {
        let guesses = Guesses::new(1);
        for _ in 0..10_000 {
            assert_eq!(
                guesses.check(HOME, "u", Duration::ZERO, || true),
                Checked::Right(Duration::ZERO)
            );
        }
    }

    #[test]
    fn an_address_in_ipv6_clothes_is_the_same() {
        let dressed = "::ffff:192.0.2.1".parse().unwrap();
        assert_eq!(places(HOME), places(dressed));
        let (block, range) = places("2001:db8:1:2:3::4".parse().unwrap());
        assert_eq!(block, (true, 0x2001_0db8_0001_0002));
        assert_eq!(range, (true, 0x2001_0db8_0001));
    }
}
