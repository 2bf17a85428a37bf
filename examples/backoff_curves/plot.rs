//! The waits as a table and as pictures for the book.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

type Row = (&'static str, Vec<Duration>);

/// As one would say it: `200ms`, `1.5s`, `300s`.
pub(crate) fn short(wait: Duration) -> String {
    let millis = wait.as_millis();
    match millis {
        0 => "0s".to_owned(),
        1..1_000 => format!("{millis}ms"),
        _ => format!("{}s", millis as f64 / 1_000.0),
    }
}

/// Writes `waits/table.md` and one picture for each preset.
pub(crate) fn write(book: &Path, rows: &[Row]) -> std::io::Result<()> {
    let folder = book.join("waits");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("table.md"), table(rows))?;
    for (name, waits) in rows {
        std::fs::write(folder.join(format!("{name}.svg")), picture(name, waits))?;
    }
    Ok(())
}

fn table(rows: &[Row]) -> String {
    let mut table = String::from("| preset | 1");
    let count = rows.iter().map(|(_, waits)| waits.len()).max().unwrap_or_default();
    (2..=count).for_each(|number| write!(table, " | {number}").expect("a string takes all"));
    table.push_str(" |\n| ---");
    (0..count).for_each(|_| table.push_str(" | ---:"));
    table.push_str(" |\n");
    for (name, waits) in rows {
        let waits: Vec<_> = waits.iter().map(|wait| short(*wait)).collect();
        writeln!(table, "| `{name}` | {} |", waits.join(" | ")).expect("a string takes all");
    }
    table
}

const WIDTH: f64 = 640.0;
const LINE: f64 = 18.0;

/// A bar for each wait. The longest is as wide as there is room.
fn picture(name: &str, waits: &[Duration]) -> String {
    let height = LINE * (waits.len() as f64 + 1.5);
    let longest = waits.iter().max().copied().unwrap_or_default().as_secs_f64();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Waits of {name}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (number, wait) in (1..).zip(waits) {
        let top = LINE * (f64::from(number) - 0.5);
        let part = if longest > 0.0 { wait.as_secs_f64() / longest } else { 0.0 };
        let (width, text) = ((part * 520.0).max(1.0), top + 12.0);
        writeln!(
            svg,
            "<text x=\"28\" y=\"{text}\" text-anchor=\"end\" fill=\"#555555\">{number}</text>\
             <rect x=\"36\" y=\"{top}\" width=\"{width:.1}\" height=\"13\" fill=\"#4c72b0\"/>\
             <text x=\"{:.1}\" y=\"{text}\" fill=\"#222222\">{}</text>",
            42.0 + width,
            short(*wait),
        )
        .expect("a string takes all");
    }
    svg.push_str("</svg>\n");
    svg
}
