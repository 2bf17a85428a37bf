//! A console: a page that shows a running tree, and acts on it if that is allowed.
//!
//! [`Application::console`](crate::Application::console) serves it at an address. In a server of your own,
//! merge [`Console::router`] into it.
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use verger::console::Console;
//! use verger::{Application, Context, Supervisor, worker};
//!
//! #[tokio::main]
//! async fn main() -> ExitCode {
//!     let db = worker("db", async |ctx: Context| ctx.cancelled().await);
//!     let tree = Supervisor::builder("app").child(db);
//!     Application::new(tree).console("127.0.0.1:7007", Console::new()).run().await
//! }
//! ```
//!
//! By default, the console is read-only. With [`allow_actions`](Console::allow_actions), an operator can also
//! restart, stop, start and hold children, and stop the whole tree. Each action is logged, and kept as an event
//! with its reason.
//!
//! # Access
//!
//! * The listener of an application accepts a loopback address only, unless
//!   [`allow_remote`](Console::allow_remote) is set. The console has no users, no passwords and no TLS: reach it
//!   over SSH or an authenticating proxy.
//! * Each request needs a `Host` that is a name of the loopback address or [allowed](Console::allow_host), so
//!   that a web site can't read the tree by rebinding its own name.
//! * An action needs a token in the header `X-Verger-Token`, `application/json` as the type of its content, and
//!   no foreign `Origin`, so that a web site can't send one.
//! * Reading needs a token only with [`read_token`](Console::read_token). The token of actions then also reads.
//! * A proxy that authenticates its users can name them in a header; see [`identity_header`](Console::identity_header).
//! * The token is set with [`token`](Console::token), or else it is random for each start. A random token is
//!   logged once, with target `verger::console`, if actions are allowed.
//!
//! # What it costs
//!
//! A console subscribes to the events and dead letters of the tree. It keeps a history of at most 8 MiB: 1,000 entries of events,
//! and beside them the last 20 of each child, of up to 2,000 children (see [`EventLog`](crate::status::EventLog)); 500 dead letters; and samples
//! of restarts, mailboxes and busy time of the last five minutes. A sample is a snapshot, taken every 2 s, or less often if it takes
//! more than 20 ms. Nothing else runs while no page is open. All pages share one snapshot, which is taken at most twice a
//! second unless an action has made it stale, and one stream of changes. An open page never delays the stop of a
//! tree.
//!
//! # Requests
//!
//! All answers are JSON, unless noted. An error is `{ "error": "text", "problem": "word" }`. `/api/plan` and
//! `/api/reload` need the feature `config`.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /`, `/console.css`, `/console.js`, `/console/…` | the page |
//! | `GET /api/info` | what this console can do |
//! | `GET /api/status?under=PATH` | a [`Status`](crate::status::Status), whole or below a path |
//! | `GET /api/tree.txt`, `.svg` | the same as text, as a picture |
//! | `GET /api/child?path=PATH` | one child, its settings and its last events |
//! | `GET /api/incidents?under=PATH` | what is wrong now and was in the last fifteen minutes |
//! | `GET /api/events?under=PATH` | the last events, the oldest first |
//! | `GET /api/samples?path=PATH` | restarts, mailbox depth and busy time of the last five minutes |
//! | `GET /api/log?path=PATH`, `?under=PATH` | the last log lines of a child, or of a part of the tree |
//! | `GET /api/dead-letters` | the last dead letters, the oldest first |
//! | `GET /api/config` | the values that a configuration has set |
//! | `GET /api/stream` | the changes, as server-sent events |
//! | `POST /api/action` | `{ "action", "path", "reason", "by" }`, carried out |
//! | `POST /api/plan`, `/api/reload` | what the configuration file would change, and the same applied |
//! | `POST /api/dead-letters/replay` | a message, sent again |
//!
//! The actions are `restart`, `stop`, `resume`, `reset`, `hold`, `release`, `kill` and
//! `stop_tree`. `path` may leave out the name of the root. `reason`, of at most 200 characters, and
//! `by`, the name of the caller, of at most 64, are optional. `stop_tree` also needs the name
//! of the root as `confirm`.
//!
//! ```text
//! $ curl -H 'X-Verger-Token: 5b0c…' -H 'Content-Type: application/json' \
//!     -d '{ "action": "restart", "path": "db", "reason": "new password" }' localhost:7007/api/action
//! {"ok":true,"text":"restarted app/db"}
//! ```

// Knows handles and views of a tree. It doesn't know the rules: the tree decides whether an action applies.
//
// | file | what |
// | --- | --- |
// | `problem` | errors as answers |
// | `snapshots` | snapshots that are shared by all pages |
// | `stream` | what has changed since the last message, and the messages to open pages |
// | `letters`, `recorder` | dead letters, and the task that keeps events and dead letters |
// | `samples` | restarts, mailboxes and busy time of the last five minutes |
// | `incidents` | what is wrong now and was lately, by child |
// | `shared` | what all requests share: `Console`, the token of actions, the tree |
// | `guard` | what each request has to satisfy |
// | `tree`, `history`, `actions`, `config` | the handlers |
// | `router` | the routes, and the page: `index.html`, `console.css`, and `console.js` with its modules in `page/console/` |
// | `server` | the console of an application, on a listener of the console's own |
//
// # Invariants
//
// 1. A GET changes nothing. A POST changes something only if actions are allowed and its token is right.
// 2. Every answer, also of an error, went through `guard::guard`.
// 3. At most one snapshot is being taken for all clients, and at most one message composed, however many clients there are.
// 4. Without a stream, one timer of the console is armed, for the next sample.
// 5. What is kept for a client that doesn't read is bounded: `stream::AHEAD` messages, which all clients share.
// 6. A stream ends when the console closes. In a server of the user's, it ends when the tree begins to stop.
// 7. The imports go in the order of the table.

mod actions;
mod config;
mod guard;
mod history;
mod incidents;
mod letters;
mod problem;
mod recorder;
mod router;
mod samples;
mod server;
mod shared;
mod snapshots;
mod stream;
mod tree;

pub use self::shared::Console;
