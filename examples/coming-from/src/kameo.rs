//! Listings of `book/src/coming/kameo.md`.

use std::time::Duration;

use kameo::actor::{Actor, ActorRef, Spawn};
use kameo::error::Infallible;
use kameo::message::{Context, Message};
use kameo::supervision::{RestartPolicy, SupervisionStrategy};

#[derive(Clone)]
struct Counter {
    count: u32,
}

impl Actor for Counter {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(counter: Self, _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(counter)
    }
}

struct Add(u32);

impl Message<Add> for Counter {
    type Reply = u32;

    async fn handle(&mut self, Add(n): Add, _: &mut Context<Self, u32>) -> u32 {
        self.count = self.count.checked_add(n).expect("an overflow");
        self.count
    }
}

struct App {
    counter: ActorRef<Counter>,
}

impl Actor for App {
    type Args = ();
    type Error = Infallible;

    fn supervision_strategy() -> SupervisionStrategy {
        SupervisionStrategy::OneForAll
    }

    async fn on_start((): (), this: ActorRef<Self>) -> Result<Self, Infallible> {
        let counter = Counter::supervise(&this, Counter { count: 0 })
            .restart_policy(RestartPolicy::Permanent)
            .restart_limit(5, Duration::from_secs(60))
            .spawn()
            .await;
        Ok(Self { counter })
    }
}

struct Join {
    name: String,
}

impl Message<Join> for App {
    type Reply = ();

    async fn handle(&mut self, Join { name }: Join, ctx: &mut Context<Self, ()>) {
        let member = Counter::supervise(ctx.actor_ref(), Counter { count: 0 });
        let member = member.restart_policy(RestartPolicy::Never).spawn().await;
        member.register(name).expect("the name is free");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct TheCounter;

    impl Message<TheCounter> for App {
        type Reply = ActorRef<Counter>;

        async fn handle(
            &mut self,
            _: TheCounter,
            _: &mut Context<Self, Self::Reply>,
        ) -> Self::Reply {
            self.counter.clone()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reference_survives_a_restart() {
        let app = App::spawn(());
        let counter = app.ask(TheCounter).await.unwrap();
        assert_eq!(counter.ask(Add(1)).await.unwrap(), 1);
        counter.tell(Add(u32::MAX)).await.unwrap();
        counter.tell(Add(2)).await.unwrap();
        assert_eq!(counter.ask(Add(3)).await.unwrap(), 5, "by the second incarnation");
    }

    #[tokio::test(start_paused = true)]
    async fn children_are_added() {
        let app = App::spawn(());
        app.ask(Join { name: "anna".to_owned() }).await.unwrap();
        let member = ActorRef::<Counter>::lookup("anna").unwrap().expect("it runs");
        assert_eq!(member.ask(Add(1)).await.unwrap(), 1);
    }
}
