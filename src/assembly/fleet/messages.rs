//! The messages between the nodes of a fleet.
//!
//! ```text
//! question   kind, in the transport's envelope · body
//! answer     0: not the owner, nothing was done      1: done · body
//!
//! follow     question: JSON ([`Follow`])     answer: length u32 · JSON ([`Followed`]) · records
//! records    (is there u8 · key · value)*    key, value: length u32 · bytes
//! figures    question: path                  answer: JSON
//! forget     question: name of a node        answer: why not, or nothing
//! request    question: length u32 · JSON · body of the frame      answer: opcode u8 · flags u8 · body
//! ```

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::config::Config;
use crate::server::RelayedRequest;
use helenus_engine::engine::Asked;
use helenus_schema::schema::record::Change;
use helenus_types::wire::response::{Relayed, Response};
use helenus_types::wire::{Header, Opcode, Version};

/// What a question asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A command on partitions.
    Command(Asked),
    /// A request of a client, which the owner carries out.
    Request,
    /// What has changed in the catalog.
    Follow,
    /// Figures of the stores, by the path of the admin port.
    Figures,
    /// To forget a node that is down.
    Forget,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Command(Asked::Rows),
        Self::Command(Asked::RepeatableWrites),
        Self::Command(Asked::Writes),
        Self::Request,
        Self::Follow,
        Self::Figures,
        Self::Forget,
    ];

    /// Its number in an envelope.
    pub(super) fn number(self) -> u8 {
        let place = Self::ALL.iter().position(|kind| *kind == self);
        place.and_then(|place| u8::try_from(place + 1).ok()).unwrap_or_default()
    }

    pub(super) fn of(number: u8) -> Option<Self> {
        let place = usize::from(number).checked_sub(1)?;
        Self::ALL.get(place).copied()
    }

    /// Whether a question that may have arrived can be asked again.
    pub(super) const fn is_repeatable(self) -> bool {
        match self {
            Self::Command(asked) => asked.is_repeatable(),
            Self::Follow | Self::Figures => true,
            Self::Request | Self::Forget => false,
        }
    }
}

/// Whether an answer is one.
const NOT_OWNER: u8 = 0;
const DONE: u8 = 1;

/// The answer of a node that does not own the partitions: nothing was done.
pub(super) fn not_owner() -> Bytes {
    Bytes::from_static(&[NOT_OWNER])
}

/// An answer.
pub(super) fn done(body: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(1 + body.len());
    out.put_u8(DONE);
    out.extend_from_slice(body);
    out.into()
}

/// The body of an answer. `None` means that the node that was asked does not own the partitions.
pub(super) fn body_of(mut answer: Bytes) -> Option<Bytes> {
    (answer.try_get_u8() == Ok(DONE)).then_some(answer)
}

/// A node, as the others and their clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::assembly) struct Node {
    pub(in crate::assembly) name: String,
    /// Nil until it is known.
    pub(in crate::assembly) host_id: Uuid,
    /// Where clients connect.
    pub(in crate::assembly) address: SocketAddr,
    /// Where other nodes connect.
    pub(in crate::assembly) fleet_address: String,
    pub(in crate::assembly) data_center: String,
    pub(in crate::assembly) rack: String,
}

/// A node, and whether it has asked lately.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KnownNode {
    pub(super) node: Node,
    pub(super) is_up: bool,
    /// Whether it has seats in replica sets: it is up, or was so lately.
    pub(super) has_seats: bool,
    /// Since when it is up or down, by the owner's clock, milliseconds since 1970-01-01 UTC.
    pub(super) since_millis: i64,
}

/// The settings that are equal on all nodes of a fleet: with others, a node would open to everybody what needs a login elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Agreed {
    pub(super) has_logins: bool,
    pub(super) profile: String,
    pub(super) cluster_name: String,
}

impl Agreed {
    pub(super) fn of(config: &Config) -> Self {
        Self {
            has_logins: config.server.credentials.is_some(),
            profile: config.profile.to_string(),
            cluster_name: config.cluster_name.clone(),
        }
    }

    /// What differs from the settings of an owner, for the operator. `None` means nothing.
    pub(super) fn difference(&self, owner: &str, of_owner: &Self) -> Option<String> {
        let logins = |agreed: &Self| if agreed.has_logins { "on" } else { "off" };
        let settings = [
            ("login", logins(self), logins(of_owner)),
            ("profile", self.profile.as_str(), of_owner.profile.as_str()),
            (
                "cluster-name",
                self.cluster_name.as_str(),
                of_owner.cluster_name.as_str(),
            ),
        ];
        let (setting, own, other) = settings.into_iter().find(|(_, own, other)| own != other)?;
        Some(format!(
            "{setting} is {own} here and {other} on node {owner}, which owns the stores; it has to be the same on all nodes"
        ))
    }
}

/// The question of a follower.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Follow {
    /// Its name.
    pub(super) name: String,
    /// `None` means that it serves no clients yet.
    pub(super) node: Option<Node>,
    /// Drawn when the node started.
    pub(super) incarnation: u64,
    /// The owner whose catalog it has applied; 0 means none.
    pub(super) reign: u64,
    /// The number of that catalog.
    pub(super) number: u64,
    /// The nodes that it knows, for an owner that has just begun.
    pub(super) last: LastKnown,
}

/// What an edge knows of the nodes from the owner that answered it last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastKnown {
    pub(super) nodes: Vec<KnownNode>,
    /// The name of that owner. `None` means that none has answered.
    pub(super) owner: Option<String>,
    /// How long ago that was.
    pub(super) silent_millis: u64,
}

/// The answer to a follower.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Followed {
    pub(super) reign: u64,
    pub(super) number: u64,
    /// Rises when the roles have changed.
    pub(super) roles: u64,
    /// Whether the records are all that there are, and not those that have changed.
    pub(super) is_whole: bool,
    /// The secret of paging states, in hexadecimal digits.
    pub(super) paging_key: String,
    pub(super) nodes: Vec<KnownNode>,
    /// The owner's name.
    pub(super) owner: String,
    /// The owner's settings.
    pub(super) agreed: Agreed,
    /// Whether the owner's lease was not renewed in time and may end.
    pub(super) is_in_doubt: bool,
    /// Where another node of the name of the one that asks is up.
    pub(super) namesake: Option<String>,
    /// The newest put of the owner's lease: its incarnation and its number.
    pub(super) lease_put: Option<(String, u64)>,
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    out.extend_from_slice(bytes);
}

fn take_bytes(from: &mut Bytes) -> Option<Bytes> {
    let length = usize::try_from(from.try_get_u32().ok()?).ok()?;
    (length <= from.len()).then(|| from.split_to(length))
}

fn with_json(head: &impl Serialize, rest: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(&mut out, &serde_json::to_vec(head).unwrap_or_default());
    out.extend_from_slice(rest);
    out
}

fn json_of<T: for<'a> Deserialize<'a>>(from: &mut Bytes) -> Option<T> {
    serde_json::from_slice(&take_bytes(from)?).ok()
}

pub(super) fn encode_follow(follow: &Follow) -> Bytes {
    with_json(follow, &[]).into()
}

pub(super) fn decode_follow(mut body: Bytes) -> Option<Follow> {
    json_of(&mut body)
}

pub(super) fn encode_followed(followed: &Followed, changes: &[Change]) -> Vec<u8> {
    let mut records = Vec::new();
    for change in changes {
        records.put_u8(change.value.is_some().into());
        put_bytes(&mut records, &change.key);
        put_bytes(&mut records, change.value.as_deref().unwrap_or_default());
    }
    with_json(followed, &records)
}

pub(super) fn decode_followed(mut body: Bytes) -> Option<(Followed, Vec<Change>)> {
    let followed = json_of(&mut body)?;
    let mut changes = Vec::new();
    while !body.is_empty() {
        let is_there = body.try_get_u8().ok()? == 1;
        let key = take_bytes(&mut body)?.to_vec();
        let value = take_bytes(&mut body)?.to_vec();
        changes.push(Change {
            key,
            value: is_there.then_some(value),
        });
    }
    Some((followed, changes))
}

#[derive(Serialize, Deserialize)]
struct RequestHead {
    client: SocketAddr,
    user: Option<String>,
    keyspace: Option<String>,
    version: u8,
    flags: u8,
    opcode: u8,
    prepared: Vec<(Option<String>, String)>,
}

pub(super) fn encode_request(request: &RelayedRequest) -> Bytes {
    let text = |text: &Arc<str>| text.to_string();
    let head = RequestHead {
        client: request.client,
        user: request.user.as_ref().map(text),
        keyspace: request.keyspace.as_ref().map(text),
        version: request.header.version.number(),
        flags: request.header.flags,
        opcode: request.header.opcode_byte,
        prepared: request
            .prepared
            .iter()
            .map(|(keyspace, statement)| (keyspace.as_ref().map(text), statement.to_string()))
            .collect(),
    };
    with_json(&head, &request.body).into()
}

pub(super) fn decode_request(mut body: Bytes) -> Option<RelayedRequest> {
    let head: RequestHead = json_of(&mut body)?;
    let header = Header {
        version: Version::from_byte(head.version)?,
        flags: head.flags,
        stream: 0,
        opcode_byte: head.opcode,
        length: body.len(),
    };
    let prepared = head.prepared.into_iter();
    Some(RelayedRequest {
        client: head.client,
        user: head.user.map(Arc::from),
        keyspace: head.keyspace.map(Arc::from),
        header,
        body,
        prepared: prepared
            .map(|(keyspace, text)| (keyspace.map(Arc::from), Arc::from(text)))
            .collect(),
    })
}

pub(super) fn encode_response(response: &Response, version: Version) -> Vec<u8> {
    let mut out = vec![response.body.opcode().byte(), response.flags(version)];
    response.write(&mut out, version);
    out
}

pub(super) fn decode_response(mut body: Bytes) -> Option<Relayed> {
    Some(Relayed {
        opcode: Opcode::from_byte(body.try_get_u8().ok()?)?,
        flags: body.try_get_u8().ok()?,
        bytes: body,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> Node {
        Node {
            name: "a".to_owned(),
            host_id: Uuid::nil(),
            address: "127.0.0.1:9042".parse().unwrap(),
            fleet_address: "127.0.0.1:7000".to_owned(),
            data_center: "d".to_owned(),
            rack: "r".to_owned(),
        }
    }

    #[test]
    fn kinds_keep_their_numbers() {
        for (number, kind) in (1..).zip(Kind::ALL) {
            assert_eq!((kind.number(), Kind::of(number)), (number, Some(kind)));
        }
        assert_eq!((Kind::of(0), Kind::of(8)), (None, None));
    }

    #[test]
    fn nodes_of_different_settings_are_told_which() {
        let agreed = Agreed {
            has_logins: true,
            profile: "cassandra".to_owned(),
            cluster_name: "c".to_owned(),
        };
        assert_eq!(agreed.difference("a", &agreed), None);
        for (other, named) in [
            (
                Agreed {
                    has_logins: false,
                    ..agreed.clone()
                },
                "login is on here and off on node a",
            ),
            (
                Agreed {
                    profile: "cosmos".to_owned(),
                    ..agreed.clone()
                },
                "profile is cassandra here and cosmos on node a",
            ),
            (
                Agreed {
                    cluster_name: "d".to_owned(),
                    ..agreed.clone()
                },
                "cluster-name is c here and d on node a",
            ),
        ] {
            let told = agreed.difference("a", &other).unwrap();
            assert!(told.starts_with(named), "{told}");
        }
    }

    #[test]
    fn messages_come_back() {
        let follow = Follow {
            name: "a".to_owned(),
            node: Some(node()),
            incarnation: 9,
            reign: 3,
            number: 4,
            last: LastKnown {
                nodes: vec![KnownNode {
                    node: node(),
                    is_up: true,
                    has_seats: true,
                    since_millis: 5,
                }],
                owner: Some("a".to_owned()),
                silent_millis: 6,
            },
        };
        assert_eq!(decode_follow(encode_follow(&follow)), Some(follow));
        let followed = Followed {
            reign: 1,
            number: 2,
            roles: 3,
            is_whole: true,
            paging_key: "00".to_owned(),
            nodes: Vec::new(),
            owner: "a".to_owned(),
            agreed: Agreed::default(),
            is_in_doubt: true,
            namesake: Some("127.0.0.1:7000".to_owned()),
            lease_put: Some(("a-1".to_owned(), 7)),
        };
        let change = |value: Option<&[u8]>| Change {
            key: b"k".to_vec(),
            value: value.map(<[u8]>::to_vec),
        };
        let changes = vec![change(Some(b"v")), change(None), change(Some(b""))];
        let bytes: Bytes = encode_followed(&followed, &changes).into();
        for end in 0..bytes.len() {
            let cut = decode_followed(bytes.slice(..end));
            assert!(cut.is_none_or(|(_, records)| records.len() < changes.len()), "{end}");
        }
        assert_eq!(decode_followed(bytes), Some((followed, changes)));
        let request = RelayedRequest {
            client: "127.0.0.1:5".parse().unwrap(),
            user: Some("u".into()),
            keyspace: None,
            header: Header {
                version: Version::V4,
                flags: 2,
                stream: 0,
                opcode_byte: 7,
                length: 3,
            },
            body: Bytes::from_static(b"abc"),
            prepared: vec![(None, "SELECT".into())],
        };
        assert_eq!(decode_request(encode_request(&request)), Some(request));
        assert_eq!(body_of(done(b"x")).as_deref(), Some(&b"x"[..]));
        assert_eq!(body_of(not_owner()), None);
    }
}
