// The right side: tabs about the selected child and what is below it. Knows the GET half of the API, but for snapshot and stream.
//
// 1. Only the open tab fetches, at most once a second, and only while the page is visible.
// 2. An answer that comes after another child or tab was selected is dropped.

import { buttons, offered } from './actions.js';
import { clock, countdown, duration, el, plain, plural, reconcile, setAttr, setText, shape, svg, took } from './format.js';
import { stateOf } from './model.js';
import { limitReached, limitText } from './tree.js';

const TABS = [['overview', 'Overview'], ['events', 'Events'], ['letters', 'Dead letters'], ['config', 'Config'], ['log', 'Log']];
const PLOT = { width: 240, height: 36, least: 20_000, most: 5 * 60_000 };

const below = (path, root) => path === root || path.startsWith(`${root}/`);

/** A point in time, relative and absolute: `2h15m ago, at 14:03:22`. */
const ago = (ms, now) => (ms ? `${duration(now - ms)} ago, at ${clock(ms)}` : null);

/** What a periodic child does now, and when its next run is due. */
function scheduled(schedule, now) {
  const running = schedule.running === 1 ? ' · running' : schedule.running ? ` · ${schedule.running} running` : '';
  const next = schedule.next_ms > now ? ` · next in ${countdown(schedule.next_ms - now)}, at ${clock(schedule.next_ms)}` : '';
  return running + next;
}

/** The facts of the tab *Overview*, in order: a label and its text, or `null` to leave it out. */
function facts(node, now) {
  const exit = node.last_exit;
  const { supervisor } = node;
  const counts = supervisor?.counts;
  const call = node.last_call;
  const { schedule } = node;
  const run = schedule?.last;
  const yes = (on) => (on ? 'yes' : 'no');
  return [
    ['State', `${stateOf(node)} for ${duration(now - node.since_ms)}, since ${clock(node.since_ms)}`],
    ['Why', node.explanation],
    ['Next restart', node.next && `in ${countdown(node.next.at_ms - now)}, at ${clock(node.next.at_ms)} · attempt ${node.next.attempt}, delay ${took(node.next.delay_ms)}`],
    ['Schedule', schedule && `${schedule.plan}${scheduled(schedule, now)}`],
    ['Last run', run && `${run.problem ?? run.outcome}, ${ago(run.began_ms, now)}, took ${took(run.took_ms)}`],
    ['Runs', schedule && `${schedule.runs}${schedule.failed ? `, ${schedule.failed} failed` : ''}${schedule.skipped ? `, ${schedule.skipped} skipped` : ''}`],
    ['Status', node.status && `“${node.status}”`],
    ['Alarm', node.alarming],
    ['Health', node.healthy === null ? null : node.healthy ? 'healthy' : `unhealthy: ${node.problem ?? 'no reason given'}`],
    ['Ready', `${yes(node.ready)}${node.essential ? '' : ' (not essential)'}${node.significant ? ' (significant)' : ''}`],
    ['Last exit', exit && exit.reason.message],
    ['', exit && `incarnation ${exit.incarnation}, ${ago(exit.at_ms, now)}${exit.lived_ms === null ? '' : `; it had lived ${took(exit.lived_ms)}`}`],
    ['Restarts', node.restarts || node.failures ? `${node.restarts}${node.failures ? `, ${plural(node.failures, 'failure')} in a row` : ''}` : '0'],
    ['Limit used', limitText(node) && limitText(node) + (limitReached(node) ? ' · reached' : '')],
    ['Mailbox', node.mailbox && `${node.mailbox.len} of ${node.mailbox.capacity}`],
    ['Incarnation', node.incarnation ? `${node.incarnation}${node.started_at_ms ? `, started ${ago(node.started_at_ms, now)}` : ''}` : 'never started'],
    ['Created', `${ago(node.created_at_ms, now) ?? 'unknown'}${node.declared ? '' : ' (added while running)'}`],
    ['Kind', `${node.kind}, ${supervisor?.strategy ?? node.strategy ?? node.restart}`],
    ['Children', counts && `${counts.specs}: ${counts.active} running, ${counts.restarting} restarting · ${node.below.children} in the subtree`],
    ['Requires', node.requires?.length ? node.requires.join(', ') + (node.waits_for?.length ? ` · waits for ${node.waits_for.join(', ')}` : '') : null],
    ['Held', node.held ? 'yes, until it is released' : null],
    ['Last call', call && `${call.call} by ${call.by ?? 'a call'}, ${ago(call.at_ms, now)}${call.reason ? `: ${call.reason}` : ''}`],
    ['Version', node.version],
    ['Defined at', node.defined_at],
  ];
}

/** Draws values over time as a line, with their least, greatest and last value in words. */
function drawPlot(figure, name, points, now) {
  const values = points.map((point) => point.value);
  const [low, high, last] = [Math.min(...values), Math.max(...values), values.at(-1)];
  const words = `min ${low} · max ${high} · now ${last}`;
  const span = Math.min(PLOT.most, Math.max(PLOT.least, now - points[0].at));
  const x = (at) => Math.max(0, PLOT.width - ((now - at) / span) * PLOT.width);
  const y = (value) => PLOT.height - 2 - (high ? (value / high) * (PLOT.height - 4) : 0);
  // A step per sample: a counter has no values in between.
  let path = `M${x(points[0].at).toFixed(1)} ${y(points[0].value).toFixed(1)}`;
  for (const point of points.slice(1)) path += `H${x(point.at).toFixed(1)}V${y(point.value).toFixed(1)}`;
  path += `H${PLOT.width}`;
  setAttr(figure.querySelector('path'), 'd', path);
  setAttr(figure.querySelector('svg'), 'aria-label', `${name}, last ${duration(span)}: ${words}`);
  setText(figure.querySelector('b'), name);
  setText(figure.querySelector('.span'), ` in ${duration(span)}`);
  setText(figure.querySelector('.words'), words);
}

function makePlot(name) {
  const { width, height } = PLOT;
  return el('figure', { class: 'plot' },
    el('figcaption', {}, el('span', {}, el('b', { text: name }), el('span', { class: 'span' })), el('span', { class: 'words muted' })),
    svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', preserveAspectRatio: 'none' },
      svg('line', { x1: 0, x2: width, y1: height - 2, y2: height - 2, class: 'axis' }), svg('path', { class: 'line' })));
}

/** Restarts between samples, from counters that only grow while the children are the same. */
const steps = (samples) => samples.map((sample, i) => ({ at: sample.at, value: i ? Math.max(0, sample.restarts - samples[i - 1].restarts) : 0 }));

export class Detail {
  #model;
  #actions;
  #path = null;
  #tab = 'overview';
  #panels = new Map();
  #tabs = new Map();
  #last = { key: null, at: 0, seen: null };
  #busy = false;

  constructor(pane, model, actions) {
    this.#model = model;
    this.#actions = actions;
    this.title = pane.querySelector('h2');
    const list = pane.querySelector('[role=tablist]');
    const panels = pane.querySelector('.panels');
    for (const [id, label] of TABS) {
      const tab = el('button', { type: 'button', role: 'tab', id: `tab-${id}`, 'aria-controls': `panel-${id}`, text: label, onclick: () => this.open(id) });
      const panel = el('div', { role: 'tabpanel', id: `panel-${id}`, class: `panel ${id}`, 'aria-labelledby': `tab-${id}`, tabindex: 0, hidden: true });
      list.append(tab);
      panels.append(panel);
      this.#tabs.set(id, tab);
      this.#panels.set(id, panel);
    }
    list.addEventListener('keydown', (event) => this.#tabKey(event));
    this.#makeOverview();
    this.open('overview');
  }

  /** The name of the open tab. */
  get tab() {
    return this.#tab;
  }

  /** Shows another child. */
  select(path) {
    if (this.#path === path) return;
    this.#path = path;
    this.render();
    this.refresh();
  }

  /** Opens a tab, and moves the focus to it if `focus` is set. */
  open(id, focus = false) {
    this.#tab = id;
    for (const [name, tab] of this.#tabs) {
      setAttr(tab, 'aria-selected', String(name === id));
      tab.tabIndex = name === id ? 0 : -1;
      this.#panels.get(name).hidden = name !== id;
    }
    if (focus) this.#tabs.get(id).focus();
    this.render();
    this.refresh();
  }

  /** Writes what the model knows: the head, and the tab *Overview*. */
  render() {
    const node = this.#model.nodes.get(this.#path);
    if (!node) return;
    const state = stateOf(node);
    if (this.title.dataset.shown !== node.path + state) {
      this.title.dataset.shown = node.path + state;
      this.title.dataset.state = state;
      const at = node.path.length - node.name.length;
      this.title.replaceChildren(shape(state), el('span', { class: 'path' }, el('span', { class: 'muted', text: node.path.slice(0, at) }), node.name), el('span', { class: 'word', text: state }));
    }
    if (this.#tab === 'overview') this.#overview(node);
  }

  /** Fetches what the open tab shows, if that is due. */
  async refresh() {
    const { info } = this.#actions;
    if (!this.#path || this.#tab === 'overview' || document.hidden || !info) return;
    if (this.#tab === 'log' && !info.log) {
      this.#note(this.#panels.get('log'), 'No log lines are kept: the program has given the console no LogLines (Console::log_lines).');
      return;
    }
    const key = `${this.#tab} ${this.#path}`;
    const fresh = key !== this.#last.key;
    if (!fresh && (this.#busy || Date.now() - this.#last.at < 1000)) return;
    this.#last = { key, at: Date.now(), seen: fresh ? null : this.#last.seen };
    this.#busy = true;
    try {
      const answer = await this.#fetch();
      const seen = JSON.stringify(answer);
      if (key !== this.#last.key || seen === this.#last.seen) return;
      this.#last.seen = seen;
      this[`_${this.#tab}`](this.#panels.get(this.#tab), answer);
    } catch (error) {
      if (key === this.#last.key && error.problem) this.#note(this.#panels.get(this.#tab), error.message);
    } finally {
      this.#busy = false;
    }
  }

  async #fetch() {
    const path = encodeURIComponent(this.#path);
    const whole = this.#model.nodes.get(this.#path)?.kids.length;
    const url = {
      events: `api/events?under=${path}`,
      letters: 'api/dead-letters',
      config: 'api/config',
      // A supervisor has few lines of its own: show those of its subtree.
      log: whole ? 'api/log' : `api/log?path=${path}`,
    }[this.#tab];
    const response = await fetch(url);
    const answer = await response.json();
    if (!response.ok) throw Object.assign(new Error(answer.error), { problem: answer.problem });
    return answer;
  }

  #tabKey(event) {
    const ids = TABS.map(([id]) => id);
    const at = ids.indexOf(this.#tab);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: ids.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.open(ids[(to + ids.length) % ids.length], true);
  }

  #note(panel, text) {
    panel.replaceChildren(el('p', { class: 'muted empty', text }));
  }

  #makeOverview() {
    const panel = this.#panels.get('overview');
    this.overview = {
      actions: el('div', { class: 'buttons', role: 'group', 'aria-label': 'Actions' }),
      off: el('p', { class: 'muted' }),
      plots: el('div', { class: 'plots' }, makePlot('Restarts'), makePlot('Mailbox depth')),
      facts: el('dl', { class: 'facts' }),
      gone: el('div', { class: 'gone' }, el('h3', { text: 'Removed in the last minute' }), el('ul')),
    };
    const { actions, off, plots, facts: list, gone } = this.overview;
    panel.append(actions, off, list, plots, gone);
    actions.addEventListener('click', (event) => {
      const name = event.target.closest('[data-action]')?.dataset.action;
      const node = this.#model.nodes.get(this.#path);
      if (name && node) this.#actions.run(name, node);
    });
  }

  #overview(node) {
    const { actions, off, plots, facts: list, gone } = this.overview;
    const { now } = this.#model;
    const on = this.#actions.info?.actions ?? false;
    actions.hidden = !on;
    off.hidden = on;
    setText(off, 'Actions are off: the program doesn’t allow them (Console::allow_actions).');
    if (on) buttons(actions, node, offered(node));

    const known = facts(node, now).filter(([, text]) => text !== null && text !== undefined && text !== '' && text !== false);
    // A list of pairs: the label's key is that of the fact, and the term and its text are one group.
    reconcile(list, known, ([label]) => label || 'more', ([label]) => el('div', {}, el('dt', { text: label }), el('dd')), (pair, [, text]) => setText(pair.lastElementChild, text));

    const samples = this.#model.samples(node.path);
    const [restarts, mail] = plots.children;
    restarts.hidden = samples.length < 2;
    mail.hidden = samples.length < 2 || !samples.some((sample) => sample.mail) && !node.mailbox;
    if (!restarts.hidden) drawPlot(restarts, node.kids.length ? 'Restarts below' : 'Restarts', steps(samples), now);
    if (!mail.hidden) drawPlot(mail, node.kids.length ? 'Mailboxes below' : 'Mailbox depth', samples.map(({ at, mail: value }) => ({ at, value })), now);

    const removed = node.supervisor?.gone ?? [];
    gone.hidden = !removed.length;
    reconcile(gone.querySelector('ul'), [...removed].reverse(), (one) => `${one.path} ${one.at_ms}`, () => el('li'),
      (item, one) => setText(item, `${one.path.slice(node.path.length + 1)} · ${ago(one.at_ms, now)} · ${one.reason?.message ?? one.reason ?? 'removed'}`));
  }

  /** Makes a panel that is a note and a list, once, and returns both. */
  #list(panel, tag = 'ol') {
    if (!panel.querySelector('.entries')) panel.replaceChildren(el('p', { class: 'muted note' }), el(tag, { class: 'entries' }));
    return [panel.querySelector('.note'), panel.querySelector('.entries')];
  }

  _events(panel, { missed, entries }) {
    const [note, list] = this.#list(panel);
    setText(note, [missed ? `${plural(missed, 'event')} missed.` : '', entries.length ? '' : 'No events since the program started.'].join(' ').trim());
    const newest = [...entries].reverse();
    reconcile(list, newest, (entry) => `${entry.path} ${entry.first_at_ms} ${entry.text}`, (entry) => el('li', { 'data-level': entry.level },
      el('time', { class: 'num' }), el('span', { class: 'what' }, el('b', { text: entry.path === this.#path ? '' : this.#short(entry.path) }), el('span')), el('span', { class: 'count num' })),
    (item, entry) => {
      const [time, what, count] = item.children;
      setText(time, clock(entry.last_at_ms));
      setAttr(time, 'title', `first ${clock(entry.first_at_ms)}, last ${clock(entry.last_at_ms)}, incarnation ${entry.incarnation}`);
      setText(what.lastElementChild, (entry.level === 'info' ? '' : `${entry.level}: `) + entry.text);
      setText(count, entry.count > 1 ? `×${entry.count} in ${duration(entry.last_at_ms - entry.first_at_ms)}` : '');
    });
  }

  _letters(panel, { missed, letters }) {
    const [note, list] = this.#list(panel);
    const here = letters.filter((letter) => below(letter.path, this.#path)).reverse();
    setText(note, [missed ? `${plural(missed, 'letter')} missed.` : '', here.length ? '' : 'No dead letters here.'].join(' ').trim());
    const { info } = this.#actions;
    reconcile(list, here, (letter) => letter.id, (letter) => {
      const item = el('li', {}, el('time', { class: 'num', text: clock(letter.at_ms) }),
        el('span', { class: 'what' }, el('b', { text: letter.path === this.#path ? '' : this.#short(letter.path) }),
          el('span', { text: `${String(letter.reason).replaceAll('_', ' ')}: ${letter.event_type ?? 'a message'}` }),
          letter.error && el('span', { class: 'more', text: letter.error }), letter.payload && el('code', { class: 'more', text: letter.payload })));
      if (info.actions && info.replay) {
        const button = el('button', { type: 'button', text: 'Replay', onclick: () => (letter.replayable ? this.#actions.replay(letter) : this.#actions.announce('This letter can’t be replayed: its message wasn’t kept.', true)) });
        setAttr(button, 'aria-disabled', letter.replayable ? null : 'true');
        setAttr(button, 'title', letter.replayable ? null : 'its message wasn’t kept');
        item.append(button);
      }
      return item;
    });
  }

  _config(panel, { values }) {
    const node = this.#model.nodes.get(this.#path);
    const rows = [];
    for (const [name, part] of Object.entries(node?.policy ?? {})) {
      const place = node.configured?.[name];
      rows.push({ path: node.path, key: name.replaceAll('_', ' '), value: plain(part.value), source: place ? `${part.source}, ${place}` : part.source });
    }
    rows.push(...values.filter((value) => below(value.path, this.#path)));
    if (!rows.length) return this.#note(panel, 'Nothing is configured here.');
    const table = el('table', { class: 'config' }, el('thead', {}, el('tr', {}, ...['Key', 'Value', 'Source'].map((text) => el('th', { scope: 'col', text })))));
    let group = null;
    for (const row of rows) {
      if (group?.dataset.path !== row.path) {
        table.append(group = el('tbody', { 'data-path': row.path }));
        if (row.path !== this.#path) group.append(el('tr', {}, el('th', { colspan: 3, scope: 'rowgroup', text: this.#short(row.path) })));
      }
      group.append(el('tr', {}, el('td', { text: row.key }), el('td', {}, el('code', { text: plain(row.value) })), el('td', { class: 'muted', text: row.source })));
    }
    panel.replaceChildren(table);
  }

  _log(panel, answer) {
    const [note, list] = this.#list(panel);
    const bottom = panel.scrollTop + panel.clientHeight >= panel.scrollHeight - 20;
    const lines = answer.lines?.filter((line) => below(line.path, this.#path)) ?? [...answer.previous, ...answer.current];
    const split = answer.lines || !answer.previous.length ? [] : [{ heading: `Incarnation ${answer.previous[0].incarnation}, ended` }];
    const items = split.length ? [...split, ...answer.previous, { heading: `Incarnation ${answer.incarnation}, the current one` }, ...answer.current] : lines;
    setText(note, lines.length ? '' : 'No lines yet.');
    const seen = new Map();
    const key = (line) => {
      const name = line.heading ?? `${line.path} ${line.incarnation} ${line.at_ms} ${line.message} ${line.fields}`;
      seen.set(name, (seen.get(name) ?? 0) + 1);
      return `${name} ${seen.get(name)}`;
    };
    reconcile(list, items, key, (line) => (line.heading ? el('li', { class: 'heading', text: line.heading })
      : el('li', { 'data-level': line.level.toLowerCase() }, el('time', { class: 'num', text: clock(line.at_ms) }), el('span', { class: 'level', text: line.level }),
        el('span', { class: 'what', title: line.target }, line.path === this.#path ? null : el('b', { text: this.#short(line.path) }), el('span', { text: line.message }), line.fields ? el('span', { class: 'muted fields', text: line.fields }) : null))));
    if (bottom) panel.scrollTop = panel.scrollHeight;
  }

  /** A path as seen from the selected child. */
  #short(path) {
    return path.startsWith(`${this.#path}/`) ? path.slice(this.#path.length + 1) : path;
  }
}
