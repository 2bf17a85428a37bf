//! What lies over the screen: the help, and the dialog of an action.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Padding, Paragraph};

use super::style;
use crate::app::{App, Dialog, KEYS, Mode, question};
use crate::show::Tone;
use crate::text::{after, wrap};

pub(super) fn draw(app: &App, frame: &mut Frame<'_>, body: Rect) {
    match &app.mode {
        Mode::Browse | Mode::Filter => {}
        Mode::Help => {
            let line = |(key, what): &(&str, &str)| Line::raw(format!("{key:>10}  {what}"));
            window(frame, body, " Keys ", KEYS.iter().map(line).collect());
        }
        Mode::Confirm(dialog) => confirm(app, dialog, frame, body),
    }
}

fn confirm(app: &App, dialog: &Dialog, frame: &mut Frame<'_>, body: Rect) {
    let Dialog { act, input } = dialog;
    let is_supervisor = app.tree.node(&act.path).is_some_and(|node| &*node.kind == "supervisor");
    let (question, effect) = question(act, is_supervisor);
    let label = match act.action {
        "stop_tree" => "Name of the root to confirm: ",
        "kill" => "Reason: ",
        _ => "Reason (optional): ",
    };
    let inner = usize::from(body.width).saturating_sub(4);
    let field = inner.saturating_sub(label.len() + 1);
    let typed: String = input.chars().skip(input.chars().count().saturating_sub(field)).collect();
    let column = label.len() + typed.chars().count();
    let mut lines = Vec::new();
    for (tone, text) in [(Tone::Title, &*question), (Tone::Plain, effect)] {
        let pieces = wrap(text, inner).into_iter().filter(|piece| !piece.is_empty());
        lines.extend(pieces.map(|piece| Line::styled(piece, style(tone, app.color))));
    }
    let row = u16::try_from(lines.len()).unwrap_or(0);
    lines.push(Line::raw(format!("{label}{typed}")));
    let author = after(" as ", app.author());
    let keys = format!("enter: do it{author}    esc: leave it");
    lines.push(Line::styled(keys, style(Tone::Dim, app.color)));
    let area = window(frame, body, " Confirm ", lines);
    let x = area.x + u16::try_from(column).unwrap_or(0).min(area.width.saturating_sub(1));
    frame.set_cursor_position((x, area.y + row));
}

/// Draws a window in the middle, and returns the place of its lines.
fn window(
    frame: &mut Frame<'_>,
    body: Rect,
    title: &'static str,
    lines: Vec<Line<'static>>,
) -> Rect {
    let widest = lines.iter().map(Line::width).max().unwrap_or(0).max(60);
    let width = u16::try_from(widest + 4).unwrap_or(u16::MAX).min(body.width);
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(body.height);
    let (x, y) = (body.x + (body.width - width) / 2, body.y + (body.height - height) / 2);
    let area = Rect { x, y, width, height };
    let block = Block::bordered().title_top(title).padding(Padding::horizontal(1));
    let inner = block.inner(area);
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(block), area);
    inner
}
