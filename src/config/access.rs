//! Who is let in, and how: TLS, logins, and addresses that other machines reach.

use std::net::SocketAddr;
use std::path::Path;

use super::values::read;
use super::{ConfigError, Values};
use crate::profile::Profile;
use crate::server::{Credentials, Options, TlsIdentity, TlsOptions};

pub(super) fn tls(values: &Values, profile: Profile) -> Result<Option<TlsOptions>, ConfigError> {
    let listen = values.addresses("tls-listen")?;
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
        })),
        (false, None, None) if profile.is_cosmos() => Ok(Some(TlsOptions {
            listen,
            identity: TlsIdentity::SelfMade,
        })),
        _ => Err(ConfigError::Together(
            "tls-listen, tls-certificate and tls-key go together".into(),
        )),
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
        // Without a key the server makes one when it starts.
        return Ok(key.map(|key| Credentials {
            user: account.to_owned(),
            password: key.to_owned(),
        }));
    }
    match (values.text("user"), values.text("password-file")) {
        (None, None) => Ok(None),
        (Some(user), Some(file)) => {
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

/// Whoever can reach an address without a login can do everything.
pub(super) fn refuse_open_network(server: &Options, allowed: bool) -> Result<(), ConfigError> {
    // In the profile cosmos everybody logs in, if need be with a key that the server has made.
    if allowed || server.credentials.is_some() || server.profile.is_cosmos() {
        return Ok(());
    }
    let tls = server.tls.iter().flat_map(|tls| &tls.listen);
    match server
        .listen
        .iter()
        .chain(tls)
        .find(|address| !address.ip().is_loopback())
    {
        None => Ok(()),
        Some(address) => Err(ConfigError::Together(format!(
            "{address} can be reached from other machines and nobody would have to log in: set user and password-file, or \
             allow-unauthenticated-network"
        ))),
    }
}

/// Figures tell what tables there are, and nobody logs in to see them.
pub(super) fn refuse_open_admin(listen: Option<SocketAddr>, allowed: bool) -> Result<(), ConfigError> {
    match listen {
        Some(address) if !address.ip().is_loopback() && !allowed => Err(ConfigError::Together(format!(
            "admin-listen = {address} can be reached from other machines and nobody has to log in there: choose an address of this \
             machine's own, or set allow-unauthenticated-network"
        ))),
        _ => Ok(()),
    }
}
