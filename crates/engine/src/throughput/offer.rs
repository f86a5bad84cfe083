//! Lower bounds of throughput, and the throughput that autoscale sets.
//!
//! Sources: Azure Cosmos DB's documentation (concepts-limits, provision-throughput-autoscale); error texts as clients
//! have reported them.

/// Bytes of a gigabyte, as Cosmos counts storage.
const GB: u64 = 1 << 30;

/// Tables that a keyspace's shared throughput serves before each further one raises the lower bound.
const SHARED_TABLES: u64 = 25;

/// Most request units a second that a table or keyspace may have.
pub const UNITS_MAX: u32 = 1_000_000;

/// The figures that a lower bound is computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footing {
    /// The highest throughput that it ever had, in units a second.
    pub highest: u32,
    /// Bytes stored.
    pub bytes: u64,
    /// Tables that share a keyspace's units; 0 for a table.
    pub shared_tables: u64,
}

impl Footing {
    fn gigabytes(self) -> u64 {
        self.bytes.div_ceil(GB)
    }

    fn extra_tables(self) -> u64 {
        self.shared_tables.saturating_sub(SHARED_TABLES)
    }

    /// The lowest manual throughput, in units a second: the largest of 400 (and 100 more for each shared table above
    /// 25), 1 for each GB, and a hundredth of the highest ever; in steps of 100.
    #[must_use]
    pub fn least_manual(self) -> u32 {
        let least = 400 + self.extra_tables().saturating_mul(100);
        let least = least.max(self.gigabytes()).max(u64::from(self.highest / 100));
        clamp(least.next_multiple_of(100))
    }

    /// The lowest autoscale maximum, in units a second: the largest of 1,000 (and 1,000 more for each shared table
    /// above 25), 10 for each GB, and a tenth of the highest ever; in steps of 1,000.
    #[must_use]
    pub fn least_autoscale(self) -> u32 {
        let least = 1_000 + self.extra_tables().saturating_mul(1_000);
        let least = least
            .max(self.gigabytes().saturating_mul(10))
            .max(u64::from(self.highest / 10));
        clamp(least.next_multiple_of(1_000))
    }

    /// The error text for a request of fewer units than `least`, in steps of `step`.
    #[must_use]
    pub fn below(self, asked: u32, least: u32, step: u32) -> String {
        let floor = if step == 100 {
            u64::from(self.highest / 100).next_multiple_of(100)
        } else {
            u64::from(self.highest / 10).next_multiple_of(1_000)
        };
        // Only the first of these reasons is known from Cosmos; the other texts are our own.
        let why = if u64::from(least) == floor {
            format!("Highest RUs provisioned {}", self.highest)
        } else if self.extra_tables() > 0 {
            format!("number of tables {}", self.shared_tables)
        } else {
            format!("storage of {} GB", self.gigabytes())
        };
        format!(
            "{{\"Errors\":[\"The offer should have valid throughput values between {least} and {UNITS_MAX} inclusive in increments \
             of {step}. Requested throughput {asked} is less than required minimum throughput {least}. Minimum limit {least} is \
             because of {why}.\"]}}"
        )
    }
}

fn clamp(units: u64) -> u32 {
    u32::try_from(units).unwrap_or(u32::MAX).min(UNITS_MAX)
}

/// The throughput that autoscale has scaled to: between a tenth of the maximum and all of it. `percent` is the use of
/// the busiest partition.
#[must_use]
pub fn autoscale_current(max: u32, percent: u8) -> u32 {
    let used = u64::from(max) * u64::from(percent.min(100)) / 100;
    clamp(used).max(max / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_are_as_documented() {
        let footing = |highest, gigabytes, shared_tables| Footing {
            highest,
            bytes: gigabytes * GB,
            shared_tables,
        };
        for (footing, manual, autoscale) in [
            (footing(400, 0, 0), 400, 1_000),
            (footing(50_000, 0, 0), 500, 5_000),
            (footing(100_000, 20, 0), 1_000, 10_000),
            (footing(400, 1_050, 0), 1_100, 11_000),
            (footing(400, 0, 25), 400, 1_000),
            (footing(400, 0, 30), 900, 6_000),
            (footing(1_000_000, 0, 0), 10_000, 100_000),
        ] {
            assert_eq!(
                (footing.least_manual(), footing.least_autoscale()),
                (manual, autoscale),
                "{footing:?}"
            );
        }
        assert_eq!(
            footing(50_000, 0, 0).below(400, 500, 100),
            "{\"Errors\":[\"The offer should have valid throughput values between 500 and 1000000 inclusive in increments of 100. \
             Requested throughput 400 is less than required minimum throughput 500. Minimum limit 500 is because of Highest RUs \
             provisioned 50000.\"]}"
        );
    }

    #[test]
    fn autoscale_stays_between_a_tenth_and_all() {
        for (percent, current) in [(0, 400), (5, 400), (10, 400), (50, 2_000), (100, 4_000), (200, 4_000)] {
            assert_eq!(autoscale_current(4_000, percent), current);
        }
    }
}
