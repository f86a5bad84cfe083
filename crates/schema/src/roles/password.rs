//! Passwords as `system_auth.roles` keeps them: bcrypt, `$2a$cost$salt and hash`, as Cassandra writes and reads them.
//!
//! Hashing is slow by design: some 50 ms at cost 10, and twice as long for each step more. The caller bounds how many
//! run at once.

use bcrypt::{HashParts, Version};

/// The costs that may be set: the number of rounds is two to this power.
pub const COSTS: std::ops::RangeInclusive<u32> = 4..=16;

/// The cost of Cassandra's own hashes.
pub const COST_DEFAULT: u32 = 10;

/// The bytes of a password that bcrypt reads. Cassandra takes longer ones too, without a word.
const BYTES_READ: usize = 72;

/// What the owner of a password should know of it, if anything.
#[must_use]
pub fn advice(password: &str) -> Option<String> {
    let bytes = password.len();
    (bytes > BYTES_READ).then(|| {
        format!(
            "The password has {bytes} bytes, of which bcrypt reads the first {BYTES_READ}: every password that begins with these is right"
        )
    })
}

/// Salt and hash that no password matches, for unknown roles: refusing them takes as long as refusing a wrong password.
const NO_ROLE: &str = "EjZm89SZ0sv4pQvSekzj1Ow35D1yCBjoQ2S9b/gvtsBkiLZl8Mixu";

fn no_role(cost: u32) -> String {
    format!("$2a${cost:02}${NO_ROLE}")
}

/// Hashes a password with a salt that is used once. `None` means that the cost is out of bounds.
#[must_use]
pub fn hash(password: &str, cost: u32, salt: [u8; 16]) -> Option<String> {
    if !COSTS.contains(&cost) {
        return None;
    }
    let parts = bcrypt::hash_with_salt(password, cost, salt).ok()?;
    Some(parts.format_for_version(Version::TwoA))
}

/// The cost of a hash; `None` means that the text is no hash.
#[must_use]
pub fn cost_of(text: &str) -> Option<u32> {
    let parts: Result<HashParts, _> = text.parse();
    parts.ok().map(|parts| parts.get_cost())
}

/// Whether a text is a valid hash with an acceptable cost.
fn is_hash(text: &str) -> bool {
    cost_of(text).is_some_and(|cost| COSTS.contains(&cost))
}

/// Whether a password matches this hash. For `None` (no such role) the check takes as long as with a hash of `cost`.
#[must_use]
pub fn is_right(password: &[u8], hash: Option<&str>, cost: u32) -> bool {
    match hash.filter(|hash| is_hash(hash)) {
        Some(hash) => bcrypt::verify(password, hash).unwrap_or(false),
        None => {
            drop(bcrypt::verify(password, &no_role(cost)));
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_of_more_bytes_than_are_read_is_told() {
        let hash = |password: &str| hash(password, 4, [7; 16]);
        assert_eq!(hash(&"b".repeat(72)), hash(&"b".repeat(100)));
        assert_eq!(advice(&"b".repeat(72)), None);
        // Bytes, not characters.
        assert!(advice(&"é".repeat(37)).is_some_and(|advice| advice.starts_with("The password has 74 bytes")));
    }

    #[test]
    fn a_hash_of_cassandras_is_read_and_ours_has_its_form() {
        let cassandras = "$2a$10$EjZm89SZ0sv4pQvSekzj1Ow35D1yCBjoQ2S9b/gvtsBkiLZl8MiMu";
        assert!(is_hash(cassandras));
        // Compared like any other: an early error would reveal that the role does not exist.
        assert!(matches!(bcrypt::verify("x", &no_role(4)), Ok(false)));
        let ours = hash("päss", 4, [7; 16]).unwrap();
        assert!(ours.starts_with("$2a$04$") && ours.len() == cassandras.len(), "{ours}");
        assert!(is_right("päss".as_bytes(), Some(&ours), 4));
        assert!(!is_right(b"pass", Some(&ours), 4));
        assert_ne!(hash("päss", 4, [8; 16]), Some(ours));
    }

    #[test]
    fn what_is_no_hash_or_too_dear_is_refused() {
        for text in [
            "",
            "abc",
            "$2a$31$EjZm89SZ0sv4pQvSekzj1Ow35D1yCBjoQ2S9b/gvtsBkiLZl8MiMu",
        ] {
            assert!(!is_hash(text), "{text}");
            assert!(!is_right(b"x", Some(text), 4));
        }
        assert_eq!(hash("x", 17, [0; 16]), None);
    }
}
