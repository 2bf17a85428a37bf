//! The files of the page, which are parts of the program.

use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

use super::shared::ConsoleShared;

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Where each file is served, and what it is.
const FILES: [(&str, &str, &str); 8] = [
    ("/", HTML, include_str!("page/index.html")),
    ("/console.css", STYLE, include_str!("page/console.css")),
    ("/console.js", SCRIPT, include_str!("page/console.js")),
    ("/console/actions.js", SCRIPT, include_str!("page/console/actions.js")),
    ("/console/detail.js", SCRIPT, include_str!("page/console/detail.js")),
    ("/console/format.js", SCRIPT, include_str!("page/console/format.js")),
    ("/console/model.js", SCRIPT, include_str!("page/console/model.js")),
    ("/console/tree.js", SCRIPT, include_str!("page/console/tree.js")),
];

pub(super) fn routes() -> Router<Arc<ConsoleShared>> {
    FILES.into_iter().fold(Router::new(), |router, (path, content_type, text)| {
        router.route(path, get(async move || ([(CONTENT_TYPE, content_type)], text)))
    })
}
