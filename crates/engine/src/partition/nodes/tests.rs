//! Tests of the virtual nodes.

use super::*;
use crate::partition::faults::StatementKind;
use crate::partition::ring::StoreId;
use helenus_storage::storage::{Batch, Options, Space, Store, Url};
use helenus_types::consistency::Consistency;

fn place(partition: u64) -> Place<'static> {
    Place {
        keyspace: "ks",
        table: "t",
        partition,
    }
}

fn nodes(plan: &str) -> (Nodes, Clock) {
    let clock = Clock::manual(0);
    let nodes = Nodes::new(4, clock.clone());
    nodes.set_plan(Plan::from_toml(plan).unwrap()).unwrap();
    (nodes, clock)
}

#[test]
fn replicas_are_on_distinct_nodes_and_writers_rotate() {
    let nodes = Nodes::new(4, Clock::manual(0));
    assert!(nodes.is_quiet());
    for partition in 0..8 {
        let shown = nodes.shown(&place(partition));
        let mut on: Vec<usize> = shown.replicas.iter().map(|replica| replica.node).collect();
        assert_eq!(on[0] as u64, partition % 4);
        on.sort_unstable();
        assert_eq!(on, [0, 1, 2, 3]);
        assert!(shown.replicas[0].is_writer && shown.replicas.iter().all(|replica| replica.is_alive));
    }
}

#[test]
fn tokens_are_the_ends_of_equal_parts() {
    for count in 2..=NODES_MAX {
        let mut all: Vec<(i64, usize)> = (0..count)
            .flat_map(|node| tokens(node, count).into_iter().map(move |token| (token, node)))
            .collect();
        all.sort_unstable();
        assert_eq!(all.len(), 4 * count);
        assert_eq!(all.last(), Some(&(i64::MAX, count - 1)));
        let width = u64::MAX / all.len() as u64;
        for (place, pair) in all.windows(2).enumerate() {
            assert_eq!(pair[0].1, place % count);
            assert!(pair[0].0.abs_diff(pair[1].0).abs_diff(width) <= 1);
        }
    }
    assert_eq!(tokens(0, 4)[0], i64::MIN + (1 << 60) - 1);
}

#[test]
fn a_set_has_a_replica_on_each_of_two_or_three_nodes_and_on_four_of_more() {
    for (count, replicas) in [(1, 4), (2, 2), (3, 3), (4, 4), (5, 4), (6, 4)] {
        let nodes = Nodes::new(count, Clock::manual(0));
        assert_eq!(nodes.set_size(), replicas);
        assert_eq!(nodes.replicas(&place(1)).count(), replicas);
        let mut held = vec![0; count.max(4)];
        for partition in 0..60 {
            let shown = nodes.shown(&place(partition));
            assert_eq!(shown.replicas.len(), replicas as usize);
            for replica in &shown.replicas {
                held[replica.node] += 1;
            }
        }
        let most = if count == 1 { 4 } else { count };
        assert!(
            held.iter()
                .take(most)
                .all(|rows| *rows == 60 * replicas as usize / most),
            "{held:?}"
        );
    }
}

#[test]
fn with_a_node_down_of_two_nothing_is_written_and_of_three_and_five_all_is() {
    let down = "[[fault]]\naction = \"down\"\nnode = 2";
    for (count, writes) in [(2, false), (3, true), (5, true), (6, true)] {
        let nodes = Nodes::new(count, Clock::manual(0));
        nodes.set_plan(Plan::from_toml(down).unwrap()).unwrap();
        for partition in 0..12 {
            let set = nodes.replicas(&place(partition));
            assert_eq!(set.admit_write(Consistency::One).is_ok(), writes, "{count} nodes");
            assert!(set.admit(Consistency::One).is_ok());
        }
    }
    let nodes = Nodes::new(3, Clock::manual(0));
    let error = nodes
        .set_plan(Plan::from_toml("[[fault]]\naction = \"replica-down\"\nnode = 4").unwrap())
        .unwrap_err();
    assert_eq!(error.to_string(), "there is no node 4: replicas are on 3 nodes");
}

#[test]
fn a_lease_changes_hands_with_its_holder_and_comes_back() {
    let (nodes, clock) = nodes("[[fault]]\naction = \"down\"\nnode = 2\nfrom-ms = 100\nuntil-ms = 200");
    let mut up = nodes.up();
    let writer = || {
        let shown = nodes.shown(&place(1));
        let writer = shown.replicas.iter().find(|replica| replica.is_writer);
        (writer.map(|replica| replica.node), shown.lease_epoch)
    };
    assert_eq!(writer(), (Some(1), 0));
    clock.advance(Duration::from_millis(100));
    assert_eq!(writer(), (Some(2), 1));
    assert!(up.has_changed().unwrap() && !up.borrow_and_update().is_up(1));
    // Another partition's writer was not on that node: its lease stays.
    assert_eq!(nodes.shown(&place(0)).lease_epoch, 0);
    clock.advance(Duration::from_millis(100));
    assert_eq!(writer(), (Some(1), 2));
    assert!(up.borrow_and_update().is_up(1));
    let plan = "[[fault]]\naction = \"down\"\nnode = 2\n[[fault]]\naction = \"replica-down\"\nnode = 3\ntable = \"t\"";
    nodes.set_plan(Plan::from_toml(plan).unwrap()).unwrap();
    assert_eq!(writer(), (None, 3));
    let other = Place { table: "u", ..place(1) };
    assert_eq!(nodes.replicas(&other).alive(), 3);
    assert_eq!(nodes.replicas(&place(1)).alive(), 2);
    nodes.clear();
    assert!(nodes.is_quiet());
    assert_eq!(writer(), (Some(1), 4));
}

#[test]
fn nodes_go_down_by_the_number_of_the_request() {
    let (nodes, _) = nodes("[[fault]]\naction = \"down\"\nnode = 1\nfrom-request = 3\nuntil-request = 5");
    let places = [place(0)];
    let subject = Subject {
        places: &places,
        statement: StatementKind::Read,
        consistency: Consistency::One,
        node: 0,
    };
    let alive: Vec<u32> = (0..6)
        .map(|_| {
            assert_eq!(nodes.decide(nodes.begin(), &subject).decision, Decision::default());
            nodes.replicas(&place(0)).alive()
        })
        .collect();
    assert_eq!(alive, [4, 4, 3, 3, 4, 4]);
}

#[test]
fn one_node_cannot_go_down_but_its_replicas_can() {
    let nodes = Nodes::new(1, Clock::manual(0));
    let down = Plan::from_toml("[[fault]]\naction = \"down\"\nnode = 1").unwrap();
    assert!(nodes.set_plan(down).is_err());
    let replica = Plan::from_toml("[[fault]]\naction = \"replica-down\"\nnode = 1").unwrap();
    nodes.set_plan(replica).unwrap();
    assert_eq!(nodes.replicas(&place(0)).alive(), 3);
}

#[tokio::test]
async fn who_is_held_goes_on_when_the_plan_changes() {
    let (nodes, _) = nodes("[[fault]]\naction = \"delay\"\nms = 60000");
    let places = [place(0)];
    let subject = Subject {
        places: &places,
        statement: StatementKind::Write,
        consistency: Consistency::One,
        node: 0,
    };
    let ordered = nodes.decide(nodes.begin(), &subject);
    assert_eq!(ordered.decision.delay_ms, 60_000);
    let held = nodes.hold(&ordered, ordered.decision.delay_ms);
    let (_, ()) = tokio::join!(held, async {
        tokio::task::yield_now().await;
        nodes.clear();
    });
    // A plan that has changed before holds no request.
    nodes.hold(&ordered, 60_000).await;
}

#[tokio::test]
async fn a_lagging_replica_misses_no_more_than_its_bound() {
    let (nodes, clock) = nodes("[[fault]]\naction = \"lag\"\nnode = 2\nms = 100");
    let store = Store::open(&Url::Memory, &Options::default(), clock.clone())
        .await
        .unwrap();
    let id = StoreId(0);
    // A commit every 30 ms, each of which writes its number.
    for number in 0_u8..10 {
        clock.advance(Duration::from_millis(30));
        let before = store.snapshot();
        let mut batch = Batch::new();
        batch.put(Space::Catalog, b"n".to_vec(), vec![number]);
        store.commit(batch).await.unwrap();
        nodes.record_commit(id, before, store.snapshot());
    }
    let lag = |ms_max, commits_max| Lag { ms_max, commits_max };
    for (bound, expected) in [
        // Commit 9 is 0 ms old, 6 is 90 ms old: a replica that misses 6, 7, 8 and 9 shows 5.
        (lag(Some(100), None), 5),
        (lag(Some(90), None), 6),
        (lag(Some(1), None), 8),
        (lag(None, Some(2)), 7),
        (lag(Some(100), Some(1)), 8),
    ] {
        let at = nodes.snapshot_override(id, bound).unwrap().0;
        let found = store.get(Space::Catalog, b"n", &at).await.unwrap();
        assert_eq!(found.as_deref(), Some(&[expected][..]), "{bound:?}");
    }
    assert!(nodes.snapshot_override(id, lag(Some(0), None)).is_none());
    assert!(nodes.snapshot_override(id, lag(None, Some(0))).is_none());
    // On a store without commits the replica catches up.
    clock.advance(Duration::from_millis(100));
    assert!(nodes.snapshot_override(id, lag(Some(100), None)).is_none());
    // Partition 1 is written by node 2, which does not lag as its writer.
    assert_eq!(nodes.lag_at_one(&place(1), 1, 1), None);
    assert_eq!(nodes.lag_at_one(&place(0), 1, 1), Some(lag(Some(100), None)));
    assert_eq!(nodes.lag_at_one(&place(0), 2, 1), None);
    nodes.clear();
    assert!(nodes.snapshot_override(id, lag(Some(100), None)).is_none());
}
