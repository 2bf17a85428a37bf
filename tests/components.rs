//! The example `components`: the macros and the builder make the same tree. Also workers with
//! mailboxes, made by the macros.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;
use verger::mailbox::{Inbox, Overflow, SendError};
use verger::status::{ChildSpecInfo, Node};
use verger::{
    ChildSpec, Context, ControlError, Exit, Supervisor, SupervisorBuilder, SupervisorHandle,
    supervisor, worker,
};

#[allow(dead_code, reason = "its `main` is the example's")]
#[path = "../examples/components.rs"]
mod components;

use components::{by_builder, by_macro};

/// After the start; while `south` waits for its restart; after its restart and an upload.
const MOMENTS: [Duration; 3] =
    [Duration::ZERO, Duration::from_millis(1_300), Duration::from_millis(3_500)];

/// The statuses of a running tree, and the specs of its children.
struct Seen {
    /// The status at each moment.
    statuses: Vec<Value>,
    specs: Vec<(String, ChildSpecInfo)>,
}

async fn watch(tree: SupervisorBuilder) -> Seen {
    let tree = start(tree).await;
    let began = tokio::time::Instant::now();
    let mut statuses = Vec::new();
    for moment in MOMENTS {
        sleep(moment - began.elapsed()).await;
        statuses.push(status(&tree).await);
    }
    let specs = specs(&tree).await;
    tree.wait().await.unwrap();
    Seen { statuses, specs }
}

async fn start(tree: SupervisorBuilder) -> SupervisorHandle {
    tree.build().unwrap().start().await.unwrap()
}

/// Returns the whole status, serialised. Its points in time are relative to the capture, because the
/// two trees run one after the other.
async fn status(tree: &SupervisorHandle) -> Value {
    let mut status = serde_json::to_value(tree.status().await.unwrap()).unwrap();
    let captured_at = status["captured_at_ms"].take();
    count_back(&mut status, captured_at.as_i64().unwrap());
    status
}

fn count_back(value: &mut Value, from: i64) {
    match value {
        Value::Object(fields) => {
            // Where it is described is what differs.
            fields.remove("defined_at");
            for (name, value) in fields {
                match value.as_i64() {
                    Some(at) if name == "since_ms" || name.ends_with("at_ms") => {
                        *value = (from - at).into();
                    }
                    _ => count_back(value, from),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| count_back(value, from)),
        _ => {}
    }
}

/// Returns the spec of each child, by path.
async fn specs(tree: &SupervisorHandle) -> Vec<(String, ChildSpecInfo)> {
    let root = tree.path().to_string();
    let mut paths = Vec::new();
    collect(&tree.status().await.unwrap().root, &mut paths);
    let mut specs = Vec::new();
    for path in paths {
        let below = path.strip_prefix(&format!("{root}/")).unwrap();
        specs.push((path.clone(), tree.child_spec(below).await.unwrap()));
    }
    specs
}

fn collect(node: &Node, paths: &mut Vec<String>) {
    for child in &node.children {
        paths.push(child.child.path.to_string());
        collect(child, paths);
    }
}

#[tokio::test(start_paused = true)]
async fn macros_and_builder_make_the_same_tree() {
    let (by_macro, by_builder) = (watch(by_macro()).await, watch(by_builder::station()).await);

    assert_eq!(by_macro.statuses, by_builder.statuses);
    assert_eq!(by_macro.specs, by_builder.specs);

    let paths: Vec<_> = by_macro.specs.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "station/archive",
            "station/archive/uploads",
            "station/archive/uploads/upload#4",
            "station/archive/writer",
            "station/sensors",
            "station/sensors/north",
            "station/sensors/south",
            "station/shift",
        ],
    );
}

/// Neither status nor specs show how many uploads are allowed, and that the writer requires them.
#[tokio::test(start_paused = true)]
async fn macros_and_builder_set_the_same_limits() {
    assert_eq!(format!("{:?}", by_macro()), format!("{:?}", by_builder::station()));

    for tree in [by_macro(), by_builder::station()] {
        let tree = start(tree).await;

        let uploads = tree.supervisor("archive/uploads").await.unwrap();
        let idle = worker("idle", async |ctx| ctx.cancelled().await);
        for _ in 0..4 {
            uploads.start_child(idle.clone()).await.unwrap();
        }
        let fifth = uploads.start_child(idle).await;
        assert!(matches!(fifth, Err(ControlError::MaxChildren { .. })), "{fifth:?}");

        let archive = tree.supervisor("archive").await.unwrap();
        archive.stop_child("writer").await.unwrap();
        archive.stop_child("uploads").await.unwrap();
        assert!(archive.otp().restart_child("writer").await.unwrap().is_gated());

        tree.stop("seen").await.unwrap();
    }
}

/// The rows that each incarnation of the writer has read.
type Rows = UnboundedSender<(u32, String)>;

#[worker(backoff(constant, delay = "1s"), capacity = 3)]
async fn writer(ctx: Context, mut inbox: Inbox<String>, rows: Rows) -> Exit {
    while let Some(row) = inbox.recv().await {
        let is_bad = row == "bad";
        let _ = rows.send((ctx.incarnation(), row));
        if is_bad {
            return Err("a bad row".into());
        }
    }
    Ok(())
}

#[supervisor]
struct Archive {
    #[child]
    writer: ChildSpec,
    #[child]
    second: ChildSpec,
}

async fn read(rows: &mut UnboundedReceiver<(u32, String)>, count: usize) -> Vec<(u32, String)> {
    let mut read = Vec::new();
    while read.len() < count {
        read.push(rows.recv().await.unwrap());
    }
    read
}

fn row(incarnation: u32, text: &str) -> (u32, String) {
    (incarnation, text.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_worker_reads_messages_from_before_its_start_and_during_a_restart_in_order() {
    let (sender, mut rows) = unbounded_channel();
    let (other_sender, mut other_rows) = unbounded_channel();
    let (writer_spec, address) = writer(sender);
    let (second, other_address) = writer(other_sender);
    for text in ["a", "bad", "b"] {
        address.try_send(text.to_owned()).unwrap();
    }
    let full = address.try_send("c".to_owned());
    assert!(matches!(full, Err(SendError::Full { capacity: 3, .. })), "{full:?}");

    let tree = Archive { writer: writer_spec, second }.builder();
    let began = tokio::time::Instant::now();
    let tree = start(tree).await;
    assert_eq!(read(&mut rows, 2).await, [row(1, "a"), row(1, "bad")]);
    assert_eq!(began.elapsed(), Duration::from_millis(50), "the queue drains after this grace");
    assert_eq!(address.path().unwrap().as_str(), "archive/writer");

    for text in ["c", "d"] {
        address.try_send(text.to_owned()).unwrap();
    }
    other_address.try_send("of the other".to_owned()).unwrap();
    assert_eq!(read(&mut other_rows, 1).await, [row(1, "of the other")]);
    assert_eq!(read(&mut rows, 3).await, [row(2, "b"), row(2, "c"), row(2, "d")]);
    assert_eq!(began.elapsed(), Duration::from_millis(1_100), "the backoff and the grace");

    tree.stop("seen").await.unwrap();
    let closed = address.try_send("e".to_owned());
    assert!(matches!(closed, Err(SendError::Closed { .. })), "{closed:?}");
}

/// A worker that acknowledges no message.
#[worker(
    backoff(constant, delay = "1s"),
    capacity = room,
    mailbox = |it| it.overflow(Overflow::DropOldest).max_attempts(attempts),
)]
async fn reader(
    ctx: Context,
    room: usize,
    mut inbox: Inbox<String>,
    attempts: u32,
    rows: Rows,
) -> Exit {
    let Some(row) = inbox.deliver().await else { return Ok(()) };
    let _ = rows.send((ctx.incarnation(), row.clone()));
    Err(format!("one of {attempts} attempts, of {room} messages").into())
}

#[tokio::test(start_paused = true)]
async fn the_mailbox_options_of_a_worker_hold() {
    let (sender, mut rows) = unbounded_channel();
    let (spec, address) = reader(2, 2, sender);
    let tree = start(Supervisor::builder("app").child(spec)).await;

    address.try_send("a".to_owned()).unwrap();
    assert_eq!(read(&mut rows, 1).await, [row(1, "a")]);
    tokio::task::yield_now().await;
    for text in ["b", "c"] {
        address.try_send(text.to_owned()).unwrap();
    }
    assert_eq!(address.len(), 2, "`a`, the oldest message, is dropped");
    let twice = [row(2, "b"), row(3, "b"), row(4, "c"), row(5, "c")];
    assert_eq!(read(&mut rows, 4).await, twice);

    tree.stop("seen").await.unwrap();
    assert!(address.is_empty());
}
