//! Whose turn it is to drive a supervisor.
//!
//! A supervisor has a task of its own, which takes its turns. But who has news for it is awake
//! already: a caller, or a child that has ended of its own accord. To wake the supervisor's task for
//! that, and to be woken by it, takes longer than most of what is to be done. So whoever brings news,
//! and finds the driver in the inbox, takes one turn himself, in the middle of his own poll. A caller
//! has his answer then, and a child that is to run again goes on at once. It is a turn like any other,
//! with all that had come in before. The task remains for what comes of itself: deadlines, being asked
//! to stop, what a turn has left over, and the supervisor's own end.
//!
//! Who was asked to stop takes no turn: of those there are often many, and one turn does for all of
//! them.
//!
//! # Invariants
//!
//! 1. One at a time drives, and nobody waits for it: who finds somebody else driving leaves his news
//!    in the inbox, and the other wakes the task for it.
//! 2. What a turn panics with ends the supervisor's task, whoever has taken it.
//! 3. A turn is taken in the supervisor's runtime and in its span, whoever takes it. What it logs is
//!    heard by whoever listens on that thread.
//! 4. If the supervisor's task goes while somebody else drives, the driver goes with him, and aborts
//!    the children, as soon as that turn is over.

#[cfg(all(test, not(verger_loom)))]
mod tests;

use std::future::poll_fn;
use std::task::{Context, Poll};

use super::end::End;
use super::hub::{Hub, run_of};
use super::inbox::{Batch, Left, Reader};
use super::request::Request;
use super::trace;
use crate::child::NextRun;
use crate::contain::contained;
use crate::core::{self, IncarnationNumber, Key};

/// What drives a supervisor, whatever its machine is.
pub(crate) trait Turns: Reader<Request> + Send {
    /// Takes turns for the supervisor's task, until that has to wait or to give way.
    fn poll(&mut self, cx: &mut Context<'_>) -> Next;

    /// Takes one turn for who has brought news. If that is the task of a child, it may find its `next`
    /// run. Whether the supervisor's task is needed after it.
    fn visit(
        &mut self,
        child: Option<(Key, IncarnationNumber)>,
        next: &mut Option<NextRun>,
    ) -> bool;
}

/// Boxed: a future that held the driver itself would be moved into the task, and into the box of the
/// child that it is. That came to 7.6 KB for each supervisor.
pub(crate) type BoxedDriver = Box<dyn Turns>;

/// What the supervisor's task does next.
#[derive(Debug)]
pub(crate) enum Next {
    /// Until there is something to do.
    Wait,
    /// Until all others had a turn who are ready.
    Yield,
    /// Until those had a turn who are ready on this worker.
    ///
    /// Unlike [`yield_now`](tokio::task::yield_now), which waits until the worker has also looked for
    /// input and timers: that would be a system call for each answer.
    GiveWay,
    End(End),
}

impl Reader<Request> for BoxedDriver {
    fn batch(&mut self) -> &mut Batch<Request> {
        (**self).batch()
    }
}

impl Hub {
    /// Asks the supervisor. `false`: it has ended.
    pub(crate) async fn ask(&self, request: Request) -> bool {
        let Ok(wakes) = self.ask_in_person(request) else { return false };
        if wakes {
            give_way().await;
        }
        true
    }

    /// Whether the supervisor's task is about to come, and the caller is to give way to it.
    fn ask_in_person(&self, request: Request) -> Result<bool, Request> {
        // A slice of many is asked for by who will ask for the next one at once, and others on his
        // thread are to have a turn in between.
        let runtime = self.tree.visited.as_ref();
        let Some(runtime) = runtime.filter(|_| !request.is_slice()) else {
            return self.inbox.request(request).map(|()| false);
        };
        let Some(driver) = self.inbox.request_in_person(request)? else { return Ok(false) };
        let visitor = Visitor { hub: self, driver: Some(driver) };
        let _entered = runtime.enter();
        Ok(visitor.drive(None, &mut None))
    }

    /// Hears that a child has ended of its own accord, from its task, which may find its `next` run.
    /// Whether that is to give way to the supervisor's task.
    pub(crate) fn hear_in_person(
        &self,
        event: core::MachineEvent,
        next: &mut Option<NextRun>,
    ) -> bool {
        if self.tree.visited.is_none() {
            self.hear(event);
            return false;
        }
        let ended = run_of(&event);
        match self.inbox.event_in_person(event) {
            Ok(driver) => {
                let visitor = Visitor { hub: self, driver };
                self.ended_in_line(ended);
                visitor.drive(ended, next)
            }
            Err(event) => {
                self.hear_late(event);
                false
            }
        }
    }
}

/// Who has brought news, and has the driver if nobody else had it. It is left in the inbox whatever
/// happens.
struct Visitor<'a> {
    hub: &'a Hub,
    driver: Option<BoxedDriver>,
}

impl Visitor<'_> {
    /// Takes one turn. Whether the supervisor's task is about to come.
    ///
    /// It may have been woken into a place that no other thread of the runtime takes it from, so
    /// whoever has woken it gives way before he goes on with what may take long.
    fn drive(
        mut self,
        child: Option<(Key, IncarnationNumber)>,
        next: &mut Option<NextRun>,
    ) -> bool {
        let Some(driver) = &mut self.driver else { return false };
        let aside = trace::aside();
        let needed = driver.visit(child, next);
        let wakes = self.leave(needed);
        drop(aside);
        wakes
    }

    fn leave(&mut self, needed: bool) -> bool {
        let Some(driver) = self.driver.take() else { return false };
        match self.hub.inbox.leave(driver, needed) {
            Left::Asleep => false,
            Left::Awake => true,
            Left::Alone(driver) => {
                contained(|| drop(driver));
                false
            }
        }
    }
}

impl Drop for Visitor<'_> {
    fn drop(&mut self) {
        self.leave(true);
    }
}

/// Lets everybody run who is ready on this worker.
async fn give_way() {
    let mut given = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut given, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
