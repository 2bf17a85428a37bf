//! What children and callers can do wrong, and what the runtime can do to a tree: probes through the
//! public API.
//!
//! The rule of every probe: the tree goes on, or ends with a typed error that names the path and keeps
//! the text of the panic. `stop` and `wait` return, and other children are not affected.
//!
//! | probed | where |
//! | --- | --- |
//! | **panics** in a factory, `activate`, `run`, `deactivate`, a function, a clone of its state, `Drop` of values and captures, conversion, `Display`, `source` and `Drop` of errors, predicates, `retry_after`, curves, iterators of delays, random sources, `on_child_failure`, properties, health checks, `final_message`, `WhileDown::reply`, `Drop` of messages, wakers | `callbacks.rs`: every [`Place`](hook_places::Place) but `DropWaker`, with a text and with a payload whose `Drop` panics |
//! | panics with their texts, in the events, the status and the letters | `panics.rs`, `callbacks.rs` |
//! | panics in callbacks of breakers and retries, in the future and the cause of a graceful shutdown, in the question of an `ask` | `callbacks.rs` |
//! | several messages that panic on drop at once, in a store and a subscription | `callbacks.rs` |
//! | captures of refused, deleted and temporary specs, errors that are their own cause | `foreign.rs` |
//! | panics of a subscriber of `tracing`, which belongs to the process | `process/subscribers.rs` |
//! | **re-entrancy**: every call of a handle, an address, a context and a store in each place above, polled once and spawned; `stop` in each | `reentrancy.rs` |
//! | every call of a handle, awaited by a child about itself: in `run`, when it ignores its cancellation, in `on_child_failure`, in a health check; below a dynamic supervisor | `reentrancy.rs` |
//! | every call of a handle in each method of a subscriber of `tracing` | `reentrancy.rs` |
//! | a message that sends a message on drop | `mailbox/edges.rs` |
//! | **the end of a runtime**, of a run or of its task while children run, wait, and are called | `teardown.rs`, `runtime_ends.rs` |
//! | handles that are dropped, contexts of earlier incarnations, calls during the start | `strays.rs` |
//! | **cancel safety**: every call of a handle, runs, starts, waits of a context, breakers, retries, dropped after each number of polls, at once and when woken | `cancel_safety.rs` |
//! | `send`, `ask`, `ask_within`, `recv`, `deliver`, events, statuses, letters, in the same way | `cancel_messages.rs` |
//! | **extreme numbers**: each setter of a duration, a count or a number with a fraction, of builders, specs, defaults, mailboxes, stores, logs, retries and breakers | `durations.rs` |
//! | **floods** of messages, senders, letters, failures, events, calls, signals, children | `floods.rs` |
//! | **log injection**: texts of errors, panics, statuses, problems, callbacks, causes, names, paths, breakers | `injection.rs` |
//! | **loops** over futures that are ready, beside another task of the same thread | `cooperation.rs` |
//! | children that **block** their thread, at their stop and before | `blocked_stops.rs`, `blocked_timers.rs`, `leaks.rs` |
//! | races of exits, calls, starts and stops; storms | `races.rs` |
//! | the order of many stops on several threads | `order.rs` |
//! | tasks that outlive their incarnation | `tasks.rs` |
//! | depth of a tree | `depth.rs` |
//! | **drops** that lead to the next drop, values of a thread or a runtime that ends, texts of a mebibyte | `drops.rs` |
//! | **inputs of fuzzers**: calls and failures on several threads, scripts of a mailbox, policies as text | `fuzz/`, see `examples/fuzz` |
//!
//! Not probed: a waker whose `Drop` panics, which tokio doesn't survive either, and a random source that
//! draws from the backoff which owns it.

mod blocked_stops;
mod blocked_timers;
mod callbacks;
mod cancel_messages;
mod cancel_safety;
#[path = "../common/mod.rs"]
mod common;
mod cooperation;
mod depth;
mod drops;
mod durations;
mod floods;
mod foreign;
mod fuzz;
mod hook_places;
mod hooks;
mod injection;
mod leaks;
#[path = "../common/log.rs"]
mod log;
mod order;
mod panics;
mod probe;
mod races;
mod reentrancy;
mod runtime_ends;
mod strays;
mod tasks;
mod teardown;
