//! What is measured, and the lines of the tables.

/// One measurement, in a process of its own.
#[derive(Debug)]
pub struct Work {
    /// The argument of the programs.
    pub name: &'static str,
    pub figures: &'static [Figure],
}

/// The key that a program prints before the figure, the label of the line, and the unit.
pub type Figure = (&'static str, &'static str, &'static str);

/// Children that are added beside a crash loop, unless [`PATIENCE`](crate::lives::PATIENCE) ends before.
pub const ADDED: usize = 1_000;
pub const MESSAGES: u64 = 1_000_000;
pub const QUESTIONS: usize = 50_000;
pub const NAMES: usize = 100_000;
pub const LOOKUPS: usize = 500_000;
/// The number of children on each level of a tree. The last level are idle children.
pub const DEEP: &[usize] = &[1; 1_001];
pub const WIDE: &[usize] = &[10; 4];

const fn work(name: &'static str, figures: &'static [Figure]) -> Work {
    Work { name, figures }
}

/// The tables with their titles.
#[rustfmt::skip]
pub const GROUPS: &[(&str, &[Work])] = &[
    ("Start and stop", &[
        work("idle-10000", &[
            ("start", "start, 10,000 children", "ns a child"),
            ("bytes", "memory, 10,000", "bytes a child"),
            ("stop", "stop, 10,000", "ns a child"),
        ]),
        work("idle-100000", &[
            ("start", "start, 100,000", "ns a child"),
            ("bytes", "memory, 100,000", "bytes a child"),
            ("stop", "stop, 100,000", "ns a child"),
        ]),
        work("idle-1000000", &[
            ("start", "start, 1,000,000", "ns a child"),
            ("bytes", "memory, 1,000,000", "bytes a child"),
            ("stop", "stop, 1,000,000", "ns a child"),
        ]),
    ]),
    ("Restart", &[
        work("restart-error", &[("p50", "one restart, error", "ns, p50")]),
        work("restart-panic", &[("p50", "one restart, panic", "ns, p50")]),
        work("storm-error", &[("each", "10,000 fail, error", "ns a restart")]),
        work("storm-panic", &[("each", "10,000 fail, panic", "ns a restart")]),
        work("one-for-all", &[("back", "one_for_all of 10,000", "ms, all back")]),
        work("crash-loop", &[
            ("calm", "add a child, calm", "ns, p50"),
            ("beside", "beside a crash loop", "ns, p50"),
        ]),
    ]),
    ("Trees", &[
        work("deep", &[("build", "1,000 deep, build", "ms"), ("stop", "1,000 deep, stop", "ms")]),
        work("wide", &[
            ("build", "10 × 10 × 10 × 10, build", "ms"),
            ("stop", "10 × 10 × 10 × 10, stop", "ms"),
        ]),
    ]),
    ("Messages and names", &[
        work("message", &[("each", "message", "ns")]),
        work("ask", &[("p50", "question and answer", "ns, p50")]),
        work("lookup", &[("each", "lookup, two threads", "ns")]),
    ]),
];

impl Work {
    /// All measurements, in the order of the tables.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        GROUPS.iter().flat_map(|(_, works)| *works)
    }
}
