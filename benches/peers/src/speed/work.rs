//! What is measured, and the rows of the tables.

use std::time::Duration;

/// How a child fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Error,
    Panic,
}

/// One measurement, in a process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// So many children that do nothing, under one supervisor: started and stopped.
    Idle(usize),
    /// A child fails, and is back before it fails again.
    Restart(How),
    /// [`CHILDREN`] children fail at once, and again as soon as they are back: [`TIMES`] in all.
    Storm(How),
    /// One of [`CHILDREN`] children of a `one_for_all` fails.
    OneForAll,
    /// Supervisors below each other, with one child below the last.
    Deep,
    /// Ten supervisors with ten supervisors each, and so on, with ten thousand children.
    Wide,
    /// Children are added beside [`CHILDREN`] others: first while all of these are idle, then while
    /// one of them fails again and again.
    CrashLoop,
    /// Messages from one task to one child.
    Message,
    /// One question after the other, each answered.
    Ask,
    /// [`NAMES`] names, looked up by two threads.
    Lookup,
}

/// How long something may be repeated.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// Children beside each other wherever something fails.
pub const CHILDREN: usize = 10_000;
/// How often each child of a storm fails.
pub const TIMES: usize = 10;
/// Restarts one after the other, unless time runs out before.
pub const RESTARTS: usize = 20_000;
/// Children that are added beside a crash loop, unless time runs out before.
pub const ADDED: usize = 1_000;
pub const MESSAGES: u64 = 1_000_000;
pub const QUESTIONS: usize = 50_000;
pub const NAMES: usize = 100_000;
pub const LOOKUPS: usize = 500_000;
/// The shapes of the trees: so many below each, level by level. Children are the last level.
pub const DEEP: &[usize] = &[1; 1_001];
pub const WIDE: &[usize] = &[10; 4];

impl Work {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 14] = [
        Self::Idle(10_000),
        Self::Idle(100_000),
        Self::Idle(1_000_000),
        Self::Restart(How::Error),
        Self::Restart(How::Panic),
        Self::Storm(How::Error),
        Self::Storm(How::Panic),
        Self::OneForAll,
        Self::CrashLoop,
        Self::Deep,
        Self::Wide,
        Self::Message,
        Self::Ask,
        Self::Lookup,
    ];

    /// A word for it, which the programs take.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle(10_000) => "idle-10000",
            Self::Idle(100_000) => "idle-100000",
            Self::Idle(_) => "idle-1000000",
            Self::Restart(How::Error) => "restart-error",
            Self::Restart(How::Panic) => "restart-panic",
            Self::Storm(How::Error) => "storm-error",
            Self::Storm(How::Panic) => "storm-panic",
            Self::OneForAll => "one-for-all",
            Self::Deep => "deep",
            Self::Wide => "wide",
            Self::CrashLoop => "crash-loop",
            Self::Message => "message",
            Self::Ask => "ask",
            Self::Lookup => "lookup",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|work| work.name() == name)
    }

    /// What must have gone well in a tenth of the time before this is tried.
    pub fn after(self) -> Option<Self> {
        (self == Self::Idle(1_000_000)).then_some(Self::Idle(100_000))
    }

    /// The figures that a program prints, and what they say in a table.
    pub fn figures(self) -> &'static [Figure] {
        match self {
            Self::Idle(10_000) => {
                const {
                    &[
                        Figure::new("start", "start, 10,000 children", "ns a child"),
                        Figure::new("bytes", "memory, 10,000", "bytes a child"),
                        Figure::new("stop", "stop, 10,000", "ns a child"),
                    ]
                }
            }
            Self::Idle(100_000) => {
                const {
                    &[
                        Figure::new("start", "start, 100,000", "ns a child"),
                        Figure::new("bytes", "memory, 100,000", "bytes a child"),
                        Figure::new("stop", "stop, 100,000", "ns a child"),
                    ]
                }
            }
            Self::Idle(_) => {
                const {
                    &[
                        Figure::new("start", "start, 1,000,000", "ns a child"),
                        Figure::new("bytes", "memory, 1,000,000", "bytes a child"),
                        Figure::new("stop", "stop, 1,000,000", "ns a child"),
                    ]
                }
            }
            Self::Restart(How::Error) => {
                const { &[Figure::new("p50", "one restart, error", "ns, p50")] }
            }
            Self::Restart(How::Panic) => {
                const { &[Figure::new("p50", "one restart, panic", "ns, p50")] }
            }
            Self::Storm(How::Error) => {
                const { &[Figure::new("each", "10,000 fail, error", "ns a restart")] }
            }
            Self::Storm(How::Panic) => {
                const { &[Figure::new("each", "10,000 fail, panic", "ns a restart")] }
            }
            Self::OneForAll => {
                const { &[Figure::new("back", "one_for_all of 10,000", "ms, all back")] }
            }
            Self::Deep => {
                const {
                    &[
                        Figure::new("build", "1,000 deep, build", "ms"),
                        Figure::new("stop", "1,000 deep, stop", "ms"),
                    ]
                }
            }
            Self::Wide => {
                const {
                    &[
                        Figure::new("build", "10 × 10 × 10 × 10, build", "ms"),
                        Figure::new("stop", "10 × 10 × 10 × 10, stop", "ms"),
                    ]
                }
            }
            Self::CrashLoop => {
                const {
                    &[
                        Figure::new("calm", "add a child, calm", "ns, p50"),
                        Figure::new("beside", "beside a crash loop", "ns, p50"),
                    ]
                }
            }
            Self::Message => const { &[Figure::new("each", "message", "ns")] },
            Self::Ask => const { &[Figure::new("p50", "question and answer", "ns, p50")] },
            Self::Lookup => const { &[Figure::new("each", "lookup, two threads", "ns")] },
        }
    }
}

/// One row of a table.
pub struct Figure {
    /// As the programs print it.
    pub key: &'static str,
    pub label: &'static str,
    pub unit: &'static str,
}

impl Figure {
    const fn new(key: &'static str, label: &'static str, unit: &'static str) -> Self {
        Self { key, label, unit }
    }
}

/// What one table is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Start,
    Restart,
    Tree,
    Message,
}

impl Group {
    pub const ALL: [Self; 4] = [Self::Start, Self::Restart, Self::Tree, Self::Message];

    /// A word for it, on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Restart => "restart",
            Self::Tree => "tree",
            Self::Message => "message",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Start => "Start and stop",
            Self::Restart => "Restart",
            Self::Tree => "Trees",
            Self::Message => "Messages and names",
        }
    }

    pub fn works(self) -> &'static [Work] {
        let all: &'static [Work; 14] = &Work::ALL;
        match self {
            Self::Start => &all[..3],
            Self::Restart => &all[3..9],
            Self::Tree => &all[9..11],
            Self::Message => &all[11..],
        }
    }
}
