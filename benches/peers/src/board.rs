//! What children do is written on a board, and they do what it says.
//!
//! There is one board, for there is one probe in a process. A child of any crate says on it when
//! it starts, is ready, cleans up and ends, and takes its orders from it. Nothing here knows any
//! of the crates, so all are measured with the same ruler.

use std::fmt;
use std::future::{self, Future};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::peer::ChildPlan;

/// What a child that panics says, so that it can be looked for.
pub const PANIC: &str = "the lamp fell over";

/// How long a clean-up takes. It is an `await`, so a stop that doesn't wait shows.
const CLEAN_UP: Duration = Duration::from_millis(20);

/// A step in the life of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Started,
    Ready,
    CleanUpBegan,
    CleanedUp,
    /// Whatever held the child's state has been dropped.
    Gone,
}

/// Something a child is told to do.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    Panic,
    Fail,
    /// End without an error.
    Finish,
    /// Wait for ever, at an `await`, and hear nothing more.
    Hang,
    /// Block the thread for this long, then go on.
    Block(Duration),
}

/// The error of a child that was told to fail.
#[derive(Debug)]
pub struct Failure;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("told to fail")
    }
}

impl std::error::Error for Failure {}

/// Whether a child that has done as it was told goes on.
#[derive(Debug, PartialEq, Eq)]
pub enum After {
    GoesOn,
    Ends,
}

impl Order {
    pub async fn carry_out(self) -> Result<After, Failure> {
        match self {
            Self::Panic => panic!("{PANIC}"),
            Self::Fail => Err(Failure),
            Self::Finish => Ok(After::Ends),
            Self::Hang => future::pending().await,
            Self::Block(time) => {
                thread::sleep(time);
                Ok(After::GoesOn)
            }
        }
    }
}

type Tell = Box<dyn Fn(Order) + Send>;

/// The board.
struct Board {
    steps: Vec<(&'static str, Step)>,
    /// How to reach the latest run of each child.
    tell: Vec<(&'static str, Tell)>,
    /// What a user has been shown, and where.
    seen: Vec<(&'static str, String)>,
}

static BOARD: Mutex<Board> =
    Mutex::new(Board { steps: Vec::new(), tell: Vec::new(), seen: Vec::new() });

fn board() -> MutexGuard<'static, Board> {
    // A panic of a child is what a probe is about; what is written stays true.
    BOARD.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// One run of a child. Dropping it says that the run is over.
#[derive(Debug)]
pub struct Run(ChildPlan);

impl Run {
    /// Says that a child has started, and how it is told what to do.
    pub fn started<R>(plan: ChildPlan, tell: impl Fn(Order) -> R + Send + 'static) -> Self {
        // Whether an order arrives is seen on the board, so nobody asks the mailbox.
        let tell = move |order| {
            tell(order);
        };
        let mut board = board();
        board.steps.push((plan.name, Step::Started));
        board.tell.retain(|(name, _)| *name != plan.name);
        board.tell.push((plan.name, Box::new(tell)));
        Self(plan)
    }

    /// The set-up, at the end of which the child is ready.
    pub async fn set_up(&self) {
        sleep(self.0.set_up).await;
        board().steps.push((self.0.name, Step::Ready));
    }

    /// The clean-up of this run.
    pub async fn clean_up(&self) {
        clean_up(self.0).await;
    }
}

/// The clean-up, which a stop should wait for, of a child whose state may be gone.
pub async fn clean_up(plan: ChildPlan) {
    board().steps.push((plan.name, Step::CleanUpBegan));
    sleep(CLEAN_UP).await;
    board().steps.push((plan.name, Step::CleanedUp));
}

impl Drop for Run {
    fn drop(&mut self) {
        board().steps.push((self.0.name, Step::Gone));
    }
}

/// The life of a child that is an async function.
///
/// `ready` is called after the set-up; `stop` ends when the child is asked to stop.
pub async fn live(
    plan: ChildPlan,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let (orders, mut told) = mpsc::unbounded_channel();
    let run = Run::started(plan, move |order| orders.send(order));
    run.set_up().await;
    ready();
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            Some(order) = told.recv() => {
                if order.carry_out().await? == After::Ends {
                    return Ok(());
                }
            }
        }
    }
    run.clean_up().await;
    Ok(())
}

/// Tells the latest run of a child what to do.
pub fn tell(child: &str, order: Order) {
    if let Some((_, tell)) = board().tell.iter().find(|(name, _)| *name == child) {
        tell(order);
    }
}

/// Says what a user of the crate has been shown, and where.
pub fn saw(place: &'static str, text: impl Into<String>) {
    board().seen.push((place, text.into()));
}

/// Where users were shown something, each place once, and those where `text` was part of it.
pub fn places(text: &str) -> (Vec<&'static str>, Vec<&'static str>) {
    let (mut all, mut with) = (Vec::new(), Vec::new());
    for (place, shown) in &board().seen {
        if !all.contains(place) {
            all.push(*place);
        }
        if shown.contains(text) && !with.contains(place) {
            with.push(*place);
        }
    }
    (all, with)
}

/// How many steps have been taken: a point to count from.
pub fn mark() -> usize {
    board().steps.len()
}

/// The steps since a mark.
pub fn since(mark: usize) -> Vec<(&'static str, Step)> {
    board().steps[mark..].to_vec()
}

/// How often a child took this step since a mark.
pub fn count(mark: usize, child: &str, step: Step) -> usize {
    since(mark).iter().filter(|taken| **taken == (child, step)).count()
}

/// How many runs of a child there are now.
pub fn alive(child: &str) -> usize {
    count(0, child, Step::Started).saturating_sub(count(0, child, Step::Gone))
}
