//! Where a store keeps its data, as a URL.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::Error;
use super::address::{Address, Cloud};

/// Where a store keeps its data. Parsed from, and printed as, `memory:`, `file:DIR`, `slate+file:DIR`, `slate+memory:`, or the URL of a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Url {
    /// In this process; lost when it ends.
    Memory,
    /// A directory on this machine, kept by fjall.
    File(PathBuf),
    /// A directory on this machine in place of a bucket, kept by SlateDB.
    SlateFile(PathBuf),
    /// A bucket in this process, kept by SlateDB; lost when it ends.
    SlateMemory,
    /// A bucket, kept by SlateDB.
    Bucket(Address),
}

impl Url {
    /// Whether the data outlives the process.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        matches!(self, Self::File(_) | Self::SlateFile(_) | Self::Bucket(_))
    }

    /// The directory on this machine. `None` means the data is in memory or in a bucket.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::File(directory) | Self::SlateFile(directory) => Some(directory),
            Self::Memory | Self::SlateMemory | Self::Bucket(_) => None,
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => out.write_str("memory:"),
            Self::File(directory) => write!(out, "file:{}", directory.display()),
            Self::SlateFile(directory) => write!(out, "slate+file:{}", directory.display()),
            Self::SlateMemory => out.write_str("slate+memory:"),
            Self::Bucket(address) => address.fmt(out),
        }
    }
}

impl FromStr for Url {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (scheme, rest) = text
            .split_once(':')
            .ok_or_else(|| Error::UnknownScheme { url: text.to_owned() })?;
        let directory = || {
            // `file:///var/x`, the form that other programs use, means the same directory.
            let path = rest
                .strip_prefix("//")
                .filter(|path| path.starts_with('/'))
                .unwrap_or(rest);
            if path.is_empty() || path.starts_with("//") {
                return Err(Error::NoDirectory { url: text.to_owned() });
            }
            Ok(PathBuf::from(path))
        };
        match scheme {
            "memory" | "slate+memory" if !rest.is_empty() => Err(Error::NoPath { url: text.to_owned() }),
            "memory" => Ok(Self::Memory),
            "slate+memory" => Ok(Self::SlateMemory),
            "file" => directory().map(Self::File),
            "slate+file" => directory().map(Self::SlateFile),
            scheme if let Some(cloud) = Cloud::of(scheme) => {
                let refused = |refusal| Error::Bucket {
                    url: scheme.to_owned(),
                    refusal,
                };
                Address::parse(cloud, rest).map(Self::Bucket).map_err(refused)
            }
            _ => Err(Error::UnknownScheme { url: text.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_read_as_they_print() {
        for text in [
            "memory:",
            "slate+memory:",
            "file:data",
            "file:/var/lib/x",
            "slate+file:./a b",
            "s3://data.example/prod/a-1",
            "az://account/container/prod",
            "az://emulator/container/prod",
            "gs://bucket_1/prod",
        ] {
            assert_eq!(text.parse::<Url>().unwrap().to_string(), text);
        }
        assert_eq!("file:///var/x".parse::<Url>().unwrap(), Url::File("/var/x".into()));
    }

    #[test]
    fn refusals_say_what_to_write() {
        let refusal = |text: &str| text.parse::<Url>().unwrap_err().to_string();
        assert!(refusal("rocks:x").contains("memory:, file:DIR, slate+file:DIR, slate+memory:"));
        assert!(refusal("data").contains("file:DIR"));
        for text in [
            "s3://KEY:SECRET@bucket/x",
            "s3://bucket/x?secret=SECRET",
            "az://account/container/x?sig=SECRET",
            "s3://bucket",
            "s3:bucket/SECRET",
            "s3://bucket/SECRET/../x",
            "az://account/SECRET",
            "gs://bucket//SECRET",
        ] {
            let message = refusal(text);
            assert!(message.contains("/PREFIX") && !message.contains("SECRET"), "{message}");
        }
        assert!(refusal("file:").contains("directory"));
        assert!(refusal("memory:x").contains("no path"));
    }
}
