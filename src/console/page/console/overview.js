// The tab *Overview*: what is wrong with the selected child, the actions, its facts, and its last five minutes.
//
// 1. The order is that in which an operator asks: what is wrong, what can be done, how it is, what it is.

import { addressOf } from './address.js';
import { buttons, offered } from './actions.js';
import { callName, clock, countdown, duration, el, plural, reconcile, setText, took } from './format.js';
import { stateOf } from './model.js';
import { busyOf, drawPlot, mailboxOf, makePlot, restartsOf } from './samples.js';
import { limitReached, limitText } from './columns.js';

/** The most problems that are listed. */
const MOST = 10;

/** A point in time, relative and absolute: `2h15m ago, at 14:03:22`. */
const ago = (ms, now) => (ms ? `${duration(now - ms)} ago, at ${clock(ms)}` : null);

/** What a periodic child does now, and when its next run is due. */
function scheduled(schedule, now) {
  const running = schedule.running === 1 ? ' · running' : schedule.running ? ` · ${schedule.running} running` : '';
  const next = schedule.next_ms > now ? ` · next in ${countdown(schedule.next_ms - now)}, at ${clock(schedule.next_ms)}` : '';
  return running + next;
}

/** Who has asked a child to stop, and how much of its grace is left. */
export function stoppingText({ ends_ms: ends, by, reason }, now) {
  const asked = by ? `asked by ${by}${reason ? `: ${reason}` : ''}` : reason ? `because of ${reason}` : 'asked by its supervisor';
  const left = ends === null ? 'no bound on its grace' : ends > now ? `${countdown(ends - now)} of its grace left, until ${clock(ends)}` : 'its grace is over';
  return `${asked} · ${left}`;
}

/** Why a child is down. One that was given up shows the limit that its restarts would have exceeded. */
function why(node) {
  if (node.why !== 'given up') return node.explanation;
  const limit = limitText(node.limit ? node : { supervisor: node.parent?.supervisor });
  return node.explanation + (limit && !node.explanation.includes(limit) ? `; its limit on restarts is ${limit.replace(/^\d+\//, '')}` : '');
}

/** How much of its time a child is busy, and the longest time for which it has let no other task run. */
function busyText(node, now) {
  const { busy } = node;
  if (!busy?.polls) return null;
  const lived = now - (node.started_at_ms ?? node.created_at_ms);
  const share = lived > 0 ? `${(100 * busy.total_ms / lived).toFixed(1)} % of ${duration(lived)}, ` : '';
  const lasts = busy.polling_ms > 1_000 ? ` · a poll lasts since ${took(busy.polling_ms)}` : '';
  const long = busy.long_at_ms ? ` · the last poll of more than 1s ended ${ago(busy.long_at_ms, now)}` : '';
  return `${share}in ${plural(busy.polls, 'poll')}, the longest took ${took(busy.longest_ms)}${lasts}${long}`;
}

/** The facts, in order: a label and its text, or `null` to leave it out. */
function facts(node, now) {
  const exit = node.last_exit;
  const { supervisor, mailbox, schedule } = node;
  const counts = supervisor?.counts;
  const call = node.last_call;
  const run = schedule?.last;
  const yes = (on) => (on ? 'yes' : 'no');
  return [
    ['State', `${stateOf(node)} for ${duration(now - node.since_ms)}, since ${clock(node.since_ms)}`],
    ['Stopping', node.stopping && stoppingText(node.stopping, now)],
    ['Why', why(node)],
    ['Next restart', node.next && `in ${countdown(node.next.at_ms - now)}, at ${clock(node.next.at_ms)} · attempt ${node.next.attempt}, delay ${took(node.next.delay_ms)}`],
    ['Last exit', exit && exit.reason.message],
    ['', exit && `incarnation ${exit.incarnation}, ${ago(exit.at_ms, now)}${exit.lived_ms === null ? '' : `; it had lived ${took(exit.lived_ms)}`}`],
    ['Restarts', node.restarts || node.failures ? `${node.restarts}${node.failures ? `, ${plural(node.failures, 'failure')} in a row` : ''}` : '0'],
    ['Limit used', limitText(node) && limitText(node) + (limitReached(node) ? ' · reached' : '')],
    ['Held', node.held ? 'yes, until it is released' : null],
    ['Last call', call && `${callName(call.call)} by ${call.by ?? 'a call'}, ${ago(call.at_ms, now)}${call.reason ? `: ${call.reason}` : ''}`],
    ['Alarm', node.alarming],
    ['Health', node.healthy === null ? null : node.healthy ? 'healthy' : `unhealthy: ${node.problem ?? 'no reason given'}`],
    ['Status', node.status && `“${node.status}”`],
    ['Mailbox', mailbox && `${mailbox.len} of ${mailbox.capacity}${mailbox.full_since_ms ? `, nearly full for ${duration(now - mailbox.full_since_ms)}` : ''}`],
    ['Busy', busyText(node, now)],
    ['Ready', `${yes(node.ready)}${node.essential ? '' : ' (not essential)'}${node.significant ? ' (significant)' : ''}`],
    ['Requires', node.requires?.length ? node.requires.join(', ') + (node.waits_for?.length ? ` · waits for ${node.waits_for.join(', ')}` : '') : null],
    ['Children', counts && `${counts.specs}: ${counts.active} running, ${counts.restarting} restarting · ${node.below.children} in the subtree`],
    ['Schedule', schedule && `${schedule.plan}${scheduled(schedule, now)}`],
    ['Last run', run && `${run.problem ?? run.outcome}, ${ago(run.began_ms, now)}, took ${took(run.took_ms)}`],
    ['Runs', schedule && `${schedule.runs}${schedule.failed ? `, ${schedule.failed} failed` : ''}${schedule.skipped ? `, ${schedule.skipped} skipped` : ''}`],
    ['Incarnation', node.incarnation ? `${node.incarnation}${node.started_at_ms ? `, started ${ago(node.started_at_ms, now)}` : ''}` : 'never started'],
    ['Kind', `${node.kind}, ${supervisor?.strategy ?? node.strategy ?? node.restart}`],
    ['Version', node.version],
    ['Created', `${ago(node.created_at_ms, now) ?? 'unknown'}${node.declared ? '' : ' (added while running)'}`],
    ['Defined at', node.defined_at],
  ];
}

/** The problems of a child and below, its own first: `[{ node, problem }]`. */
function problemsOf(node) {
  const found = [];
  const stack = [node];
  while (stack.length) {
    const next = stack.pop();
    for (const problem of next.problems ?? []) found.push({ node: next, problem });
    // Only where there is something to find: a tree may have ten thousand children.
    if (next.below.problems) for (let i = next.kids.length - 1; i >= 0; i--) stack.push(next.kids[i]);
  }
  return found;
}

export class Overview {
  static id = 'overview';
  static label = 'Overview';
  every = 2_000;
  /** It shows the model, and only its plots wait for an answer. */
  instant = true;
  #page;
  #panel;
  /** The child whose samples are drawn. */
  #drawn = null;

  constructor(panel, page) {
    this.#page = page;
    this.#panel = panel;
    this.problems = el('ul', { class: 'problems', 'aria-label': 'Problems' });
    this.actions = el('div', { class: 'buttons', role: 'group', 'aria-label': 'Actions' });
    this.off = el('p', { class: 'muted' });
    this.facts = el('dl', { class: 'facts' });
    this.plots = el('div', { class: 'plots' }, makePlot(), makePlot(), makePlot());
    this.gone = el('div', { class: 'gone', hidden: true }, el('h3', { text: 'Removed in the last minute' }), el('ul'));
    panel.append(this.problems, this.actions, this.off, this.facts, this.plots, this.gone);
    this.actions.addEventListener('click', (event) => {
      const name = event.target.closest('[data-action]')?.dataset.action;
      if (name && page.node) page.actions.run(name, page.node);
    });
  }

  url = (path) => `api/samples?path=${encodeURIComponent(path)}`;

  concerns = () => false;

  restart() {
    for (const plot of this.plots.children) plot.hidden = true;
    this.#drawn = null;
  }

  show({ samples }) {
    this.#drawn = { path: this.#page.path, samples };
  }

  render(now) {
    const { node } = this.#page;
    if (!node) return false;
    this.#problems(node, now);
    const allowed = this.#page.info.actions ?? false;
    // None of them applies to the root.
    const on = allowed && Boolean(node.parent);
    this.actions.hidden = !on;
    this.off.hidden = on;
    setText(this.off, allowed ? 'The root has no supervisor that could restart or stop it. To end the program, choose Stop all…' : 'Actions are off: the program doesn’t allow them (Console::allow_actions).');
    if (on) buttons(this.actions, node, offered(node));

    const known = facts(node, now).filter(([, text]) => text !== null && text !== undefined && text !== '' && text !== false);
    // The label's key is that of the fact, and the term and its text are one group.
    reconcile(this.facts, known, ([label]) => label || 'more', ([label]) => el('div', {}, el('dt', { text: label }), el('dd')), (pair, [, text]) => setText(pair.lastElementChild, text));

    if (this.#drawn?.path === node.path) this.#draw(node, now);
    const removed = node.supervisor?.gone ?? [];
    this.gone.hidden = !removed.length;
    reconcile(this.gone.querySelector('ul'), [...removed].reverse(), (one) => `${one.path} ${one.at_ms}`, () => el('li'),
      (item, one) => setText(item, `${one.path.slice(node.path.length + 1)} · ${ago(one.at_ms, now)} · ${one.reason?.message ?? one.reason ?? 'removed'}`));
    const counts = [node.next?.at_ms, node.stopping?.ends_ms].filter(Boolean);
    return counts.some((at) => at > now && at - now < 10_000);
  }

  #problems(node, now) {
    const found = problemsOf(node);
    const rows = found.slice(0, MOST);
    if (found.length > MOST) rows.push({ more: found.length - MOST });
    reconcile(this.problems, rows, (row) => (row.more ? 'more' : `${row.node.path} ${row.problem.kind}`), (row) => (row.more ? el('li', { class: 'muted' })
      : el('li', {}, el('a', { onclick: (event) => { event.preventDefault(); this.#page.follow(row.node.path); } }), el('span', { class: 'cause' }), el('span', { class: 'muted num' }))),
    (item, row) => {
      if (row.more) return setText(item, `and ${plural(row.more, 'more problem')}: see Incidents`);
      const [link, text, since] = item.children;
      link.hidden = row.node === node;
      link.setAttribute('href', addressOf(row.node.path));
      setText(link, this.#page.short(row.node.path));
      setText(text, row.problem.problem);
      setText(since, row.problem.since_ms ? `since ${clock(row.problem.since_ms)}, for ${duration(now - row.problem.since_ms)}` : '');
    });
  }

  #draw(node, now) {
    const { samples } = this.#drawn;
    const below = (own, sum) => (node.kind === 'supervisor' ? sum : own);
    const [restarts, mailbox, busy] = this.plots.children;
    drawPlot(restarts, below('Restarts', 'Restarts below'), restartsOf(samples), now, ({ sum, high }) => `${sum} in total · max ${high}`);
    const depths = mailboxOf(samples);
    drawPlot(mailbox, below('Mailbox depth', 'Mailboxes below'), node.mailbox || depths.some(({ value }) => value) ? depths : [], now, ({ low, high, last }) => `min ${low} · max ${high} · now ${last}`);
    const shares = busyOf(samples);
    drawPlot(busy, below('Busy', 'Busy below'), node.busy || shares.some(({ value }) => value) ? shares : [], now, ({ high, last }) => `max ${high} % · now ${last} %`, 100);
  }
}
