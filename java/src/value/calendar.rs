//! The value of a `Calendar`: a time, and the fields that it has in a time zone.

use super::Zone;
use crate::days::{DAY_MILLIS, hybrid_civil, hybrid_days, month_days};

/// The fields that a calendar holds between two looks at it. They may lie outside their ranges until they are normalized.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    pub(crate) zone: Zone,
    pub(crate) millis: i64,
    /// Year (0 is 1 BC), month from 0, day of the month from 1.
    pub(crate) date: [i64; 3],
    /// Hour, minute, second, millisecond.
    pub(crate) time: [i64; 4],
    /// Whether a field was set since `millis` was computed.
    pub(crate) is_stale: bool,
}

impl Calendar {
    pub(crate) fn at(millis: i64, zone: Zone) -> Self {
        let mut calendar = Self {
            zone,
            millis,
            date: [1970, 0, 1],
            time: [0; 4],
            is_stale: false,
        };
        calendar.spread();
        calendar
    }

    /// Computes the fields of the time.
    pub(crate) fn spread(&mut self) {
        let local = self.millis.saturating_add(i64::from(self.zone.offset_seconds) * 1000);
        let (year, month, day) = hybrid_civil(local.div_euclid(DAY_MILLIS));
        let rest = local.rem_euclid(DAY_MILLIS);
        self.date = [year, month - 1, day];
        self.time = [rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60, rest % 1000];
        self.is_stale = false;
    }

    /// Computes the time of the fields, and then the fields again, within their ranges.
    pub(crate) fn normalize(&mut self) {
        if !self.is_stale {
            return;
        }
        let [year, month, day] = self.date;
        let first = hybrid_days(
            year.saturating_add(month.div_euclid(12)),
            month.rem_euclid(12) + 1,
            1,
            day,
        );
        let [hour, minute, second, milli] = self.time;
        let time = [(hour, 3_600_000), (minute, 60_000), (second, 1000), (milli, 1)];
        let time = time
            .iter()
            .fold(0_i64, |sum, (value, of)| sum.saturating_add(value.saturating_mul(*of)));
        let local = first.saturating_mul(DAY_MILLIS).saturating_add(time);
        self.millis = local.saturating_sub(i64::from(self.zone.offset_seconds) * 1000);
        self.spread();
    }

    /// The days since 1970-01-01 of its date.
    fn days(&self) -> i64 {
        let local = self.millis.saturating_add(i64::from(self.zone.offset_seconds) * 1000);
        local.div_euclid(DAY_MILLIS)
    }

    /// From 1, which is a Sunday.
    fn weekday(days: i64) -> i64 {
        (days + 4).rem_euclid(7) + 1
    }

    /// The value of a field of a normalized calendar, by Java's number of the field.
    pub(crate) fn get(&self, field: i32) -> Option<i64> {
        let ([year, month, day], [hour, minute, second, milli]) = (self.date, self.time);
        let days = self.days();
        let new_year = hybrid_days(year, 1, 1, 1);
        let day_of_year = days - new_year + 1;
        Some(match field {
            0 => i64::from(year > 0),
            1 if year > 0 => year,
            1 => 1 - year,
            2 => month,
            3 => {
                let next = hybrid_days(year.saturating_add(1), 1, 1, 1);
                // The days of the week of the next New Year's Day belong to the first week of that year.
                if next - days < Self::weekday(next) {
                    1
                } else {
                    (day_of_year + Self::weekday(new_year) - 2) / 7 + 1
                }
            }
            4 => (day + Self::weekday(days - day + 1) - 2) / 7 + 1,
            5 => day,
            6 => day_of_year,
            7 => Self::weekday(days),
            8 => (day - 1) / 7 + 1,
            9 => hour / 12,
            10 => hour % 12,
            11 => hour,
            12 => minute,
            13 => second,
            14 => milli,
            15 => i64::from(self.zone.offset_seconds) * 1000,
            16 => 0,
            _ => return None,
        })
    }

    /// Sets a field; false where this calendar cannot.
    pub(crate) fn set(&mut self, field: i32, value: i64) -> bool {
        // These are measured from what is set already.
        if matches!(field, 3 | 6 | 7 | 9 | 10) {
            self.normalize();
        }
        let by = |calendar: &Self| value - calendar.get(field).unwrap_or(0);
        match field {
            3 => self.date[2] += by(self) * 7,
            7 => self.date[2] += by(self),
            6 => {
                self.date[1] = 0;
                self.date[2] = value;
            }
            9 => self.time[0] = self.time[0] % 12 + value * 12,
            10 => self.time[0] = self.time[0] / 12 * 12 + value,
            1 => {
                self.date[0] = if self.date[0] > 0 || self.is_stale {
                    value
                } else {
                    1 - value
                }
            }
            2 => self.date[1] = value,
            5 => self.date[2] = value,
            11 => self.time[0] = value,
            12 => self.time[1] = value,
            13 => self.time[2] = value,
            14 => self.time[3] = value,
            _ => return false,
        }
        self.is_stale = true;
        true
    }

    /// Adds to a field; false where this calendar cannot.
    pub(crate) fn add(&mut self, field: i32, amount: i64) -> bool {
        self.normalize();
        match field {
            1 | 2 => {
                let [year, month, day] = self.date;
                let months = if field == 1 { amount * 12 } else { amount };
                let moved = year * 12 + month + months;
                let (year, month) = (moved.div_euclid(12), moved.rem_euclid(12));
                self.date = [year, month, day.min(month_days(year, month))];
            }
            3 | 4 | 8 => self.date[2] += amount * 7,
            5..=7 => self.date[2] += amount,
            9 => self.time[0] += amount * 12,
            10 | 11 => self.time[0] += amount,
            12 => self.time[1] += amount,
            13 => self.time[2] += amount,
            14 => self.time[3] += amount,
            _ => return false,
        }
        self.is_stale = true;
        self.normalize();
        true
    }

    pub(crate) fn millis(&mut self) -> i64 {
        self.normalize();
        self.millis
    }
}
