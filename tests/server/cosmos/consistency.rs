//! Levels of consistency: what an account promises, and what a request may ask for.

use helenus_cql::cql::{QueryParams, SessionState};
use helenus_types::consistency::Consistency;

use super::with_tables;

#[tokio::test]
async fn levels_of_reads_are_refused_when_asked_for() {
    // Source: consistency-mapping.md.
    for (strict, account, refused) in [("", "session", 0), ("consistency", "session", 8), ("all", "strong", 1)] {
        let (server, _client) = with_tables(&[("cosmos-strict", strict), ("account-consistency", account)]).await;
        let mut came = 0;
        for consistency in Consistency::ALL.into_iter().filter(|level| *level != Consistency::Any) {
            let params = QueryParams {
                consistency,
                ..QueryParams::default()
            };
            let session = SessionState::default();
            let read = server
                .database()
                .query(&session, "SELECT * FROM k.t WHERE pk = 1", &params)
                .await;
            came += usize::from(read.is_err());
            // The level of a write is ignored, not refused.
            let write = "INSERT INTO k.t (pk, ck) VALUES (1, 1)";
            server.database().query(&session, write, &params).await.unwrap();
        }
        assert_eq!(came, refused, "{strict}");
    }
}

#[tokio::test]
async fn reads_of_two_replicas_cost_twice_as_much() {
    // Source: "Consistency levels in Azure Cosmos DB" (consistency-levels.md): strong and bounded staleness read two replicas.
    for (account, at_quorum) in [("session", 1.0), ("bounded-staleness", 2.0), ("strong", 2.0)] {
        let (server, _client) = with_tables(&[("account-consistency", account)]).await;
        let asked = [
            ("SELECT * FROM k.t WHERE pk = 1 AND ck = 1", Consistency::One, 1.0),
            (
                "SELECT * FROM k.t WHERE pk = 1 AND ck = 1",
                Consistency::Quorum,
                at_quorum,
            ),
            ("INSERT INTO k.t (pk, ck) VALUES (1, 1)", Consistency::Quorum, 5.0),
        ];
        for (text, consistency, charge) in asked {
            let params = QueryParams {
                consistency,
                ..QueryParams::default()
            };
            let session = SessionState::default();
            let answer = server.database().query(&session, text, &params).await.unwrap();
            assert_eq!(answer.charge.as_f64(), charge, "{account} {consistency:?} {text}");
        }
    }
}
