//! Days and dates: the Gregorian calendar, and the one that is Julian before 1582.

pub(crate) const DAY_MILLIS: i64 = 86_400_000;

/// Year, month and day of a number of days since 1970-01-01, in the proleptic Gregorian calendar.
pub(crate) fn civil(days: i64) -> (i64, i64, i64) {
    // Years start on 1 March, so that a year's last day is the leap day; eras are 400 years.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

pub(crate) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The first day of the Gregorian calendar, 15 October 1582.
const GREGORIAN: i64 = -141_427;

/// Days of four Julian years.
const OLYMPIAD: i64 = 1_461;

/// As [`civil`], Julian before 15 October 1582.
pub(crate) fn hybrid_civil(days: i64) -> (i64, i64, i64) {
    if days >= GREGORIAN {
        return civil(days);
    }
    // Counted from 1 March of the Julian year 0.
    let shifted = days + 719_470;
    let (era, day_of_era) = (shifted.div_euclid(OLYMPIAD), shifted.rem_euclid(OLYMPIAD));
    let year_of_era = (day_of_era - day_of_era / 1_460) / 365;
    let day_of_year = day_of_era - year_of_era * 365;
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year_of_era + era * 4 + i64::from(month <= 2), month, day)
}

/// The days since 1970-01-01 of a day, which is `day - first` days behind day `first` of the month; Julian before 15
/// October 1582.
pub(crate) fn hybrid_days(year: i64, month: i64, first: i64, day: i64) -> i64 {
    // Years beyond these are beyond all timestamps.
    let year = year.clamp(-300_000_000, 300_000_000);
    let start = days_of(year, month, first);
    let gregorian = start.saturating_add(day.saturating_sub(first));
    if gregorian >= GREGORIAN || start >= GREGORIAN {
        return gregorian;
    }
    let shifted = if month <= 2 { year - 1 } else { year };
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5 + first - 1;
    let julian = shifted * 365 + shifted.div_euclid(4) + day_of_year - 719_470;
    julian.saturating_add(day.saturating_sub(first))
}

/// How many days a month has, which is counted from 0.
pub(crate) fn month_days(year: i64, month: i64) -> i64 {
    let next = hybrid_days(year + (month + 1).div_euclid(12), (month + 1).rem_euclid(12) + 1, 1, 1);
    next - hybrid_days(year, month + 1, 1, 1)
}
