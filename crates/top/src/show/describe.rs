//! One child on one screen.

use serde_json::Value;

use super::lists::{event, log_lines};
use super::{Line, Order, Tone, tone};
use crate::model::{Busy, Child, Limit, Mailbox, Node, Reason, Schedule, Stopping};
use crate::text::{after, clean, count, cut, duration, time, time_of_day};

/// The width of the labels.
const LABEL: usize = 12;
/// How many events and log lines a description ends with.
const LAST: usize = 10;
/// How much of a log line a description shows.
const LOG_LINE: usize = 200;

/// The lines of a description.
struct Lines(Vec<Line>);

impl Lines {
    fn add(&mut self, label: &str, tone: Tone, text: impl Into<String>) {
        self.0.push(Line { label: format!("{label:>LABEL$}: "), text: text.into(), tone });
    }
}

/// Describes a child on one screen: what is wrong with it, what it is, since when, and its last events and lines.
///
/// `order`: the order of its events.
pub(crate) fn describe(view: &Child, now_ms: u64, order: Order) -> Vec<Line> {
    let node = &view.child;
    let mut lines = Lines(vec![title(node)]);
    problems(&mut lines, node);
    state(&mut lines, node, now_ms);
    history(&mut lines, node, now_ms);
    supervision(&mut lines, node, now_ms);
    if let Some(known) = &node.schedule {
        schedule(&mut lines, known, now_ms);
    }
    if let Some(known) = &node.busy {
        busy(&mut lines, known, node, now_ms);
    }
    relations(&mut lines, node, now_ms);
    let Lines(mut lines) = lines;
    lines.extend(policy(node, &view.spec));
    if !view.events.is_empty() {
        lines.push(Line::default());
        lines.push(Line::new(Tone::Title, "Events"));
        let last = &view.events[view.events.len().saturating_sub(LAST)..];
        let mut last: Vec<_> = last.iter().map(|it| event(it, now_ms, &node.path)).collect();
        if order == Order::NewestFirst {
            last.reverse();
        }
        lines.extend(last);
    }
    if let Some(log) = view.log.as_ref().filter(|log| !log.is_empty()) {
        lines.push(Line::default());
        // A backtrace is for the list of all lines.
        let shorten = |line: Line| Line { text: cut(&line.text, LOG_LINE), ..line };
        lines.extend(log_lines(log, LAST).into_iter().map(shorten));
    }
    lines
}

fn title(node: &Node) -> Line {
    let (symbol, path, kind, policy) = (node.symbol(), &node.path, &node.kind, node.policy_word());
    let version = after(", version ", node.version.as_ref());
    let added = if node.declared == Some(false) { ", added while running" } else { "" };
    Line::new(Tone::Title, format!("{symbol} {path}  {kind}, {policy}{version}{added}"))
}

/// What is wrong, the worst first.
fn problems(lines: &mut Lines, node: &Node) {
    for problem in &node.problems {
        let tone = if &*problem.kind == "down" { Tone::Bad } else { Tone::Warn };
        // The problem may contain the cause in fewer words.
        let cause = problem.cause.as_ref().filter(|cause| !problem.problem.contains(&***cause));
        let since = problem.since_ms.map(|at| format!("since {}", time_of_day(at)));
        let role = (!problem.essential).then(|| "not essential".to_owned());
        let facts = [since, role].into_iter().flatten().collect::<Vec<_>>().join(", ");
        let facts = if facts.is_empty() { facts } else { format!(" ({facts})") };
        lines.add("problem", tone, format!("{}{}{facts}", problem.problem, after(": ", cause)));
    }
}

fn state(lines: &mut Lines, node: &Node, now_ms: u64) {
    let why = after(": ", node.explanation());
    let since = ago(node.since_ms, now_ms);
    lines.add("state", tone(node), format!("{} since {since}{why}", node.state()));
    if node.held {
        lines.add("held", Tone::Warn, "restarts of this child wait until it is released");
    }
    if let Some(status) = &node.status {
        lines.add("status", Tone::Plain, format!("\"{status}\""));
    }
    if let Some(known) = &node.stopping {
        stopping(lines, known, now_ms);
    }
    // The problem of an alarm has its text.
    let is_new = !node.problems.iter().any(|it| &*it.kind == "alarm");
    if let Some(alarming) = node.alarming.as_ref().filter(|_| is_new) {
        lines.add("alarm", Tone::Bad, alarming.to_string());
    }
    match (node.healthy, &node.problem) {
        (Some(true), _) => lines.add("health", Tone::Good, "the last check has passed"),
        (None, None) => {}
        (_, problem) => {
            lines.add("health", Tone::Bad, format!("unhealthy{}", after(": ", problem.as_ref())));
        }
    }
    if let Some(next) = &node.next {
        let left = duration(next.at_ms.saturating_sub(now_ms));
        let (at, delay) = (time_of_day(next.at_ms), duration(next.delay_ms));
        let text = format!("attempt {} in {left}, at {at}, after {delay}", next.attempt);
        lines.add("next start", Tone::Warn, text);
    }
}

/// Who has asked for the stop that is under way, and what is left of the grace.
fn stopping(lines: &mut Lines, stopping: &Stopping, now_ms: u64) {
    let grace = match stopping.ends_ms {
        None => "its grace has no bound".to_owned(),
        Some(at) if at <= now_ms => format!("its grace was over at {}", time_of_day(at)),
        Some(at) => {
            format!("its grace is over in {}, at {}", duration(at - now_ms), time_of_day(at))
        }
    };
    let by = after("; asked for by ", stopping.by.as_ref());
    let reason = after(": ", stopping.reason.as_ref());
    lines.add("stopping", Tone::Warn, format!("{grace}{by}{reason}"));
}

/// The wall time of the polls of this incarnation, and polls that take long.
fn busy(lines: &mut Lines, busy: &Busy, node: &Node, now_ms: u64) {
    let total = duration(busy.total_ms);
    let mut text = format!("{total} in {}", count(busy.polls, "poll", "polls"));
    let lived = node.started_at_ms.map(|at| now_ms.saturating_sub(at)).filter(|&ms| ms > 0);
    if let Some(lived) = lived {
        let share = (busy.total_ms.saturating_mul(100) / lived).min(100);
        text.push_str(&format!(", {share} % of {}", duration(lived)));
    }
    text.push_str(&format!(", longest {}", duration(busy.longest_ms)));
    if let Some(at) = busy.long_at_ms {
        text.push_str(&format!(", last long one at {}", time_of_day(at)));
    }
    let lasts = busy.polling_ms.filter(|&ms| ms >= 1_000);
    text.push_str(&after("; a poll has lasted ", lasts.map(duration)));
    let tone = if lasts.is_some() { Tone::Bad } else { Tone::Plain };
    lines.add("busy", tone, text);
}

fn history(lines: &mut Lines, node: &Node, now_ms: u64) {
    let restarts = count(node.restarts.into(), "restart", "restarts");
    let failures = (node.failures > 0).then(|| count(node.failures.into(), "failure", "failures"));
    let failures = failures.map(|it| format!(", {it} in a row")).unwrap_or_default();
    let started = after(", started ", node.started_at_ms.map(|at| ago(at, now_ms)));
    let text = format!("{}, {restarts}{failures}{started}", node.incarnation);
    lines.add("incarnation", Tone::Plain, text);
    if let Some(exit) = &node.last_exit {
        let lived = after(" after ", exit.lived_ms.map(duration));
        let (reason, incarnation) = (&exit.reason, exit.incarnation);
        let at = ago(exit.at_ms, now_ms);
        let text = format!("{} (incarnation {incarnation}{lived}, {at})", reason.message);
        lines.add("last exit", exit_tone(reason), text);
    }
    if let Some(call) = &node.last_call {
        let (by, reason) = (after(" by ", call.by.as_ref()), after(": ", call.reason.as_ref()));
        let text = format!("{}{by} {}{reason}", call.call, ago(call.at_ms, now_ms));
        lines.add("last call", Tone::Plain, text);
    }
}

fn supervision(lines: &mut Lines, node: &Node, now_ms: u64) {
    if let Some(Limit { restarts, max_restarts, period_ms, reached }) = &node.limit {
        let period = duration(*period_ms);
        limit(lines, format!("{restarts} of {max_restarts} restarts in {period}"), *reached);
    }
    let Some(supervisor) = &node.supervisor else { return };
    let (restarts, period) = (supervisor.restarts_in_period, duration(supervisor.period_ms));
    let text = match supervisor.max_restarts {
        Some(max) => format!("{restarts} of {max} restarts of children in {period}"),
        None if supervisor.period_ms == 0 => "none".to_owned(),
        None => format!("{restarts} restarts of children in {period}, without a limit"),
    };
    limit(lines, text, supervisor.limit_reached);
    for gone in supervisor.gone.iter().rev().take(3) {
        let name = gone.path.rsplit('/').next().unwrap_or_default();
        let reason = after(": ", gone.reason.as_ref().map(|it| &it.message));
        lines.add("gone", Tone::Dim, format!("{name} {}{reason}", ago(gone.at_ms, now_ms)));
    }
}

fn limit(lines: &mut Lines, text: String, is_reached: bool) {
    match is_reached {
        true => lines.add("limit", Tone::Bad, text + ", REACHED"),
        false => lines.add("limit", Tone::Plain, text),
    }
}

/// The schedule of a periodic child, and its last run.
fn schedule(lines: &mut Lines, schedule: &Schedule, now_ms: u64) {
    let mut text = schedule.plan.to_string();
    if schedule.running > 0 {
        text.push_str(&format!(", {} running", schedule.running));
    }
    if let Some(at) = schedule.next_ms.filter(|&at| at > now_ms) {
        text.push_str(&format!(", next in {}, at {}", duration(at - now_ms), time(at)));
    }
    lines.add("schedule", Tone::Plain, text);
    let mut runs = count(schedule.runs, "run", "runs");
    for (word, count) in [("failed", schedule.failed), ("skipped", schedule.skipped)] {
        if count > 0 {
            runs.push_str(&format!(", {count} {word}"));
        }
    }
    let tone = if schedule.skipped > 0 { Tone::Warn } else { Tone::Plain };
    lines.add("runs", tone, runs);
    if let Some(run) = &schedule.last {
        let how = run.problem.as_ref().unwrap_or(&run.outcome);
        let (began, took) = (ago(run.began_ms, now_ms), duration(run.took_ms));
        let tone = if run.problem.is_some() { Tone::Bad } else { Tone::Plain };
        lines.add("last run", tone, format!("{how} (began {began}, took {took})"));
    }
}

fn relations(lines: &mut Lines, node: &Node, now_ms: u64) {
    if let Some(Mailbox { len, capacity, full_since_ms }) = &node.mailbox {
        let tone = if full_since_ms.is_some() { Tone::Warn } else { Tone::Plain };
        let full = after(", nearly full since ", full_since_ms.map(time_of_day));
        lines.add("mailbox", tone, format!("{len} of {capacity} messages{full}"));
    }
    let traits = [
        (node.essential, "essential"),
        (node.significant, "significant"),
        (!node.ready, "not ready"),
    ];
    let traits: Vec<_> = traits.into_iter().filter_map(|(is, word)| is.then_some(word)).collect();
    for (label, tone, text) in [
        ("requires", Tone::Plain, node.requires.join(", ")),
        ("waits for", Tone::Warn, node.waits_for.join(", ")),
        ("role", Tone::Plain, traits.join(", ")),
        ("defined at", Tone::Plain, after("", node.defined_at.as_ref())),
        ("created", Tone::Plain, after("", node.created_at_ms.map(|at| ago(at, now_ms)))),
    ] {
        if !text.is_empty() {
            lines.add(label, tone, text);
        }
    }
}

/// The policy, each value with its source; then what the policy doesn't include.
fn policy(node: &Node, spec: &Value) -> Vec<Line> {
    let mut texts = Vec::new();
    for (name, part) in node.policy.iter().filter_map(Value::as_object).flatten() {
        let (value, source) = (compact(&part["value"]), part["source"].as_str().unwrap_or("?"));
        let place = after(" ", node.configured.get(name.as_str()));
        texts.push(format!("{}: {value} ({}{place})", clean(name), clean(source)));
    }
    for name in ["shutdown", "activation_timeout_ms", "watchdog_ms", "run_time_limit_ms", "on_leak"]
    {
        if let Some(value) = spec.get(name).filter(|value| !value.is_null()) {
            texts.push(match (name.strip_suffix("_ms"), value.as_u64()) {
                (Some(name), Some(ms)) => format!("{name}: {}", duration(ms)),
                _ => format!("{name}: {}", compact(value)),
            });
        }
    }
    let labels = std::iter::once("policy: ").chain(std::iter::repeat(""));
    let lines = labels.zip(texts).map(|(label, text)| Line {
        label: format!("{label:>0$}", LABEL + 2),
        text,
        tone: Tone::Plain,
    });
    lines.collect()
}

/// Writes a value of JSON without its quotes and braces.
fn compact(value: &Value) -> String {
    match value {
        Value::String(text) => clean(text),
        Value::Object(fields) => {
            let fields: Vec<_> = fields
                .iter()
                .map(|(name, value)| format!("{}={}", clean(name), compact(value)))
                .collect();
            fields.join(" ")
        }
        Value::Array(values) => values.iter().map(compact).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn exit_tone(reason: &Reason) -> Tone {
    if matches!(&*reason.kind, "normal" | "shutdown") { Tone::Plain } else { Tone::Bad }
}

/// Writes a point in time and how long ago it was: `2026-01-31T12:00:00Z (2h15m ago)`.
fn ago(at_ms: u64, now_ms: u64) -> String {
    format!("{} ({} ago)", time(at_ms), duration(now_ms.saturating_sub(at_ms)))
}
