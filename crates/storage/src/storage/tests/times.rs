//! The effect on a store of a wall clock that is set back over a restart.

use std::time::Duration;

use super::*;

const HOUR_MICROS: i64 = 3_600_000_000;

fn row(n: u32) -> Batch {
    let mut batch = Batch::new();
    batch.upsert(
        key_of(1, &n.to_string(), ""),
        row_of(&[cell(1, i64::from(n), "some value")]),
    );
    batch
}

/// Opens the store at each of these times, each an hour before the last, and writes: into the log, as tables, and into
/// a side store.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_set_back_keeps_no_store_from_writing() {
    for (scheme, is_flushed) in [("file", true), ("slate+file", true), ("slate+file", false)] {
        let place = Place::new(scheme);
        let now = Clock::system().wall_micros();
        let mut n = 0;
        for hours in [0, 1] {
            let clock = Clock::manual(now - hours * HOUR_MICROS);
            let opened = tokio::time::timeout(
                Duration::from_secs(5),
                Store::open(&place.url, &place.options, clock.clone()),
            );
            let store = opened.await.expect("no wait for the clock").unwrap();
            let is_new = hours == 0;
            let side = store
                .open_side(&place.url, 1, is_new, &place.options, clock.clone())
                .await
                .unwrap();
            for _ in 0..2 {
                n += 1;
                for store in [&store, &side] {
                    let committed = tokio::time::timeout(Duration::from_secs(5), store.commit(row(n)));
                    committed.await.expect("no wait for the clock").unwrap();
                }
                clock.set_wall_by(-HOUR_MICROS);
                if is_flushed {
                    store.flush().await.unwrap();
                }
            }
            for store in [store, side] {
                let mut found = 0;
                let visit = |_: &[u8], _: &[u8]| {
                    found += 1;
                    ControlFlow::Continue(())
                };
                let at = store.snapshot();
                store
                    .scan(Space::Rows, &KeyRange::all(), Order::Forward, &at, visit)
                    .await
                    .unwrap();
                drop(at);
                assert_eq!(found, n, "{scheme}");
                store.close().await.unwrap();
            }
        }
    }
}
