//! Interprets the settings of the front end of tables.

use std::net::{Ipv4Addr, SocketAddr};

use super::{ConfigError, Values};
use crate::server::tables::keys::{AccountOptions, TablesOptions};
use helenus_engine::engine::Boundary;
use helenus_tables::tables::auth::{Account, is_account_name};
use helenus_tables::tables::rate::Targets;

/// The port of Azurite's tables, where `UseDevelopmentStorage=true` looks.
const DEV_PORT: u16 = 10002;

/// The account of `UseDevelopmentStorage=true`, and its published key.
const DEV_ACCOUNT: (&str, &str) = (
    "devstoreaccount1",
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
);

/// Keys of an account at most: two, so that they can be rolled.
const KEYS_MAX: usize = 2;

/// The options of the tables. `None` means they are not served.
pub(super) fn tables(values: &Values) -> Result<Option<TablesOptions>, ConfigError> {
    let is_dev: bool = values.parsed("tables-dev")?;
    let mut accounts = Vec::new();
    for text in values.all("tables-account") {
        let account = account(text).ok_or_else(|| {
            // The text may hold a key, so it is not shown.
            let what = "expected NAME, NAME:KEY or NAME:KEY:KEY: a name of 3 to 24 lower-case letters and digits, keys in base64";
            values.wrong("tables-account", text.split(':').next().unwrap_or_default(), what)
        })?;
        accounts.push(account);
    }
    let (name, key) = DEV_ACCOUNT;
    if is_dev {
        accounts.push(AccountOptions {
            name: name.to_owned(),
            keys: vec![key.to_owned()],
        });
    }
    let twice = accounts.iter().enumerate().find(|(index, account)| {
        let mut before = accounts.iter().take(*index);
        before.any(|other| other.name == account.name)
    });
    if let Some((_, account)) = twice {
        let name = &account.name;
        return Err(ConfigError::Together(format!("tables-account {name} is given twice")));
    }
    let mut listen = values.addresses("tables-listen")?;
    if listen.is_empty() && is_dev {
        listen.push(SocketAddr::from((Ipv4Addr::LOCALHOST, DEV_PORT)));
    }
    let open = listen.iter().find(|address| !address.ip().to_canonical().is_loopback());
    if let (true, Some(address)) = (is_dev, open) {
        return Err(ConfigError::Together(format!(
            "tables-dev serves an account whose key everyone knows, and tables-listen = {address} can be reached from other machines: \
             choose an address of this machine's own, or tables-account"
        )));
    }
    let page_boundary = match values.text("tables-page-boundary") {
        Some("server") | None => Some(Boundary::Server),
        Some("range") => Some(Boundary::Range),
        Some("none") => None,
        Some(other) => return Err(values.wrong("tables-page-boundary", other, "expected server, range or none")),
    };
    let throttle = values.text("tables-throttle").unwrap_or_default();
    let Some(targets) = Targets::of_name(throttle) else {
        return Err(values.wrong("tables-throttle", throttle, "expected off, today or 2011"));
    };
    match (listen.is_empty(), accounts.is_empty()) {
        (true, true) => Ok(None),
        (false, false) => Ok(Some(TablesOptions {
            listen,
            accounts,
            page_boundary,
            targets,
            reload: Some(values.seconds("tables-reload-seconds")?).filter(|reload| !reload.is_zero()),
        })),
        (false, true) => Err(ConfigError::Together(
            "tables-listen needs tables-account or tables-dev".to_owned(),
        )),
        (true, false) => Err(ConfigError::Together("tables-account needs tables-listen".to_owned())),
    }
}

/// An account; `None` means the text is of another form.
fn account(text: &str) -> Option<AccountOptions> {
    let mut parts = text.split(':');
    let name = parts.next().filter(|name| is_account_name(name))?.to_owned();
    let keys: Vec<String> = parts.map(str::to_owned).collect();
    let is_usable = keys.len() <= KEYS_MAX && keys.iter().all(|key| !key.is_empty());
    Account::new(name.clone(), &keys).filter(|_| is_usable)?;
    Some(AccountOptions { name, keys })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &[(&str, &[&str])]) -> Result<Option<TablesOptions>, String> {
        let given = given.iter().map(|(name, texts)| {
            let texts = texts.iter().map(|text| (*text).to_owned());
            ((*name).to_owned(), texts.collect())
        });
        tables(&Values::gather(None, &given.collect(), |_| None).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn tables_are_off_and_their_settings_are_read() {
        assert!(of(&[]).unwrap().is_none());
        let dev = of(&[("tables-dev", &["true"])]).unwrap().unwrap();
        assert_eq!(dev.listen, ["127.0.0.1:10002".parse().unwrap()]);
        assert_eq!(
            (dev.accounts[0].name.as_str(), dev.page_boundary),
            ("devstoreaccount1", Some(Boundary::Server))
        );
        let listen: (&str, &[&str]) = ("tables-listen", &["0.0.0.0:1"]);
        let own = of(&[
            listen,
            ("tables-account", &["one", "two:YQ==:Yg=="]),
            ("tables-page-boundary", &["none"]),
            ("tables-throttle", &["2011"]),
        ]);
        let own = own.unwrap().unwrap();
        assert_eq!((own.accounts[0].keys.len(), own.accounts[1].keys.len()), (0, 2));
        assert_eq!((own.page_boundary, own.targets), (None, Some(Targets::OF_2011)));
        for (given, part) in [
            (vec![listen], "tables-listen needs"),
            (vec![("tables-account", &["one"][..])], "tables-account needs"),
            (vec![listen, ("tables-account", &["one", "one"])], "given twice"),
            (vec![listen, ("tables-account", &["One"])], "tables-account"),
            (vec![listen, ("tables-account", &["one:?"])], "tables-account"),
            (vec![listen, ("tables-account", &["one:"])], "tables-account"),
            (
                vec![listen, ("tables-account", &["one:YQ==:YQ==:YQ=="])],
                "tables-account",
            ),
            (vec![listen, ("tables-dev", &["true"])], "everyone knows"),
            (vec![("tables-page-boundary", &["x"])], "tables-page-boundary"),
            (vec![("tables-throttle", &["x"])], "tables-throttle"),
        ] {
            let refused = of(&given).unwrap_err();
            assert!(refused.contains(part), "{given:?}: {refused}");
            assert!(!refused.contains("YQ=="), "{refused}");
        }
    }
}
