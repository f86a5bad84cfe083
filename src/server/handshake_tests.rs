//! Tests of the phases of a connection.

use std::net::{IpAddr, Ipv4Addr};

use super::super::auth::Credentials;
use super::*;
use helenus_base::clock::Clock;

const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn authenticator(required: bool) -> Arc<Authenticator> {
    let credentials = Credentials {
        user: "u".into(),
        password: "p".into(),
    };
    Arc::new(Authenticator::new(
        required.then_some(credentials),
        None,
        Clock::manual(0),
        1,
    ))
}

fn send(phase: &mut Phase, authenticator: &Arc<Authenticator>, version: Version, request: &Request<'_>) -> Step {
    let mut body = Vec::new();
    request.write(&mut body, version);
    let header = Header {
        version,
        flags: 0,
        stream: 1,
        opcode_byte: request.opcode().byte(),
        length: body.len(),
    };
    let step = step(
        phase,
        authenticator,
        Profile::Cassandra,
        HOME,
        None,
        &header,
        &body.into(),
    );
    if matches!(step, Step::LoggedIn(..)) {
        *phase = Phase::Ready;
    }
    step
}

fn startup(version: Version, options: &[(&'static str, &'static str)]) -> Step {
    let request = Request::Startup(Startup {
        options: options.to_vec(),
    });
    send(&mut Phase::Fresh, &authenticator(false), version, &request)
}

fn text(step: &Step) -> &str {
    match step {
        Step::Reply(Response {
            body: Body::Error(error),
            ..
        }) => error.message(),
        _ => panic!("not an error"),
    }
}

#[test]
fn startup_answers_as_cassandra() {
    for version in Version::ALL {
        for (options, refusal) in [
            (vec![], "Missing value CQL_VERSION in STARTUP message"),
            (
                vec![("CQL_VERSION", "2.0.0")],
                "CQL version 2.0.0 is not supported by the binary protocol (supported version are >= 3.0.0)",
            ),
            (vec![("CQL_VERSION", "x")], "Invalid version value: x"),
            (
                vec![("CQL_VERSION", "3.0.0"), ("COMPRESSION", "nothing")],
                "Unknown compression algorithm: nothing",
            ),
        ] {
            assert_eq!(text(&startup(version, &options)), refusal);
        }
        for options in [
            vec![("CQL_VERSION", "3.4.5")],
            vec![("cql_version", "4.0.0")],
            vec![("CQL_VERSION", "3.0.0"), ("COMPRESSION", "LZ4")],
            vec![("CQL_VERSION", "3.0.0"), ("FANCY", "yes"), ("DRIVER_NAME", "d")],
        ] {
            assert!(matches!(
                startup(version, &options),
                Step::Negotiated(Response { body: Body::Ready, .. }, _, _)
            ));
        }
        let snappy = startup(version, &[("CQL_VERSION", "3.0.0"), ("COMPRESSION", "snappy")]);
        assert_eq!(matches!(snappy, Step::Negotiated(..)), version < Version::V5);
    }
}

#[test]
fn nothing_goes_before_its_time() {
    let query = Request::Query(helenus_types::wire::request::Query {
        text: "SELECT",
        params: Default::default(),
    });
    let register = Request::Register(helenus_types::wire::request::Register { kinds: vec![] });
    let startup = Request::Startup(Startup {
        options: vec![("CQL_VERSION", "3.0.0")],
    });
    let login = |token: &'static [u8]| {
        Request::AuthResponse(helenus_types::wire::request::AuthResponse {
            token: Some(Bytes::from_static(token)),
        })
    };
    for version in Version::ALL {
        let authenticator = authenticator(true);
        let mut phase = Phase::Fresh;
        let mut send = |request: &Request<'_>| send(&mut phase, &authenticator, version, request);
        assert_eq!(
            text(&send(&query)),
            "Unexpected message QUERY, expecting STARTUP or OPTIONS"
        );
        assert_eq!(
            text(&send(&login(b"\0u\0p"))),
            "Unexpected message AUTH_RESPONSE, expecting STARTUP or OPTIONS"
        );
        assert!(matches!(
            send(&Request::Options),
            Step::Reply(Response {
                body: Body::Supported(_),
                ..
            })
        ));
        assert!(matches!(
            send(&startup),
            Step::Negotiated(
                Response {
                    body: Body::Authenticate(AUTHENTICATOR_CLASS),
                    ..
                },
                _,
                _
            )
        ));
        assert_eq!(text(&send(&query)), "Unexpected message QUERY, expecting SASL_RESPONSE");
        assert_eq!(
            text(&send(&register)),
            "Unexpected message REGISTER, expecting SASL_RESPONSE"
        );
        assert!(matches!(
            send(&Request::Options),
            Step::Reply(Response {
                body: Body::Supported(_),
                ..
            })
        ));
        assert!(matches!(send(&login(b"\0u\0wrong")), Step::Refuse(_)));
        assert!(matches!(send(&login(b"\0u\0p")), Step::LoggedIn(..)));
        assert!(matches!(send(&query), Step::Dispatch));
        assert!(matches!(send(&register), Step::Register(_)));
        assert_eq!(
            text(&send(&startup)),
            "Unexpected message STARTUP, the connection is already initialized"
        );
    }
}

#[test]
fn responses_and_unknown_opcodes_are_refused() {
    for opcode_byte in [0, 2, 3, 4, 6, 8, 0x0C, 0x0E, 0x10, 0x11, 0xFF] {
        let header = Header {
            version: Version::V4,
            flags: 0,
            stream: 1,
            opcode_byte,
            length: 0,
        };
        let step = step(
            &mut Phase::Ready,
            &authenticator(false),
            Profile::Cassandra,
            HOME,
            None,
            &header,
            &Bytes::new(),
        );
        assert!(matches!(
            step,
            Step::Reply(Response {
                body: Body::Error(_),
                ..
            })
        ));
    }
}
