//! The client against a real console, and against servers that are none.

use std::net::TcpListener;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use verger::console::Console;
use verger::{Application, Context, Supervisor, worker};

use super::*;
use crate::model::{Acted, Child, Events, Info, Status};

/// Serves a tree with a console in this process, as long as the test runs.
fn console(console: Console) -> Client {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    let db = worker("db", async |ctx: Context| ctx.cancelled().await);
    let program = Application::new(Supervisor::builder("app").child(db));
    let program = program.listen_to_signals(false).console_on(listener, console);
    tokio::spawn(program.run_to_end());
    Client::new(Endpoint { authority, token: Some("secret".into()) })
}

fn actions() -> Console {
    Console::new().allow_actions(true).token("secret")
}

/// A server that reads a request and answers with these bytes, and then keeps the connection open.
async fn server(answer: &'static str) -> Client {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut socket, _)) = listener.accept().await {
            _ = socket.read(&mut [0; 4_096]).await;
            _ = socket.write_all(answer.as_bytes()).await;
            open.push(socket);
        }
    });
    Client::new(Endpoint { authority, token: None })
}

fn restart(path: &str) -> Value {
    json!({ "action": "restart", "path": path, "reason": "a test" })
}

#[tokio::test]
async fn every_question_about_a_tree_is_answered() {
    let client = console(actions());

    let info: Info = client.get("/api/info").await.unwrap();
    assert_eq!((&*info.root, info.actions), ("app", true));
    let status: Status = client.get("/api/status").await.unwrap();
    assert_eq!(&*status.root.path, "app");
    let child: Child = client.get("/api/child?path=app/db").await.unwrap();
    assert_eq!(&*child.child.path, "app/db");
    let _: Events = client.get("/api/events?under=app").await.unwrap();
}

#[tokio::test]
async fn the_stream_reports_what_an_action_does() {
    let client = console(actions());
    let mut changes = client.stream().await.unwrap();

    let acted: Acted = client.post("/api/action", &restart("app/db")).await.unwrap();
    assert_eq!(&*acted.text, "restarted app/db");
    // Ends at the change, or else by the limits of the client.
    loop {
        let change = changes.next().await.unwrap();
        if change.children.iter().any(|node| &*node.path == "app/db" && node.incarnation == 2) {
            break;
        }
    }
}

#[tokio::test]
async fn a_refusal_says_what_to_do() {
    let off = console(Console::new());
    let error = off.post::<Acted>("/api/action", &restart("app/db")).await.unwrap_err().to_string();
    assert!(
        error.contains("let the program allow them: `Console::new().allow_actions(true)`"),
        "{error}"
    );

    let mut wrong = console(actions());
    for token in [Some("wrong".to_owned()), Some("\n".to_owned()), None] {
        wrong.endpoint.token = token;
        let error = wrong.post::<Acted>("/api/action", &restart("app/db")).await.unwrap_err();
        assert!(error.to_string().contains("take the token from the program's log"), "{error}");
    }

    let client = console(actions());
    let error = client.get::<Child>("/api/child?path=app/dv").await.unwrap_err().to_string();
    assert!(error.contains("did you mean `app/db`?"), "{error}");
    let error = client.plan().await.unwrap_err().to_string();
    assert!(error.contains("`Application::config_file`"), "{error}");
}

#[tokio::test]
async fn nothing_at_the_address_is_an_error_that_names_it() {
    let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().to_string();
    let client = Client::new(Endpoint { authority: free.clone(), token: None });

    let error = client.get::<Info>("/api/info").await.unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("can't reach http://{free}: Connection refused")),
        "{error}"
    );
    assert!(client.stream().await.is_err());
}

#[tokio::test]
async fn another_server_is_not_taken_for_a_console() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\n<h1>\x1b",
    ] {
        let error = server(answer).await.get::<Info>("/api/info").await.unwrap_err();
        assert!(matches!(error, ClientError::Unexpected { .. }), "{error}");
        assert!(error.to_string().ends_with("check --url"));
    }
    let error = server("SSH-2.0-OpenSSH_9\r\n").await.get::<Info>("/api/info").await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_given_up() {
    let client = server("").await;
    let error = client.get::<Info>("/api/info").await.unwrap_err();
    let url = client.endpoint.to_string();
    assert_eq!(error, ClientError::TimedOut { url: url.clone(), within: ANSWER });
    let error = client.post::<Acted>("/api/action", &restart("app")).await.unwrap_err();
    assert_eq!(error, ClientError::TimedOut { url: url.clone(), within: ACTION });
    assert_eq!(client.stream().await.unwrap_err(), ClientError::TimedOut { url, within: ANSWER });
}

#[tokio::test]
async fn a_stream_that_ends_is_an_error() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 35\r\n\r\n\
                  event: change\ndata: {\"seq\":7}\n\n: bye";
    let mut changes = server(answer).await.stream().await.unwrap();
    assert_eq!(changes.next().await.unwrap().seq, 7);
    let error = changes.next().await.unwrap_err();
    assert!(error.to_string().contains("the console has ended the stream"), "{error}");
    // As often as it is asked.
    assert!(changes.next().await.is_err());
}

#[tokio::test]
async fn a_full_server_is_an_error_of_the_stream() {
    let answer = "HTTP/1.1 503 Busy\r\nContent-Length: 44\r\n\r\n{\"error\":\"64 streams\",\"problem\":\"too_many\"}  ";
    let error = server(answer).await.stream().await.unwrap_err();
    assert_eq!(error.to_string(), "64 streams");
}

#[test]
fn values_of_a_query_are_encoded() {
    assert_eq!(encode("app/conn#7 a&b=é%"), "app/conn%237%20a%26b%3D%C3%A9%25");
}

/// A server that answers each request with what was sent to it as `X-Verger-Token`.
async fn echo() -> Client {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = vec![0; 4_096];
            let read = socket.read(&mut request).await.unwrap_or(0);
            let request = String::from_utf8_lossy(&request[..read]).to_lowercase();
            let token = request.lines().find_map(|line| line.strip_prefix("x-verger-token: "));
            let body = json!({ "root": token }).to_string();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            _ = socket.write_all((head + &body).as_bytes()).await;
        }
    });
    Client::new(Endpoint { authority, token: Some("secret".into()) })
}

/// Rule: a console may need a token for reading, so the token is sent with every request.
#[tokio::test]
async fn the_token_is_sent_with_reads() {
    let info: Info = echo().await.get("/api/info").await.unwrap();
    assert_eq!(&*info.root, "secret");
}

#[tokio::test]
async fn a_read_that_needs_a_token_says_which_option_to_use() {
    let answer = "HTTP/1.1 403 Forbidden\r\nContent-Length: 49\r\n\r\n\
                  {\"error\":\"no token\",\"problem\":\"bad_token\"}       ";
    for error in [
        server(answer).await.get::<Info>("/api/info").await.unwrap_err(),
        server(answer).await.stream().await.unwrap_err(),
    ] {
        assert_eq!(
            error.to_string(),
            "the token is missing or wrong; take the token from the program's log, or the one of \
             `Console::read_token` for reading, and give it with --token, VERGER_TOKEN, or a URL with `#token=`"
        );
    }
}
