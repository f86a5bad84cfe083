//! Hostile CQL through a connection: an error in time, nothing overflows.

use std::time::Duration;

use crate::raw::Client;
use helenus::TestServer;
use helenus_base::clock::Clock;
use helenus_types::wire::Version;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_texts_are_answered_in_time() {
    let server = TestServer::start().await.unwrap();
    let mut client = Client::ready(server.address(), Version::V4).await;
    for text in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int PRIMARY KEY, v text)",
    ] {
        client.query(1, text).await;
        assert_eq!(client.frame().await.unwrap().opcode, 8);
    }
    // As deep as the grammar lets it nest, these reach the planner and are computed; deeper ones are refused below. Either way
    // nothing may recurse beyond a thread's stack, which would end the whole process.
    for levels in 1..=130 {
        let nest =
            |open: &str, inner: &str, close: &str| format!("{}{inner}{}", open.repeat(levels), close.repeat(levels));
        for text in [
            format!("SELECT {} FROM ks.t", nest("token(", "1", ")")),
            format!("SELECT {} FROM ks.t", nest("abs(", "k", ")")),
            format!("SELECT {} FROM ks.t", nest("-abs(", "k + 1", ")")),
            format!("INSERT INTO ks.t (k) VALUES ({})", nest("abs(", "1", ")")),
            format!("SELECT {} FROM ks.t", nest("(", "k", ")")),
            format!("SELECT {} FROM ks.t", nest("[", "k", "]")),
            format!("SELECT {} FROM ks.t", nest("cast(", "k", " as int)")),
            format!("INSERT INTO ks.t (k) VALUES ({})", nest("[", "1", "]")),
            format!("SELECT * FROM ks.t WHERE k = {}", nest("(int)", "1", "")),
            format!(
                "CREATE TABLE IF NOT EXISTS ks.nested{levels} (k int PRIMARY KEY, v frozen<{}>)",
                nest("list<", "int", ">")
            ),
            format!("SELECT v FROM ks.nested{levels}"),
        ] {
            if levels % 10 == 0 || levels > 124 {
                let clock = Clock::system();
                client.query(1, &text).await;
                assert!(client.frame().await.is_some(), "closed after {text}");
                let taken = clock.monotonic();
                assert!(taken < Duration::from_secs(3), "{text} took {taken:?}");
            }
        }
    }
    let deep = |open: &str, close: &str| {
        format!(
            "INSERT INTO ks.t (k) VALUES ({}1{})",
            open.repeat(5000),
            close.repeat(5000)
        )
    };
    let many = |count: usize| format!("SELECT * FROM ks.t WHERE k IN ({}1)", "?,".repeat(count));
    for (what, text) in [
        ("nested brackets", deep("(", ")")),
        ("nested lists", deep("[", "]")),
        ("nested maps", deep("{1:", "}")),
        ("nested functions", deep("f(", ")")),
        ("nested casts", deep("(int)", "")),
        (
            "nested types",
            format!(
                "CREATE TABLE ks.u (k int PRIMARY KEY, v {}int{})",
                "list<".repeat(5000),
                ">".repeat(5000)
            ),
        ),
        ("minus signs", deep("- ", "")),
        (
            "a long text",
            format!("SELECT * FROM ks.t WHERE v = '{}'", "x".repeat(2_000_000)),
        ),
        ("many markers", many(70_000)),
        ("an open comment", format!("/*{}", "*".repeat(100_000))),
        ("an open string", format!("SELECT '{}", "''".repeat(50_000))),
        ("nothing", String::new()),
        ("blanks", " ".repeat(1_000_000)),
        ("zero bytes", "\0".repeat(1000)),
        (
            "conditions",
            format!("SELECT * FROM ks.t WHERE k = 1{}", " AND k = 1".repeat(20_000)),
        ),
        (
            "statements",
            format!(
                "BEGIN BATCH {} APPLY BATCH",
                "DELETE FROM ks.t WHERE k = 1;".repeat(20_000)
            ),
        ),
    ] {
        let clock = Clock::system();
        client.query(1, &text).await;
        let frame = client.frame().await.unwrap_or_else(|| panic!("closed after {what}"));
        let taken = clock.monotonic();
        // Generous here: these are slow builds on busy machines. The bound that matters is that nothing grows with the square.
        assert!(taken < Duration::from_secs(3), "{what} took {taken:?}");
        if !matches!(what, "statements" | "conditions") {
            let code = frame.error().0;
            assert!(matches!(code, 0x2000 | 0x2200), "{what}: {code:x}");
        }
    }
}

/// What a few bytes of a statement can be multiplied to is bounded before it is made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "a list of cases, one after another")]
async fn what_multiplies_is_refused_before_it_is_made() {
    let server = TestServer::start().await.unwrap();
    let mut client = Client::ready(server.address(), Version::V4).await;
    let list = |count: usize| {
        (0..count)
            .map(|number| number.to_string())
            .collect::<Vec<_>>()
            .join(",")
    };
    let mut texts = vec![
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}".to_owned(),
        "CREATE TABLE ks.t (p int, c int, d int, v int, PRIMARY KEY (p, c, d))".to_owned(),
        "CREATE TABLE ks.u (p int, q int, v int, PRIMARY KEY ((p, q)))".to_owned(),
        "CREATE TABLE ks.n (k int PRIMARY KEY, v varint, d decimal, s set<decimal>)".to_owned(),
        "INSERT INTO ks.t (p, c, d, v) VALUES (1, 1, 1, 1)".to_owned(),
        "CREATE TYPE ks.t0 (a int, b int)".to_owned(),
    ];
    texts.extend((1..11).map(|n| format!("CREATE TYPE ks.t{n} (a frozen<t{0}>, b frozen<t{0}>)", n - 1)));
    texts.push("CREATE TABLE ks.m (k int PRIMARY KEY, v frozen<t9>)".to_owned());
    // A hundred keys of each are not many.
    texts.push(format!(
        "DELETE FROM ks.t WHERE p IN ({0}) AND c IN ({0}) AND d = 1",
        list(100)
    ));
    for text in texts {
        client.query(1, &text).await;
        assert_eq!(client.frame().await.unwrap().opcode, 8, "{text}");
    }
    let (several, digits) = (list(2000), "7".repeat(60_000));
    for (text, refusal) in [
        (
            format!("DELETE FROM ks.t WHERE p IN ({several}) AND c IN ({several}) AND d = 1"),
            "name 4000000 keys together, more than 100000",
        ),
        (
            format!("DELETE FROM ks.t WHERE p IN ({several}) AND c IN ({several})"),
            "name 4000000 keys together, more than 100000",
        ),
        (
            format!("SELECT * FROM ks.t WHERE p = 1 AND c IN ({several}) AND d IN ({several})"),
            "name 4000000 keys together, more than 100000",
        ),
        (
            format!("UPDATE ks.u SET v = 1 WHERE p IN ({several}) AND q IN ({several})"),
            "name 4000000 keys together, more than 100000",
        ),
        (
            "CREATE TYPE ks.t11 (a frozen<t10>, b frozen<t10>)".to_owned(),
            "Type ks.t11 is made of more than 10000 types",
        ),
        (
            "ALTER TYPE ks.t0 ADD c frozen<tuple<int, int, int, int>>".to_owned(),
            "is made of more than 10000 types",
        ),
        (
            format!("SELECT {} FROM ks.m", ["v"; 50].join(", ")),
            "are made of more than 100000 types",
        ),
        (
            format!("INSERT INTO ks.n (k, v) VALUES (1, {digits})"),
            "longer than the maximum of 16384",
        ),
        (
            format!("INSERT INTO ks.n (k, d) VALUES (1, {digits})"),
            "longer than the maximum of 16384",
        ),
        (
            format!("INSERT INTO ks.n JSON '{{\"k\": 1, \"v\": {digits}}}'"),
            "Number value length (60000) exceeds the maximum allowed (1000, from",
        ),
        (
            format!("INSERT INTO ks.n JSON '{{\"k\": 1, \"v\": \"{digits}\"}}'"),
            "longer than the maximum of 16384",
        ),
    ] {
        let clock = Clock::system();
        client.query(1, &text).await;
        let (code, message) = client.frame().await.unwrap().error();
        let taken = clock.monotonic();
        let beginning: String = message.chars().take(200).collect();
        assert_eq!(code, 0x2200, "{beginning}");
        assert!(message.contains(refusal), "{beginning}");
        assert!(taken < Duration::from_secs(2), "{taken:?}: {refusal}");
    }
    // Many rows that are looked up one by one let other requests have their turn.
    let mut other = Client::ready(server.address(), Version::V4).await;
    client
        .query(
            1,
            &format!("SELECT * FROM ks.t WHERE p IN ({several}) AND c IN ({several}) AND d = 1"),
        )
        .await;
    let clock = Clock::system();
    for _ in 0..20 {
        other.query(1, "SELECT * FROM ks.t WHERE p = 1").await;
        assert_eq!(other.frame().await.unwrap().opcode, 8);
    }
    let taken = clock.monotonic();
    assert!(taken < Duration::from_secs(2), "another client waited {taken:?}");
}
