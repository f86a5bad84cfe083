//! The credentials file of the AWS tools: `~/.aws/credentials`, or AWS_SHARED_CREDENTIALS_FILE; the section is
//! AWS_PROFILE, or `default`.
//!
//! The file is read again whenever it has changed, so that renewed credentials need no restart. While it has no whole pair,
//! as when it is being written, the last one is used. Entries of `credential_process` and SSO are not followed.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use slatedb::object_store::aws::AwsCredential;
use slatedb::object_store::{CredentialProvider, Error as StoreError, Result as StoreResult};

/// One section of the file.
pub(super) struct Section {
    path: PathBuf,
    name: String,
    /// The credentials read last, and when their file was written.
    kept: Mutex<Option<(SystemTime, u64, Arc<AwsCredential>)>>,
}

/// Never shows the contents.
impl fmt::Debug for Section {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Section")
            .field("path", &self.path)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Section {
    /// The section that the environment names. `None` means that the file has no keys there.
    pub(super) fn find(environment: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let path = match environment("AWS_SHARED_CREDENTIALS_FILE") {
            Some(path) => PathBuf::from(path),
            None => Path::new(&environment("HOME")?).join(".aws/credentials"),
        };
        let name = environment("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        let section = Self {
            path,
            name,
            kept: Mutex::default(),
        };
        section.read().is_some().then_some(section)
    }

    fn read(&self) -> Option<Arc<AwsCredential>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(changed) = self.read_changed(kept.as_ref().map(|(at, bytes, _)| (*at, *bytes))) {
            *kept = Some(changed);
        }
        kept.as_ref().map(|(.., credential)| Arc::clone(credential))
    }

    /// What the file has, unless it was written then and has this length.
    fn read_changed(&self, known: Option<(SystemTime, u64)>) -> Option<(SystemTime, u64, Arc<AwsCredential>)> {
        let meta = fs::metadata(&self.path).ok()?;
        let (written, bytes) = (meta.modified().ok()?, meta.len());
        if known == Some((written, bytes)) {
            return None;
        }
        let credential = parse(&fs::read_to_string(&self.path).ok()?, &self.name)?;
        Some((written, bytes, Arc::new(credential)))
    }
}

#[async_trait::async_trait]
impl CredentialProvider for Section {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> StoreResult<Arc<AwsCredential>> {
        self.read().ok_or_else(|| StoreError::Generic {
            store: "S3",
            source: "no credentials in the file".into(),
        })
    }
}

fn parse(text: &str, section: &str) -> Option<AwsCredential> {
    let mut is_inside = false;
    let (mut key_id, mut secret_key, mut token) = (None, None, None);
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_inside = name.trim() == section;
        } else if let Some((name, value)) = line
            .split_once('=')
            .filter(|_| is_inside && !line.starts_with(['#', ';']))
        {
            let value = Some(value.trim().to_owned());
            match name.trim() {
                "aws_access_key_id" => key_id = value,
                "aws_secret_access_key" => secret_key = value,
                "aws_session_token" => token = value,
                _ => {}
            }
        }
    }
    Some(AwsCredential {
        key_id: key_id?,
        secret_key: secret_key?,
        token,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_changed_is_read_anew_and_nothing_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("credentials");
        let write = |key: &str| {
            let text = format!(
                "[default]\naws_access_key_id=D\naws_secret_access_key=DS\n[other]\n# aws_session_token = T\naws_access_key_id = {key}\n\
                 aws_secret_access_key = S=1\n"
            );
            fs::write(&path, text).unwrap();
        };
        write("A");
        let environment = |name: &str| match name {
            "AWS_SHARED_CREDENTIALS_FILE" => Some(path.to_string_lossy().into_owned()),
            "AWS_PROFILE" => Some("other".to_owned()),
            _ => None,
        };
        let section = Section::find(environment).unwrap();
        let first = section.get_credential().await.unwrap();
        assert_eq!((&*first.key_id, &*first.secret_key, &first.token), ("A", "S=1", &None));
        write("LONGER");
        assert_eq!(section.get_credential().await.unwrap().key_id, "LONGER");
        assert!(!format!("{section:?}").contains("S=1"));
        fs::write(&path, "[other]\naws_access_key_id = NEW\n").unwrap();
        assert_eq!(section.get_credential().await.unwrap().key_id, "LONGER");
        assert!(Section::find(environment).is_none());
    }
}
