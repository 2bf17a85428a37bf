//! The board: what the children of a probe have done, and how they receive orders.
//!
//! Each probe has a process of its own, so there is one board. Its children are known by their indices.

use std::future;
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use tokio::time::sleep;

use crate::child::{Failure, Life, Order};

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

/// Sends an order to a child.
type Sender = Box<dyn Fn(Order) + Send>;

pub struct Board {
    /// How many milliseconds the set-up of each child takes.
    pub set_up: [u64; 3],
    /// The child that stays down after it has ended without an error.
    pub transient: Option<usize>,
    /// What a *yes* doesn't say.
    pub remark: &'static str,
    /// The steps so far, in order.
    pub steps: Vec<(usize, Step)>,
    /// Sends an order to the latest incarnation of each child.
    orders: [Option<Sender>; 3],
}

static BOARD: Mutex<Board> = Mutex::new(Board {
    set_up: [0; 3],
    transient: None,
    remark: "",
    steps: Vec::new(),
    orders: [const { None }; 3],
});

pub fn board() -> MutexGuard<'static, Board> {
    // A child that panics doesn't make the board wrong.
    BOARD.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// One incarnation of a child that notes what it does.
pub struct Probed(usize);

impl Life for Probed {
    const PROBED: bool = true;

    fn is_transient(index: usize) -> bool {
        board().transient == Some(index)
    }

    async fn begin<R>(index: usize, send: impl Fn(Order) -> R + Send + 'static) -> Self {
        let set_up = {
            let mut board = board();
            board.steps.push((index, Step::Started));
            board.orders[index] = Some(Box::new(move |order| drop(send(order))));
            Duration::from_millis(board.set_up[index])
        };
        let life = Self(index);
        sleep(set_up).await;
        board().steps.push((index, Step::Ready));
        life
    }

    async fn obey(order: Order) -> Result<ControlFlow<()>, Failure> {
        match order {
            Order::Panic => panic!("{PANIC}"),
            Order::Fail => Err(Failure),
            Order::Finish => Ok(ControlFlow::Break(())),
            Order::Hang => future::pending().await,
            Order::Block(time) => {
                thread::sleep(time);
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    async fn clean_up(&self) {
        clean_up(self.0).await;
    }
}

impl Drop for Probed {
    fn drop(&mut self) {
        board().steps.push((self.0, Step::Gone));
    }
}

/// The clean-up of a child whose state may have been dropped.
pub async fn clean_up(index: usize) {
    board().steps.push((index, Step::CleanUpBegan));
    sleep(CLEAN_UP).await;
    board().steps.push((index, Step::CleanedUp));
}

/// Sends an order to the latest incarnation of a child. The steps show whether it arrives.
pub fn send(child: usize, order: Order) {
    if let Some(send) = &board().orders[child] {
        send(order);
    }
}

/// The number of steps so far.
pub fn mark() -> usize {
    board().steps.len()
}

/// The steps since a mark.
pub fn since(mark: usize) -> Vec<(usize, Step)> {
    board().steps[mark..].to_vec()
}

/// How often a child took this step since a mark.
pub fn count(mark: usize, child: usize, step: Step) -> usize {
    since(mark).iter().filter(|taken| **taken == (child, step)).count()
}

/// The number of incarnations of a child that run now.
pub fn alive(child: usize) -> usize {
    count(0, child, Step::Started).saturating_sub(count(0, child, Step::Gone))
}
