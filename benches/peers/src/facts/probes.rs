//! What each probe does to a crate, and how the outcome is judged: the same code for all crates.
//!
//! Every wait is bounded. What an answer says was counted on the board.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::board::{self, PANIC, Probed, Step, board};
use crate::child::Order;
use crate::peer::{LONG, Peer, Plan};
use crate::texts;

/// A *yes* with a remark, which may be empty, or what was seen instead.
pub type Seen = Result<String, String>;

/// All probes, in the order of the table. The page says what has to be seen for a *yes*.
pub const PROBES: [&str; 15] = [
    "panic",
    "text",
    "error",
    "limit",
    "window",
    "group",
    "busy",
    "finished",
    "hung",
    "twice",
    "escalation",
    "start",
    "order",
    "clean-up",
    "reverse",
];

/// The names of the children in the answers.
const NAMES: [&str; 3] = ["a", "b", "c"];
const ALL: [usize; 3] = [0, 1, 2];
/// Long enough for everything that is going to happen: twice the longest grace of all crates.
const PATIENCE: Duration = Duration::from_secs(10);
/// Long enough to see what should not happen.
const QUIET: Duration = Duration::from_secs(1);

const ONE: Plan = Plan { widths: &[1], one_for_all: false, limit: Some((5, LONG)) };
const THREE: Plan = Plan { widths: &[3], one_for_all: false, limit: Some((10, LONG)) };
/// The set-up of each child takes less time than that of the one before.
const SET_UP: [u64; 3] = [60, 40, 20];

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
async fn ready(child: usize, times: usize) -> bool {
    until(|| board::count(0, child, Step::Ready) >= times).await
}

/// Starts a tree and waits until its children are ready.
async fn up<P: Peer>(plan: Plan) -> Result<P::Tree, String> {
    let start = timeout(PATIENCE, P::start::<Probed>(plan));
    let tree = start.await.map_err(|_| "the start didn't return")?;
    for child in 0..plan.widths.iter().product() {
        if !ready(child, 1).await {
            return Err("the children didn't start".into());
        }
    }
    Ok(tree)
}

async fn restarted<P: Peer>(order: Order) -> Seen {
    let _tree = up::<P>(ONE).await?;
    board::send(0, order);
    let again = until(|| board::count(0, 0, Step::Started) > 1).await;
    sleep(QUIET).await;
    match (again, board::count(0, 0, Step::Started)) {
        (true, 2) => Ok(String::new()),
        (true, starts) => Err(format!("started {} times more", starts - 1)),
        (false, _) => Err("not started again".into()),
    }
}

async fn text<P: Peer>() -> Seen {
    let tree = up::<P>(Plan { limit: Some((1, LONG)), ..ONE }).await?;
    // The second time for crates that show it when they give up.
    for _ in 0..2 {
        board::send(0, Order::Panic);
        sleep(QUIET).await;
    }
    drop(tree);
    sleep(QUIET).await;
    match texts::places(PANIC) {
        (_, found) if !found.is_empty() => Ok(format!("in {}", found.join(" and "))),
        (all, _) if all.is_empty() => Err("nothing was shown anywhere".into()),
        (all, _) => Err(format!("it is not in {}", all.join(" or "))),
    }
}

async fn limit<P: Peer>() -> Seen {
    let _tree = up::<P>(Plan { limit: Some((3, LONG)), ..ONE }).await?;
    for restarts in 0..10 {
        board::send(0, Order::Fail);
        if !ready(0, restarts + 2).await {
            return verdict(restarts == 3, || format!("restarted {restarts} times"));
        }
    }
    Err("restarted 10 times, and it would have gone on".into())
}

async fn window<P: Peer>() -> Seen {
    let _tree = up::<P>(Plan { limit: Some((5, Duration::from_secs(1))), ..ONE }).await?;
    for crash in 1..=10 {
        sleep(Duration::from_millis(600)).await;
        board::send(0, Order::Fail);
        if !ready(0, crash + 1).await {
            return Err(format!("not restarted after crash {crash}"));
        }
    }
    Ok(String::new())
}

/// `b` of a `one_for_all` fails while `c` does what the probe says.
async fn one_for_all<P: Peer>(probe: &str) -> Seen {
    let finishes = probe == "finished";
    let limit = if probe == "twice" { 1 } else { 10 };
    board().transient = finishes.then_some(2);
    let _tree = up::<P>(Plan { one_for_all: true, limit: Some((limit, LONG)), ..THREE }).await?;
    match probe {
        "busy" => board::send(2, Order::Block(Duration::from_millis(60))),
        "finished" => board::send(2, Order::Finish),
        "hung" => board::send(2, Order::Hang),
        _ => {}
    }
    // Enough to begin with it, and not enough to block for the whole time.
    sleep(Duration::from_millis(20)).await;
    if finishes && !until(|| board::alive(2) == 0).await {
        return Err("a child that has ended well is kept".into());
    }
    let mark = board::mark();
    board::send(1, Order::Fail);
    if probe == "twice" {
        board::send(2, Order::Fail);
    }
    let is_needed = |child: usize| child < 2 || !finishes;
    let is_back = |child: usize| board::count(mark, child, Step::Ready) > 0;
    until(|| ALL.into_iter().all(|child| is_back(child) || !is_needed(child))).await;
    sleep(QUIET).await;

    let starts = ALL.map(|child| board::count(mark, child, Step::Started));
    let alive = ALL.map(board::alive);
    let is_right = |child: usize| match (starts[child], alive[child]) {
        (0, 0) => !is_needed(child),
        counts => counts == (1, 1),
    };
    let list =
        |counts: [usize; 3]| ALL.map(|it| format!("{} {}", NAMES[it], counts[it])).join(", ");
    verdict(ALL.into_iter().all(is_right), || {
        format!("starts after the crash: {}; alive: {}", list(starts), list(alive))
    })
}

async fn escalation<P: Peer>() -> Seen {
    let _tree = up::<P>(Plan { widths: &[1, 1], limit: Some((1, LONG)), ..ONE }).await?;
    for (starts, otherwise) in [
        (2, "the inner supervisor didn't restart its child"),
        (3, "the child wasn't started again after its supervisor had given up"),
    ] {
        board::send(0, Order::Fail);
        if !ready(0, starts).await {
            return Err(otherwise.into());
        }
    }
    sleep(QUIET).await;
    let (starts, alive) = (board::count(0, 0, Step::Started), board::alive(0));
    verdict((starts, alive) == (3, 1), || format!("{starts} starts, {alive} alive"))
}

async fn start<P: Peer>() -> Seen {
    board().set_up = SET_UP;
    let tree = timeout(PATIENCE, P::start::<Probed>(THREE)).await;
    let _tree = tree.map_err(|_| "the start didn't return")?;
    // Nothing is awaited in between: the set-ups take time, so a start that doesn't wait is seen.
    let [started, ready] = [Step::Started, Step::Ready]
        .map(|step| ALL.into_iter().filter(|child| board::count(0, *child, step) > 0).count());
    verdict(ready == 3, || format!("{started} of 3 had started, {ready} were ready"))
}

async fn order<P: Peer>() -> Seen {
    board().set_up = SET_UP;
    let _tree = up::<P>(THREE).await?;
    let steps = steps(0, [Step::Started, Step::Ready]);
    verdict(
        steps == ALL.map(|child| [(child, Step::Started), (child, Step::Ready)]).concat(),
        || {
            format!(
                "started {}; ready {}",
                names(&steps, Step::Started),
                names(&steps, Step::Ready)
            )
        },
    )
}

/// The steps of two kinds since a mark.
fn steps(mark: usize, kinds: [Step; 2]) -> Vec<(usize, Step)> {
    let mut steps = board::since(mark);
    steps.retain(|(_, step)| kinds.contains(step));
    steps
}

/// The names of the children that took a step, in the order in which they took it.
fn names(steps: &[(usize, Step)], step: Step) -> String {
    let names = steps.iter().filter(|(_, taken)| *taken == step).map(|(child, _)| NAMES[*child]);
    names.collect::<Vec<_>>().join(", ")
}

/// Starts three children and stops them. Returns the marks before and after the stop.
async fn stopped<P: Peer>() -> Result<(usize, usize), String> {
    let tree = up::<P>(THREE).await?;
    let mark = board::mark();
    timeout(PATIENCE, P::stop(tree)).await.map_err(|_| "the stop didn't return")?;
    let returned = board::mark();
    sleep(QUIET).await;
    Ok((mark, returned))
}

async fn clean_up<P: Peer>() -> Seen {
    let (mark, returned) = stopped::<P>().await?;
    let steps = board::since(mark);
    let ended = |steps: &[(usize, Step)]| steps.iter().filter(|it| it.1 == Step::CleanedUp).count();
    let (before, later) = (ended(&steps[..returned - mark]), ended(&steps));
    verdict(before == 3, || {
        format!("{before} of 3 had ended when the stop returned, {later} a second later")
    })
    .map(|_| board().remark.into())
}

async fn reverse<P: Peer>() -> Seen {
    let (mark, _) = stopped::<P>().await?;
    let steps = steps(mark, [Step::CleanUpBegan, Step::CleanedUp]);
    let one_by_one =
        [2, 1, 0].map(|child| [(child, Step::CleanUpBegan), (child, Step::CleanedUp)]).concat();
    verdict(steps == one_by_one, || match steps.get(1) {
        None => "no clean-up ran, so no order was seen".into(),
        Some((_, Step::CleanUpBegan)) => "all at once".into(),
        _ => format!("one after the other, but {}", names(&steps, Step::CleanUpBegan)),
    })
}
