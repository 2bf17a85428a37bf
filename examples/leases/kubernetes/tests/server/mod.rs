//! A fake of the part of an API server that serves leases.
//!
//! Each write is compared with the `resourceVersion` of the object. A test can make the answers slow, lose them, or
//! stop the server and start it again with the same objects.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use verger_lease_kubernetes::Kubernetes;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases";

/// The server. It is stopped when this is dropped.
pub(crate) struct Server {
    port: u16,
    objects: Arc<Objects>,
    task: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Objects {
    stored: Mutex<Stored>,
    faults: Mutex<Faults>,
}

#[derive(Default)]
struct Stored {
    objects: HashMap<String, Value>,
    version: u64,
}

#[derive(Clone, Copy, Default)]
struct Faults {
    /// How long a request takes to have its effect.
    before: Duration,
    /// How long the answer takes afterwards.
    after: Duration,
    /// Whether writes are answered with an error after they have had their effect.
    loses_answers: bool,
}

type Answer = (StatusCode, Json<Value>);

impl Server {
    pub(crate) async fn start() -> Self {
        let mut server = Self { port: 0, objects: Arc::default(), task: None };
        server.start_again().await;
        server
    }

    /// Stops the server. Its connections are closed.
    pub(crate) async fn stop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            drop(task.await);
        }
    }

    /// Starts the server after a stop, with the same objects and port.
    pub(crate) async fn start_again(&mut self) {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await.unwrap();
        self.port = listener.local_addr().unwrap().port();
        let app = Router::new()
            .route(LEASES, axum::routing::post(create))
            .route(&format!("{LEASES}/{{name}}"), get(read).put(replace))
            .with_state(Arc::clone(&self.objects));
        // axum's own tasks would go on with open connections: a runtime of its own ends them, too.
        let (stopped, dropped) = tokio::sync::oneshot::channel::<()>();
        let listener = listener.into_std().unwrap();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    served = axum::serve(listener, app) => served.unwrap(),
                    _ = dropped => {}
                }
            });
        });
        self.task = Some(tokio::spawn(async move {
            let _stopped = Joined { stopped: Some(stopped), thread: Some(thread) };
            std::future::pending::<()>().await;
        }));
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns a new engine with a client of its own.
    pub(crate) async fn engine(&self) -> Kubernetes {
        engine(&self.url()).await
    }

    /// Lets requests take this long before and after they have their effect.
    pub(crate) fn delay(&self, before: Duration, after: Duration) {
        let mut faults = self.objects.faults.lock().unwrap();
        (faults.before, faults.after) = (before, after);
    }

    pub(crate) fn lose_answers(&self, loses: bool) {
        self.objects.faults.lock().unwrap().loses_answers = loses;
    }

    /// Changes an object as a different program does.
    pub(crate) fn edit(&self, name: &str, edit: impl FnOnce(&mut Value)) {
        let mut stored = self.objects.stored.lock().unwrap();
        let mut object = stored.objects[name].clone();
        edit(&mut object);
        stored.put(name, object);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// The thread of a server. Dropping this stops it.
struct Joined {
    stopped: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Joined {
    fn drop(&mut self) {
        drop(self.stopped.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

pub(crate) async fn engine(url: &str) -> Kubernetes {
    let mut config = Config::new(url.parse().unwrap());
    config.default_retry = false;
    Kubernetes::new(Client::try_from(config).unwrap(), "shop")
}

impl Stored {
    fn put(&mut self, name: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.objects.insert(name.to_owned(), object.clone());
        object
    }
}

fn refuse(code: StatusCode, reason: &str) -> Answer {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("the fake says {reason}"), "reason": reason, "code": code.as_u16(),
    });
    (code, Json(status))
}

impl Objects {
    async fn serve(&self, writes: bool, request: impl FnOnce(&mut Stored) -> Answer) -> Answer {
        let faults = *self.faults.lock().unwrap();
        sleep(faults.before).await;
        let answer = request(&mut self.stored.lock().unwrap());
        sleep(faults.after).await;
        if writes && faults.loses_answers {
            return refuse(StatusCode::GATEWAY_TIMEOUT, "Timeout");
        }
        answer
    }
}

async fn read(
    State(objects): State<Arc<Objects>>,
    Path((_, name)): Path<(String, String)>,
) -> Answer {
    let answer = objects.serve(false, |stored| match stored.objects.get(&name) {
        Some(object) => (StatusCode::OK, Json(object.clone())),
        None => refuse(StatusCode::NOT_FOUND, "NotFound"),
    });
    answer.await
}

async fn create(State(objects): State<Arc<Objects>>, Json(object): Json<Value>) -> Answer {
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    let answer = objects.serve(true, |stored| {
        if stored.objects.contains_key(&name) {
            return refuse(StatusCode::CONFLICT, "AlreadyExists");
        }
        (StatusCode::CREATED, Json(stored.put(&name, object)))
    });
    answer.await
}

async fn replace(
    State(objects): State<Arc<Objects>>,
    Path((_, name)): Path<(String, String)>,
    Json(object): Json<Value>,
) -> Answer {
    let answer = objects.serve(true, |stored| {
        let Some(current) = stored.objects.get(&name) else {
            return refuse(StatusCode::NOT_FOUND, "NotFound");
        };
        let version = &object["metadata"]["resourceVersion"];
        assert!(version.is_string(), "a write without a version replaces any other");
        if *version != current["metadata"]["resourceVersion"] {
            return refuse(StatusCode::CONFLICT, "Conflict");
        }
        // As the real one: a write that changes nothing is no change.
        if object == *current {
            return (StatusCode::OK, Json(object));
        }
        (StatusCode::OK, Json(stored.put(&name, object)))
    });
    answer.await
}
