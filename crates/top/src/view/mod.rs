//! Draws the live view.
//!
//! # Invariants
//!
//! 1. Only rows and lines on the screen are made into text.
//! 2. Every state is a word and a symbol; colours only repeat it.

mod panel;
mod popup;
mod rows;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::app::{App, Connection, Mode};
use crate::show::Tone;
use crate::text::{count, cut, duration};

/// From this width on, the panel is beside the tree.
const WIDE: u16 = 110;
/// From this height on, the panel is below the tree.
const TALL: u16 = 16;

/// Draws the whole screen.
pub(crate) fn draw(app: &mut App, frame: &mut Frame<'_>) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(header(app, head.width), head);
    let (tree, panel) = split(app.zoomed, body);
    if let Some(area) = tree {
        rows::draw(app, frame, area);
    }
    if let Some(area) = panel {
        panel::draw(app, frame, area);
    }
    footer(app, frame, foot);
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

/// What the whole tree does: name, connection, counts.
fn header(app: &App, width: u16) -> Line<'static> {
    let totals = &app.tree.totals;
    let root = if app.tree.root().is_empty() { "verger-top" } else { app.tree.root() };
    let (tone, state) = match &app.connection {
        Connection::Connecting => (Tone::Dim, "connecting".to_owned()),
        Connection::Live => (Tone::Good, "live".to_owned()),
        Connection::Lost(error) => (Tone::Bad, format!("LOST, trying again: {error}")),
    };
    let mut parts = vec![(Tone::Title, format!(" {root} ")), (tone, state)];
    if app.connection != Connection::Connecting {
        parts.push((Tone::Plain, format!("  {}", count(totals.children, "child", "children"))));
        // What needs attention first.
        let is_loud = |state: &str| matches!(state, "errored" | "restarting");
        let mut states: Vec<_> = totals.lifecycle.iter().filter(|&(_, &count)| count > 0).collect();
        states.sort_by_key(|(state, _)| (!is_loud(state), state.as_bytes() != b"active"));
        for (state, number) in states {
            let (tone, word) = match &**state {
                state @ "errored" => (Tone::Bad, state.to_uppercase()),
                state @ "restarting" => (Tone::Warn, state.to_uppercase()),
                state => (Tone::Plain, state.to_owned()),
            };
            parts.extend([(Tone::Plain, ", ".to_owned()), (tone, format!("{number} {word}"))]);
        }
        let started = app.tree.program.started_at_ms;
        let facts = [
            Some(app.restarts()),
            Some(count(totals.dead_letters, "dead letter", "dead letters"))
                .filter(|_| totals.dead_letters > 0),
            (started > 0).then(|| format!("up {}", duration(app.now_ms().saturating_sub(started)))),
            Some(format!("read every {}", duration(app.interval_ms()))),
        ];
        let facts = facts.into_iter().flatten();
        parts.extend(facts.map(|fact| (Tone::Plain, format!("  {fact}"))));
    }
    let mut room = usize::from(width);
    let mut line = Line::default();
    for (tone, text) in parts {
        let text = cut(&text, room);
        room -= text.chars().count();
        line.push_span(Span::styled(text, style(tone, app.color)));
    }
    line
}

/// The filter while it is typed, a notice, or the most important keys.
fn footer(app: &App, frame: &mut Frame<'_>, area: Rect) {
    if app.mode == Mode::Filter {
        let text = format!("/{}", app.filter);
        let at = u16::try_from(text.chars().count())
            .unwrap_or(u16::MAX)
            .min(area.width.saturating_sub(1));
        frame.render_widget(Line::raw(text), area);
        frame.set_cursor_position((area.x + at, area.y));
        return;
    }
    let line = match &app.notice {
        Some((tone, text)) => Line::styled(cut(text, area.width.into()), style(*tone, app.color)),
        None if !app.filter.is_empty() => {
            Line::raw(format!("filter: {}  (esc clears it)", app.filter))
        }
        None => Line::styled(
            "? help  / filter  enter describe  e events  l log  d letters  r restart  s stop  q quit",
            style(Tone::Dim, app.color),
        ),
    };
    frame.render_widget(line, area);
}
