//! The children: they idle, follow orders, and note each step of their lives.
//!
//! A child knows no rules. Its [`Life`] is a guard that notes the end, whether the child returns,
//! panics, or is dropped because it was aborted.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tokio::sync::Notify;
use verger::policy::StartCause;
use verger::worker_with;
use verger::{Child, ChildSpec, Context, Exit, ExitError, Path, Readiness, async_trait, child};

use crate::notes::{Fate, Notebook, What};
use crate::tally::{Tally, count};

/// The message of a deliberate panic.
pub(crate) const PLANNED: &str = "panicked on purpose";

/// How long a slow child takes to become ready, or to stop.
const SLOW: Duration = Duration::from_millis(20);

/// An order for a running child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Order {
    Idle,
    Error,
    Panic,
    Normal,
    StopSelf,
    Hang,
    /// Stop slowly when cancelled.
    Slow,
    /// Call `report_healthy`.
    Healthy,
    /// Block the thread.
    Block,
    /// Begin a second life beside the first, which breaks a rule.
    Double,
    /// End without ending the life, which breaks a rule.
    Stray,
}

/// An order for the next start of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Start {
    Well,
    Slow,
    Error,
    Panic,
    Hang,
    Decline,
}

/// The form of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Make {
    /// A function with `Readiness::OnStart`.
    Function,
    /// A function with `Readiness::Signal`.
    Signal,
    /// A value with `activate`, `run` and `deactivate`.
    Object,
}

/// The state that the incarnations of one child share: its orders, and what it does.
#[derive(Debug)]
pub(crate) struct Post {
    pub(crate) name: String,
    pub(crate) make: Make,
    notebook: Arc<Notebook>,
    tally: Arc<Tally>,
    orders: Notify,
    order: AtomicU8,
    start: AtomicU8,
    /// Whether a call is stopping this child alone.
    pub(crate) alone: AtomicBool,
    /// Whether the child hangs.
    pub(crate) hangs: AtomicBool,
    /// Whether the child blocks its thread.
    pub(crate) blocks: AtomicBool,
    pub(crate) begun: AtomicU64,
    pub(crate) ended: AtomicU64,
}

impl Post {
    pub(crate) fn new(
        name: String,
        make: Make,
        notebook: &Arc<Notebook>,
        tally: &Arc<Tally>,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            make,
            notebook: Arc::clone(notebook),
            tally: Arc::clone(tally),
            orders: Notify::new(),
            order: AtomicU8::new(Order::Idle as u8),
            start: AtomicU8::new(Start::Well as u8),
            alone: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
            blocks: AtomicBool::new(false),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        })
    }

    /// Returns the spec of the child.
    pub(crate) fn spec(self: &Arc<Self>) -> ChildSpec {
        let post = Arc::clone(self);
        match self.make {
            Make::Function => worker_with(&*self.name, post, function),
            Make::Signal => worker_with(&*self.name, post, function).readiness(Readiness::Signal),
            Make::Object => {
                child(&*self.name, move || Object { post: Arc::clone(&post), life: None })
            }
        }
    }

    /// Sets the order for the current or the next incarnation.
    pub(crate) fn order(&self, order: Order) {
        self.order.store(order as u8, SeqCst);
        self.orders.notify_one();
    }

    /// Whether the last order was received.
    pub(crate) fn has_received(&self) -> bool {
        self.order.load(SeqCst) == Order::Idle as u8
    }

    /// Sets the order for the next start.
    pub(crate) fn start(&self, start: Start) {
        self.start.store(start as u8, SeqCst);
    }

    /// Clears the orders that were not received yet.
    pub(crate) fn calm(&self) {
        self.order.store(Order::Idle as u8, SeqCst);
        self.start(Start::Well);
    }

    /// Whether an incarnation is alive.
    pub(crate) fn lives(&self) -> bool {
        self.ended.load(SeqCst) < self.begun.load(SeqCst)
    }

    fn take_order(&self) -> Order {
        let order = self.order.swap(Order::Idle as u8, SeqCst);
        let all = [
            Order::Error,
            Order::Panic,
            Order::Normal,
            Order::StopSelf,
            Order::Hang,
            Order::Slow,
            Order::Healthy,
            Order::Block,
            Order::Double,
            Order::Stray,
        ];
        all.into_iter().find(|&it| it as u8 == order).unwrap_or(Order::Idle)
    }

    fn take_start(&self) -> Start {
        let start = self.start.swap(Start::Well as u8, SeqCst);
        let all = [Start::Slow, Start::Error, Start::Panic, Start::Hang, Start::Decline];
        all.into_iter().find(|&it| it as u8 == start).unwrap_or(Start::Well)
    }
}

/// One life of a child, whose end is noted when this is dropped.
#[derive(Debug)]
struct Life {
    post: Arc<Post>,
    path: Path,
    incarnation: u32,
    /// Whether the life is left in progress when this is dropped.
    stray: AtomicBool,
}

impl Life {
    fn begin(ctx: &Context, post: &Arc<Post>) -> Self {
        let life = Self {
            post: Arc::clone(post),
            path: ctx.path(),
            incarnation: ctx.incarnation(),
            stray: AtomicBool::new(false),
        };
        let cause = ctx.start_cause();
        count(&post.tally.starts);
        if matches!(cause, StartCause::Restart | StartCause::Group) {
            count(&post.tally.restarts);
        }
        post.begun.fetch_add(1, SeqCst);
        life.note(What::Begun { cause, signals: post.make != Make::Function });
        life
    }

    fn note(&self, what: What) {
        self.post.notebook.write(&self.path, self.incarnation, what);
    }

    /// Follows the order for the start.
    async fn prepare(&self) -> Exit {
        match self.post.take_start() {
            Start::Well => {}
            Start::Slow => tokio::time::sleep(SLOW).await,
            Start::Error => {
                self.note(What::Ends(Fate::Error));
                return Err("failed to start on purpose".into());
            }
            Start::Panic => self.panic(),
            Start::Hang => self.hang().await,
            Start::Decline => {
                self.note(What::Ends(Fate::Decline));
                return Err(ExitError::ignore());
            }
        }
        self.note(What::Ready);
        Ok(())
    }

    /// Follows orders until the child is cancelled.
    async fn work(&self, ctx: &Context) -> Exit {
        let post = &self.post;
        let (mut slow, mut alone) = (false, false);
        loop {
            tokio::select! {
                biased;
                () = ctx.cancelled() => {
                    let alone = alone || post.alone.load(SeqCst);
                    self.note(What::Cancelled { alone });
                    if slow {
                        tokio::time::sleep(SLOW).await;
                    }
                    return Ok(());
                }
                () = post.orders.notified() => {}
            }
            match post.take_order() {
                Order::Idle => {}
                Order::Error => {
                    self.note(What::Ends(Fate::Error));
                    return Err("failed on purpose".into());
                }
                Order::Panic => self.panic(),
                Order::Normal => {
                    self.note(What::Ends(Fate::Normal));
                    return Ok(());
                }
                Order::StopSelf => {
                    self.note(What::Ends(Fate::StopSelf));
                    alone = true;
                    ctx.stop_self();
                }
                Order::Hang => self.hang().await,
                Order::Slow => slow = true,
                Order::Healthy => ctx.report_healthy(),
                Order::Block => self.block(),
                Order::Double => {
                    let _second = Self::begin(ctx, post);
                    tokio::time::sleep(SLOW).await;
                }
                Order::Stray => {
                    self.stray.store(true, SeqCst);
                    self.note(What::Ends(Fate::Error));
                    return Err("left its life behind on purpose".into());
                }
            }
        }
    }

    fn panic(&self) -> ! {
        count(&self.post.tally.panics);
        self.note(What::Ends(Fate::Panic));
        std::panic::panic_any(PLANNED)
    }

    async fn hang(&self) {
        count(&self.post.tally.hangs);
        self.note(What::Ends(Fate::Hang));
        self.post.hangs.store(true, SeqCst);
        pending().await
    }

    fn block(&self) {
        self.note(What::Ends(Fate::Hang));
        self.post.blocks.store(true, SeqCst);
        #[expect(clippy::disallowed_methods, reason = "to block the thread is what it is for")]
        std::thread::sleep(Duration::from_millis(1200));
        self.post.blocks.store(false, SeqCst);
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if self.stray.load(SeqCst) {
            return;
        }
        self.post.hangs.store(false, SeqCst);
        self.note(What::Ended);
        self.post.ended.fetch_add(1, SeqCst);
        self.post.blocks.store(false, SeqCst);
        count(&self.post.tally.ends);
    }
}

async fn function(ctx: Context, post: Arc<Post>) -> Exit {
    let life = Life::begin(&ctx, &post);
    life.prepare().await?;
    ctx.ready();
    life.work(&ctx).await
}

struct Object {
    post: Arc<Post>,
    life: Option<Life>,
}

#[async_trait]
impl Child for Object {
    async fn activate(&mut self, ctx: &Context) -> Exit {
        self.life.insert(Life::begin(ctx, &self.post)).prepare().await
    }

    async fn run(&mut self, ctx: &Context) -> Exit {
        let Some(life) = &self.life else { return Err("runs without a life".into()) };
        let exit = life.work(ctx).await;
        life.note(What::Returned);
        exit
    }

    async fn deactivate(&mut self, _ctx: &Context) -> Exit {
        if let Some(life) = &self.life {
            life.note(What::Deactivated);
        }
        Ok(())
    }
}
