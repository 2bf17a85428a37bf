//! What a child costs against how many there are, as pictures for the book.

use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use crate::measure::{Rounds, Row, Side, Spread, Unit};

/// How many children there are, from left to right.
const CHILDREN: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// By the row that measures it, with a name for the file and one for the reader.
const PLOTS: [(&str, &str, &str); 4] = [
    ("start", "start", "Starting a child"),
    ("stop", "stop", "Stopping a child"),
    ("bytes", "bytes", "Memory of an idle child"),
    ("restart-error", "restart", "Restarting one child among so many, p50"),
];

/// Measures and writes a picture for each plot.
pub(crate) fn write(
    folder: &Path,
    rows: impl Iterator<Item = &'static Row>,
    rounds: &mut Rounds,
    mut tell: impl FnMut(String),
) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let rows: Vec<_> = rows.collect();
    for (name, file, title) in PLOTS {
        let row = rows.iter().find(|row| row.name == name).expect("it is in the table");
        let points: Vec<_> = CHILDREN.iter().map(|&n| point(row, n, rounds)).collect();
        let points = points.into_iter().collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
        let unit = row.parts[0].unit;
        for Point { n, raw, verger } in &points {
            let [raw, verger] = [raw, verger].map(|spread| spread.text(|it| unit.show(it)));
            tell(format!("{name} at {n}: raw {raw}, verger {verger}"));
        }
        let file = folder.join(format!("{file}.svg"));
        fs::write(&file, picture(title, unit, &points))?;
        tell(format!("{}", file.display()));
    }
    Ok(())
}

struct Point {
    n: u64,
    raw: Spread,
    verger: Spread,
}

/// A million children are measured less often, since they take a while.
fn point(row: &Row, n: u64, rounds: &mut Rounds) -> Result<Point, String> {
    let times = if n < 1_000_000 { row.rounds } else { 5 };
    let row = Row { base: Some(Side::raw(n)), ours: Side::verger(n), rounds: times, ..*row };
    let measured = rounds.measure(&row)?;
    let raw = measured.base(0).expect("it has a base");
    Ok(Point { n, raw, verger: measured.ours(0) })
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 520.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 256.0;
const LINE: f64 = 15.0;

const RAW: &str = "#8c8c8c";
const VERGER: &str = "#4c72b0";

/// A line for each side, with the medians as points and the spreads as bars.
fn picture(title: &str, unit: Unit, points: &[Point]) -> String {
    let most = points.iter().flat_map(|it| [it.raw.max, it.verger.max]).fold(0.0, f64::max);
    let (step, top) = steps(most);
    let y = |figure: f64| BOTTOM - figure / top * (BOTTOM - TOP);
    let x = |index: usize| {
        LEFT + 32.0 + index as f64 / (points.len() - 1) as f64 * (RIGHT - LEFT - 64.0)
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>{title}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n"
    );
    let mut add = |element: String| writeln!(svg, "{element}").expect("a string takes all");
    let mut figure = 0.0;
    while figure <= top {
        let (at, text) = (y(figure), unit.show(figure));
        add(format!(
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{RIGHT}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555555\">{text}</text>",
            LEFT - 8.0,
            at + 4.0,
        ));
        figure += step;
    }
    for (index, Point { n, .. }) in points.iter().enumerate() {
        let text = Unit::PerSecond.show(*n as f64).replace("/s", "");
        add(format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555555\">{text}</text>",
            x(index),
            BOTTOM + 20.0,
        ));
    }
    for (side, (colour, aside)) in [(RAW, -3.0), (VERGER, 3.0)].into_iter().enumerate() {
        let spreads: Vec<_> = points.iter().map(|it| [it.raw, it.verger][side]).collect();
        let line: Vec<_> = spreads
            .iter()
            .enumerate()
            .map(|(index, spread)| format!("{:.1},{:.1}", x(index) + aside, y(spread.median)))
            .collect();
        add(format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            line.join(" ")
        ));
        for (index, Spread { min, median, max }) in spreads.iter().enumerate() {
            let at = x(index) + aside;
            add(format!(
                "<line x1=\"{at:.1}\" y1=\"{:.1}\" x2=\"{at:.1}\" y2=\"{:.1}\" stroke=\"{colour}\"/>\
                 <circle cx=\"{at:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>",
                y(*min),
                y(*max),
                y(*median),
            ));
        }
    }
    let last = points.last().expect("there are points");
    let mut ends = [(last.raw.median, "by hand", RAW), (last.verger.median, "verger", VERGER)];
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    // From below; who would be written over the other is moved up.
    let mut free = BOTTOM + LINE;
    for (figure, name, colour) in ends {
        let at = y(figure).min(free - LINE);
        free = at;
        add(format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{name}, {}</text>",
            RIGHT + 6.0,
            at + 4.0,
            unit.show(figure),
        ));
    }
    let middle = f64::midpoint(LEFT, RIGHT);
    add(format!(
        "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555555\">children</text>",
        HEIGHT - 6.0,
    ));
    svg.push_str("</svg>\n");
    svg
}

/// The distance of lines that are easy to read, and the uppermost one that has all below it.
fn steps(most: f64) -> (f64, f64) {
    let rough = most / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|it| it * power).into_iter().find(|it| *it >= rough);
    let step = step.unwrap_or(10.0 * power);
    (step, (most / step).ceil() * step)
}
