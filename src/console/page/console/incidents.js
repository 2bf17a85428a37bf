// The tab *Incidents*, which opens first: what is wrong now and what was in the last fifteen minutes, why, and what was changed before.
//
// 1. The program decides what an incident is. The page orders them by the selected child, and leaves none out.
// 2. A cause is shown whole.

import { addressOf } from './address.js';
import { clock, countdown, duration, el, plural, reconcile, setAttr, setText, shape } from './format.js';
import { entryText } from './history.js';
import { copyButton } from './lists.js';
import { stateOf } from './model.js';
import { drawPlot, makePlot, restartsOf, SamplesOfMany } from './samples.js';

/** The most incidents that exist as elements until the reader asks for more, and the most that have a plot. */
const STEP = 50;
const PLOTS = 20;

/** The problems that say more than the cause. */
const others = (incident) => [...new Set(incident.problems.map(({ problem }) => problem))].filter((text) => !incident.cause || !text.includes(incident.cause));

/** Since when, how often, and when the next attempt is due. */
function factsOf(incident, now) {
  const { since_ms: since, last_ms: last, failures, attempt, next_ms: next, children } = incident;
  const when = incident.now ? `since ${clock(since)}, for ${duration(now - since)}` : since === last || clock(since) === clock(last)
    ? `at ${clock(since)}, ${duration(now - last)} ago` : `from ${clock(since)} to ${clock(last)}, ${duration(now - last)} ago`;
  return [
    when,
    failures ? plural(failures, 'failure') : null,
    children > 1 ? `${plural(children, 'child', 'children')}, this one last` : null,
    next ? `${attempt ? `attempt ${attempt}` : 'next attempt'} ${next > now ? `in ${countdown(next - now)}` : 'now'}` : attempt ? `attempt ${attempt}` : null,
  ].filter(Boolean).join(' · ');
}

const changeText = (change, path) => [change.path === path ? null : change.path, entryText(change), change.count > 1 ? `×${change.count}` : null].filter(Boolean).join(' ');

/** An incident as text, for a message to a colleague. */
const asText = (incident, now) => [
  `${incident.path}  ${factsOf(incident, now)}`,
  ...[incident.cause, ...others(incident)].filter(Boolean),
  ...incident.changes.map((change) => `${clock(change.last_at_ms)} ${changeText(change, incident.path)}`),
].join('\n');

export class Incidents {
  static id = 'incidents';
  static label = 'Incidents';
  /** They also age. */
  every = 5_000;
  #page;
  #most = STEP;
  #answer = null;
  #samples = new SamplesOfMany();

  constructor(panel, page) {
    this.#page = page;
    this.note = el('p', { class: 'muted note', role: 'status' });
    this.copy = copyButton(page.announce, () => this.#answer.incidents.map((incident) => asText(incident, page.model.now)));
    this.copy.hidden = true;
    this.sections = el('div', {}, ...[0, 1].map((i) => el('section', { 'aria-labelledby': `incidents-${i}` }, el('h3', { id: `incidents-${i}` }), el('ol', { class: 'incidents-list' }))));
    this.more = el('button', { type: 'button', class: 'more-rows', hidden: true, onclick: () => { this.#most += STEP; this.#write(); } });
    this.end = el('p', { class: 'muted note' });
    panel.append(this.note, this.sections, this.more, this.end, el('div', { class: 'list-tools at-end' }, this.copy));
  }

  url = () => 'api/incidents';

  concerns = (change) => change.children.length + change.removed.length + change.events.length > 0;

  show(answer) {
    this.#answer = answer;
    this.#write();
    const known = answer.incidents.slice(0, PLOTS).map(({ path }) => path).filter((path) => this.#page.model.nodes.has(path));
    this.#samples.read(known, () => this.#write());
  }

  /** Writes what moves by itself. */
  render(now) {
    let urgent = false;
    for (const section of this.sections.children) {
      for (const item of section.lastElementChild.children) urgent = this.#renderOne(item, now) || urgent;
    }
    return urgent;
  }

  #write() {
    const { incidents, dropped_before_ms: dropped = null } = this.#answer;
    const { path, node } = this.#page;
    const whole = !node?.parent;
    const first = (incident) => (whole ? incident.now : this.#page.isHere(incident.path));
    const shown = incidents.length - Math.max(0, incidents.length - this.#most);
    const parts = [incidents.filter(first), incidents.filter((incident) => !first(incident))];
    const titles = whole ? ['Wrong now', 'In the last fifteen minutes'] : [`At ${path} and below`, 'Elsewhere'];
    const place = whole ? '' : ` at ${path} or below`;
    const nothing = whole && incidents.length ? 'Nothing is wrong now.' : `Nothing is wrong${place}, and nothing was in the last fifteen minutes.`;
    setText(this.note, parts[0].length ? '' : nothing);
    setText(this.end, dropped === null ? '' : `older than ${clock(dropped)}: dropped`);
    this.copy.hidden = !incidents.length;
    let room = shown;
    [...this.sections.children].forEach((section, i) => {
      const rows = parts[i].slice(0, room);
      room -= rows.length;
      section.hidden = !rows.length;
      setText(section.firstElementChild, `${titles[i]} (${parts[i].length})`);
      reconcile(section.lastElementChild, rows, (incident) => `${incident.path} ${incident.since_ms}`, () => this.#make(), (item, incident) => this.#writeOne(item, incident));
    });
    this.more.hidden = shown === incidents.length;
    setText(this.more, `Show ${Math.min(STEP, incidents.length - shown)} more, of ${incidents.length - shown}`);
  }

  #make() {
    const parts = {
      link: el('a', { onclick: (event) => { event.preventDefault(); this.#page.follow(parts.incident.path); } }),
      word: el('span', { class: 'word' }),
      shape: shape('active'),
      facts: el('p', { class: 'muted num' }),
      cause: el('p', { class: 'cause' }),
      problems: el('ul', { class: 'problems' }),
      plot: makePlot(),
      changed: el('p', { class: 'muted' }),
      changes: el('ul', { class: 'changes' }),
      incident: null,
    };
    const item = el('li', { class: 'incident' }, el('h4', {}, parts.shape, parts.link, parts.word), parts.facts, parts.cause, parts.problems, parts.changed, parts.changes, parts.plot);
    item.parts = parts;
    return item;
  }

  #writeOne(item, incident) {
    const { parts } = item;
    parts.incident = incident;
    setAttr(item, 'data-now', incident.now ? '' : null);
    parts.link.setAttribute('href', addressOf(incident.path));
    setText(parts.link, incident.path);
    setText(parts.cause, incident.cause ?? '');
    parts.cause.hidden = !incident.cause;
    reconcile(parts.problems, others(incident), (text) => text, () => el('li'), setText);
    setText(parts.changed, incident.changes.length ? 'What was changed before or during it:' : 'Nothing was changed before it: no call, reload or lease.');
    reconcile(parts.changes, incident.changes, (change) => `${change.path} ${change.first_at_ms} ${change.event} ${change.text}`, () => el('li', {}, el('time', { class: 'num' }), el('span', { class: 'what' })), (row, change) => {
      setText(row.firstElementChild, clock(change.last_at_ms));
      setText(row.lastElementChild, changeText(change, incident.path));
    });
    this.#renderOne(item, this.#page.model.now);
  }

  /** Writes the state, the times and the plot of one incident. Returns whether its countdown shows tenths. */
  #renderOne(item, now) {
    const { parts } = item;
    const { incident } = parts;
    const node = this.#page.model.nodes.get(incident.path);
    const state = node ? stateOf(node) : 'stopped';
    setAttr(item, 'data-state', state);
    setAttr(parts.shape.firstChild, 'href', `#shape-${state}`);
    setText(parts.word, node ? (incident.now || state !== 'active' ? state : 'active again') : 'removed');
    setText(parts.facts, factsOf(incident, now));
    drawPlot(parts.plot, 'Restarts', restartsOf(this.#samples.of(incident.path)), now, ({ sum, high }) => `${sum} in total · max ${high}`);
    return Boolean(incident.next_ms && incident.next_ms > now && incident.next_ms - now < 10_000);
  }
}
