//! The board: what children have done, and what they are ordered to do.
//!
//! There is one probe in a process, so there is one board. A child of any crate notes on it when it
//! starts, is ready, cleans up and ends, and receives its orders from it. Nothing here depends on a
//! crate.

use std::fmt;
use std::future::{self, Future};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::peer::ChildPlan;

/// The text of a panic, which is searched for.
pub const PANIC: &str = "the lamp fell over";

/// How long a clean-up takes. It is an `await`, so a stop that doesn't wait is seen.
const CLEAN_UP: Duration = Duration::from_millis(20);

/// A step in the life of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Started,
    Ready,
    CleanUpBegan,
    CleanedUp,
    /// The child's state has been dropped.
    Gone,
}

/// An order to a child.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    Panic,
    Fail,
    /// End without an error.
    Finish,
    /// Wait forever at an `await`.
    Hang,
    /// Block the thread for this long, then go on.
    Block(Duration),
}

/// The error of a child that was ordered to fail.
#[derive(Debug)]
pub struct Failure;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("out of luck")
    }
}

impl std::error::Error for Failure {}

/// Whether a child goes on after an order.
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
    /// How to reach the latest incarnation of each child.
    tell: Vec<(&'static str, Tell)>,
    /// The texts that a user is shown, with their places.
    seen: Vec<(&'static str, String)>,
}

static BOARD: Mutex<Board> =
    Mutex::new(Board { steps: Vec::new(), tell: Vec::new(), seen: Vec::new() });

fn board() -> MutexGuard<'static, Board> {
    // A child that panics doesn't make the board wrong.
    BOARD.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// One incarnation of a child, which ends when this is dropped.
#[derive(Debug)]
pub struct Run(ChildPlan);

impl Run {
    /// Notes that a child has started, and how it receives orders.
    pub fn started<R>(plan: ChildPlan, tell: impl Fn(Order) -> R + Send + 'static) -> Self {
        // Whether an order arrives is seen on the board.
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

    /// The clean-up of this incarnation.
    pub async fn clean_up(&self) {
        clean_up(self.0).await;
    }
}

/// The clean-up of a child whose state may have been dropped.
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

/// The body of a child that is an async function.
///
/// `ready` is called after the set-up; `stop` completes when the child is cancelled.
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

/// Sends an order to the latest incarnation of a child.
pub fn tell(child: &str, order: Order) {
    if let Some((_, tell)) = board().tell.iter().find(|(name, _)| *name == child) {
        tell(order);
    }
}

/// Notes a text that a user of the crate is shown, and its place.
pub fn saw(place: &'static str, text: impl Into<String>) {
    board().seen.push((place, text.into()));
}

/// All places where a user is shown something, and those where `text` was part of it.
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

/// The number of steps so far.
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

/// The number of incarnations of a child that run now.
pub fn alive(child: &str) -> usize {
    count(0, child, Step::Started).saturating_sub(count(0, child, Step::Gone))
}
