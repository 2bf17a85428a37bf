//! What the demo does, step by step. Each step ends when its effect is seen; none waits for a fixed time.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};
use verger::lease::FencingToken;
use verger::{Context, Exit, ExitError, SupervisorHandle};
use verger_lease_postgres::fence;

use super::cast::{Cast, Scheduler};
use super::process::signal;
use super::proxy::Network;
use crate::error::DatabaseError;
use crate::queue::LEASE;

/// How long the effect of a step may take, besides the time for which the database is down.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often the tables are read until they show what is waited for.
const LOOK: Duration = Duration::from_millis(100);

/// How many jobs run to their end before the next thing is broken.
const CALM: i64 = 200;

pub(super) async fn script(ctx: Context, cast: Arc<Cast>) -> Exit {
    match ctx.run_until_cancelled(play(&ctx, &cast)).await {
        None => Ok(()),
        // A second try would hide what was wrong with the first.
        Some(played) => played.map_err(ExitError::fatal),
    }
}

async fn play(ctx: &Context, cast: &Cast) -> Exit {
    let demo = ctx.parent();
    let client = connect(ctx, cast).await?;
    taken_over(cast, Scheduler::default()).await?;
    empty(cast, &client).await?;
    calm(cast, &client).await?;

    let killed = kill(cast, &demo).await?;
    calm(cast, &client).await?;
    let stopped = pause(cast, &client).await?;
    // The killed process has stayed down, so that the third one had to take over.
    say(cast, format_args!("lets {} start again", name(cast, killed)));
    demo.release(&format!("processes/{}", name(cast, killed))).await?;
    works(cast, &client, killed).await?;
    works(cast, &client, stopped).await?;
    calm(cast, &client).await?;
    cut(cast, &client).await?;
    calm(cast, &client).await?;
    drop(client);
    let client = crash(ctx, cast).await?;
    calm(cast, &client).await?;
    finish(cast, &client).await
}

/// Kills the scheduler. Its process stays down until it is released.
async fn kill(cast: &Cast, demo: &SupervisorHandle) -> Result<usize, ExitError> {
    let victim = *cast.scheduler.borrow();
    let name = name(cast, victim.member);
    say(cast, format_args!("kills {name} (kill -9), the scheduler"));
    demo.hold(&format!("processes/{name}")).await?;
    signal(*cast.members[victim.member].id.borrow(), Signal::KILL)?;
    taken_over(cast, victim).await?;
    Ok(victim.member)
}

/// Stops the scheduler for longer than its lease lasts, and lets it go on.
async fn pause(cast: &Cast, client: &Client) -> Result<usize, ExitError> {
    let victim = *cast.scheduler.borrow();
    let (member, token) = (&cast.members[victim.member], victim.token);
    let lost = *member.leases_lost.borrow();
    say(cast, format_args!("stops {} (SIGSTOP), the scheduler", member.name));
    signal(*member.id.borrow(), Signal::STOP)?;
    taken_over(cast, victim).await?;
    let Err(refused) = fence(client, LEASE, FencingToken::new(token)).await else {
        return Err("a write with the token of the stopped scheduler was possible".into());
    };
    say(cast, format_args!("tries a write with token {token}: {refused}"));
    say(cast, format_args!("lets {} go on (SIGCONT)", member.name));
    signal(*member.id.borrow(), Signal::CONT)?;
    grows(&member.leases_lost, lost, "the stopped process notices that its lease is lost").await?;
    Ok(victim.member)
}

/// Cuts the scheduler off, and heals the network when both sides have noticed.
async fn cut(cast: &Cast, client: &Client) -> Exit {
    let victim = *cast.scheduler.borrow();
    let member = &cast.members[victim.member];
    let silences = *member.silences.borrow();
    say(cast, format_args!("cuts {} off from the database, the scheduler", member.name));
    member.network.send_replace(Network::Cut);
    taken_over(cast, victim).await?;
    grows(&member.silences, silences, "the process that is cut off notices it").await?;
    say(cast, format_args!("heals the network of {}", member.name));
    member.network.send_replace(Network::Works);
    works(cast, client, victim.member).await
}

/// Stops the database as a crash does, and waits until it is back.
async fn crash(ctx: &Context, cast: &Cast) -> Result<Client, ExitError> {
    let ids: Vec<_> = cast.members.iter().map(|it| *it.id.borrow()).collect();
    let client = connect(ctx, cast).await?;
    let file = query(cast, &client, "SELECT pg_read_file('postmaster.pid')").await?;
    let postmaster = file.get::<_, &str>(0).lines().next().and_then(|line| line.parse().ok());
    say(cast, "stops the database (kill -QUIT)");
    signal(postmaster, Signal::QUIT).map_err(|error| {
        format!(
            "the database can't be stopped ({error}); use one of `serve-database`, on this machine"
        )
    })?;
    let down = async {
        while !client.is_closed() {
            sleep(LOOK).await;
        }
    };
    until(down, "the database is down").await?;
    let began = Instant::now();
    let client = returned(ctx, cast).await?;
    say(cast, format_args!("finds the database again after {:.1?}", began.elapsed()));
    for member in 0..cast.members.len() {
        works(cast, &client, member).await?;
    }
    let still: Vec<_> = cast.members.iter().map(|it| *it.id.borrow()).collect();
    if ids != still {
        return Err("a process has not outlived the outage of the database".into());
    }
    say(cast, "finds all three processes at work, none of which was started again");
    Ok(client)
}

/// Tries to connect until the database answers. It is down for as long as its own supervisor waits, so there is no limit.
async fn returned(ctx: &Context, cast: &Cast) -> Result<Client, ExitError> {
    loop {
        match connect(ctx, cast).await {
            Err(error) if error.is_outage() => sleep(LOOK).await,
            answer => return Ok(answer?),
        }
    }
}

/// Closes the schedule, and waits until all jobs have run.
async fn finish(cast: &Cast, client: &Client) -> Exit {
    say(cast, "closes the schedule");
    query(cast, client, "UPDATE jobs_example.schedule SET is_open = false RETURNING true").await?;
    let waiting = "SELECT count(*) FROM jobs_example.jobs WHERE done_at IS NULL";
    until(look(cast, client, waiting, |waiting| waiting == 0), "all jobs run to their end")
        .await??;
    say(cast, format_args!("ends after {:.0?}", cast.elapsed()));
    Ok(())
}

/// Empties the tables and opens the schedule. The lease and its token stay.
async fn empty(cast: &Cast, client: &Client) -> Exit {
    let statements = "TRUNCATE jobs_example.jobs, jobs_example.ledger; \
        UPDATE jobs_example.schedule SET is_open = true";
    Ok(cast.options.database.answer(client.batch_execute(statements)).await?)
}

/// Opens a connection for the script, which doesn't fail when it loses it: it stops the database itself.
async fn connect(ctx: &Context, cast: &Cast) -> Result<Client, DatabaseError> {
    let (client, connection) = cast.options.database.open().await?;
    ctx.detached_errors().spawn(connection);
    Ok(client)
}

/// Waits until a process adds jobs with a higher token.
async fn taken_over(cast: &Cast, before: Scheduler) -> Exit {
    let began = Instant::now();
    let mut scheduler = cast.scheduler.subscribe();
    let next =
        *until(scheduler.wait_for(|it| it.token > before.token), "a process takes over").await??;
    if before != Scheduler::default() {
        let (name, took) = (name(cast, next.member), began.elapsed());
        say(
            cast,
            format_args!(
                "finds that {name} has taken over after {took:.1?}, with token {}",
                next.token
            ),
        );
    }
    Ok(())
}

/// Waits until the process has run a job that it has finished after this call.
async fn works(cast: &Cast, client: &Client, member: usize) -> Exit {
    let name = name(cast, member);
    let finished = format!("SELECT count(*) FROM jobs_example.ledger WHERE worker LIKE '{name}/%'");
    let before: i64 = query(cast, client, &finished).await?.get(0);
    let what = format!("{name} runs jobs again");
    until(look(cast, client, &finished, |now| now > before), &what).await??;
    say(cast, format_args!("finds that {what}"));
    Ok(())
}

/// Waits until more jobs have run to their end.
async fn calm(cast: &Cast, client: &Client) -> Exit {
    let finished = "SELECT count(*) FROM jobs_example.ledger";
    let before: i64 = query(cast, client, finished).await?.get(0);
    let is_enough = |now| now >= before + CALM;
    until(look(cast, client, finished, is_enough), "more jobs run to their end").await??;
    say(cast, format_args!("finds that {CALM} more jobs have run"));
    Ok(())
}

/// Waits until a process has said something more often than before.
async fn grows(times: &watch::Sender<u32>, before: u32, what: &str) -> Exit {
    until(times.subscribe().wait_for(|now| *now > before), what).await??;
    Ok(())
}

/// Repeats a query for a number until it is as expected.
async fn look(
    cast: &Cast,
    client: &Client,
    statement: &str,
    is_expected: impl Fn(i64) -> bool,
) -> Result<(), DatabaseError> {
    while !is_expected(query(cast, client, statement).await?.get(0)) {
        sleep(LOOK).await;
    }
    Ok(())
}

async fn query(cast: &Cast, client: &Client, statement: &str) -> Result<Row, DatabaseError> {
    let none: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 0] = [];
    cast.options.database.answer(client.query_typed_one(statement, &none)).await
}

/// Waits, but not for ever.
async fn until<T>(future: impl Future<Output = T>, what: &str) -> Result<T, ExitError> {
    timeout(PATIENCE, future)
        .await
        .map_err(|_elapsed| format!("the demo has waited for {PATIENCE:?} until {what}").into())
}

fn name(cast: &Cast, member: usize) -> &'static str {
    cast.members[member].name
}

fn say(cast: &Cast, text: impl Display) {
    cast.tell("demo", &text.to_string());
}
