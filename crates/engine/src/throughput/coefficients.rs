//! Prices of operations, from which charges are computed.
//!
//! The defaults match the published points of Azure Cosmos DB: a read of 1 KiB is 1 unit and of 100 KiB 10, a write of
//! 1 KiB 5 and of 100 KiB 50, a replacement twice an insert, 2 to 3 units for each physical partition that a query
//! visits, 3.19 for a query that finds one row. Prices between them are linear; the price of an index is from a
//! measured batch (100 rows, 780.95 units).
//! Sources: Microsoft Learn, "Request Units in Azure Cosmos DB", "Optimize request cost", "Partitioning and horizontal
//! scaling"; Stack Overflow 67445546.

use std::fmt;
use std::str::FromStr;

const KIB: u64 = 1024;

/// Highest value of a coefficient, in units.
const UNITS_MAX: u64 = 1_000_000;

/// Decimal places that are kept.
const DECIMALS: usize = 6;

/// How a row was written, as far as its price depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowWrite {
    /// INSERT.
    Insert,
    /// UPDATE, or DELETE of columns.
    Update,
    /// DELETE of the row.
    Delete,
}

macro_rules! coefficients {
    ($($(#[doc = $doc:literal])+ $field:ident = $name:literal, $default:literal;)+) => {
        /// Prices, in millionths of a request unit. Parsed from `name=value` pairs with commas between; coefficients
        /// not named keep their defaults.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Coefficients {
            $($(#[doc = $doc])+ $field: u64,)+
        }

        impl Default for Coefficients {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl Coefficients {
            /// The names of all coefficients.
            pub const NAMES: &[&str] = &[$($name),+];

            fn place(&mut self, name: &str) -> Option<&mut u64> {
                match name {
                    $($name => Some(&mut self.$field),)+
                    _ => None,
                }
            }

            /// Names and values, in millionths of a unit.
            fn pairs(&self) -> [(&'static str, u64); Self::NAMES.len()] {
                [$(($name, self.$field)),+]
            }
        }
    };
}

coefficients! {
    /// A row of up to 1 KiB read by its whole key.
    read = "read", 1_000_000;
    /// Each further KiB of it.
    read_kib = "read-kib", 90_909;
    /// A new row of up to 1 KiB.
    write = "write", 5_000_000;
    /// Each further KiB of it.
    write_kib = "write-kib", 454_545;
    /// Factor from the price of a new row to that of a changed one.
    change = "change", 2_000_000;
    /// Each indexed column that is written.
    index = "index", 500_000;
    /// Each physical partition that a read of ranges visits.
    visit = "visit", 2_300_000;
    /// Each KiB of rows that such a read scans.
    scan_kib = "scan-kib", 890_000;
    /// Each KiB of rows returned.
    return_kib = "return-kib", 0;
    /// A statement on system tables or the schema.
    metadata = "metadata", 1_000_000;
}

fn bytes_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// The price of `bytes` at a price for each KiB, rounded to the nearest millionth.
const fn by_kib(micros_per_kib: u64, bytes: u64) -> u64 {
    micros_per_kib.saturating_mul(bytes).saturating_add(KIB / 2) / KIB
}

/// A fixed price for the first KiB, and a linear one for the bytes above it.
const fn line(first: u64, per_kib: u64, bytes: u64) -> u64 {
    if bytes <= KIB {
        return first;
    }
    first.saturating_add(by_kib(per_kib, bytes.saturating_sub(KIB)))
}

impl Coefficients {
    pub(super) fn lookup_micros(&self, row_bytes: usize) -> u64 {
        line(self.read, self.read_kib, bytes_u64(row_bytes))
    }

    pub(super) const fn visit_micros(&self) -> u64 {
        self.visit
    }

    pub(super) fn scan_micros(&self, row_bytes: usize) -> u64 {
        by_kib(self.scan_kib, bytes_u64(row_bytes))
    }

    pub(super) fn return_micros(&self, result_bytes: usize) -> u64 {
        if self.return_kib == 0 {
            return 0;
        }
        by_kib(self.return_kib, bytes_u64(result_bytes))
    }

    /// UPDATE is charged as a change even if it creates the row, as Cosmos publishes.
    pub(super) fn write_micros(&self, how: RowWrite, row_bytes: usize, existed: bool) -> u64 {
        let new = line(self.write, self.write_kib, bytes_u64(row_bytes));
        let is_change = match how {
            RowWrite::Insert => existed,
            RowWrite::Update => true,
            RowWrite::Delete => false,
        };
        if is_change {
            let changed = u128::from(new) * u128::from(self.change) / 1_000_000;
            u64::try_from(changed).unwrap_or(u64::MAX)
        } else {
            new
        }
    }

    pub(super) fn index_micros(&self, columns: usize) -> u64 {
        self.index.saturating_mul(bytes_u64(columns))
    }

    pub(super) const fn metadata_micros(&self) -> u64 {
        self.metadata
    }

    /// Prices of zero.
    #[must_use]
    pub fn free() -> Self {
        let mut free = Self::default();
        for name in Self::NAMES {
            if let Some(price) = free.place(name) {
                *price = 0;
            }
        }
        free
    }
}

/// The error of an invalid text of prices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// No `name=value`.
    #[error("{0:?} is no name=value")]
    NoPair(String),
    /// No coefficient has this name.
    #[error("there is no coefficient {0:?}, but {names}", names = Coefficients::NAMES.join(", "))]
    Unknown(String),
    /// The value is no number in range.
    #[error("{0:?} is no number from 0 to {UNITS_MAX} with up to {DECIMALS} decimals")]
    NoPrice(String),
}

impl FromStr for Coefficients {
    type Err = PriceError;

    fn from_str(text: &str) -> Result<Self, PriceError> {
        let mut prices = Self::default();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| PriceError::NoPair(pair.to_owned()))?;
            let (name, value) = (name.trim(), value.trim());
            let price = prices.place(name).ok_or_else(|| PriceError::Unknown(name.to_owned()))?;
            *price = micros(value).ok_or_else(|| PriceError::NoPrice(value.to_owned()))?;
        }
        Ok(prices)
    }
}

/// A decimal number in millionths.
fn micros(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && decimals.is_empty())
        || decimals.len() > DECIMALS
        || !is_digits(whole)
        || !is_digits(decimals)
    {
        return None;
    }
    let whole = if whole.is_empty() {
        0
    } else {
        whole.parse::<u64>().ok()?
    };
    let decimals = format!("{decimals:0<DECIMALS$}").parse::<u64>().ok()?;
    let micros = whole.checked_mul(1_000_000)?.checked_add(decimals)?;
    (micros <= UNITS_MAX * 1_000_000).then_some(micros)
}

impl fmt::Display for Coefficients {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, micros)) in self.pairs().into_iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            let decimals = format!("{:06}", micros % 1_000_000);
            let decimals = decimals.trim_end_matches('0');
            let point = if decimals.is_empty() { "" } else { "." };
            write!(formatter, "{comma}{name}={}{point}{decimals}", micros / 1_000_000)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn prices_are_read_by_name() {
        let prices: Coefficients = "visit=2.5, scan-kib=0.000001,write=7".parse().unwrap();
        let expected = Coefficients {
            visit: 2_500_000,
            scan_kib: 1,
            write: 7_000_000,
            ..Coefficients::default()
        };
        assert_eq!(prices, expected);
        assert_eq!("".parse::<Coefficients>().unwrap(), Coefficients::default());
        for wrong in [
            "visit",
            "visits=1",
            "visit=",
            "visit=-1",
            "visit=1.0000001",
            "visit=1000001",
            "visit=1e3",
            "=1",
        ] {
            assert!(wrong.parse::<Coefficients>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn free_is_free() {
        assert!(Coefficients::free().pairs().iter().all(|(_, micros)| *micros == 0));
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_again(values in prop::collection::vec(0..=UNITS_MAX * 1_000_000, Coefficients::NAMES.len())) {
            let mut prices = Coefficients::default();
            for (name, value) in Coefficients::NAMES.iter().zip(values) {
                *prices.place(name).unwrap() = value;
            }
            prop_assert_eq!(prices.to_string().parse::<Coefficients>().unwrap(), prices);
        }
    }
}
