//! Delivery of events: to the connections that registered for their kind, each through a bounded queue.
//!
//! A connection whose queue is full is dropped from the list; its receiver then ends and the connection closes itself.
//! A client that registers for events must read them.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::{Receiver, Sender, channel};

use helenus_types::wire::request::EventKind;
use helenus_types::wire::response::Event;

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kinds(u8);

impl Kinds {
    const fn of(kind: EventKind) -> Self {
        Self(match kind {
            EventKind::TopologyChange => 1,
            EventKind::StatusChange => 2,
            EventKind::SchemaChange => 4,
        })
    }

    const fn has(self, kind: EventKind) -> bool {
        self.0 & Self::of(kind).0 != 0
    }
}

#[derive(Debug)]
struct Subscriber {
    id: u64,
    kinds: Kinds,
    sender: Sender<Arc<Event>>,
}

/// The registered connections of a server.
#[derive(Debug, Default)]
pub struct Events {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    next_id: u64,
    subscribers: Vec<Subscriber>,
}

/// One connection's registration; ends with it.
#[derive(Debug)]
pub struct Subscription {
    id: u64,
    events: Arc<Events>,
    /// The events, in order. Ends when the connection has been too slow.
    pub receiver: Receiver<Arc<Event>>,
}

impl Events {
    fn locked(&self) -> std::sync::MutexGuard<'_, Inner> {
        // A panic under this lock leaves a consistent list.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An empty registration, with space for `events_max` queued events.
    #[must_use]
    pub fn subscribe(self: &Arc<Self>, events_max: usize) -> Subscription {
        let (sender, receiver) = channel(events_max.max(1));
        let mut inner = self.locked();
        inner.next_id += 1;
        let id = inner.next_id;
        inner.subscribers.push(Subscriber {
            id,
            kinds: Kinds::default(),
            sender,
        });
        Subscription {
            id,
            events: Arc::clone(self),
            receiver,
        }
    }

    /// Sends an event to every connection that registered for its kind.
    pub fn emit(&self, event: Event) {
        let event = Arc::new(event);
        let kind = event.kind();
        self.locked()
            .subscribers
            .retain(|subscriber| !subscriber.kinds.has(kind) || subscriber.sender.try_send(Arc::clone(&event)).is_ok());
    }
}

impl Subscription {
    /// Adds kinds.
    pub fn register(&self, kinds: &[EventKind]) {
        let mut inner = self.events.locked();
        if let Some(subscriber) = inner.subscribers.iter_mut().find(|subscriber| subscriber.id == self.id) {
            for kind in kinds {
                subscriber.kinds.0 |= Kinds::of(*kind).0;
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.events
            .locked()
            .subscribers
            .retain(|subscriber| subscriber.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helenus_types::wire::response::StatusChange;

    #[test]
    fn only_registered_connections_get_events_and_slow_ones_are_dropped() {
        let events = Arc::new(Events::default());
        let mut quiet = events.subscribe(2);
        let mut wants = events.subscribe(2);
        wants.register(&[EventKind::StatusChange]);
        let up = || Event::Status(StatusChange::Up, "127.0.0.1:9042".parse().unwrap());
        for _ in 0..3 {
            events.emit(up());
        }
        assert!(quiet.receiver.try_recv().is_err());
        assert!(wants.receiver.try_recv().is_ok());
        assert!(wants.receiver.try_recv().is_ok());
        assert!(wants.receiver.is_closed());
        drop(quiet);
        assert!(events.locked().subscribers.is_empty());
    }
}
