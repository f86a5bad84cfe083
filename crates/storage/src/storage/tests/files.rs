//! Files of a store: locks, formats, damage, full disks.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use helenus_base::invariant::{Broken, Invariant};

fn directory(place: &Place) -> PathBuf {
    match &place.url {
        Url::File(directory) | Url::SlateFile(directory) => directory.clone(),
        Url::Memory | Url::SlateMemory | Url::Bucket(_) => panic!("no directory"),
    }
}

async fn fill(store: &Store, groups: std::ops::Range<u32>) {
    for n in groups {
        let mut batch = Batch::new();
        batch.upsert(
            key_of(1, &n.to_string(), ""),
            row_of(&[cell(1, 1, "some value of some length")]),
        );
        store.commit(batch).await.unwrap();
    }
}

fn find(directory: &Path, matches: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(find(&path, matches));
        } else if matches(&path) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn logs(place: &Place) -> Vec<PathBuf> {
    find(&directory(place), &|path| {
        path.extension().is_some_and(|extension| extension == "jnl")
    })
}

#[tokio::test]
async fn a_store_has_one_holder() {
    for scheme in [
        "file",
        #[cfg(feature = "slate")]
        "slate+file",
    ] {
        one_holder(&Place::new(scheme)).await;
    }
}

async fn one_holder(place: &Place) {
    let store = place.open().await;
    let refusal = place.try_open().await.unwrap_err().to_string();
    assert!(
        refusal.contains("in use") && refusal.contains(directory(place).to_str().unwrap()),
        "{refusal}"
    );
    assert!(refusal.contains(&std::process::id().to_string()), "{refusal}");
    store.close().await.unwrap();
    place.open().await.close().await.unwrap();
}

#[tokio::test]
async fn a_closed_store_refuses() {
    for scheme in [
        "file",
        #[cfg(feature = "slate")]
        "slate+file",
        #[cfg(feature = "slate")]
        "slate+memory",
    ] {
        closed_refuses(&Place::new(scheme)).await;
    }
}

async fn closed_refuses(place: &Place) {
    let store = place.open().await;
    fill(&store, 0..1).await;
    store.close().await.unwrap();
    assert!(matches!(store.commit(Batch::new()).await, Err(Error::Closed)));
    assert!(matches!(
        store.get(Space::Rows, b"", &store.snapshot()).await,
        Err(Error::Closed)
    ));
    let other = Place::new("memory").open().await;
    assert!(matches!(
        other.get(Space::Rows, b"", &place.open().await.snapshot()).await,
        Err(Error::ForeignSnapshot)
    ));
}

#[tokio::test]
async fn other_formats_and_directories_are_refused_by_name() {
    let place = Place::new("file");
    place.open().await.close().await.unwrap();
    fs::write(directory(&place).join("helenus.format"), "helenus store 2, fjall 9\n").unwrap();
    let refusal = place.try_open().await.unwrap_err().to_string();
    assert!(
        refusal.contains("helenus store 2, fjall 9") && refusal.contains("helenus store 5, fjall 3"),
        "{refusal}"
    );
    let place = Place::new("file");
    fs::create_dir_all(directory(&place)).unwrap();
    fs::write(directory(&place).join("letters.txt"), "dear").unwrap();
    assert!(matches!(place.try_open().await, Err(Error::NotAStore { .. })));
}

#[tokio::test]
async fn a_start_that_was_cut_short_is_started_again() {
    for left in ["helenus.lock", "helenus.format.new", "helenus.format", "engine/0.jnl"] {
        let place = Place::new("file");
        let path = directory(&place).join(left);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if left.starts_with("engine") {
            fs::write(directory(&place).join("helenus.format"), FORMAT_OF_FILE).unwrap();
        }
        fs::write(&path, if left == "helenus.format" { FORMAT_OF_FILE } else { "" }).unwrap();
        let store = place.open().await;
        fill(&store, 0..1).await;
    }
}

/// Flips or cuts bytes of the log; whatever it is, no acknowledged write may be missing from an open store.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_log_is_refused() {
    let place = Place::new("file");
    let store = place.open().await;
    fill(&store, 0..30).await;
    store.close().await.unwrap();
    let log = logs(&place).pop().unwrap();
    let mut whole = fs::read(&log).unwrap();
    let end = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    // The rest is preallocated by the engine.
    whole.truncate(end + 4096);
    let acknowledged = fs::read(directory(&place).join("acknowledged")).unwrap();
    for step in 0..40 {
        let at = end * step / 40;
        for cut in [false, true] {
            let mut bytes = whole.clone();
            if cut {
                bytes.truncate(at);
            } else {
                bytes[at] ^= 0x55;
            }
            fs::write(&log, &bytes).unwrap();
            fs::write(directory(&place).join("acknowledged"), &acknowledged).unwrap();
            let refusal = place
                .try_open()
                .await
                .expect_err(&format!("damage at {at} of {end}, cut {cut}"))
                .to_string();
            assert!(refusal.contains(directory(&place).to_str().unwrap()), "{refusal}");
        }
    }
    fs::write(&log, &whole).unwrap();
    let store = place.open().await;
    assert_eq!(
        entries(&store, Space::Rows, &KeyRange::all(), Order::Forward, &store.snapshot())
            .await
            .len(),
        30
    );
}

/// A log that ends early opens if no acknowledgement of the rest was recorded: a kill leaves such a log.
#[tokio::test]
async fn a_log_cut_after_the_last_acknowledged_group_opens() {
    let place = Place::new("file");
    let store = place.open().await;
    fill(&store, 0..5).await;
    let acknowledged = fs::read(directory(&place).join("acknowledged")).unwrap();
    fill(&store, 5..6).await;
    store.close().await.unwrap();
    let log = logs(&place).pop().unwrap();
    let mut bytes = fs::read(&log).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    bytes.truncate(end - 3);
    fs::write(&log, &bytes).unwrap();
    fs::write(directory(&place).join("acknowledged"), &acknowledged).unwrap();
    let store = place.open().await;
    let rows = entries(&store, Space::Rows, &KeyRange::all(), Order::Forward, &store.snapshot()).await;
    assert_eq!(rows.len(), 5);
    fill(&store, 7..9).await;
}

/// Flips bytes all over a table; each read is right or refused, and the refusal names a file of the store.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_table_is_named_and_never_served() {
    let mut place = Place::new("file");
    place.options.row_cache_bytes_max = 0;
    place.options.block_cache_bytes_max = 0;
    let store = place.open().await;
    fill(&store, 0..300).await;
    store.flush().await.unwrap();
    let at = store.snapshot();
    let expected = entries(&store, Space::Rows, &KeyRange::all(), Order::Forward, &at).await;
    drop(at);
    store.close().await.unwrap();
    let is_table = |path: &Path| path.to_str().unwrap().contains("keyspaces/1/tables/");
    let table = find(&directory(&place), &is_table).pop().expect("a table was written");
    let whole = fs::read(&table).unwrap();
    let mut refused = 0;
    for step in 0..40 {
        let mut bytes = whole.clone();
        let at = whole.len() * step / 40;
        bytes[at] ^= 0x55;
        fs::write(&table, &bytes).unwrap();
        let outcome = async {
            let store = place.try_open().await?;
            let mut found = Vec::new();
            let now = store.snapshot();
            let visit = |key: &[u8], value: &[u8]| {
                found.push((key.to_vec(), value.to_vec()));
                ControlFlow::Continue(())
            };
            let scanned = store
                .scan(Space::Rows, &KeyRange::all(), Order::Forward, &now, visit)
                .await;
            assert_eq!(found, expected[..found.len()], "wrong data served, damage at {at}");
            for (key, value) in &expected {
                let got = store.get(Space::Rows, key, &now).await?;
                assert_eq!(
                    got.as_deref(),
                    Some(value.as_slice()),
                    "wrong row served, damage at {at}"
                );
            }
            scanned.inspect(|()| assert_eq!(found.len(), expected.len(), "rows left out, damage at {at}"))
        };
        if let Err(error) = outcome.await {
            refused += 1;
            assert!(
                matches!(error, Error::Corrupt { .. } | Error::LostWrites { .. }),
                "{error:?}"
            );
            assert!(
                error.to_string().contains(directory(&place).to_str().unwrap()),
                "{error}"
            );
        }
    }
    assert!(refused > 20, "only {refused} of 40 were noticed");
}

/// A disk that is full for a while: errors meanwhile, no false answers, and writes again afterwards, without a restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_recovers() {
    for scheme in [
        "file",
        #[cfg(feature = "slate")]
        "slate+file",
    ] {
        full_disk(Place::new(scheme)).await;
    }
}

async fn full_disk(mut place: Place) {
    let full = Arc::new(AtomicBool::new(false));
    let seam = Arc::clone(&full);
    place.options.faults = Some(Arc::new(move |_| {
        seam.load(Ordering::SeqCst)
            .then(|| io::Error::from(io::ErrorKind::StorageFull))
    }));
    let store = place.open().await;
    fill(&store, 0..10).await;
    let checked = store.opening();
    full.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        let mut batch = Batch::new();
        batch.put(Space::Catalog, b"lost".to_vec(), "1");
        assert!(matches!(store.commit(batch).await, Err(Error::DiskFull { .. })));
        assert_eq!(get(&store, Space::Catalog, "lost").await, None);
    }
    // Reads continue meanwhile.
    assert_eq!(
        entries(&store, Space::Rows, &KeyRange::all(), Order::Forward, &store.snapshot())
            .await
            .len(),
        10
    );
    full.store(false, Ordering::SeqCst);
    // A batch derived before the reopening may be wrong afterwards: it is refused, and accepted when derived again.
    for expected in [Err(()), Ok(())] {
        let mut batch = Batch::new();
        batch.put(Space::Catalog, b"checked".to_vec(), "1");
        batch.only_in(if expected.is_err() { checked } else { store.opening() });
        match store.commit(batch).await {
            Ok(_) => assert_eq!(expected, Ok(())),
            Err(Error::OpenedAgain) => assert_eq!(expected, Err(())),
            Err(error) => panic!("{error}"),
        }
        let there = get(&store, Space::Catalog, "checked").await.is_some();
        assert_eq!(there, expected.is_ok());
    }
    fill(&store, 10..20).await;
    assert_eq!(
        entries(&store, Space::Rows, &KeyRange::all(), Order::Forward, &store.snapshot())
            .await
            .len(),
        20
    );
    store.close().await.unwrap();
    let store = place.open().await;
    assert_eq!(
        entries(&store, Space::Rows, &KeyRange::all(), Order::Forward, &store.snapshot())
            .await
            .len(),
        20
    );
}

/// A task that waits for a commit may hold a snapshot until the answer: the store reopens nevertheless, and waits for
/// it only briefly.
#[tokio::test(flavor = "multi_thread")]
async fn commits_that_hold_snapshots_do_not_keep_a_full_disk_from_recovering() {
    let mut place = Place::new("file");
    let full = Arc::new(AtomicBool::new(false));
    let seam = Arc::clone(&full);
    place.options.faults = Some(Arc::new(move |_| {
        let is_full = seam.load(Ordering::SeqCst);
        is_full.then(|| io::Error::from(io::ErrorKind::StorageFull))
    }));
    let store = place.open().await;
    fill(&store, 0..10).await;
    full.store(true, Ordering::SeqCst);
    let mut batch = Batch::new();
    batch.put(Space::Catalog, b"lost".to_vec(), "1");
    assert!(matches!(store.commit(batch).await, Err(Error::DiskFull { .. })));
    full.store(false, Ordering::SeqCst);
    let holding = async |is_judged: bool| {
        let at = store.snapshot();
        let mut batch = Batch::new();
        batch.put(Space::Catalog, b"held".to_vec(), "1");
        if is_judged {
            batch.only_in(store.opening());
        }
        let committed = store.commit(batch).await;
        drop(at);
        committed
    };
    let began = Clock::system();
    assert!(holding(true).await.is_err());
    // It is refused after a while, and then drops its snapshot.
    assert!(holding(false).await.is_err());
    fill(&store, 10..11).await;
    assert!(
        began.monotonic() < std::time::Duration::from_secs(5),
        "{:?}",
        began.monotonic()
    );
    store.close().await.unwrap();
}

/// After any other failure of the disk nothing is written until the next start.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_disk_is_not_believed_again() {
    let failing = Arc::new(AtomicBool::new(false));
    let mut place = Place::new("file");
    let seam = Arc::clone(&failing);
    place.options.faults = Some(Arc::new(move |_| {
        seam.load(Ordering::SeqCst).then(|| io::Error::other("EIO"))
    }));
    let store = place.open().await;
    fill(&store, 0..10).await;
    failing.store(true, Ordering::SeqCst);
    let mut batch = Batch::new();
    batch.put(Space::Catalog, b"a".to_vec(), "1");
    assert!(matches!(store.commit(batch.clone()).await, Err(Error::Io { .. })));
    failing.store(false, Ordering::SeqCst);
    assert!(matches!(store.commit(batch).await, Err(Error::WritesRefused { .. })));
    assert_eq!(
        entries(&store, Space::Rows, &KeyRange::all(), Order::Forward, &store.snapshot())
            .await
            .len(),
        10
    );
    store.close().await.unwrap();
    fill(&place.open().await, 10..11).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_durability_keeps_what_was_written() {
    for (durability, scheme) in ["group", "os", "periodic:1"].into_iter().flat_map(|one| {
        [
            (one, "file"),
            #[cfg(feature = "slate")]
            (one, "slate+file"),
        ]
    }) {
        let mut place = Place::new(scheme);
        place.options.durability = durability.parse().unwrap();
        let store = place.open().await;
        fill(&store, 0..50).await;
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        fill(&store, 50..60).await;
        store.close().await.unwrap();
        let store = place.open().await;
        assert_eq!(
            entries(&store, Space::Rows, &KeyRange::all(), Order::Forward, &store.snapshot())
                .await
                .len(),
            60
        );
    }
}

/// A range whose deletion was not finished when the process ended is deleted when the store opens.
#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_range_deletion_is_finished_on_opening() {
    let failing = Arc::new(AtomicBool::new(false));
    let mut place = Place::new("file");
    let seam = Arc::clone(&failing);
    let groups = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&groups);
    // The group with the range's record is written, the step that deletes is not.
    place.options.faults = Some(Arc::new(move |_| {
        let armed = seam.load(Ordering::SeqCst) && counted.fetch_add(1, Ordering::SeqCst) >= 1;
        armed.then(|| io::Error::other("EIO"))
    }));
    let store = place.open().await;
    fill(&store, 0..20).await;
    failing.store(true, Ordering::SeqCst);
    let mut batch = Batch::new();
    batch.delete_range(Space::Rows, key::table_range(1));
    assert!(store.commit(batch).await.is_err());
    assert_eq!(
        entries(&store, Space::Rows, &KeyRange::all(), Order::Forward, &store.snapshot())
            .await
            .len(),
        20
    );
    store.close().await.unwrap();
    failing.store(false, Ordering::SeqCst);
    let store = place.open().await;
    assert!(
        entries(&store, Space::Rows, &KeyRange::all(), Order::Forward, &store.snapshot())
            .await
            .is_empty()
    );
    assert_eq!(store.bytes_in(&KeyRange::all()).rows, 0);
}

/// A store with a broken invariant refuses writes and reports it; earlier writes are there when it is opened again.
#[tokio::test]
async fn a_store_of_which_an_invariant_is_broken_stops() {
    for broken in [Invariant::GroupIsInOrder, Invariant::PublishedRises] {
        let mut place = Place::new("file");
        let is_on = Arc::new(AtomicBool::new(false));
        let switch = Arc::clone(&is_on);
        place.options.breaks = Some(Arc::new(move |invariant| {
            invariant == broken && switch.load(Ordering::SeqCst)
        }));
        let store = place.open().await;
        fill(&store, 0..3).await;
        is_on.store(true, Ordering::SeqCst);
        let two = || {
            let mut batch = Batch::new();
            batch.put(Space::Rows, key_of(1, "7", ""), row_of(&[cell(1, 1, "a")]).encode());
            batch.put(Space::Rows, key_of(1, "8", ""), row_of(&[cell(1, 1, "b")]).encode());
            batch
        };
        let refused = store.commit(two()).await.unwrap_err();
        assert!(
            matches!(refused, Error::Broken(Broken(of)) if of == broken),
            "{refused:?}"
        );
        let lost = store.lost().expect("the store says so");
        assert!(lost.to_string().contains(broken.text()), "{lost}");
        is_on.store(false, Ordering::SeqCst);
        assert!(matches!(store.commit(two()).await, Err(Error::WritesRefused { .. })));
        store.close().await.unwrap();
        let store = place.open().await;
        let at = store.snapshot();
        let rows = entries(&store, Space::Rows, &KeyRange::all(), Order::Forward, &at).await;
        assert_eq!(rows.len(), 3);
        drop(at);
        store.close().await.unwrap();
    }
}
