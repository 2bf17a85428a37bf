//! What a crate implements so that the probes can run on it.

use std::time::Duration;

use crate::script;

/// All probes, in the order of the table. The page says what has to be seen for a *yes*.
pub const PROBES: [&str; 15] = [
    "panic",
    "text",
    "error",
    "limit",
    "window",
    "group",
    "busy",
    "finished",
    "hung",
    "twice",
    "escalation",
    "start",
    "order",
    "clean-up",
    "reverse",
];

/// The probes of a `one_for_all`.
pub const GROUP: &str = "group busy finished hung twice";

/// A supervisor with children.
#[derive(Clone, Debug)]
pub struct Plan {
    /// `one_for_one` otherwise.
    pub one_for_all: bool,
    /// The largest number of restarts within `period`.
    pub restarts: u32,
    pub period: Duration,
    pub children: Vec<ChildPlan>,
}

#[derive(Clone, Copy, Debug)]
pub struct ChildPlan {
    pub name: &'static str,
    /// How long the child needs until it is ready.
    pub set_up: Duration,
    /// Whether the child stays down after it has ended well.
    pub transient: bool,
}

/// Names of probes, separated by spaces, and a note about them in the crate's own terms.
pub type Notes = &'static [(&'static str, &'static str)];

/// A *yes* with a remark, which may be empty, or what was seen instead.
pub type Seen = Result<String, String>;

/// A crate that supervises.
pub trait Peer: Sized {
    /// The package, as in the lockfile, and the packages that it can't be used without.
    const PACKAGES: &[&str];
    /// Whether tokio's paused clock works: not for crates that read `std`'s or have their own threads.
    const PAUSED: bool;
    /// Probes that can't run.
    const IMPOSSIBLE: Notes = &[];
    /// Probes that don't run, because the crate claims nothing of the kind.
    const UNCLAIMED: Notes = &[];
    /// Probes that run, and whose *no* doesn't count, because the crate claims nothing of the kind.
    const DISCLAIMED: Notes = &[];
    /// What it takes to stop what was started.
    type Tree;

    /// Starts a supervisor with children, in the way that the crate's documentation waits for.
    async fn start(plan: Plan) -> Self::Tree;

    /// Stops it, in the gentlest way that the crate has.
    async fn stop(tree: Self::Tree);

    /// Starts a supervisor with this one as its child and a limit of ten restarts.
    async fn start_nested(_inner: Plan) -> Self::Tree {
        unreachable!("`escalation` is not claimed")
    }

    async fn ask(probe: &str) -> Seen {
        script::ask::<Self>(probe).await
    }
}

/// The answer to a probe: a cell of the table, and a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub cell: String,
    pub note: String,
}

impl Verdict {
    pub fn new(cell: &str, note: impl Into<String>) -> Self {
        Self { cell: cell.into(), note: note.into() }
    }

    /// One line, for the process that runs the probes.
    pub fn line(&self) -> String {
        format!("{}\t{}", self.cell, self.note)
    }

    /// The reverse of [`line`](Self::line).
    pub fn parse(line: &str) -> Option<Self> {
        line.split_once('\t').map(|(cell, note)| Self::new(cell, note))
    }

    /// Runs a probe, unless the crate's notes answer it.
    pub async fn of<P: Peer>(probe: &str) -> Self {
        let note = |notes: Notes| {
            let is_about = |(probes, _): &&(&str, &str)| probes.split(' ').any(|it| it == probe);
            notes.iter().find(is_about).map(|(_, note)| *note)
        };
        if let Some(note) = note(P::IMPOSSIBLE) {
            return Self::new("–", note);
        }
        if let Some(note) = note(P::UNCLAIMED) {
            return Self::new("not claimed", note);
        }
        match (P::ask(probe).await, note(P::DISCLAIMED)) {
            (Ok(remark), _) => Self::new("yes", remark),
            (Err(seen), Some(note)) => Self::new("not claimed", format!("{note} (seen: {seen})")),
            (Err(seen), None) => Self::new("no", seen),
        }
    }
}
