//! Connections as a whole, over simulated sockets and over TCP.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::envelope::{Header, Kind};
use super::handshake::{Formats, Identity, Secret, Secrets};
use super::limits::{GRANTED_BYTES_MAX, QUESTIONS_BYTES_MAX, WINDOW_BYTES};
use super::link::Link;
use super::*;

const LONG: Duration = Duration::from_secs(60);

/// What [`Node`] is asked.
const ECHO: u8 = 40;
const SILENCE: u8 = 41;
const DROP: u8 = 42;
const PANIC: u8 = 43;
/// Pieces of 100,000 bytes: as many as the body's first byte says.
const PIECES: u8 = 44;
/// Yields a hundred times.
const YIELD: u8 = 45;
/// Is answered when it is told so.
const WAIT: u8 = 46;
/// One empty piece after the other, until the asker is gone.
const ENDLESS: u8 = 47;

#[derive(Default)]
struct Node {
    executed: AtomicUsize,
    dropped: AtomicUsize,
    sent: AtomicUsize,
    go: Notify,
    from: Mutex<VecDeque<PeerName>>,
}

struct CountDrop(Arc<Node>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

/// The node as a transport takes it.
struct Answerer(Arc<Node>);

impl Answering for Answerer {
    fn answer(&self, from: &PeerName, kind: u8, body: Bytes, _: Duration, out: AnswerSink) -> BoxFuture<'static, ()> {
        let node = Arc::clone(&self.0);
        node.executed.fetch_add(1, Ordering::SeqCst);
        node.from.lock().unwrap().push_back(from.clone());
        let counted = CountDrop(Arc::clone(&node));
        async move {
            let _counted = counted;
            match kind {
                ECHO => out.last(body).await.unwrap_or_default(),
                SILENCE => out.gone().await,
                DROP => drop(out),
                PANIC => panic!("seeded"),
                PIECES => {
                    for _ in 0..body[0] {
                        if out.piece(Bytes::from(vec![1; 100_000])).await.is_err() {
                            return;
                        }
                        node.sent.fetch_add(1, Ordering::SeqCst);
                    }
                    out.end();
                }
                YIELD => {
                    for _ in 0..100 {
                        tokio::task::yield_now().await;
                    }
                    out.end();
                }
                WAIT => {
                    node.go.notified().await;
                    let _ = out.last(body).await;
                }
                _ => {
                    while out.piece(Bytes::new()).await.is_ok() {
                        node.sent.fetch_add(1, Ordering::SeqCst);
                    }
                }
            }
        }
        .boxed()
    }
}

fn who(name: &str) -> Identity {
    Identity {
        name: name.into(),
        cluster: "cluster".to_owned(),
        formats: Formats { oldest: 3, newest: 5 },
    }
}

fn secret(byte: u8) -> Secrets {
    Secrets {
        current: Secret::new([byte; 32]),
        other: None,
    }
}

/// Two secrets, of which the first is current.
fn changing(current: u8, other: u8) -> Secrets {
    Secrets {
        current: Secret::new([current; 32]),
        other: Some(Secret::new([other; 32])),
    }
}

fn question(kind: u8, body: impl Into<Bytes>) -> Question {
    Question {
        kind,
        body: body.into(),
        within: LONG,
    }
}

/// Two nodes, `a` and `b`.
struct Pair {
    network: Network,
    a: Endpoint,
    b: Endpoint,
    at_a: PeerAddress,
    at_b: PeerAddress,
    node: Arc<Node>,
}

fn pair() -> Pair {
    pair_of(who("a"), who("b"), secret(1), secret(1))
}

fn pair_of(a: Identity, b: Identity, of_a: Secrets, of_b: Secrets) -> Pair {
    let network = Network::new(fastrand::Rng::with_seed(1));
    let (at_a, at_b) = (PeerAddress::from("a:1"), PeerAddress::from("b:1"));
    let node = Arc::new(Node::default());
    let answerer = || Arc::new(Answerer(Arc::clone(&node)));
    Pair {
        a: network.join_as(a, of_a, Settings::default(), at_a.clone(), answerer()),
        b: network.join_as(b, of_b, Settings::default(), at_b.clone(), answerer()),
        network,
        at_a,
        at_b,
        node,
    }
}

impl Pair {
    async fn ask(&self, kind: u8, body: impl Into<Bytes>) -> Result<Answers, AskError> {
        self.a.ask(&self.at_b, question(kind, body)).await
    }

    async fn only(&self, kind: u8, body: impl Into<Bytes>) -> Result<Option<Bytes>, AskError> {
        self.ask(kind, body).await?.only().await
    }

    /// Waits until a number is reached, by the other's tasks.
    async fn until(&self, number: impl Fn(&Node) -> usize, expected: usize) {
        let reached = async {
            while number(&self.node) < expected {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(LONG, reached).await.expect("the number is reached");
    }

    fn held(&self) -> Held {
        let asking = self
            .a
            .asking_to(&self.at_b)
            .map_or([0; 2], |asking| asking.held_bytes());
        let serving = self
            .b
            .serving_of(&"a".into())
            .map_or([0; 2], |serving| serving.held_bytes());
        Held { asking, serving }
    }
}

/// Bytes of questions and of pieces on both sides.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    asking: [usize; 2],
    serving: [usize; 2],
}

const NOTHING: Held = Held {
    asking: [0; 2],
    serving: [0; 2],
};

#[tokio::test(start_paused = true)]
async fn questions_are_answered_by_their_kind_and_leave_nothing() {
    let pair = pair();
    let mut answers = pair.ask(ECHO, "body").await.unwrap();
    assert_eq!(answers.from().as_str(), "b");
    assert_eq!(answers.next().await, Ok(Some("body".into())));
    assert_eq!(answers.next().await, Ok(None));
    assert_eq!(answers.next().await, Ok(None));
    assert_eq!(pair.node.from.lock().unwrap()[0].as_str(), "a");

    let broken = Err(AskError::Broken(Cause::Abandoned));
    assert_eq!(pair.only(DROP, "").await, broken);
    assert_eq!(pair.only(PANIC, "").await, broken);
    assert_eq!(pair.only(YIELD, "").await, Ok(None), "on a task of its own");
    let large = Bytes::from(vec![7; BODY_BYTES_MAX]);
    assert!(pair.only(ECHO, large.clone()).await == Ok(Some(large)));
    let too_large = pair.ask(ECHO, vec![7; BODY_BYTES_MAX + 1]).await.unwrap_err();
    assert!(matches!(too_large, AskError::TooLarge { .. }) && !too_large.was_sent());

    let asks = (0..2000_u32).map(|number| pair.only(ECHO, number.to_be_bytes().to_vec()));
    let answers = futures::future::join_all(asks).await;
    for (number, answer) in (0..2000_u32).zip(answers) {
        assert_eq!(answer, Ok(Some(number.to_be_bytes().to_vec().into())));
    }
    assert_eq!(pair.held(), NOTHING);
}

#[tokio::test(start_paused = true)]
async fn pieces_arrive_in_order_and_windows_are_given_back() {
    let pair = pair();
    for count in [1_u8, 3, 200] {
        let mut answers = pair.ask(PIECES, vec![count]).await.unwrap();
        let mut taken = 0;
        while let Some(piece) = answers.next().await.unwrap() {
            assert_eq!(piece.len(), 100_000);
            taken += 1;
        }
        assert_eq!(taken, u32::from(count));
    }
    assert_eq!(pair.held(), NOTHING);
}

#[tokio::test(start_paused = true)]
async fn who_drops_an_answer_stops_the_other_side() {
    let pair = pair();
    let answers = pair.ask(SILENCE, "").await.unwrap();
    pair.until(|node| node.executed.load(Ordering::SeqCst), 1).await;
    assert_eq!(pair.node.dropped.load(Ordering::SeqCst), 0);
    drop(answers);
    pair.until(|node| node.dropped.load(Ordering::SeqCst), 1).await;

    let mut answers = pair.ask(ENDLESS, "").await.unwrap();
    assert_eq!(answers.next().await, Ok(Some(Bytes::new())));
    drop(answers);
    pair.until(|node| node.dropped.load(Ordering::SeqCst), 2).await;
    assert_eq!(pair.only(ECHO, "then").await, Ok(Some("then".into())));
    assert_eq!(pair.held(), NOTHING);
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_is_given_up_on_both_sides() {
    let pair = pair();
    assert!(pair.only(ECHO, "").await.is_ok());
    let late = Question {
        within: Duration::from_millis(250),
        ..question(SILENCE, "")
    };
    let began = Instant::now();
    let answer = pair.a.ask(&pair.at_b, late).await.unwrap().only().await;
    assert_eq!(answer, Err(AskError::TimedOut { was_sent: true }));
    assert!(began.elapsed() < Duration::from_millis(260));
    pair.until(|node| node.dropped.load(Ordering::SeqCst), 2).await;
    assert_eq!(pair.only(ECHO, "then").await, Ok(Some("then".into())));
    assert_eq!(pair.held(), NOTHING);
}

#[tokio::test(start_paused = true)]
async fn a_killed_node_breaks_what_was_sent_and_the_next_start_is_found() {
    let pair = pair();
    let mut sent = pair.ask(SILENCE, "").await.unwrap();
    pair.until(|node| node.executed.load(Ordering::SeqCst), 1).await;
    pair.network.leave(&pair.at_b);
    assert_eq!(sent.next().await, Err(AskError::Broken(Cause::Closed)));
    let refused = Cause::Socket(std::io::ErrorKind::ConnectionRefused);
    assert_eq!(
        pair.ask(ECHO, "").await.unwrap_err(),
        AskError::NotSent(refused.clone())
    );
    let began = Instant::now();
    assert_eq!(pair.ask(ECHO, "").await.unwrap_err(), AskError::NotSent(refused));
    assert_eq!(began.elapsed(), Duration::ZERO, "the pause between attempts");

    let again = Arc::new(Answerer(Arc::clone(&pair.node)));
    let settings = Settings::default();
    let _b = pair
        .network
        .join_as(who("b"), secret(1), settings, pair.at_b.clone(), again);
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(pair.only(ECHO, "again").await, Ok(Some("again".into())));
}

#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_noticed_on_both_sides_whichever_way_is_cut() {
    for forth in [true, false] {
        let pair = pair();
        assert!(pair.only(ECHO, "").await.is_ok());
        let mut sent = pair.ask(SILENCE, "").await.unwrap();
        pair.until(|node| node.executed.load(Ordering::SeqCst), 2).await;
        let (from, to) = if forth {
            (&pair.at_a, &pair.at_b)
        } else {
            (&pair.at_b, &pair.at_a)
        };
        pair.network.cut(from, to);
        let began = Instant::now();
        assert_eq!(sent.next().await, Err(AskError::Broken(Cause::Silent)));
        assert!(began.elapsed() < Duration::from_millis(510), "{:?}", began.elapsed());
        pair.until(|node| node.dropped.load(Ordering::SeqCst), 2).await;
        assert!(began.elapsed() < Duration::from_millis(700), "{:?}", began.elapsed());

        let late = AskError::TimedOut { was_sent: false };
        let short = Question {
            within: Duration::from_millis(100),
            ..question(ECHO, "")
        };
        assert_eq!(pair.a.ask(&pair.at_b, short).await.unwrap_err(), late);
        pair.network.mend(from, to);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(pair.only(ECHO, "mended").await, Ok(Some("mended".into())));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_still_queued_when_a_connection_breaks_was_not_sent() {
    let pair = pair();
    assert!(pair.only(ECHO, "").await.is_ok());
    // The peer's socket takes nothing more: the first questions fill it, the others wait.
    pair.network.cut(&pair.at_a, &pair.at_b);
    let mut rng = fastrand::Rng::with_seed(5);
    let asks = (0..40).map(|_| {
        let body: Vec<u8> = (0..200_000).map(|_| rng.u8(..)).collect();
        pair.only(ECHO, body)
    });
    let asks: Vec<_> = asks.collect();
    let answers = futures::future::join_all(asks).await;
    let sent = answers
        .iter()
        .filter(|answer| **answer == Err(AskError::Broken(Cause::Silent)));
    let sent = sent.count();
    let kept = answers
        .iter()
        .filter(|answer| **answer == Err(AskError::NotSent(Cause::Silent)));
    assert_eq!(sent + kept.count(), 40, "{answers:?}");
    assert_eq!(sent, 1, "256 KiB are taken, and 200,000 bytes are a question");
    assert_eq!(pair.node.executed.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_question_withdrawn_from_the_queue_is_never_executed() {
    let pair = pair();
    assert!(pair.only(ECHO, "").await.is_ok());
    // Nothing of the connection's task runs between these lines.
    let answers = pair.ask(ECHO, "withdrawn").await.unwrap();
    drop(answers);
    assert!(pair.only(ECHO, "").await.is_ok());
    assert_eq!(pair.node.executed.load(Ordering::SeqCst), 2);
    assert_eq!(pair.held(), NOTHING);
}

#[tokio::test(start_paused = true)]
async fn slow_readers_block_only_their_own_answers_and_hold_a_bounded_memory() {
    let pair = pair();
    let mut slow = Vec::new();
    for _ in 0..400 {
        slow.push(pair.ask(PIECES, vec![200]).await.unwrap());
    }
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let held = pair.held();
        assert!(held.asking[1] <= GRANTED_BYTES_MAX, "{held:?}");
        assert!(held.asking[0] <= QUESTIONS_BYTES_MAX && held.serving[0] <= QUESTIONS_BYTES_MAX);
        assert!(held.serving[1] <= GRANTED_BYTES_MAX + 400 * WINDOW_BYTES);
        let began = Instant::now();
        assert_eq!(pair.only(ECHO, "small").await, Ok(Some("small".into())));
        assert!(began.elapsed() < Duration::from_millis(20), "{:?}", began.elapsed());
    }
    assert!(pair.held().asking[1] > GRANTED_BYTES_MAX / 2, "the memory was in use");
    // Large answers wait until the slow ones are broken.
    let began = Instant::now();
    let mut large = pair.ask(PIECES, vec![20]).await.unwrap();
    let mut pieces = 0;
    while large.next().await.unwrap().is_some() {
        pieces += 1;
    }
    assert_eq!(pieces, 20);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let mut broken = 0;
    for mut answers in slow {
        if answers.next().await == Err(AskError::Broken(Cause::TooSlow)) {
            broken += 1;
        }
    }
    assert!(broken > 0);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(pair.held(), NOTHING);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_executes_nothing_holds_a_bounded_memory_and_no_other_peer() {
    let pair = pair();
    let at_c = PeerAddress::from("c:1");
    let other = Arc::new(Answerer(Arc::default()));
    let _c = pair
        .network
        .join_as(who("c"), secret(1), Settings::default(), at_c.clone(), other);
    let within = Duration::from_secs(5);
    let asks = (0..40).map(|_| async {
        let body = Bytes::from(vec![3; 1 << 20]);
        let asked = Question {
            within,
            ..question(SILENCE, body)
        };
        pair.a.ask(&pair.at_b, asked).await?.only().await
    });
    let asks = futures::future::join_all(asks);
    let others = async {
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let held = pair.held();
            assert!(
                held.asking[0] <= QUESTIONS_BYTES_MAX && held.serving[0] <= QUESTIONS_BYTES_MAX,
                "{held:?}"
            );
            let began = Instant::now();
            let answer = pair.a.ask(&at_c, question(ECHO, "c")).await.unwrap().only().await;
            assert_eq!(answer, Ok(Some("c".into())));
            assert!(began.elapsed() < Duration::from_millis(20));
        }
    };
    let (asks, ()) = tokio::join!(asks, others);
    let sent = asks
        .iter()
        .filter(|ask| **ask == Err(AskError::TimedOut { was_sent: true }));
    let sent = sent.count();
    let kept = asks
        .iter()
        .filter(|ask| **ask == Err(AskError::TimedOut { was_sent: false }));
    assert_eq!(
        (sent, kept.count()),
        (15, 25),
        "what has no space waits and is not sent"
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(pair.held(), NOTHING);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_leaves_answers_what_it_took_and_tells_the_rest() {
    let pair = pair();
    let mut taken = pair.ask(WAIT, "taken").await.unwrap();
    pair.until(|node| node.executed.load(Ordering::SeqCst), 1).await;
    let leave = pair.b.leave(LONG);
    let others = async {
        tokio::task::yield_now().await;
        // On their way when the other side leaves, or after it.
        let late = futures::future::join_all((0..10).map(|_| pair.only(ECHO, "late"))).await;
        for answer in late {
            assert_eq!(answer, Err(AskError::NotSent(Cause::Leaving)));
        }
        assert_eq!(pair.only(ECHO, "later").await, Err(AskError::NotSent(Cause::Leaving)));
        pair.node.go.notify_one();
        assert_eq!(taken.next().await, Ok(Some("taken".into())));
        assert_eq!(taken.next().await, Ok(None));
    };
    tokio::join!(leave, others);
    assert_eq!(pair.node.executed.load(Ordering::SeqCst), 1);
    // It can still ask.
    let back = pair
        .b
        .ask(&pair.at_a, question(ECHO, "back"))
        .await
        .unwrap()
        .only()
        .await;
    assert_eq!(back, Ok(Some("back".into())));
}

#[tokio::test(start_paused = true)]
async fn nodes_that_do_not_fit_refuse_each_other_by_name() {
    let other = Identity {
        cluster: "another".to_owned(),
        ..who("b")
    };
    let pair = pair_of(who("a"), other, secret(1), secret(1));
    let error = pair.ask(ECHO, "").await.unwrap_err();
    assert!(matches!(&error, AskError::Refused(Refusal::Cluster { .. })), "{error}");
    assert!(
        error
            .to_string()
            .contains("b is a node of the cluster another, a of cluster"),
        "{error}"
    );

    let newer = Identity {
        formats: Formats { oldest: 6, newest: 8 },
        ..who("b")
    };
    for (a, b) in [
        (who("a"), newer.clone()),
        (
            Identity {
                name: "a".into(),
                ..newer
            },
            who("b"),
        ),
    ] {
        let pair = pair_of(a, b, secret(1), secret(1));
        let error = pair.ask(ECHO, "").await.unwrap_err();
        assert!(matches!(&error, AskError::Refused(Refusal::Formats { .. })), "{error}");
        assert!(
            error.to_string().contains("6 to 8") && error.to_string().contains("3 to 5"),
            "{error}"
        );
    }

    let pair = pair_of(who("a"), who("a"), secret(1), secret(1));
    let name = Refusal::Name { name: "a".to_owned() };
    assert_eq!(pair.ask(ECHO, "").await.unwrap_err(), AskError::Refused(name));

    let pair = pair_of(who("a"), who("b"), secret(1), secret(2));
    assert_eq!(
        pair.ask(ECHO, "").await.unwrap_err(),
        AskError::Refused(Refusal::Secret)
    );
    assert_eq!(pair.node.executed.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn secrets_change_while_nodes_talk() {
    let both = |current: u8, other: u8| Secrets {
        other: Some(Secret::new([other; 32])),
        ..secret(current)
    };
    for (of_a, of_b, fits) in [
        (both(2, 1), secret(1), true),
        (secret(1), both(2, 1), true),
        (both(2, 1), both(1, 2), true),
        (both(2, 1), secret(2), true),
        (both(2, 1), secret(3), false),
        (both(2, 1), both(3, 4), false),
    ] {
        let pair = pair_of(who("a"), who("b"), of_a, of_b);
        assert_eq!(pair.only(ECHO, "").await.is_ok(), fits);
    }
    let pair = pair();
    pair.b.set_secrets(secret(9));
    assert!(pair.only(ECHO, "").await.is_err());
    pair.b.set_secrets(both(9, 1));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(pair.only(ECHO, "").await.is_ok());
}

/// A socket to `b` that speaks by hand.
async fn by_hand(pair: &Pair) -> Link {
    let socket = pair.network.socket(&pair.at_a, &pair.at_b).await;
    Link::new(socket, false)
}

#[tokio::test(start_paused = true)]
async fn a_stranger_gets_nothing() {
    let pair = pair();
    // A question without a proof.
    let mut link = by_hand(&pair).await;
    link.send(Header::new(Kind::Question, 1), b"").await.unwrap();
    assert_eq!(link.receive().await, Err(Cause::Closed));
    // A large greeting.
    let mut link = by_hand(&pair).await;
    link.send(Header::new(Kind::Hello, 0), &vec![0; 100_000]).await.unwrap();
    assert_eq!(link.receive().await, Err(Cause::Closed));
    // The answerer's own proofs, sent back as the asker's.
    let mut link = by_hand(&pair).await;
    let mut hello = vec![9; 32];
    hello.extend_from_slice(&[0, 0, 0, 3, 0, 0, 0, 5, 1, b'a', 7]);
    hello.extend_from_slice(b"cluster");
    link.send(Header::new(Kind::Hello, 0), &hello).await.unwrap();
    let challenge = link.receive().await.unwrap();
    assert_eq!(challenge.header.kind, Kind::Challenge);
    let proof = &challenge.body[challenge.body.len() - 32..];
    link.send(Header::new(Kind::Proof, 0), proof).await.unwrap();
    assert_eq!(link.receive().await.unwrap().header.kind, Kind::Refused);
    // Nothing at all: it is closed after a while.
    let mut link = by_hand(&pair).await;
    assert_eq!(link.receive().await, Err(Cause::Closed));
    assert_eq!(pair.node.executed.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_breaks_the_rules_is_cut_off() {
    let pair = pair();
    let messages: [fn(u32) -> Header; 4] = [
        |_| Header::new(Kind::Question, 0),
        |_| Header::new(Kind::Piece, 1),
        |_| Header::new(Kind::Welcome, 0),
        |_| Header::new(Kind::Want, 1),
    ];
    for message in messages {
        let mut link = by_hand(&pair).await;
        handshake::ask(&mut link, &who("c"), &secret(1), [3; 32]).await.unwrap();
        link.send(message(0), b"").await.unwrap();
        let closed = async { while link.receive().await.is_ok() {} };
        timeout(Duration::from_millis(50), closed).await.unwrap();
    }
    // More questions than the limit.
    let mut link = by_hand(&pair).await;
    handshake::ask(&mut link, &who("c"), &secret(1), [3; 32]).await.unwrap();
    let header = |stream| Header {
        of: SILENCE,
        number: 60_000_000,
        ..Header::new(Kind::Question, stream)
    };
    let mut is_closed = false;
    for stream in 1..=40 {
        is_closed |= link.send(header(stream), &vec![0; 1 << 20]).await.is_err();
        let held = pair
            .b
            .serving_of(&"c".into())
            .map_or([0; 2], |serving| serving.held_bytes());
        assert!(held[0] <= QUESTIONS_BYTES_MAX);
    }
    assert!(is_closed);
}

/// Two nodes over TCP.
async fn over_tcp(of_a: &Secrets, of_b: &Secrets) -> (Endpoint, Endpoint, PeerAddress, Arc<Node>) {
    let node = Arc::new(Node::default());
    let nonces: Nonces = Arc::new({
        let rng = Mutex::new(fastrand::Rng::with_seed(3));
        move || {
            let mut nonce = [0; 32];
            rng.lock().unwrap().fill(&mut nonce);
            nonce
        }
    });
    let endpoint = |name: &str, secrets: &Secrets, tcp: &Arc<Tcp>| {
        let answering = Arc::new(Answerer(Arc::clone(&node)));
        let dial = Arc::clone(tcp) as Arc<dyn Dial>;
        let nonces = Arc::clone(&nonces);
        Endpoint::new(who(name), secrets.clone(), Settings::default(), dial, answering, nonces)
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at_b = PeerAddress::from(listener.local_addr().unwrap().to_string());
    let (from_a, at) = (Tcp::new(Tls::of(of_a).unwrap()), Tcp::new(Tls::of(of_b).unwrap()));
    let (a, b) = (endpoint("a", of_a, &from_a), endpoint("b", of_b, &at));
    at.listen(&b, listener);
    (a, b, at_b, node)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_talk_over_tcp() {
    // Before, within and after a change of the secret.
    let changing = changing(1, 2);
    let pairs = [
        (secret(1), secret(1)),
        (changing.clone(), secret(1)),
        (secret(1), changing.clone()),
        (changing.clone(), secret(2)),
        (secret(2), changing),
    ];
    for (of_a, of_b) in pairs {
        let (a, b, at_b, node) = over_tcp(&of_a, &of_b).await;
        let asks = (0..500_usize).map(|number| {
            let (a, at_b) = (&a, &at_b);
            async move {
                let body = vec![5; number * number];
                let answer = a.ask(at_b, question(ECHO, body.clone())).await?.only().await?;
                assert!(answer == Some(body.into()));
                Ok::<_, AskError>(())
            }
        });
        for answer in futures::future::join_all(asks).await {
            assert_eq!(answer, Ok(()));
        }
        let mut answers = a.ask(&at_b, question(PIECES, vec![100])).await.unwrap();
        let mut pieces = 0;
        while answers.next().await.unwrap().is_some() {
            pieces += 1;
        }
        assert_eq!((pieces, node.executed.load(Ordering::SeqCst)), (100, 501));
        b.close().await;
        let after = async { a.ask(&at_b, question(ECHO, "")).await?.only().await };
        let error = after.await.unwrap_err();
        assert!(matches!(error, AskError::NotSent(_) | AskError::Broken(_)), "{error}");
        a.close().await;
    }
}

#[tokio::test]
async fn nodes_of_other_secrets_do_not_talk() {
    for (of_a, of_b) in [
        (secret(1), secret(2)),
        (secret(3), changing(1, 2)),
        (changing(1, 2), secret(3)),
    ] {
        let (a, b, at_b, node) = over_tcp(&of_a, &of_b).await;
        let error = a.ask(&at_b, question(ECHO, "")).await.map(|_| ()).unwrap_err();
        assert!(!error.was_sent(), "{error}");
        assert_eq!(node.executed.load(Ordering::SeqCst), 0);
        b.close().await;
    }
}

/// Who speaks without encryption gets no answer.
#[tokio::test]
async fn a_node_that_is_not_encrypted_is_cut_off() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (_a, b, at_b, node) = over_tcp(&secret(1), &secret(1)).await;
    let mut socket = tokio::net::TcpStream::connect(at_b.as_str()).await.unwrap();
    socket.write_all(&[0x41; 4096]).await.unwrap();
    let mut answer = Vec::new();
    // TLS says that it is no TLS, or the socket is reset.
    drop(socket.read_to_end(&mut answer).await);
    assert!(answer.len() < 16, "{answer:?}");
    assert_eq!(node.executed.load(Ordering::SeqCst), 0);
    b.close().await;
}
