//! Files in the place of others of the same name: another store's, another database's, an older copy. A start gives right
//! answers or refuses by name without a change, and a salvage never calls complete what is not.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::damage::{Rows, directory, files, fill, put_back, rows};
use super::*;

/// The database's own number, and another one's.
const DRAWS: [u64; 2] = [0x1111, 0x2222];

const SIDE: u32 = 1;

/// A database with a side store, and its files.
struct Made {
    place: Place,
    whole: BTreeMap<PathBuf, Vec<u8>>,
    /// The files before the last writes.
    earlier: BTreeMap<PathBuf, Vec<u8>>,
    main: Rows,
    side: Rows,
}

async fn open_both(place: &Place, is_new: bool) -> Result<(Store, Store)> {
    let main = place.try_open().await?;
    let opened = main.open_side(&place.url, SIDE, is_new, &place.options, Clock::system());
    match opened.await {
        Ok(side) => Ok((main, side)),
        Err(error) => {
            main.close().await.unwrap();
            Err(error)
        }
    }
}

/// Both stores get rows in tables and in the log; `from` makes those of two databases differ.
async fn made(scheme: &str, draw: u64, from: u32, is_closed: bool) -> Made {
    let mut place = Place::new(scheme);
    place.options.draw = draw;
    let (main, side) = open_both(&place, true).await.unwrap();
    side.close().await.unwrap();
    main.close().await.unwrap();
    drop((main, side));
    // After one more opening, the log's first file has no preallocated part.
    let (main, side) = open_both(&place, false).await.unwrap();
    fill(&main, from..from + 30).await;
    fill(&side, from + 300..from + 320).await;
    main.flush().await.unwrap();
    side.flush().await.unwrap();
    fill(&main, from + 30..from + 40).await;
    fill(&side, from + 320..from + 325).await;
    let path = directory(&place);
    let earlier = files(&path);
    fill(&main, from + 40..from + 50).await;
    fill(&side, from + 325..from + 330).await;
    let (of_main, of_side) = (rows(&main).await.unwrap(), rows(&side).await.unwrap());
    let as_killed = files(&path);
    side.close().await.unwrap();
    main.close().await.unwrap();
    drop((main, side));
    if !is_closed {
        put_back(&path, &as_killed);
    }
    let whole = files(&path);
    Made {
        place,
        whole,
        earlier,
        main: of_main,
        side: of_side,
    }
}

/// The path of the same kind of file in the other store of the database.
fn of_other_store(scheme: &str, path: &Path) -> Option<PathBuf> {
    let text = path.to_str()?;
    let side = format!("stores/{SIDE}/");
    Some(match (scheme, text.strip_prefix(&side)) {
        ("file", Some(rest)) => rest.into(),
        ("file", None) => format!("{side}{text}").into(),
        (_, Some(rest)) => format!("engine/{rest}").into(),
        (_, None) => match text.strip_prefix("engine/") {
            Some(rest) => format!("{side}{rest}").into(),
            None if text == "acknowledged" => "acknowledged.stores.1".into(),
            None if text == "acknowledged.stores.1" => "acknowledged".into(),
            None => return None,
        },
    })
}

/// Opens what is there. Returns whether it was refused; an answer must be right.
async fn refuses(made: &Made, what: &str) -> bool {
    let (main, side) = match open_both(&made.place, false).await {
        Ok(both) => both,
        Err(error) => {
            assert!(
                !matches!(error, Error::Engine { .. } | Error::Io { .. }),
                "{what}: not by name: {error}"
            );
            return true;
        }
    };
    let found = [(rows(&main).await, &made.main), (rows(&side).await, &made.side)];
    let mut refused = false;
    for (found, expected) in found {
        match found {
            Ok(found) => assert!(found == *expected, "{what}: {} of {} rows", found.len(), expected.len()),
            Err(_) => refused = true,
        }
    }
    side.close().await.unwrap();
    main.close().await.unwrap();
    refused
}

/// The rows that a salvage finds in both stores, and whether it calls them complete.
async fn salvaged(place: &Place) -> (Rows, Rows, bool) {
    let mut all = BTreeMap::new();
    for number in [0, SIDE] {
        let opened = Box::pin(Salvage::open(&place.url, number, Clock::system())).await;
        match opened {
            Ok(salvage) => drop(all.insert(number, salvage)),
            Err(_) => return (Rows::new(), Rows::new(), false),
        }
    }
    Salvage::check_together(all.iter_mut().map(|(number, salvage)| (*number, salvage)));
    let mut found = Vec::new();
    let mut is_complete = true;
    for salvage in all.values() {
        let mut of_store = Rows::new();
        let range = KeyRange::all();
        let gaps = salvage.scan(Space::Rows, &range, |key, value| {
            of_store.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        });
        is_complete &= gaps.await.is_empty() && salvage.damage().is_empty();
        found.push(of_store);
    }
    let side = found.pop().unwrap();
    (found.pop().unwrap(), side, is_complete)
}

/// Whether a start does not check the kind of file: a table of fjall names neither its store nor its database.
fn is_table_of_fjall(path: &Path) -> bool {
    path.parent()
        .is_some_and(|folder| folder.ends_with("keyspaces/1/tables"))
}

async fn each_file(scheme: &str, is_closed: bool) {
    let one = made(scheme, DRAWS[0], 0, is_closed).await;
    let other = made(scheme, DRAWS[1], 1000, is_closed).await;
    let folder = directory(&one.place);
    let relative = |path: &Path, of: &Made| path.strip_prefix(directory(&of.place)).unwrap().to_owned();
    let of_other: BTreeMap<PathBuf, &Vec<u8>> = other
        .whole
        .iter()
        .map(|(path, bytes)| (relative(path, &other), bytes))
        .collect();
    let (mut trials, mut refused) = (0, 0);
    for (path, bytes) in &one.whole {
        let name = relative(path, &one);
        if is_table_of_fjall(&name) {
            continue;
        }
        let of_store = of_other_store(scheme, &name).and_then(|other| one.whole.get(&folder.join(other)));
        let candidates = [
            ("another store's", of_store),
            ("another database's", of_other.get(&name).copied()),
            ("an older copy", one.earlier.get(path)),
        ];
        for (kind, replacement) in candidates {
            let Some(replacement) = replacement.filter(|replacement| *replacement != bytes) else {
                continue;
            };
            let what = format!("{scheme}, closed {is_closed}: {} is {kind}", name.display());
            put_back(&folder, &one.whole);
            fs::write(path, replacement).unwrap();
            let damaged = files(&folder);
            let (main, side, is_complete) = salvaged(&one.place).await;
            assert!(files(&folder) == damaged, "{what}: the salvage changed a file");
            assert!(
                !is_complete || (main == one.main && side == one.side),
                "{what}: salvage says complete"
            );
            let is_refused = refuses(&one, &what).await;
            refused += usize::from(is_refused);
            assert!(
                !is_refused || !is_complete,
                "{what}: refused, and salvage says complete"
            );
            trials += 1;
        }
    }
    put_back(&folder, &one.whole);
    assert!(!refuses(&one, "whole").await);
    // Objects of before the newest manifest are not read.
    assert!(refused > trials / 4, "{scheme}: {refused} of {trials}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_another_store_or_moment_is_refused_or_harmless() {
    for is_closed in [true, false] {
        each_file("file", is_closed).await;
    }
}

#[cfg(feature = "slate")]
#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_another_store_or_moment_is_refused_or_harmless() {
    for is_closed in [true, false] {
        each_file("slate+file", is_closed).await;
    }
}

/// A copy of the whole database goes on by itself: it has the same identity, and its log is longer.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_a_copy_that_went_on_is_refused() {
    for (scheme, ends) in [
        ("file", "engine/0.jnl"),
        #[cfg(feature = "slate")]
        ("slate+file", "engine/wal"),
    ] {
        for is_closed in [true, false] {
            let one = made(scheme, DRAWS[0], 0, is_closed).await;
            let folder = directory(&one.place);
            put_back(&folder, &one.earlier);
            let store = one.place.open().await;
            fill(&store, 500..540).await;
            let copy = files(&folder);
            store.close().await.unwrap();
            put_back(&folder, &one.whole);
            for (path, bytes) in copy.iter().filter(|(path, _)| path.starts_with(folder.join(ends))) {
                fs::write(path, bytes).unwrap();
            }
            let damaged = files(&folder);
            let refused = one.place.try_open().await.expect_err("a longer log of a copy");
            assert!(
                matches!(refused, Error::Corrupt { .. } | Error::LostWrites { .. }),
                "{refused}"
            );
            assert!(files(&folder) == damaged, "a refused start changed a file");
            let (.., is_complete) = salvaged(&one.place).await;
            assert!(!is_complete, "{scheme}, closed {is_closed}");
        }
    }
}

/// What follows a clean close is of another copy.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_may_follow_a_clean_close() {
    for scheme in [
        "file",
        #[cfg(feature = "slate")]
        "slate+file",
    ] {
        let place = Place::new(scheme);
        let store = place.open().await;
        fill(&store, 0..5).await;
        store.close().await.unwrap();
        let folder = directory(&place);
        let closed = fs::read(folder.join("acknowledged")).unwrap();
        let store = place.open().await;
        fill(&store, 5..9).await;
        store.close().await.unwrap();
        let last = fs::read(folder.join("acknowledged")).unwrap();
        fs::write(folder.join("acknowledged"), closed).unwrap();
        let refused = place.try_open().await.expect_err("the log goes on").to_string();
        assert!(refused.contains("was closed with"), "{refused}");
        fs::write(folder.join("acknowledged"), last).unwrap();
        assert_eq!(rows(&place.open().await).await.unwrap().len(), 9);
    }
}

/// The files of one store, without its records of the others.
fn is_of_store(scheme: &str, store: &str, path: &Path) -> bool {
    let of_store = match (scheme, store) {
        (_, "main") => path.starts_with("engine") || path == Path::new("acknowledged"),
        ("file", _) => path.starts_with("stores/1"),
        _ => path.starts_with("stores/1") || path == Path::new("acknowledged.stores.1"),
    };
    of_store && !path.ends_with("moments")
}

/// Opens both stores as a server does, writes, and leaves the files as a stop or a kill does.
async fn as_a_server(place: &Place, numbers: [std::ops::Range<u32>; 2], is_closed: bool) -> Result<(Rows, Rows)> {
    let (main, side) = open_both(place, false).await?;
    let both = [(0, main.clone()), (SIDE, side.clone())];
    let close = async || {
        side.close().await.unwrap();
        main.close().await.unwrap();
    };
    if let Err(error) = Moments::check(&both, false) {
        close().await;
        return Err(error);
    }
    Moments::begin(&both).unwrap();
    main.accept().await.unwrap();
    side.accept().await.unwrap();
    let moments = Moments::of(&both).unwrap().unwrap();
    let [of_main, of_side] = numbers;
    fill(&main, of_main).await;
    fill(&side, of_side).await;
    let found = (rows(&main).await?, rows(&side).await?);
    if is_closed {
        moments.end_with(&main);
        close().await;
    } else {
        drop(moments);
        let killed = files(&directory(place));
        close().await;
        put_back(&directory(place), &killed);
    }
    Ok(found)
}

/// A copy of the whole database is written by itself, and one of its stores is put in the place of the original's: alone, it is
/// sound, and longer.
async fn each_store_of_a_copy(scheme: &str, is_closed: bool) {
    let mut place = Place::new(scheme);
    let folder = directory(&place);
    let (main, side) = open_both(&place, true).await.unwrap();
    side.close().await.unwrap();
    main.close().await.unwrap();
    place.options.is_accepted_later = true;
    as_a_server(&place, [0..20, 300..320], true).await.unwrap();
    let before = files(&folder);
    as_a_server(&place, [1000..1090, 1300..1390], is_closed).await.unwrap();
    let copy = files(&folder);
    put_back(&folder, &before);
    let right = as_a_server(&place, [20..30, 320..330], is_closed).await.unwrap();
    let whole = files(&folder);
    for store in ["main", "side"] {
        let what = format!("{scheme}, closed {is_closed}: the {store} store of a copy");
        let is_of = |path: &Path| is_of_store(scheme, store, path.strip_prefix(&folder).unwrap());
        let mixed: BTreeMap<_, _> = copy
            .iter()
            .filter(|(path, _)| is_of(path))
            .chain(whole.iter().filter(|(path, _)| !is_of(path)))
            .map(|(path, bytes)| (path.clone(), bytes.clone()))
            .collect();
        put_back(&folder, &mixed);
        let damaged = files(&folder);
        let (.., is_complete) = salvaged(&place).await;
        assert!(!is_complete, "{what}: salvage says complete");
        let refused = as_a_server(&place, [0..0, 0..0], true).await.expect_err(&what);
        assert!(
            matches!(refused, Error::OtherCopy { .. } | Error::FollowsClose { .. }),
            "{what}: {refused}"
        );
        assert!(files(&folder) == damaged, "{what}: a refused start changed a file");
    }
    put_back(&folder, &whole);
    let (.., is_complete) = salvaged(&place).await;
    assert!(is_complete, "{scheme}, closed {is_closed}");
    for _ in 0..2 {
        let found = as_a_server(&place, [0..0, 0..0], is_closed).await.unwrap();
        assert!(found == right, "{scheme}, closed {is_closed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_a_copy_that_was_written_by_itself_is_refused() {
    for is_closed in [true, false] {
        each_store_of_a_copy("file", is_closed).await;
    }
}

/// A start does not read tables whole; a diagnosis and a salvage do.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_another_store_is_found_by_a_diagnosis_and_a_salvage() {
    let one = made("file", DRAWS[0], 0, true).await;
    let other = made("file", DRAWS[1], 1000, true).await;
    let folder = directory(&one.place);
    let mut place = one.place;
    place.options.checks_whole_tables = true;
    let side = folder.join(format!("stores/{SIDE}"));
    let is_of_main = |path: &&PathBuf| is_table_of_fjall(path) && !path.starts_with(&side);
    let table = one.whole.keys().find(is_of_main).unwrap();
    let name = table.strip_prefix(&folder).unwrap();
    for by in [directory(&other.place).join(name), side.join(name)] {
        put_back(&folder, &one.whole);
        assert_eq!(rows(&place.open().await).await.unwrap().len(), one.main.len());
        put_back(&folder, &one.whole);
        fs::copy(&by, table).unwrap();
        let damaged = files(&folder);
        let refused = place.try_open().await.expect_err("a table of another store");
        assert!(
            matches!(&refused, Error::Corrupt { path, .. } if path == table),
            "{refused}"
        );
        let (.., is_complete) = salvaged(&place).await;
        assert!(!is_complete, "{}", by.display());
        assert!(files(&folder) == damaged, "a diagnosis changed a file");
    }
}
