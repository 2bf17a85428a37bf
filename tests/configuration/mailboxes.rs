//! The capacity of a mailbox, which a file changes while the child runs.

use verger::mailbox::{Address, Drain, Inbox, Overflow, SendError};
use verger::{
    ChildSpec, Context, DynamicSupervisor, Exit, SupervisorHandle, mailbox_with_capacity, worker,
    worker_with_mailbox,
};

use super::{app, apply, config, idle, start_with, try_apply};
use crate::common::settle;

/// A child that receives nothing until it is stopped.
fn reader(name: &str, overflow: Overflow) -> (Address<u32>, ChildSpec) {
    let (address, mailbox) = mailbox_with_capacity(2);
    let run = async |ctx: Context, _inbox: Inbox<u32>| -> Exit {
        ctx.cancelled().await;
        Ok(())
    };
    let mailbox = mailbox.overflow(overflow).drain(Drain::AtStart);
    (address, worker_with_mailbox(name, mailbox, run))
}

async fn load(tree: &SupervisorHandle, path: &str) -> String {
    let mailbox = tree.which_child(path).await.unwrap().mailbox.unwrap();
    format!("{}/{}", mailbox.len, mailbox.capacity)
}

#[tokio::test(start_paused = true)]
async fn a_file_sets_the_capacity_of_a_mailbox_live_and_without_it_the_code_counts() {
    let (address, spec) = reader("a", Overflow::Reject);
    let tree = start_with(app().child(spec), "[a]\nmailbox = { capacity = 3 }").await;
    for message in 0..3 {
        address.try_send(message).unwrap();
    }
    assert!(matches!(address.try_send(3), Err(SendError::Full { capacity: 3, .. })));

    // A sender that waits for room has it.
    let waiting = tokio::spawn({
        let address = address.clone();
        async move { address.send(3).await.is_ok() }
    });
    settle().await;
    assert!(!waiting.is_finished());
    let text = "[a]\nmailbox = { capacity = \"5\" }";
    let plan = tree.plan(&config(text)).await.unwrap();
    let line = "~ app/a  mailbox.capacity  3 → \"5\"  live  app.toml:2";
    assert_eq!(plan.to_string(), line);
    tree.apply(plan).await.unwrap();
    assert!(waiting.await.unwrap());
    assert_eq!(load(&tree, "a").await, "4/5");

    // A smaller one removes no message.
    apply(&tree, "[a]\nmailbox = { capacity = 1 }").await;
    assert_eq!((load(&tree, "a").await, address.capacity()), ("4/1".to_owned(), 1));
    assert!(matches!(address.try_send(9), Err(SendError::Full { capacity: 1, .. })));
    apply(&tree, "").await;
    assert_eq!(load(&tree, "a").await, "4/2");
    tree.stop("the test is over").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn above_a_smaller_capacity_the_oldest_message_makes_room_for_a_new_one() {
    let (address, spec) = reader("a", Overflow::DropOldest);
    let tree = start_with(app().child(spec), "").await;
    address.try_send(1).unwrap();
    address.try_send(2).unwrap();
    apply(&tree, "[a]\nmailbox = { capacity = 1 }").await;
    address.try_send(3).unwrap();
    assert_eq!(load(&tree, "a").await, "2/1");
    tree.stop("the test is over").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_section_for_several_children_sets_it_for_those_that_have_a_mailbox() {
    let (_address, spec) = reader("a", Overflow::Reject);
    let pool = DynamicSupervisor::builder("pool");
    let tree = app().child(spec).child(worker("plain", idle)).child(pool);
    let tree = start_with(tree, "[common]\nmailbox = { capacity = 7 }").await;
    assert_eq!(load(&tree, "a").await, "0/7");
    let (_member, spec) = reader("member", Overflow::Reject);
    let member = tree.supervisor("pool").await.unwrap().start_child(spec).await.unwrap();
    let path = member.path().as_str().strip_prefix("app/").unwrap().to_owned();
    assert_eq!(load(&tree, &path).await, "0/7");
    apply(&tree, "[\"pool/*\"]\nmailbox = { capacity = 8 }").await;
    assert_eq!((load(&tree, "a").await, load(&tree, &path).await), ("0/2".into(), "0/8".into()));
    tree.stop("the test is over").await.unwrap();
}

/// A mailbox that was given to two children by mistake belongs to the first.
#[tokio::test(start_paused = true)]
async fn a_capacity_for_a_child_without_its_own_mailbox_leaves_the_other_childs_alone() {
    let (address, spec) = reader("a", Overflow::Reject);
    let dynamic = DynamicSupervisor::builder;
    let text = "[\"x/a\"]\nmailbox = { capacity = 3 }";
    let tree = start_with(app().child(dynamic("x")).child(dynamic("y")), text).await;
    for above in ["x", "y"] {
        let above = tree.supervisor(above).await.unwrap();
        let _ = above.start_child(spec.clone()).await;
    }
    assert_eq!(address.capacity(), 3);
    apply(&tree, &format!("{text}\n[\"y/a\"]\nmailbox = {{ capacity = 9 }}")).await;
    assert_eq!(address.capacity(), 3);
    tree.stop("the test is over").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_capacity_of_zero_or_for_a_child_without_a_mailbox_is_a_mistake() {
    let (_address, spec) = reader("a", Overflow::Reject);
    let tree = app().child(spec).child(worker("plain", idle));
    let tree = start_with(tree.child(DynamicSupervisor::builder("pool")), "").await;
    for (text, mistake) in [
        (
            "[a]\nmailbox = { capacity = 0 }",
            "a mailbox without room takes no message; write at least 1",
        ),
        ("[a]\nmailbox = 5", "a table such as { capacity = 1000 }"),
        ("[a]\nmailbox = {}", "the key `capacity` is missing"),
        ("[plain]\nmailbox = { capacity = 1 }", "the child has no mailbox; remove it"),
        (
            "[pool]\nmailbox = { capacity = 1 }",
            "`mailbox` is for workers, and this is a supervisor",
        ),
    ] {
        let error = try_apply(&tree, text).await.unwrap_err().to_string();
        assert!(error.contains(mistake), "{text}: {error}");
    }
    tree.stop("the test is over").await.unwrap();
}
