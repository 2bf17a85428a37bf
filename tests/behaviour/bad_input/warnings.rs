//! Legal but probably unintended options are logged as warnings and can be read.

use std::time::Duration;

use tracing::level_filters::LevelFilter;
use verger::error::BuildWarning;
use verger::mailbox::WhileDown;
use verger::{Backoff, Context, Shutdown, Supervisor, mailbox, worker, worker_with_mailbox};

use super::{MINUTE, app, idle, ms};
use crate::log::Log;

#[test]
fn a_limit_that_can_never_be_reached_is_a_warning() {
    let slow = Backoff::constant(Duration::from_secs(30));
    let pool = |max| {
        let pool = Supervisor::builder("pool").restarts(max, MINUTE);
        app().child(pool.child(worker("db", idle).backoff(slow.clone()))).build().unwrap()
    };
    // Its failures at 0, 30 and 60 s are charged: three, and no fourth.
    assert_eq!(pool(2).warnings(), []);
    let tree = pool(3);
    let path = match tree.warnings() {
        [BuildWarning::UnreachableLimit { path, max: 3, period: MINUTE, most: 3 }] => path,
        other => panic!("{other:?}"),
    };
    assert_eq!(path.as_str(), "app/pool");
    assert_eq!(
        tree.warnings()[0].to_string(),
        "`app/pool` gives up after 3 restarts in 60s, but with its backoff there can be 3 at most: \
         it will never give up",
    );
    // Two such children together can reach the limit.
    let child = |name| worker(name, idle).backoff(slow.clone());
    let two = app().restarts(3, MINUTE).child(child("a")).child(child("b")).build().unwrap();
    assert_eq!(two.warnings(), []);
}

#[test]
fn an_unbounded_stop_is_a_warning() {
    let endless = worker("db", idle).shutdown(Shutdown::Infinity);
    let tree = app().child(Supervisor::builder("pool").child(endless)).build().unwrap();
    let [warning @ BuildWarning::UnboundedStop { path }] = tree.warnings() else {
        panic!("{:?}", tree.warnings())
    };
    assert_eq!(path.as_str(), "app/pool/db");
    assert_eq!(
        warning.to_string(),
        "`app/pool/db` is a worker with `Shutdown::Infinity`: stopping may never end",
    );
    // A supervisor's children have their own graces.
    let supervisor = Supervisor::builder("pool").into_child().shutdown(Shutdown::Infinity);
    assert_eq!(app().child(supervisor).build().unwrap().warnings(), []);
}

/// A default that makes every worker's stop unbounded is as unbounded as a worker's own setting.
#[test]
fn an_unbounded_stop_by_default_is_a_warning() {
    let tree = app().defaults(|child| child.shutdown(Shutdown::Infinity));
    let tree = tree.child(worker("db", idle)).child(worker("log", idle).shutdown(ms(100)));
    let tree = tree.build().unwrap();
    assert_eq!(
        tree.warnings().iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["`app/db` is a worker with `Shutdown::Infinity`: stopping may never end"],
    );
}

#[test]
fn a_while_down_that_has_no_effect_is_a_warning() {
    let spec = |while_down| {
        let (_address, mailbox) = mailbox::<u32>();
        let mailbox = mailbox.while_down(while_down);
        worker_with_mailbox("db", mailbox, async |ctx: Context, _| ctx.cancelled().await)
    };
    let on_message = spec(WhileDown::DeadLetter).start_on_message();
    let tree = app().child(Supervisor::builder("pool").child(on_message)).build().unwrap();
    let [warning @ BuildWarning::WhileDownIgnored { path }] = tree.warnings() else {
        panic!("{:?}", tree.warnings())
    };
    assert_eq!(path.as_str(), "app/pool/db");
    assert_eq!(
        warning.to_string(),
        "`app/pool/db` has `start_on_message()`, so its mailbox queues all messages while it is \
         down: `while_down` has no effect",
    );
    for spec in [spec(WhileDown::DeadLetter), spec(WhileDown::Stash).start_on_message()] {
        assert_eq!(app().child(spec).build().unwrap().warnings(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn warnings_are_logged_when_a_tree_is_built_and_when_a_child_is_added() {
    let log = Log::at(LevelFilter::WARN);
    let endless = |name| worker(name, idle).shutdown(Shutdown::Infinity);
    let app = app().child(endless("a")).build().unwrap().start().await.unwrap();
    app.start_child(endless("b")).await.unwrap();
    app.stop("done").await.unwrap();

    let warning = "is a worker with `Shutdown::Infinity`: stopping may never end";
    assert_eq!(
        log.lines(),
        ["a", "b"].map(|name| format!("WARN verger::lifecycle: `app/{name}` {warning}")),
    );
}
