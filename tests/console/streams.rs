//! The stream of changes, and pages that read slowly or not at all.

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::time::Instant;
use verger::console::Console;
use verger::{Context, DynamicSupervisor, Exit, worker};

use crate::{app, idle, secs, served, start};

#[tokio::test(start_paused = true)]
async fn a_page_receives_each_change_at_most_four_times_a_second() {
    let tree = start(app().child(worker("a", idle)).child(worker("b", idle))).await;
    let server = served(Console::new(), &tree);
    let mut stream = server.stream().await;
    assert_eq!(stream.status, 200);

    tree.restart("a").await.unwrap();
    let message = stream.next().await.unwrap();
    let began = Instant::now();
    assert_eq!((&message["resync"], &message["removed"]), (&json!(false), &json!([])));
    let children = message["children"].as_array().unwrap();
    let paths: Vec<_> = children.iter().map(|it| it["path"].as_str().unwrap()).collect();
    assert_eq!(
        paths,
        ["app/a", "app"],
        "the child, and the supervisor whose counts may have changed"
    );
    assert_eq!(
        (&children[0]["lifecycle"], &children[0]["incarnation"]),
        (&json!("active"), &json!(2))
    );
    assert!(children[1].get("children").is_none());
    assert_eq!(children[1]["supervisor"]["counts"]["specs"], 2);
    let events = message["events"].as_array().unwrap();
    assert!(events.iter().all(|it| it["path"] == "app/a" && it["text"].is_string()), "{events:?}");
    assert_eq!(message["seq"], events.last().unwrap()["seq"]);

    for _ in 0..10 {
        tree.restart("b").await.unwrap();
    }
    tree.stop_child("a").await.unwrap();
    tree.otp().delete_child("a").await.unwrap();
    let message = stream.next().await.unwrap();
    assert_eq!(began.elapsed(), std::time::Duration::from_millis(250));
    assert_eq!(message["removed"], json!(["app/a"]));
    let children = message["children"].as_array().unwrap();
    assert_eq!(children.len(), 2, "`a` is gone: {children:?}");
    let b = children.iter().find(|it| it["path"] == "app/b").unwrap();
    assert_eq!(b["incarnation"], 11);
}

#[tokio::test(start_paused = true)]
async fn without_changes_there_is_a_message_every_other_second() {
    let tree = start(app().child(worker("a", idle))).await;
    let server = served(Console::new(), &tree);
    let mut stream = server.stream().await;
    let mut last = None;
    for _ in 0..3 {
        let message = stream.next().await.unwrap();
        for list in ["children", "removed", "events"] {
            assert_eq!(message[list], json!([]), "{message}");
        }
        assert_eq!(message["resync"], false);
        let now = Instant::now();
        if let Some(last) = last.replace(now) {
            assert_eq!(now - last, std::time::Duration::from_millis(2_250));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn more_changes_than_a_message_holds_make_a_page_read_everything_again() {
    let pool = DynamicSupervisor::builder("pool");
    let tree = start(app().child(pool)).await;
    let server = served(Console::new(), &tree);
    let mut stream = server.stream().await;
    let pool = tree.supervisor("pool").await.unwrap();
    for _ in 0..201 {
        pool.start_once("job", idle).await.unwrap();
    }
    let mut resync = 0;
    for _ in 0..3 {
        let message = stream.next().await.unwrap();
        if message["resync"] == true {
            resync += 1;
            assert_eq!((&message["children"], &message["events"]), (&json!([]), &json!([])));
        }
        assert!(message["children"].as_array().unwrap().len() <= 200);
    }
    assert!(resync > 0);
}

#[tokio::test(start_paused = true)]
async fn the_sixty_fifth_page_has_to_wait_until_one_is_closed() {
    let tree = start(app().child(worker("a", idle))).await;
    let server = served(Console::new(), &tree);
    let mut streams = Vec::new();
    for _ in 0..64 {
        streams.push(server.stream().await);
    }
    let refused = server.get("/api/stream").await;
    assert_eq!(refused.problem(), (503, "too_many".to_owned()));
    assert!(refused.headers.contains("retry-after: 5"), "{refused:?}");
    assert_eq!(server.get("/api/status").await.status, 200);
    drop(streams.pop());
    tokio::time::sleep(secs(5)).await;
    assert_eq!(server.stream().await.status, 200);
    for stream in &mut streams {
        assert!(stream.next().await.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_does_not_read_delays_neither_the_tree_nor_the_other_pages() {
    let busy = worker("busy", async |_: Context| -> Exit {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        Err("again".into())
    });
    let busy = busy.backoff(verger::Backoff::constant(std::time::Duration::from_millis(100)));
    let tree = start(app().unlimited_restarts().child(busy)).await;
    let server = served(Console::new(), &tree);
    let mut deaf = server.stream().await;
    let mut reader = server.stream().await;
    let began = Instant::now();
    let mut messages = 0;
    while began.elapsed() < secs(120) {
        assert_eq!(reader.next().await.unwrap()["resync"], false);
        messages += 1;
    }
    assert!((470..=481).contains(&messages), "four a second, not {messages}");
    assert!(tree.which_child("busy").await.unwrap().incarnation > 500);
    let mut heard = 0;
    let caught_up = loop {
        let message = deaf.next().await.unwrap();
        heard += 1;
        if message["resync"] == true {
            break heard;
        }
    };
    assert!(caught_up < messages, "what it has missed isn't kept: {caught_up} of {messages}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_the_tree_begins_to_stop_and_does_not_come_back() {
    let slow = worker("slow", async |ctx: Context| {
        ctx.cancelled().await;
        tokio::time::sleep(secs(3)).await;
    });
    let tree = start(app().child(slow)).await;
    let server = served(Console::new(), &tree);
    let mut stream = server.stream().await;
    let stop = tokio::spawn({
        let tree = tree.clone();
        async move { tree.stop("a test").await }
    });
    let began = Instant::now();
    while stream.next().await.is_some() {}
    assert_eq!(began.elapsed(), secs(0), "as soon as it begins");
    tokio::time::sleep(secs(1)).await;
    let refused = server.get("/api/stream").await;
    assert_eq!(refused.problem(), (503, "shutting_down".to_owned()));
    stop.await.unwrap().unwrap();
    assert_eq!(began.elapsed(), secs(3));
}

#[tokio::test(start_paused = true)]
async fn nothing_but_the_recorder_runs_while_no_page_is_open() {
    let tree = start(app().child(worker("a", idle))).await;
    let server = served(Console::new(), &tree);
    let metrics = tokio::runtime::Handle::current().metrics();
    let tasks = metrics.num_alive_tasks();
    let stream = server.stream().await;
    assert_eq!(metrics.num_alive_tasks(), tasks + 2, "the connection and the publisher");
    drop(stream);
    tokio::time::sleep(secs(5)).await;
    assert_eq!(metrics.num_alive_tasks(), tasks, "both have ended");
}

#[tokio::test(start_paused = true)]
async fn garbage_ends_its_own_connection_only() {
    let tree = start(app().child(worker("a", idle))).await;
    let server = served(Console::new(), &tree);
    for garbage in
        [&b"\0\0\0\0\r\n\r\n"[..], b"GET\r\n\r\n", b"\x16\x03\x01\x02\0", &[b'x'; 70_000]]
    {
        let mut connection = server.connect().await;
        let _ = connection.write_all(garbage).await;
        drop(connection);
    }
    assert_eq!(server.get("/api/info").await.status, 200);
    assert_eq!(tree.which_child("a").await.unwrap().incarnation, 1);
}
