//! Starts on a directory with missing or damaged files: right answers, or a refusal that leaves every byte in place.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

pub(super) type Rows = Vec<(Vec<u8>, Vec<u8>)>;

pub(super) fn directory(place: &Place) -> PathBuf {
    match &place.url {
        Url::File(directory) | Url::SlateFile(directory) => directory.clone(),
        Url::Memory | Url::SlateMemory | Url::Bucket(_) => panic!("no directory"),
    }
}

/// Every file below a directory with its content, except for the lock file's.
pub(super) fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("helenus.lock") {
                found.insert(path.clone(), fs::read(path).unwrap());
            }
        }
    }
    found
}

pub(super) fn put_back(directory: &Path, whole: &BTreeMap<PathBuf, Vec<u8>>) {
    fs::remove_dir_all(directory).unwrap();
    for (path, bytes) in whole {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        fs::write(path, &bytes[..end]).unwrap();
        let file = fs::File::options().write(true).open(path).unwrap();
        // The engine's preallocation is a hole.
        file.set_len(bytes.len() as u64).unwrap();
    }
}

pub(super) async fn fill(store: &Store, rows: std::ops::Range<u32>) {
    for n in rows {
        let mut batch = Batch::new();
        batch.upsert(
            key_of(1 + n % 3, &n.to_string(), ""),
            row_of(&[cell(1, 1, "some value of some length")]),
        );
        store.commit(batch).await.unwrap();
    }
}

pub(super) async fn rows(store: &Store) -> Result<Rows> {
    let mut found = Vec::new();
    let visit = |key: &[u8], value: &[u8]| {
        found.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    };
    let at = store.snapshot();
    store
        .scan(Space::Rows, &KeyRange::all(), Order::Forward, &at, visit)
        .await?;
    Ok(found)
}

/// A store with tables and a log, closed or as a kill leaves it.
pub(super) async fn used(place: &Place, is_closed: bool) -> Rows {
    // After one more opening, the log's first file has no preallocated part, which takes long to compare.
    place.open().await.close().await.unwrap();
    used_from_new(place, is_closed).await
}

async fn used_from_new(place: &Place, is_closed: bool) -> Rows {
    let store = place.open().await;
    fill(&store, 0..40).await;
    store.flush().await.unwrap();
    fill(&store, 40..80).await;
    store.flush().await.unwrap();
    fill(&store, 80..100).await;
    let expected = rows(&store).await.unwrap();
    let as_killed = files(&directory(place));
    store.close().await.unwrap();
    drop(store);
    if !is_closed {
        put_back(&directory(place), &as_killed);
    }
    expected
}

/// Opens and reads. A refusal leaves the files as in `damaged`; any other outcome has the original rows.
pub(super) async fn open_and_check(
    place: &Place,
    damaged: &BTreeMap<PathBuf, Vec<u8>>,
    expected: &Rows,
    what: &str,
) -> Option<Error> {
    match place.try_open().await {
        Ok(store) => {
            let read = rows(&store).await;
            store.close().await.unwrap();
            match read {
                Ok(found) => assert!(&found == expected, "{what}: {} of {} rows", found.len(), expected.len()),
                Err(error) => assert!(matches!(error, Error::Corrupt { .. }), "{what}: {error}"),
            }
            None
        }
        Err(error) => {
            let after = files(&directory(place));
            let is_same = |path: &PathBuf| after.get(path) == damaged.get(path);
            let gone: Vec<_> = damaged
                .keys()
                .chain(after.keys())
                .filter(|path| !is_same(path))
                .collect();
            assert!(
                gone.is_empty(),
                "{what}: refused with \"{error}\", and changed {gone:?}"
            );
            let named = error.to_string();
            assert!(named.contains(directory(place).to_str().unwrap()), "{what}: {named}");
            Some(error)
        }
    }
}

/// The first damages of a file: the file removed, and its bytes.
const REMOVED_AND_EMPTIED: usize = 2;

#[tokio::test(flavor = "multi_thread")]
async fn any_one_file_may_be_removed_cut_or_flipped() {
    for is_closed in [true, false] {
        let place = Place::new("file");
        let expected = used(&place, is_closed).await;
        let directory = directory(&place);
        let whole = files(&directory);
        let (mut trials, mut refused) = (0, 0);
        for (path, bytes) in &whole {
            let data = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let mut damages = vec![None, Some(Vec::new())];
            for step in 0..4 {
                let at = data * step / 4;
                damages.push(Some(bytes[..at].to_vec()));
                if at < data {
                    let mut flipped = bytes.clone();
                    flipped[at] ^= 0x10;
                    damages.push(Some(flipped));
                }
            }
            for (number, damage) in damages.into_iter().enumerate() {
                put_back(&directory, &whole);
                match damage {
                    None => fs::remove_file(path).unwrap(),
                    Some(bytes) => fs::write(path, bytes).unwrap(),
                }
                let what = format!("{} damage {number}, closed {is_closed}", path.display());
                let damaged = files(&directory);
                if let Some(refusal) = open_and_check(&place, &damaged, &expected, &what).await {
                    refused += 1;
                    let (text, name) = (refusal.to_string(), path.file_name().unwrap().to_str().unwrap());
                    // A missing log file has no name, because no other file lists them; for a flipped byte the engine
                    // names no file.
                    let is_named = text.contains(name) || (name.ends_with(".jnl") && text.contains("log"));
                    assert!(is_named || number >= REMOVED_AND_EMPTIED, "{what}: {text}");
                }
                trials += 1;
            }
        }
        put_back(&directory, &whole);
        assert!(open_and_check(&place, &whole, &expected, "whole").await.is_none());
        assert!(refused > trials / 2, "{refused} of {trials} refused");
    }
}

/// The files that recovery takes for leftovers: a tree without `current`, an engine without `version`, also without a
/// record of what was acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn what_recovery_would_remove_is_refused_by_name() {
    let place = Place::new("file");
    let expected = used_from_new(&place, true).await;
    let directory = directory(&place);
    let whole = files(&directory);
    for (gone, named) in [
        (&["engine/keyspaces/1/current"][..], "keyspaces/1/current"),
        (&["engine/keyspaces/0/current"], "keyspaces/0/current"),
        (&["engine/version", "acknowledged"], "engine/version"),
        (&["engine/version", "acknowledged", "helenus.used"], "engine/version"),
        (&["engine/0.jnl", "acknowledged"], "the log is missing"),
        (&["acknowledged"], "--create"),
    ] {
        put_back(&directory, &whole);
        for path in gone {
            fs::remove_file(directory.join(path)).unwrap();
        }
        let damaged = files(&directory);
        let refusal = open_and_check(&place, &damaged, &expected, named).await;
        let refusal = refusal.expect(named).to_string();
        assert!(refusal.contains(named), "{refusal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_store_is_not_begun_anew_without_a_word() {
    for (scheme, is_noted) in [
        ("file", false),
        ("file", true),
        #[cfg(feature = "slate")]
        ("slate+file", false),
    ] {
        let mut place = Place::new(scheme);
        let expected = used(&place, true).await;
        assert!(!expected.is_empty());
        let directory = directory(&place);
        fs::rename(directory.join("engine"), directory.join("elsewhere")).unwrap();
        if !is_noted {
            drop(fs::remove_file(directory.join("acknowledged")));
        }
        let damaged = files(&directory);
        let refusal = open_and_check(&place, &damaged, &expected, scheme)
            .await
            .expect("refused");
        assert!(matches!(refusal, Error::Gone { .. }), "{refusal}");
        place.options.create = true;
        let store = place.open().await;
        assert!(rows(&store).await.unwrap().is_empty());
        store.close().await.unwrap();
        assert!(directory.join("elsewhere").is_dir());
    }
}

/// `--create` also accepts the log without a record of what was acknowledged; a store without the mark of use
/// needs no option.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_may_be_begun_anew() {
    let mut place = Place::new("file");
    let expected = used(&place, true).await;
    let directory = directory(&place);
    for damage in [None, Some(&b""[..]), Some(&[0; 900])] {
        let path = directory.join("acknowledged");
        match damage {
            None => fs::remove_file(&path).unwrap(),
            Some(bytes) => fs::write(&path, bytes).unwrap(),
        }
        assert!(matches!(place.try_open().await, Err(Error::Gone { .. })));
        place.options.create = true;
        let store = place.open().await;
        assert_eq!(rows(&store).await.unwrap(), expected);
        store.close().await.unwrap();
        place.options.create = false;
        place.open().await.close().await.unwrap();
    }
    fs::remove_file(directory.join("acknowledged")).unwrap();
    fs::remove_file(directory.join("helenus.used")).unwrap();
    let store = place.open().await;
    assert_eq!(rows(&store).await.unwrap(), expected);
}

/// An opening that a kill interrupts is undone by the next, wherever it stopped.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_opening_is_undone() {
    let place = Place::new("file");
    let expected = used(&place, false).await;
    let directory = directory(&place);
    let at = |suffix: &str| directory.join(format!("engine{suffix}"));
    let half = |path: PathBuf| {
        fs::create_dir_all(path.join("keyspaces")).unwrap();
        fs::write(path.join("0.jnl"), "half").unwrap();
    };
    let whole = files(&directory);
    for step in 0..4 {
        put_back(&directory, &whole);
        match step {
            0 => half(at(".next")),
            1 => {
                fs::rename(at(""), at(".kept")).unwrap();
                half(at(".next"));
            }
            2 => {
                fs::rename(at(""), at(".kept")).unwrap();
                half(at(""));
            }
            _ => half(at(".gone")),
        }
        assert!(
            open_and_check(&place, &files(&directory), &expected, &step.to_string())
                .await
                .is_none()
        );
        for suffix in [".next", ".kept", ".gone"] {
            assert!(!at(suffix).exists(), "{suffix} is left after step {step}");
        }
    }
}

/// The remains of an interrupted creation are renamed, never removed.
#[tokio::test]
async fn what_an_interrupted_creation_left_is_renamed() {
    let place = Place::new("file");
    let directory = directory(&place);
    fs::create_dir_all(directory.join("engine/keyspaces/1/tables")).unwrap();
    fs::write(directory.join("helenus.format"), FORMAT_OF_FILE).unwrap();
    fs::write(directory.join("engine/0.jnl"), [0; 4096]).unwrap();
    fill(&place.open().await, 0..1).await;
    assert!(directory.join("engine.unfinished-1/0.jnl").exists());
}

/// The creation stopped with both trees made, before the engine's own one named the store's.
#[tokio::test]
async fn a_creation_that_stopped_before_the_tree_was_named_is_begun_again() {
    let (place, other) = (Place::new("file"), Place::new("file"));
    other.open().await.close().await.unwrap();
    let engine = directory(&place).join("engine");
    fs::create_dir_all(&engine).unwrap();
    fs::write(directory(&place).join("helenus.format"), FORMAT_OF_FILE).unwrap();
    drop(::fjall::Database::builder(&engine).open().unwrap());
    let tree = engine.join("keyspaces/1");
    fs::rename(directory(&other).join("engine/keyspaces/1"), &tree).unwrap();
    fill(&place.open().await, 0..1).await;
    assert!(directory(&place).join("engine.unfinished-1/keyspaces/1").exists());
}

/// A failed background write is no full disk: nothing is written again until the next start.
#[tokio::test(flavor = "multi_thread")]
async fn a_failure_in_the_background_is_fatal() {
    let place = Place::new("file");
    let store = place.open().await;
    fill(&store, 0..20).await;
    let before = rows(&store).await.unwrap();
    // The next table cannot be made.
    let tables = directory(&place).join("engine/keyspaces/1/tables");
    let away = directory(&place).join("away");
    fs::rename(&tables, &away).unwrap();
    assert!(store.flush().await.is_err());
    fs::rename(&away, &tables).unwrap();
    let put = || {
        let mut batch = Batch::new();
        batch.put(Space::Catalog, b"a".to_vec(), "1");
        batch
    };
    assert!(matches!(store.commit(put()).await, Err(Error::Engine { .. })));
    for _ in 0..3 {
        assert!(matches!(store.commit(put()).await, Err(Error::WritesRefused { .. })));
    }
    assert_eq!(rows(&store).await.unwrap(), before, "reads go on");
    assert!(store.lost().is_none());
    drop(store);
    let store = place.open().await;
    assert_eq!(rows(&store).await.unwrap(), before);
    fill(&store, 20..21).await;
}

/// A background write that met a full disk is no failure of the medium, even if there is space again before the next
/// request.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_in_the_background_recovers_though_there_is_room_again() {
    let short = Arc::new(AtomicBool::new(false));
    let looked = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let mut place = Place::new("file");
    let (seam, seen) = (Arc::clone(&short), Arc::clone(&looked));
    place.options.faults = Some(Arc::new(move |point| {
        let is_short = point == FaultPoint::FreeSpace && seam.load(Ordering::SeqCst);
        seen.fetch_add(u32::from(is_short), Ordering::SeqCst);
        is_short.then(|| std::io::Error::from(std::io::ErrorKind::StorageFull))
    }));
    let store = place.open().await;
    fill(&store, 0..20).await;
    let before = rows(&store).await.unwrap();
    // The next table cannot be made, and the medium says that it is full.
    let tables = directory(&place).join("engine/keyspaces/1/tables");
    let away = directory(&place).join("away");
    fs::rename(&tables, &away).unwrap();
    short.store(true, Ordering::SeqCst);
    let put = |bytes: usize| {
        let mut batch = Batch::new();
        batch.put(Space::Catalog, b"a".to_vec(), vec![b'1'; bytes]);
        batch
    };
    // Enough for a table, and then until the engine has failed. The probe always finds space.
    let mut written = 0;
    let refused = loop {
        assert!(written < 60, "the engine writes no table");
        written += 1;
        if let Err(error) = store.commit(put(1 << 20)).await {
            break error;
        }
        // The committer is idle meanwhile, and checks nevertheless.
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    assert!(looked.load(Ordering::SeqCst) > 0, "nothing was looked at");
    short.store(false, Ordering::SeqCst);
    fs::rename(&away, &tables).unwrap();
    assert!(matches!(refused, Error::DiskFull { .. }), "{refused}");
    store.commit(put(1)).await.unwrap();
    assert_eq!(rows(&store).await.unwrap(), before);
    fill(&store, 20..21).await;
    drop(store);
    assert_eq!(rows(&place.open().await).await.unwrap().len(), 21);
}

/// With SlateDB, any failure but a full disk ends writing.
#[cfg(feature = "slate")]
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_put_is_not_believed_again() {
    let failing = Arc::new(AtomicBool::new(false));
    let mut place = Place::new("slate+file");
    let seam = Arc::clone(&failing);
    place.options.faults = Some(Arc::new(move |_| {
        seam.load(Ordering::SeqCst).then(|| std::io::Error::other("EIO"))
    }));
    let store = place.open().await;
    fill(&store, 0..10).await;
    failing.store(true, Ordering::SeqCst);
    let mut batch = Batch::new();
    batch.put(Space::Catalog, b"a".to_vec(), "1");
    assert!(matches!(store.commit(batch.clone()).await, Err(Error::Io { .. })));
    failing.store(false, Ordering::SeqCst);
    for _ in 0..2 {
        assert!(matches!(
            store.commit(batch.clone()).await,
            Err(Error::WritesRefused { .. })
        ));
    }
    assert_eq!(rows(&store).await.unwrap().len(), 10);
    assert!(store.lost().is_none());
}

/// A store that can be reopened neither for writing nor for reading reports it.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_opened_again_is_lost() {
    let full = Arc::new(AtomicBool::new(false));
    let mut place = Place::new("file");
    let seam = Arc::clone(&full);
    place.options.faults = Some(Arc::new(move |_| {
        seam.load(Ordering::SeqCst)
            .then(|| std::io::Error::from(std::io::ErrorKind::StorageFull))
    }));
    let store = place.open().await;
    fill(&store, 0..10).await;
    full.store(true, Ordering::SeqCst);
    let mut batch = Batch::new();
    batch.put(Space::Catalog, b"a".to_vec(), "1");
    assert!(store.commit(batch.clone()).await.is_err());
    assert!(store.lost().is_none(), "a full disk passes");
    full.store(false, Ordering::SeqCst);
    let current = directory(&place).join("engine/keyspaces/1/current");
    let bytes = fs::read(&current).unwrap();
    fs::remove_file(&current).unwrap();
    assert!(matches!(store.commit(batch).await, Err(Error::Corrupt { .. })));
    let why = store.lost().expect("lost").to_string();
    assert!(why.contains("keyspaces/1/current"), "{why}");
    drop(store);
    fs::write(&current, bytes).unwrap();
    assert_eq!(rows(&place.open().await).await.unwrap().len(), 10);
}

/// A read that the medium fails is no damage of one table: the store reports that it is lost, and its server ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_whose_medium_fails_a_read_is_lost() {
    // EIO; EMFILE, which is temporary; none of the system's.
    for (code, is_lost) in [(Some(5), true), (Some(24), false), (None, false)] {
        let failing = Arc::new(AtomicBool::new(false));
        let mut place = Place::new("file");
        let seam = Arc::clone(&failing);
        place.options.read_faults = Some(Arc::new(move || {
            let error = code.map_or_else(|| std::io::Error::other("no code"), std::io::Error::from_raw_os_error);
            seam.load(Ordering::SeqCst).then_some(error)
        }));
        let store = place.open().await;
        fill(&store, 0..10).await;
        assert!(store.lost().is_none());
        failing.store(true, Ordering::SeqCst);
        assert!(rows(&store).await.is_err());
        failing.store(false, Ordering::SeqCst);
        assert_eq!(store.lost().is_some(), is_lost, "{code:?}");
        if let Some(why) = store.lost() {
            let why = why.to_string();
            assert!(why.contains("reading") && why.contains("os error 5"), "{why}");
        }
    }
}

/// An opened store that is not accepted refuses writes, and is unchanged when it is closed; then it opens as usual.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_not_accepted_stays_as_it_was_found() {
    for is_closed in [true, false] {
        let mut place = Place::new("file");
        let expected = used(&place, is_closed).await;
        let path = directory(&place);
        if !is_closed {
            // A group that was being written; recovery cuts it off.
            let log = path.join("engine/0.jnl");
            let mut bytes = fs::read(&log).unwrap();
            let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
            bytes.truncate(end);
            bytes.extend_from_slice(&[1, 1, 0, 0, 0, 7]);
            fs::write(&log, bytes).unwrap();
        }
        let whole = files(&path);
        place.options.is_accepted_later = true;
        for ends in 0..2 {
            let store = place.open().await;
            assert_eq!(rows(&store).await.unwrap(), expected);
            let mut batch = Batch::new();
            batch.put(Space::Catalog, b"a".to_vec(), "1");
            assert!(matches!(store.commit(batch).await, Err(Error::NotAccepted { .. })));
            if ends == 0 {
                store.close().await.unwrap();
            }
            drop(store);
            assert!(files(&path) == whole, "closed {is_closed}, end {ends}");
        }
        let store = place.open().await;
        store.accept().await.unwrap();
        fill(&store, 200..201).await;
        store.close().await.unwrap();
        place.options.is_accepted_later = false;
        assert_eq!(rows(&place.open().await).await.unwrap().len(), expected.len() + 1);
    }
}

/// After a kill the files whose sync may have failed are rewritten before anything is served; after a clean close they
/// are not.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_log_is_written_anew_after_a_kill() {
    for is_closed in [true, false] {
        let place = Place::new("file");
        used(&place, is_closed).await;
        let engine = directory(&place).join("engine");
        let doubtful = [
            "0.jnl",
            "keyspaces/1/current",
            "keyspaces/0/current",
            "version",
            "../helenus.format",
        ];
        let past = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        let mut links = Vec::new();
        for path in doubtful {
            let path = engine.join(path);
            fs::File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_modified(past)
                .unwrap();
            // The same file under a name that the engine does not know.
            let link = directory(&place).join(format!("link-{}", links.len()));
            fs::hard_link(&path, &link).unwrap();
            links.push(link);
        }
        let _store = place.open().await;
        for link in links.iter().skip(1) {
            let is_written = fs::metadata(link).unwrap().mtime() > 1_000_000_000;
            assert_eq!(is_written, !is_closed, "{}, closed {is_closed}", link.display());
        }
        if !is_closed {
            assert!(fs::metadata(&links[0]).unwrap().mtime() > 1_000_000_000);
        }
    }
}

/// A `Look` at a store recovers links to it, not the store itself, and makes none if there is no store.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_changes_nothing() {
    for scheme in [
        "file",
        #[cfg(feature = "slate")]
        "slate+file",
    ] {
        let place = Place::new(scheme);
        assert!(matches!(Look::at(&place.url, None), Err(Error::NoStore { .. })));
        assert!(!directory(&place).exists());
        let expected = used(&place, false).await;
        let whole = files(&directory(&place));
        let look = Look::at(&place.url, None).unwrap();
        assert!(matches!(place.try_open().await, Err(Error::Locked { .. })));
        let store = Store::open(look.url(), &place.options, Clock::system()).await.unwrap();
        assert_eq!(rows(&store).await.unwrap(), expected);
        fill(&store, 200..210).await;
        store.flush().await.unwrap();
        store.close().await.unwrap();
        drop((store, look));
        assert!(
            files(&directory(&place)) == whole,
            "{scheme}: the store's own files have changed"
        );
    }
}

/// A path that is no regular file is refused by name, and a failed `Look` leaves no links.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_file_is_refused_and_a_look_leaves_nothing() {
    let place = Place::new("file");
    let expected = used(&place, true).await;
    let folder = directory(&place);
    let whole = files(&folder);
    for (name, target) in [("acknowledged", "/dev/zero"), ("engine/lock", "lock")] {
        let path = folder.join(name);
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(target, &path).unwrap();
        let Err(refusal) = place.try_open().await else {
            panic!("opened with {name} as a link to {target}");
        };
        assert!(refusal.to_string().contains(name), "{refusal}");
        if name == "engine/lock" {
            assert!(Look::at(&place.url, None).is_err());
            assert!(!folder.join("helenus.look").exists());
        }
        fs::remove_file(&path).unwrap();
        put_back(&folder, &whole);
    }
    assert!(open_and_check(&place, &whole, &expected, "whole").await.is_none());
}
