//! The panel: what is known of the selected child, in tabs.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};

use super::style;
use crate::app::{App, Tab};
use crate::show::{self, Tone};
use crate::text;

pub(super) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    let is_beside = area.x > 0;
    let borders = if is_beside { Borders::LEFT | Borders::TOP } else { Borders::TOP };
    let block = Block::new().borders(borders).title_top(title(app));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let (width, height) = (usize::from(inner.width), usize::from(inner.height));
    app.panel_page = height.max(1);
    let (lines, marked) = app.panel_lines();
    // Where each line begins once all are wrapped.
    let mut begins = Vec::with_capacity(lines.len());
    let mut wrapped = Vec::new();
    for line in &lines {
        begins.push(wrapped.len());
        wrapped.extend(wrap(line, width));
    }
    let most = wrapped.len().saturating_sub(height);
    if let Some(&at) = marked.and_then(|marked| begins.get(marked)) {
        // The selected incident is in the upper third, so that its cause is on the screen.
        app.scroll = at.saturating_sub(height / 3);
    }
    app.scroll = app.scroll.min(most);
    let first = if app.tab.shows_end() { most - app.scroll } else { app.scroll };
    let lines = wrapped;
    let shown = lines.into_iter().skip(first).take(height).map(|line| {
        let label = Span::styled(line.label, style(Tone::Dim, app.color));
        Line::from(vec![label, Span::styled(line.text, style(line.tone, app.color))])
    });
    frame.render_widget(Paragraph::new(shown.collect::<Vec<_>>()), inner);
}

/// The names of the tabs. The open one is in brackets.
fn title(app: &App) -> Line<'static> {
    let tabs = Tab::ALL.map(|(tab, name)| {
        let is_open = tab == app.tab;
        let text = if is_open { format!("[{name}]") } else { format!(" {name} ") };
        Span::styled(text, style(if is_open { Tone::Title } else { Tone::Dim }, app.color))
    });
    Line::from(tabs.to_vec())
}

/// Cuts a line into pieces that fit. Those after the first are indented like the text.
fn wrap(line: &show::Line, width: usize) -> Vec<show::Line> {
    let indent = line.label.chars().count();
    let pieces = text::wrap(&line.text, width.saturating_sub(indent));
    let labels = std::iter::once(line.label.clone()).chain(std::iter::repeat(" ".repeat(indent)));
    let pieces = labels.zip(pieces);
    pieces.map(|(label, text)| show::Line { label, text, tone: line.tone }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped_and_indented() {
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
