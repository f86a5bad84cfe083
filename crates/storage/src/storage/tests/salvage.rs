//! Reading a damaged store: it returns no value that was not written, changes no byte, and reports every missing or old
//! value.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use super::damage::{Rows, directory, files, put_back, rows};
use super::*;

/// Rows of a store, and all values that each key ever had.
struct Written {
    last: Rows,
    ever: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
}

fn key(n: u32) -> Vec<u8> {
    key_of(1 + n % 3, &format!("{n:04}"), "some clustering key of some length")
}

/// Rows that are written, overwritten and deleted, in two tables of the engine and its log; closed, or as a kill leaves
/// them.
async fn written(place: &Place, is_closed: bool) -> Written {
    let mut ever: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>> = BTreeMap::new();
    // After one more opening, the log's first file has no preallocated part.
    place.open().await.close().await.unwrap();
    let store = place.open().await;
    for phase in 0..3_u32 {
        for part in 0..4 {
            let mut batch = Batch::new();
            for n in (phase * 40..360).filter(|n| n % 4 == part) {
                match phase {
                    0 => batch.upsert(key(n), row_of(&[cell(1, 1, "the first value, of some length")])),
                    _ if n % 7 == phase => batch.delete(Space::Rows, key(n)),
                    1 if n % 5 == 0 => batch.upsert(key(n), row_of(&[cell(1, 2, "the second value")])),
                    2 if n % 11 == 0 => batch.upsert(key(n), row_of(&[cell(2, 3, "another column")])),
                    _ => {}
                }
            }
            store.commit(batch).await.unwrap();
            for (key, value) in rows(&store).await.unwrap() {
                ever.entry(key).or_default().insert(value);
            }
        }
        if phase < 2 {
            store.flush().await.unwrap();
        }
    }
    let last = rows(&store).await.unwrap();
    let as_killed = files(&directory(place));
    store.close().await.unwrap();
    drop(store);
    if !is_closed {
        put_back(&directory(place), &as_killed);
    }
    Written { last, ever }
}

/// The rows read, and the number of reported losses.
async fn salvaged(place: &Place) -> Result<(Rows, usize)> {
    let salvage = Box::pin(Salvage::open(&place.url, 0, Clock::system())).await?;
    let mut found = Vec::new();
    let all = KeyRange::all();
    let gaps = salvage.scan(Space::Rows, &all, |key, value| {
        found.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    });
    let gaps = gaps.await;
    Ok((found, gaps.len() + salvage.damage().len()))
}

fn damages(bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
    let data = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let mut damages = vec![None, Some(Vec::new())];
    for step in 0..5 {
        let at = data * step / 5;
        damages.push(Some(bytes[..at].to_vec()));
        if at < data {
            let mut flipped = bytes.to_vec();
            flipped[at] ^= 1 << step;
            damages.push(Some(flipped));
        }
    }
    damages
}

async fn any_one_file(scheme: &str, is_closed: bool) {
    let place = Place::new(scheme);
    let written = written(&place, is_closed).await;
    let directory = directory(&place);
    let whole = files(&directory);
    let (found, told) = salvaged(&place).await.unwrap();
    assert!(found == written.last, "{} of {}", found.len(), written.last.len());
    assert_eq!(told, 0, "{scheme} whole, closed {is_closed}");
    assert!(files(&directory) == whole, "a byte was changed");
    let (mut trials, mut complete, mut read) = (0, 0, 0);
    for (path, bytes) in &whole {
        for (number, damage) in damages(bytes).into_iter().enumerate() {
            put_back(&directory, &whole);
            match damage {
                None => fs::remove_file(path).unwrap(),
                Some(bytes) => fs::write(path, bytes).unwrap(),
            }
            let what = format!("{} damage {number}, closed {is_closed}", path.display());
            let damaged: BTreeMap<PathBuf, Vec<u8>> = files(&directory);
            let (found, told) = salvaged(&place).await.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(files(&directory) == damaged, "{what}: a byte was changed");
            for (key, value) in &found {
                let known = written.ever.get(key).is_some_and(|values| values.contains(value));
                // In SlateDB one of two partial rows may remain.
                let is_part = scheme != "file" && written.ever.contains_key(key);
                assert!(known || is_part, "{what}: a row that never was");
            }
            assert!(
                found == written.last || told > 0,
                "{what}: {} of {} rows, in silence",
                found.len(),
                written.last.len()
            );
            trials += 1;
            complete += usize::from(found == written.last);
            read += found.len();
        }
    }
    assert!(
        complete > trials / 3 && read > trials * written.last.len() * 2 / 3,
        "{complete} of {trials}, {read} rows"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn intact_parts_of_damaged_files_are_read_and_the_rest_is_reported() {
    for is_closed in [true, false] {
        any_one_file("file", is_closed).await;
    }
}

#[cfg(feature = "slate")]
#[tokio::test(flavor = "multi_thread")]
async fn intact_parts_of_damaged_objects_are_read_and_the_rest_is_reported() {
    for is_closed in [true, false] {
        any_one_file("slate+file", is_closed).await;
    }
}

/// A damaged block loses its own rows, not the table's.
#[tokio::test(flavor = "multi_thread")]
async fn rows_around_a_damaged_block_are_read() {
    let place = Place::new("file");
    let store = place.open().await;
    let mut batch = Batch::new();
    for n in 0..20_000 {
        batch.upsert(key(n), row_of(&[cell(1, 1, "the first value, of some length")]));
    }
    store.commit(batch).await.unwrap();
    store.flush().await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let directory = directory(&place);
    let whole = files(&directory);
    // The log still has all rows: only the tables are read.
    for path in whole
        .keys()
        .filter(|path| path.extension().is_some_and(|end| end == "jnl"))
    {
        fs::write(path, b"").unwrap();
    }
    let is_table = |path: &&PathBuf| path.parent().unwrap().ends_with("1/tables");
    let (path, bytes) = whole.iter().find(|(path, _)| is_table(path)).unwrap();
    for at in [bytes.len() / 5, bytes.len() / 2] {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x20;
        fs::write(path, flipped).unwrap();
        let (found, told) = salvaged(&place).await.unwrap();
        assert!(found.len() > 19_000 && found.len() < 20_000, "{} rows", found.len());
        // The table does not match its checksum, and has a gap.
        assert_eq!(told, 2);
    }
}
