// What a row says: the columns, their texts and their order, and everything else about a child in one line. Knows no element.
//
// 1. The line begins with the cause, and says nothing twice.
// 2. A row is a child, or a group of dynamic children, which has `members`.

import { countdown, duration, plural } from './format.js';
import { problemsOf, stateOf } from './model.js';

/** The states, the most urgent first. */
export const STATES = ['errored', 'restarting', 'unhealthy', 'held', 'deactivating', 'stopped', 'activating', 'resolved', 'discovered', 'active'];

/** Polls that take longer than this are problems. */
const LONG_POLL = 1_000;

/** How much of a limit is used: the child's own, or for a supervisor the one that its children share. */
function limitOf({ limit, supervisor }) {
  const { used, most, period } = limit ? { used: limit.restarts, most: limit.max_restarts, period: limit.period_ms }
    : supervisor ? { used: supervisor.restarts_in_period, most: supervisor.max_restarts, period: supervisor.period_ms } : {};
  return most === undefined || most === null ? null : { used, most, period };
}

/** Writes a limit: `2/3 in 1m`. */
export function limitText(node) {
  const limit = limitOf(node);
  return limit ? `${limit.used}/${limit.most} in ${duration(limit.period)}` : '';
}

/** Whether the next restart exceeds the limit of the child, or of the supervisor for its children. */
export const limitReached = (node) => Boolean(node.limit?.reached || node.supervisor?.limit_reached);

const has = (node, kind) => problemsOf(node).some((problem) => problem.kind === kind);
const members = (row) => row.members ?? [row];

function busyText({ busy, share }) {
  if (busy?.polling_ms > LONG_POLL) return `poll ${duration(busy.polling_ms)}`;
  return share >= 0.005 ? `${Math.round(100 * share)} %` : '';
}

/**
 * In the order of the page. `value` is what a column is sorted by, and `null` comes last in either direction; `first` is the
 * direction of the first click. A column with a `width` is hidden if no row has a text that is `worth` it, or if there is no room for
 * it: those with a lower `rank` come first. A limit that is nearly used up, and a child that isn't ready, are also in the details.
 */
export const COLUMNS = [
  { id: 'name', label: 'Name', first: 'ascending', value: (node) => node.name.toLowerCase() },
  { id: 'state', label: 'State', first: 'ascending', value: (node) => STATES.indexOf(stateOf(node)) },
  { id: 'for', label: 'For', first: 'ascending', value: (node) => -node.since_ms, text: (row, now) => (row.members ? '' : duration(now - row.since_ms)) },
  {
    id: 'restarts', label: 'Restarts', width: 62, rank: 1, first: 'descending',
    value: (node) => node.restarts,
    text: (row) => String(members(row).reduce((sum, node) => sum + node.restarts, 0) || ''),
  },
  {
    id: 'limit', label: 'Limit used', width: 82, rank: 4, first: 'descending', title: 'Restarts that count against the limit, of those allowed in the period',
    value: (node) => { const limit = limitOf(node); return limit && limit.used / limit.most; },
    text: (row) => (limitOf(row)?.used ? limitText(row) : ''),
    reached: (row) => limitReached(row) || has(row, 'limit'),
  },
  {
    id: 'mail', label: 'Mailbox', width: 66, rank: 2, first: 'descending', title: 'Messages that wait, of those that have room',
    value: ({ mailbox }) => mailbox && mailbox.len / mailbox.capacity,
    text: ({ mailbox }) => (mailbox ? `${mailbox.len}/${mailbox.capacity}` : ''),
    reached: (row) => (row.mailbox && row.mailbox.len >= row.mailbox.capacity) || has(row, 'mailbox'),
  },
  {
    id: 'busy', label: 'Busy', width: 62, rank: 3, first: 'descending', title: 'The part of the time that the child’s polls take',
    value: (node) => node.share ?? null,
    text: busyText,
    reached: (row) => row.busy?.polling_ms > LONG_POLL || has(row, 'long_poll'),
  },
  {
    id: 'ready', label: 'Ready', width: 46, rank: 5, first: 'ascending',
    value: (node) => Number(node.ready),
    text: (row) => (row.members ? '' : row.ready ? 'yes' : 'no'),
    worth: (row) => row.members === undefined && !row.ready,
  },
  { id: 'text', label: 'Details', first: 'ascending', value: (node, now) => causes(node, now)[0]?.toLowerCase() ?? null },
];

/** Compares children by a column, those without a value last, and equal ones by their place in the tree. */
export function comparison({ by, down }, now) {
  const { value } = COLUMNS.find(({ id }) => id === by);
  const known = new Map();
  const of = (node) => {
    if (!known.has(node)) known.set(node, value(node, now));
    return known.get(node);
  };
  return (a, b) => {
    const [x, y] = [of(a), of(b)];
    if (x === y) return a.place - b.place;
    if (x === null || y === null) return x === null ? 1 : -1;
    return (x < y ? -1 : 1) * (down ? -1 : 1);
  };
}

// The state, or the text next to it, already says that the child has failed.
const bare = (message) => message.replace(/^failed: /, '');

/** Why the last incarnation has failed, if it has. */
const failure = ({ last_exit: last }) => (last && !['normal', 'shutdown'].includes(last.reason.kind) ? bare(last.reason.message) : null);

/** Why a child is down. What a caller has asked for says more than the exit that followed. */
function down(node, problem) {
  if (node.explanation && node.explanation !== node.why) return node.explanation;
  if (node.healthy === false && node.problem) return node.problem;
  return problem?.cause ? bare(problem.cause) : failure(node);
}

/** What is wrong with a child, in words: the worst first. */
export function causes(node, now) {
  const problems = problemsOf(node);
  const texts = problems.map((problem, i) => {
    if (problem.kind === 'down') return down(node, problem) ?? (node.why || node.next || node.stopping ? null : problem.problem);
    if (problem.kind === 'failed') return `${bare(problem.cause ?? failure(node) ?? problem.problem)} · failed ${duration(now - (problem.since_ms ?? now))} ago`;
    // These are also columns, in red.
    return i > 0 && ['limit', 'mailbox'].includes(problem.kind) ? null : problem.problem;
  });
  if (!problems.length && !node.ready) texts.push(down(node));
  return texts.filter(Boolean);
}

/** How a stop that has begun goes on. */
function stopping({ by, reason, ends_ms: ends }, now) {
  const left = ends === null ? 'no limit to its grace' : `${countdown(ends - now)} of grace left`;
  return by || reason ? `stopped by ${[by ?? 'a call', reason].filter(Boolean).join(': ')} · ${left}` : left;
}

/** Everything else about a row in one line, the most urgent first. */
export function details(row, now) {
  if (row.members) return groupText(row);
  const parts = causes(row, now);
  if (row.next) parts.push(`retry in ${countdown(row.next.at_ms - now)} (attempt ${row.next.attempt})`);
  if (row.stopping) parts.push(stopping(row.stopping, now));
  if (row.explanation) parts.push(row.explanation);
  else if (row.held) parts.push('held');
  if (row.problem && row.healthy === false) parts.push(row.problem);
  if (row.alarming) parts.push(row.alarming);
  if (row.waits_for?.length) parts.push(`waits for ${row.waits_for.join(', ')}`);
  if (row.awaits) parts.push(`waits for ${row.awaits}`);
  if (row.status) parts.push(`“${row.status}”`);
  if (row.kids.length) {
    const { children, problems } = row.below;
    parts.push(plural(children, 'child', 'children') + (problems ? `, ${plural(problems, 'problem')}` : ''));
  }
  // Long ago, or it would be a problem.
  const last = row.ready && !problemsOf(row).length ? failure(row) : null;
  if (last) parts.push(`failed ${duration(now - row.last_exit.at_ms)} ago: ${last}`);
  return parts.filter((part, i) => !parts.slice(0, i).some((said) => said.includes(part))).join(' · ');
}

/** `500 active, 1 restarting`, the most frequent first. */
function groupText({ members: children }) {
  const counts = new Map();
  for (const child of children) counts.set(stateOf(child), (counts.get(stateOf(child)) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a).map(([state, count]) => `${count.toLocaleString('en')} ${state}`).join(', ');
}
