//! What each probe does to a crate, and how the outcome is judged: the same code for all crates.
//!
//! Every wait is bounded. What an answer says was counted on the board.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::board::{self, Order, Step};
use crate::peer::{ChildPlan, Peer, Plan, Seen};

const NAMES: [&str; 3] = ["a", "b", "c"];
/// Long enough for everything that is going to happen: twice the longest grace of all crates.
const PATIENCE: Duration = Duration::from_secs(10);
/// Long enough to see what should not happen.
const QUIET: Duration = Duration::from_secs(1);
/// A period in which all restarts of a probe fit.
const LONG: Duration = Duration::from_secs(300);

/// Runs a probe.
///
/// # Errors
///
/// What was seen instead of what has to be seen.
pub async fn ask<P: Peer>(probe: &str) -> Seen {
    match probe {
        "panic" => restarted::<P>(Order::Panic).await,
        "error" => restarted::<P>(Order::Fail).await,
        "text" => text::<P>().await,
        "limit" => limit::<P>().await,
        "window" => window::<P>().await,
        "escalation" => escalation::<P>().await,
        "start" => start::<P>().await,
        "order" => order::<P>().await,
        "clean-up" => clean_up::<P>().await,
        "reverse" => reverse::<P>().await,
        group => one_for_all::<P>(group).await,
    }
}

fn verdict(yes: bool, otherwise: impl FnOnce() -> String) -> Seen {
    if yes { Ok(String::new()) } else { Err(otherwise()) }
}

fn one(restarts: u32, period: Duration) -> Plan {
    let child = ChildPlan { name: "a", set_up: Duration::ZERO, transient: false };
    Plan { one_for_all: false, restarts, period, children: vec![child] }
}

/// Three children; the set-up of each takes less time than that of the one before.
fn three(set_up: [u64; 3]) -> Plan {
    let child = |(name, millis)| ChildPlan {
        name,
        set_up: Duration::from_millis(millis),
        transient: false,
    };
    let children = NAMES.into_iter().zip(set_up).map(child).collect();
    Plan { one_for_all: false, restarts: 10, period: LONG, children }
}

/// Waits until something holds, and returns whether it does.
async fn until(holds: impl Fn() -> bool) -> bool {
    let wait = async {
        while !holds() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, wait).await.is_ok()
}

/// Waits until a child has been ready `times` times.
async fn ready(child: &str, times: usize) -> bool {
    until(|| board::count(0, child, Step::Ready) >= times).await
}

/// Starts a tree and waits until its children are ready.
async fn up<P: Peer>(plan: Plan) -> Result<P::Tree, String> {
    all_up(&plan.children.clone(), P::start(plan)).await
}

async fn all_up<T>(children: &[ChildPlan], start: impl Future<Output = T>) -> Result<T, String> {
    let tree = timeout(PATIENCE, start).await.map_err(|_| "the start didn't return")?;
    for child in children {
        if !ready(child.name, 1).await {
            return Err("the children didn't start".into());
        }
    }
    Ok(tree)
}

async fn restarted<P: Peer>(order: Order) -> Seen {
    let _tree = up::<P>(one(5, LONG)).await?;
    board::tell("a", order);
    let again = until(|| board::count(0, "a", Step::Started) > 1).await;
    sleep(QUIET).await;
    match (again, board::count(0, "a", Step::Started)) {
        (true, 2) => Ok(String::new()),
        (true, starts) => Err(format!("started {} times more", starts - 1)),
        (false, _) => Err("not started again".into()),
    }
}

async fn text<P: Peer>() -> Seen {
    let tree = up::<P>(one(1, LONG)).await?;
    // The second time for crates that show it when they give up.
    for _ in 0..2 {
        board::tell("a", Order::Panic);
        sleep(QUIET).await;
    }
    drop(tree);
    sleep(QUIET).await;
    match board::places(board::PANIC) {
        (_, found) if !found.is_empty() => Ok(format!("in {}", found.join(" and "))),
        (all, _) if all.is_empty() => Err("nothing was shown anywhere".into()),
        (all, _) => Err(format!("it is not in {}", all.join(" or "))),
    }
}

async fn limit<P: Peer>() -> Seen {
    let _tree = up::<P>(one(3, LONG)).await?;
    for restarts in 0..10 {
        board::tell("a", Order::Fail);
        if !ready("a", restarts + 2).await {
            return verdict(restarts == 3, || format!("restarted {restarts} times"));
        }
    }
    Err("restarted 10 times, and it would have gone on".into())
}

async fn window<P: Peer>() -> Seen {
    let _tree = up::<P>(one(5, Duration::from_secs(1))).await?;
    for crash in 1..=10 {
        sleep(Duration::from_millis(600)).await;
        board::tell("a", Order::Fail);
        if !ready("a", crash + 1).await {
            return Err(format!("not restarted after crash {crash}"));
        }
    }
    Ok(String::new())
}

/// `b` of a `one_for_all` fails while `c` does what the probe says.
async fn one_for_all<P: Peer>(probe: &str) -> Seen {
    let mut plan = three([0; 3]);
    plan.one_for_all = true;
    plan.restarts = if probe == "twice" { 1 } else { 10 };
    plan.children[2].transient = probe == "finished";
    let _tree = up::<P>(plan).await?;
    match probe {
        "busy" => board::tell("c", Order::Block(Duration::from_millis(60))),
        "finished" => board::tell("c", Order::Finish),
        "hung" => board::tell("c", Order::Hang),
        _ => {}
    }
    // Enough to begin with it, and not enough to block for the whole time.
    sleep(Duration::from_millis(20)).await;
    if probe == "finished" && !until(|| board::alive("c") == 0).await {
        return Err("a child that has ended well is kept".into());
    }
    let mark = board::mark();
    board::tell("b", Order::Fail);
    if probe == "twice" {
        board::tell("c", Order::Fail);
    }
    let needed = if probe == "finished" { &NAMES[..2] } else { &NAMES[..] };
    until(|| needed.iter().all(|name| board::count(mark, name, Step::Ready) > 0)).await;
    sleep(QUIET).await;

    let starts = NAMES.map(|name| board::count(mark, name, Step::Started));
    let alive = NAMES.map(board::alive);
    let mut each = NAMES.iter().zip(starts.iter().zip(alive));
    let right = each
        .all(|(name, counts)| counts == (&1, 1) || (!needed.contains(name) && counts == (&0, 0)));
    let list = |counts: [usize; 3]| {
        let each = NAMES.iter().zip(counts).map(|(name, count)| format!("{name} {count}"));
        each.collect::<Vec<_>>().join(", ")
    };
    verdict(right, || format!("starts after the crash: {}; alive: {}", list(starts), list(alive)))
}

async fn escalation<P: Peer>() -> Seen {
    let plan = one(1, LONG);
    let _tree = all_up(&plan.children.clone(), P::start_nested(plan)).await?;
    board::tell("a", Order::Fail);
    if !ready("a", 2).await {
        return Err("the inner supervisor didn't restart its child".into());
    }
    board::tell("a", Order::Fail);
    if !ready("a", 3).await {
        return Err("the child wasn't started again after its supervisor had given up".into());
    }
    sleep(QUIET).await;
    let (starts, alive) = (board::count(0, "a", Step::Started), board::alive("a"));
    verdict((starts, alive) == (3, 1), || format!("{starts} starts, {alive} alive"))
}

async fn start<P: Peer>() -> Seen {
    let tree = timeout(PATIENCE, P::start(three([60, 40, 20]))).await;
    let _tree = tree.map_err(|_| "the start didn't return")?;
    // Nothing is awaited in between: the set-ups take time, so a start that doesn't wait is seen.
    let [started, ready] = [Step::Started, Step::Ready]
        .map(|step| NAMES.iter().filter(|name| board::count(0, name, step) > 0).count());
    verdict(ready == 3, || format!("{started} of 3 had started, {ready} were ready"))
}

async fn order<P: Peer>() -> Seen {
    let _tree = up::<P>(three([60, 40, 20])).await?;
    let steps = steps(0, Step::Started, Step::Ready);
    let sequence = |step| {
        let names = steps.iter().filter(|(_, taken)| *taken == step).map(|(name, _)| *name);
        names.collect::<Vec<_>>().join(", ")
    };
    let one_by_one = NAMES.map(|name| [(name, Step::Started), (name, Step::Ready)]).concat();
    verdict(steps == one_by_one, || {
        format!("started {}; ready {}", sequence(Step::Started), sequence(Step::Ready))
    })
}

/// The steps of two kinds since a mark.
fn steps(mark: usize, one: Step, other: Step) -> Vec<(&'static str, Step)> {
    let mut steps = board::since(mark);
    steps.retain(|(_, step)| *step == one || *step == other);
    steps
}

/// Starts three children and stops them. Returns the marks before and after the stop.
async fn stopped<P: Peer>() -> Result<(usize, usize), String> {
    let tree = up::<P>(three([0; 3])).await?;
    let mark = board::mark();
    timeout(PATIENCE, P::stop(tree)).await.map_err(|_| "the stop didn't return")?;
    let returned = board::mark();
    sleep(QUIET).await;
    Ok((mark, returned))
}

async fn clean_up<P: Peer>() -> Seen {
    let (mark, returned) = stopped::<P>().await?;
    let steps = board::since(mark);
    let ended =
        |steps: &[(&str, Step)]| steps.iter().filter(|(_, step)| *step == Step::CleanedUp).count();
    let (before, later) = (ended(&steps[..returned - mark]), ended(&steps));
    verdict(before == 3, || {
        format!("{before} of 3 had ended when the stop returned, {later} a second later")
    })
}

async fn reverse<P: Peer>() -> Seen {
    let (mark, _) = stopped::<P>().await?;
    let steps = steps(mark, Step::CleanUpBegan, Step::CleanedUp);
    let one_by_one =
        ["c", "b", "a"].map(|name| [(name, Step::CleanUpBegan), (name, Step::CleanedUp)]).concat();
    verdict(steps == one_by_one, || {
        let began = steps.iter().filter(|(_, step)| *step == Step::CleanUpBegan);
        let began: Vec<_> = began.map(|(name, _)| *name).collect();
        match steps.get(1) {
            _ if began.is_empty() => "no clean-up ran, so no order was seen".into(),
            Some((_, Step::CleanUpBegan)) => "all at once".into(),
            _ => format!("one after the other, but {}", began.join(", ")),
        }
    })
}
