//! Sockets over TCP, with TLS where it is configured.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::endpoint::{Dial, Endpoint};
use super::link::BoxSocket;
use super::transport::PeerAddress;

/// The pause after a connection could not be accepted, as when there are no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How connections are encrypted.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Of connections that others open.
    pub server: Arc<ServerConfig>,
    /// Of those that this node opens.
    pub client: Arc<ClientConfig>,
    /// The name that other nodes' certificates must have. `None` means the host of their address.
    pub name: Option<ServerName<'static>>,
}

/// TCP sockets.
#[derive(Debug)]
pub struct Tcp {
    /// `None` means plain TCP.
    tls: Mutex<Option<Tls>>,
}

impl Tcp {
    /// Sockets with this encryption; `None` means plain TCP.
    #[must_use]
    pub fn new(tls: Option<Tls>) -> Arc<Self> {
        Arc::new(Self { tls: Mutex::new(tls) })
    }

    /// Changes the encryption of connections that are opened from now on.
    pub fn set_tls(&self, tls: Option<Tls>) {
        *self.tls.lock().unwrap_or_else(PoisonError::into_inner) = tls;
    }

    fn tls(&self) -> Option<Tls> {
        self.tls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Accepts connections until the endpoint is closed.
    pub fn listen(self: &Arc<Self>, endpoint: &Endpoint, listener: TcpListener) {
        let (tcp, weak) = (Arc::clone(self), endpoint.downgrade());
        endpoint.spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                let Some(endpoint) = weak.upgrade() else { return };
                endpoint.admit(secure(stream, tcp.tls()));
            }
        });
    }
}

async fn secure(stream: TcpStream, tls: Option<Tls>) -> io::Result<BoxSocket> {
    stream.set_nodelay(true)?;
    Ok(match tls {
        None => Box::new(stream),
        Some(tls) => Box::new(TlsAcceptor::from(tls.server).accept(stream).await?),
    })
}

/// The host of `HOST:PORT`, without the brackets of an IPv6 address.
fn host(address: &PeerAddress) -> &str {
    let host = address
        .as_str()
        .rsplit_once(':')
        .map_or(address.as_str(), |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

impl Dial for Tcp {
    fn dial(&self, to: PeerAddress) -> BoxFuture<'static, io::Result<BoxSocket>> {
        let tls = self.tls();
        async move {
            let stream = TcpStream::connect(to.as_str()).await?;
            stream.set_nodelay(true)?;
            let Some(tls) = tls else {
                return Ok(Box::new(stream) as BoxSocket);
            };
            let name = match tls.name {
                Some(name) => name,
                None => ServerName::try_from(host(&to).to_owned()).map_err(|_| io::ErrorKind::InvalidInput)?,
            };
            let stream = TlsConnector::from(tls.client).connect(name, stream).await?;
            Ok(Box::new(stream) as BoxSocket)
        }
        .boxed()
    }
}
