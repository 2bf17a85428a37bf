//! A port: where a child is asked things, whichever incarnation of it is running.
//!
//! The child that answers [opens](Port::open) the port each time it starts, which replaces the
//! queue of its predecessor. Who asks doesn't notice: a question that was dropped unanswered is
//! put again to the next incarnation, until somebody answers or the asker's patience ends.
//!
//! So a question may be answered twice, and only the second answer heard. Ask only what may be
//! done twice.
//!
//! Patience is for silence. Who has long work to do [says so](Call::working) meanwhile, and is not
//! taken for hung.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::timeout;

/// How often a sign of life is given during long work.
const SIGN: Duration = Duration::from_millis(250);

/// A place to ask `Q` and hear `A`.
#[derive(Debug)]
pub(crate) struct Port<Q, A> {
    name: &'static str,
    queue: watch::Sender<Option<mpsc::Sender<Call<Q, A>>>>,
}

/// A question that waits for its answer.
#[derive(Debug)]
pub(crate) struct Call<Q, A> {
    pub(crate) question: Q,
    answer: oneshot::Sender<A>,
    alive: Arc<Notify>,
}

impl<Q, A> Call<Q, A> {
    /// Answers; whoever asked may be gone, which is no concern of ours.
    pub(crate) fn answer(self, answer: A) {
        self.answer.send(answer).ok();
    }

    /// Does `work`, which may take longer than the asker's patience.
    pub(crate) async fn working<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            match timeout(SIGN, &mut work).await {
                Ok(done) => return done,
                Err(_) => self.alive.notify_one(),
            }
        }
    }
}

/// Nobody answered, nor gave a sign of life in time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoAnswer {
    port: &'static str,
    patience: Duration,
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no answer from the {} within {:?}", self.port, self.patience)
    }
}

impl std::error::Error for NoAnswer {}

impl<Q: Clone, A> Port<Q, A> {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, queue: watch::Sender::new(None) }
    }

    /// Takes the port over; questions queue up to `capacity`.
    pub(crate) fn open(&self, capacity: usize) -> mpsc::Receiver<Call<Q, A>> {
        let (sender, receiver) = mpsc::channel(capacity);
        self.queue.send_replace(Some(sender));
        receiver
    }

    /// Asks until there is an answer, or no sign of life for as long as `patience`.
    pub(crate) async fn ask(&self, question: Q, patience: Duration) -> Result<A, NoAnswer> {
        let alive = Arc::new(Notify::new());
        let mut answer = std::pin::pin!(self.ask_all(question, &alive));
        loop {
            let either = async {
                tokio::select! {
                    answer = &mut answer => Some(answer),
                    () = alive.notified() => None,
                }
            };
            match timeout(patience, either).await {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) => {}
                Err(_) => return Err(NoAnswer { port: self.name, patience }),
            }
        }
    }

    /// Asks one incarnation after the other.
    async fn ask_all(&self, question: Q, alive: &Arc<Notify>) -> A {
        loop {
            if let Some(answer) = self.ask_current(question.clone(), Arc::clone(alive)).await {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Asks the present incarnation, or the next one if there is none; `None` if it ended first.
    async fn ask_current(&self, question: Q, alive: Arc<Notify>) -> Option<A> {
        let open = |queue: &Option<mpsc::Sender<_>>| queue.as_ref().is_some_and(|q| !q.is_closed());
        let queue = self.queue.subscribe().wait_for(open).await.ok()?.clone()?;
        let (answer, answered) = oneshot::channel();
        queue.send(Call { question, answer, alive }).await.ok()?;
        answered.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_question_dropped_by_one_incarnation_is_answered_by_the_next() {
        let port = Port::<u32, u32>::new("doubler");
        let answering = async {
            let mut first = port.open(1);
            drop((first.recv().await, first));
            let mut second = port.open(1);
            let call = second.recv().await.unwrap();
            let double = call.question * 2;
            call.answer(double);
        };

        let (answer, ()) = tokio::join!(port.ask(21, PATIENCE), answering);

        assert_eq!(answer, Ok(42));
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_waits_for_the_first_incarnation() {
        let port = Port::<(), &str>::new("late");
        let answering = async {
            tokio::time::sleep(PATIENCE / 2).await;
            port.open(1).recv().await.unwrap().answer("here");
        };

        assert_eq!(tokio::join!(port.ask((), PATIENCE), answering).0, Ok("here"));
    }

    #[tokio::test(start_paused = true)]
    async fn who_works_is_waited_for_and_who_then_falls_silent_is_not() {
        let port = Port::<(), ()>::new("slow");
        let mut queue = port.open(1);
        let asked = tokio::time::Instant::now();
        let working = async {
            let call = queue.recv().await.unwrap();
            call.working(tokio::time::sleep(10 * PATIENCE)).await;
            std::future::pending::<()>().await;
        };

        let answer = tokio::select! {
            answer = port.ask((), PATIENCE) => answer,
            () = working => unreachable!("it never answers"),
        };

        assert!(answer.is_err());
        assert!((10 * PATIENCE..=11 * PATIENCE).contains(&asked.elapsed()));
    }

    #[tokio::test(start_paused = true)]
    async fn patience_ends_on_the_second_when_the_other_side_hangs() {
        let port = Port::<(), ()>::new("deaf");
        let _queue = port.open(1);
        let asked = tokio::time::Instant::now();

        let error = port.ask((), PATIENCE).await.unwrap_err();

        assert_eq!(asked.elapsed(), PATIENCE);
        assert_eq!(error.to_string(), "no answer from the deaf within 1s");
    }
}
