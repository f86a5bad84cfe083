//! Tokens as system tables show them.

use bytes::Bytes;

use helenus_schema::schema::encode::{list, text};

pub(super) fn tokens(tokens: &[i64]) -> Bytes {
    let mut texts: Vec<Bytes> = tokens.iter().map(|token| text(&token.to_string())).collect();
    texts.sort();
    list(&texts)
}
