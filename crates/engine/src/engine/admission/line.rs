//! The lines of statements that wait in the server for request units.
//!
//! A statement waits in the line of the account that refused it. Lines are in the order in which statements came. Only
//! the first of a line asks for admission; when it leaves, it wakes the next. A new statement does not overtake: it joins
//! the line of an account for which others wait. A statement of several accounts waits in one line at a time, so that a
//! line is never held up by an account that its other statements do not need.
//!
//! After a split or merge, statements with an old partition map stay in the line of the old account, beside the line of
//! its successor: both proceed.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::throughput::Account;

/// Statements by their numbers, each with what wakes it.
type Line = BTreeMap<u64, Arc<Notify>>;

#[derive(Debug, Default)]
pub(super) struct Lines {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// By the address of the account, which those who wait keep alive. No line is empty.
    lines: HashMap<usize, Line>,
    next: u64,
}

/// A place in a line; left when dropped.
#[derive(Debug)]
pub(super) struct Place<'a> {
    lines: &'a Lines,
    account: Arc<Account>,
    number: u64,
    woken: Arc<Notify>,
}

fn address(account: &Arc<Account>) -> usize {
    Arc::as_ptr(account).addr()
}

impl Lines {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The position of the first of these accounts for which statements wait.
    pub(super) fn waited_for(&self, accounts: &[Arc<Account>]) -> Option<usize> {
        let inner = self.inner();
        accounts
            .iter()
            .position(|account| inner.lines.contains_key(&address(account)))
    }

    /// Joins the end of the line of an account.
    pub(super) fn join(&self, account: &Arc<Account>) -> Place<'_> {
        let woken = Arc::new(Notify::new());
        let mut inner = self.inner();
        let number = inner.next;
        inner.next += 1;
        let line = inner.lines.entry(address(account)).or_default();
        line.insert(number, Arc::clone(&woken));
        Place {
            lines: self,
            account: Arc::clone(account),
            number,
            woken,
        }
    }
}

impl Place<'_> {
    /// Whether no statement that came before waits in this line.
    pub(super) fn is_first(&self) -> bool {
        let inner = self.lines.inner();
        let line = inner.lines.get(&address(&self.account));
        line.and_then(|line| line.first_key_value())
            .is_some_and(|(number, _)| *number == self.number)
    }

    /// Changes to the line of another account, before those who came later. Nothing changes if it is there already.
    pub(super) fn move_to(&mut self, account: &Arc<Account>) {
        if Arc::ptr_eq(&self.account, account) {
            return;
        }
        self.leave();
        self.account = Arc::clone(account);
        let mut inner = self.lines.inner();
        let line = inner.lines.entry(address(account)).or_default();
        line.insert(self.number, Arc::clone(&self.woken));
    }

    /// Waits until it may have become the first.
    pub(super) async fn woken(&self) {
        self.woken.notified().await;
    }

    fn leave(&self) {
        let mut inner = self.lines.inner();
        let address = address(&self.account);
        let Some(line) = inner.lines.get_mut(&address) else {
            return;
        };
        line.remove(&self.number);
        match line.first_key_value() {
            Some((_, woken)) => woken.notify_one(),
            None => drop(inner.lines.remove(&address)),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;

    use super::*;
    use crate::throughput::RequestUnits;

    fn account() -> Arc<Account> {
        Arc::new(Account::new(RequestUnits::whole(400), false, None, Duration::ZERO))
    }

    #[test]
    fn a_line_keeps_its_order_and_wakes_the_next() {
        let (lines, one, other) = (Lines::default(), account(), account());
        assert_eq!(lines.waited_for(&[Arc::clone(&one)]), None);
        let first = lines.join(&one);
        let second = lines.join(&one);
        assert_eq!(lines.waited_for(&[Arc::clone(&other), Arc::clone(&one)]), Some(1));
        assert!(first.is_first() && !second.is_first());
        assert!(second.woken().now_or_never().is_none());
        drop(first);
        assert!(second.is_first() && second.woken().now_or_never().is_some());
        drop(second);
        assert_eq!(lines.waited_for(&[one]), None);
    }

    #[test]
    fn a_move_goes_before_those_who_came_later() {
        let (lines, one, other) = (Lines::default(), account(), account());
        let mut first = lines.join(&one);
        let second = lines.join(&one);
        let third = lines.join(&other);
        first.move_to(&other);
        assert!(first.is_first() && second.is_first() && !third.is_first());
        assert!(second.woken().now_or_never().is_some());
        drop(first);
        assert!(third.is_first() && third.woken().now_or_never().is_some());
    }
}
