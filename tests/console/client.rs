//! A small HTTP client, over sockets or in memory, and a server in memory.
//!
//! In memory, time can be paused.

use std::fmt::Write as _;
use std::net::SocketAddr;

use axum::Router;
use axum::serve::Listener;
use serde_json::Value;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, duplex,
};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

pub(crate) const TOKEN: &str = "a token for tests";
/// The bytes that a connection in memory holds.
const PIPE: usize = 64 * 1024;

pub(crate) trait Connection: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Connection for T {}

/// A server that a client can reach.
#[derive(Clone)]
pub(crate) enum Server {
    Socket(SocketAddr),
    Memory(mpsc::UnboundedSender<DuplexStream>),
}

/// What a server in memory accepts.
struct Memory(mpsc::UnboundedReceiver<DuplexStream>);

impl Listener for Memory {
    type Io = DuplexStream;
    type Addr = ();

    async fn accept(&mut self) -> (DuplexStream, ()) {
        match self.0.recv().await {
            Some(stream) => (stream, ()),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Serves a router in memory, until the runtime ends.
pub(crate) fn serve(router: Router) -> Server {
    let (connections, accepted) = mpsc::unbounded_channel();
    tokio::spawn(async move { axum::serve(Memory(accepted), router).await });
    Server::Memory(connections)
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// In lower case.
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The status, and the word for the problem.
    pub(crate) fn problem(&self) -> (u16, String) {
        let json = self.json();
        assert!(json["error"].as_str().is_some_and(|text| !text.is_empty()), "{json}");
        (self.status, json["problem"].as_str().unwrap().to_owned())
    }

    /// The status, and the text of an error or of what was done.
    pub(crate) fn text(&self) -> (u16, String) {
        let json = self.json();
        let text = if json["ok"] == true { &json["text"] } else { &json["error"] };
        (self.status, text.as_str().unwrap_or_else(|| panic!("{json}")).to_owned())
    }
}

/// A request to be sent.
#[derive(Clone)]
pub(crate) struct Request {
    line: String,
    pub(crate) headers: Vec<(String, String)>,
    body: String,
}

pub(crate) fn get(path: &str) -> Request {
    request("GET", path)
}

/// An action with all that it needs.
pub(crate) fn post(path: &str, body: impl ToString) -> Request {
    request("POST", path)
        .header("content-type", "application/json")
        .header("x-verger-token", TOKEN)
        .body(body)
}

pub(crate) fn request(method: &str, path: &str) -> Request {
    let headers = vec![("host".to_owned(), "localhost:7007".to_owned())];
    Request { line: format!("{method} {path} HTTP/1.1"), headers, body: String::new() }
}

impl Request {
    /// Sets a header. An empty value removes it.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        if !value.is_empty() {
            self.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    pub(crate) fn body(mut self, body: impl ToString) -> Self {
        self.body = body.to_string();
        let length = self.body.len().to_string();
        self.header("content-length", &length)
    }

    fn text(&self) -> String {
        let Self { line, headers, body } = self;
        let mut text = format!("{line}\r\n");
        for (name, value) in headers {
            write!(text, "{name}: {value}\r\n").unwrap();
        }
        text + "\r\n" + body
    }
}

impl Server {
    pub(crate) async fn connect(&self) -> Box<dyn Connection> {
        match self {
            Self::Socket(address) => Box::new(TcpStream::connect(address).await.unwrap()),
            Self::Memory(connections) => {
                let (client, server) = duplex(PIPE);
                connections.send(server).unwrap();
                Box::new(client)
            }
        }
    }

    /// Sends a request, and returns the answer.
    pub(crate) async fn send(&self, request: Request) -> Answer {
        let mut connection = self.connect().await;
        let text = request.header("connection", "close").text();
        connection.write_all(text.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (headers, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
        let (line, headers) = headers.split_once("\r\n").unwrap();
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, headers: headers.to_lowercase(), body: body.to_owned() }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(get(path)).await
    }

    pub(crate) async fn act(&self, order: Value) -> (u16, String) {
        self.send(post("/api/action", order)).await.text()
    }

    /// Opens the stream of changes.
    pub(crate) async fn stream(&self) -> Messages {
        self.stream_with(get("/api/stream")).await
    }

    /// Opens the stream of changes with this request.
    pub(crate) async fn stream_with(&self, request: Request) -> Messages {
        let mut connection = self.connect().await;
        connection.write_all(request.text().as_bytes()).await.unwrap();
        let mut messages = Messages { connection, read: Vec::new(), status: 0 };
        let head = messages.until(b"\r\n\r\n").await.expect("an answer");
        messages.status = head.split(' ').nth(1).unwrap().parse().unwrap();
        messages
    }
}

/// A stream of changes.
pub(crate) struct Messages {
    connection: Box<dyn Connection>,
    read: Vec<u8>,
    pub(crate) status: u16,
}

impl Messages {
    /// Returns the next message, or `None` when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let size = self.until(b"\r\n").await?;
            let size = usize::from_str_radix(&size, 16).unwrap_or_else(|_| panic!("{size:?}"));
            if size == 0 {
                return None;
            }
            while self.read.len() < size + 2 {
                if self.connection.read_buf(&mut self.read).await.ok()? == 0 {
                    return None;
                }
            }
            let chunk: Vec<u8> = self.read.drain(..size + 2).collect();
            let chunk = String::from_utf8(chunk).unwrap();
            if chunk == "retry: 1000\n\n\r\n" {
                continue;
            }
            let data = chunk.strip_prefix("event: change\ndata: ");
            let data = data.and_then(|it| it.strip_suffix("\n\n\r\n"));
            return Some(
                serde_json::from_str(data.unwrap_or_else(|| panic!("{chunk:?}"))).unwrap(),
            );
        }
    }

    /// Returns the text before this one.
    async fn until(&mut self, end: &[u8]) -> Option<String> {
        loop {
            if let Some(at) = self.read.windows(end.len()).position(|it| it == end) {
                let text = self.read.drain(..at + end.len()).take(at).collect();
                return Some(String::from_utf8(text).unwrap());
            }
            if self.connection.read_buf(&mut self.read).await.ok()? == 0 {
                return None;
            }
        }
    }
}
