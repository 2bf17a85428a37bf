//! What is done to a crate in each probe, and how what it did is judged: the same for all.
//!
//! Every wait is bounded. What a verdict says was counted on the board.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::board::{self, Order, Step};
use crate::peer::{ChildPlan, Peer, Plan, Strategy};
use crate::probe::Verdict;

const NAMES: [&str; 3] = ["a", "b", "c"];
/// Long enough for whatever is going to happen; twice what the most patient crate gives a child
/// that doesn't stop.
const PATIENCE: Duration = Duration::from_secs(10);
/// For what should not happen to happen.
const QUIET: Duration = Duration::from_secs(1);
/// How long a window in which many restarts fit lasts: longer than any probe.
const LONG: Duration = Duration::from_secs(300);

/// What the siblings of a child that fails are doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sibling {
    Idle,
    Busy,
    Finished,
    Hung,
    FailsToo,
}

fn one(restarts: usize, period: Duration) -> Plan {
    let child = ChildPlan { name: "a", set_up: Duration::ZERO, transient: false };
    Plan { strategy: Strategy::OneForOne, restarts, period, children: vec![child] }
}

fn three(strategy: Strategy, restarts: usize) -> Plan {
    let child = |name| ChildPlan { name, set_up: Duration::ZERO, transient: false };
    Plan { strategy, restarts, period: LONG, children: NAMES.map(child).into() }
}

/// Three whose set-ups take less and less time, so that one that doesn't wait for the other shows.
fn three_with_set_up() -> Plan {
    let mut plan = three(Strategy::OneForOne, 10);
    for (child, millis) in plan.children.iter_mut().zip([60, 40, 20]) {
        child.set_up = Duration::from_millis(millis);
    }
    plan
}

/// Waits until something holds; says whether it came to that.
async fn until(holds: impl Fn() -> bool) -> bool {
    let wait = async {
        while !holds() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, wait).await.is_ok()
}

/// Starts a tree and waits for its children; an error if they don't come.
async fn up<P: Peer + ?Sized>(plan: Plan) -> Result<P::Tree, Verdict> {
    let children = plan.children.clone();
    all_up(&children, P::start(plan)).await
}

async fn all_up<T>(children: &[ChildPlan], start: impl Future<Output = T>) -> Result<T, Verdict> {
    let Ok(tree) = timeout(PATIENCE, start).await else {
        return Err(Verdict::No("the start didn't return".into()));
    };
    if until(|| children.iter().all(|child| board::count(0, child.name, Step::Ready) > 0)).await {
        return Ok(tree);
    }
    Err(Verdict::No("the children didn't start".into()))
}

pub async fn restarted<P: Peer + ?Sized>(order: Order) -> Verdict {
    let tree = match up::<P>(one(5, LONG)).await {
        Ok(tree) => tree,
        Err(verdict) => return verdict,
    };
    board::tell("a", order);
    let again = until(|| board::count(0, "a", Step::Started) > 1).await;
    sleep(QUIET).await;
    drop(tree);
    let starts = board::count(0, "a", Step::Started);
    match (again, starts) {
        (true, 2) => Verdict::yes(),
        (true, _) => Verdict::No(format!("started {} times more", starts - 1)),
        (false, _) => Verdict::No("not started again".into()),
    }
}

pub async fn text<P: Peer + ?Sized>() -> Verdict {
    let tree = match up::<P>(one(1, LONG)).await {
        Ok(tree) => tree,
        Err(verdict) => return verdict,
    };
    board::tell("a", Order::Panic);
    sleep(QUIET).await;
    // A second one, for crates that say it when they give up.
    board::tell("a", Order::Panic);
    sleep(QUIET).await;
    drop(tree);
    sleep(QUIET).await;
    match board::places(board::PANIC) {
        (_, found) if !found.is_empty() => Verdict::Yes(format!("in {}", found.join(" and "))),
        (all, _) if all.is_empty() => Verdict::No("nothing was shown anywhere".into()),
        (all, _) => Verdict::No(format!("it is not in {}", all.join(" or "))),
    }
}

pub async fn limit<P: Peer + ?Sized>() -> Verdict {
    let tree = match up::<P>(one(3, LONG)).await {
        Ok(tree) => tree,
        Err(verdict) => return verdict,
    };
    let mut restarts = 0;
    while restarts < 10 {
        board::tell("a", Order::Fail);
        if !until(|| board::count(0, "a", Step::Ready) > restarts + 1).await {
            break;
        }
        restarts += 1;
    }
    drop(tree);
    match restarts {
        3 => Verdict::yes(),
        10 => Verdict::No("restarted 10 times, and it would have gone on".into()),
        _ => Verdict::No(format!("restarted {restarts} times")),
    }
}

pub async fn window<P: Peer + ?Sized>() -> Verdict {
    const CRASHES: usize = 10;
    let tree = match up::<P>(one(5, Duration::from_secs(1))).await {
        Ok(tree) => tree,
        Err(verdict) => return verdict,
    };
    for crash in 1..=CRASHES {
        sleep(Duration::from_millis(600)).await;
        board::tell("a", Order::Fail);
        if !until(|| board::count(0, "a", Step::Ready) > crash).await {
            drop(tree);
            return Verdict::No(format!("not restarted after crash {crash}"));
        }
    }
    drop(tree);
    Verdict::yes()
}

pub async fn group<P: Peer + ?Sized>(sibling: Sibling) -> Verdict {
    let mut plan = three(Strategy::OneForAll, if sibling == Sibling::FailsToo { 1 } else { 10 });
    plan.children[2].transient = sibling == Sibling::Finished;
    let tree = match up::<P>(plan).await {
        Ok(tree) => tree,
        Err(verdict) => return verdict,
    };
    match sibling {
        Sibling::Idle | Sibling::FailsToo => {}
        Sibling::Busy => board::tell("c", Order::Block(Duration::from_millis(60))),
        Sibling::Finished => board::tell("c", Order::Finish),
        Sibling::Hung => board::tell("c", Order::Hang),
    }
    // Enough to have begun, and not enough to have blocked for the whole time.
    sleep(Duration::from_millis(20)).await;
    if sibling == Sibling::Finished && !until(|| board::alive("c") == 0).await {
        return Verdict::No("a child that has ended well is kept".into());
    }

    let mark = board::mark();
    board::tell("b", Order::Fail);
    if sibling == Sibling::FailsToo {
        board::tell("c", Order::Fail);
    }
    let needed = if sibling == Sibling::Finished { &NAMES[..2] } else { &NAMES[..] };
    until(|| needed.iter().all(|name| board::count(mark, name, Step::Ready) > 0)).await;
    sleep(QUIET).await;
    drop(tree);
    judge_group(mark, needed)
}

fn judge_group(mark: usize, needed: &[&str]) -> Verdict {
    let starts = NAMES.map(|name| board::count(mark, name, Step::Started));
    let alive = NAMES.map(board::alive);
    let right = NAMES.iter().zip(starts).zip(alive).all(|((name, starts), alive)| {
        let once = starts == 1 && alive == 1;
        once || (!needed.contains(name) && starts == 0 && alive == 0)
    });
    if right {
        return Verdict::yes();
    }
    let list = |counts: [usize; 3]| {
        let each = NAMES.iter().zip(counts).map(|(name, count)| format!("{name} {count}"));
        each.collect::<Vec<_>>().join(", ")
    };
    Verdict::No(format!("starts after the crash: {}; alive: {}", list(starts), list(alive)))
}

pub async fn escalation<P: Peer + ?Sized>() -> Verdict {
    let plan = one(1, LONG);
    let tree = match all_up(&plan.children.clone(), P::start_nested(plan)).await {
        Ok(tree) => tree,
        Err(verdict) => return verdict,
    };
    for crash in 1..=2 {
        board::tell("a", Order::Fail);
        if !until(|| board::count(0, "a", Step::Ready) > crash).await {
            drop(tree);
            return Verdict::No(match crash {
                1 => "the inner supervisor didn't restart its child".into(),
                _ => "the child wasn't started again after its supervisor had given up".into(),
            });
        }
    }
    sleep(QUIET).await;
    drop(tree);
    match (board::count(0, "a", Step::Started), board::alive("a")) {
        (3, 1) => Verdict::yes(),
        (starts, alive) => Verdict::No(format!("{starts} starts, {alive} alive")),
    }
}

pub async fn start<P: Peer + ?Sized>() -> Verdict {
    let Ok(tree) = timeout(PATIENCE, P::start(three_with_set_up())).await else {
        return Verdict::No("the start didn't return".into());
    };
    // Nothing is awaited before this: the set-ups take time, so what isn't waited for shows.
    let [started, ready] = [Step::Started, Step::Ready]
        .map(|step| NAMES.iter().filter(|name| board::count(0, name, step) > 0).count());
    drop(tree);
    if ready == NAMES.len() {
        return Verdict::yes();
    }
    Verdict::No(format!("{started} of 3 had started, {ready} were ready"))
}

pub async fn order<P: Peer + ?Sized>() -> Verdict {
    let tree = match up::<P>(three_with_set_up()).await {
        Ok(tree) => tree,
        Err(verdict) => return verdict,
    };
    drop(tree);
    let steps = board::since(0);
    let of = |step| steps.iter().filter(move |(_, taken)| *taken == step).map(|(name, _)| *name);
    let sequence = |step| of(step).collect::<Vec<_>>().join(", ");
    let one_by_one = NAMES.map(|name| [(name, Step::Started), (name, Step::Ready)]).concat();
    let steps: Vec<_> = steps
        .iter()
        .filter(|(_, step)| matches!(step, Step::Started | Step::Ready))
        .copied()
        .collect();
    if steps == one_by_one {
        return Verdict::yes();
    }
    let (started, ready) = (sequence(Step::Started), sequence(Step::Ready));
    Verdict::No(format!("started {started}; ready {ready}"))
}

async fn stopped<P: Peer + ?Sized>() -> Result<(usize, usize), Verdict> {
    let tree = up::<P>(three(Strategy::OneForOne, 10)).await?;
    let mark = board::mark();
    if timeout(PATIENCE, P::stop(tree)).await.is_err() {
        return Err(Verdict::No("the stop didn't return".into()));
    }
    Ok((mark, board::mark()))
}

pub async fn clean_up<P: Peer + ?Sized>() -> Verdict {
    let (mark, returned) = match stopped::<P>().await {
        Ok(marks) => marks,
        Err(verdict) => return verdict,
    };
    sleep(QUIET).await;
    let steps = board::since(mark);
    let (before, _) = steps.split_at(returned - mark);
    let ended =
        |steps: &[(&str, Step)]| steps.iter().filter(|(_, step)| *step == Step::CleanedUp).count();
    if ended(before) == NAMES.len() {
        return Verdict::yes();
    }
    Verdict::No(format!(
        "{} of 3 had ended when the stop returned, {} a second later",
        ended(before),
        ended(&steps)
    ))
}

pub async fn reverse<P: Peer + ?Sized>() -> Verdict {
    let (mark, _) = match stopped::<P>().await {
        Ok(marks) => marks,
        Err(verdict) => return verdict,
    };
    sleep(QUIET).await;
    let steps = board::since(mark);
    let clean_ups: Vec<_> = steps
        .iter()
        .filter(|(_, step)| matches!(step, Step::CleanUpBegan | Step::CleanedUp))
        .copied()
        .collect();
    let one_by_one =
        ["c", "b", "a"].map(|name| [(name, Step::CleanUpBegan), (name, Step::CleanedUp)]).concat();
    if clean_ups == one_by_one {
        return Verdict::yes();
    }
    let began: Vec<_> = clean_ups
        .iter()
        .filter(|(_, step)| *step == Step::CleanUpBegan)
        .map(|(name, _)| *name)
        .collect();
    let together = clean_ups.get(1).is_some_and(|(_, step)| *step == Step::CleanUpBegan);
    Verdict::No(match (began.is_empty(), together) {
        (true, _) => "no clean-up ran, so no order was seen".into(),
        (false, true) => "all at once".into(),
        (false, false) => format!("one after the other, but {}", began.join(", ")),
    })
}
