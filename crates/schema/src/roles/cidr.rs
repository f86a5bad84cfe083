//! Ranges of addresses and the groups that name them, for `ACCESS FROM CIDRS`.
//!
//! ```text
//! address ─► narrowest range that holds it ─► groups with this range
//! ```
//! Groups with wider ranges only do not count: `10.1.2.3` is in `branch = 10.1.0.0/16` and not in `all = 10.0.0.0/8`.
//! An IPv4-mapped IPv6 address is the IPv4 address.
//!
//! Source: Cassandra's `CIDR` and `CIDRGroupsMappingIntervalTree`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A range of addresses with the same first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cidr {
    /// The lowest address.
    start: IpAddr,
    /// Bits that all addresses have in common.
    mask_bits: u8,
}

/// The text is no range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a valid CIDR String")]
pub struct NoCidr(String);

impl Cidr {
    /// The range of this many common bits that holds an address. `None` means the address has fewer bits.
    #[must_use]
    pub fn new(address: IpAddr, mask_bits: u8) -> Option<Self> {
        let start = match address {
            IpAddr::V4(address) if mask_bits <= 32 => {
                let mask = u32::MAX.checked_shl(32 - u32::from(mask_bits)).unwrap_or(0);
                IpAddr::V4((address.to_bits() & mask).into())
            }
            IpAddr::V6(address) if mask_bits <= 128 => {
                let mask = u128::MAX.checked_shl(128 - u32::from(mask_bits)).unwrap_or(0);
                IpAddr::V6((address.to_bits() & mask).into())
            }
            IpAddr::V4(_) | IpAddr::V6(_) => return None,
        };
        Some(Self { start, mask_bits })
    }

    /// The lowest address.
    #[must_use]
    pub const fn start(&self) -> IpAddr {
        self.start
    }

    /// Bits that all addresses have in common.
    #[must_use]
    pub const fn mask_bits(&self) -> u8 {
        self.mask_bits
    }
}

impl FromStr for Cidr {
    type Err = NoCidr;

    /// `ADDRESS/BITS`.
    fn from_str(text: &str) -> Result<Self, NoCidr> {
        let parse = || {
            let (address, bits) = text.split_once('/')?;
            let (address, bits): (IpAddr, u8) = (address.parse().ok()?, bits.parse().ok()?);
            let canonical = address.to_canonical();
            let bits = if canonical == address {
                bits
            } else {
                bits.checked_sub(96)?
            };
            Self::new(canonical, bits)
        };
        parse().ok_or_else(|| NoCidr(text.to_owned()))
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.start, self.mask_bits)
    }
}

/// Groups of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CidrGroups {
    /// The ranges of each group.
    ranges: BTreeMap<String, BTreeSet<Cidr>>,
    /// The groups of each range.
    groups: BTreeMap<Cidr, BTreeSet<String>>,
    /// The lengths of masks that occur.
    mask_bits: BTreeSet<u8>,
}

impl CidrGroups {
    /// The groups with these ranges.
    #[must_use]
    pub fn new(ranges: BTreeMap<String, BTreeSet<Cidr>>) -> Self {
        let mut groups: BTreeMap<Cidr, BTreeSet<String>> = BTreeMap::new();
        for (name, of_name) in &ranges {
            for range in of_name {
                groups.entry(*range).or_default().insert(name.clone());
            }
        }
        let mask_bits = groups.keys().map(Cidr::mask_bits).collect();
        Self {
            ranges,
            groups,
            mask_bits,
        }
    }

    /// The ranges of each group.
    #[must_use]
    pub const fn ranges(&self) -> &BTreeMap<String, BTreeSet<Cidr>> {
        &self.ranges
    }

    /// Whether there is a group of this name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.ranges.contains_key(name)
    }

    /// The groups of an address. `None` means no range holds it.
    #[must_use]
    pub fn of_address(&self, address: IpAddr) -> Option<&BTreeSet<String>> {
        let address = address.to_canonical();
        let narrowest_first = self.mask_bits.iter().rev();
        narrowest_first
            .filter_map(|bits| Cidr::new(address, *bits))
            .find_map(|range| self.groups.get(&range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_as_cassandra_reads_it() {
        for (text, expected) in [
            ("10.20.33.40/24", "10.20.33.0/24"),
            ("10.20.33.40/32", "10.20.33.40/32"),
            ("10.20.33.40/0", "0.0.0.0/0"),
            ("::1/128", "::1/128"),
            ("2001:db8:1:2:3::/33", "2001:db8::/33"),
            ("2001:db8::/0", "::/0"),
            ("::ffff:192.1.56.10/96", "0.0.0.0/0"),
            ("::ffff:192.1.56.10/120", "192.1.56.0/24"),
        ] {
            assert_eq!(text.parse::<Cidr>().unwrap().to_string(), expected, "{text}");
        }
        for text in [
            "",
            "10.0.0.0",
            "10.0.0.0/33",
            "10.0.0.0/-1",
            "10.0.0.0/8/8",
            "10.0.0/8",
            "::/129",
            "::ffff:10.0.0.0/95",
            "host/8",
        ] {
            assert_eq!(text.parse::<Cidr>(), Err(NoCidr(text.to_owned())));
        }
    }

    #[test]
    fn the_narrowest_range_gives_the_groups() {
        let groups = [
            ("all", "10.0.0.0/8"),
            ("branch", "10.1.0.0/16"),
            ("again", "10.1.0.0/16"),
            ("other", "10.2.0.0/16"),
            ("six", "2001:db8::/32"),
            ("one", "::1/128"),
        ];
        let mut ranges: BTreeMap<String, BTreeSet<Cidr>> = BTreeMap::new();
        for (name, range) in groups {
            ranges
                .entry(name.to_owned())
                .or_default()
                .insert(range.parse().unwrap());
        }
        let groups = CidrGroups::new(ranges);
        for (address, expected) in [
            ("10.1.2.3", &["again", "branch"][..]),
            ("::ffff:10.1.2.3", &["again", "branch"]),
            ("10.2.2.3", &["other"]),
            ("10.3.2.3", &["all"]),
            ("11.1.2.3", &[]),
            ("2001:db8:1::", &["six"]),
            ("2001:db9::", &[]),
            ("::1", &["one"]),
            ("::2", &[]),
        ] {
            let found = groups.of_address(address.parse().unwrap());
            let found: Vec<&str> = found.into_iter().flatten().map(String::as_str).collect();
            assert_eq!(found, expected, "{address}");
        }
        assert_eq!(CidrGroups::default().of_address("10.1.2.3".parse().unwrap()), None);
    }
}
