//! Services in shards: several trees of one process over a store in memory, on a paused clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use verger::lease::{Lease, LeaseEngine, Located, Owner, Shard, ShardAddress, ShardError, Sharded};
use verger::mailbox::{Inbox, Reply};
use verger::testing::MemoryLeases;
use verger::{
    ChildSpec, Context, ControlError, Exit, RestartType, Supervisor, SupervisorHandle, mailbox,
    worker, worker_with_mailbox,
};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Which member runs each shard. A shard that two members run at once fails the test.
#[derive(Clone, Default)]
struct Owners(Arc<Mutex<BTreeMap<usize, &'static str>>>);

impl Owners {
    fn enter(&self, shard: Shard, member: &'static str) -> Entered {
        let before = self.0.lock().unwrap().insert(shard.number(), member);
        assert_eq!(before, None, "shard {shard} has two owners, one of which is {member}");
        Entered { owners: self.clone(), shard }
    }

    fn of(&self, member: &str) -> Vec<usize> {
        let owners = self.0.lock().unwrap();
        owners.iter().filter(|(_, it)| **it == member).map(|(shard, _)| *shard).collect()
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// The shard runs until this drops, also if its task is aborted.
struct Entered {
    owners: Owners,
    shard: Shard,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.owners.0.lock().unwrap().remove(&self.shard.number());
    }
}

/// A message to a shard: it answers with its member and number.
type Question = Reply<(&'static str, usize)>;

struct Member {
    tree: SupervisorHandle,
    orders: Sharded,
    leases: MemoryLeases,
}

impl Member {
    /// Starts a member whose shards take this long to end.
    async fn start(
        name: &'static str,
        leases: &MemoryLeases,
        owners: &Owners,
        shards: usize,
        ends_after: Duration,
    ) -> Self {
        let leases = leases.client();
        let owners = owners.clone();
        let lease = Lease::new("orders", leases.clone()).advertise(format!("{name}:8080"));
        let orders = Sharded::new(shards, lease, move |shard| {
            let owners = owners.clone();
            let (_, mailbox) = mailbox::<Question>();
            worker_with_mailbox(
                "order",
                mailbox,
                move |ctx: Context, mut inbox: Inbox<Question>| {
                    let owners = owners.clone();
                    async move {
                        let _entered = owners.enter(shard, name);
                        assert!(ctx.fencing_token().is_some());
                        while let Some(reply) = inbox.recv().await {
                            reply.send((name, shard.number()));
                        }
                        sleep(ends_after).await;
                    }
                },
            )
        });
        let tree = Supervisor::builder(name).child(&orders).build().unwrap().start().await.unwrap();
        Self { tree, orders, leases }
    }

    fn here(&self) -> Vec<usize> {
        self.orders.status().here.iter().map(|shard| shard.number()).collect()
    }
}

/// Waits until this is so, and returns how long that took.
async fn until(within: Duration, what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < within, "not within {within:?}: {what}");
        sleep(ms(20)).await;
    }
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn the_first_member_has_all_shards() {
    let (leases, owners) = (MemoryLeases::new(), Owners::default());
    let one = Member::start("one", &leases, &owners, 12, secs(0)).await;
    assert!(one.tree.status().await.unwrap().is_ready(), "before it has any shard");
    until(secs(5), "it has all", || owners.of("one").len() == 12).await;

    let status = one.orders.status();
    assert_eq!((status.slot, status.share, status.here.len()), (Some(0), 12, 12));
    let holder = leases.holder("orders/member-0").unwrap();
    assert_eq!(Owner::of(holder.clone()).address(), Some("one:8080"));
    assert!(holder.ends_with(":one/orders/coordinator"), "{holder}");

    let shard = one.tree.which_child("orders/shards/shard-0#1").await.unwrap();
    assert_eq!(&*shard.lease.unwrap().name, "orders/shard-0");
    let coordinator = one.tree.which_child("orders/coordinator").await.unwrap();
    assert_eq!(coordinator.status.as_deref(), Some("slot 0, members: 1, shards here: 12 of 12"));

    one.tree.stop("done").await.unwrap();
    assert_eq!(owners.count(), 0);
    assert_eq!(leases.holder("orders/member-0"), None, "released");
    assert_eq!(leases.holder("orders/shard-0"), None, "released");
}

#[tokio::test(start_paused = true)]
async fn members_that_start_together_claim_their_shares_and_move_nothing() {
    let (leases, owners) = (MemoryLeases::new(), Owners::default());
    let one = Member::start("one", &leases, &owners, 10, secs(0)).await;
    let two = Member::start("two", &leases, &owners, 10, secs(0)).await;
    let three = Member::start("three", &leases, &owners, 10, secs(0)).await;
    until(secs(10), "all are owned", || owners.count() == 10).await;
    let all = || [one.here(), two.here(), three.here()];
    let shares = all();
    assert_eq!(shares.each_ref().map(Vec::len), [4, 3, 3]);
    sleep(secs(60)).await;
    assert_eq!(all(), shares);
    for number in 0..10 {
        let granted = leases.token(&format!("orders/shard-{number}")).unwrap();
        assert_eq!(granted.get(), 1, "shard {number} has moved");
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_that_joins_gets_its_share_one_shard_at_a_time_once_it_is_calm() {
    let (leases, owners) = (MemoryLeases::new(), Owners::default());
    let _one = Member::start("one", &leases, &owners, 8, secs(1)).await;
    until(secs(5), "the first has all", || owners.count() == 8).await;
    sleep(secs(20)).await;

    let two = Member::start("two", &leases, &owners, 8, secs(1)).await;
    sleep(secs(9)).await;
    assert_eq!(owners.of("one").len(), 8, "it isn't calm yet");
    assert_eq!(two.orders.status().waiting.len(), 4, "it waits for its share");

    let mut fewest = 8;
    until(secs(60), "each has its share", || {
        fewest = fewest.min(owners.count());
        owners.of("two").len() == 4
    })
    .await;
    assert_eq!(fewest, 7, "one shard at a time is without an owner");
    let before = owners.of("two");
    sleep(secs(60)).await;
    assert_eq!((owners.of("one").len(), owners.of("two")), (4, before));
}

#[tokio::test(start_paused = true)]
async fn members_see_each_other_without_requesting_their_leases() {
    let (leases, owners) = (MemoryLeases::new(), Owners::default());
    let one = Member::start("one", &leases, &owners, 8, secs(0)).await;
    let _two = Member::start("two", &leases, &owners, 8, secs(0)).await;
    until(secs(10), "all are owned", || owners.count() == 8).await;
    let settled = Instant::now();
    sleep(secs(60)).await;
    assert_eq!(one.orders.status().members.len(), 1, "it sees the other one");
    for (slot, member) in [(0, ":one/"), (1, ":two/"), (2, ":nobody/")] {
        let mut requests = leases.history(&format!("orders/member-{slot}"));
        requests.retain(|event| event.at > settled && !event.holder.contains(member));
        assert!(requests.is_empty(), "{requests:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn shards_of_a_member_that_leaves_are_taken_over() {
    let (leases, owners) = (MemoryLeases::new(), Owners::default());
    let one = Member::start("one", &leases, &owners, 9, secs(0)).await;
    let two = Member::start("two", &leases, &owners, 9, secs(0)).await;
    let three = Member::start("three", &leases, &owners, 9, secs(0)).await;
    until(secs(10), "all are owned", || owners.count() == 9).await;
    let kept: BTreeSet<_> = one.here().into_iter().chain(three.here()).collect();

    two.tree.stop("it leaves").await.unwrap();
    assert_eq!(owners.count(), 6);
    until(secs(12), "they are taken over", || owners.count() == 9).await;
    sleep(secs(30)).await;
    assert_eq!([one.here().len(), three.here().len()], [5, 4]);
    for shard in kept {
        let token = leases.token(&format!("orders/shard-{shard}")).unwrap();
        assert_eq!(token.get(), 1, "shard {shard} had no reason to move");
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_without_a_connection_stops_its_shards_before_others_start_them() {
    let (leases, owners) = (MemoryLeases::new(), Owners::default());
    let one = Member::start("one", &leases, &owners, 8, secs(1)).await;
    let two = Member::start("two", &leases, &owners, 8, secs(1)).await;
    until(secs(10), "all are owned", || owners.count() == 8).await;
    assert_eq!(two.here().len(), 4);

    // The children themselves fail the test if a shard has two owners.
    two.leases.set_unreachable(true);
    let lost = until(secs(12), "it has lost its shards", || owners.of("two").is_empty()).await;
    assert!(lost > secs(7), "{lost:?}");
    assert!(two.here().is_empty());
    assert_eq!(two.orders.status().slot, None);
    until(secs(30), "the other one has all", || owners.of("one").len() == 8).await;

    two.leases.set_unreachable(false);
    until(secs(60), "it has its share again", || {
        owners.of("one").len() == 4 && owners.of("two").len() == 4
    })
    .await;
    assert_eq!((one.here().len(), two.here().len()), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn a_crashed_member_is_replaced_without_further_moves() {
    let (leases, owners) = (MemoryLeases::new(), Owners::default());
    let one = Member::start("one", &leases, &owners, 6, secs(0)).await;
    let two = Member::start("two", &leases, &owners, 6, secs(0)).await;
    until(secs(10), "all are owned", || owners.count() == 6).await;
    let (of_one, of_two) = (one.here(), two.here());

    // As after a power failure: nothing is released.
    two.leases.hang(true);
    two.tree.stop("crash").await.unwrap();
    until(secs(40), "the other one has all", || owners.of("one").len() == 6).await;

    let three = Member::start("three", &leases, &owners, 6, secs(0)).await;
    until(secs(60), "it has its share", || owners.of("three").len() == 3).await;
    assert_eq!(three.orders.status().slot, Some(1), "the slot of the member that has crashed");
    assert_eq!((one.here(), three.here()), (of_one, of_two));
}

#[tokio::test(start_paused = true)]
async fn a_key_leads_to_a_mailbox_or_to_the_member_that_has_the_shard() {
    let (leases, owners) = (MemoryLeases::new(), Owners::default());
    let one = Member::start("one", &leases, &owners, 8, secs(0)).await;
    assert_eq!(one.orders.locate("alice").await.unwrap(), Located::Nowhere);
    let two = Member::start("two", &leases, &owners, 8, secs(0)).await;
    until(secs(10), "all are owned", || owners.count() == 8).await;

    let (mut here, mut elsewhere) = (0, 0);
    for key in 0..20_u32 {
        let shard = one.orders.shard(&key);
        assert_eq!(shard, Shard::of(&key, 8));
        match one.orders.address::<Question, _>(&key).await.unwrap() {
            ShardAddress::Here(address) => {
                assert_eq!(address.ask(|reply| reply).await.unwrap(), ("one", shard.number()));
                assert!(two.orders.locate(&key).await.unwrap() != Located::Here);
                here += 1;
            }
            ShardAddress::Elsewhere { owner } => {
                assert_eq!(owner.unwrap().address(), Some("two:8080"));
                assert_eq!(two.orders.locate(&key).await.unwrap(), Located::Here);
                elsewhere += 1;
            }
            ShardAddress::Nowhere => panic!("{key} is nowhere"),
        }
    }
    assert!(here > 0 && elsewhere > 0, "{here} {elsewhere}");

    let mine = (0..).find(|key: &u32| one.here().contains(&one.orders.shard(key).number()));
    let error = one.orders.address::<String, _>(&mine.unwrap()).await.unwrap_err();
    assert!(matches!(error, ShardError::Child(ControlError::WrongMessageType { .. })), "{error}");

    let others = (0..).find(|key: &u32| two.here().contains(&two.orders.shard(key).number()));
    sleep(secs(1)).await;
    one.leases.set_unreachable(true);
    let error = one.orders.locate(&others.unwrap()).await.unwrap_err();
    assert_eq!(error.to_string(), "the store is unreachable");
}

#[tokio::test(start_paused = true)]
async fn a_lookup_leaves_no_lease_behind() {
    let (leases, owners) = (MemoryLeases::new(), Owners::default());
    let one = Member::start("one", &leases, &owners, 1, secs(0)).await;
    one.leases.delay(ms(10));
    {
        let located = one.orders.locate("key");
        tokio::select! {
            biased;
            _ = located => panic!("it takes 10 ms"),
            () = sleep(ms(1)) => {}
        }
    }
    sleep(ms(100)).await;
    assert_eq!(leases.holder("orders/shard-0"), None);
    until(secs(20), "the shard is claimed", || owners.count() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_ends_is_claimed_again_after_the_calm() {
    let leases = MemoryLeases::new();
    let starts = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&starts);
    let began = Instant::now();
    let orders = Sharded::new(2, Lease::new("orders", leases.clone()), move |shard| {
        let starts = Arc::clone(&noted);
        let run = move |ctx: Context| {
            let starts = Arc::clone(&starts);
            async move {
                starts.lock().unwrap().push((shard.number(), began.elapsed().as_secs()));
                if shard.number() == 1 {
                    ctx.cancelled().await;
                }
            }
        };
        worker("order", run).restart(RestartType::Temporary)
    });
    let tree = Supervisor::builder("app").child(&orders).build().unwrap().start().await.unwrap();
    sleep(secs(45)).await;
    let starts = starts.lock().unwrap().clone();
    let of = |shard| -> Vec<_> {
        starts.iter().filter(|(it, _)| *it == shard).map(|(_, at)| *at).collect()
    };
    assert_eq!(of(1).len(), 1);
    let of_first = of(0);
    assert!((2..=4).contains(&of_first.len()), "{of_first:?}");
    assert!(of_first.windows(2).all(|pair| pair[1] - pair[0] >= 10), "{of_first:?}");
    tree.stop("done").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn shards_run_on_while_the_coordinator_restarts() {
    let (leases, owners) = (MemoryLeases::new(), Owners::default());
    let one = Member::start("one", &leases, &owners, 4, secs(0)).await;
    until(secs(5), "it has all", || owners.count() == 4).await;
    let tokens =
        || (0..4).map(|it| leases.token(&format!("orders/shard-{it}"))).collect::<Vec<_>>();
    let before = tokens();

    one.tree.kill("orders/coordinator").await.unwrap();
    sleep(secs(30)).await;
    assert_eq!(tokens(), before);
    assert_eq!(one.here(), [0, 1, 2, 3]);
    assert_eq!(one.orders.status().slot, Some(0));

    let two = Member::start("two", &leases, &owners, 4, secs(0)).await;
    until(secs(60), "it hands over as before", || owners.of("two").len() == 2).await;
    assert_eq!((one.here().len(), two.here().len()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn an_invalid_lease_fails_the_coordinator() {
    let spec = |_| -> ChildSpec { worker("order", async |_: Context| -> Exit { Ok(()) }) };
    let lease = Lease::new("orders", MemoryLeases::new()).ttl(secs(1));
    let app = Supervisor::builder("app").child(Sharded::new(1, lease, spec));
    let tree = app.build().unwrap().start().await.unwrap();
    sleep(secs(1)).await;
    let coordinator = tree.which_child("orders/coordinator").await.unwrap();
    let reason = coordinator.last_exit.unwrap().reason.to_string();
    assert!(reason.contains("the `renew_deadline` of the lease is 10s"), "{reason}");
    // It keeps failing, so the tree may have ended by itself.
    let _ = tree.stop("done").await;
}

#[test]
#[should_panic = "`orders` has 0 shards; write 1 or more"]
fn there_is_at_least_one_shard() {
    let lease = Lease::new("orders", MemoryLeases::new());
    let _ = Sharded::new(0, lease, |_| worker("order", async |_: Context| {}));
}

#[tokio::test(start_paused = true)]
async fn any_lease_can_advertise_an_address() {
    let leases = MemoryLeases::new();
    let app = |address: &str| {
        let lease = Lease::new("billing", leases.clone()).advertise(address);
        let billing = worker("billing", async |ctx: Context| ctx.cancelled().await);
        Supervisor::builder("app").child(billing.lease(lease)).build()
    };
    let error = app("10.0.0.7 8080").unwrap_err().to_string();
    let expected = "the address `10.0.0.7 8080` of the lease is empty or contains a space; write one such as \
                    `10.0.0.7:8080`";
    assert!(error.contains(expected), "{error}");

    let tree = app("http://10.0.0.7:8080/").unwrap().start().await.unwrap();
    sleep(secs(1)).await;
    let owner = Owner::of(leases.holder("billing").unwrap());
    assert_eq!(owner.address(), Some("http://10.0.0.7:8080/"));
    assert_eq!(owner.to_string(), "http://10.0.0.7:8080/");
    assert!(owner.name().ends_with(":app/billing"), "{owner:?}");
    tree.stop("done").await.unwrap();
}

/// A generic engine is accepted.
#[allow(dead_code, reason = "it only has to compile")]
fn an_engine_of_any_kind(engine: impl LeaseEngine) -> Sharded {
    Sharded::new(1, Lease::new("orders", engine), |_| worker("order", async |_: Context| {}))
}
