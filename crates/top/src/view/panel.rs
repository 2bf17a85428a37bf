//! The panel: what is known of the selected child, in tabs.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};

use super::style;
use crate::app::{App, Tab};
use crate::show::{self, Tone};

pub(super) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    let is_beside = area.x > 0;
    let borders = if is_beside { Borders::LEFT | Borders::TOP } else { Borders::TOP };
    let block = Block::new().borders(borders).title_top(title(app));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let (width, height) = (usize::from(inner.width), usize::from(inner.height));
    app.panel_page = height.max(1);
    let lines: Vec<_> = app.panel_lines().iter().flat_map(|line| wrap(line, width)).collect();
    let most = lines.len().saturating_sub(height);
    app.scroll = app.scroll.min(most);
    let first = if app.tab.is_list() { most - app.scroll } else { app.scroll };
    let shown = lines.into_iter().skip(first).take(height).map(|line| {
        let label = Span::styled(line.label, style(Tone::Dim, app.color));
        Line::from(vec![label, Span::styled(line.text, style(line.tone, app.color))])
    });
    frame.render_widget(Paragraph::new(shown.collect::<Vec<_>>()), inner);
}

/// The names of the tabs. That of the open one is in brackets.
fn title(app: &App) -> Line<'static> {
    let tabs = Tab::ALL.map(|(tab, name)| {
        let is_open = tab == app.tab;
        let text = if is_open { format!("[{name}]") } else { format!(" {name} ") };
        Span::styled(text, style(if is_open { Tone::Title } else { Tone::Dim }, app.color))
    });
    Line::from(tabs.to_vec())
}

/// Cuts a line into pieces that fit, between words if possible. Those after the first are indented like the text.
fn wrap(line: &show::Line, width: usize) -> Vec<show::Line> {
    let indent = line.label.chars().count();
    let room = width.saturating_sub(indent).max(8);
    let mut pieces = Vec::new();
    let mut rest: Vec<char> = line.text.chars().collect();
    loop {
        let label = if pieces.is_empty() { line.label.clone() } else { " ".repeat(indent) };
        let end = match rest.len() {
            all if all <= room => all,
            _ => rest[..=room]
                .iter()
                .rposition(|&c| c == ' ')
                .filter(|&at| at > room / 3)
                .unwrap_or(room),
        };
        let after = rest.split_off(end);
        pieces.push(show::Line { label, text: rest.into_iter().collect(), tone: line.tone });
        rest = after.into_iter().skip_while(|&c| c == ' ').collect();
        if rest.is_empty() {
            return pieces;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped_between_words_and_indented() {
        let line = show::Line {
            label: "why: ".into(),
            text: "connection refused by abcdefghijklmnop".into(),
            tone: Tone::Bad,
        };
        let pieces = wrap(&line, 20).into_iter().map(|it| it.label + &it.text).collect::<Vec<_>>();
        assert_eq!(
            pieces,
            ["why: connection", "     refused by", "     abcdefghijklmno", "     p"]
        );
        assert_eq!(wrap(&show::Line::default(), 20), [show::Line::default()]);
    }
}
