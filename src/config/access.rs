//! Access: TLS, logins, and addresses that other machines can reach.

use std::net::SocketAddr;
use std::path::Path;

use super::values::read;
use super::{ConfigError, Values};
use crate::server::{ClientTrust, Credentials, DEFAULT_ROLE, Options, TlsIdentity, TlsOptions};
use helenus_base::permissions::check_secret;
use helenus_schema::profile::Profile;
use helenus_schema::roles::password::COSTS;

pub(super) fn tls(values: &Values, profile: Profile) -> Result<Option<TlsOptions>, ConfigError> {
    let listen = values.addresses("tls-listen")?;
    let clients = clients(values)?;
    if listen.is_empty() && clients.is_some() {
        return Err(ConfigError::Together("tls-client-ca needs tls-listen".into()));
    }
    match (
        listen.is_empty(),
        values.text("tls-certificate"),
        values.text("tls-key"),
    ) {
        (true, None, None) => Ok(None),
        (false, Some(certificate), Some(key)) => Ok(Some(TlsOptions {
            listen,
            identity: TlsIdentity::Files {
                certificate: certificate.into(),
                key: key.into(),
            },
            clients,
        })),
        (false, None, None) if profile.is_cosmos() => Ok(Some(TlsOptions {
            listen,
            identity: TlsIdentity::SelfMade,
            clients,
        })),
        _ => Err(ConfigError::Together(
            "tls-listen, tls-certificate and tls-key go together".into(),
        )),
    }
}

/// The client certificates that are accepted.
fn clients(values: &Values) -> Result<Option<ClientTrust>, ConfigError> {
    let is_required = match values.text("tls-client-auth") {
        None | Some("optional") => false,
        Some("required") => true,
        Some(other) => return Err(values.wrong("tls-client-auth", other, "optional or required")),
    };
    match values.text("tls-client-ca") {
        Some(authorities) => Ok(Some(ClientTrust {
            authorities: authorities.into(),
            is_required,
        })),
        None if is_required => Err(ConfigError::Together(
            "tls-client-auth = required needs tls-client-ca".into(),
        )),
        None => Ok(None),
    }
}

pub(super) fn credentials(values: &Values, profile: Profile) -> Result<Option<Credentials>, ConfigError> {
    if profile.is_cosmos() {
        let account = values.text("account").unwrap_or_default();
        let key = values.text("account-key");
        if account.is_empty() || key.is_some_and(str::is_empty) {
            return Err(ConfigError::Together(
                "neither account nor account-key may be empty".into(),
            ));
        }
        if values.text("user").is_some() {
            return Err(ConfigError::Together(
                "the profile cosmos has account and account-key instead of user and password-file".into(),
            ));
        }
        // Without a key the server generates one at its start.
        return Ok(key.map(|key| Credentials {
            user: account.to_owned(),
            password: key.to_owned(),
        }));
    }
    match (values.text("user"), values.text("password-file")) {
        (None, None) if values.parsed("login")? => Ok(Some(Credentials {
            user: DEFAULT_ROLE.to_owned(),
            password: DEFAULT_ROLE.to_owned(),
        })),
        (None, None) => Ok(None),
        (Some(user), Some(file)) => {
            check_secret(Path::new(file))?;
            let text = read(Path::new(file))?;
            let password = text.lines().next().unwrap_or_default();
            if user.is_empty() || password.is_empty() {
                return Err(ConfigError::Together("neither user nor password may be empty".into()));
            }
            Ok(Some(Credentials {
                user: user.to_owned(),
                password: password.to_owned(),
            }))
        }
        _ => Err(ConfigError::Together("user and password-file go together".into())),
    }
}

/// The rounds of hashing of new passwords, as a power of two.
pub(super) fn password_cost(values: &Values) -> Result<u32, ConfigError> {
    let cost = values.parsed("password-cost")?;
    if COSTS.contains(&cost) {
        return Ok(cost);
    }
    let (min, max) = COSTS.into_inner();
    Err(values.wrong(
        "password-cost",
        &cost.to_string(),
        format!("a number from {min} to {max}"),
    ))
}

/// A client that can reach an address without a login can do everything.
pub(super) fn refuse_open_network(server: &Options, allowed: bool) -> Result<(), ConfigError> {
    // In the profile cosmos every client logs in, if necessary with a key that the server has generated.
    if allowed || server.credentials.is_some() || server.profile.is_cosmos() {
        return Ok(());
    }
    let tls = server.tls.iter().flat_map(|tls| &tls.listen);
    match server.listen.iter().chain(tls).find(|address| is_reachable(address)) {
        None => Ok(()),
        Some(address) => Err(ConfigError::Together(format!(
            "{address} can be reached from other machines and nobody would have to log in: set user and password-file, or \
             allow-unauthenticated-network"
        ))),
    }
}

/// A login over plain text reveals the password to the network.
pub(super) fn refuse_plain_text_login(server: &Options, allowed: bool) -> Result<(), ConfigError> {
    let is_login_required = server.credentials.is_some() || server.profile.is_cosmos();
    if allowed || !is_login_required {
        return Ok(());
    }
    match server.listen.iter().find(|address| is_reachable(address)) {
        None => Ok(()),
        Some(address) => Err(ConfigError::Together(format!(
            "listen = {address} can be reached from other machines, and clients would send their passwords there in plain text: \
             use tls-listen = {address} instead (with tls-certificate and tls-key, unless the profile cosmos makes them), or, where \
             the network itself is encrypted, set allow-plain-text-login"
        ))),
    }
}

/// Whether other machines can reach an address. `::ffff:127.0.0.1` is 127.0.0.1.
fn is_reachable(address: &SocketAddr) -> bool {
    !address.ip().to_canonical().is_loopback()
}

/// The admin port reveals which tables exist, and needs no login.
pub(super) fn refuse_open_admin(listen: Option<SocketAddr>, allowed: bool) -> Result<(), ConfigError> {
    match listen {
        Some(address) if is_reachable(&address) && !allowed => Err(ConfigError::Together(format!(
            "admin-listen = {address} can be reached from other machines and nobody has to log in there: choose an address of this \
             machine's own, or set allow-unauthenticated-network"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    /// Addresses, and whether other machines can reach them.
    const ADDRESSES: [(&str, bool); 9] = [
        ("127.0.0.1:9042", false),
        ("127.9.9.9:9042", false),
        ("[::1]:9042", false),
        ("[::ffff:127.0.0.1]:9042", false),
        ("0.0.0.0:9042", true),
        ("[::]:9042", true),
        ("192.0.2.1:9042", true),
        ("[2001:db8::1]:9042", true),
        ("[::ffff:192.0.2.1]:9042", true),
    ];

    const NO_LOGIN: &str = "allow-unauthenticated-network";
    const PLAIN_TEXT: &str = "allow-plain-text-login";

    /// The refusal of a start. `None` means it starts.
    fn start(given: &[(&str, &str)]) -> Option<String> {
        let given = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), vec![(*value).to_owned()]));
        let values = Values::gather(None, &given.collect(), |_| None).unwrap();
        Config::new(&values).err().map(|error| error.to_string())
    }

    #[test]
    fn which_logins_start_on_which_addresses() {
        let folder = tempfile::tempdir().unwrap();
        let password = folder.path().join("password");
        helenus_base::permissions::write(&password, "s3cret\n", helenus_base::permissions::PRIVATE).unwrap();
        let user = [("user", "u"), ("password-file", password.to_str().unwrap())];
        let (mut started, mut refused) = (0, 0);
        for (address, is_network) in ADDRESSES {
            for tls in [None, Some(("192.0.2.9:9142", true)), Some(("127.0.0.1:9142", false))] {
                for (login, login_settings) in [(false, &[][..]), (true, &user[..]), (true, &[("profile", "cosmos")])] {
                    for word in [None, Some(NO_LOGIN), Some(PLAIN_TEXT)] {
                        let mut given = vec![("listen", address)];
                        given.extend(login_settings);
                        given.extend(word.map(|word| (word, "true")));
                        if let Some((tls, _)) = tls {
                            given.extend([("tls-listen", tls), ("tls-certificate", "c"), ("tls-key", "k")]);
                        }
                        let is_tls_network = tls.is_some_and(|(_, is_network)| is_network);
                        let needs = match (login, is_network) {
                            (false, _) if is_network || is_tls_network => Some(NO_LOGIN),
                            (true, true) => Some(PLAIN_TEXT),
                            _ => None,
                        };
                        let came = start(&given);
                        if needs.is_none() || needs == word {
                            assert_eq!(came, None, "{given:?}");
                            started += 1;
                        } else {
                            let text = came.unwrap_or_default();
                            assert!(needs.is_some_and(|needs| text.contains(needs)), "{given:?}: {text}");
                            refused += 1;
                        }
                    }
                }
            }
        }
        assert_eq!((started, refused), (145, 98));
    }

    #[test]
    fn a_login_over_tls_alone_needs_no_word() {
        let files = [("tls-certificate", "c"), ("tls-key", "k")];
        let with = |more: &[(&'static str, &'static str)]| {
            let mut given = vec![("profile", "cosmos"), ("tls-listen", "0.0.0.0:10350")];
            given.extend(more);
            start(&given)
        };
        assert_eq!(with(&[]), None);
        assert_eq!(with(&files), None);
        let text = with(&[("listen", "0.0.0.0:9042")]).unwrap_or_default();
        assert!(
            text.contains("tls-listen = 0.0.0.0:9042") && text.contains(PLAIN_TEXT),
            "{text}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_password_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        helenus_base::permissions::write(&file, "s3cret\n", helenus_base::permissions::PUBLIC).unwrap();
        let file = file.to_str().unwrap();
        let text = start(&[("user", "u"), ("password-file", file)]).unwrap_or_default();
        assert!(
            text.ends_with(&format!("run chmod 600 {file}")) && !text.contains("s3cret"),
            "{text}"
        );
    }
}
