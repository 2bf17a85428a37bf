//! The tables of metrics in the book and in the module are the list of the code.

use verger::metrics::{ALL, MetricKind};

/// Returns the rows of the table that begins with this heading: the cells without code marks.
fn rows<'a>(page: &'a str, heading: &str) -> Vec<Vec<String>> {
    let table = page.lines().map(|line| line.strip_prefix("//! ").unwrap_or(line));
    let table = table.skip_while(|line| *line != heading).skip(2);
    let table = table.take_while(|line| line.starts_with('|'));
    let cells =
        |line: &'a str| line.trim_matches('|').split('|').map(|it| it.trim().replace('`', ""));
    table.map(|line| cells(line).collect()).collect()
}

#[test]
fn the_tables_of_the_chapter_and_of_the_module_have_exactly_the_metrics_of_the_list() {
    let kind = |kind| match kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram => "histogram",
        _ => unreachable!("there are three kinds"),
    };
    let listed = ALL.iter().map(|it| {
        [it.name, kind(it.kind), it.unit, &it.labels.join(", ")].map(str::to_owned).to_vec()
    });
    let listed: Vec<_> = listed.collect();
    for page in
        [include_str!("../../book/src/metrics.md"), include_str!("../../src/metrics/mod.rs")]
    {
        let rows = rows(page, "| metric | type | unit | labels | when |");
        assert!(rows.iter().all(|row| row.len() == 5 && !row[4].is_empty()), "{rows:?}");
        let written: Vec<_> = rows.iter().map(|row| row[..4].to_vec()).collect();
        assert_eq!(written, listed);
    }
    // Also in the rules for alerts, which are those of the example.
    let chapter = include_str!("../../book/src/metrics.md");
    let rules = include_str!("../../examples/metrics/alerts.yml");
    assert!(chapter.contains(&format!("\n```yaml\n{rules}```\n")), "the chapter shows alerts.yml");
    let words = chapter.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    for word in words.filter(|word| word.starts_with("verger_")) {
        let name = ["_bucket", "_sum", "_count"].iter().find_map(|it| word.strip_suffix(it));
        let name = name.unwrap_or(word);
        assert!(ALL.iter().any(|metric| metric.name == name), "{word}");
    }
}
