//! Xebia, *Supervisor strategy using an exponential back off algorithm*: a sender keeps the messages that a dangerous
//! actor crashes over, and sends them again after binary slots of 10 ms.
//!
//! The listings of the document, in its order:
//!
//! ```scala
//! case class ExponentialBackOff(slotTime: FiniteDuration, ceiling: Int = 10, stayAtCeiling: Boolean = false,
//!     slot: Int = 1, rand: Random = new Random(), waitTime: FiniteDuration = Duration.Zero,
//!     retries: Int = 0, resets: Int = 0, totalRetries: Long = 0) {
//!   def isStarted = retries > 0
//!   def reset(): ExponentialBackOff = copy(slot = 1, waitTime = Duration.Zero, resets = resets + 1, retries = 0)
//!   def nextBackOff: ExponentialBackOff = {
//!     def time: FiniteDuration = slotTime * times
//!     def times = {
//!       val exp = rand.nextInt(slot + 1)
//!       math.round(math.pow(2, exp) - 1)
//!     }
//!     if (slot >= ceiling && !stayAtCeiling) reset()
//!     else {
//!       val (newSlot, newWait: FiniteDuration) = if (slot >= ceiling) (ceiling, time) else (slot + 1, time)
//!       copy(slot = newSlot, waitTime = newWait, retries = retries + 1, totalRetries = totalRetries + 1)
//!     }
//!   }
//! }
//!
//! class BackOffSender(dangerousProps: Props, slotTime: FiniteDuration = 10 millis, ceiling: Int = 10,
//!     stayAtCeiling: Boolean = false) extends Actor with ActorLogging {
//!   var backOff = ExponentialBackOff(slotTime, ceiling, stayAtCeiling)
//!   override def supervisorStrategy = SupervisorStrategy.stoppingStrategy
//!   var dangerousActor = context.actorOf(dangerousProps)
//!   // messages that have not been acknowledged (yet)
//!   var possiblyFailed = Vector[TrackedMsg]()
//!   def receive = {
//!     case msg: Msg =>
//!       val trackedMsg = TrackedMsg(msg, sender)
//!       possiblyFailed = possiblyFailed :+ trackedMsg
//!       // only send immediately if the backOff was not needed yet, or reset by an ack.
//!       if (!backOff.isStarted) dangerousActor.forward(trackedMsg)
//!       if (backOff.isStarted && scheduleResult.isEmpty) scheduleResult = Some(/* backOff.waitTime, Tick */)
//!     case Tick => possiblyFailed.foreach(trackedMsg => dangerousActor.tell(trackedMsg, trackedMsg.sender))
//!     case Terminated(failedRef) =>
//!       dangerousActor = context.actorOf(dangerousProps)
//!       backOff = backOff.nextBackOff
//!       scheduleResult = Some(/* backOff.waitTime, Tick */)
//!     case Sent(idKey) =>
//!       possiblyFailed = possiblyFailed.filterNot(tracked => /* its id */ == idKey)
//!       backOff = backOff.reset()
//!   }
//! }
//!
//! class DangerousActor(dangerousResource: DangerousResource) extends Actor with ActorLogging {
//!   def receive = {
//!     case trackedMsg: TrackedMsg =>
//!       val response = dangerousResource.danger(/* its data */)
//!       context.parent ! Sent(/* its id */)
//!       sender ! trackedMsg.msg.copy(data = response)
//!   }
//! }
//! ```
//!
//! The mailbox is the sender: it tracks a message until `ack`, and `Delay::Delivery` delays the messages instead of the
//! actor. The document leaves one drawback to its reader: `possiblyFailed` can grow indefinitely; "max the vector and
//! remove the oldest entries". Here the oldest ones become dead letters.
//!
//! `rand.nextInt(slot + 1)` is its highest number here, so that each wait is the longest of its slot.
//!
//! ```text
//! cargo run --example documents_backoff_sender --features mailbox
//! ```

#![expect(clippy::print_stdout, reason = "the example prints what happens")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use verger::mailbox::{Delay, Inbox, Overflow, Reply};
use verger::policy::{BinarySlots, Preset, Reset};
use verger::{
    Backoff, Context, Exit, Supervisor, SupervisorHandle, mailbox_with_capacity,
    worker_with_mailbox,
};

#[path = "timeline.rs"]
mod timeline;

use timeline::Timeline;

/// `Msg(id, data)` with its sender.
struct Msg {
    data: &'static str,
    sender: Reply<String>,
}

/// The dangerous resource, which fails this many times.
#[derive(Clone)]
struct DangerousResource {
    failures: Arc<AtomicU32>,
    log: Timeline,
}

impl DangerousResource {
    fn danger(&self, data: &str) -> Result<String, &'static str> {
        let left = self.failures.load(Ordering::Relaxed);
        self.failures.store(left.saturating_sub(1), Ordering::Relaxed);
        self.log.note(format_args!("{data}: {}", if left > 0 { "crash" } else { "sent" }));
        if left > 0 { Err("500 Internal Server Error") } else { Ok(data.to_uppercase()) }
    }
}

async fn dangerous_actor(resource: DangerousResource, mut inbox: Inbox<Msg>) -> Exit {
    while let Some(msg) = inbox.deliver().await {
        let response = resource.danger(msg.data)?;
        // Answers the original sender, and acknowledges: `Sent(id)`.
        msg.ack().sender.send(response);
    }
    Ok(())
}

/// `new BackOffSender(dangerousProps)`, whose resource fails this many times.
async fn start(
    log: &Timeline,
    failures: &Arc<AtomicU32>,
    possibly_failed: usize,
) -> anyhow::Result<(SupervisorHandle, verger::mailbox::Address<Msg>)> {
    let (address, mailbox) = mailbox_with_capacity(possibly_failed);
    let mailbox =
        mailbox.delay(Delay::Delivery).unlimited_attempts().overflow(Overflow::DropOldest);
    let resource = DangerousResource { failures: Arc::clone(failures), log: log.clone() };
    let run = move |_: Context, inbox| dangerous_actor(resource.clone(), inbox);
    let slots = BinarySlots::new(Duration::from_millis(10)).ceiling(10);
    let dangerous = worker_with_mailbox("dangerous", mailbox, run)
        .backoff(Backoff::binary_slots(slots).reset(Reset::OnAck));
    let sender = Supervisor::builder("sender").preset(Preset::xebia()).random(|| || 0.999_999);
    Ok((sender.child(dangerous).build()?.start().await?, address))
}

/// Eleven crashes over one message: the nine waits of the slots, none at the ceiling, and the first again. The
/// acknowledgement resets the backoff, so that the crash over the next message waits for one slot.
pub(crate) async fn slots_ceiling_and_reset() -> anyhow::Result<Vec<String>> {
    let log = Timeline::new();
    let failures = Arc::new(AtomicU32::new(11));
    let (system, sender) = start(&log, &failures, 1_000).await?;
    let ask = |data| sender.ask(move |reply| Msg { data, sender: reply });
    let answer = ask("tea").await?;
    log.note(answer);
    failures.store(1, Ordering::Relaxed);
    let answer = ask("milk").await?;
    log.note(answer);
    system.stop("the listing is over").await?;
    Ok(log.lines())
}

/// Three messages while the resource fails, and room for two.
pub(crate) async fn dead_letters() -> anyhow::Result<Vec<String>> {
    let log = Timeline::new();
    let (system, sender) = start(&log, &Arc::new(AtomicU32::new(3)), 2).await?;
    let mut letters = system.dead_letters();
    let (tea, milk, sugar) = tokio::join!(
        sender.ask(|reply| Msg { data: "tea", sender: reply }),
        sender.ask(|reply| Msg { data: "milk", sender: reply }),
        sender.ask(|reply| Msg { data: "sugar", sender: reply }),
    );
    for (data, answer) in [("tea", tea), ("milk", milk), ("sugar", sugar)] {
        match answer {
            Ok(answer) => log.note(answer),
            Err(error) => log.note(format_args!("{data}: {error}")),
        }
    }
    while let Some(letter) = letters.try_next() {
        log.note(format_args!("dead letter: {}", letter.reason));
    }
    system.stop("the listing is over").await?;
    Ok(log.lines())
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() -> anyhow::Result<()> {
    println!("{}\n", slots_ceiling_and_reset().await?.join("\n"));
    println!("{}", dead_letters().await?.join("\n"));
    Ok(())
}
