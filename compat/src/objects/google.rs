//! What Google Cloud Storage has otherwise than S3.
//!
//! Sources: Cloud Storage XML API (x-goog-if-generation-match, x-goog-generation, DELETE Object); Quotas & limits: one write a second to the same
//! object, beyond it 429 "SlowDown".

use std::time::Duration;

use super::Object;
use super::http::{Answer, Request};
use crate::clock;

/// Least time between two changes of an object. Google lets some more through; this is the strictest reading.
const CHANGE_INTERVAL: Duration = Duration::from_secs(1);

/// Says the object's generation.
pub(super) fn name(answer: &mut Answer, object: &Object) {
    answer.header("x-goog-generation", &object.generation.to_string());
}

fn too_early(there: Option<&Object>) -> Option<Answer> {
    let elapsed = there.map(|there| clock::now().duration_since(there.put_at));
    elapsed
        .is_some_and(|elapsed| elapsed < CHANGE_INTERVAL)
        .then(|| Answer::failed(429, "SlowDown"))
}

/// Why an object is not put over what is there; `None`: it is.
pub(super) fn refused(request: &Request, there: Option<&Object>) -> Option<Answer> {
    let wanted = request.header("x-goog-if-generation-match");
    let generation = there.map_or(0, |there| there.generation).to_string();
    too_early(there).or_else(|| {
        wanted
            .is_some_and(|wanted| wanted != generation)
            .then(|| Answer::failed(412, "PreconditionFailed"))
    })
}

/// Why an object is not removed; `None`: it is.
pub(super) fn not_removed(there: Option<&Object>) -> Option<Answer> {
    match there {
        None => Some(Answer::failed(404, "NoSuchKey")),
        Some(_) => too_early(there),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{GOOGLE_LISTED_MAX, Latency, Protocol, Shared};
    use super::*;

    fn answer(store: &Shared, head: &str) -> Answer {
        let text = format!("{head}\r\nContent-Length: 1\r\n\r\nx");
        let request = Request::read(&mut text.as_bytes()).unwrap().unwrap();
        store.answer(&request)
    }

    fn put(store: &Shared, path: &str, generation: u64) -> u16 {
        let head = format!("PUT {path} HTTP/1.1\r\nx-goog-if-generation-match: {generation}");
        answer(store, &head).status
    }

    /// As if it had been put some time ago.
    fn let_pass(store: &Shared, path: &str) -> u64 {
        let mut state = store.state();
        let object = state.objects.get_mut(path).unwrap();
        object.put_at = object.put_at.checked_sub(CHANGE_INTERVAL).unwrap();
        object.generation
    }

    #[test]
    fn generations_are_conditions_and_an_object_changes_once_a_second() {
        let store = Shared::new(Protocol::Google, Latency::NONE);
        assert_eq!(put(&store, "/b/a", 7), 412);
        assert_eq!(put(&store, "/b/a", 0), 200);
        assert_eq!(put(&store, "/b/a", 0), 429);
        assert_eq!(answer(&store, "DELETE /b/a HTTP/1.1").status, 429);
        let generation = let_pass(&store, "/b/a");
        assert_eq!(put(&store, "/b/a", 0), 412);
        assert_eq!(put(&store, "/b/a", generation), 200);
        let newer = let_pass(&store, "/b/a");
        assert!(newer > generation);
        assert_eq!(put(&store, "/b/a", generation), 412);
        assert_eq!(answer(&store, "DELETE /b/a HTTP/1.1").status, 204);
        assert_eq!(answer(&store, "DELETE /b/a HTTP/1.1").status, 404);
        assert_eq!(answer(&store, "GET /nosuchbucket/a HTTP/1.1").status, 404);
    }

    #[test]
    fn pages_of_a_list_have_everything_once() {
        let store = Shared::new(Protocol::Google, Latency::NONE);
        let count = 2 * GOOGLE_LISTED_MAX + 50;
        for number in 0..count {
            assert_eq!(put(&store, &format!("/b/p/{number:04}"), 0), 200);
            assert_eq!(put(&store, &format!("/b/q/{number:04}/x"), 0), 200);
            assert_eq!(put(&store, &format!("/b/q/{number:04}/y"), 0), 200);
        }
        let listed = |query: &str, part: &str| {
            let (mut found, mut token) = (Vec::new(), String::new());
            loop {
                let head = format!("GET /b?list-type=2&{query}&continuation-token={token} HTTP/1.1");
                let body = String::from_utf8(answer(&store, &head).body).unwrap();
                let of = |name: &str| -> Vec<String> {
                    let tag = format!("<{name}>");
                    let parts = body.split(&tag).skip(1);
                    parts.map(|part| part.split('<').next().unwrap().to_owned()).collect()
                };
                found.push(of(part));
                match of("NextContinuationToken").first() {
                    Some(next) => token.clone_from(next),
                    None => return found,
                }
            }
        };
        let keys = listed("prefix=p/", "Key");
        let expected: Vec<String> = (0..count).map(|number| format!("p/{number:04}")).collect();
        assert_eq!((keys.len(), keys.concat()), (3, expected));
        let folders = listed("prefix=q/&delimiter=/", "Prefix");
        let expected: Vec<String> = (0..count).map(|number| format!("q/{number:04}/")).collect();
        assert_eq!((folders.len(), folders.concat()), (3, expected));
        assert_eq!(listed("prefix=p/&start-after=p/0248", "Key").concat(), ["p/0249"]);
    }
}
