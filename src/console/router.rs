//! The routes of a console, and the files of its page, which are parts of the program.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use super::guard::{BODY, FILE, guard};
use super::problem::HttpProblem;
use super::shared::{Console, ConsoleShared, Outside};
use super::{actions, config, history, tree};
use crate::handle::SupervisorHandle;
use crate::subscriber;

impl Console {
    /// Returns the console of a tree, to be served by a listener of your own.
    ///
    /// It shows the whole tree, whichever of its supervisors the handle belongs to. The routes are absolute, so
    /// merge it into your router rather than nest it. It serves `/`, `/console.css`, `/console.js`, and paths
    /// below `/console` and `/api`. All other paths are left to your router and its fallback.
    ///
    /// Its streams end as soon as the tree begins to stop. Stop the tree before you wait for the server: a graceful
    /// shutdown of the server waits until all streams have ended. Serve the router on a loopback address, or
    /// behind a proxy that authenticates its users.
    ///
    /// ```
    /// use verger::console::Console;
    ///
    /// # async fn f(tree: verger::Supervisor) -> Result<(), Box<dyn std::error::Error>> {
    /// let tree = tree.start().await?;
    /// let app = axum::Router::new().merge(Console::new().router(&tree));
    /// # drop(app);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    #[must_use = "a router does nothing until it is served"]
    pub fn router(self, tree: &SupervisorHandle) -> Router {
        let names_token = self.actions && self.token.is_none();
        if let Some(problem) = self.header_problem() {
            subscriber::error!(target: "verger::console", problem, "no operator can be named");
        }
        let console = ConsoleShared::new(self, tree, Outside::default(), true);
        if names_token {
            let token = console.token.expose();
            subscriber::info!(target: "verger::console", token, "the console allows actions");
        }
        // Two routers with a fallback can't be merged.
        routes(console).reset_fallback()
    }
}

pub(super) fn routes(console: Arc<ConsoleShared>) -> Router {
    let router = page()
        .route("/api/info", get(tree::info))
        .route("/api/status", get(tree::status))
        .route("/api/tree.txt", get(tree::text))
        .route("/api/tree.svg", get(tree::svg))
        .route("/api/child", get(tree::child))
        .route("/api/events", get(history::events))
        .route("/api/incidents", get(history::incidents))
        .route("/api/samples", get(history::samples))
        .route("/api/log", get(history::log))
        .route("/api/dead-letters", get(history::dead_letters))
        .route("/api/config", get(config::values))
        .route("/api/stream", get(tree::stream))
        .route("/api/action", post(actions::act))
        .route("/api/dead-letters/replay", post(actions::replay))
        .route("/api/plan", post(config::plan).layer(DefaultBodyLimit::max(FILE)))
        .route("/api/reload", post(config::reload));
    router
        .fallback(async || HttpProblem::not_found("there is no such page; the page of the console is `/`, and the documentation of `verger::console` lists its requests"))
        .method_not_allowed_fallback(async || HttpProblem::new(StatusCode::METHOD_NOT_ALLOWED, "method", "this path has a different method; see the header `Allow`"))
        .layer(DefaultBodyLimit::max(BODY))
        .layer(from_fn_with_state(Arc::clone(&console), guard))
        .with_state(console)
}

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Where each file is served, and what it is.
const FILES: [(&str, &str, &str); 22] = [
    ("/", HTML, include_str!("page/index.html")),
    ("/console.css", STYLE, include_str!("page/console.css")),
    ("/console.js", SCRIPT, include_str!("page/console.js")),
    ("/console/actions.js", SCRIPT, include_str!("page/console/actions.js")),
    ("/console/address.js", SCRIPT, include_str!("page/console/address.js")),
    ("/console/api.js", SCRIPT, include_str!("page/console/api.js")),
    ("/console/ask.js", SCRIPT, include_str!("page/console/ask.js")),
    ("/console/columns.js", SCRIPT, include_str!("page/console/columns.js")),
    ("/console/config.js", SCRIPT, include_str!("page/console/config.js")),
    ("/console/detail.js", SCRIPT, include_str!("page/console/detail.js")),
    ("/console/format.js", SCRIPT, include_str!("page/console/format.js")),
    ("/console/history.js", SCRIPT, include_str!("page/console/history.js")),
    ("/console/incidents.js", SCRIPT, include_str!("page/console/incidents.js")),
    ("/console/letters.js", SCRIPT, include_str!("page/console/letters.js")),
    ("/console/lists.js", SCRIPT, include_str!("page/console/lists.js")),
    ("/console/live.js", SCRIPT, include_str!("page/console/live.js")),
    ("/console/model.js", SCRIPT, include_str!("page/console/model.js")),
    ("/console/overview.js", SCRIPT, include_str!("page/console/overview.js")),
    ("/console/rows.js", SCRIPT, include_str!("page/console/rows.js")),
    ("/console/samples.js", SCRIPT, include_str!("page/console/samples.js")),
    ("/console/stream.js", SCRIPT, include_str!("page/console/stream.js")),
    ("/console/tree.js", SCRIPT, include_str!("page/console/tree.js")),
];

fn page() -> Router<Arc<ConsoleShared>> {
    FILES.into_iter().fold(Router::new(), |router, (path, content_type, text)| {
        router.route(path, get(async move || ([(CONTENT_TYPE, content_type)], text)))
    })
}
