//! A server that does nothing: canned frames, so that a load's own cost can be told from a server's.

use crate::raw::{opcode, put_bytes, put_short_bytes, put_string};
use crate::{Error, Outcome};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

/// Answers on `listen` until the process ends; writes the address to `ready`.
///
/// # Errors
/// When it cannot listen.
pub fn run(listen: &str, ready: Option<&Path>) -> Outcome<bool> {
    let listener = TcpListener::bind(listen).map_err(Error::io(format!("listen on {listen}")))?;
    let address = listener.local_addr()?;
    println!("answering nothing on {address}");
    if let Some(path) = ready {
        std::fs::write(path, format!("{address}\n"))?;
    }
    for client in listener.incoming().flatten() {
        // A client that goes away ends its thread, and nothing else.
        std::thread::spawn(move || serve(client));
    }
    Ok(true)
}

/// Reads whole requests and answers all that came together in one write.
fn serve(mut client: TcpStream) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let canned = Canned::new();
    let (mut got, mut out) = (Vec::new(), Vec::new());
    let mut chunk = vec![0u8; 1 << 16];
    loop {
        let n = client.read(&mut chunk)?;
        if n == 0 {
            return Ok(());
        }
        got.extend(chunk.iter().take(n));
        let mut at = 0;
        while let Some((head, rest)) = got.get(at..).and_then(|g| g.split_at_checked(9)) {
            let &[version, _, s1, s2, op, l1, l2, l3, l4] = head else {
                break;
            };
            let len = usize::try_from(u32::from_be_bytes([l1, l2, l3, l4])).unwrap_or(0);
            let Some(body) = rest.get(..len) else { break };
            let (answer, body) = canned.answer(op, body);
            out.extend_from_slice(&[version | 0x80, 0, s1, s2, answer]);
            put_bytes(&mut out, &body);
            at += 9 + len;
        }
        got.drain(..at);
        client.write_all(&out)?;
        out.clear();
    }
}

/// Bodies of answers, made once.
pub(crate) struct Canned {
    row: Vec<u8>,
    slice: Vec<u8>,
    applied: Vec<u8>,
}

impl Canned {
    pub(crate) fn new() -> Self {
        Self {
            row: rows(1),
            slice: rows(100),
            applied: applied(),
        }
    }

    fn result(&self, id: Option<u8>) -> Vec<u8> {
        match id {
            Some(1) => self.row.clone(),
            Some(2) => self.slice.clone(),
            Some(3) => self.applied.clone(),
            _ => void(),
        }
    }

    /// Opcode and body of the answer. Prepared ids say what was prepared: 0 a write, 1 a row, 2 a slice, 3 a
    /// conditional write.
    pub(crate) fn answer(&self, op: u8, body: &[u8]) -> (u8, Vec<u8>) {
        match op {
            opcode::STARTUP | opcode::REGISTER => (opcode::READY, Vec::new()),
            opcode::PREPARE => (opcode::RESULT, prepared(id_of(body))),
            opcode::EXECUTE => (opcode::RESULT, self.result(body.get(2).copied())),
            opcode::QUERY => (opcode::RESULT, self.result(Some(id_of(body)))),
            opcode::OPTIONS => (opcode::SUPPORTED, vec![0, 0]),
            _ => (opcode::RESULT, void()),
        }
    }
}

/// The id of a statement.
fn id_of(text: &[u8]) -> u8 {
    let text = String::from_utf8_lossy(text);
    if text.contains("LIMIT 100") {
        2
    } else if text.contains(" IF ") {
        3
    } else {
        u8::from(text.contains("SELECT"))
    }
}

fn void() -> Vec<u8> {
    1i32.to_be_bytes().to_vec()
}

fn prepared(id: u8) -> Vec<u8> {
    let mut body = 4i32.to_be_bytes().to_vec();
    put_short_bytes(&mut body, &[id; 16]);
    // No markers, no partition key; then no result.
    for n in [0i32, 0, 0, 4, 0] {
        body.extend_from_slice(&n.to_be_bytes());
    }
    body
}

/// What a conditional write that is applied answers.
fn applied() -> Vec<u8> {
    let mut body = Vec::new();
    for n in [2i32, 1, 1] {
        body.extend_from_slice(&n.to_be_bytes());
    }
    put_string(&mut body, "bench");
    put_string(&mut body, "narrow");
    put_string(&mut body, "[applied]");
    body.extend_from_slice(&4u16.to_be_bytes());
    body.extend_from_slice(&1i32.to_be_bytes());
    put_bytes(&mut body, &[1]);
    body
}

/// `count` rows of a key and a hundred bytes.
fn rows(count: i32) -> Vec<u8> {
    let mut body = Vec::new();
    for n in [2i32, 1, 2] {
        body.extend_from_slice(&n.to_be_bytes());
    }
    put_string(&mut body, "bench");
    put_string(&mut body, "t");
    put_string(&mut body, "k");
    body.extend_from_slice(&9u16.to_be_bytes());
    put_string(&mut body, "v");
    body.extend_from_slice(&3u16.to_be_bytes());
    body.extend_from_slice(&count.to_be_bytes());
    for n in 0..count {
        put_bytes(&mut body, &n.to_be_bytes());
        put_bytes(&mut body, &[7; 100]);
    }
    body
}
