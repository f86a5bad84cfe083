//! What a client of table storage signs its requests with: SharedKeyLite, HMAC-SHA256 in base64 (Azure Storage, "Authorize with Shared Key").

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

/// A key of an account.
#[derive(Clone, Debug)]
pub(super) struct Signer(hmac::Key);

impl Signer {
    /// Of a key in base64. `None`: it is no base64.
    #[must_use]
    pub(super) fn new(key: &str) -> Option<Self> {
        let key = STANDARD.decode(key).ok()?;
        Some(Self(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// The signature of a text, in base64.
    #[must_use]
    pub(super) fn sign(&self, text: &str) -> String {
        STANDARD.encode(hmac::sign(&self.0, text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_that_of_rfc_4231() {
        let signer = Signer::new(&STANDARD.encode("Jefe")).unwrap();
        let hex = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let signature = STANDARD.decode(signer.sign("what do ya want for nothing?")).unwrap();
        assert_eq!(
            signature.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
            hex
        );
        assert!(Signer::new("no base64").is_none());
    }
}
