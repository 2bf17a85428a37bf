//! What a test can see of a simulation.

use std::time::Instant;

use super::{Simulation, TranscriptLine};
use crate::core::child::ChildState;
use crate::core::{IncarnationNumber, Key};
use crate::lifecycle::Lifecycle;

impl Simulation {
    /// The number of ticks.
    pub(in crate::core) fn ticks(&self) -> usize {
        self.ticks
    }

    pub(in crate::core) fn finished(&self) -> bool {
        self.invariants.finished.is_some()
    }

    pub(in crate::core) fn is_up(&self) -> bool {
        self.invariants.up
    }

    /// The names of all existing children, in order of their keys.
    pub(in crate::core) fn present(&self) -> Vec<(String, Key)> {
        self.invariants
            .present()
            .map(|(key, child)| (child.declaration.name.to_string(), key))
            .collect()
    }

    pub(in crate::core) fn lifecycle(&self, name: &str) -> Lifecycle {
        self.invariants.children[&self.key(name)].lifecycle
    }

    /// The reason for the state of the child, as the view has it.
    pub(in crate::core) fn why(&self, name: &str) -> Option<&'static str> {
        self.machine.view(self.key(name), self.now).and_then(|view| view.why)
    }

    /// The child that must exit before the next one is cancelled.
    pub(in crate::core) fn stops_now(&self) -> Option<&str> {
        self.machine.stops_now().map(|key| self.fakes[&key].name())
    }

    pub(in crate::core) fn state(&self, key: Key) -> Option<ChildState> {
        self.machine.children().state(key)
    }

    pub(in crate::core) fn live(&self, key: Key) -> Option<IncarnationNumber> {
        let child = &self.invariants.children[&key];
        child.live.then_some(child.incarnation)
    }

    /// The incarnations that are live, as in `a#1 b#2`.
    pub(in crate::core) fn alive(&self) -> String {
        let live = self.invariants.children.values().filter(|child| child.live);
        let names = live.map(|child| format!("{}#{}", child.declaration.name, child.incarnation));
        names.collect::<Vec<_>>().join(" ")
    }

    /// The effects since the last call, as in `cancel b, start a#2`.
    pub(in crate::core) fn acts(&mut self) -> String {
        let acts = self.new_acts().into_iter().map(|(_, act)| act);
        acts.collect::<Vec<_>>().join(", ")
    }

    /// The effects since the last call, each with the time since the beginning.
    pub(in crate::core) fn timed(&mut self) -> String {
        let began = self.began;
        let acts = self.new_acts().into_iter().map(|(at, act)| format!("{:?} {act}", at - began));
        acts.collect::<Vec<_>>().join(", ")
    }

    /// The edges of one child since the last call, as in `active → errored (failed) → resolved`.
    pub(in crate::core) fn story(&mut self, name: &str) -> String {
        let key = self.key(name);
        let from = self.stories_read.insert(key, self.transcript.len()).unwrap_or(0);
        let mut story = String::new();
        for (_, line, text) in &self.transcript[from..] {
            if matches!(line, TranscriptLine::Edge(of) if *of == key) {
                let (_, edge) = text.split_once(": ").expect("a name and an edge");
                let (from, to) = edge.split_once(" → ").expect("an edge");
                if story.is_empty() {
                    story.push_str(from);
                }
                story.push_str(" → ");
                story.push_str(to);
            }
        }
        story
    }

    /// The causes of the starts since the last call, as in `a#1 initial, b#2 restart`.
    pub(in crate::core) fn causes(&mut self) -> String {
        let from = std::mem::replace(&mut self.read, self.transcript.len());
        let lines = self.transcript[from..].iter();
        let causes = lines.filter(|(_, line, _)| matches!(line, TranscriptLine::Cause));
        causes.map(|(_, _, text)| text.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Leaves out everything that has happened so far.
    pub(in crate::core) fn skip(&mut self) {
        self.read = self.transcript.len();
        let keys: Vec<_> = self.fakes.keys().copied().collect();
        self.stories_read = keys.into_iter().map(|key| (key, self.read)).collect();
    }

    pub(super) fn new_acts(&mut self) -> Vec<(Instant, String)> {
        let from = std::mem::replace(&mut self.read, self.transcript.len());
        let lines = self.transcript[from..].iter();
        let acts = lines.filter(|(_, line, _)| matches!(line, TranscriptLine::Act));
        acts.map(|(at, _, text)| (*at, text.clone())).collect()
    }

    pub(super) fn act(&mut self, text: String) {
        self.transcript.push((self.now, TranscriptLine::Act, text));
    }

    /// The end of the transcript, for a failed check.
    pub(super) fn tail(&self) -> String {
        let from = self.transcript.len().saturating_sub(60);
        let lines = self.transcript[from..].iter();
        let lines = lines.map(|(at, _, text)| format!("{:?} {text}", *at - self.began));
        lines.collect::<Vec<_>>().join("\n")
    }
}
