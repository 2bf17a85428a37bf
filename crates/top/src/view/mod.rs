//! Draws the live view.
//!
//! # Invariants
//!
//! 1. Only rows and lines on the screen are made into text.
//! 2. Every state is a word and a symbol; colours only repeat it.
//! 3. On 80 columns, nothing of the first and the last line is cut: facts that don't fit are left out as a whole, and
//!    messages are wrapped.

mod panel;
mod popup;
mod rows;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::app::{App, Connection, Mode};
use crate::show::Tone;
use crate::text::{count, duration, wrap};
use crate::tree::Sort;

/// From this width on, the panel is beside the tree.
const WIDE: u16 = 110;
/// From this height on, the panel is below the tree.
const TALL: u16 = 16;

/// The most lines of a message.
const MESSAGE: usize = 5;

/// Draws the whole screen.
pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>) {
    let area = frame.area();
    let width = usize::from(area.width);
    let (header, footer) = (header(app, width), footer(app, width));
    let lines = |lines: &[Line<'_>]| Constraint::Length(u16::try_from(lines.len()).unwrap_or(1));
    let parts = [lines(&header), Constraint::Fill(1), lines(&footer)];
    let [head, body, foot] = Layout::vertical(parts).areas(area);
    frame.render_widget(Paragraph::new(header), head);
    let (tree, panel) = split(app.zoomed, body);
    if let Some(area) = tree {
        rows::draw(app, frame, area);
    }
    if let Some(area) = panel {
        panel::draw(app, frame, area);
    }
    frame.render_widget(Paragraph::new(footer), foot);
    if app.mode == Mode::Filter {
        let at = u16::try_from(app.filter.chars().count() + 1).unwrap_or(u16::MAX);
        frame.set_cursor_position((foot.x + at.min(foot.width.saturating_sub(1)), foot.y));
    }
    popup::draw(app, frame, body);
}

/// The places of the tree and of the panel.
fn split(zoomed: bool, body: Rect) -> (Option<Rect>, Option<Rect>) {
    let parts = [Constraint::Percentage(56), Constraint::Fill(1)];
    let layout = if zoomed {
        return (None, Some(body));
    } else if body.width >= WIDE {
        Layout::horizontal(parts)
    } else if body.height >= TALL {
        Layout::vertical(parts)
    } else {
        return (Some(body), None);
    };
    let [tree, panel] = layout.areas(body);
    (Some(tree), Some(panel))
}

fn style(tone: Tone, color: bool) -> Style {
    let style = match tone {
        Tone::Plain => Style::new(),
        Tone::Title => Style::new().bold(),
        Tone::Dim => Style::new().dim(),
        Tone::Good => Style::new().green(),
        Tone::Warn => Style::new().yellow().bold(),
        Tone::Bad => Style::new().red().bold(),
    };
    Style { fg: style.fg.filter(|_| color), ..style }
}

/// A message in as many lines as it needs.
fn message(tone: Tone, text: &str, width: usize, color: bool) -> Vec<Line<'static>> {
    let pieces = wrap(text, width).into_iter().take(MESSAGE);
    pieces.map(|piece| Line::styled(piece, style(tone, color))).collect()
}

/// What the whole tree does: name, connection, problems, counts.
fn header(app: &App, width: usize) -> Vec<Line<'static>> {
    let totals = &app.tree.totals;
    let root = if app.tree.root().is_empty() { "verger-top" } else { app.tree.root() };
    let (tone, state) = match &app.connection {
        Connection::Connecting => (Tone::Dim, "connecting"),
        // Nothing else matters now, and how to reach the program may be a long sentence.
        Connection::Lost(error) => {
            let text = format!(" {root} LOST, trying again: {error}");
            return message(Tone::Bad, &text, width, app.color);
        }
        Connection::Live if app.is_paused() => (Tone::Warn, "PAUSED"),
        Connection::Live => (Tone::Good, "live"),
    };
    let mut parts = vec![(Tone::Title, format!(" {root} ")), (tone, state.to_owned())];
    if app.connection == Connection::Live {
        let problems = app.tree.problems();
        let (tone, problems) = match problems {
            0 => (Tone::Good, "no problems".to_owned()),
            _ => (Tone::Bad, count(problems, "PROBLEM", "PROBLEMS")),
        };
        let started = app.tree.program.started_at_ms;
        let letters = totals.dead_letters;
        let interval = duration(app.interval_ms());
        parts.push((tone, format!("  {problems}")));
        let facts = [
            Some(count(totals.children, "child", "children")),
            Some(app.restarts()),
            (letters > 0).then(|| count(letters, "dead letter", "dead letters")),
            (started > 0).then(|| format!("up {}", duration(app.now_ms().saturating_sub(started)))),
            Some(format!("read every {interval}")),
        ];
        parts.extend(facts.into_iter().flatten().map(|fact| (Tone::Plain, format!("  {fact}"))));
    }
    let mut room = width;
    let mut line = Line::default();
    for (tone, text) in parts {
        let length = text.chars().count();
        if length <= room {
            room -= length;
            line.push_span(Span::styled(text, style(tone, app.color)));
        }
    }
    vec![line]
}

/// The most important keys, of which as many are shown as fit. The last one always is.
const HINTS: [&str; 13] = [
    "? help",
    "i incidents",
    "x problems",
    "o sort",
    "/ filter",
    "enter describe",
    "e events",
    "l log",
    "r restart",
    "s stop",
    "p pause",
    "d letters",
    "q quit",
];

/// The filter while it is typed, a notice, how the rows are narrowed or sorted, or the most important keys.
fn footer(app: &App, width: usize) -> Vec<Line<'static>> {
    if app.mode == Mode::Filter {
        return vec![Line::raw(format!("/{}", app.filter))];
    }
    if let Some((tone, text)) = &app.notice {
        return message(*tone, text, width, app.color);
    }
    let view = app.tree.view();
    let mut parts = Vec::new();
    parts.extend((!app.filter.is_empty()).then(|| format!("filter: {}", app.filter)));
    parts.extend(view.problems.then(|| "problems only".to_owned()));
    parts.extend((view.sort != Sort::Tree).then(|| {
        format!("by {}{}", view.sort.words(), if view.reversed { ", reversed" } else { "" })
    }));
    if !parts.is_empty() {
        let text = format!("{}  (esc shows the whole tree)", parts.join("  "));
        return message(Tone::Title, &text, width, app.color);
    }
    let [hints @ .., last] = HINTS;
    let mut text = String::new();
    for hint in hints {
        if text.len() + hint.len() + 2 + last.len() <= width {
            text.push_str(hint);
            text.push_str("  ");
        }
    }
    text.push_str(last);
    vec![Line::styled(text, style(Tone::Dim, app.color))]
}
