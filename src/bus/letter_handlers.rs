//! Handlers of dead letters.

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::handling::run;
use super::letters::{Member, while_handling_letter};
use super::registration::EndOnDrop;
use super::topics::BusShared;
use crate::dead_letter::DeadLetter;
use crate::exit::{ExitError, Outcome};
use crate::status::Subscription;
use crate::subscriber;

/// A subscription to the dead letters of a tree, and what counts the failures of its handler.
pub(super) struct LetterHandling {
    pub(super) letters: Subscription<DeadLetter>,
    /// Cancelled when the handler is unregistered.
    pub(super) stopped: CancellationToken,
    pub(super) _entry: EndOnDrop,
    pub(super) shared: Arc<BusShared>,
    pub(super) owner: Member,
}

impl LetterHandling {
    /// Calls the handler for one letter after another, until its registration or the tree ends.
    pub(super) async fn run<F, Fut>(mut self, mut handler: F)
    where
        F: FnMut(DeadLetter) -> Fut,
        Fut: Future<Output: Outcome>,
    {
        let mut missed = 0;
        while let Some(letter) = self.next().await {
            self.report_missed(&mut missed);
            let call = || {
                let future = handler(letter);
                async move { future.await.into_exit() }
            };
            let mut handling = pin!(run(self.owner.message_span::<DeadLetter>(), call, pending()));
            let poll = poll_fn(|cx| while_handling_letter(|| handling.as_mut().poll(cx)));
            if let Some(Err(error)) = poll.await {
                self.failed(error);
            }
        }
    }

    async fn next(&mut self) -> Option<DeadLetter> {
        tokio::select! {
            biased;
            () = self.stopped.cancelled() => None,
            letter = self.letters.next() => letter,
        }
    }

    fn failed(&self, error: ExitError) {
        if error.is_ignore() {
            return;
        }
        self.shared.letter_handler_failed();
        let (child, cause) = (self.owner.path(), error.into_reason().to_string());
        subscriber::debug!(
            target: "verger::dead_letter", %child, cause, "a dead-letter handler has failed"
        );
    }

    /// Logs letters that this handler has missed because it lags behind.
    fn report_missed(&self, reported: &mut u64) {
        let total = self.letters.missed();
        if total > *reported {
            let (child, missed) = (self.owner.path(), total - *reported);
            subscriber::warn!(
                target: "verger::dead_letter",
                %child, missed, "a dead-letter handler is too slow: letters missed"
            );
            *reported = total;
        }
    }
}
