//! The name that was meant by a misspelt one.

/// Most edits between a misspelt name and the one that was meant.
const EDITS_MAX: usize = 2;

/// The name that is nearest to a misspelt one. `None` means that none is near.
#[must_use]
pub fn nearest<Name: AsRef<str>>(name: &str, known: impl Iterator<Item = Name>) -> Option<Name> {
    let with_edits = known.map(|known| (distance(known.as_ref(), name), known));
    let (edits, known) = with_edits.min_by_key(|(edits, _)| *edits)?;
    // A short name is near to any other short one.
    (edits <= EDITS_MAX.min(name.chars().count() / 2)).then_some(known)
}

/// Edits of one character, or swaps of two neighbours, between two texts (optimal string alignment).
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=right.len()).collect()];
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let at = |row: &[usize], place: usize| row.get(place).copied().unwrap_or(usize::MAX);
            let above = rows.last().map_or(&[][..], Vec::as_slice);
            let mut best = (at(above, j + 1) + 1)
                .min(at(&row, j) + 1)
                .min(at(above, j) + usize::from(a != b));
            let is_swap = i > 0 && j > 0 && left.get(i - 1) == Some(b) && right.get(j - 1) == Some(a);
            if is_swap && let Some(before) = rows.get(i - 1) {
                best = best.min(at(before, j - 1) + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows.last().and_then(|row| row.last()).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_near_within_two_edits() {
        let known = || ["listen", "tls-listen"].into_iter();
        assert_eq!(nearest("lisen", known()), Some("listen"));
        assert_eq!(nearest("tsl-listn", known()), Some("tls-listen"));
        assert_eq!(nearest("zzz", known()), None);
        assert_eq!(nearest("foo", ["log"].into_iter()), None);
        assert_eq!(nearest("lgo", ["log"].into_iter()), Some("log"));
        assert_eq!(nearest("listen", std::iter::empty::<&str>()), None);
    }

    #[test]
    fn distances_count_edits_and_swaps() {
        for (left, right, edits) in [
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("abc", "ab", 1),
            ("", "ab", 2),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(left, right), edits, "{left} {right}");
        }
    }
}
