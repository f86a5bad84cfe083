//! Rules of an S3 bucket that would remove or lock our objects: lifecycle and object lock. `object_store` has no call
//! for them, so this client sends requests of its own, signed with the signer of `object_store`.
//!
//! Elements of the answers are found by name; XML of S3 has neither attributes nor other namespaces in these elements.

use bytes::Bytes;
use slatedb::object_store::aws::{AwsAuthorizer, AwsCredentialProvider};
use slatedb::object_store::client::{HttpClient, HttpConnector, HttpRequestBody, ReqwestConnector};
use slatedb::object_store::{ClientOptions, Result as StoreResult};

use super::Checked;

/// A client for the rules of a bucket.
#[derive(Debug)]
pub(super) struct Rules {
    /// `https://host/bucket`, without a slash at its end.
    at_bucket: String,
    region: String,
    prefix: String,
    credentials: AwsCredentialProvider,
    client: HttpClient,
}

/// The store's answer about one kind of rule.
enum Answer {
    None,
    Rules(String),
    /// The store does not answer such a request.
    Unknown,
}

impl Rules {
    pub(super) fn new(
        at_bucket: String,
        region: String,
        prefix: &str,
        credentials: AwsCredentialProvider,
        options: &ClientOptions,
    ) -> StoreResult<Self> {
        Ok(Self {
            at_bucket,
            region,
            prefix: prefix.to_owned(),
            credentials,
            client: ReqwestConnector::default().connect(options)?,
        })
    }

    /// Checks both kinds.
    pub(super) async fn check(&self, checked: &mut Checked) {
        let mut add = |trial, answer: Answer, wrong: &dyn Fn(&str) -> Option<String>| match answer {
            Answer::None => checked.trials.push((trial, None)),
            Answer::Rules(text) => checked.trials.push((trial, wrong(&text))),
            Answer::Unknown => checked.notes.push(format!(
                "the store does not tell its rules ({trial}); make sure that there is none"
            )),
        };
        add(
            "no lifecycle rule removes objects",
            self.ask("lifecycle").await,
            &|text| expires(text, &self.prefix),
        );
        add("no retention locks objects", self.ask("object-lock").await, &locks);
    }

    async fn ask(&self, what: &str) -> Answer {
        self.answer(what).await.unwrap_or(Answer::Unknown)
    }

    async fn answer(&self, what: &str) -> Option<Answer> {
        let credential = self.credentials.get_credential().await.ok()?;
        let mut request = http::Request::get(format!("{}?{what}=", self.at_bucket))
            .body(HttpRequestBody::from(Bytes::new()))
            .ok()?;
        let authorizer = AwsAuthorizer::new(&credential, "s3", &self.region);
        authorizer.try_authorize(&mut request, None).ok()?;
        let answer = self.client.execute(request).await.ok()?;
        let status = answer.status().as_u16();
        let body = answer.into_body().bytes().await.ok()?;
        let text = String::from_utf8_lossy(&body).into_owned();
        Some(match status {
            200 => Answer::Rules(text),
            404 if text.contains("NotFound") || text.contains("NoSuchLifecycleConfiguration") => Answer::None,
            _ => Answer::Unknown,
        })
    }
}

/// The texts of the elements of a name.
fn elements<'t>(text: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let parts: Vec<&str> = text.split(open.as_str()).skip(1).collect();
    parts
        .into_iter()
        .filter_map(move |part| part.split(close.as_str()).next())
}

/// The rule that removes objects below the prefix. Rules for parts of uploads and for old versions remove no current
/// object.
fn expires(text: &str, prefix: &str) -> Option<String> {
    let reaches = |rule: &&str| {
        let prefixes = elements(rule, "Prefix").next().unwrap_or_default();
        let below = format!("{prefix}/");
        below.starts_with(prefixes) || prefixes.starts_with(&below)
    };
    let removes = |rule: &&str| {
        let mut expirations = elements(rule, "Expiration").chain(elements(rule, "Transition"));
        expirations.any(|one| one.contains("<Days>") || one.contains("<Date>"))
    };
    elements(text, "Rule")
        .filter(|rule| elements(rule, "Status").next() == Some("Enabled"))
        .find(|rule| reaches(rule) && removes(rule))
        .map(|_| {
            "a lifecycle rule removes or moves away objects below the prefix; take it off or give it another prefix"
                .to_owned()
        })
}

fn locks(text: &str) -> Option<String> {
    elements(text, "DefaultRetention").next().map(|_| {
        "the bucket has a default retention, so objects that are no longer needed cannot be removed; use a bucket without".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rules_that_remove_our_objects_count() {
        let rule = |status: &str, prefix: &str, what: &str| {
            format!(
                "<LifecycleConfiguration><Rule><Filter><Prefix>{prefix}</Prefix></Filter><Status>{status}</Status>{what}</Rule></LifecycleConfiguration>"
            )
        };
        let days = "<Expiration><Days>7</Days></Expiration>";
        for (text, is_bad) in [
            (rule("Enabled", "", days), true),
            (rule("Enabled", "data/", days), true),
            (rule("Enabled", "data/engine/wal/", days), true),
            (rule("Enabled", "logs/", days), false),
            (rule("Disabled", "", days), false),
            (
                rule(
                    "Enabled",
                    "",
                    "<AbortIncompleteMultipartUpload><DaysAfterInitiation>1</DaysAfterInitiation></AbortIncompleteMultipartUpload>",
                ),
                false,
            ),
            (
                rule(
                    "Enabled",
                    "",
                    "<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration>",
                ),
                false,
            ),
            (
                rule(
                    "Enabled",
                    "",
                    "<Transition><Days>30</Days><StorageClass>GLACIER</StorageClass></Transition>",
                ),
                true,
            ),
        ] {
            assert_eq!(expires(&text, "data").is_some(), is_bad, "{text}");
        }
        assert!(locks("<Rule><DefaultRetention><Mode>COMPLIANCE</Mode></DefaultRetention></Rule>").is_some());
        assert!(locks("<ObjectLockEnabled>Enabled</ObjectLockEnabled>").is_none());
    }
}
