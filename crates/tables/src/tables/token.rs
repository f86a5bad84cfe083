//! Continuation tokens: `1!16!cGs4MDEwMTZlOA--`, a text in base64 with its length before it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::fault::Fault;

/// The token of a text. It is safe in addresses: `=` is written `-`, `/` is `_`, `+` is `*`.
#[must_use]
pub fn token(text: &str) -> String {
    let encoded = STANDARD.encode(text);
    let safe = encoded.replace('=', "-").replace('/', "_").replace('+', "*");
    format!("1!{}!{safe}", safe.len())
}

/// The text of a token.
///
/// # Errors
/// The token is none of ours.
pub fn text(token: &str) -> Result<String, Fault> {
    let read = || {
        let (length, safe) = token.strip_prefix("1!")?.split_once('!')?;
        if length.parse::<usize>().ok()? != safe.len() {
            return None;
        }
        let encoded = safe.replace('-', "=").replace('_', "/").replace('*', "+");
        String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
    };
    read().ok_or(Fault::InvalidInput)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn token_has_the_form_of_the_service() {
        assert_eq!(token("pk801016e8"), "1!16!cGs4MDEwMTZlOA--");
        for foreign in ["", "x", "1!3!YQ==", "1!4!====", "2!4!YQ--", "1!4!YQ-- ", "1!4!_w--"] {
            assert_eq!(text(foreign), Err(Fault::InvalidInput), "{foreign}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn token_is_read_back(key in "\\PC{0,12}|[\u{1F600}\u{E000}>?~]{0,6}") {
            let token = token(&key);
            prop_assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!-_*".contains(&byte)));
            prop_assert_eq!(text(&token), Ok(key));
        }

        #[test]
        fn any_token_is_checked(token in "\\PC{0,20}|1![0-9]!\\PC{0,9}") {
            let _ = text(&token);
        }
    }
}
