//! One child on one screen.

use serde_json::Value;

use super::lists::{event, log_lines};
use super::{LABEL, Line, Tone, tone};
use crate::model::{Child, Node, Reason, Schedule};
use crate::text::{clean, count, cut, duration, time, time_of_day};

/// How many events and log lines a description ends with.
const LAST: usize = 10;
/// How much of a log line a description shows.
const LOG_LINE: usize = 200;

/// Describes a child on one screen: what it is, since when, why, and its last events and lines.
pub(crate) fn describe(view: &Child, now_ms: u64) -> Vec<Line> {
    let node = &view.child;
    let mut lines = vec![title(node)];
    lines.extend(state(node, now_ms));
    lines.extend(history(node, now_ms));
    lines.extend(supervision(node, now_ms));
    lines.extend(relations(node, now_ms));
    lines.extend(policy(node, &view.spec));
    if !view.events.is_empty() {
        lines.push(Line::default());
        lines.push(Line::new(Tone::Title, "Events"));
        lines.extend(
            view.events.iter().rev().take(LAST).rev().map(|entry| event(entry, now_ms, &node.path)),
        );
    }
    if let Some(log) =
        view.log.as_ref().filter(|log| !log.current.is_empty() || !log.previous.is_empty())
    {
        lines.push(Line::default());
        // A backtrace is for the list of all lines.
        lines.extend(
            log_lines(log, LAST)
                .into_iter()
                .map(|line| Line { text: cut(&line.text, LOG_LINE), ..line }),
        );
    }
    lines
}

fn title(node: &Node) -> Line {
    let mut text =
        format!("{} {}  {}, {}", node.symbol(), node.path, node.kind, node.policy_word());
    if let Some(version) = &node.version {
        text.push_str(&format!(", version {version}"));
    }
    if node.declared == Some(false) {
        text.push_str(", added while running");
    }
    Line::new(Tone::Title, text)
}

fn state(node: &Node, now_ms: u64) -> Vec<Line> {
    let mut text = format!("{} since {}", node.state(), ago(node.since_ms, now_ms));
    if let Some(why) = node.explanation() {
        text.push_str(&format!(": {why}"));
    }
    let mut lines = vec![Line::labelled("state", tone(node), text)];
    let held = "restarts of this child wait until it is released";
    lines.extend(node.held.then(|| Line::labelled("held", Tone::Warn, held)));
    lines.extend(
        node.status.as_ref().map(|it| Line::labelled("status", Tone::Plain, format!("\"{it}\""))),
    );
    lines.extend(match (node.healthy, &node.problem) {
        (Some(true), _) => Some(Line::labelled("health", Tone::Good, "the last check has passed")),
        (_, Some(problem)) => {
            Some(Line::labelled("health", Tone::Bad, format!("unhealthy: {problem}")))
        }
        (Some(false), None) => Some(Line::labelled("health", Tone::Bad, "unhealthy")),
        (None, None) => None,
    });
    lines.extend(node.next.as_ref().map(|next| {
        let left = duration(next.at_ms.saturating_sub(now_ms));
        let at = time_of_day(next.at_ms);
        let text = format!(
            "attempt {} in {left}, at {at}, after {}",
            next.attempt,
            duration(next.delay_ms)
        );
        Line::labelled("next start", Tone::Warn, text)
    }));
    lines
}

fn history(node: &Node, now_ms: u64) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut incarnation =
        format!("{}, {}", node.incarnation, count(node.restarts.into(), "restart", "restarts"));
    if node.failures > 0 {
        incarnation.push_str(&format!(
            ", {} in a row",
            count(node.failures.into(), "failure", "failures")
        ));
    }
    if let Some(at) = node.started_at_ms {
        incarnation.push_str(&format!(", started {}", ago(at, now_ms)));
    }
    lines.push(Line::labelled("incarnation", Tone::Plain, incarnation));
    lines.extend(node.last_exit.as_ref().map(|exit| {
        let lived = exit.lived_ms.map(|it| format!(" after {}", duration(it))).unwrap_or_default();
        let text = format!(
            "{} (incarnation {}{lived}, {})",
            exit.reason.message,
            exit.incarnation,
            ago(exit.at_ms, now_ms)
        );
        Line::labelled("last exit", exit_tone(&exit.reason), text)
    }));
    lines.extend(node.last_call.as_ref().map(|call| {
        let by = call.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        let reason = call.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        Line::labelled(
            "last call",
            Tone::Plain,
            format!("{}{by} {}{reason}", call.call, ago(call.at_ms, now_ms)),
        )
    }));
    lines
}

fn supervision(node: &Node, now_ms: u64) -> Vec<Line> {
    let mut lines = Vec::new();
    lines.extend(node.limit.as_ref().map(|limit| {
        let text = format!(
            "{} of {} restarts in {}",
            limit.restarts,
            limit.max_restarts,
            duration(limit.period_ms)
        );
        reached(text, limit.reached)
    }));
    if let Some(supervisor) = &node.supervisor {
        let period = duration(supervisor.period_ms);
        let text = match supervisor.max_restarts {
            Some(max) => format!(
                "{} of {max} restarts of children in {period}",
                supervisor.restarts_in_period
            ),
            None if supervisor.period_ms == 0 => "none".to_owned(),
            None => format!(
                "{} restarts of children in {period}, without a limit",
                supervisor.restarts_in_period
            ),
        };
        lines.push(reached(text, supervisor.limit_reached));
        lines.extend(supervisor.gone.iter().rev().take(3).map(|gone| {
            let name = gone.path.rsplit('/').next().unwrap_or_default();
            let reason =
                gone.reason.as_ref().map(|it| format!(": {}", it.message)).unwrap_or_default();
            Line::labelled("gone", Tone::Dim, format!("{name} {}{reason}", ago(gone.at_ms, now_ms)))
        }));
    }
    lines
}

fn reached(mut text: String, is_reached: bool) -> Line {
    if is_reached {
        text.push_str(", REACHED");
    }
    Line::labelled("limit", if is_reached { Tone::Bad } else { Tone::Plain }, text)
}

/// The schedule of a periodic child, and its last run.
fn schedule(schedule: &Schedule, now_ms: u64) -> Vec<Line> {
    let mut text = schedule.plan.to_string();
    if schedule.running > 0 {
        text.push_str(&format!(", {} running", schedule.running));
    }
    if let Some(at) = schedule.next_ms.filter(|&at| at > now_ms) {
        text.push_str(&format!(", next in {}, at {}", duration(at - now_ms), time(at)));
    }
    let mut lines = vec![Line::labelled("schedule", Tone::Plain, text)];
    let mut runs = count(schedule.runs, "run", "runs");
    for (word, count) in [("failed", schedule.failed), ("skipped", schedule.skipped)] {
        if count > 0 {
            runs.push_str(&format!(", {count} {word}"));
        }
    }
    let tone = if schedule.skipped > 0 { Tone::Warn } else { Tone::Plain };
    lines.push(Line::labelled("runs", tone, runs));
    lines.extend(schedule.last.as_ref().map(|run| {
        let how = run.problem.as_ref().unwrap_or(&run.outcome);
        let took = duration(run.took_ms);
        let text = format!("{how} (began {}, took {took})", ago(run.began_ms, now_ms));
        let tone = if run.problem.is_some() { Tone::Bad } else { Tone::Plain };
        Line::labelled("last run", tone, text)
    }));
    lines
}

fn relations(node: &Node, now_ms: u64) -> Vec<Line> {
    let mut lines = Vec::new();
    lines.extend(node.schedule.iter().flat_map(|it| schedule(it, now_ms)));
    lines.extend(node.mailbox.as_ref().map(|it| {
        let tone = if it.len * 10 >= it.capacity * 8 { Tone::Warn } else { Tone::Plain };
        Line::labelled("mailbox", tone, format!("{} of {} messages", it.len, it.capacity))
    }));
    if !node.requires.is_empty() {
        lines.push(Line::labelled("requires", Tone::Plain, node.requires.join(", ")));
    }
    if !node.waits_for.is_empty() {
        lines.push(Line::labelled("waits for", Tone::Warn, node.waits_for.join(", ")));
    }
    let traits = [
        (node.essential, "essential"),
        (node.significant, "significant"),
        (!node.ready, "not ready"),
    ];
    let traits: Vec<_> = traits.into_iter().filter_map(|(is, word)| is.then_some(word)).collect();
    if !traits.is_empty() {
        lines.push(Line::labelled("role", Tone::Plain, traits.join(", ")));
    }
    lines.extend(
        node.defined_at.as_ref().map(|at| Line::labelled("defined at", Tone::Plain, &**at)),
    );
    lines.extend(
        node.created_at_ms.map(|at| Line::labelled("created", Tone::Plain, ago(at, now_ms))),
    );
    lines
}

/// The policy, each value with its source; then what the policy doesn't include.
fn policy(node: &Node, spec: &Value) -> Vec<Line> {
    let mut texts = Vec::new();
    for (name, part) in node.policy.iter().filter_map(Value::as_object).flatten() {
        let (value, source) = (compact(&part["value"]), part["source"].as_str().unwrap_or("?"));
        let place =
            node.configured.get(name.as_str()).map(|place| format!(" {place}")).unwrap_or_default();
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
    let lines = texts.into_iter().enumerate();
    lines
        .map(|(index, text)| Line {
            label: if index == 0 {
                format!("{:>LABEL$}: ", "policy")
            } else {
                " ".repeat(LABEL + 2)
            },
            text,
            tone: Tone::Plain,
        })
        .collect()
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
