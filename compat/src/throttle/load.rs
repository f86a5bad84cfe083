//! Load of a set number of operations a second, whatever becomes of them.

use super::{Options, Place, retry_after};
use crate::raw::request::{self, Bound, Params};
use crate::raw::{Connection, Envelope, answer, opcode, put_bytes, put_string};
use crate::{Error, Outcome, clock};
use serde_json::Value;
use std::time::Duration;

/// What one operation of the load is charged: an UPDATE of a small row.
pub(super) const UNITS_OF_ONE: f64 = 10.0;

/// Time between two bursts of a connection.
const TICK: Duration = Duration::from_millis(10);

/// The key under which a charge is asked for and told.
const CHARGE: &str = "RequestCharge";

/// The flag of frames with a custom payload.
const CUSTOM_PAYLOAD: u8 = 0x04;

/// What became of the operations on one physical partition.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Done {
    pub(super) units: f64,
    pub(super) refused: u64,
}

/// Offers each partition so many operations a second, on all connections together.
pub(super) fn run(
    address: &str,
    table: &str,
    places: &[Place],
    offers: &[f64],
    options: &Options,
) -> Outcome<Vec<Done>> {
    let connections = options.connections.max(1);
    #[expect(clippy::cast_precision_loss, reason = "few connections")]
    let mine: Vec<f64> = offers.iter().map(|offer| offer / connections as f64).collect();
    let threads: Vec<_> = (0..connections)
        .map(|number| {
            let (address, table, places, mine) = (address.to_owned(), table.to_owned(), places.to_vec(), mine.clone());
            let (phase, seed) = (Duration::from_secs(options.seconds), number as u64 + 1);
            std::thread::spawn(move || one(&address, &table, &places, &mine, phase, seed))
        })
        .collect();
    let mut sums = vec![Done::default(); places.len()];
    for thread in threads {
        let done = thread.join().map_err(|_| Error::failed("a load thread panicked"))??;
        for (sum, done) in sums.iter_mut().zip(done) {
            sum.units += done.units;
            sum.refused += done.refused;
        }
    }
    Ok(sums)
}

fn one(address: &str, table: &str, places: &[Place], offers: &[f64], phase: Duration, seed: u64) -> Outcome<Vec<Done>> {
    let mut connection = Connection::open(address, 4)?;
    let (update, _) = connection.prepare(&format!("UPDATE throttle.{table} SET v = ? WHERE k = ?"))?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut done = vec![Done::default(); places.len()];
    // What is due of each partition: whole operations go out, fractions wait for the next tick.
    let mut due = vec![0.0; places.len()];
    let start = clock::now();
    let mut told_until = Duration::ZERO;
    loop {
        let now = start.elapsed();
        if now >= phase {
            return Ok(done);
        }
        let passed = (now - told_until).as_secs_f64();
        told_until = now;
        let mut bytes = Vec::new();
        let mut sent: Vec<usize> = Vec::new();
        for (number, (place, offer)) in places.iter().zip(offers).enumerate() {
            let Some(due) = due.get_mut(number) else { continue };
            *due += offer * passed;
            while *due >= 1.0 && sent.len() < usize::from(i16::MAX.unsigned_abs()) {
                *due -= 1.0;
                let key = place
                    .keys
                    .get(random.usize(..place.keys.len()))
                    .copied()
                    .unwrap_or_default();
                let params = Params {
                    values: vec![
                        Bound::Bytes(random.i32(..).to_be_bytes().to_vec()),
                        Bound::Bytes(key.to_be_bytes().to_vec()),
                    ],
                    skip_metadata: true,
                    ..Params::default()
                };
                let stream = i16::try_from(sent.len()).unwrap_or(0);
                put_asking(&mut bytes, stream, &request::execute(4, &update, &params));
                sent.push(number);
            }
        }
        connection.send(&bytes)?;
        for _ in 0..sent.len() {
            let envelope = connection.receive()?;
            let number = usize::try_from(envelope.stream)
                .ok()
                .and_then(|stream| sent.get(stream));
            let Some(done) = number.and_then(|number| done.get_mut(*number)) else {
                continue;
            };
            match envelope.opcode {
                opcode::RESULT => done.units += charge(&envelope),
                _ => refused(&envelope, done)?,
            }
        }
        std::thread::sleep(TICK.saturating_sub(start.elapsed() - now));
    }
}

/// Appends an EXECUTE, of version 4, whose custom payload asks to be told the charge.
fn put_asking(out: &mut Vec<u8>, stream: i16, message: &[u8]) {
    let mut body = vec![0, 1];
    put_string(&mut body, CHARGE);
    put_bytes(&mut body, &[1]);
    body.extend_from_slice(message);
    out.extend_from_slice(&[4, CUSTOM_PAYLOAD]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.push(opcode::EXECUTE);
    put_bytes(out, &body);
}

/// Counts a refusal, which has to be one that tells how long to wait.
fn refused(envelope: &Envelope, done: &mut Done) -> Outcome<()> {
    let told = answer::plain(envelope)?;
    let message = told.get("message").and_then(Value::as_str).unwrap_or_default();
    if told.get("code").and_then(Value::as_str) != Some("0x1001") || retry_after(message).is_none() {
        return Err(Error::failed(format!("refused otherwise than for its rate: {told}")));
    }
    done.refused += 1;
    Ok(())
}

/// `RequestCharge` of an answer's payload, eight bytes of a double; where a server tells none, the price of the operation.
fn charge(envelope: &Envelope) -> f64 {
    let name = CHARGE.as_bytes();
    let place = envelope.body.windows(name.len()).position(|window| window == name);
    // Behind the name comes a length of four bytes.
    let bytes = place.and_then(|place| envelope.body.get(place + name.len() + 4..)?.first_chunk::<8>());
    let told = bytes.filter(|_| envelope.flags & CUSTOM_PAYLOAD != 0);
    told.map_or(UNITS_OF_ONE, |bytes| f64::from_be_bytes(*bytes))
}
