//! Listings of `book/src/coming/ractor.md`, for ractor alone.

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent, async_trait};

pub(crate) struct Counter;

pub(crate) enum Message {
    Add(u32),
    Sum(RpcReplyPort<u32>),
}

#[async_trait]
impl Actor for Counter {
    type Msg = Message;
    type State = u32;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Message>, (): ()) -> Result<u32, ActorProcessingErr> {
        Ok(0)
    }

    async fn handle(
        &self,
        _: ActorRef<Message>,
        message: Message,
        sum: &mut u32,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Add(n) => *sum = sum.checked_add(n).ok_or("an overflow")?,
            Message::Sum(reply) => reply.send(*sum)?,
        }
        Ok(())
    }
}

struct App;

#[async_trait]
impl Actor for App {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, this: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Actor::spawn_linked(Some("counter".into()), Counter, (), this.get_cell()).await?;
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        this: ActorRef<()>,
        event: SupervisionEvent,
        _: &mut (),
    ) -> Result<(), ActorProcessingErr> {
        if let SupervisionEvent::ActorFailed(..) = event {
            Actor::spawn_linked(Some("counter".into()), Counter, (), this.get_cell()).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ractor::{call, registry};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_message_to_the_old_actor_is_lost() {
        let (app, running) = Actor::spawn(None, App, ()).await.unwrap();
        let counter = || registry::where_is("counter").map(ActorRef::<Message>::from);
        let first = counter().unwrap();
        first.cast(Message::Add(u32::MAX)).unwrap();
        first.cast(Message::Add(1)).unwrap();
        first.cast(Message::Add(2)).unwrap();
        let second = loop {
            match counter() {
                Some(counter) if counter.get_id() != first.get_id() => break counter,
                _ => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        };
        assert_eq!(call!(second, Message::Sum).unwrap(), 0, "a new actor with a new mailbox");
        assert!(first.cast(Message::Add(3)).is_err());
        app.stop(None);
        running.await.unwrap();
    }
}
