//! What is asked of each crate, and what can be the answer.

/// A question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    Panic,
    Text,
    Error,
    Limit,
    Window,
    Group,
    Busy,
    Finished,
    Hung,
    Twice,
    Escalation,
    Start,
    Order,
    CleanUp,
    Reverse,
}

impl Probe {
    /// All questions, in the order of the table.
    pub const ALL: [Self; 15] = [
        Self::Panic,
        Self::Text,
        Self::Error,
        Self::Limit,
        Self::Window,
        Self::Group,
        Self::Busy,
        Self::Finished,
        Self::Hung,
        Self::Twice,
        Self::Escalation,
        Self::Start,
        Self::Order,
        Self::CleanUp,
        Self::Reverse,
    ];

    /// A word for it, in notes and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Panic => "panic",
            Self::Text => "text",
            Self::Error => "error",
            Self::Limit => "limit",
            Self::Window => "window",
            Self::Group => "group",
            Self::Busy => "busy",
            Self::Finished => "finished",
            Self::Hung => "hung",
            Self::Twice => "twice",
            Self::Escalation => "escalation",
            Self::Start => "start",
            Self::Order => "order",
            Self::CleanUp => "clean-up",
            Self::Reverse => "reverse",
        }
    }

    /// What has to be seen for a yes.
    pub fn question(self) -> &'static str {
        match self {
            Self::Panic => "A child that panics is started again.",
            Self::Text => "The text of the panic reaches the user: in a call, a value or the log.",
            Self::Error => "A child that returns an error is started again.",
            Self::Limit => "With a limit of 3, the third restart is granted and the fourth isn't.",
            Self::Window => {
                "With a limit of 5 in a second, ten crashes 0.6 s apart are restarted: no second \
                 holds more than two."
            }
            Self::Group => {
                "One of three children of a `one_for_all` crashes: each is started once more, and \
                 there is one of each."
            }
            Self::Busy => "The same while a sibling blocks its thread for 60 ms.",
            Self::Finished => {
                "The same after a transient sibling has ended well (it may come back or not)."
            }
            Self::Hung => "The same while a sibling hangs at an `await`.",
            Self::Twice => {
                "Two of the three crash at once, with a limit of 1: one restart of the group, and \
                 each is started once more."
            }
            Self::Escalation => {
                "A supervisor that gives up is a failure that its parent handles: its child is \
                 started anew."
            }
            Self::Start => {
                "When the start returns, all three children are ready: their set-up has ended."
            }
            Self::Order => "Each child starts when the set-up of the one before has ended.",
            Self::CleanUp => "When the stop returns, the clean-up of each child has ended.",
            Self::Reverse => "Children are stopped one after the other, the last one first.",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|probe| probe.name() == name)
    }
}

/// An answer, with what there is to say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does. What is said is where or how, or nothing.
    Yes(String),
    /// It was seen not to. What is said was counted.
    No(String),
    /// The crate doesn't say that it does, or says that it doesn't: in its own terms.
    NotClaimed(String),
    /// There is no way to put the question.
    CannotBeAsked(String),
}

impl Verdict {
    pub fn yes() -> Self {
        Self::Yes(String::new())
    }

    pub fn not_claimed(said: &str) -> Self {
        Self::NotClaimed(said.into())
    }

    pub fn cannot_be_asked(why: &str) -> Self {
        Self::CannotBeAsked(why.into())
    }

    /// What stands in the table.
    pub fn cell(&self) -> &'static str {
        match self {
            Self::Yes(_) => "yes",
            Self::No(_) => "no",
            Self::NotClaimed(_) => "not claimed",
            Self::CannotBeAsked(_) => "–",
        }
    }

    pub fn said(&self) -> &str {
        match self {
            Self::Yes(said)
            | Self::No(said)
            | Self::NotClaimed(said)
            | Self::CannotBeAsked(said) => said,
        }
    }

    /// One line, for the process that asked.
    pub fn line(&self) -> String {
        let kind = match self {
            Self::Yes(_) => "yes",
            Self::No(_) => "no",
            Self::NotClaimed(_) => "not claimed",
            Self::CannotBeAsked(_) => "cannot be asked",
        };
        format!("{kind}\t{}", self.said())
    }

    /// The reverse of [`Self::line`].
    pub fn from_line(line: &str) -> Option<Self> {
        let (kind, said) = line.split_once('\t')?;
        let verdict = match kind {
            "yes" => Self::Yes,
            "no" => Self::No,
            "not claimed" => Self::NotClaimed,
            "cannot be asked" => Self::CannotBeAsked,
            _ => return None,
        };
        Some(verdict(said.into()))
    }
}
