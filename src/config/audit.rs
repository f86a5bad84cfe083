//! Interprets the settings of the audit log.

use super::{ConfigError, Values};
use crate::server::audit::{AuditOptions, FILES_MAX};
use helenus_engine::engine::audit::AuditCategory;

/// Least bytes of a file of the audit log: it must hold any record.
const AUDIT_FILE_BYTES_MIN: u64 = 1 << 20;

/// The audit log's options. `None` means there is no audit log.
pub(super) fn audit(values: &Values) -> Result<Option<AuditOptions>, ConfigError> {
    let file_bytes_max: u64 = values.parsed("audit-file-bytes-max")?;
    if file_bytes_max < AUDIT_FILE_BYTES_MIN {
        let what = format!("expected at least {AUDIT_FILE_BYTES_MIN}");
        return Err(values.wrong("audit-file-bytes-max", &file_bytes_max.to_string(), what));
    }
    let files_max: usize = values.parsed("audit-files-max")?;
    if !(1..=FILES_MAX).contains(&files_max) {
        let what = format!("expected 1 to {FILES_MAX}");
        return Err(values.wrong("audit-files-max", &files_max.to_string(), what));
    }
    let mut categories = Vec::new();
    let text = values.text("audit-categories").unwrap_or_default();
    for word in text.split(',').map(str::trim) {
        let mut named = AuditCategory::ALL.into_iter();
        match named.find(|category| category.name().eq_ignore_ascii_case(word)) {
            Some(category) => categories.push(category),
            None if word == "all" => categories.extend(AuditCategory::ALL),
            None => {
                let names = AuditCategory::ALL.map(|category| category.name().to_ascii_lowercase());
                let what = format!("expected all, or some of {}, with commas between", names.join(", "));
                return Err(values.wrong("audit-categories", word, what));
            }
        }
    }
    Ok(values.text("audit-log").map(|file| AuditOptions {
        file: file.into(),
        file_bytes_max,
        files_max,
        categories,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_audit_log_is_off_and_its_settings_are_read() {
        let audit_of = |given: &[(&str, &str)]| {
            let given = given
                .iter()
                .map(|(name, value)| ((*name).to_owned(), vec![(*value).to_owned()]));
            audit(&Values::gather(None, &given.collect(), |_| None).unwrap())
        };
        assert_eq!(audit_of(&[]).unwrap(), None);
        let options = audit_of(&[("audit-log", "a.log")]).unwrap().unwrap();
        use AuditCategory::{Auth, Dcl, Ddl};
        assert_eq!(options.categories, [Auth, Ddl, Dcl]);
        assert_eq!((options.file_bytes_max, options.files_max), (64 << 20, 10));
        let all = audit_of(&[("audit-log", "a.log"), ("audit-categories", "QUERY, all")]).unwrap();
        assert_eq!(all.unwrap().categories.len(), 9);
        for (name, value) in [
            ("audit-categories", "auth,logins"),
            ("audit-categories", ""),
            ("audit-files-max", "0"),
            ("audit-files-max", "1001"),
            ("audit-file-bytes-max", "100"),
        ] {
            let error = audit_of(&[(name, value)]).unwrap_err().to_string();
            assert!(error.starts_with(name) && error.contains("expected"), "{error}");
        }
    }
}
