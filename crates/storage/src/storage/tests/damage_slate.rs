//! Damage to the files of a stopped `slate+file:` store: right answers, or a refusal that leaves every byte in place and names the file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::damage::{Rows, directory, files, fill, open_and_check, put_back, rows, used};
use super::*;

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Objects of a folder of the main database, the least name first.
fn objects<'f>(files: &'f Files, folder: &str) -> Vec<&'f PathBuf> {
    let folder = format!("/engine/{folder}/");
    files
        .keys()
        .filter(|path| path.to_str().unwrap().contains(&folder))
        .collect()
}

/// The damages of a file, each with a name.
fn damages(bytes: &[u8]) -> Vec<(String, Option<Vec<u8>>)> {
    let mut damages = vec![("removed".to_owned(), None)];
    let steps = (0..3).map(|step| bytes.len() * step / 3);
    // In the version, the offset of the parts, a checksum.
    let ends = [1, 5, 12].into_iter().filter_map(|back| bytes.len().checked_sub(back));
    for (number, at) in steps.chain(ends).enumerate() {
        if number % 2 == 0 {
            damages.push((format!("cut to {at}"), Some(bytes[..at].to_vec())));
        }
        if at < bytes.len() {
            let mut flipped = bytes.to_vec();
            flipped[at] ^= 1 << (at % 8);
            damages.push((format!("flipped at {at}"), Some(flipped)));
        }
    }
    damages
}

fn apply(path: &Path, damage: Option<Vec<u8>>) {
    match damage {
        None => fs::remove_file(path).unwrap(),
        Some(bytes) => fs::write(path, bytes).unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_one_file_may_be_removed_cut_or_flipped() {
    for is_closed in [true, false] {
        let place = Place::new("slate+file");
        let expected = used(&place, is_closed).await;
        let directory = directory(&place);
        let whole = files(&directory);
        let (mut trials, mut refused) = (0, 0);
        // The newest of each folder: the others are older manifests, and log objects like these.
        let mut left: BTreeMap<&Path, u32> = BTreeMap::new();
        let is_damaged = |path: &Path, left: &mut u32| {
            *left += 1;
            *left <= if path.ends_with("engine/wal") { 8 } else { 3 }
        };
        for (path, bytes) in whole.iter().rev() {
            let folder = path.parent().unwrap();
            if !is_damaged(folder, left.entry(folder).or_default()) {
                continue;
            }
            for (damage, after) in damages(bytes) {
                put_back(&directory, &whole);
                apply(path, after);
                let what = format!("{} {damage}, closed {is_closed}", path.display());
                let damaged = files(&directory);
                refused += u32::from(open_and_check(&place, &damaged, &expected, &what).await.is_some());
                trials += 1;
            }
        }
        put_back(&directory, &whole);
        assert!(open_and_check(&place, &whole, &expected, "whole").await.is_none());
        assert!(refused > trials / 4, "{refused} of {trials} refused");
    }
}

/// Where a newest object of any kind is damaged, the refusal names it and no other.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_names_the_damaged_object() {
    let place = Place::new("slate+file");
    let expected = used(&place, false).await;
    let directory = directory(&place);
    let whole = files(&directory);
    for folder in ["wal", "manifest", "compactions", "compacted"] {
        let newest = objects(&whole, folder)
            .into_iter()
            .rfind(|path| !whole[*path].is_empty());
        let newest = newest.unwrap_or_else(|| panic!("no object in {folder}"));
        let mut flipped = whole[newest].clone();
        let middle = flipped.len() / 2;
        let last = flipped.len() - 14;
        for (what, at) in [("flipped in the middle", middle), ("flipped at the end", last)] {
            // A table's values are checked only when they are read.
            if folder == "compacted" && at == middle {
                continue;
            }
            put_back(&directory, &whole);
            flipped[at] ^= 4;
            fs::write(newest, &flipped).unwrap();
            flipped[at] ^= 4;
            let what = format!("{} {what}", newest.display());
            let refusal = open_and_check(&place, &files(&directory), &expected, &what).await;
            let refusal = refusal.expect(&what).to_string();
            assert!(refusal.starts_with(newest.to_str().unwrap()), "{what}: {refusal}");
        }
        put_back(&directory, &whole);
        fs::remove_file(newest).unwrap();
        let what = format!("{} removed", newest.display());
        let refusal = open_and_check(&place, &files(&directory), &expected, &what).await;
        let refusal = refusal.expect(&what).to_string();
        assert!(refusal.starts_with(newest.to_str().unwrap()), "{what}: {refusal}");
    }
}

/// A log object without bytes looks like the mark of a writer that took over; a missing one like the end of the log.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_object_that_lost_its_bytes_is_not_taken_for_a_mark() {
    for is_closed in [true, false] {
        let place = Place::new("slate+file");
        let expected = used(&place, is_closed).await;
        let directory = directory(&place);
        let whole = files(&directory);
        let data = objects(&whole, "wal")
            .into_iter()
            .rev()
            .filter(|path| !whole[*path].is_empty());
        for object in data.take(3) {
            for damage in [None, Some(Vec::new())] {
                put_back(&directory, &whole);
                apply(object, damage);
                let what = format!("{}, closed {is_closed}", object.display());
                let refusal = open_and_check(&place, &files(&directory), &expected, &what).await;
                let refusal = refusal.expect(&what).to_string();
                assert!(refusal.starts_with(object.to_str().unwrap()), "{what}: {refusal}");
                assert!(refusal.contains("acknowledged"), "{refusal}");
            }
        }
    }
}

/// A start on another day in between: the whole earlier database, with the present record.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_an_earlier_moment_is_refused() {
    let place = Place::new("slate+file");
    used(&place, true).await;
    let directory = directory(&place);
    let earlier = files(&directory);
    let store = place.open().await;
    fill(&store, 100..120).await;
    let expected = rows(&store).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let whole = files(&directory);
    let is_engine = |path: &&PathBuf| path.starts_with(directory.join("engine"));
    let mut mixed: Files = earlier
        .clone()
        .into_iter()
        .filter(|(path, _)| is_engine(&path))
        .collect();
    mixed.extend(whole.clone().into_iter().filter(|(path, _)| !is_engine(&path)));
    put_back(&directory, &mixed);
    let refusal = open_and_check(&place, &mixed, &expected, "engine/ of before").await;
    let refusal = refusal.expect("refused").to_string();
    assert!(refusal.contains("acknowledged"), "{refusal}");
    put_back(&directory, &whole);
    assert!(open_and_check(&place, &whole, &expected, "whole").await.is_none());
}

/// The remains of an interrupted put have another name.
#[tokio::test(flavor = "multi_thread")]
async fn a_put_that_was_cut_short_is_no_object() {
    let place = Place::new("slate+file");
    let expected = used(&place, false).await;
    let directory = directory(&place);
    for folder in ["wal", "manifest", "compactions", "compacted"] {
        let folder = directory.join("engine").join(folder);
        fs::write(folder.join("00000000000000000099.sst#1"), b"half").unwrap();
    }
    let store = place.open().await;
    assert_eq!(rows(&store).await.unwrap(), expected);
}

/// An empty record is started afresh; an unreadable one is refused, until `--create`.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_is_refused() {
    let mut place = Place::new("slate+file");
    let expected = used(&place, true).await;
    let directory = directory(&place);
    let record = directory.join("acknowledged");
    let mut bytes = fs::read(&record).unwrap();
    bytes[20] ^= 1;
    bytes[2048 + 20] ^= 1;
    fs::write(&record, &bytes).unwrap();
    let refusal = open_and_check(&place, &files(&directory), &expected, "the record").await;
    assert!(refusal.expect("refused").to_string().contains(record.to_str().unwrap()));
    place.options.create = true;
    let store = place.open().await;
    assert_eq!(rows(&store).await.unwrap(), expected);
    store.close().await.unwrap();
    place.options.create = false;
    drop(store);
    assert!(place.open().await.lost().is_none());
}

/// A side store is checked together with the main one: a refusal leaves both unchanged. A removed one is not missed.
#[tokio::test(flavor = "multi_thread")]
async fn stores_beside_are_checked_before_the_main_one_is_opened() {
    let place = Place::new("slate+file");
    let main = place.open().await;
    fill(&main, 0..20).await;
    let open = |is_new| main.open_side(&place.url, 1, is_new, &place.options, Clock::system());
    let beside = open(true).await.unwrap();
    fill(&beside, 20..40).await;
    let expected: Rows = rows(&main).await.unwrap();
    beside.close().await.unwrap();
    main.close().await.unwrap();
    let directory = directory(&place);
    let whole = files(&directory);
    let logs = whole
        .keys()
        .filter(|path| path.to_str().unwrap().contains("/stores/1/wal/"));
    let newest = logs.rev().find(|path| !whole[*path].is_empty()).unwrap();
    fs::remove_file(newest).unwrap();
    let refusal = open_and_check(&place, &files(&directory), &expected, "a log beside").await;
    assert!(
        refusal
            .expect("refused")
            .to_string()
            .starts_with(newest.to_str().unwrap())
    );

    put_back(&directory, &whole);
    let main = place.open().await;
    assert_eq!(rows(&main).await.unwrap(), expected);
    main.remove_side(&place.url, 1).await.unwrap();
    main.close().await.unwrap();
    drop(main);
    assert!(
        open_and_check(&place, &files(&directory), &expected, "removed")
            .await
            .is_none()
    );
}

/// SlateDB takes a log object that is as short as its footer for an empty one.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_object_of_slatedb_cut_to_a_few_bytes_is_refused() {
    let place = Place::new("slate+file");
    let expected = used(&place, true).await;
    let directory = directory(&place);
    let whole = files(&directory);
    let is_log = |path: &&PathBuf| path.to_str().unwrap().contains("engine/wal/");
    let newest = whole
        .iter()
        .rfind(|(path, bytes)| is_log(path) && !bytes.is_empty())
        .unwrap()
        .0
        .clone();
    for bytes in [1, 7, 8, 10, 11] {
        put_back(&directory, &whole);
        let mut cut = whole.clone();
        cut.get_mut(&newest).unwrap().truncate(bytes);
        fs::write(&newest, &cut[&newest]).unwrap();
        let error = open_and_check(&place, &cut, &expected, "a cut log object").await;
        let error = error.expect("refused").to_string();
        assert!(error.contains(newest.to_str().unwrap()), "{error}");
    }
    put_back(&directory, &whole);
    assert_eq!(rows(&place.open().await).await.unwrap(), expected);
}
