//! The tree: one line for each child that is on the screen.

use std::ops::Range;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Stylize as _;
use ratatui::text::{Line, Span};

use super::style;
use crate::app::App;
use crate::model::{Mailbox, Node};
use crate::show::tone;
use crate::text::{after, cut, duration};
use crate::tree::Row;

/// How many levels of guides are drawn. Deeper levels are written as a number.
const LEVELS: usize = 6;
/// The width of a state: `deactivating`.
const STATE: usize = 12;
const AGE: usize = 7;

pub(super) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    app.page = usize::from(area.height).max(1);
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let rows = app.tree.rows();
    let shown = shown(rows.len(), app.cursor, height);
    for (y, index) in (area.y..).zip(shown) {
        let Some(node) = app.tree.at(rows[index]) else { continue };
        let mut line = line(app, rows[index], node, width);
        if index == app.cursor {
            line = line.reversed();
        }
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
    if rows.is_empty() {
        let text = match app.filter.is_empty() {
            true => "waiting for the console …",
            false => "no child matches the filter",
        };
        frame.render_widget(Line::raw(text), area);
    }
}

/// The rows on the screen. The selected one is in the middle, except at both ends.
fn shown(rows: usize, cursor: usize, height: usize) -> Range<usize> {
    let first = cursor.saturating_sub(height / 2).min(rows.saturating_sub(height));
    first..(first + height).min(rows)
}

fn line(app: &App, row: Row, node: &Node, width: usize) -> Line<'static> {
    let name_width = (width / 3).clamp(16, 36);
    let hidden = Some(app.tree.hidden(row)).filter(|&hidden| hidden > 0);
    let hidden = after(" ▸", hidden);
    let name = format!("{}{} {}{hidden}", guides(row), node.symbol(), node.name());
    let name = cut(&name, name_width);
    let now = app.now_ms();
    let age = match node.remaining_ms(now) {
        Some(left) => format!("in {}", duration(left)),
        None => duration(now.saturating_sub(node.since_ms)),
    };
    let restarts = after("×", Some(node.restarts).filter(|&restarts| restarts > 0));
    let end = format!(" {age:>AGE$} {restarts:>5}  {}", facts(node).join("  "));
    let room = width.saturating_sub(name_width + 1 + STATE);
    Line::from(vec![
        Span::raw(format!("{name:<name_width$} ")),
        Span::styled(format!("{:<STATE$}", node.state()), style(tone(node), app.color)),
        Span::raw(format!("{:<room$}", cut(&end, room))),
    ])
}

fn guides(row: Row) -> String {
    let drawn = row.depth.min(LEVELS);
    let mut guides = match row.depth - drawn {
        0 => String::new(),
        hidden => format!("+{hidden} "),
    };
    for level in (0..drawn).rev() {
        let goes_on = row.more >> level & 1 == 1;
        guides.push_str(match (level, goes_on) {
            (0, true) => "├─",
            (0, false) => "└─",
            (_, true) => "│ ",
            (_, false) => "  ",
        });
    }
    guides
}

/// What else matters about a child, the most important first.
fn facts(node: &Node) -> Vec<String> {
    let mut facts = Vec::new();
    facts.extend(node.held.then(|| "HELD".to_owned()));
    facts.extend(node.next.as_ref().map(|next| format!("attempt {}", next.attempt)));
    let supervisor = node.supervisor.as_ref();
    let is_reached = supervisor.is_some_and(|it| it.limit_reached)
        || node.limit.as_ref().is_some_and(|it| it.reached);
    facts.extend(is_reached.then(|| "LIMIT REACHED".to_owned()));
    facts.extend(node.explanation().map(ToString::to_string));
    if !node.waits_for.is_empty() {
        facts.push(format!("waits for {}", node.waits_for.join(", ")));
    }
    if node.schedule.as_ref().is_some_and(|schedule| schedule.running > 0) {
        facts.push("running".to_owned());
    }
    if let Some(Mailbox { len: len @ 1.., capacity }) = &node.mailbox {
        facts.push(format!("{len}/{capacity} messages"));
    }
    if node.healthy == Some(false) {
        facts.extend(node.problem.as_ref().map(ToString::to_string));
    }
    facts.extend(node.alarming.as_ref().map(ToString::to_string));
    facts.extend(node.status.as_ref().map(|status| format!("\"{status}\"")));
    if node.is_loud() {
        facts.extend(node.last_exit.as_ref().map(|exit| exit.reason.message.to_string()));
    }
    facts.extend(supervisor.map(|it| match it.max_restarts {
        Some(max) => {
            format!("{} {}/{max} in {}", it.strategy, it.restarts_in_period, duration(it.period_ms))
        }
        None => it.strategy.to_string(),
    }));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_as_many_rows_are_drawn_as_the_screen_has() {
        assert_eq!(shown(10_000, 0, 40), 0..40);
        assert_eq!(shown(10_000, 5_000, 40), 4_980..5_020);
        assert_eq!(shown(10_000, 9_999, 40), 9_960..10_000);
        assert_eq!(shown(3, 2, 40), 0..3);
        assert_eq!(shown(0, 0, 40), 0..0);
    }

    #[test]
    fn guides_of_deep_levels_are_a_number() {
        let guides = |depth, more| guides(Row::new(depth, more));
        assert_eq!(guides(0, 0), "");
        assert_eq!(guides(3, 0b110), "│ │ └─");
        assert_eq!(guides(3, 0b001), "    ├─");
        assert_eq!(guides(100, u64::MAX), "+94 │ │ │ │ │ ├─");
    }
}
