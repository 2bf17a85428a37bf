//! A tree in which each place where this crate calls code of the user's can do something.
//!
//! A [`Probe`] does its action at one [`Place`], a few times, once the tree is up. [`drive`] makes the
//! tree reach every place: its children fail, wait, restart, are killed, stopped and deleted, and get
//! more messages than they have room for.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::time::Duration;

use tokio::time::sleep;
use verger::dead_letter::DeadLetterStore;
use verger::mailbox::{Address, Inbox, Mailbox, Overflow, WhileDown};
use verger::policy::{Curve, FailureDecision, Jitter, OnExhausted};
use verger::{
    Backoff, Child, ChildSpec, Context, Exit, ExitError, HealthCheck, Supervisor,
    SupervisorBuilder, async_trait, child_with_mailbox, mailbox_with_capacity, worker_with,
};

use crate::hook_places::{Action, Message, OnDrop, Place, Probe, World};
use crate::probe::{BoxFuture, in_time};

/// A future that resolves at once, and is at a place when it is dropped after that.
struct Resolved<T>(Option<T>, #[expect(dead_code, reason = "for its drop")] OnDrop);

impl<T> Unpin for Resolved<T> {}

impl<T> Future for Resolved<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _cx: &mut TaskContext<'_>) -> Poll<T> {
        self.0.take().map_or(Poll::Pending, Poll::Ready)
    }
}

#[derive(Clone)]
struct HookError(Arc<OnDrop>);

impl HookError {
    fn new(probe: &Probe) -> Self {
        Self(Arc::new(OnDrop(probe.clone(), Place::DropError)))
    }
}

impl fmt::Debug for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HookError")
    }
}

impl fmt::Display for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.0.at(Place::DisplayError);
        f.write_str("a hook")
    }
}

impl Error for HookError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.0.at(Place::SourceOfError);
        None
    }
}

/// Becomes an error.
struct Convertible(HookError);

impl From<Convertible> for Box<dyn Error + Send + Sync> {
    fn from(Convertible(error): Convertible) -> Self {
        error.0.0.at(Place::ConvertError);
        error.into()
    }
}

struct HookCurve(Probe);

impl Curve for HookCurve {
    fn delay(&self, _index: u32) -> Duration {
        self.0.at(Place::Curve);
        Duration::from_secs(5)
    }
}

struct HookWaker(Probe);

impl Wake for HookWaker {
    fn wake(self: Arc<Self>) {
        self.0.at(Place::Wake);
    }
}

impl Drop for HookWaker {
    fn drop(&mut self) {
        self.0.at(Place::DropWaker);
    }
}

/// Polls a future once with a waker that is at a place.
fn poll_with_hook<F: Future + ?Sized>(probe: &Probe, future: Pin<&mut F>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::new(HookWaker(probe.clone())));
    future.poll(&mut TaskContext::from_waker(&waker))
}

struct Value {
    probe: Probe,
    inbox: Inbox<Message>,
}

#[async_trait]
impl Child for Value {
    async fn activate(&mut self, _ctx: &Context) -> Exit {
        self.probe.at(Place::Activate);
        Ok(())
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        self.probe.enter(ctx);
        self.probe.at(Place::Run);
        let mut cancelled = Box::pin(ctx.cancelled());
        let _ = poll_with_hook(&self.probe, cancelled.as_mut());
        let _ = poll_with_hook(&self.probe, Box::pin(self.inbox.recv()).as_mut());
        sleep(Duration::from_secs(1)).await;
        if ctx.incarnation() % 2 == 1 {
            return Err(Convertible(HookError::new(&self.probe)).into());
        }
        while let Some(message) = self.inbox.recv().await {
            drop(message);
            sleep(Duration::from_secs(1)).await;
        }
        Ok(())
    }

    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        self.probe.at(Place::Deactivate);
        Ok(())
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.probe.at(Place::DropValue);
    }
}

/// A mailbox with room for two messages.
fn mailbox(probe: &Probe) -> (Address<Message>, Mailbox<Message>) {
    let (address, mailbox) = mailbox_with_capacity(2);
    let (is_final, reply) = (probe.clone(), probe.clone());
    let mailbox = mailbox.overflow(Overflow::DropNewest).final_message(move |_| {
        is_final.at(Place::FinalMessage);
        false
    });
    let reply = WhileDown::reply(move |_| reply.at(Place::Reply));
    (address, mailbox.while_down(reply))
}

fn value(probe: &Probe, mailbox: Mailbox<Message>) -> ChildSpec {
    let (factory, matches, delays, checks) =
        (probe.clone(), probe.clone(), probe.clone(), probe.clone());
    let captured = OnDrop(probe.clone(), Place::DropCapture);
    let made = move |inbox| {
        let _ = &captured;
        factory.at(Place::Factory);
        Value { probe: factory.clone(), inbox }
    };
    let check = HealthCheck::new(move |_ctx| {
        checks.at(Place::HealthCheck);
        Resolved(Some(()), OnDrop(checks.clone(), Place::DropHealthCheck))
    });
    let random = {
        let probe = probe.clone();
        move || {
            probe.at(Place::RandomOfBackoff);
            0.5
        }
    };
    let backoff = Backoff::custom(HookCurve(probe.clone())).jitter(Jitter::Full).random(random);
    child_with_mailbox("value", mailbox, made)
        .backoff(backoff)
        .health_check(check.every(Duration::from_millis(300)))
        .on_exhausted(OnExhausted::Park)
        .restart_if(move |_: &HookError| {
            matches.at(Place::OnError);
            true
        })
        .retry_after(move |_: &HookError| {
            delays.at(Place::RetryAfter);
            None
        })
}

struct State(Probe);

impl Clone for State {
    fn clone(&self) -> Self {
        self.0.at(Place::CloneState);
        Self(self.0.clone())
    }
}

fn function(probe: &Probe) -> ChildSpec {
    let iterator = probe.clone();
    let delays = move || {
        let probe = iterator.clone();
        std::iter::from_fn(move || {
            probe.at(Place::Iterator);
            Some(Duration::from_secs(1))
        })
    };
    let run = |ctx: Context, State(probe): State| {
        probe.at(Place::Function);
        let dropped = OnDrop(probe.clone(), Place::DropFuture);
        async move {
            let _dropped = dropped;
            probe.at(Place::Poll);
            sleep(Duration::from_secs(1)).await;
            if ctx.incarnation() == 1 {
                return Err(ExitError::from("once"));
            }
            ctx.cancelled().await;
            Ok(())
        }
    };
    let spec = worker_with("function", State(probe.clone()), run);
    spec.backoff(Backoff::iter(delays)).on_exhausted(OnExhausted::Park)
}

fn hooks(probe: &Probe, mailbox: Mailbox<Message>) -> SupervisorBuilder {
    let (random, answers, once) = (probe.clone(), probe.clone(), probe.clone());
    let plain = worker_with("plain", once, async |ctx: Context, probe: Probe| -> Exit {
        sleep(Duration::from_secs(1)).await;
        if ctx.incarnation() == 1 {
            return Err(HookError::new(&probe).into());
        }
        ctx.cancelled().await;
        Ok(())
    });
    Supervisor::builder("hooks")
        .unlimited_restarts()
        .random(move || {
            random.at(Place::RandomFactory);
            let random = random.clone();
            move || {
                random.at(Place::Random);
                0.5
            }
        })
        .on_child_failure(move |_failure| {
            answers.at(Place::OnChildFailure);
            let property = OnDrop(answers.clone(), Place::DropProperty);
            let dropped = OnDrop(answers.clone(), Place::DropAnswer);
            Resolved(Some(FailureDecision::restart().with(property)), dropped)
        })
        .child(value(probe, mailbox))
        .child(function(probe))
        .child(plain)
}

/// Starts `tree` with the children that reach every place, in a supervisor of their own.
pub(crate) async fn start(tree: SupervisorBuilder, place: Place, action: Action) -> Probe {
    let probe = Probe::new(place, action);
    let (address, mailbox) = mailbox(&probe);
    let store = DeadLetterStore::ring(2);
    let app = crate::probe::start(tree.dead_letter_store(&store)).await;
    app.start_child(hooks(&probe, mailbox)).await.unwrap();
    probe.set_world(World { app, address, store, context: Mutex::new(None) });
    probe
}

/// Drops a value of the test's own, whose panic is not this crate's.
fn discard<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        std::mem::forget(payload);
    }
}

/// Makes the tree reach every place. Calls may fail, and are answered.
pub(crate) async fn drive(probe: &Probe) {
    let World { app, address, .. } = probe.world();
    let message = || Message::hooked(probe);
    let (mut events, mut letters) = (app.events(), app.dead_letters());
    let mut waits: Vec<BoxFuture<()>> = Vec::new();
    let (handle, to) = (app.clone(), address.clone());
    let sent = message();
    waits.push(Box::pin(async move { drop(events.next().await) }));
    waits.push(Box::pin(async move { drop(letters.next().await) }));
    waits.push(Box::pin(async move { drop(to.send(sent).await) }));
    waits.push(Box::pin(async move { drop(handle.wait().await) }));
    let handle = app.clone();
    waits.push(Box::pin(async move { drop(handle.which_child("sibling").await) }));
    for wait in &mut waits {
        let _ = poll_with_hook(probe, wait.as_mut());
    }
    // The children fail, wait, are sent messages meanwhile, and come back.
    for round in 0..20 {
        discard(address.try_send(message()));
        discard(address.try_send(message()));
        sleep(Duration::from_millis(700)).await;
        if round % 5 == 0 {
            drop(app.status().await.map(|status| status.to_string()));
        }
    }
    for path in ["hooks/value", "hooks/function", "hooks/plain"] {
        for round in 0..2 {
            let name = format!("{path}, round {round}");
            drop(in_time(app.restart(path), &name).await);
            drop(in_time(app.kill(path), &name).await);
            discard(address.try_send(message()));
            sleep(Duration::from_secs(10)).await;
        }
    }
    drop(in_time(app.restart("hooks"), "hooks").await);
    sleep(Duration::from_secs(20)).await;
    for path in ["hooks/value", "hooks/function", "hooks/plain"] {
        drop(in_time(app.stop_child(path), path).await);
        drop(in_time(app.otp().delete_child(path), path).await);
    }
    drop(in_time(app.stop_child("hooks"), "hooks").await);
    // A context keeps the specs of its supervisor.
    let last = probe.world().context.lock().unwrap().take();
    drop(last);
    drop(in_time(app.otp().delete_child("hooks"), "hooks").await);
    sleep(Duration::from_secs(1)).await;
    waits.into_iter().for_each(discard);
}
