//! Bad input, row by row: what each kind gets, and that other clients do not notice.
#![expect(
    clippy::cast_possible_truncation,
    reason = "lengths of frames that the test itself made"
)]

use std::time::Duration;

use crate::raw::{Client, envelope, segment, start};
use helenus::server::Limits;
use helenus_types::wire::Version;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, timeout};

const PROTOCOL: u32 = 0x000A;

fn text(body: &str) -> Vec<u8> {
    let mut out = (body.len() as u32).to_be_bytes().to_vec();
    out.extend(body.as_bytes());
    out
}

/// A query's body with these bytes for parameters.
fn query(params: &[u8]) -> Vec<u8> {
    [text("void").as_slice(), params].concat()
}

#[tokio::test]
async fn an_unknown_version_is_refused_on_stream_0_and_closed() {
    let server = start(Limits::default()).await;
    for (byte, header) in [
        (0x42, [0x85, 0, 0, 0, 0].as_slice()),
        (0x41, &[0x85, 0, 0, 0, 0]),
        (6, &[0x85, 0, 0, 0, 0]),
        (b'G', &[0x85, 0, 0, 0, 0]),
        (0x84, &[0x85, 0, 0, 0, 0]),
        (1, &[0x81, 0, 0, 0]),
        (2, &[0x82, 0, 0, 0]),
    ] {
        let mut client = Client::connect(server.addresses()[0], Version::V4).await;
        client.bytes(&[byte, 0, 0, 9, 5, 0, 0, 0, 0]).await;
        let mut all = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut client.socket, &mut all)
            .await
            .unwrap();
        assert_eq!(&all[..header.len()], header);
        let said = String::from_utf8_lossy(&all).into_owned();
        let number = byte & 0x7F;
        assert!(said.contains(&format!(
            "Invalid or unsupported protocol version ({number}); supported versions are (3/v3, 4/v4, 5/v5)"
        )));
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a list of cases, one after another")]
async fn a_bad_body_is_answered_on_its_stream_and_the_connection_goes_on() {
    let server = start(Limits::default()).await;
    for version in Version::ALL {
        let long = |v5: &[u8], v4: &[u8]| {
            if version == Version::V5 {
                v5.to_vec()
            } else {
                v4.to_vec()
            }
        };
        // In version 3 every negative length is null; there the value is longer than the body.
        let sign = if version == Version::V3 { 0x7F } else { 0xFF };
        let cases: Vec<(&str, u8, Vec<u8>)> = vec![
            ("unknown opcode", 0x04, vec![]),
            ("unknown opcode", 0x55, vec![1, 2, 3]),
            ("response opcode", 0x08, vec![]),
            ("second STARTUP", 0x01, vec![0, 0]),
            ("AUTH_RESPONSE that nobody asked for", 0x0F, vec![0xFF; 4]),
            ("empty QUERY", 0x07, vec![]),
            ("negative text length", 0x07, vec![0xFF, 0xFF, 0xFF, 0xFF]),
            ("text length beyond the body", 0x07, vec![0x7F, 0xFF, 0xFF, 0xFF, b'x']),
            (
                "bad UTF-8",
                0x07,
                [
                    &[0, 0, 0, 2, 0xC3, 0x28],
                    long(&[0, 1, 0, 0, 0, 0], &[0, 1, 0]).as_slice(),
                ]
                .concat(),
            ),
            (
                "unknown consistency",
                0x07,
                query(&long(&[0, 99, 0, 0, 0, 0], &[0, 99, 0])),
            ),
            (
                "more values than the body has",
                0x07,
                query(&long(&[0, 1, 0, 0, 0, 1, 0xFF, 0xFF], &[0, 1, 1, 0xFF, 0xFF])),
            ),
            (
                "value length −3",
                0x07,
                query(&long(
                    &[0, 1, 0, 0, 0, 1, 0, 1, sign, 0xFF, 0xFF, 0xFD],
                    &[0, 1, 1, 0, 1, sign, 0xFF, 0xFF, 0xFD],
                )),
            ),
            (
                "unknown serial consistency",
                0x07,
                query(&long(&[0, 1, 0, 0, 0, 0x10, 0, 99], &[0, 1, 0x10, 0, 99])),
            ),
            (
                "pages of no rows",
                0x07,
                query(&long(&[0, 1, 0, 0, 0, 4, 0, 0, 0, 0], &[0, 1, 4, 0, 0, 0, 0])),
            ),
            ("unknown event", 0x0B, vec![0, 1, 0, 2, b'N', b'O']),
            ("event list beyond the body", 0x0B, vec![0xFF, 0xFF]),
            ("unknown batch type", 0x0D, vec![9, 0, 0]),
            ("batch that ends early", 0x0D, vec![0, 0xFF, 0xFF, 0]),
            ("execute without an id", 0x0A, vec![0, 16]),
        ];
        let mut client = Client::ready(server.addresses()[0], version).await;
        for (stream, (what, opcode, body)) in (1_i16..).zip(&cases) {
            client.envelope(&envelope(version, 0, stream, *opcode, body)).await;
            let frame = client.frame().await.unwrap_or_else(|| panic!("closed after {what}"));
            assert_eq!((frame.stream, frame.error().0), (stream, PROTOCOL), "{what}");
        }
        // Trailing bytes are ignored, a custom payload is read past.
        let params = long(&[0, 1, 0, 0, 0, 0, 9, 9, 9], &[0, 1, 0, 9, 9, 9]);
        client.envelope(&envelope(version, 0, 100, 0x07, &query(&params))).await;
        assert_eq!(client.frame().await.unwrap().opcode, 8);
        if version > Version::V3 {
            let payload = [&[0, 1, 0, 1, b'k', 0, 0, 0, 1, 7], query(&params).as_slice()].concat();
            client.envelope(&envelope(version, 4, 101, 0x07, &payload)).await;
            assert_eq!(client.frame().await.unwrap().opcode, 8);
        }
    }
}

#[tokio::test]
async fn nothing_goes_before_startup() {
    let server = start(Limits::default()).await;
    for version in Version::ALL {
        let mut client = Client::connect(server.addresses()[0], version).await;
        client.query(3, "void").await;
        let frame = client.frame().await.unwrap();
        assert_eq!((frame.version, frame.stream), (0x80 | version.number(), 3));
        assert_eq!(
            frame.error(),
            (
                PROTOCOL,
                "Unexpected message QUERY, expecting STARTUP or OPTIONS".into()
            )
        );
        client.options(4).await;
        assert_eq!(client.frame().await.unwrap().opcode, 6);
        client.start().await;
        client.query(5, "void").await;
        assert_eq!(client.frame().await.unwrap().opcode, 8);
    }
}

#[tokio::test]
async fn lengths_over_the_limit() {
    let limits = Limits {
        body_bytes_max: 10_000,
        ..Limits::default()
    };
    let server = start(limits).await;
    for version in Version::ALL {
        // Before login: refused and closed, whatever has come of the body.
        let mut client = Client::connect(server.addresses()[0], version).await;
        client.bytes(&[version.number(), 0, 0, 2, 1, 0, 2, 0, 0]).await;
        assert_eq!(client.frame().await.unwrap().error().0, PROTOCOL);
        assert!(client.closed().await);
        // After it: skipped, answered, and the next request is read.
        let mut client = Client::ready(server.addresses()[0], version).await;
        let big = envelope(version, 0, 7, 0x07, &vec![0; 150_000]);
        if version == Version::V5 {
            for part in big.chunks(131_071) {
                client.bytes(&segment(part, false)).await;
            }
        } else {
            client.bytes(&big).await;
        }
        let text = "Request is too big: length 150000 exceeds maximum allowed length 10000.";
        let frame = client.frame().await.unwrap();
        assert_eq!((frame.stream, frame.error()), (7, (0x2200, text.into())));
        client.query(8, "void").await;
        assert_eq!(client.frame().await.unwrap().stream, 8);
        // Negative: nothing can be read any more.
        client.envelope(&[version.number(), 0, 0, 9, 7, 0x80, 0, 0, 0]).await;
        let frame = client.frame().await.unwrap();
        assert_eq!((frame.stream, frame.error().0), (9, PROTOCOL));
        assert!(client.closed().await);
    }
}

#[tokio::test]
async fn broken_segments_close_their_connection_only() {
    let server = start(Limits::default()).await;
    let mut neighbour = Client::ready(server.addresses()[0], Version::V5).await;
    let good = envelope(Version::V5, 0, 1, 5, &[]);
    let mut header = segment(&good, true);
    header[0] ^= 1;
    let mut payload = segment(&good, true);
    payload[8] ^= 1;
    let endless: Vec<u8> = std::iter::repeat_n(segment(&envelope(Version::V5, 0, 1, 7, &[0; 1000])[..500], false), 4)
        .flatten()
        .collect();
    for bytes in [
        header,
        payload,
        segment(&good[..5], true),
        segment(&good[..5], false),
        endless,
    ] {
        let mut client = Client::ready(server.addresses()[0], Version::V5).await;
        client.bytes(&bytes).await;
        while let Some(frame) = client.frame().await {
            assert_eq!(frame.error().0, PROTOCOL);
        }
    }
    neighbour.query(1, "void").await;
    assert_eq!(neighbour.frame().await.unwrap().opcode, 8);
}

#[tokio::test]
async fn a_version_that_changes_is_refused() {
    let server = start(Limits::default()).await;
    let mut client = Client::ready(server.addresses()[0], Version::V4).await;
    client.bytes(&envelope(Version::V3, 0, 6, 5, &[])).await;
    let (code, text) = client.frame().await.unwrap().error();
    assert_eq!(code, PROTOCOL);
    assert_eq!(
        text,
        "Invalid message version. Got 3/v3 but previous messages on this connection had version 4/v4"
    );
    assert!(client.closed().await);
}

#[tokio::test]
async fn truncated_and_half_closed() {
    let limits = Limits {
        login_deadline: Duration::from_millis(300),
        ..Limits::default()
    };
    let server = start(limits).await;
    // One byte at a time and then silence: the deadline.
    let begun = Instant::now();
    let mut client = Client::connect(server.addresses()[0], Version::V4).await;
    client.bytes(&[4, 0, 0]).await;
    assert!(client.closed().await);
    assert!(begun.elapsed() >= Duration::from_millis(250));
    // Half closed with a whole request: still answered.
    let mut client = Client::ready(server.addresses()[0], Version::V4).await;
    client.query(1, "slow").await;
    client.socket.shutdown().await.unwrap();
    assert_eq!(client.frame().await.unwrap().opcode, 8);
    assert!(client.closed().await);
    // Half closed within a request: closed.
    let mut client = Client::ready(server.addresses()[0], Version::V4).await;
    client.bytes(&[4, 0, 0, 1, 7, 0, 0, 0, 50, 1]).await;
    client.socket.shutdown().await.unwrap();
    assert!(client.closed().await);
}

#[tokio::test]
async fn a_panic_answers_one_request() {
    let server = start(Limits::default()).await;
    for version in Version::ALL {
        let mut client = Client::ready(server.addresses()[0], version).await;
        for text in ["panic", "panic later"] {
            client.query(1, text).await;
            let (code, message) = client.frame().await.unwrap().error();
            assert_eq!(code, 0);
            assert!(message.starts_with("Internal error "), "{message}");
            client.query(2, "void").await;
            assert_eq!(client.frame().await.unwrap().opcode, 8);
        }
    }
}

#[tokio::test]
async fn a_stream_in_use_is_refused_and_options_pass_work() {
    let limits = Limits {
        in_flight_max: 2,
        ..Limits::default()
    };
    let server = start(limits).await;
    let mut client = Client::ready(server.addresses()[0], Version::V4).await;
    for stream in 1..=5 {
        client.query(stream, if stream <= 2 { "slow" } else { "void" }).await;
    }
    client.query(1, "void").await;
    client.options(9).await;
    let frame = client.frame().await.unwrap();
    assert_eq!((frame.stream, frame.error().0), (1, PROTOCOL));
    assert_eq!(client.frame().await.unwrap().opcode, 6);
    let mut streams = Vec::new();
    for _ in 0..5 {
        streams.push(client.frame().await.unwrap().stream);
    }
    streams.sort_unstable();
    assert_eq!(streams, [1, 2, 3, 4, 5]);
    client.query(1, "yield").await;
    assert_eq!(client.frame().await.unwrap().stream, 1);
}

#[tokio::test]
async fn a_client_that_never_reads_is_bounded_and_closed() {
    let limits = Limits {
        queued_bytes_max: 100_000,
        slow_client: Duration::from_secs(5),
        ..Limits::default()
    };
    let server = start(limits).await;
    let mut deaf = Client::ready(server.addresses()[0], Version::V4).await;
    let mut frame = Vec::new();
    let query = helenus_types::wire::request::Query {
        text: "bytes 1000000",
        params: Default::default(),
    };
    helenus_types::wire::request::Request::Query(query).write_frame(&mut frame, Version::V4, 1, 0);
    let many = frame.repeat(4000);
    // The server stops reading, so that not all of this can be sent, or ends up in socket buffers only; then it closes.
    let sending = async {
        for _ in 0..200 {
            if deaf.socket.write_all(&many).await.is_err() {
                return;
            }
        }
    };
    assert!(
        timeout(Duration::from_secs(30), sending).await.is_ok(),
        "closed within its time"
    );
    let mut polite = Client::ready(server.addresses()[0], Version::V4).await;
    polite.query(1, "void").await;
    assert_eq!(polite.frame().await.unwrap().opcode, 8);
    drop(deaf);
    timeout(Duration::from_secs(5), async {
        while server.connections() > 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn floods_of_connections_leave_room() {
    let limits = Limits {
        connections_max: 20,
        connections_per_address_max: 20,
        ..Limits::default()
    };
    let server = start(limits).await;
    let mut working = Client::ready(server.addresses()[0], Version::V4).await;
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(Client::connect(server.addresses()[0], Version::V4).await);
    }
    let begun = Instant::now();
    let mut polite = Client::ready(server.addresses()[0], Version::V4).await;
    for client in [&mut polite, &mut working] {
        client.query(1, "void").await;
        assert_eq!(client.frame().await.unwrap().opcode, 8);
    }
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn random_frames_harm_nobody() {
    let limits = Limits {
        login_deadline: Duration::from_millis(500),
        ..Limits::default()
    };
    let server = start(limits).await;
    let mut rng = fastrand::Rng::with_seed(3);
    let mut neighbour = Client::ready(server.addresses()[0], Version::V4).await;
    for round in 0..600 {
        let version = Version::ALL[round % 3];
        let mut client = if rng.bool() {
            Client::ready(server.addresses()[0], version).await
        } else {
            Client::connect(server.addresses()[0], version).await
        };
        let body: Vec<u8> = (0..rng.usize(0..64)).map(|_| rng.u8(..)).collect();
        let mut bytes = envelope(version, rng.u8(..), rng.i16(..), rng.u8(0..18), &body);
        for _ in 0..rng.usize(0..3) {
            let at = rng.usize(0..bytes.len());
            bytes[at] = rng.u8(..);
        }
        if rng.bool() {
            bytes = segment(&bytes, rng.bool());
        }
        let _ = client.socket.write_all(&bytes).await;
        drop(client);
    }
    neighbour.query(1, "void").await;
    assert_eq!(neighbour.frame().await.unwrap().opcode, 8);
}
