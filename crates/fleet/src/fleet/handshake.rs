//! The beginning of a connection: both sides name themselves and prove that they know the cluster's secret.
//!
//! ```text
//! asking                                     answering
//! Hello: nonce, who                    ──►
//!                                      ◄──   Challenge: nonce, who, proofs     or Refused: why, who
//! Proof: proofs                        ──►
//!                                      ◄──   Welcome                           or Refused
//! ```
//! A proof is HMAC-SHA256 by the secret over the side's own label and both first messages, nonces included. So a proof of
//! one side is none of the other, and none of another connection. While the secret is changed two are valid: a side
//! proves each that it knows, and one that both know is enough.
//!
//! Deliberately absent: encryption (`tls`).

use std::fmt;

use ring::hmac;

use super::envelope::{Envelope, Header, Kind};
use super::link::Link;
use super::transport::{AskError, BODY_BYTES_MAX, Cause, PeerName, Refusal};

const NONCE_BYTES: usize = 32;
const PROOF_BYTES: usize = 32;
const SECRETS_MAX: usize = 2;

/// Longest name of a node or a cluster, in bytes.
const NAME_BYTES_MAX: usize = 255;

const ASKING: &[u8] = b"helenus fleet 1 asking";
const ANSWERING: &[u8] = b"helenus fleet 1 answering";

/// A random value that is used once.
pub type Nonce = [u8; NONCE_BYTES];

/// A secret that all nodes of a cluster share.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// A secret of these random bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key of its HMACs.
    pub(super) fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0)
    }
}

impl fmt::Debug for Secret {
    /// Prints no secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Secret").finish_non_exhaustive()
    }
}

/// The secrets that are valid now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secrets {
    /// The secret.
    pub current: Secret,
    /// The one before it or after it. `None` means that it is not being changed.
    pub other: Option<Secret>,
}

impl Secrets {
    fn keys(&self) -> impl Iterator<Item = hmac::Key> {
        let all = std::iter::once(&self.current).chain(&self.other);
        all.map(Secret::key)
    }
}

/// The versions of formats that a node can read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formats {
    /// The oldest.
    pub oldest: u32,
    /// The newest.
    pub newest: u32,
}

/// Who a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its name, at most 255 bytes.
    pub name: PeerName,
    /// The identity of the database, at most 255 bytes.
    pub cluster: String,
    /// Its formats.
    pub formats: Formats,
}

/// The other side of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) name: PeerName,
}

/// Whether two nodes fit together.
fn fit(asker: &Identity, answerer: &Identity) -> Result<(), Refusal> {
    if asker.cluster != answerer.cluster {
        return Err(Refusal::Cluster {
            asker: asker.name.to_string(),
            asker_cluster: asker.cluster.clone(),
            answerer: answerer.name.to_string(),
            answerer_cluster: answerer.cluster.clone(),
        });
    }
    if asker.name == answerer.name {
        return Err(Refusal::Name {
            name: asker.name.to_string(),
        });
    }
    let newest = asker.formats.newest.min(answerer.formats.newest);
    if asker.formats.oldest.max(answerer.formats.oldest) > newest {
        return Err(Refusal::Formats {
            asker: asker.name.to_string(),
            asker_oldest: asker.formats.oldest,
            asker_newest: asker.formats.newest,
            answerer: answerer.name.to_string(),
            answerer_oldest: answerer.formats.oldest,
            answerer_newest: answerer.formats.newest,
        });
    }
    Ok(())
}

/// The first message of a side.
#[derive(Clone, Debug, PartialEq, Eq)]
struct First {
    nonce: Nonce,
    who: Identity,
}

fn put_name(out: &mut Vec<u8>, name: &str) {
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let name = name.get(..end).unwrap_or_default();
    out.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
    out.extend_from_slice(name.as_bytes());
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn take_name(bytes: &mut &[u8]) -> Option<String> {
    let length = *take(bytes, 1)?.first()?;
    let name = std::str::from_utf8(take(bytes, length.into())?).ok()?;
    (!name.chars().any(char::is_control)).then(|| name.to_owned())
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*take(bytes, 4)?.first_chunk()?))
}

impl Identity {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.formats.oldest.to_be_bytes());
        out.extend_from_slice(&self.formats.newest.to_be_bytes());
        put_name(out, self.name.as_str());
        put_name(out, &self.cluster);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let (oldest, newest) = (take_u32(bytes)?, take_u32(bytes)?);
        Some(Self {
            formats: Formats { oldest, newest },
            name: take_name(bytes)?.into(),
            cluster: take_name(bytes)?,
        })
    }
}

impl First {
    fn encode(&self) -> Vec<u8> {
        let mut out = self.nonce.to_vec();
        self.who.encode(&mut out);
        out
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self {
            nonce: *take(bytes, NONCE_BYTES)?.first_chunk()?,
            who: Identity::take(bytes)?,
        })
    }
}

/// What both sides prove: the two first messages.
struct Transcript {
    asking: Vec<u8>,
    answering: Vec<u8>,
}

impl Transcript {
    /// What one side signs. With lengths, so that no two transcripts are the same bytes.
    fn message(&self, label: &[u8]) -> Vec<u8> {
        let mut message = Vec::new();
        for part in [label, &self.asking, &self.answering] {
            message.extend_from_slice(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            message.extend_from_slice(part);
        }
        message
    }

    /// Appends the proofs of one side, one for each secret.
    fn prove(&self, secrets: &Secrets, label: &[u8], out: &mut Vec<u8>) {
        let message = self.message(label);
        for key in secrets.keys() {
            out.extend_from_slice(hmac::sign(&key, &message).as_ref());
        }
    }

    /// Whether one of the proofs is by one of the secrets.
    fn is_proved(&self, secrets: &Secrets, label: &[u8], proofs: &[u8]) -> bool {
        let message = self.message(label);
        let is_by = |key: hmac::Key| {
            let mut proofs = proofs.chunks(PROOF_BYTES).take(SECRETS_MAX);
            proofs.any(|proof| hmac::verify(&key, &message, proof).is_ok())
        };
        secrets.keys().any(is_by)
    }
}

/// Why a connection was not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failed {
    Refused(Refusal),
    Broken(Cause),
}

impl From<Cause> for Failed {
    fn from(cause: Cause) -> Self {
        Self::Broken(cause)
    }
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Failed> for AskError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Refused(refusal) => Self::Refused(refusal),
            Failed::Broken(cause) => Self::NotSent(cause),
        }
    }
}

const fn protocol(what: &'static str) -> Failed {
    Failed::Refused(Refusal::Protocol(what))
}

/// What a refusal says on the wire.
const REFUSED_UNFIT: u8 = 1;
const REFUSED_SECRET: u8 = 2;
const REFUSED_LEAVING: u8 = 3;

/// Names this node to the one that it connected to, and proves itself.
pub(super) async fn ask(link: &mut Link, who: &Identity, secrets: &Secrets, nonce: Nonce) -> Result<Peer, Failed> {
    let first = First {
        nonce,
        who: who.clone(),
    };
    let hello = first.encode();
    link.send(Header::new(Kind::Hello, 0), &hello).await?;
    let challenge = link.receive().await?;
    let mut bytes = match challenge.header.kind {
        Kind::Challenge => &challenge.body[..],
        _ => return Err(refused(who, &challenge)),
    };
    let whole = bytes;
    let answerer = First::take(&mut bytes).ok_or(protocol("no challenge"))?;
    fit(who, &answerer.who)?;
    let transcript = Transcript {
        asking: hello,
        answering: whole.strip_suffix(bytes).unwrap_or_default().to_vec(),
    };
    if !transcript.is_proved(secrets, ANSWERING, bytes) {
        return Err(Refusal::Secret.into());
    }
    let mut proofs = Vec::new();
    transcript.prove(secrets, ASKING, &mut proofs);
    link.send(Header::new(Kind::Proof, 0), &proofs).await?;
    let welcome = link.receive().await?;
    if welcome.header.kind != Kind::Welcome {
        return Err(refused(who, &welcome));
    }
    link.trust(BODY_BYTES_MAX);
    Ok(Peer {
        name: answerer.who.name,
    })
}

/// Why the other side refused.
fn refused(asker: &Identity, message: &Envelope) -> Failed {
    let mut bytes = &message.body[..];
    let code = take(&mut bytes, 1).and_then(<[u8]>::first);
    match (message.header.kind, code, Identity::take(&mut bytes)) {
        (Kind::Refused, Some(&REFUSED_UNFIT), Some(answerer)) => match fit(asker, &answerer) {
            Err(refusal) => refusal.into(),
            Ok(()) => protocol("a refusal without a reason"),
        },
        (Kind::Refused, Some(&REFUSED_SECRET), _) => Refusal::Secret.into(),
        (Kind::Refused, Some(&REFUSED_LEAVING), _) => Cause::Leaving.into(),
        _ => protocol("an answer of another kind"),
    }
}

/// Lets the node that connected name itself and prove itself. `is_leaving` means that no connection is accepted any more.
pub(super) async fn answer(
    link: &mut Link,
    who: &Identity,
    secrets: &Secrets,
    nonce: Nonce,
    is_leaving: bool,
) -> Result<Peer, Failed> {
    let hello = link.receive().await?;
    let mut bytes = &hello.body[..];
    let asker = match hello.header.kind {
        Kind::Hello => First::take(&mut bytes).filter(|_| bytes.is_empty()),
        _ => None,
    };
    let asker = asker.ok_or(protocol("no greeting"))?;
    if is_leaving {
        refuse(link, who, REFUSED_LEAVING).await?;
        return Err(Cause::Leaving.into());
    }
    if let Err(refusal) = fit(&asker.who, who) {
        refuse(link, who, REFUSED_UNFIT).await?;
        return Err(refusal.into());
    }
    let first = First {
        nonce,
        who: who.clone(),
    };
    let mut challenge = first.encode();
    let transcript = Transcript {
        asking: hello.body.to_vec(),
        answering: challenge.clone(),
    };
    transcript.prove(secrets, ANSWERING, &mut challenge);
    link.send(Header::new(Kind::Challenge, 0), &challenge).await?;
    let proof = link.receive().await?;
    if proof.header.kind != Kind::Proof || !transcript.is_proved(secrets, ASKING, &proof.body) {
        refuse(link, who, REFUSED_SECRET).await?;
        return Err(Refusal::Secret.into());
    }
    link.send(Header::new(Kind::Welcome, 0), &[]).await?;
    link.trust(BODY_BYTES_MAX);
    Ok(Peer { name: asker.who.name })
}

async fn refuse(link: &mut Link, who: &Identity, code: u8) -> Result<(), Cause> {
    let mut body = vec![code];
    who.encode(&mut body);
    link.send(Header::new(Kind::Refused, 0), &body).await
}
