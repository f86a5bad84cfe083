//! Cross-origin requests: what browsers ask before a request, and what answers tell them. Pure.
//!
//! Source: Cross-Origin Resource Sharing (CORS) support for Azure Storage.

use http::{HeaderMap, header};

use super::fault::Fault;
use super::xml::CorsRule;

/// Headers of an answer.
type Headers = Vec<(&'static str, String)>;

fn text(headers: &HeaderMap, name: impl header::AsHeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

impl CorsRule {
    fn allows_origin(&self, origin: &str) -> bool {
        self.origins.iter().any(|own| own == "*" || own == origin)
    }

    fn allows_method(&self, method: &str) -> bool {
        self.methods.iter().any(|own| own == method)
    }

    fn allows_headers(&self, asked: &str) -> bool {
        let mut asked = asked
            .split(',')
            .map(|name| name.trim().to_ascii_lowercase())
            .filter(|name| !name.is_empty());
        asked.all(|name| {
            self.headers.iter().any(|own| match own.strip_suffix('*') {
                Some(begin) => name.starts_with(&begin.to_ascii_lowercase()),
                None => own.eq_ignore_ascii_case(&name),
            })
        })
    }

    /// What a browser may show the script: the origin, or anyone.
    fn origin_headers(&self, origin: &str) -> Headers {
        if self.origins.iter().any(|own| own == "*") {
            return vec![("Access-Control-Allow-Origin", "*".to_owned())];
        }
        vec![
            ("Access-Control-Allow-Origin", origin.to_owned()),
            ("Access-Control-Allow-Credentials", "true".to_owned()),
        ]
    }
}

/// The origin of a preflight, and the method that it asks for.
///
/// # Errors
/// A header is missing.
pub fn preflight_headers(headers: &HeaderMap) -> Result<(&str, &str), Fault> {
    let origin = text(headers, header::ORIGIN);
    let method = text(headers, header::ACCESS_CONTROL_REQUEST_METHOD);
    origin.zip(method).ok_or(Fault::CorsHeaderMissing)
}

/// The headers that answer a preflight: by the first rule that allows it.
///
/// # Errors
/// A header is missing, or no rule allows what it asks for.
pub fn preflight(rules: &[CorsRule], headers: &HeaderMap) -> Result<Headers, Fault> {
    let (origin, method) = preflight_headers(headers)?;
    let asked = text(headers, header::ACCESS_CONTROL_REQUEST_HEADERS).unwrap_or_default();
    let allows =
        |rule: &&CorsRule| rule.allows_origin(origin) && rule.allows_method(method) && rule.allows_headers(asked);
    let rule = rules.iter().find(allows).ok_or(Fault::CorsPreflightFailure)?;
    let mut answer = rule.origin_headers(origin);
    answer.push(("Access-Control-Allow-Methods", method.to_owned()));
    if !asked.is_empty() {
        answer.push(("Access-Control-Allow-Headers", asked.to_owned()));
    }
    answer.push(("Access-Control-Max-Age", rule.max_age_seconds.to_string()));
    Ok(answer)
}

/// The headers of any other answer to a request with an origin: none where no rule allows it.
#[must_use]
pub fn plain(rules: &[CorsRule], origin: &str, method: &str) -> Headers {
    if rules.is_empty() {
        return Headers::new();
    }
    let rule = rules
        .iter()
        .find(|rule| rule.allows_origin(origin) && rule.allows_method(method));
    let mut answer = rule.map_or_else(Headers::new, |rule| {
        let mut headers = rule.origin_headers(origin);
        if !rule.exposed.is_empty() {
            headers.push(("Access-Control-Expose-Headers", rule.exposed.clone()));
        }
        headers
    });
    answer.push(("Vary", "Origin".to_owned()));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn rule(origin: &str) -> CorsRule {
        CorsRule {
            origins: vec![origin.to_owned()],
            methods: vec!["GET".to_owned(), "PUT".to_owned()],
            headers: vec!["x-ms-date".to_owned(), "x-ms-meta-*".to_owned()],
            exposed: "x-ms-*".to_owned(),
            max_age_seconds: 60,
        }
    }

    fn asked(origin: &'static str, method: &'static str, names: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
        headers.insert(header::ACCESS_CONTROL_REQUEST_METHOD, HeaderValue::from_static(method));
        headers.insert(header::ACCESS_CONTROL_REQUEST_HEADERS, HeaderValue::from_static(names));
        headers
    }

    #[test]
    fn first_rule_that_matches_answers() {
        let rules = [rule("http://a.com"), rule("*")];
        let answer = preflight(&rules, &asked("http://a.com", "PUT", "X-Ms-Date, x-ms-meta-any")).unwrap();
        assert!(answer.contains(&("Access-Control-Allow-Credentials", "true".to_owned())));
        assert!(answer.contains(&("Access-Control-Allow-Methods", "PUT".to_owned())));
        let answer = preflight(&rules, &asked("http://b.com", "GET", "")).unwrap();
        assert_eq!(answer[0], ("Access-Control-Allow-Origin", "*".to_owned()));
        assert!(answer.contains(&("Access-Control-Max-Age", "60".to_owned())));
        let refused = Err(Fault::CorsPreflightFailure);
        assert_eq!(preflight(&rules, &asked("http://a.com", "POST", "")), refused);
        assert_eq!(preflight(&rules, &asked("http://a.com", "GET", "other")), refused);
        assert_eq!(preflight(&rules[..1], &asked("http://b.com", "GET", "")), refused);
        assert_eq!(preflight(&[], &asked("http://b.com", "GET", "")), refused);
        assert_eq!(preflight(&rules, &HeaderMap::new()), Err(Fault::CorsHeaderMissing));
    }

    #[test]
    fn other_answers_tell_the_origin() {
        let rules = [rule("http://a.com")];
        let answer = plain(&rules, "http://a.com", "GET");
        assert!(answer.contains(&("Access-Control-Expose-Headers", "x-ms-*".to_owned())));
        assert!(answer.contains(&("Vary", "Origin".to_owned())));
        assert_eq!(plain(&rules, "http://b.com", "GET"), [("Vary", "Origin".to_owned())]);
        assert!(plain(&[], "http://a.com", "GET").is_empty());
    }
}
