//! Months in the calendar of Java's `GregorianCalendar`: Julian up to 4 October 1582, Gregorian from the 15th.
//!
//! Arithmetic and `floor` count months in this calendar; dates are parsed and printed in the Gregorian calendar.

use crate::types::{Civil, DAY_MILLIS};

/// Days after 1970-01-01 of 15 October 1582, the first Gregorian day.
const CUTOVER_DAYS: i64 = -141_427;

/// A year, a month from 0 and a day of the month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Day {
    year: i64,
    month: i64,
    day: i64,
}

impl Day {
    fn of(days: i64) -> Self {
        if days >= CUTOVER_DAYS {
            let civil = Civil::from_days(days);
            return Self {
                year: civil.year,
                month: i64::from(civil.month) - 1,
                day: civil.day.into(),
            };
        }
        // Years from 1 March, so that the leap day is the last of its year; four of them are 1,461 days. The Julian 1 March
        // of year 0 is 719,470 days before 1970.
        let shifted = days + 719_470;
        let cycle = shifted.div_euclid(1461);
        let day_of_cycle = shifted.rem_euclid(1461);
        let year_of_cycle = (day_of_cycle - day_of_cycle / 1460) / 365;
        let day_of_year = day_of_cycle - 365 * year_of_cycle;
        let month = (5 * day_of_year + 2) / 153;
        let year = cycle * 4 + year_of_cycle + i64::from(month >= 10);
        Self {
            year,
            month: (month + 2) % 12,
            day: day_of_year - (153 * month + 2) / 5 + 1,
        }
    }

    fn gregorian(self) -> i64 {
        Civil {
            year: self.year,
            month: u8::try_from(self.month + 1).unwrap_or(1),
            day: u8::try_from(self.day).unwrap_or(1),
        }
        .to_days()
    }

    fn to_days(self) -> i64 {
        let gregorian = self.gregorian();
        if gregorian >= CUTOVER_DAYS {
            return gregorian;
        }
        let month = (self.month + 10) % 12;
        let year = self.year - i64::from(month >= 10);
        let day_of_year = (153 * month + 2) / 5 + self.day - 1;
        year.div_euclid(4) * 1461 + year.rem_euclid(4) * 365 + day_of_year - 719_470
    }

    fn month_length(self) -> i64 {
        let year = self.year;
        let century_counts = self.gregorian() >= CUTOVER_DAYS;
        let leap =
            year.rem_euclid(4) == 0 && (!century_counts || year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0);
        match self.month {
            1 if leap => 29,
            1 => 28,
            3 | 5 | 8 | 10 => 30,
            _ => 31,
        }
    }

    /// Months since year 0.
    fn months(self) -> i64 {
        self.year * 12 + self.month
    }
}

/// Adds months to a day; both days are counted from 1970-01-01. If the month is too short, the result is its last day.
pub(super) fn plus_months(days: i64, months: i64) -> i64 {
    if months == 0 {
        return days;
    }
    let from = Day::of(days);
    let total = from.months() + months;
    let mut moved = Day {
        year: total.div_euclid(12),
        month: total.rem_euclid(12),
        day: 1,
    };
    moved.day = from.day.min(moved.month_length());
    moved.to_days()
}

/// The number of month boundaries between two times, in milliseconds after 1970-01-01.
pub(super) fn months_between(from_millis: i64, to_millis: i64) -> i64 {
    let months = |millis: i64| Day::of(millis.div_euclid(DAY_MILLIS)).months();
    months(to_millis) - months(from_millis)
}

/// The time `months` later, at the same time of day.
pub(super) fn millis_plus_months(millis: i64, months: i64) -> i64 {
    plus_months(millis.div_euclid(DAY_MILLIS), months)
        .saturating_mul(DAY_MILLIS)
        .saturating_add(millis.rem_euclid(DAY_MILLIS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_julian_calendar_before_the_cutover() {
        // 4 October 1582 and 15 October 1582 follow one another.
        let last_julian = Day {
            year: 1582,
            month: 9,
            day: 4,
        };
        assert_eq!(Day::of(CUTOVER_DAYS - 1), last_julian);
        assert_eq!(last_julian.to_days(), CUTOVER_DAYS - 1);
        for days in (-1_200_000..200_000).step_by(37) {
            assert_eq!(Day::of(days).to_days(), days, "{days}");
        }
    }

    #[test]
    fn counts_months() {
        let days = |year, month, day| Civil { year, month, day }.to_days();
        assert_eq!(plus_months(days(2020, 1, 31), 1), days(2020, 2, 29));
        assert_eq!(plus_months(days(2021, 3, 31), -1), days(2021, 2, 28));
        // Two days earlier than in the Gregorian calendar.
        assert_eq!(plus_months(days(2020, 2, 29), -24_000), days(20, 2, 29) - 2);
    }
}
