//! Sockets over TCP, encrypted by TLS.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::endpoint::{Dial, Endpoint};
use super::link::BoxSocket;
use super::tls::Tls;
use super::transport::PeerAddress;

/// The pause after a connection could not be accepted, as when there are no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// TCP sockets.
#[derive(Debug)]
pub struct Tcp {
    tls: Mutex<Tls>,
}

impl Tcp {
    /// Sockets with this encryption.
    #[must_use]
    pub fn new(tls: Tls) -> Arc<Self> {
        Arc::new(Self { tls: Mutex::new(tls) })
    }

    /// Changes the encryption of connections that are opened from now on.
    pub fn set_tls(&self, tls: Tls) {
        *self.tls.lock().unwrap_or_else(PoisonError::into_inner) = tls;
    }

    fn tls(&self) -> Tls {
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

async fn secure(stream: TcpStream, tls: Tls) -> io::Result<BoxSocket> {
    stream.set_nodelay(true)?;
    Ok(Box::new(TlsAcceptor::from(tls.server).accept(stream).await?))
}

impl Dial for Tcp {
    fn dial(&self, to: PeerAddress) -> BoxFuture<'static, io::Result<BoxSocket>> {
        let tls = self.tls();
        async move {
            let stream = TcpStream::connect(to.as_str()).await?;
            stream.set_nodelay(true)?;
            let stream = TlsConnector::from(tls.client).connect(tls.name, stream).await?;
            Ok(Box::new(stream) as BoxSocket)
        }
        .boxed()
    }
}
