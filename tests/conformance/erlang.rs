//! Scenarios as Erlang terms, for `file:consult`, and the traces that Erlang writes.
//!
//! This module and `otp/conformance.erl` know the form of both files, and not their meaning.

use std::fmt::{self, Display, Formatter, Write as _};

use crate::compare::Trace;
use crate::scenario::{Scenario, SlowStart, Spec, Step, Sup, is_dynamic, split};

/// Returns a file of numbered scenarios.
pub(crate) fn terms(scenarios: &[Scenario]) -> String {
    let mut text = String::new();
    for (number, Scenario { tree, starts, slow_start, steps }) in scenarios.iter().enumerate() {
        let (tree, steps) = (Tree(tree), List(steps.iter().map(Term)));
        let starts = List(starts.iter().map(|(path, outcomes)| {
            let outcomes = List(outcomes.iter().map(|outcome| outcome.word())).to_string();
            format!("{{{path:?},{outcomes}}}")
        }));
        let slow = match slow_start {
            None => "none".to_owned(),
            Some(SlowStart { worker, sibling, end }) => {
                format!("{{{worker:?},{sibling:?},{}}}", end.word())
            }
        };
        // Writing to a string can't fail.
        let _ = writeln!(text, "{{{number},{tree},{starts},{slow},{steps}}}.");
    }
    text
}

/// Returns the release that wrote the lines, and a trace per scenario.
///
/// # Errors
///
/// The line that isn't part of the format.
pub(crate) fn traces(lines: &str) -> Result<(String, Vec<Trace>), String> {
    let mut lines = lines.lines();
    let release = lines.next().and_then(|line| line.strip_prefix("otp "));
    let release = release.ok_or("there is no release in the first line")?.to_owned();
    let mut traces: Vec<Trace> = Vec::new();
    for line in lines {
        if line == format!("scenario {}", traces.len()) {
            traces.push(Trace::default());
            continue;
        }
        let steps = traces.last_mut().map(|trace| &mut trace.steps);
        match steps {
            Some(steps) if line == "step" => steps.push(Vec::new()),
            Some(steps) if !steps.is_empty() => {
                steps.last_mut().expect("it is not empty").push(line.to_owned());
            }
            _ => return Err(format!("after {} scenarios: {line}", traces.len())),
        }
    }
    Ok((release, traces))
}

struct List<I>(I);

impl<I: Iterator<Item: Display> + Clone> Display for List<I> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('[')?;
        for (index, item) in self.0.clone().enumerate() {
            write!(f, "{}{item}", if index == 0 { "" } else { "," })?;
        }
        f.write_char(']')
    }
}

struct Tree<'a>(&'a Sup);

impl Display for Tree<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Sup { strategy, intensity, auto_shutdown, children } = self.0;
        let (strategy, auto) = (strategy.word(), auto_shutdown.word());
        let children = List(children.iter().map(Child));
        write!(f, "{{sup,{strategy},{intensity},{auto},{children}}}")
    }
}

struct Child<'a>(&'a Spec);

impl Display for Child<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Spec { id, restart, significant, shutdown, sup } = self.0;
        let (restart, shutdown) = (restart.word(), shutdown.word());
        write!(f, "{{{id},{restart},{significant},{shutdown},")?;
        match sup {
            Some(sup) => write!(f, "{}}}", Tree(sup)),
            None => f.write_str("worker}"),
        }
    }
}

struct Term<'a>(&'a Step);

impl Display for Term<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut call = |call: &str, path: &str| {
            let (parent, name) = split(path);
            write!(f, "{{{call},{parent:?},{name}}}")
        };
        match self.0 {
            Step::Start => f.write_str("start"),
            Step::StartDynamic(path) => call("start_dynamic", path),
            Step::TerminateChild(path) => call("terminate_child", path),
            Step::RestartChild(path) => call("restart_child", path),
            Step::DeleteChild(path) => call("delete_child", path),
            Step::ChildSpec(path) => call("child_spec", path),
            Step::NextStarts(path, outcomes) => {
                let outcomes = List(outcomes.iter().map(|outcome| outcome.word()));
                write!(f, "{{next_starts,{path:?},{outcomes}}}")
            }
            Step::Ends(ends) => {
                let ends =
                    List(ends.iter().map(|(path, end)| format!("{{{path:?},{}}}", end.word())));
                write!(f, "{{ends,{ends}}}")
            }
            Step::Kill(path) => write!(f, "{{kill,{path:?}}}"),
            Step::Stop(path) => write!(f, "{{stop,{path:?}}}"),
            Step::StartChild(path, spec) => {
                assert!(!is_dynamic(path), "its children are started from its template");
                write!(f, "{{start_child,{path:?},{}}}", Child(spec))
            }
            Step::WhichChildren(path) => write!(f, "{{which_children,{path:?}}}"),
            Step::CountChildren(path) => write!(f, "{{count_children,{path:?}}}"),
        }
    }
}
