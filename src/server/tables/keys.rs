//! Accounts of tables and their keys: given, or drawn at the first start and kept beside the data.
//!
//! ```text
//! DIR/tables/NAME.key   the key of an account, in base64 (only its owner may read it)
//! ```
//! Keys of data in memory are drawn at each start. They come from the system's randomness.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::super::identity::{IdentityError, draw_key, failed};
use helenus_base::permissions::{self, PRIVATE};
use helenus_engine::engine::Boundary;
use helenus_tables::tables::auth::Account;
use helenus_tables::tables::rate::Targets;

/// The folder in the directory of the data.
const FOLDER: &str = "tables";

/// How tables are served.
#[derive(Clone, Debug)]
pub struct TablesOptions {
    /// Addresses; port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// Accounts, at least one.
    pub accounts: Vec<AccountOptions>,
    /// Where a page ends though more entities follow; `None` means nowhere.
    pub page_boundary: Option<Boundary>,
    /// How many entities a second are served; `None` means as many as can be.
    pub targets: Option<Targets>,
    /// How long a range is offline after it was split or moved; `None` means not at all.
    pub reload: Option<Duration>,
}

/// An account of tables.
#[derive(Clone)]
pub struct AccountOptions {
    /// Its name, which is checked.
    pub name: String,
    /// Its keys, in base64; none means the server draws one.
    pub keys: Vec<String>,
}

impl std::fmt::Debug for AccountOptions {
    /// Prints no key.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("AccountOptions")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The accounts with all their keys.
pub struct TablesKeys {
    accounts: Vec<AccountOptions>,
    /// Names of the accounts whose keys the server drew, now or earlier.
    drawn: Vec<String>,
}

impl std::fmt::Debug for TablesKeys {
    /// Prints no key.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("TablesKeys")
            .field("drawn", &self.drawn)
            .finish_non_exhaustive()
    }
}

impl TablesKeys {
    /// Completes the keys of accounts. Drawn ones are kept in a directory, which the store must have taken; `None` means data in memory.
    ///
    /// # Errors
    /// A kept key cannot be read or written, or the system gives no randomness.
    pub(crate) fn complete(options: &[AccountOptions], directory: Option<&Path>) -> Result<Self, IdentityError> {
        let mut keys = Self {
            accounts: options.to_vec(),
            drawn: Vec::new(),
        };
        for account in keys.accounts.iter_mut().filter(|account| account.keys.is_empty()) {
            account.keys.push(kept_or_drawn(&account.name, directory)?);
            keys.drawn.push(account.name.clone());
        }
        Ok(keys)
    }

    /// The accounts, for the service.
    pub(crate) fn accounts(&self) -> Vec<Account> {
        let accounts = self.accounts.iter();
        accounts
            .filter_map(|account| Account::new(account.name.clone(), &account.keys))
            .collect()
    }

    /// The names of the accounts.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.accounts.iter().map(|account| account.name.as_str())
    }

    /// The accounts whose keys the server drew, with these: they must be shown, since no setting has them.
    pub fn drawn(&self) -> impl Iterator<Item = (&str, &str)> {
        let drawn = self
            .accounts
            .iter()
            .filter(|account| self.drawn.contains(&account.name));
        drawn.filter_map(|account| Some((account.name.as_str(), account.keys.first()?.as_str())))
    }
}

fn kept_or_drawn(account: &str, directory: Option<&Path>) -> Result<String, IdentityError> {
    let Some(directory) = directory else { return draw_key() };
    let folder = directory.join(FOLDER);
    let path = folder.join(format!("{account}.key"));
    match fs::read_to_string(&path) {
        Ok(key) => Ok(key.trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            permissions::create_directory(&folder).map_err(failed(&folder))?;
            let key = draw_key()?;
            permissions::write(&path, &key, PRIVATE).map_err(failed(&path))?;
            Ok(key)
        }
        Err(error) => Err(failed(&path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_keys_are_kept_with_the_data() {
        let directory = tempfile::tempdir().unwrap();
        let options = ["one", "two"].map(|name| AccountOptions {
            name: name.to_owned(),
            keys: if name == "two" {
                vec!["YQ==".to_owned()]
            } else {
                Vec::new()
            },
        });
        let complete = |directory| TablesKeys::complete(&options, directory).unwrap();
        let key = |keys: &TablesKeys| keys.drawn().next().unwrap().1.to_owned();
        let first = complete(Some(directory.path()));
        assert_eq!(first.drawn().count(), 1);
        assert_eq!((first.names().count(), first.accounts().len()), (2, 2));
        assert_eq!(key(&complete(Some(directory.path()))), key(&first));
        assert!(key(&complete(None)) != key(&first));
    }
}
