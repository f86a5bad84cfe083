//! A store of trusted certificates as Java reads it: PKCS #12 (RFC 7292).
//!
//! ```text
//! PFX = version 3 │ authSafe = data: SafeContents = a bag for each certificate │ MAC: HMAC-SHA-256 over the authSafe's content
//! bag = certificate as DER │ attributes: its alias, and that it is trusted for everything (an attribute of Java's, without which Java
//!                            shows no entry)
//! ```
//! Certificates are public, so they are not encrypted; the MAC alone needs the password. There is no private key in it.

use sha2::{Digest, Sha256};

/// Rounds of the key derivation. Java's own default.
const ROUNDS: u16 = 10_000;

/// Block size of SHA-256 in bytes.
const BLOCK_BYTES: usize = 64;

/// The purpose of the derived key: a MAC (RFC 7292 appendix B.3).
const FOR_MAC: u8 = 3;

/// Tags of DER.
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const OID: u8 = 0x06;
const BMP_STRING: u8 = 0x1E;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const EXPLICIT: u8 = 0xA0;

/// 1.2.840.113549.1.7.1
const DATA: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x01];
/// 1.2.840.113549.1.12.10.1.3
const CERTIFICATE_BAG: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x0C, 0x0A, 0x01, 0x03];
/// 1.2.840.113549.1.9.22.1
const X509: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x16, 0x01];
/// 1.2.840.113549.1.9.20
const FRIENDLY_NAME: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x14];
/// 2.16.840.1.113894.746875.1.1
const TRUSTED_KEY_USAGE: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x86, 0xF9, 0x66, 0xAD, 0xCA, 0x7B, 0x01, 0x01];
/// 2.5.29.37.0
const ANY_USAGE: &[u8] = &[0x55, 0x1D, 0x25, 0x00];
/// 2.16.840.1.101.3.4.2.1
const SHA_256: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01];
/// NULL, the parameters of the digest.
const NULL: &[u8] = &[0x05, 0x00];

/// A store of certificates, each as DER. The first has the alias `helenus`, others a number more.
#[must_use]
pub(super) fn trust_store(certificates: &[&[u8]], password: &str, salt: &[u8]) -> Vec<u8> {
    let bags: Vec<u8> = certificates
        .iter()
        .enumerate()
        .flat_map(|(number, der)| bag(number, der))
        .collect();
    let contents = der(SEQUENCE, &[&bags]);
    let safes = der(SEQUENCE, &[&data(&contents)]);
    let mac = hmac(&mac_key(password, salt), &safes);
    let algorithm = der(SEQUENCE, &[&der(OID, &[SHA_256]), NULL]);
    let digest = der(SEQUENCE, &[&algorithm, &der(OCTETS, &[&mac])]);
    let rounds = der(INTEGER, &[&ROUNDS.to_be_bytes()]);
    let mac_data = der(SEQUENCE, &[&digest, &der(OCTETS, &[salt]), &rounds]);
    der(SEQUENCE, &[&der(INTEGER, &[&[3]]), &data(&safes), &mac_data])
}

/// Octets as a ContentInfo of the kind `data`.
fn data(content: &[u8]) -> Vec<u8> {
    der(
        SEQUENCE,
        &[&der(OID, &[DATA]), &der(EXPLICIT, &[&der(OCTETS, &[content])])],
    )
}

fn bag(number: usize, certificate: &[u8]) -> Vec<u8> {
    let alias = match number {
        0 => "helenus".to_owned(),
        number => format!("helenus-{number}"),
    };
    let attribute = |kind: &[u8], value: &[u8]| der(SEQUENCE, &[&der(OID, &[kind]), &der(SET, &[value])]);
    let name = attribute(FRIENDLY_NAME, &der(BMP_STRING, &[&utf16(&alias)]));
    let trusted = attribute(TRUSTED_KEY_USAGE, &der(OID, &[ANY_USAGE]));
    let octets = der(EXPLICIT, &[&der(OCTETS, &[certificate])]);
    let content = der(EXPLICIT, &[&der(SEQUENCE, &[&der(OID, &[X509]), &octets])]);
    der(
        SEQUENCE,
        &[&der(OID, &[CERTIFICATE_BAG]), &content, &der(SET, &[&name, &trusted])],
    )
}

/// A value in DER: tag, length, parts.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let bytes = length.to_be_bytes();
    let significant = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len() - 1);
    let significant = bytes.get(significant..).unwrap_or_default();
    let mut out = vec![tag];
    if length >= 0x80 {
        // At most eight bytes follow.
        out.push(0x80 | significant.len().to_le_bytes()[0]);
    }
    out.extend(significant);
    out.extend(parts.concat());
    out
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

/// The key of the MAC (RFC 7292 appendix B.2): one block of SHA-256 is enough.
fn mac_key(password: &str, salt: &[u8]) -> [u8; 32] {
    let repeated = |bytes: &[u8]| -> Vec<u8> {
        let length = bytes.len().div_ceil(BLOCK_BYTES) * BLOCK_BYTES;
        bytes.iter().copied().cycle().take(length).collect()
    };
    // UTF-16 with a terminating zero character.
    let password = [utf16(password), vec![0, 0]].concat();
    let mut hash = Sha256::new();
    hash.update([FOR_MAC; BLOCK_BYTES]);
    hash.update(repeated(salt));
    hash.update(repeated(&password));
    let mut key: [u8; 32] = hash.finalize().into();
    for _ in 1..ROUNDS {
        key = Sha256::digest(key).into();
    }
    key
}

/// RFC 2104.
fn hmac(key: &[u8; 32], message: &[u8]) -> [u8; 32] {
    let pad = |byte: u8| -> Vec<u8> {
        key.iter()
            .copied()
            .chain([0; BLOCK_BYTES - 32])
            .map(|one| one ^ byte)
            .collect()
    };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(message).finalize();
    Sha256::new()
        .chain_update(pad(0x5C))
        .chain_update(inner)
        .finalize()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_short_or_counted() {
        assert_eq!(der(OCTETS, &[&[7; 3]]), [4, 3, 7, 7, 7]);
        assert_eq!(der(OCTETS, &[&[]]), [4, 0]);
        assert_eq!(der(OCTETS, &[&[0; 0x80]]).get(..3), Some(&[4, 0x81, 0x80][..]));
        assert_eq!(der(OCTETS, &[&[0; 0x1234]]).get(..4), Some(&[4, 0x82, 0x12, 0x34][..]));
    }

    /// RFC 4231 §4.2 with its key of 20 bytes filled up, which is the same key.
    #[test]
    fn the_mac_is_the_published_one() {
        let mut key = [0; 32];
        key.iter_mut().take(20).for_each(|byte| *byte = 0x0B);
        let hex: String = hmac(&key, b"Hi There")
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(hex, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    }
}
