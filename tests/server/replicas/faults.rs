//! What a fault plan makes clients meet, with its counts.

use super::*;

#[tokio::test]
async fn only_the_replicas_named_are_down() {
    let server = start(&[]).await;
    let mut client = ready(&server, Version::V5).await;
    done(
        &mut client,
        "CREATE TABLE ks.u (k int PRIMARY KEY) WITH helenus_partitions = 2",
    )
    .await;
    let down = |more: &str| {
        let of = |node| format!("[[fault]]\naction = \"replica-down\"\nnode = {node}\n{more}\n");
        [1, 2].map(of).concat()
    };
    plan(&server, &down("table = \"u\"\npartition = 1"));
    done(&mut client, "SELECT * FROM ks.t").await;
    done(&mut client, "SELECT * FROM system_schema.tables").await;
    // A scan meets the partition whose replicas are down, a key need not.
    let refused = Said::Unavailable(Consistency::Quorum.code(), 3, 2);
    assert_eq!(
        ask(&mut client, "SELECT * FROM ks.u", Consistency::Quorum).await,
        refused
    );
    let mut answers = Vec::new();
    for key in 0..20 {
        let text = format!("SELECT * FROM ks.u WHERE k = {key}");
        answers.push(ask(&mut client, &text, Consistency::Quorum).await == refused);
    }
    assert!(answers.contains(&true) && answers.contains(&false));
    let roles = "SELECT role, state, node, lag_ms_max FROM system_cosmos.replicas WHERE keyspace_name = 'ks' AND table_name = 'u' AND \
                 partition_id = ";
    for (partition, expected) in [
        (0, ["writer up", "follower up", "follower up", "follower up"]),
        (1, ["follower down", "follower up", "follower up", "follower down"]),
    ] {
        let Said::Rows(rows) = ask(&mut client, &format!("{roles}{partition}"), Consistency::One).await else {
            panic!()
        };
        let text = |cell: &Option<Vec<u8>>| String::from_utf8(cell.clone().unwrap()).unwrap();
        let shown: Vec<String> = rows
            .iter()
            .map(|row| format!("{} {}", text(&row[0]), text(&row[1])))
            .collect();
        // Two of four cannot give a lease.
        assert_eq!(shown, expected);
        assert_eq!(rows[0][3], Some(0_i64.to_be_bytes().to_vec()));
    }
}

#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one story: each step stands on the state that the one before left"
)]
async fn timeouts_refusals_and_their_counts() {
    for version in [Version::V3, Version::V4, Version::V5] {
        let server = start(&[]).await;
        let mut client = ready(&server, version).await;
        let quorum = Consistency::Quorum.code();
        let timeout = |kind: &str| Said::WriteTimeout(quorum, 2, 3, kind.to_owned());
        // Before: nothing is done. After: it is, and the client is told the same.
        for (action, value) in [("timeout", 1), ("timeout-after", 2)] {
            plan(&server, &format!("[[fault]]\naction = \"{action}\"\n"));
            let write = "INSERT INTO ks.t (k, v) VALUES (1, 2)";
            assert_eq!(ask(&mut client, write, Consistency::Quorum).await, timeout("SIMPLE"));
            assert_eq!(
                ask(&mut client, write, Consistency::All).await,
                Said::WriteTimeout(Consistency::All.code(), 3, 4, "SIMPLE".into())
            );
            assert_eq!(
                ask(&mut client, "SELECT v FROM ks.t WHERE k = 1", Consistency::Two).await,
                Said::ReadTimeout(Consistency::Two.code(), 1, 2, false)
            );
            assert_eq!(batch(&mut client, BatchType::Logged, &[write]).await, timeout("BATCH"));
            assert_eq!(
                batch(&mut client, BatchType::Unlogged, &[write]).await,
                timeout("UNLOGGED_BATCH")
            );
            let count = "UPDATE ks.c SET n = n + 1 WHERE k = 1";
            assert_eq!(
                batch(&mut client, BatchType::Counter, &[count]).await,
                timeout("COUNTER")
            );
            assert_eq!(ask(&mut client, count, Consistency::Quorum).await, timeout("COUNTER"));
            let conditional = "UPDATE ks.t SET v = 2 WHERE k = 1 IF v = 1";
            assert_eq!(
                ask(&mut client, conditional, Consistency::Quorum).await,
                Said::WriteTimeout(Consistency::Serial.code(), 2, 3, "CAS".into())
            );
            server.database().engine().nodes().clear();
            let found = number(&mut client, "SELECT v FROM ks.t WHERE k = 1", Consistency::Quorum).await;
            assert_eq!(found, value, "{action}");
        }
        assert_eq!(
            cell(&mut client, "SELECT n FROM ks.c WHERE k = 1", Consistency::Quorum).await,
            Some(2_i64.to_be_bytes().to_vec())
        );
        let read = "SELECT v FROM ks.t WHERE k = 1";
        plan(
            &server,
            "[[fault]]\naction = \"timeout\"\nreceived = 3\ndata-present = true\nstatement = \"read\"\n",
        );
        assert_eq!(
            ask(&mut client, read, Consistency::LocalQuorum).await,
            Said::ReadTimeout(Consistency::LocalQuorum.code(), 3, 3, true)
        );
        plan(
            &server,
            "[[fault]]\naction = \"timeout\"\nstatement = \"batch\"\nreceived = 0\nwrite-type = \"BATCH_LOG\"\n",
        );
        assert_eq!(
            batch(
                &mut client,
                BatchType::Logged,
                &["INSERT INTO ks.t (k, v) VALUES (3, 3)"]
            )
            .await,
            Said::WriteTimeout(quorum, 0, 3, "BATCH_LOG".into())
        );
        plan(&server, "[[fault]]\naction = \"throttle\"\nms = 25\n");
        let Said::Error(0x1001, text) = ask(&mut client, read, Consistency::One).await else {
            panic!()
        };
        assert!(text.contains("RetryAfterMs=25,"), "{text}");
        plan(&server, "[[fault]]\naction = \"unavailable\"\n");
        assert_eq!(
            ask(&mut client, read, Consistency::Quorum).await,
            Said::Unavailable(quorum, 3, 2)
        );
        assert_eq!(
            ask(&mut client, "DELETE FROM ks.t WHERE k = 1", Consistency::One).await,
            Said::Unavailable(Consistency::One.code(), 3, 2)
        );
    }
}

#[tokio::test]
async fn a_dropped_request_is_not_answered_until_its_time_or_the_plans_end() {
    let server = start(&[]).await;
    let mut client = ready(&server, Version::V5).await;
    plan(
        &server,
        "[[fault]]\naction = \"drop\"\nstatement = \"read\"\n[[fault]]\naction = \"delay\"\nms = 1\njitter-ms = 2\n",
    );
    client.query(7, "SELECT v FROM ks.t WHERE k = 1").await;
    // Others on the connection are answered past it, a little later than usual.
    for _ in 0..3 {
        done(&mut client, "INSERT INTO ks.t (k, v) VALUES (2, 2)").await;
    }
    server.database().engine().nodes().clear();
    let frame = client.frame().await.unwrap();
    assert_eq!(frame.stream, 7);
    assert_eq!(said(&frame), Said::ReadTimeout(Consistency::One.code(), 0, 1, false));
    plan(&server, "[[fault]]\naction = \"drop\"\nms = 10\n");
    let write = ask(&mut client, "INSERT INTO ks.t (k, v) VALUES (5, 5)", Consistency::One).await;
    assert_eq!(
        write,
        Said::WriteTimeout(Consistency::One.code(), 2, 3, "SIMPLE".into())
    );
    server.database().engine().nodes().clear();
    let rows = ask(&mut client, "SELECT v FROM ks.t WHERE k = 5", Consistency::One).await;
    assert_eq!(rows, Said::Rows(vec![]));
}

#[tokio::test]
async fn a_partition_splits_under_a_read_and_a_write() {
    let server = start(&[]).await;
    let mut client = ready(&server, Version::V5).await;
    for key in 0..200 {
        done(&mut client, &format!("INSERT INTO ks.t (k, v) VALUES ({key}, {key})")).await;
    }
    let partitions = || {
        let all = server.database().engine().figures().partitions().into_iter();
        all.filter(|partition| partition.table == "t").count()
    };
    assert_eq!(partitions(), 1);
    plan(&server, "[[fault]]\naction = \"split\"\n");
    for number in 0..6 {
        let Said::Rows(rows) = ask(&mut client, "SELECT k FROM ks.t", Consistency::Quorum).await else {
            panic!()
        };
        assert_eq!(rows.len(), 200);
        let write = format!("INSERT INTO ks.t (k, v) VALUES ({number}, -1)");
        done(&mut client, &write).await;
        assert_eq!(
            super::number(
                &mut client,
                &format!("SELECT v FROM ks.t WHERE k = {number}"),
                Consistency::One
            )
            .await,
            -1
        );
    }
    server.database().engine().nodes().clear();
    assert!(partitions() > 6, "{}", partitions());
    let Said::Rows(rows) = ask(&mut client, "SELECT k FROM ks.t", Consistency::Quorum).await else {
        panic!()
    };
    assert_eq!(rows.len(), 200);
}

#[tokio::test]
async fn the_same_seed_and_requests_meet_the_same_faults() {
    const FAULTS: &str = "[[fault]]\naction = \"timeout\"\nprobability = 0.3\n\
                          [[fault]]\naction = \"timeout-after\"\nstatement = \"write\"\nprobability = 0.3\n\
                          [[fault]]\naction = \"replica-down\"\nnode = 2\nfrom-request = 20\nuntil-request = 40\n\
                          [[fault]]\naction = \"replica-down\"\nnode = 3\nfrom-request = 30\nuntil-request = 40\n";
    let mut histories = Vec::new();
    for seed in [5, 5, 6] {
        let server = start(&[]).await;
        let mut client = ready(&server, Version::V5).await;
        plan(&server, &format!("seed = {seed}\n{FAULTS}"));
        let mut history = Vec::new();
        for number in 0..60 {
            let write = format!("INSERT INTO ks.t (k, v) VALUES (1, {number})");
            history.push(ask(&mut client, &write, Consistency::Quorum).await);
            history.push(ask(&mut client, "SELECT v FROM ks.t WHERE k = 1", Consistency::Quorum).await);
            // What is not a request of a user's table does not count.
            if seed == 5 && histories.is_empty() {
                done(&mut client, "SELECT * FROM system.local").await;
            }
        }
        histories.push(history);
    }
    assert_eq!(histories[0], histories[1]);
    assert_ne!(histories[0], histories[2]);
    let quorum = Consistency::Quorum.code();
    assert!(histories[0].contains(&Said::Unavailable(quorum, 3, 2)));
    assert!(histories[0].contains(&Said::ReadTimeout(quorum, 2, 3, false)));
}

#[tokio::test]
async fn a_lagging_replica_shows_one_what_was_and_quorum_what_is() {
    let server = start(&[]).await;
    let mut client = ready(&server, Version::V5).await;
    // All but the writer of partition 0 lag; with one node the replicas take turns, the writer every fourth.
    let lag = |node| format!("[[fault]]\naction = \"lag\"\nnode = {node}\nms = 500\n");
    plan(&server, &[2, 3, 4].map(lag).concat());
    let read = "SELECT v FROM ks.t WHERE k = 1";
    let mut stale = 0;
    for value in 2..60 {
        server.advance(Duration::from_millis(100));
        done(&mut client, &format!("INSERT INTO ks.t (k, v) VALUES (1, {value})")).await;
        let seen = number(&mut client, read, Consistency::One).await;
        // A write each 100 ms: what is older than 500 ms is seen, what is newer may be.
        assert!((value - 5..=value).contains(&seen), "{seen} after {value}");
        stale += i32::from(seen < value);
        assert_eq!(number(&mut client, read, Consistency::Quorum).await, value);
        assert_eq!(number(&mut client, read, Consistency::Two).await, value);
        assert_eq!(number(&mut client, read, Consistency::Serial).await, value);
    }
    assert!(stale > 20, "{stale} of 58");
    server.advance(Duration::from_millis(500));
    for _ in 0..4 {
        assert_eq!(number(&mut client, read, Consistency::One).await, 59);
    }
    let lag = |node| format!("[[fault]]\naction = \"lag\"\nnode = {node}\ncommits = 3\n");
    plan(&server, &[2, 3, 4].map(lag).concat());
    let mut least = 100;
    for value in 60..100 {
        done(&mut client, &format!("INSERT INTO ks.t (k, v) VALUES (1, {value})")).await;
        let seen = number(&mut client, read, Consistency::LocalOne).await;
        assert!((value - 3..=value).contains(&seen), "{seen} after {value}");
        least = least.min(seen - value);
    }
    assert_eq!(least, -3);
    server.database().engine().nodes().clear();
    assert_eq!(number(&mut client, read, Consistency::One).await, 99);
}

#[tokio::test]
async fn nothing_acknowledged_is_lost() {
    let server = start(&[]).await;
    let mut client = ready(&server, Version::V5).await;
    let mut faults = "seed = 11\n".to_owned();
    for (action, chance) in [
        ("timeout", 0.1),
        ("timeout-after", 0.1),
        ("split", 0.02),
        ("unavailable", 0.05),
    ] {
        faults += &format!("[[fault]]\naction = \"{action}\"\nprobability = {chance}\n");
    }
    for (node, from) in [(1, 20), (2, 60), (3, 80), (4, 120)] {
        let until = from + 70;
        faults += &format!(
            "[[fault]]\naction = \"replica-down\"\nnode = {node}\nfrom-request = {from}\nuntil-request = {until}\n"
        );
    }
    plan(&server, &faults);
    let mut acknowledged = Vec::new();
    let mut refused = Vec::new();
    for key in 100..400 {
        let write = format!("INSERT INTO ks.t (k, v) VALUES ({key}, {key})");
        match ask(&mut client, &write, Consistency::One).await {
            Said::Done => acknowledged.push(key),
            Said::Unavailable(..) => refused.push(key),
            Said::WriteTimeout(..) => {}
            other => panic!("{other:?}"),
        }
    }
    server.database().engine().nodes().clear();
    assert!(acknowledged.len() > 100 && refused.len() > 20);
    for key in acknowledged {
        let found = number(
            &mut client,
            &format!("SELECT v FROM ks.t WHERE k = {key}"),
            Consistency::Quorum,
        )
        .await;
        assert_eq!(found, key);
    }
    for key in refused {
        let found = ask(
            &mut client,
            &format!("SELECT v FROM ks.t WHERE k = {key}"),
            Consistency::Quorum,
        )
        .await;
        assert_eq!(found, Said::Rows(vec![]), "{key} was refused");
    }
}

/// Speaks HTTP: status and body.
fn http(admin: SocketAddr, head: &str, body: &str) -> (u16, String) {
    let mut socket = std::net::TcpStream::connect(admin).unwrap();
    let request = format!(
        "{head}\r\nHost: {admin}\r\nAuthorization: Bearer test\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test]
async fn the_admin_port_sets_shows_and_ends_a_plan() {
    let server = start(&[("admin-listen", "127.0.0.1:0"), ("admin-token", "test")]).await;
    let admin = server.admin_address().unwrap();
    let mut client = ready(&server, Version::V5).await;
    let ask_http = async |head: &'static str, body: &'static str| {
        tokio::task::spawn_blocking(move || http(admin, head, body))
            .await
            .unwrap()
    };
    let toml = "POST /api/faults HTTP/1.1\r\nContent-Type: application/toml";
    let body = "seed = 3\n[[fault]]\naction = \"timeout\"\nstatement = \"read\"\ncount = 2\n";
    assert_eq!(ask_http(toml, body).await.0, 200);
    for _ in 0..3 {
        ask(&mut client, "SELECT v FROM ks.t WHERE k = 1", Consistency::One).await;
    }
    let (status, shown) = ask_http("GET /api/faults HTTP/1.1", "").await;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (status, &shown["seed"], &shown["requests"]),
        (200, &3.into(), &3.into())
    );
    let fault = &shown["fault"][0];
    assert_eq!(
        (&fault["action"], &fault["matched"], &fault["hit"]),
        (&"timeout".into(), &3.into(), &2.into())
    );
    // What cannot be is refused and changes nothing.
    for (head, body, expected) in [
        (toml, "[[fault]]\naction = \"odd\"", 400),
        (toml, "[[fault]]\naction = \"down\"\nnode = 1", 400),
        ("POST /api/faults HTTP/1.1\r\nContent-Type: text/plain", "", 415),
        ("POST /api/faults HTTP/1.1", "", 415),
        (
            "POST /api/faults HTTP/1.1\r\nContent-Type: application/toml\r\nOrigin: http://localhost",
            "",
            403,
        ),
        ("DELETE /api/faults HTTP/1.1\r\nOrigin: http://localhost", "", 403),
        ("PUT /api/faults HTTP/1.1", "", 405),
    ] {
        assert_eq!(ask_http(head, body).await.0, expected, "{head}");
    }
    assert!(!server.database().engine().nodes().is_quiet());
    let json = "POST /api/faults HTTP/1.1\r\nContent-Type: application/json; charset=utf-8";
    assert_eq!(ask_http(json, r#"{"fault": [{"action": "unavailable"}]}"#).await.0, 200);
    let read = "SELECT v FROM ks.t WHERE k = 1";
    let unavailable = Said::Unavailable(Consistency::One.code(), 1, 0);
    assert_eq!(ask(&mut client, read, Consistency::One).await, unavailable);
    assert_eq!(ask_http("DELETE /api/faults HTTP/1.1", "").await.0, 200);
    assert_eq!(number(&mut client, read, Consistency::One).await, 1);
}

#[tokio::test]
async fn a_plan_is_read_at_the_start_and_what_makes_no_sense_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("faults.toml");
    let given = |more: &[(&str, &str)]| {
        let mut given = vec![
            ("data", "memory:"),
            ("listen", "127.0.0.1:0"),
            ("fault-plan", file.to_str().unwrap()),
        ];
        given.extend(more);
        let given = given
            .into_iter()
            .map(|(name, value)| (name.to_owned(), vec![value.to_owned()]));
        Config::new(&Settings::gather(None, &given.collect(), |_| None).unwrap()).map_err(|error| error.to_string())
    };
    assert!(given(&[]).unwrap_err().contains("cannot read"));
    std::fs::write(&file, "[[fault]]\naction = \"nothing\"").unwrap();
    assert!(given(&[]).unwrap_err().contains("unknown variant"));
    std::fs::write(&file, "[[fault]]\naction = \"down\"\nnode = 2").unwrap();
    assert!(given(&[]).unwrap_err().contains("nodes = 2 to 6"));
    assert!(given(&[("nodes", "4")]).is_ok());
    assert!(given(&[("nodes", "3")]).is_ok());
    for nodes in ["0", "7"] {
        assert!(given(&[("nodes", nodes)]).unwrap_err().contains("1 to 6"));
    }
    assert!(given(&[("nodes", "4"), ("broadcast-address", "10.0.0.1")]).is_err());
    std::fs::write(&file, "[[fault]]\naction = \"throttle\"\ncount = 1").unwrap();
    let server = TestServer::with(&given(&[]).unwrap()).await.unwrap();
    let mut client = Client::ready(server.address(), Version::V4).await;
    for text in &SCHEMA[..3] {
        done(&mut client, text).await;
    }
    let throttled = ask(&mut client, SCHEMA[3], Consistency::One).await;
    assert!(matches!(throttled, Said::Error(0x1001, _)), "{throttled:?}");
    done(&mut client, SCHEMA[3]).await;
}
