//! What listens for signals, and what a signal leads to.
//!
//! No thread, clock or handler is used here: the signals thread brings the signals.
//!
//! # Invariants
//!
//! 1. A listener is in the table exactly as long as its [`SignalRegistration`].
//! 2. No waker and no function of a listener is called or dropped while the lock is held.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::OsSignal;
use crate::panic::{catch_panic, wake};
use crate::path::Path;
use crate::sync::Mutex;

pub(super) type FirstHook = Arc<dyn Fn(OsSignal) + Send + Sync>;
/// Returns what still runs.
pub(super) type StillRunning = Arc<dyn Fn() -> Vec<Path> + Send + Sync>;

/// See the [module](self).
#[derive(Default)]
pub(super) struct Listeners(Mutex<Table>);

#[derive(Default)]
struct Table {
    /// The signal that has stopped the program.
    first: Option<OsSignal>,
    /// By the number of the registration, the first one first.
    listeners: Vec<(u64, Listener)>,
    next: u64,
}

impl Table {
    fn place(&self, id: u64) -> Option<usize> {
        self.listeners.binary_search_by_key(&id, |&(id, _)| id).ok()
    }
}

enum Listener {
    /// The waker of the last poll.
    Future(Option<Waker>),
    First(FirstHook),
    Second(StillRunning),
}

impl Listeners {
    pub(super) fn future(self: &Arc<Self>) -> SignalRegistration {
        self.add(Listener::Future(None)).0
    }

    /// Calls `hook` at the first signal, on the signals thread, until the registration is dropped.
    ///
    /// If the first signal has come already, `hook` is called before this returns. It isn't called for a
    /// signal that ends the process because no future exists. A panic of `hook` is caught. `hook` must not
    /// block: a second signal would wait for it.
    pub(super) fn on_first(self: &Arc<Self>, hook: FirstHook) -> SignalRegistration {
        let (registration, first) = self.add(Listener::First(Arc::clone(&hook)));
        if let Some(signal) = first {
            catch_panic(|| hook(signal));
        }
        registration
    }

    /// Asks `source` what still runs when a second signal ends the process, until the registration is
    /// dropped.
    ///
    /// `source` is called on a thread of its own. If it blocks for more than half a second, or panics, its
    /// answer is missing.
    pub(super) fn on_second(self: &Arc<Self>, source: StillRunning) -> SignalRegistration {
        self.add(Listener::Second(source)).0
    }

    /// Also returns the first signal, if it has come.
    fn add(self: &Arc<Self>, listener: Listener) -> (SignalRegistration, Option<OsSignal>) {
        let mut table = self.0.lock();
        let id = table.next;
        table.next += 1;
        table.listeners.push((id, listener));
        (SignalRegistration { listeners: Arc::clone(self), id }, table.first)
    }

    /// Handles the first signal. Returns whether a future has received it.
    pub(super) fn first(&self, signal: OsSignal) -> bool {
        let (mut wakers, mut hooks) = (Vec::new(), Vec::new());
        {
            let mut table = self.0.lock();
            let is_future = |listener: &Listener| matches!(listener, Listener::Future(_));
            if !table.listeners.iter().any(|(_, listener)| is_future(listener)) {
                return false;
            }
            table.first = Some(signal);
            for (_, listener) in &mut table.listeners {
                match listener {
                    Listener::Future(waker) => wakers.extend(waker.take()),
                    Listener::First(hook) => hooks.push(Arc::clone(hook)),
                    Listener::Second(_) => {}
                }
            }
        }
        wakers.into_iter().for_each(wake);
        for hook in hooks {
            catch_panic(|| {
                hook(signal);
                drop(hook);
            });
        }
        true
    }

    /// Returns the sources that know what still runs.
    pub(super) fn sources(&self) -> Vec<StillRunning> {
        let table = self.0.lock();
        let source = |listener: &Listener| match listener {
            Listener::Second(source) => Some(Arc::clone(source)),
            Listener::Future(_) | Listener::First(_) => None,
        };
        table.listeners.iter().filter_map(|(_, listener)| source(listener)).collect()
    }
}

/// Listens until it is dropped.
///
/// A function that is being called when its registration is dropped may still be running afterwards.
#[must_use = "dropping it ends the registration"]
pub(crate) struct SignalRegistration {
    listeners: Arc<Listeners>,
    id: u64,
}

impl SignalRegistration {
    /// Polls for the first signal. Wakes only for a registration of a future.
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<OsSignal> {
        let waker = cx.waker().clone();
        let replaced = {
            let mut table = self.listeners.0.lock();
            if let Some(signal) = table.first {
                return Poll::Ready(signal);
            }
            match table.place(self.id).map(|place| &mut table.listeners[place].1) {
                Some(Listener::Future(last)) => last.replace(waker),
                _ => None,
            }
        };
        catch_panic(|| drop(replaced));
        Poll::Pending
    }
}

impl Drop for SignalRegistration {
    fn drop(&mut self) {
        let mut table = self.listeners.0.lock();
        let removed = table.place(self.id).map(|place| table.listeners.remove(place));
        drop(table);
        catch_panic(|| drop(removed));
    }
}

#[cfg(all(test, not(verger_loom)))]
mod tests {
    use super::*;

    fn poll(registration: &SignalRegistration, waker: &Waker) -> Poll<OsSignal> {
        registration.poll(&mut Context::from_waker(waker))
    }

    /// A hook that keeps the signals it is called with.
    fn recorded() -> (Arc<Mutex<Vec<OsSignal>>>, FirstHook) {
        let calls = Arc::new(Mutex::default());
        let hook = Arc::clone(&calls);
        (calls, Arc::new(move |signal| hook.lock().push(signal)))
    }

    #[test]
    fn a_signal_without_a_future_has_no_effect_here() {
        let listeners = Arc::new(Listeners::default());
        let (calls, hook) = recorded();
        let _hook = listeners.on_first(hook);
        drop(listeners.future());

        assert!(!listeners.first(OsSignal::Terminate));
        assert!(calls.lock().is_empty());
        assert_eq!(poll(&listeners.future(), Waker::noop()), Poll::Pending);
    }

    #[test]
    fn the_first_signal_is_seen_by_every_future_and_hook_also_by_later_ones() {
        let listeners = Arc::new(Listeners::default());
        let (calls, hook) = recorded();
        let futures = [listeners.future(), listeners.future()];
        let (_before, dropped) =
            (listeners.on_first(Arc::clone(&hook)), listeners.on_first(Arc::clone(&hook)));
        drop(dropped);

        assert!(listeners.first(OsSignal::Terminate));
        assert_eq!(*calls.lock(), [OsSignal::Terminate]);
        let _after = listeners.on_first(hook);
        assert_eq!(*calls.lock(), [OsSignal::Terminate; 2]);
        for future in futures.iter().chain([&listeners.future()]) {
            assert_eq!(poll(future, Waker::noop()), Poll::Ready(OsSignal::Terminate));
        }
    }

    #[test]
    fn a_panic_of_a_waker_or_a_hook_keeps_the_signal_from_no_other() {
        struct Panics;

        impl std::task::Wake for Panics {
            fn wake(self: Arc<Self>) {
                panic!("no");
            }
        }

        let listeners = Arc::new(Listeners::default());
        let (calls, hook) = recorded();
        let future = listeners.future();
        assert_eq!(poll(&future, &Waker::from(Arc::new(Panics))), Poll::Pending);
        let _panics = listeners.on_first(Arc::new(|_| panic!("no")));
        let _hook = listeners.on_first(hook);

        assert!(listeners.first(OsSignal::Interrupt));
        assert_eq!(*calls.lock(), [OsSignal::Interrupt]);
    }

    #[test]
    fn a_source_is_asked_until_its_registration_is_dropped() {
        let listeners = Arc::new(Listeners::default());
        let source = |name| move || vec![Path::root(name)];
        let (one, _two) = (
            listeners.on_second(Arc::new(source("one"))),
            listeners.on_second(Arc::new(source("two"))),
        );
        let asked = || listeners.sources().iter().flat_map(|source| source()).collect::<Vec<_>>();
        assert_eq!(asked(), [Path::root("one"), Path::root("two")]);
        drop(one);
        assert_eq!(asked(), [Path::root("two")]);
        assert_eq!(listeners.0.lock().listeners.len(), 1);
    }
}
