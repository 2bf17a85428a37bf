//! What is refused, and with which answer.

use serde_json::json;
use verger::console::Console;
use verger::log_lines::LogLines;
use verger::{SupervisorHandle, worker};

use crate::client::{Request, Server, TOKEN, get, post, request};
use crate::{app, console, idle, served, start};

const GETS: [&str; 14] = [
    "/",
    "/console.css",
    "/console.js",
    "/api/info",
    "/api/status",
    "/api/tree.txt",
    "/api/child?path=app/db",
    "/api/events",
    "/api/incidents",
    "/api/samples?path=app/db",
    "/api/log",
    "/api/dead-letters",
    "/api/config",
    "/api/stream",
];

const POSTS: [&str; 4] = ["/api/action", "/api/dead-letters/replay", "/api/plan", "/api/reload"];

async fn guarded(console: Console) -> (SupervisorHandle, Server) {
    let tree = start(app().child(worker("db", idle))).await;
    let server = served(console.log_lines(&LogLines::new()), &tree);
    (tree, server)
}

fn restart() -> Request {
    post("/api/action", json!({ "action": "restart", "path": "app/db" }))
}

/// The number of the incarnation that runs.
async fn incarnation(tree: &SupervisorHandle) -> u32 {
    tree.which_child("db").await.unwrap().incarnation
}

#[tokio::test(start_paused = true)]
async fn a_request_for_a_foreign_host_is_refused_whatever_it_asks_for() {
    let (tree, server) = guarded(console().allow_host("ops.example.com")).await;
    for foreign in ["evil.example", "localhost.evil.example:7007", "127.0.0.2", "192.168.0.1:7007"]
    {
        for path in GETS {
            let answer = server.send(get(path).header("host", foreign)).await;
            assert_eq!(answer.problem(), (403, "foreign_host".to_owned()), "{foreign} {path}");
        }
        let answer = server.send(restart().header("host", foreign)).await;
        assert_eq!(answer.problem(), (403, "foreign_host".to_owned()));
    }
    let none = request("GET", "/api/info").header("host", "");
    assert!(matches!(server.send(none).await.status, 400 | 403));
    for own in ["localhost", "127.0.0.1:80", "[::1]:7007", "ops.example.com", "OPS.EXAMPLE.COM:443"]
    {
        assert_eq!(server.send(get("/api/info").header("host", own)).await.status, 200, "{own}");
    }
    assert_eq!(incarnation(&tree).await, 1);
}

#[tokio::test(start_paused = true)]
async fn every_answer_forbids_frames_foreign_scripts_caches_and_guessed_types() {
    let (_tree, server) = guarded(console()).await;
    let mut requests: Vec<_> = GETS[..13].iter().map(|path| get(path)).collect();
    requests.push(get("/api/action"));
    requests.push(get("/api/child?path=app/none"));
    requests.push(get("/api/info").header("host", "evil.example"));
    requests.push(restart());
    requests.push(restart().header("x-verger-token", "wrong"));
    for request in requests {
        let answer = server.send(request.header("origin", "http://localhost:7007")).await;
        let has = |line: &str| answer.headers.lines().any(|it| it.starts_with(line));
        for line in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "x-frame-options: deny",
            "cross-origin-resource-policy: same-origin",
            "cache-control: no-store",
        ] {
            assert!(has(line), "{line}: {answer:?}");
        }
        assert!(!answer.headers.contains("unsafe"), "{answer:?}");
        assert!(
            !answer.headers.contains("access-control"),
            "no other site may read it: {answer:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_an_action_is_an_answer_and_changes_nothing() {
    let (tree, server) = guarded(console()).await;
    let long = format!("\"{}\"", "x".repeat(16 * 1024));
    let order = json!({ "action": "restart", "path": "app/db" }).to_string();
    #[rustfmt::skip]
    let cases = [
        (restart().header("x-verger-token", ""), 403, "bad_token"),
        (restart().header("x-verger-token", "a token for test"), 403, "bad_token"),
        (restart().header("x-verger-token", "a token for tests!"), 403, "bad_token"),
        (restart().header("x-verger-token", "A token for tests"), 403, "bad_token"),
        (restart().header("x-verger-token", "tökén \u{1f511}"), 403, "bad_token"),
        (restart().header("origin", "http://evil.example"), 403, "foreign_origin"),
        (restart().header("origin", "http://localhost:7008"), 403, "foreign_origin"),
        (restart().header("origin", "null"), 403, "foreign_origin"),
        (get("/api/stream").header("origin", "http://evil.example"), 403, "foreign_origin"),
        (restart().header("content-type", ""), 415, "content_type"),
        (restart().header("content-type", "text/plain"), 415, "content_type"),
        (restart().header("content-type", "application/x-www-form-urlencoded"), 415, "content_type"),
        (restart().body(&long), 413, "too_large"),
        (restart().body(""), 400, "bad_request"),
        (restart().body("{"), 400, "bad_request"),
        (restart().body("[]"), 400, "bad_request"),
        (restart().body(format!("{order}{order}")), 400, "bad_request"),
        (restart().body(r#"{"action":"explode","path":"app/db"}"#), 400, "bad_request"),
        (restart().body(r#"{"action":"restart"}"#), 400, "bad_request"),
        (restart().body(r#"{"action":"restart","path":""}"#), 400, "bad_request"),
        (restart().body(r#"{"action":"restart","path":"app"}"#), 400, "bad_request"),
        (restart().body(r#"{"action":"restart","path":"app//db"}"#), 400, "bad_request"),
        (restart().body(r#"{"action":"restart","path":"app/db","force":true}"#), 400, "bad_request"),
        (restart().body(r#"{"action":"restart","path":"app/none"}"#), 404, "not_found"),
        (restart().body(r#"{"action":"stop_tree"}"#), 400, "bad_request"),
        (restart().body(r#"{"action":"stop_tree","confirm":"APP"}"#), 400, "bad_request"),
        (restart().body(r#"{"action":"stop_tree","path":"app/db","confirm":"app"}"#), 400, "bad_request"),
        (get("/api/action"), 405, "method"),
        (request("PUT", "/api/action"), 405, "method"),
        (request("OPTIONS", "/api/action"), 405, "method"),
        (post("/api/status", &order), 405, "method"),
        (post("/", &order), 405, "method"),
        (request("DELETE", "/api/child?path=app/db"), 405, "method"),
        (get("/api/child"), 400, "bad_request"),
        (get("/api/child?path=app/none"), 404, "not_found"),
        (get("/api/child?path=%00"), 404, "not_found"),
        (get("/api/status?under=app/none/deeper"), 404, "not_found"),
    ];
    for (index, (request, status, problem)) in cases.into_iter().enumerate() {
        let answer = server.send(request).await;
        assert_eq!(answer.problem(), (status, problem.to_owned()), "case {index}: {answer:?}");
    }
    for missing in [post("/api/nothing", &order), get("/api"), get("/../etc/passwd")] {
        let answer = server.send(missing).await;
        assert_eq!((answer.status, &*answer.body), (404, ""), "{answer:?}");
    }
    let status = tree.status().await.unwrap();
    assert_eq!((incarnation(&tree).await, status.root.children.len()), (1, 1));
    assert_eq!(server.send(restart()).await.status, 200);
    let with_charset = restart().header("content-type", "Application/JSON; charset=utf-8");
    let with_origin = with_charset.header("origin", "http://LOCALHOST:7007");
    assert_eq!(server.send(with_origin).await.status, 200);
    assert_eq!(incarnation(&tree).await, 3, "only these two were right");
}

#[tokio::test(start_paused = true)]
async fn a_console_without_actions_refuses_all_of_them_whatever_the_token() {
    let (tree, server) = guarded(Console::new().token(crate::client::TOKEN)).await;
    for path in POSTS {
        for token in [crate::client::TOKEN, "wrong", ""] {
            let request = post(path, "{}").header("x-verger-token", token);
            let answer = server.send(request.header("origin", "http://evil.example")).await;
            assert_eq!(answer.problem(), (403, "actions_off".to_owned()), "{path} {token}");
        }
    }
    assert_eq!(server.send(restart()).await.problem(), (403, "actions_off".to_owned()));
    assert_eq!(incarnation(&tree).await, 1);
    let info = server.get("/api/info").await.json();
    assert_eq!(info["actions"], false);
}

#[tokio::test(start_paused = true)]
async fn an_empty_token_permits_nothing() {
    let (_tree, server) = guarded(console().token("")).await;
    for request in [restart().header("x-verger-token", ""), restart()] {
        assert_eq!(server.send(request).await.problem(), (403, "bad_token".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_get_changes_nothing_whatever_it_says() {
    let (tree, server) = guarded(console()).await;
    for path in &GETS[..13] {
        let order = r#"{"action":"restart","path":"app/db"}"#;
        let request = get(path).header("x-verger-token", crate::client::TOKEN).body(order);
        assert_eq!(server.send(request).await.status, 200, "{path}");
        let head = server.send(request_of_head(path)).await;
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{path}");
    }
    let queried = "/api/action?action=restart&path=app/db";
    assert_eq!(server.get(queried).await.problem(), (405, "method".to_owned()));
    assert_eq!(incarnation(&tree).await, 1);
}

fn request_of_head(path: &str) -> Request {
    request("HEAD", path)
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_comes_is_an_answer_in_time() {
    let (_tree, server) = guarded(console()).await;
    let began = tokio::time::Instant::now();
    let answer = server.send(restart().body("").header("content-length", "100")).await;
    assert_eq!(answer.problem(), (408, "timeout".to_owned()));
    assert_eq!(began.elapsed(), crate::secs(10));
}

#[tokio::test(start_paused = true)]
async fn reading_needs_the_token_for_it_or_that_of_actions_where_one_is_set() {
    let (_tree, server) = guarded(console().read_token("read")).await;
    for path in GETS {
        let is_file = !path.starts_with("/api/");
        let with = async |token: &str| {
            let request = get(path).header("x-verger-token", token);
            let answer = if path == "/api/stream" {
                return server.stream_with(request).await.status;
            } else {
                server.send(request).await
            };
            answer.status
        };
        let refused = if is_file { 200 } else { 403 };
        assert_eq!(server.send(get(path)).await.status, refused, "{path}");
        assert_eq!(with("wrong").await, refused, "{path}");
        assert_eq!(with("read").await, 200, "{path}");
        assert_eq!(with(TOKEN).await, 200, "{path}");
    }
    let act = server.send(restart().header("x-verger-token", "read")).await;
    assert_eq!(
        act.problem(),
        (403, "bad_token".to_owned()),
        "the token for reading changes nothing"
    );
}

#[tokio::test(start_paused = true)]
async fn a_proxy_names_the_operator_in_the_header_that_is_set_and_in_no_other() {
    let (tree, server) = guarded(console().identity_header("X-Forwarded-User")).await;
    let by = async || tree.which_child("db").await.unwrap().last_call.unwrap().by;
    let long = "a".repeat(99);
    for (header, value, shown) in [
        ("x-forwarded-user", "alice", "alice (header)"),
        ("x-forwarded-user", "a\u{202e}b", "a\\u{202e}b (header)"),
        ("x-forwarded-user", &long, &format!("{} (header)", "a".repeat(64))),
        ("x-forwarded-user", " ", "bob (typed)"),
        ("x-other", "alice", "bob (typed)"),
    ] {
        let order = json!({ "action": "restart", "path": "db", "by": "bob" });
        let answer = server.send(post("/api/action", order).header(header, value)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(&*by().await, shown);
    }
    let info = server.send(get("/api/info").header("x-forwarded-user", "alice")).await.json();
    assert_eq!((&info["identity"], &info["read_token"]), (&json!("alice"), &json!(false)));
}
