//! The address of a bucket: cloud, account, bucket and prefix.

use std::fmt;

use super::bucket_refusal::Refusal;

/// The accepted forms of URLs, for messages.
pub(super) const SCHEMES: &str = "memory:, file:DIR, slate+file:DIR, slate+memory:, s3://BUCKET/PREFIX, \
     az://ACCOUNT/CONTAINER/PREFIX, gs://BUCKET/PREFIX";

/// The cloud whose protocol the bucket has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cloud {
    /// `s3:`
    S3,
    /// `az:`
    Azure,
    /// `gs:`
    Google,
}

impl Cloud {
    const ALL: [Self; 3] = [Self::S3, Self::Azure, Self::Google];

    /// The scheme of its URLs.
    #[must_use]
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Azure => "az",
            Self::Google => "gs",
        }
    }

    /// The form of its URLs, for messages.
    #[must_use]
    pub const fn form(self) -> &'static str {
        match self {
            Self::S3 => "s3://BUCKET/PREFIX",
            Self::Azure => "az://ACCOUNT/CONTAINER/PREFIX",
            Self::Google => "gs://BUCKET/PREFIX",
        }
    }

    /// The cloud of a scheme.
    #[must_use]
    pub fn of(scheme: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cloud| cloud.scheme() == scheme)
    }
}

/// The account name that means Azure's emulator.
#[cfg(feature = "slate")]
pub(super) const EMULATOR: &str = "emulator";

/// A bucket and a prefix in it. Never holds a credential: parsing refuses a text that could contain one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The cloud.
    pub cloud: Cloud,
    /// Azure's storage account; empty elsewhere.
    pub account: String,
    /// The bucket, or the container.
    pub bucket: String,
    /// The prefix of the names of all our objects, without a slash at either end; never empty.
    pub prefix: String,
}

impl Address {
    /// Parses the part of a URL after the colon.
    ///
    /// # Errors
    /// The text has not the cloud's form. The error does not repeat the text, which may hold a key.
    pub fn parse(cloud: Cloud, rest: &str) -> Result<Self, Refusal> {
        let refused = || Refusal::Form { form: cloud.form() };
        let rest = rest.strip_prefix("//").ok_or_else(refused)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let is_part = |part: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            !part.is_empty() && part != "." && part != ".." && part.bytes().all(is_plain)
        };
        if !rest.split('/').all(is_part) {
            return Err(refused());
        }
        let (account, rest) = match cloud {
            Cloud::Azure => rest.split_once('/').ok_or_else(refused)?,
            Cloud::S3 | Cloud::Google => ("", rest),
        };
        let (bucket, prefix) = rest.split_once('/').ok_or_else(refused)?;
        Ok(Self {
            cloud,
            account: account.to_owned(),
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}://", self.cloud.scheme())?;
        if self.cloud == Cloud::Azure {
            write!(out, "{}/", self.account)?;
        }
        write!(out, "{}/{}", self.bucket, self.prefix)
    }
}
