//! What surrounds a command's message on its way to the owner: what the owner needs of the request beside the command.
//!
//! ```text
//! question   version u8 · consistency u8 · page u64 · is last u8 · message
//! ```
//! All parts with the same `page` see one snapshot of a store. 0: the page has one part.

use bytes::{Buf, BufMut, Bytes};

use helenus_types::consistency::Consistency;

const VERSION: u8 = 1;

/// A message with what the owner needs beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Question {
    /// The level of the request.
    pub(in crate::engine) consistency: Consistency,
    /// The page whose parts share their moments. 0 means that there is one part.
    pub(in crate::engine) page: u64,
    /// Whether no other part of the page follows this one.
    pub(in crate::engine) is_last: bool,
    /// The command.
    pub(in crate::engine) message: Bytes,
}

impl Question {
    pub(in crate::engine) fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(11 + self.message.len());
        out.put_u8(VERSION);
        let level = Consistency::ALL.iter().position(|level| *level == self.consistency);
        out.put_u8(level.and_then(|place| u8::try_from(place).ok()).unwrap_or(u8::MAX));
        out.put_u64(self.page);
        out.put_u8(self.is_last.into());
        out.extend_from_slice(&self.message);
        out.into()
    }

    /// `None` means that the bytes are no question of this version.
    pub(in crate::engine) fn decode(bytes: &Bytes) -> Option<Self> {
        let mut rest = bytes.clone();
        if rest.try_get_u8().ok()? != VERSION {
            return None;
        }
        let level = usize::from(rest.try_get_u8().ok()?);
        Some(Self {
            consistency: Consistency::ALL.get(level).copied().unwrap_or(Consistency::NodeLocal),
            page: rest.try_get_u64().ok()?,
            is_last: match rest.try_get_u8().ok()? {
                0 => false,
                1 => true,
                _ => return None,
            },
            message: rest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_comes_back_and_any_other_bytes_are_refused() {
        let question = Question {
            consistency: Consistency::LocalOne,
            page: 7,
            is_last: true,
            message: Bytes::from_static(b"read"),
        };
        let bytes = question.encode();
        assert_eq!(Question::decode(&bytes), Some(question));
        assert_eq!(Question::decode(&bytes.slice(..10)), None);
        assert_eq!(Question::decode(&Bytes::from_static(b"\x02")), None);
    }
}
