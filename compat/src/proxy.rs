//! Forwards connections: lends a server more addresses, for suites that want several on one port.

use crate::{Error, Outcome};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

/// Forwards from each of `listen` to `target`, until the process ends.
///
/// # Errors
/// When an address cannot be listened on.
pub fn run(listen: &[String], target: &str) -> Outcome<bool> {
    let mut threads = Vec::new();
    for address in listen {
        let listener = TcpListener::bind(address).map_err(Error::io(format!("listen on {address}")))?;
        println!("{address} -> {target}");
        let target = target.to_owned();
        threads.push(std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if let Ok(server) = TcpStream::connect(&target) {
                    join(client, server);
                }
            }
        }));
    }
    for thread in threads {
        thread
            .join()
            .map_err(|_| Error::failed("a forwarding thread panicked"))?;
    }
    Ok(true)
}

/// Copies both ways, each in a thread that ends with its side.
fn join(client: TcpStream, server: TcpStream) {
    let (Ok(client_too), Ok(server_too)) = (client.try_clone(), server.try_clone()) else {
        return;
    };
    for (mut from, mut to) in [(client, server_too), (server, client_too)] {
        // Latency would otherwise be that of Nagle's algorithm; without it the copy still works.
        let _latency_only = to.set_nodelay(true);
        std::thread::spawn(move || {
            let mut chunk = vec![0u8; 1 << 16];
            while let Ok(n @ 1..) = from.read(&mut chunk) {
                if to.write_all(chunk.get(..n).unwrap_or_default()).is_err() {
                    break;
                }
            }
            // The other side may be gone already.
            let _already_closed = to.shutdown(Shutdown::Write);
        });
    }
}
