//! Listings of `book/src/coming/elfo.md`.

use std::time::Duration;

use elfo::messages::Terminate;
use elfo::prelude::*;
use elfo::routers::{MapRouter, Outcome};
use elfo::{RestartParams, RestartPolicy, TerminationPolicy};

#[message]
struct Add {
    account: u32,
    amount: u32,
}

#[message(ret = u32)]
struct Balance {
    account: u32,
}

fn accounts() -> Blueprint {
    let backoff = RestartParams::new(Duration::from_secs(5), Duration::from_secs(30));
    ActorGroup::new()
        .restart_policy(RestartPolicy::on_failure(backoff))
        .termination_policy(TerminationPolicy::manually())
        .router(MapRouter::new(|envelope| {
            msg!(match envelope {
                Add { account, .. } | Balance { account } => Outcome::Unicast(*account),
                _ => Outcome::Default,
            })
        }))
        .exec(account)
}

async fn account(mut ctx: Context<(), u32>) {
    let mut balance = 0_u32;
    while let Some(envelope) = ctx.recv().await {
        msg!(match envelope {
            Add { amount, .. } => balance = balance.checked_add(amount).expect("an overflow"),
            (Balance { .. }, token) => ctx.respond(token, balance),
            Terminate => break,
        });
    }
    println!("account {} has {balance}", ctx.key());
}

#[cfg(test)]
mod tests {
    use elfo::config::AnyConfig;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_message_starts_the_actor_of_its_key() {
        let proxy = elfo::test::proxy(accounts(), AnyConfig::default()).await;
        proxy.send(Add { account: 1, amount: 5 }).await;
        proxy.send(Add { account: 2, amount: 7 }).await;
        assert_eq!(proxy.request(Balance { account: 1 }).await, 5);
        assert_eq!(proxy.request(Balance { account: 2 }).await, 7);
    }
}
