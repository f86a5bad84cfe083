//! Approximate nearest neighbour (ANN) search: the rows nearest to a vector, as many as LIMIT says, the nearest first.
//!
//! A heap holds the nearest rows so far, encoded, with the farthest of them on top. A row that is farther is not even
//! encoded. So memory is bounded by LIMIT's rows (at most 1,000), however many rows are read. Among equally near rows
//! the earlier ones in ring order are kept, and come first.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use helenus_schema::command::{Nearest, Read};
use helenus_types::functions::floats;

/// A row and its similarity.
struct Entry {
    score: f32,
    /// The number of the row in the order in which rows were kept.
    number: u64,
    row: Vec<u8>,
}

impl Entry {
    /// A greater entry is farther, or equally far and later.
    fn compare(&self, other: &Self) -> Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score.then(self.number.cmp(&other.number))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(other)
    }
}

/// Keeps the nearest rows.
pub(crate) struct NearestRows<'a> {
    wanted: &'a Nearest,
    rows_max: usize,
    /// The farthest is on top.
    heap: BinaryHeap<Entry>,
    kept: u64,
}

impl<'a> NearestRows<'a> {
    /// The ANN search of a SELECT. `None` means that the SELECT has none.
    pub(crate) fn of(select: &'a Read) -> Option<Self> {
        Some(Self {
            wanted: select.nearest.as_ref()?,
            rows_max: usize::try_from(select.limit_rows?).unwrap_or(usize::MAX),
            heap: BinaryHeap::new(),
            kept: 0,
        })
    }

    /// The position of the compared column.
    pub(crate) fn column(&self) -> usize {
        self.wanted.column
    }

    /// The similarity of a row. `None` means that it has no vector, or none that an index can hold, or that enough
    /// other rows are nearer.
    pub(crate) fn score(&self, vector: Option<&[u8]>) -> Option<f32> {
        let vector = floats(vector?);
        let score = self.wanted.similarity.score(&vector, &self.wanted.vector)?;
        let is_full = self.heap.len() >= self.rows_max;
        let farthest = self.heap.peek().filter(|_| is_full).map(|entry| entry.score);
        farthest.is_none_or(|farthest| score > farthest).then_some(score)
    }

    /// Keeps a row that is near enough. Returns the row that it displaces.
    pub(crate) fn keep(&mut self, score: f32, row: Vec<u8>) -> Option<Vec<u8>> {
        self.kept += 1;
        self.heap.push(Entry {
            score,
            number: self.kept,
            row,
        });
        if self.heap.len() <= self.rows_max {
            return None;
        }
        self.heap.pop().map(|entry| entry.row)
    }

    /// The rows, the nearest first.
    pub(crate) fn rows(self) -> impl Iterator<Item = Vec<u8>> {
        self.heap.into_sorted_vec().into_iter().map(|entry| entry.row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_types::functions::Similarity;

    #[test]
    fn the_nearest_are_kept_and_come_first() {
        let wanted = Nearest {
            column: 1,
            index: "i".to_owned(),
            similarity: Similarity::Euclidean,
            vector: vec![0.0, 0.0],
        };
        let mut nearest = NearestRows {
            wanted: &wanted,
            rows_max: 3,
            heap: BinaryHeap::new(),
            kept: 0,
        };
        let vectors = [
            [3.0, 0.0],
            [1.0, 0.0],
            [0.0, 1.0],
            [2.0, 0.0],
            [0.0, -1.0],
            [0.5, 0.0_f32],
        ];
        for (number, vector) in vectors.iter().enumerate() {
            let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_be_bytes()).collect();
            if let Some(score) = nearest.score(Some(&bytes)) {
                nearest.keep(score, vec![u8::try_from(number).unwrap()]);
            }
        }
        assert_eq!(nearest.score(None), None);
        let rows: Vec<Vec<u8>> = nearest.rows().collect();
        assert_eq!(rows, [[5], [1], [2]]);
    }
}
