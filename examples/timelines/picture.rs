//! Timelines as text and as pictures for the book.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use verger::Lifecycle;

use super::{Row, Timeline};

const TICK: Duration = Duration::from_millis(100);

/// How a state is shown: its character, colour and word. `None` if the child isn't there.
fn look(state: Lifecycle) -> Option<(char, &'static str, &'static str)> {
    match state {
        Lifecycle::Activating => Some(('▒', "#a8c6ea", "starts")),
        Lifecycle::Active => Some(('█', "#3f6fb5", "active")),
        Lifecycle::Deactivating => Some(('░', "#f0c36d", "stops")),
        Lifecycle::Errored | Lifecycle::Restarting => Some(('x', "#d1605e", "failed, waits")),
        _ => None,
    }
}

/// The parts of a row: the begin, the end and the state of each.
fn parts(row: &Row, length: Duration) -> impl Iterator<Item = (Duration, Duration, Lifecycle)> {
    let ends = row.states.iter().skip(1).map(|(at, _)| *at).chain([length]);
    let parts = row.states.iter().zip(ends).map(|((from, state), to)| (*from, to, *state));
    parts.filter(move |(from, to, _)| from < to && *from < length)
}

/// The timeline with a character for each tick.
pub(crate) fn text(timeline: &Timeline) -> String {
    let mut text = format!("{}\n", timeline.title);
    let width = timeline.rows.iter().map(|row| row.name.len()).max().unwrap_or_default();
    for row in &timeline.rows {
        let mut line = String::new();
        let mut at = TICK / 2;
        while at < timeline.length {
            let part = parts(row, timeline.length).find(|(from, to, _)| *from <= at && at < *to);
            let shown = part.and_then(|(_, _, state)| look(state)).map_or(' ', |(c, ..)| c);
            line.push(shown);
            at += TICK;
        }
        writeln!(text, "  {:width$} {}", row.name, line.trim_end()).expect("a string takes all");
    }
    text
}

/// Writes one picture for each timeline.
pub(crate) fn write(folder: &Path, timelines: &[Timeline]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for timeline in timelines {
        let file = folder.join(format!("{}.svg", timeline.name));
        std::fs::write(file, picture(timeline))?;
    }
    Ok(())
}

const WIDTH: f64 = 640.0;
const LEFT: f64 = 72.0;
const ROW: f64 = 30.0;
const TOP: f64 = 46.0;

fn picture(timeline: &Timeline) -> String {
    let scale = (WIDTH - LEFT - 12.0) / timeline.length.as_secs_f64();
    let x = |at: Duration| at.as_secs_f64().mul_add(scale, LEFT);
    let bottom = ROW.mul_add(timeline.rows.len() as f64, TOP);
    let height = bottom + 26.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>{}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
        timeline.title
    );
    legend(&mut svg);
    for second in 0..=timeline.length.as_secs() {
        let (at, under) = (x(Duration::from_secs(second)), bottom + 16.0);
        add(
            &mut svg,
            &format!(
                "<line x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{bottom}\" stroke=\"#dddddd\"/>\
             <text x=\"{at:.1}\" y=\"{under}\" text-anchor=\"middle\" fill=\"#555555\">{second} s</text>"
            ),
        );
    }
    for (number, row) in (0_u32..).zip(&timeline.rows) {
        let top = ROW.mul_add(f64::from(number), TOP) + 5.0;
        let (middle, end) = (top + 14.0, LEFT - 8.0);
        add(
            &mut svg,
            &format!(
                "<text x=\"{end}\" y=\"{middle}\" text-anchor=\"end\" fill=\"#222222\">{}</text>",
                row.name
            ),
        );
        let mut incarnation = 0;
        for (from, to, state) in parts(row, timeline.length) {
            let Some((_, colour, _)) = look(state) else { continue };
            let (left, width) = (x(from), x(to) - x(from));
            add(
                &mut svg,
                &format!(
                    "<rect x=\"{left:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"20\" fill=\"{colour}\"/>"
                ),
            );
            if state == Lifecycle::Active {
                incarnation += 1;
                let left = left + 5.0;
                add(
                    &mut svg,
                    &format!(
                        "<text x=\"{left:.1}\" y=\"{middle}\" fill=\"#ffffff\">run {incarnation}</text>"
                    ),
                );
            }
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// The colour of each state with its word.
fn legend(svg: &mut String) {
    let states =
        [Lifecycle::Activating, Lifecycle::Active, Lifecycle::Deactivating, Lifecycle::Restarting];
    for (number, (_, colour, word)) in (0_u32..).zip(states.into_iter().filter_map(look)) {
        let left = f64::from(number).mul_add(110.0, LEFT);
        let text = left + 20.0;
        add(
            svg,
            &format!(
                "<rect x=\"{left}\" y=\"12\" width=\"14\" height=\"14\" fill=\"{colour}\"/>\
             <text x=\"{text}\" y=\"24\" fill=\"#222222\">{word}</text>"
            ),
        );
    }
}

fn add(svg: &mut String, line: &str) {
    svg.push_str(line);
    svg.push('\n');
}
