//! Memory of connections: clients that do not read, and what others notice of them.
#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may stop at the first surprise"
)]

use std::net::SocketAddr;
use std::time::Duration;

use crate::raw::{self, Client, Frame, envelope};
use helenus::TestServer;
use helenus::config::{Config, Values};
use helenus::server::Limits;
use helenus::server::admin::client;
use helenus_cql::cql::{QueryParams, SessionState};
use helenus_types::wire::Version;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::Instant;

const BUDGET: usize = 8 << 20;
/// 4,000 rows of 1 kB: four pages of 1 MiB.
const ROWS: usize = 4000;
/// Clients that do not read, and what each of them asks for at once.
const DEAF: usize = 60;
const ASKED: i16 = 16;

const OVERLOADED: u32 = 0x1001;

async fn start() -> TestServer {
    let given = [
        ("data", "memory:"),
        ("listen", "127.0.0.1:0"),
        ("admin-listen", "127.0.0.1:0"),
        ("connections-memory-bytes-max", "8388608"),
    ];
    let given = given.map(|(name, value)| (name.to_owned(), vec![value.to_owned()]));
    let config = Config::new(&Values::gather(None, &given.into(), |_| None).unwrap()).unwrap();
    let server = TestServer::with(&config).await.unwrap();
    let run = async |text: &str| {
        let (session, params) = (SessionState::default(), QueryParams::default());
        server.database().query(&session, text, &params).await.unwrap();
    };
    run("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}").await;
    run("CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c))").await;
    let value = "v".repeat(1000);
    for c in 0..ROWS {
        run(&format!("INSERT INTO ks.t (k, c, v) VALUES (1, {c}, '{value}')")).await;
    }
    server
}

/// A QUERY at level ONE; with a page size, or none.
fn query(stream: i16, text: &str, page_rows: Option<i32>) -> Vec<u8> {
    let mut body = (text.len() as u32).to_be_bytes().to_vec();
    body.extend(text.as_bytes());
    body.extend([0, 1]);
    match page_rows {
        Some(rows) => {
            body.push(4);
            body.extend(rows.to_be_bytes());
        }
        None => body.push(0),
    }
    envelope(Version::V4, 0, stream, 7, &body)
}

/// A client that asks for many pages and reads none of them.
async fn deaf(address: SocketAddr) -> Client<TcpStream> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    asking(socket, address).await
}

async fn asking(socket: TcpSocket, address: SocketAddr) -> Client<TcpStream> {
    let mut client = Client::over(socket.connect(address).await.unwrap(), Version::V4);
    client.start().await;
    let asked: Vec<u8> = (0..ASKED)
        .flat_map(|stream| query(stream, "SELECT * FROM ks.t", Some(100_000)))
        .collect();
    client.socket.write_all(&asked).await.unwrap();
    client
}

async fn ask(client: &mut Client, text: &str, page_rows: Option<i32>) -> Frame {
    client.socket.write_all(&query(1, text, page_rows)).await.unwrap();
    client_frame(client).await
}

fn figure(server: &TestServer, name: &str) -> usize {
    let (_, text) = client::get(server.admin_address().unwrap(), "/metrics").unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("helenus_{name} ")));
    line.unwrap_or_else(|| panic!("{name} is not among\n{text}"))
        .parse()
        .unwrap()
}

/// Waits until a figure is above a bound, for ten seconds at most.
async fn above(server: &TestServer, name: &str, bound: usize) {
    let mut found = 0;
    for _ in 0..1000 {
        found = figure(server, name);
        if found > bound {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{name}: {found}, not above {bound}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_do_not_read_starve_nobody() {
    let server = start().await;
    let mut other = Client::ready(server.address(), Version::V4).await;
    let mut clients = Vec::new();
    for _ in 0..DEAF {
        clients.push(deaf(server.address()).await);
    }
    // Small answers go past what the deaf ones hold, on connections old and new.
    let mut took = Vec::new();
    for _ in 0..100 {
        let began = Instant::now();
        let frame = ask(&mut other, "SELECT v FROM ks.t WHERE k = 1 AND c = 7", None).await;
        assert_eq!(frame.opcode, 8, "{frame:?}");
        took.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await;
        let used = figure(&server, "connections_memory_bytes");
        assert!(used <= BUDGET + DEAF * 64 * 1024, "{used} bytes");
    }
    took.sort();
    assert!(took[98] < Duration::from_secs(1), "{took:?}");
    let mut new = Client::ready(server.address(), Version::V4).await;
    let frame = ask(&mut new, "SELECT release_version FROM system.local", None).await;
    assert_eq!(frame.opcode, 8, "{frame:?}");
    // A large one waits, and is refused in words when it has waited for long enough.
    assert!(figure(&server, "connections_memory_bytes") > BUDGET / 3);
    let began = Instant::now();
    client_says_overloaded(&mut new).await;
    let waited = began.elapsed();
    assert!(waited < Duration::from_secs(20), "{waited:?}");
    assert!(figure(&server, "connections_memory_waits_total") > 0);
    assert!(figure(&server, "connections_memory_refusals_total") > 0);
    // When they go everything is given back, and large answers are there again.
    drop(clients);
    let given_back = async || {
        while figure(&server, "connections_memory_bytes") > 2 << 20 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), given_back())
        .await
        .unwrap();
    let frame = ask(&mut new, "SELECT * FROM ks.t", Some(100_000)).await;
    assert!(frame.opcode == 8 && frame.body.len() > 1 << 20);
    server.stop().await.unwrap();
}

/// Asks for large pages until one is refused.
async fn client_says_overloaded(client: &mut Client) {
    for _ in 0..2 {
        client
            .socket
            .write_all(&query(1, "SELECT * FROM ks.t", Some(100_000)))
            .await
            .unwrap();
        let frame = client_frame(client).await;
        if frame.opcode == 0 {
            let (code, text) = frame.error();
            assert_eq!(code, OVERLOADED);
            assert!(text.contains("connections-memory-bytes-max"), "{text}");
            return;
        }
    }
    panic!("no answer was refused, though others hold the memory");
}

#[tokio::test]
async fn an_answer_without_pages_is_bounded_while_it_is_built() {
    let server = start().await;
    let mut client = Client::ready(server.address(), Version::V4).await;
    // Some 4 MB, and a quarter of 6 MiB is what one answer may take; sorted rows count, too.
    for text in [
        "SELECT * FROM ks.t",
        "SELECT * FROM ks.t WHERE k IN (1, 2) ORDER BY c DESC",
    ] {
        let (code, text) = ask(&mut client, text, None).await.error();
        assert_eq!(code, 0x2200, "{text}");
        assert!(text.contains("ask for pages") && text.contains("1572864"), "{text}");
    }
    let frame = ask(&mut client, "SELECT * FROM ks.t WHERE k = 1 LIMIT 900", None).await;
    assert!(frame.opcode == 8 && frame.body.len() > 900_000);
    // What was counted of the refused ones is given back.
    assert!(figure(&server, "connections_memory_bytes") < 4 << 20);
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_client_that_reads_slowly_gets_all_it_asked_for() {
    let server = start().await;
    let mut client = asking(TcpSocket::new_v4().unwrap(), server.address()).await;
    let mut pages = 0;
    while pages < ASKED {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let frame = client_frame(&mut client).await;
        assert!(frame.opcode == 8 && frame.body.len() > 1 << 20, "{}", frame.opcode);
        pages += 1;
    }
    server.stop().await.unwrap();
}

/// The next answer, awaited for longer than a request waits for memory.
async fn client_frame(client: &mut Client<TcpStream>) -> Frame {
    let reading = async {
        let mut head = [0; 9];
        client.socket.read_exact(&mut head).await.unwrap();
        let [version, flags, s0, s1, opcode, l0, l1, l2, l3] = head;
        let mut body = vec![0; u32::from_be_bytes([l0, l1, l2, l3]) as usize];
        client.socket.read_exact(&mut body).await.unwrap();
        Frame {
            version,
            flags,
            stream: i16::from_be_bytes([s0, s1]),
            opcode,
            body,
        }
    };
    tokio::time::timeout(Duration::from_secs(30), reading).await.unwrap()
}

#[tokio::test]
async fn large_requests_wait_for_memory_before_they_are_read() {
    const BYTES: usize = 1_000_000;
    let server = start().await;
    let text = format!("SELECT v FROM ks.t WHERE k = 1 AND c = 7 {}", " ".repeat(BYTES));
    let large = query(3, &text, None);
    // Two announce what they do not send, which is as much as the memory for requests holds.
    let mut slow = Vec::new();
    for version in [Version::V4, Version::V4] {
        let mut client = Client::ready(server.address(), version).await;
        client.socket.write_all(&large[..200_000]).await.unwrap();
        slow.push(client);
    }
    let mut client = Client::ready(server.address(), Version::V4).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    // It is written while the answer is awaited: the server does not read it before it has the memory.
    let (mut reading, mut writing) = client.socket.into_split();
    let sent = large.clone();
    let sender = tokio::spawn(async move {
        writing.write_all(&sent).await.unwrap();
        writing
    });
    let began = Instant::now();
    let mut head = [0; 9];
    reading.read_exact(&mut head).await.unwrap();
    assert_eq!((head[3], head[4]), (3, 0), "an error on its stream");
    assert!(began.elapsed() < Duration::from_secs(10));
    let mut body = vec![0; u32::from_be_bytes(head[5..].try_into().unwrap()) as usize];
    reading.read_exact(&mut body).await.unwrap();
    assert_eq!(body[..4], OVERLOADED.to_be_bytes());
    let writing = sender.await.unwrap();
    // The connection goes on, and once the others have gone the request is carried out.
    drop(slow);
    client = Client::over(reading.reunite(writing).unwrap(), Version::V4);
    tokio::time::sleep(Duration::from_millis(200)).await;
    client.socket.write_all(&large).await.unwrap();
    let frame = client_frame(&mut client).await;
    assert_eq!((frame.stream, frame.opcode), (3, 8));
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_wait_for_memory_take_little_of_it_and_hold_nothing_up() {
    const WAITING: i16 = 200;
    let server = start().await;
    let mut clients = Vec::new();
    for _ in 0..DEAF {
        clients.push(deaf(server.address()).await);
    }
    // Thousands that wait: what each kept of its work in progress would be more than the whole budget.
    for _ in 0..DEAF {
        let socket = TcpSocket::new_v4().unwrap();
        let mut client = Client::over(socket.connect(server.address()).await.unwrap(), Version::V4);
        client.start().await;
        let asked: Vec<u8> = (0..WAITING)
            .flat_map(|stream| query(stream, "SELECT * FROM ks.t", Some(100_000)))
            .collect();
        client.socket.write_all(&asked).await.unwrap();
        clients.push(client);
    }
    above(&server, "requests_in_flight", 10 * DEAF).await;
    let used = figure(&server, "connections_memory_bytes");
    assert!(used <= BUDGET + 2 * DEAF * 48 * 1024, "{used} bytes");
    // A small answer goes past a large one that waits on its own connection.
    let mut other = Client::ready(server.address(), Version::V4).await;
    let began = Instant::now();
    let large = query(1, "SELECT * FROM ks.t", Some(100_000));
    let small = query(2, "SELECT v FROM ks.t WHERE k = 1 AND c = 7", None);
    other.socket.write_all(&[large, small].concat()).await.unwrap();
    let frame = client_frame(&mut other).await;
    assert_eq!((frame.stream, frame.opcode), (2, 8));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    // The large one has its turn, or is told that there was none.
    let frame = client_frame(&mut other).await;
    assert!(frame.stream == 1 && (frame.opcode == 8 || frame.error().0 == OVERLOADED));
    // Those that wait when their client goes wait no more.
    drop(clients);
    let given_back = async || {
        while figure(&server, "connections_memory_bytes") > 1 << 20 || figure(&server, "connections_memory_waiting") > 0
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), given_back())
        .await
        .unwrap();
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_large_request_that_trickles_in_does_not_keep_the_memory_of_others() {
    const BYTES: usize = 1_500_000;
    let server = raw::start(Limits {
        memory_bytes_max: BUDGET,
        memory_wait: Duration::from_secs(30),
        slow_client: Duration::from_secs(1),
        ..Limits::default()
    })
    .await;
    let large = query(3, &format!("x{}", " ".repeat(BYTES)), None);
    let mut slow = Client::ready(server.addresses()[0], Version::V4).await;
    slow.socket.write_all(&large[..100_000]).await.unwrap();
    let (_reading, mut writing) = slow.socket.into_split();
    // It sends something all the time, and would need more than a minute for all of it.
    let trickling = tokio::spawn({
        let large = large.clone();
        async move {
            for part in large[100_000..].chunks(1000) {
                if writing.write_all(part).await.is_err() {
                    return false;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            true
        }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut other = Client::ready(server.addresses()[0], Version::V4).await;
    let began = Instant::now();
    let (mut reading, mut sending) = other.socket.split();
    let mut head = [0; 9];
    let (sent, read) = tokio::join!(sending.write_all(&large), reading.read_exact(&mut head));
    sent.unwrap();
    read.unwrap();
    assert_eq!((head[3], head[4]), (3, 8), "its answer");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(!trickling.await.unwrap(), "the slow one is cut off");
    server.drain().await;
}

/// With one thread: the point read would otherwise wait until the large text is parsed.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_large_request_is_parsed_beside_small_ones() {
    let server = start().await;
    let mut small = Client::ready(server.address(), Version::V4).await;
    let mut large = Client::ready(server.address(), Version::V4).await;
    let keys: Vec<String> = (0..60_000).map(|key| key.to_string()).collect();
    let text = format!(
        "SELECT v FROM ks.t WHERE k = 1 AND c IN ({}) AND v = 1",
        keys.join(", ")
    );
    large.socket.write_all(&query(1, &text, None)).await.unwrap();
    let large = tokio::spawn(async move { client_frame(&mut large).await });
    let mut answered_before = 0;
    while !large.is_finished() {
        let frame = ask(&mut small, "SELECT k FROM ks.t WHERE k = 1 AND c = 1", None).await;
        assert!(matches!(frame.opcode, 8), "{frame:?}");
        answered_before += 1;
    }
    assert!(answered_before > 20, "{answered_before}");
    large.await.unwrap();
}
