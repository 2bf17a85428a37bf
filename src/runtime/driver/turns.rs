//! When there is a turn to be taken, and what comes after it.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::{self, Poll};
use std::time::Instant;

use super::Driver;
use crate::child::NextRun;
use crate::clock::now;
use crate::core::{IncarnationNumber, Key};
use crate::runtime::inbox::{Batch, Reader};
use crate::runtime::request::Request;
use crate::runtime::turns::{Next, Turns};

impl Reader<Request> for Driver {
    fn batch(&mut self) -> &mut Batch<Request> {
        &mut self.batch
    }
}

impl Turns for Driver {
    fn poll(&mut self, cx: &mut task::Context<'_>) -> Next {
        if let Some(panic) = self.panic.take() {
            resume_unwind(panic);
        }
        if std::mem::take(&mut self.yields) {
            return Next::Yield;
        }
        loop {
            // Maybe in a turn that somebody else took.
            if let Some(end) = self.end.take() {
                return Next::End(self.finish(end));
            }
            let now = if self.last_turn.is_none() {
                // The first turn is now, whatever has come: nobody needs to wake it for that. Below
                // another supervisor this one has begun in the same poll, while a root may have
                // waited for its own.
                self.take_children();
                if self.above.is_some() { self.hub.began } else { now() }
            } else if self.has_work(cx) {
                now()
            } else {
                return Next::Wait;
            };
            self.turn(now);
            if self.end.is_some() {
                continue;
            }
            let more = !self.batch.is_empty();
            if self.is_due(now) || !self.late.is_empty() || more && !self.answered {
                return Next::Yield;
            } else if self.answered && (more || self.hub.inbox.has_news()) {
                return Next::GiveWay;
            }
        }
    }

    fn visit(
        &mut self,
        child: Option<(Key, IncarnationNumber)>,
        next: &mut Option<NextRun>,
    ) -> bool {
        // A supervisor that has ended, or panicked, only has yet to say so.
        if self.end.is_some() || self.panic.is_some() || self.yields {
            return true;
        }
        let now = now();
        if self.is_due(now) {
            // Whoever was asked to stop in a turn just before is to be polled first.
            self.yields = true;
            return true;
        }
        let span = self.span.take();
        let entered = span.as_ref().map(|span| span.enter());
        self.tasks.receive(child);
        let taken = catch_unwind(AssertUnwindSafe(|| self.turn(now)));
        *next = self.tasks.see_off();
        drop(entered);
        self.span = span;
        if let Err(panic) = taken {
            self.panic = Some(panic);
            return true;
        }
        self.yields = self.is_due(now) || !self.late.is_empty();
        self.yields
            || self.end.is_some()
            || !self.batch.is_empty()
            || self.machine.next_deadline().is_some_and(|at| self.oversleeps(at).is_some())
    }
}

impl Driver {
    /// Whether there is something to do. If not, whoever asks is woken once there is, but for news.
    fn has_work(&mut self, cx: &mut task::Context<'_>) -> bool {
        // Also while something is left of the last turn, or a stop would have to wait for the end
        // of a storm.
        if !self.late.is_empty() || !self.batch.is_empty() {
            // The turn looks whether it is to stop.
            return true;
        }
        let stop = self.above.as_ref().is_some_and(|ctx| {
            let poll = ctx.run.poll_level(self.heard, cx).unwrap_or_else(|| {
                ctx.run.seize_waker(cx);
                Poll::Pending
            });
            poll.is_ready() || ctx.run.level() > self.heard
        });
        if stop {
            return true;
        }
        let Some(at) = self.machine.next_deadline() else {
            // Somebody else may take the turn that has the next deadline, and then it is to wake us.
            if let Some(sleep) = self.sleep.as_mut().filter(|sleep| !sleep.is_elapsed()) {
                let _ = sleep.as_mut().poll(cx);
            }
            return false;
        };
        if self.last_turn.is_some_and(|last| at <= last) {
            return true;
        }
        if let Some(at) = self.oversleeps(at) {
            match &mut self.sleep {
                Some(sleep) => sleep.as_mut().reset(at),
                None => self.sleep = Some(Box::pin(tokio::time::sleep_until(at))),
            }
        }
        self.sleep.as_mut().is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready())
    }

    /// When that is, if the supervisor's task would sleep longer.
    ///
    /// A sleep that is too short costs one turn in vain when it is over, and a new one for each
    /// deadline costs as much as all else: they come and go with each child that stops.
    fn oversleeps(&self, at: Instant) -> Option<tokio::time::Instant> {
        let at = tokio::time::Instant::from_std(at);
        let sleep = self.sleep.as_ref();
        sleep.is_none_or(|sleep| sleep.deadline() > at || sleep.is_elapsed()).then_some(at)
    }
}
