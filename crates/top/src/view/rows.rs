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
use crate::text::{after, cut, cut_in_the_middle, duration};
use crate::tree::{Row, Sort};

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
    let parts: Vec<_> = shown.clone().map(|index| columns(app, rows[index])).collect();
    // No column is wider than what is on the screen, so that there is room for causes.
    let widest = |part: fn(&Columns) -> &str| {
        parts.iter().map(|it| part(it).chars().count()).max().unwrap_or(0)
    };
    let widths = (widest(|it| &it.name).clamp(12, (width * 2 / 5).max(12)), widest(|it| &it.value));
    for (y, (index, columns)) in (area.y..).zip(shown.zip(&parts)) {
        let mut line = line(app, rows[index], columns, widths, width);
        if index == app.cursor {
            line = line.reversed();
        }
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
    if rows.is_empty() {
        let view = app.tree.view();
        let text = match (app.tree.root().is_empty(), view.problems && view.filter.is_empty()) {
            (true, _) => "waiting for the console …",
            (false, true) => "no child has a problem",
            (false, false) => "no child matches the filter",
        };
        frame.render_widget(Line::raw(text), area);
    }
}

/// The rows on the screen. The selected one is in the middle, except at both ends.
fn shown(rows: usize, cursor: usize, height: usize) -> Range<usize> {
    let first = cursor.saturating_sub(height / 2).min(rows.saturating_sub(height));
    first..(first + height).min(rows)
}

/// The columns of a row that have the same width in all rows on the screen.
struct Columns {
    name: String,
    /// What the rows are sorted by, if no other column shows it.
    value: String,
}

fn columns(app: &App, row: Row) -> Columns {
    let Some(node) = app.tree.at(row) else {
        let many = app.tree.many_at(row);
        let name = many.map_or(String::new(), |(name, number, _)| format!("▸ {name} ×{number}"));
        return Columns { name: format!("{}{name}", guides(row)), value: String::new() };
    };
    let sort = app.tree.view().sort;
    // A list has no supervisor above a child, so its path is written.
    let name = if sort == Sort::Tree { node.name() } else { below_root(node) };
    let hidden = after(" ▸", Some(app.tree.hidden(row)).filter(|&hidden| hidden > 0));
    let value = match sort {
        Sort::Restarts => format!("×{}", node.restarts),
        Sort::Busy => after("", busy(app, node)),
        Sort::Mailbox => {
            after("", node.mailbox.as_ref().map(|it| format!("{}/{}", it.len, it.capacity)))
        }
        Sort::Tree | Sort::Problem | Sort::Since | Sort::State | Sort::Name => String::new(),
    };
    Columns { name: format!("{}{} {name}{hidden}", guides(row), node.symbol()), value }
}

/// The path without the name of the root.
fn below_root(node: &Node) -> &str {
    node.path.split_once('/').map_or(&*node.path, |(_, below)| below)
}

/// Writes a share per mille: `0.3 %`, `42 %`.
fn percent(share: u64) -> String {
    match share {
        0..100 => format!("{}.{} %", share / 10, share % 10),
        _ => format!("{} %", share / 10),
    }
}

/// The share of the last seconds in which the child was busy.
fn busy(app: &App, node: &Node) -> Option<String> {
    node.busy.as_ref()?;
    Some(app.tree.busy(node).map_or("…".to_owned(), percent))
}

fn line(
    app: &App,
    row: Row,
    columns: &Columns,
    widths: (usize, usize),
    width: usize,
) -> Line<'static> {
    let (name_width, value_width) = widths;
    let name = cut_in_the_middle(&columns.name, name_width);
    let name = Span::raw(format!("{name:<name_width$} "));
    let Some(node) = app.tree.at(row) else {
        let states = app.tree.many_at(row).map_or(String::new(), |(.., states)| states);
        let room = width.saturating_sub(name_width + 1);
        return Line::from(vec![name, Span::raw(format!("{:<room$}", cut(&states, room)))]);
    };
    let now = app.now_ms();
    let age = match node.remaining_ms(now) {
        Some(left) => format!("in {}", duration(left)),
        None => duration(now.saturating_sub(node.since_ms)),
    };
    let value = match value_width {
        0 => String::new(),
        _ => format!(" {:>value_width$}", columns.value),
    };
    let end = format!(" {age:>AGE$}{value}  {}", facts(app, node).join("  "));
    let room = width.saturating_sub(name_width + 1 + STATE);
    Line::from(vec![
        name,
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

/// What else matters about a child, the most important first: what is wrong, and why.
fn facts(app: &App, node: &Node) -> Vec<String> {
    let mut facts: Vec<String> = node.cause().map(str::to_owned).into_iter().collect();
    facts.extend(node.problems.iter().skip(1).map(|it| it.problem.to_string()));
    facts.extend(node.held.then(|| "HELD".to_owned()));
    if let Some(ends) = node.stopping.as_ref().and_then(|it| it.ends_ms) {
        facts.push(format!("grace ends in {}", duration(ends.saturating_sub(app.now_ms()))));
    }
    facts.extend(node.more_explanation().map(str::to_owned));
    // Of a child with a problem, it is one of those above.
    facts.extend(node.alarming.as_ref().filter(|_| !node.is_problem()).map(ToString::to_string));
    if !node.waits_for.is_empty() {
        facts.push(format!("waits for {}", node.waits_for.join(", ")));
    }
    facts.extend(node.next.as_ref().map(|next| format!("attempt {}", next.attempt)));
    // The value by which the rows are sorted has a column.
    let sort = app.tree.view().sort;
    let restarts = Some(node.restarts).filter(|&it| it > 0 && sort != Sort::Restarts);
    facts.extend(restarts.map(|restarts| format!("×{restarts}")));
    if node.schedule.as_ref().is_some_and(|schedule| schedule.running > 0) {
        facts.push("running".to_owned());
    }
    let mailbox = node.mailbox.as_ref().filter(|_| sort != Sort::Mailbox);
    if let Some(Mailbox { len: len @ 1.., capacity, .. }) = mailbox {
        facts.push(format!("{len}/{capacity} messages"));
    }
    let share = app.tree.busy(node).filter(|&share| share >= 10 && sort != Sort::Busy);
    facts.extend(share.map(|share| format!("busy {}", percent(share))));
    facts.extend(node.status.as_ref().map(|status| format!("\"{status}\"")));
    facts.extend(node.supervisor.as_ref().map(|it| match it.max_restarts {
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
    fn a_share_below_a_tenth_has_a_decimal() {
        assert_eq!(
            [0, 3, 99, 100, 1_000].map(percent),
            ["0.0 %", "0.3 %", "9.9 %", "10 %", "100 %"]
        );
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
