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
use ratatui::style::{Color, Modifier, Style};
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
    if zoomed {
        (None, Some(body))
    } else if body.width >= WIDE {
        let [tree, panel] =
            Layout::horizontal([Constraint::Percentage(56), Constraint::Fill(1)]).areas(body);
        (Some(tree), Some(panel))
    } else if body.height >= TALL {
        let [tree, panel] =
            Layout::vertical([Constraint::Percentage(56), Constraint::Fill(1)]).areas(body);
        (Some(tree), Some(panel))
    } else {
        (Some(body), None)
    }
}

fn style(tone: Tone, color: bool) -> Style {
    let style = Style::new();
    let (style, hue) = match tone {
        Tone::Plain => return style,
        Tone::Title => return style.add_modifier(Modifier::BOLD),
        Tone::Dim => return style.add_modifier(Modifier::DIM),
        Tone::Good => (style, Color::Green),
        Tone::Warn => (style.add_modifier(Modifier::BOLD), Color::Yellow),
        Tone::Bad => (style.add_modifier(Modifier::BOLD), Color::Red),
    };
    if color { style.fg(hue) } else { style }
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
    let mut spans = vec![
        Span::styled(format!(" {root} "), Style::new().add_modifier(Modifier::BOLD)),
        Span::styled(state, style(tone, app.color)),
    ];
    if app.connection != Connection::Connecting {
        spans.push(Span::raw(format!("  {}", count(totals.children, "child", "children"))));
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
            spans.push(Span::raw(", "));
            spans.push(Span::styled(format!("{number} {word}"), style(tone, app.color)));
        }
        spans.push(Span::raw(format!("  {}", app.restarts())));
        if totals.dead_letters > 0 {
            spans.push(Span::raw(format!(
                "  {}",
                count(totals.dead_letters, "dead letter", "dead letters")
            )));
        }
        let started = app.tree.program.started_at_ms;
        if started > 0 {
            spans.push(Span::raw(format!(
                "  up {}",
                duration(app.now_ms().saturating_sub(started))
            )));
        }
        spans.push(Span::raw(format!("  read every {}", duration(app.interval_ms()))));
    }
    let mut room = usize::from(width);
    let mut line = Line::default();
    for span in spans {
        let text = cut(&span.content, room);
        room -= text.chars().count();
        line.push_span(Span::styled(text, span.style));
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
