//! ORDER BY … ANN OF beyond what the golden scripts hold (`compat/oracle/scripts/ann.cql`): many rows on several physical partitions,
//! the answer against an exhaustive one, EXPLAIN.

use crate::support::{Client, printed};
use helenus_cql::cql::QueryParams;

async fn filled(partitions: u32) -> (Client, Vec<[f32; 3]>) {
    let client = Client::with_keyspace("memory:").await;
    client
        .ok(&format!(
            "CREATE TABLE t (k int PRIMARY KEY, v vector<float, 3>, w int) WITH helenus_partitions = {partitions}"
        ))
        .await;
    client
        .ok("CREATE CUSTOM INDEX ON t (v) USING 'sai' WITH OPTIONS = {'similarity_function': 'euclidean'}")
        .await;
    client.ok("CREATE INDEX ON t (w) USING 'sai'").await;
    let mut random = fastrand::Rng::with_seed(7);
    let mut vectors = Vec::new();
    for k in 0..300 {
        let vector = [random.f32(), random.f32(), random.f32()];
        let [x, y, z] = vector;
        client
            .ok(&format!(
                "INSERT INTO t (k, v, w) VALUES ({k}, [{x}, {y}, {z}], {})",
                k % 3
            ))
            .await;
        vectors.push(vector);
    }
    (client, vectors)
}

#[tokio::test]
async fn the_nearest_are_those_of_an_exhaustive_search() {
    for partitions in [1, 4] {
        let (client, vectors) = filled(partitions).await;
        for only in [None, Some(1)] {
            let mut wanted: Vec<(f32, usize)> = vectors
                .iter()
                .enumerate()
                .filter(|(k, _)| only.is_none_or(|w| k % 3 == w))
                .map(|(k, [x, y, z])| ((x - 0.5).powi(2) + (y - 0.25).powi(2) + (z - 0.75).powi(2), k))
                .collect();
            wanted.sort_by(|(a, _), (b, _)| a.total_cmp(b));
            let wanted: Vec<String> = wanted.into_iter().take(20).map(|(_, k)| k.to_string()).collect();
            let filter = only.map_or_else(String::new, |w| format!("WHERE w = {w}"));
            let text = format!("SELECT k FROM t {filter} ORDER BY v ANN OF [0.5, 0.25, 0.75] LIMIT 20");
            assert_eq!(printed(&client.ok(&text).await), wanted, "{partitions} {only:?}");
            // No page is smaller than LIMIT, and none follows.
            let pages = client.pages(&text, 3).await;
            assert_eq!(pages, [wanted], "{partitions} {only:?}");
        }
    }
}

#[tokio::test]
async fn explain_tells_that_rows_are_compared() {
    let (client, _) = filled(1).await;
    let told = printed(
        &client
            .ok("EXPLAIN SELECT k FROM t ORDER BY v ANN OF [1, 2, 3] LIMIT 5")
            .await,
    );
    let stage = told.iter().find(|line| line.contains("\"nearest\"")).unwrap();
    assert!(stage.contains("euclidean") && stage.contains("t_v_idx"), "{told:?}");
    // What is read is charged: all rows, not those that are given.
    let one = client.ok("SELECT k FROM t WHERE k = 1").await;
    let near = client
        .run(
            "SELECT k FROM t ORDER BY v ANN OF [1, 2, 3] LIMIT 1",
            QueryParams::default(),
        )
        .await
        .unwrap();
    assert_eq!(printed(&near).len(), 1);
    assert!(near.charge > one.charge, "{:?} {:?}", near.charge, one.charge);
}
