//! What requests cost, and that clients are told.

use helenus_cql::cql::{AnswerKind, QueryParams, SessionState};

use super::{ok, run, with_tables};

#[tokio::test]
async fn every_result_tells_its_charge() {
    // Source: find-request-unit-charge.md: a double of eight bytes, most significant first, under RequestCharge.
    let (_server, mut client) = with_tables(&[]).await;
    for statement in [
        "INSERT INTO k.t (pk, ck, v) VALUES (1, 1, 'a')",
        "SELECT * FROM k.t WHERE pk = 1",
        "SELECT * FROM system.local",
        "CREATE TABLE k.more (a int PRIMARY KEY)",
    ] {
        client.query(1, statement).await;
        let answer = client.frame().await.unwrap();
        assert_eq!(answer.opcode, 8, "{statement}");
        assert_ne!(answer.flags & 4, 0, "{statement}: no payload");
        let name = b"RequestCharge";
        let at = answer.body.windows(name.len()).position(|bytes| bytes == name).unwrap() + name.len();
        assert_eq!(answer.body[at..at + 4], 8_i32.to_be_bytes());
        let charge = f64::from_be_bytes(answer.body[at + 4..at + 12].try_into().unwrap());
        assert!(charge > 0.0, "{statement}: {charge}");
    }
}

#[tokio::test]
async fn published_points_are_met() {
    // Sources: key-value-store-cost.md, optimize-cost-reads-writes.md: a read of 1 KB costs 1, of 100 KB 10; an insert 5 and 50.
    let (server, _client) = with_tables(&[]).await;
    for (pk, bytes, write, read) in [(1, 1_000, 5.0, 1.0), (2, 102_000, 50.0, 10.0)] {
        let insert = format!("INSERT INTO k.flags (pk, v) VALUES ({pk}, '{}')", "x".repeat(bytes));
        let charge = ok(&server, &insert).await.charge.as_f64();
        assert!(
            (charge - write).abs() <= write / 50.0,
            "{bytes} bytes written: {charge}"
        );
        let charge = ok(&server, &format!("SELECT * FROM k.flags WHERE pk = {pk}"))
            .await
            .charge
            .as_f64();
        assert!((charge - read).abs() <= read / 50.0, "{bytes} bytes read: {charge}");
    }
}

#[tokio::test]
async fn pages_add_up_to_the_same_charge() {
    // Source: request-units.md: the same query over the same data costs the same, whatever the size of a page.
    let (server, _client) = with_tables(&[]).await;
    for ck in 0..50 {
        ok(
            &server,
            &format!("INSERT INTO k.t (pk, ck, v) VALUES (1, {ck}, 'some text')"),
        )
        .await;
    }
    let select = "SELECT * FROM k.t WHERE pk = 1";
    let whole = ok(&server, select).await.charge.in_hundredths();
    for page_size_rows in [1, 7, 50, 1000] {
        let (mut sum, mut paging_state) = (0, None);
        loop {
            let params = QueryParams {
                page_size_rows: Some(page_size_rows),
                paging_state,
                ..QueryParams::default()
            };
            let answer = server
                .database()
                .query(&SessionState::default(), select, &params)
                .await
                .unwrap();
            sum += answer.charge.in_hundredths();
            let AnswerKind::Rows(rows) = answer.kind else {
                panic!("no rows")
            };
            paging_state = rows.paging_state;
            if paging_state.is_none() {
                break;
            }
            server.advance(std::time::Duration::from_secs(60));
        }
        assert_eq!(sum, whole, "pages of {page_size_rows}");
    }
    // Prices are in the configuration.
    let (server, _client) = with_tables(&[("request-units", "read=2")]).await;
    ok(&server, "INSERT INTO k.flags (pk, v) VALUES (1, 'x')").await;
    let read = run(&server, "SELECT * FROM k.flags WHERE pk = 1").await.unwrap();
    assert_eq!(read.charge.as_f64(), 2.0);
}
