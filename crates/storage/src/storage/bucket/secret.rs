//! The secret by which the nodes of a fleet know each other: who may read the prefix may be a node.
//!
//! ```text
//! PREFIX/fleet/secret   helenus secret 1 ⏎ <current, 64 hex digits> ⏎ <next, 64 hex digits, while it is changed> ⏎
//!                       put if absent, after the prefix was claimed; replaced by its tag only
//! ```
//! **A change without a stop.** [`SecretChange::Begin`] adds the next secret. Each node reads the object from time to time,
//! proves every secret that it has read, and accepts each of them. Once all nodes have read it, [`SecretChange::End`]
//! leaves the next alone. Both may be repeated: a put whose answer was lost is recognised by its content, which is random.
//!
//! No error and no log shows the object's content.

use std::time::Duration;

use slatedb::object_store::path::Path;
use slatedb::object_store::{Error as StoreError, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion};

use super::Reached;
use super::found::{is_throttled, refusal};
use super::peers::{PeerSecrets, SecretBytes, SecretChange};
use crate::storage::bucket_refusal::Refusal;

const SECRET: &str = "fleet/secret";
const FORMAT: &str = "helenus secret 1";

/// What the first line of every version begins with.
const FORMATS: &str = "helenus secret ";

/// Puts that may fail before the bucket counts as unreachable.
const ATTEMPTS_MAX: u32 = 8;

/// The time before a put is repeated.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// How long one request may take.
const REQUEST_MAX: Duration = Duration::from_secs(3);

impl SecretChange {
    /// The secrets after it. `None` means that nothing is to be done.
    fn of(self, secrets: &PeerSecrets) -> Option<PeerSecrets> {
        let (current, next) = match (self, secrets.next) {
            (Self::Begin(next), None) => (secrets.current, Some(next)),
            (Self::End, Some(next)) => (next, None),
            (Self::Begin(_), Some(_)) | (Self::End, None) => return None,
        };
        Some(PeerSecrets { current, next })
    }
}

fn hex(secret: &SecretBytes) -> String {
    secret.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn of_hex(line: &str) -> Option<SecretBytes> {
    let mut secret = SecretBytes::default();
    if line.len() != 2 * secret.len() {
        return None;
    }
    for (byte, digits) in secret.iter_mut().zip(line.as_bytes().chunks(2)) {
        let digits = digits.iter().map(|digit| char::from(*digit).to_digit(16));
        let value = digits.reduce(|high, low| Some(high? * 16 + low?))??;
        *byte = u8::try_from(value).ok()?;
    }
    Some(secret)
}

impl PeerSecrets {
    fn encode(&self) -> String {
        let next = self.next.map(|next| format!("{}\n", hex(&next))).unwrap_or_default();
        format!("{FORMAT}\n{}\n{next}", hex(&self.current))
    }

    fn decode(body: &[u8]) -> Result<Self, Refusal> {
        let damaged = Refusal::DamagedSecret { object: SECRET };
        let text = std::str::from_utf8(body).map_err(|_| damaged.clone())?;
        let mut lines = text.lines();
        match lines.next() {
            Some(FORMAT) => {}
            // Anything else may be a secret, and is not shown.
            Some(other) if other.starts_with(FORMATS) => {
                return Err(Refusal::OtherFormat {
                    object: SECRET,
                    found: other
                        .chars()
                        .filter(|c| !c.is_control())
                        .take(FORMATS.len() + 4)
                        .collect(),
                    known: FORMAT,
                });
            }
            _ => return Err(damaged),
        }
        let current = lines.next().and_then(of_hex).ok_or(damaged.clone())?;
        let next = lines
            .next()
            .map(|line| of_hex(line).ok_or(damaged.clone()))
            .transpose()?;
        match lines.next() {
            None => Ok(Self { current, next }),
            Some(_) => Err(damaged),
        }
    }
}

/// The fleet's secrets; if there are none yet, `draw` becomes the secret. The prefix must have been claimed.
///
/// # Errors
/// The bucket cannot be reached; the object is damaged, or another version's.
pub(super) async fn secrets(reached: &Reached, draw: SecretBytes) -> Result<PeerSecrets, Refusal> {
    let wanted = PeerSecrets {
        current: draw,
        next: None,
    };
    for _ in 0..ATTEMPTS_MAX {
        if let Some((found, _)) = read(reached).await? {
            return Ok(found);
        }
        if put(reached, &wanted, PutMode::Create).await? {
            return Ok(wanted);
        }
    }
    Err(not_put())
}

/// Carries out one step of a change; returns the secrets after it.
///
/// # Errors
/// There is no secret yet; the bucket cannot be reached; the object is damaged, or another version's.
pub(super) async fn change(reached: &Reached, change: SecretChange) -> Result<PeerSecrets, Refusal> {
    for _ in 0..ATTEMPTS_MAX {
        let Some((found, tag)) = read(reached).await? else {
            return Err(Refusal::NoSecret { object: SECRET });
        };
        let Some(wanted) = change.of(&found) else {
            return Ok(found);
        };
        if put(reached, &wanted, PutMode::Update(tag)).await? {
            return Ok(wanted);
        }
    }
    Err(not_put())
}

fn not_put() -> Refusal {
    Refusal::Unreachable {
        what: format!("{SECRET} can be read and not be put"),
    }
}

fn late<T>(_: T) -> Refusal {
    Refusal::Unreachable {
        what: format!("no answer about {SECRET} in {} s", REQUEST_MAX.as_secs()),
    }
}

/// `None` means that there is none.
async fn read(reached: &Reached) -> Result<Option<(PeerSecrets, UpdateVersion)>, Refusal> {
    let request = async {
        let got = match reached.objects.get(&Path::from(SECRET)).await {
            Err(error @ StoreError::NotFound { .. }) => {
                return match refusal(&error) {
                    // Some stores answer 404 to these, too.
                    wrong @ (Refusal::NoBucket | Refusal::WrongCredentials | Refusal::Expired) => Err(wrong),
                    _ => Ok(None),
                };
            }
            got => got.map_err(|error| refusal(&error))?,
        };
        let tag = UpdateVersion {
            e_tag: got.meta.e_tag.clone(),
            version: got.meta.version.clone(),
        };
        let body = got.bytes().await.map_err(|error| refusal(&error))?;
        Ok(Some((PeerSecrets::decode(&body)?, tag)))
    };
    tokio::time::timeout(REQUEST_MAX, request).await.map_err(late)?
}

/// Whether it was put. `false` means that it is to be read again: the object is another one, or the answer was lost.
async fn put(reached: &Reached, secrets: &PeerSecrets, mode: PutMode) -> Result<bool, Refusal> {
    let (at, body) = (Path::from(SECRET), PutPayload::from(secrets.encode()));
    let request = reached.objects.put_opts(&at, body, PutOptions::from(mode));
    match tokio::time::timeout(REQUEST_MAX, request).await {
        Ok(Ok(_)) => return Ok(true),
        Ok(Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. } | StoreError::NotFound { .. })) => {
            return Ok(false);
        }
        Ok(Err(error)) if !is_throttled(&error) && !refusal(&error).may_pass() => return Err(refusal(&error)),
        // It may have been put.
        Ok(Err(_)) | Err(_) => {}
    }
    tokio::time::sleep(RETRY_INTERVAL.max(reached.change_interval)).await;
    Ok(false)
}

#[cfg(test)]
#[path = "secret_tests.rs"]
mod tests;
