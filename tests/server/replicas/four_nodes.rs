//! Several virtual nodes: what each tells of itself and the others, and what clients see when one goes down. Only Linux has all of 127.0.0.0/8
//! without being asked.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use super::*;

fn of_node(server: &TestServer, node: u8) -> SocketAddr {
    (IpAddr::from([127, 0, 0, node]), server.address().port()).into()
}

fn address(cell: &Option<Vec<u8>>) -> IpAddr {
    let bytes: [u8; 4] = cell.clone().unwrap().try_into().unwrap();
    Ipv4Addr::from(bytes).into()
}

async fn rows(client: &mut Client, text: &str) -> Vec<Vec<Option<Vec<u8>>>> {
    match ask(client, text, Consistency::One).await {
        Said::Rows(rows) => rows,
        other => panic!("{text}: {other:?}"),
    }
}

/// Tokens of a `set<text>`.
fn tokens(cell: &Option<Vec<u8>>) -> Vec<i64> {
    let bytes = cell.clone().unwrap();
    let mut reader = Reader(&bytes);
    let count = reader.int();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (0..count)
        .map(|_| text(reader.value().unwrap()).parse().unwrap())
        .collect()
}

#[tokio::test]
async fn each_node_is_itself_and_knows_the_others() {
    for count in [2, 3, 4, 5, 6] {
        each_of(count).await;
    }
}

async fn each_of(count: u8) {
    let directory = tempfile::tempdir().unwrap();
    let data = format!("file:{}", directory.path().join("data").display());
    let mut identities = Vec::new();
    for _ in 0..2 {
        let server = start(&[("nodes", &count.to_string()), ("data", &data)]).await;
        let mut ids = Vec::new();
        let mut all_tokens = BTreeSet::new();
        for node in 1..=count {
            let mut client = Client::ready(of_node(&server, node), Version::V5).await;
            let local = "SELECT rpc_address, broadcast_address, rpc_port, host_id, tokens FROM system.local";
            let local = rows(&mut client, local).await.remove(0);
            let own = of_node(&server, node);
            assert_eq!((address(&local[0]), address(&local[1])), (own.ip(), own.ip()));
            assert_eq!(local[2], Some(i32::from(own.port()).to_be_bytes().to_vec()));
            let own_tokens = tokens(&local[4]);
            assert_eq!(own_tokens.len(), 4);
            all_tokens.extend(own_tokens);
            ids.push(local[3].clone().unwrap());
            let nodes = rows(&mut client, "SELECT host_id, state FROM system_cosmos.nodes").await;
            assert_eq!(nodes.len(), usize::from(count));
            assert!(nodes.contains(&vec![local[3].clone(), Some(b"up".to_vec())]));
            for (text, ports) in [
                ("SELECT peer, host_id, tokens FROM system.peers", false),
                (
                    "SELECT native_address, host_id, tokens, native_port FROM system.peers_v2",
                    true,
                ),
            ] {
                let peers = rows(&mut client, text).await;
                let mut addresses: Vec<IpAddr> = peers.iter().map(|row| address(&row[0])).collect();
                addresses.sort_unstable();
                let others = (1..=count).filter(|other| *other != node);
                assert_eq!(
                    addresses,
                    others.map(|other| of_node(&server, other).ip()).collect::<Vec<_>>()
                );
                for peer in &peers {
                    assert_eq!(tokens(&peer[2]).len(), 4);
                    assert!(!ports || peer[3] == local[2]);
                }
            }
        }
        assert_eq!(all_tokens.len(), 4 * usize::from(count));
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), usize::from(count));
        identities.push(ids);
        server.stop().await.unwrap();
    }
    // The same after a restart.
    assert_eq!(identities[0], identities[1]);
}

#[tokio::test]
async fn writers_are_the_owners_of_sixteen_equal_partitions() {
    let server = start(&[("nodes", "4")]).await;
    let mut client = ready(&server, Version::V5).await;
    done(
        &mut client,
        "CREATE TABLE ks.w (k int PRIMARY KEY) WITH helenus_partitions = 16",
    )
    .await;
    let mut owners = Vec::new();
    for node in 1..=4 {
        let mut client = Client::ready(of_node(&server, node), Version::V5).await;
        let local = rows(&mut client, "SELECT tokens, rpc_address FROM system.local")
            .await
            .remove(0);
        owners.extend(tokens(&local[0]).into_iter().map(|token| (token, address(&local[1]))));
    }
    let partitions = server.database().engine().figures().partitions();
    let partitions = partitions.iter().filter(|partition| partition.table == "w");
    let mut count = 0;
    for partition in partitions {
        let text = format!(
            "SELECT node, role FROM system_cosmos.replicas WHERE keyspace_name = 'ks' AND table_name = 'w' AND partition_id = {}",
            partition.id
        );
        let replicas = rows(&mut client, &text).await;
        let on: BTreeSet<IpAddr> = replicas.iter().map(|row| address(&row[0])).collect();
        assert_eq!(on.len(), 4);
        assert_eq!(replicas[0][1].as_deref(), Some(&b"writer"[..]));
        assert!(owners.contains(&(partition.upper, address(&replicas[0][0]))));
        count += 1;
    }
    assert_eq!(count, 16);
}

/// The next event: kind, change, address.
async fn event(client: &mut Client) -> (String, String, SocketAddr) {
    let frame = client.frame().await.unwrap();
    assert_eq!((frame.opcode, frame.stream), (12, -1), "{frame:?}");
    let mut body = Reader(&frame.body);
    let (kind, change) = (body.string(), body.string());
    let count = body.take(1)[0];
    assert_eq!(count, 4);
    let ip: [u8; 4] = body.take(4).try_into().unwrap();
    let port = u16::try_from(body.int()).unwrap();
    (kind, change, (IpAddr::from(ip), port).into())
}

#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one story: each step stands on the state that the one before left"
)]
async fn a_node_goes_down_and_comes_back() {
    let server = start(&[("nodes", "4")]).await;
    let mut client = ready(&server, Version::V5).await;
    let mut watcher = Client::ready(of_node(&server, 3), Version::V4).await;
    let kinds = vec![
        helenus_types::wire::request::EventKind::StatusChange,
        helenus_types::wire::request::EventKind::TopologyChange,
    ];
    watcher.request(1, &Request::Register(Register { kinds })).await;
    assert_eq!(watcher.frame().await.unwrap().opcode, 2);
    let mut there = Client::ready(of_node(&server, 2), Version::V5).await;
    done(&mut there, "SELECT v FROM ks.t WHERE k = 1").await;
    plan(&server, "[[fault]]\naction = \"down\"\nnode = 2\n");
    let status = |change: &str| ("STATUS_CHANGE".to_owned(), change.to_owned(), of_node(&server, 2));
    assert_eq!(event(&mut watcher).await, status("DOWN"));
    assert!(there.closed().await);
    assert!(tokio::net::TcpStream::connect(of_node(&server, 2)).await.is_err());
    // It is still listed; three of four go on, all four do not.
    assert_eq!(rows(&mut client, "SELECT peer FROM system.peers").await.len(), 3);
    done(&mut client, "INSERT INTO ks.t (k, v) VALUES (1, 7)").await;
    let all = ask(&mut client, "SELECT v FROM ks.t WHERE k = 1", Consistency::All).await;
    assert_eq!(all, Said::Unavailable(Consistency::All.code(), 4, 3));
    server.database().engine().nodes().clear();
    assert_eq!(event(&mut watcher).await, status("UP"));
    let mut there = Client::ready(of_node(&server, 2), Version::V5).await;
    assert_eq!(
        number(&mut there, "SELECT v FROM ks.t WHERE k = 1", Consistency::All).await,
        7
    );
    // The first writer's node: another replica takes the lease, under a higher epoch, and gives it back.
    let lease =
        "SELECT node, role, lease_epoch FROM system_cosmos.replicas WHERE keyspace_name = 'ks' AND table_name = 't'";
    let writer = async |client: &mut Client| {
        let all = rows(client, lease).await;
        let writer = all.iter().find(|row| row[1].as_deref() == Some(b"writer"));
        writer.map(|row| {
            let epoch: [u8; 8] = row[2].clone().unwrap().try_into().unwrap();
            (address(&row[0]), i64::from_be_bytes(epoch))
        })
    };
    let (first, before) = writer(&mut there).await.unwrap();
    assert_eq!(first, of_node(&server, 1).ip());
    plan(&server, "[[fault]]\naction = \"down\"\nnode = 1\n");
    assert_eq!(event(&mut watcher).await.1, "DOWN");
    let (second, after) = writer(&mut there).await.unwrap();
    assert_eq!(second, of_node(&server, 2).ip());
    assert!(after > before);
    done(&mut there, "UPDATE ks.t SET v = 8 WHERE k = 1 IF v = 7").await;
    assert_eq!(
        number(&mut there, "SELECT v FROM ks.t WHERE k = 1", Consistency::Serial).await,
        8
    );
    // Two down: writes stop, nothing is lost.
    plan(
        &server,
        "[[fault]]\naction = \"down\"\nnode = 1\n[[fault]]\naction = \"down\"\nnode = 4\n",
    );
    assert_eq!(event(&mut watcher).await.1, "DOWN");
    let refused = ask(&mut there, "INSERT INTO ks.t (k, v) VALUES (1, 9)", Consistency::One).await;
    assert_eq!(refused, Said::Unavailable(Consistency::One.code(), 3, 2));
    assert_eq!(writer(&mut there).await, None);
    assert_eq!(
        number(&mut there, "SELECT v FROM ks.t WHERE k = 1", Consistency::Two).await,
        8
    );
    server.database().engine().nodes().clear();
    let mut up = BTreeSet::new();
    for _ in 0..2 {
        let (_, change, address) = event(&mut watcher).await;
        assert_eq!(change, "UP");
        up.insert(address);
    }
    assert_eq!(up, BTreeSet::from([of_node(&server, 1), of_node(&server, 4)]));
    let (last, epoch) = writer(&mut there).await.unwrap();
    assert_eq!(last, first);
    assert!(epoch > after);
}

#[tokio::test]
async fn a_node_goes_down_by_the_clock() {
    let server = start(&[("nodes", "4")]).await;
    plan(
        &server,
        "[[fault]]\naction = \"down\"\nnode = 4\nfrom-ms = 1000\nuntil-ms = 2000\n",
    );
    let mut there = Client::ready(of_node(&server, 4), Version::V5).await;
    done(&mut there, "SELECT key FROM system.local").await;
    server.advance(Duration::from_millis(1000));
    assert!(there.closed().await);
    server.advance(Duration::from_millis(1000));
    // Nothing tells this client when the listener is there again.
    for _ in 0..500 {
        if tokio::net::TcpStream::connect(of_node(&server, 4)).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the node did not come back");
}

#[tokio::test]
async fn who_is_connected_to_a_lagging_node_reads_what_was() {
    let server = start(&[("nodes", "4")]).await;
    let mut first = ready(&server, Version::V5).await;
    let mut second = Client::ready(of_node(&server, 2), Version::V5).await;
    plan(
        &server,
        "[[fault]]\naction = \"lag\"\nnode = 2\ncommits = 1\nkeyspace = \"ks\"\n",
    );
    let read = "SELECT v FROM ks.t WHERE k = 1";
    for value in 2..10 {
        done(&mut first, &format!("INSERT INTO ks.t (k, v) VALUES (1, {value})")).await;
        assert_eq!(number(&mut first, read, Consistency::One).await, value);
        assert_eq!(number(&mut second, read, Consistency::One).await, value - 1);
        assert_eq!(number(&mut second, read, Consistency::Quorum).await, value);
        // A scan too.
        let Said::Rows(rows) = ask(&mut second, "SELECT v FROM ks.t", Consistency::LocalOne).await else {
            panic!()
        };
        assert_eq!(rows[0][0], Some((value - 1).to_be_bytes().to_vec()));
    }
    let lag = "SELECT lag_ms_max, lag_commits_max FROM system_cosmos.replicas WHERE keyspace_name = 'ks' AND table_name = 't' AND \
               partition_id = 0 AND replica = 1";
    assert_eq!(
        rows(&mut first, lag).await,
        [[None, Some(1_i64.to_be_bytes().to_vec())]]
    );
}
