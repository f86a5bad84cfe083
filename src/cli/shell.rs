//! `helenus shell`: cqlsh against a running server, with its login and its certificate. Where there is no cqlsh, this program's own runs
//! statements and files; only a prompt needs Python's.

use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use super::cqlsh::{self, Unreached};
use super::record::ServerRecord;
use super::{Failure, terminal};
use helenus_base::permissions::{self, PRIVATE};
use helenus_schema::profile::Profile;

/// A call of cqlsh: its arguments and its environment.
#[derive(Debug, Default)]
pub struct Call {
    arguments: Vec<String>,
    environment: Vec<(&'static str, OsString)>,
    /// Temporary files of this call, removed when it ends.
    files: Vec<PathBuf>,
}

impl Drop for Call {
    fn drop(&mut self) {
        for file in &self.files {
            // Best effort: the files are in the temporary directory, and only their owner can read them.
            drop(fs::remove_file(file));
        }
    }
}

impl Call {
    /// The call for a server. Files in `folder` carry login and certificate, since other users can see arguments.
    /// `name` distinguishes these files from those of other calls.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn new(record: &ServerRecord, profile: Profile, folder: &Path, name: &str) -> io::Result<Self> {
        let mut call = Self::default();
        let Some(address) = record.cql.as_ref().or(record.tls.as_ref()) else {
            return Err(io::Error::new(
                io::ErrorKind::AddrNotAvailable,
                "the server has no address",
            ));
        };
        let address: SocketAddr = address.parse().map_err(io::Error::other)?;
        let host = if address.ip().is_unspecified() {
            "127.0.0.1".to_owned()
        } else {
            address.ip().to_string()
        };
        call.arguments = vec![host, address.port().to_string()];
        if let (Some(account), Some(key)) = (&record.account, &record.key) {
            // The file for `cqlsh --credentials`. Its parser takes a percent sign in the user as a reference, in the
            // password literally.
            let account = account.replace('%', "%%");
            let text = format!("[plain_text_auth]\nusername = {account}\npassword = {key}\n");
            let file = call.file(folder, &format!("{name}.credentials"), &text)?;
            call.arguments.push(format!("--credentials={}", file.display()));
        }
        if record.cql.is_none() {
            call.arguments.push("--ssl".to_owned());
            if let Some(certificate) = &record.certificate_pem {
                let file = call.file(folder, &format!("{name}.pem"), certificate)?;
                call.environment.push(("SSL_CERTFILE", file.into_os_string()));
                call.environment.push(("SSL_VALIDATE", "true".into()));
            }
        }
        if profile.is_cosmos() {
            // The service supports no later version.
            call.arguments.push("--protocol-version=4".to_owned());
        }
        Ok(call)
    }

    fn file(&mut self, folder: &Path, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = folder.join(name);
        permissions::write(&path, text, PRIVATE)?;
        self.files.push(path.clone());
        Ok(path)
    }

    /// The words after `cqlsh`, for people.
    #[must_use]
    pub fn words(&self) -> String {
        self.arguments.join(" ")
    }

    /// How to call cqlsh without `helenus shell`, if no login and no certificate is needed: the files for those exist
    /// only during this call.
    fn advice(&self) -> String {
        match self.files.as_slice() {
            [] => format!(", or\n    cqlsh {}", self.words()),
            _ => String::new(),
        }
    }

    /// Runs cqlsh with further arguments until it ends.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn run<'a>(
        &self,
        cqlsh: &Path,
        further: impl Iterator<Item = &'a String>,
    ) -> io::Result<std::process::ExitStatus> {
        let environment = self.environment.iter().map(|(name, value)| (*name, value));
        let mut command = Command::new(cqlsh);
        // By this name the program itself acts as cqlsh, too.
        std::os::unix::process::CommandExt::arg0(&mut command, cqlsh::NAME);
        command.args(&self.arguments).args(further).envs(environment).status()
    }
}

/// The first cqlsh on the search path.
#[must_use]
pub fn find_cqlsh() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join("cqlsh"))
        .find(|file| file.is_file())
}

/// Whether the arguments of cqlsh, or standard input, have what it shall run: then it needs no prompt.
fn is_script<'a>(mut arguments: impl Iterator<Item = &'a String>) -> bool {
    let begins = ["-e", "-f", "--execute", "--file"];
    arguments.any(|argument| begins.iter().any(|option| argument.starts_with(option))) || !io::stdin().is_terminal()
}

/// What to do about a failure of cqlsh, if its cause is the server's address or login.
fn next_step(record: &ServerRecord) -> Option<String> {
    let address = record.cql.as_ref().or(record.tls.as_ref())?;
    match cqlsh::why_unreached(record)? {
        Unreached::Stopped => Some(format!(
            "no server listens at {address}: start it with helenus, or give --listen ADDRESS:PORT of the one that is meant"
        )),
        Unreached::WrongLogin => Some(format!(
            "the server at {address} refuses the login of its settings as {}: the role was dropped, or its password changed; \
             log in as another one with helenus shell -- -u ROLE -p PASSWORD",
            record.account.as_deref().unwrap_or("nobody")
        )),
    }
}

/// Runs cqlsh against a server until it ends. Without cqlsh on the machine this program's own runs statements and files; for a prompt it
/// prints how to install cqlsh.
///
/// # Errors
/// A file for the login cannot be written, or cqlsh cannot be started.
pub fn start<'a>(
    record: &ServerRecord,
    profile: Profile,
    arguments: impl Iterator<Item = &'a String> + Clone,
) -> Result<ExitCode, Failure> {
    let name = format!("helenus-shell-{}", std::process::id());
    let call = Call::new(record, profile, &std::env::temp_dir(), &name)?;
    let cqlsh = match find_cqlsh() {
        Some(cqlsh) => cqlsh,
        None if is_script(arguments.clone()) => std::env::current_exe()?,
        None => {
            println!(
                "cqlsh is not on the search path, and only it has a prompt. Statements run without it:\n\n    helenus shell -e STATEMENTS\n    \
                 helenus shell -f FILE\n\nFor a prompt:\n\n    pipx install cqlsh\n    helenus shell, with the same arguments{}",
                call.advice()
            );
            return Ok(ExitCode::FAILURE);
        }
    };
    let status = call.run(&cqlsh, arguments.clone())?;
    let is_own_login = !arguments
        .into_iter()
        .any(|argument| argument.starts_with("-u") || argument.starts_with("--user"));
    if status.code() == Some(1)
        && is_own_login
        && let Some(next) = next_step(record)
    {
        terminal::say(format_args!("helenus: {next}"));
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_with_tls_and_a_login_is_reached_without_its_password_in_the_arguments() {
        let folder = tempfile::tempdir().unwrap();
        let record = ServerRecord {
            api: 1,
            cql: None,
            tls: Some("0.0.0.0:10350".to_owned()),
            admin: None,
            tables: None,
            token: None,
            profile: Some("cosmos".to_owned()),
            account: Some("ada".to_owned()),
            key: Some("50%==".to_owned()),
            certificate_pem: Some("PEM".to_owned()),
            pid: 1,
        };
        let call = Call::new(&record, Profile::Cosmos, folder.path(), "shell").unwrap();
        let credentials = folder.path().join("shell.credentials");
        assert_eq!(
            call.words(),
            format!(
                "127.0.0.1 10350 --credentials={} --ssl --protocol-version=4",
                credentials.display()
            )
        );
        let text = fs::read_to_string(&credentials).unwrap();
        assert_eq!(text, "[plain_text_auth]\nusername = ada\npassword = 50%==\n");
        assert_eq!(call.advice(), "", "the files are gone when cqlsh is called");
        drop(call);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
