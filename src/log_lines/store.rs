//! Lines by child, within limits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;

use super::line::LogLine;
use crate::path::Path;

#[derive(Clone, Copy)]
pub(super) struct StoreLimits {
    /// Of one incarnation.
    pub(super) lines: usize,
    pub(super) children: usize,
    /// Of all lines.
    pub(super) bytes: usize,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self { lines: 100, children: 1_000, bytes: 16 * 1024 * 1024 }
    }
}

#[derive(Default)]
pub(super) struct Store {
    pub(super) limits: StoreLimits,
    children: HashMap<Path, ChildLog>,
    /// The children by their last line, dynamic children first. The first one goes first: lines of `conn#7` push out
    /// none of a declared child.
    by_age: BTreeMap<(bool, u64), Path>,
    /// Of all lines.
    bytes: usize,
    /// The number of the last line.
    seq: u64,
}

struct ChildLog {
    last: u64,
    is_declared: bool,
    current: Block,
    previous: Block,
}

/// The lines of one incarnation, oldest first, each with its number.
#[derive(Default)]
struct Block {
    incarnation: u32,
    /// Its span has begun.
    has_begun: bool,
    lines: VecDeque<(u64, Arc<LogLine>)>,
}

impl Block {
    fn lines(&self) -> Vec<Arc<LogLine>> {
        self.lines.iter().map(|(_, line)| Arc::clone(line)).collect()
    }
}

/// The incarnation that a line belongs to.
#[derive(Clone, Copy)]
pub(super) struct Of {
    /// `None`: the newest one.
    pub(super) incarnation: Option<u32>,
    /// Whether the line was logged in the span of the incarnation. If not, verger has named it.
    pub(super) in_span: bool,
}

impl Store {
    /// Records that an incarnation of a child begins. Does nothing for a child without lines.
    pub(super) fn begin(&mut self, child: &Path, incarnation: u32) {
        let Some(log) = self.children.get_mut(child) else { return };
        // A line of the supervisor may have named it already.
        if log.current.incarnation != incarnation || log.current.has_begun {
            self.bytes -= log.rotate(incarnation);
        }
        log.current.has_begun = true;
    }

    /// Adds a line, whose incarnation is replaced by the one found.
    pub(super) fn push(&mut self, mut line: LogLine, of: Of) {
        self.seq += 1;
        let seq = self.seq;
        if let Some(log) = self.children.get(&line.path) {
            self.by_age.remove(&(log.is_declared, log.last));
        }
        self.by_age.insert((is_declared(&line.path), seq), line.path.clone());
        let log = self
            .children
            .entry(line.path.clone())
            .or_insert_with(|| ChildLog::new(of, is_declared(&line.path)));
        log.last = seq;
        let (block, freed) = log.block(of);
        self.bytes -= freed;
        line.incarnation = of.incarnation.unwrap_or(block.incarnation);
        self.bytes += line.bytes();
        block.lines.push_back((seq, Arc::new(line)));
        while block.lines.len() > self.limits.lines {
            self.bytes -= block.lines.pop_front().map_or(0, |(_, line)| line.bytes());
        }
        self.shrink();
    }

    fn shrink(&mut self) {
        while self.children.len() > self.limits.children
            || self.bytes > self.limits.bytes && self.children.len() > 1
        {
            let Some((_, oldest)) = self.by_age.pop_first() else { break };
            self.bytes -= self.children.remove(&oldest).map_or(0, |log| log.bytes());
        }
        let Some(log) = self.by_age.values().next().and_then(|it| self.children.get_mut(it)) else {
            return;
        };
        while self.bytes > self.limits.bytes {
            let block =
                if log.previous.lines.is_empty() { &mut log.current } else { &mut log.previous };
            let Some((_, line)) = block.lines.pop_front() else { break };
            self.bytes -= line.bytes();
        }
    }

    /// Returns the newest incarnation, its lines and those of the one before.
    #[expect(clippy::type_complexity, reason = "three parts of one value, made by its only caller")]
    pub(super) fn of(&self, child: &Path) -> Option<(u32, Vec<Arc<LogLine>>, Vec<Arc<LogLine>>)> {
        let ChildLog { current, previous, .. } = self.children.get(child)?;
        Some((current.incarnation, current.lines(), previous.lines()))
    }

    /// Returns the newest lines of some children, oldest first.
    pub(super) fn newest(&self, max: usize, of: impl Fn(&Path) -> bool) -> Vec<Arc<LogLine>> {
        let logs = self.children.iter().filter(|(path, _)| of(path)).map(|(_, log)| log);
        let mut blocks: Vec<_> = logs
            .flat_map(|log| [&log.current, &log.previous])
            .map(|block| block.lines.iter().rev().peekable())
            .collect();
        let mut heads: BinaryHeap<_> = blocks
            .iter_mut()
            .enumerate()
            .filter_map(|(index, lines)| Some((lines.peek()?.0, Reverse(index))))
            .collect();
        let mut found = Vec::new();
        while found.len() < max
            && let Some((_, Reverse(index))) = heads.pop()
        {
            let Some(lines) = blocks.get_mut(index) else { break };
            found.extend(lines.next().map(|(_, line)| Arc::clone(line)));
            heads.extend(lines.peek().map(|(seq, _)| (*seq, Reverse(index))));
        }
        found.reverse();
        found
    }

    /// Returns the number of children, and the bytes of all lines.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.children.len(), self.bytes)
    }
}

/// Whether no child on the way to this one is dynamic.
fn is_declared(path: &Path) -> bool {
    !path.as_str().contains('#')
}

impl ChildLog {
    fn new(of: Of, is_declared: bool) -> Self {
        let Of { incarnation, in_span } = of;
        let incarnation = incarnation.unwrap_or_default();
        let current = Block { incarnation, has_begun: in_span, lines: VecDeque::new() };
        Self { last: 0, is_declared, current, previous: Block::default() }
    }

    fn bytes(&self) -> usize {
        let lines = self.current.lines.iter().chain(&self.previous.lines);
        lines.map(|(_, line)| line.bytes()).sum()
    }

    /// Begins a new incarnation. Returns the bytes of the lines that this frees.
    fn rotate(&mut self, incarnation: u32) -> usize {
        let next = Block { incarnation, ..Block::default() };
        let current = std::mem::replace(&mut self.current, next);
        // An incarnation without lines doesn't replace the previous one.
        if current.lines.is_empty() {
            return 0;
        }
        let before = std::mem::replace(&mut self.previous, current);
        before.lines.iter().map(|(_, line)| line.bytes()).sum()
    }

    /// Returns the lines that a line joins, and the bytes that this frees.
    fn block(&mut self, of: Of) -> (&mut Block, usize) {
        let Of { incarnation: Some(incarnation), in_span } = of else {
            return (&mut self.current, 0);
        };
        if incarnation == self.current.incarnation {
            self.current.has_begun |= in_span;
            return (&mut self.current, 0);
        }
        // A lower number in a line that isn't in a span: a supervisor was removed, and added again.
        let is_next = incarnation > self.current.incarnation
            || incarnation != self.previous.incarnation && !self.current.has_begun && !in_span;
        if !is_next {
            // An earlier incarnation may still run, and log.
            return (&mut self.previous, 0);
        }
        let freed = self.rotate(incarnation);
        self.current.has_begun = in_span;
        (&mut self.current, freed)
    }
}
