// The tree on the left: a `treegrid` of which only the rows in sight exist. Knows how a child is shown in a row.
//
// 1. All rows have the same height. An update changes the text of the rows in sight, and no more.
// 2. The focus stays on the grid; `aria-activedescendant` names the current row, so a row that scrolls away takes no focus with it.

import { countdown, duration, el, plural, setAttr, setText, shape } from './format.js';
import { isProblem, stateOf } from './model.js';

const ROW = 28;
const SPARE = 6;
const DEEPEST_INDENT = 12;

/** Writes a limit: `2/3 in 1m`. */
export function limitText(node) {
  const own = node.limit ? [node.limit.restarts, node.limit.max_restarts, node.limit.period_ms] : null;
  const shared = node.supervisor ? [node.supervisor.restarts_in_period, node.supervisor.max_restarts, node.supervisor.period_ms] : null;
  const [used, most, period] = own ?? shared ?? [];
  return most === undefined || most === null ? '' : `${used}/${most} in ${duration(period)}`;
}

/** Whether the next restart exceeds the limit of the child, or of the supervisor for its children. */
export const limitReached = (node) => Boolean(node.limit?.reached || node.supervisor?.limit_reached);

/** Everything else about a child in one line, the most urgent first. */
export function details(node, now) {
  const parts = [];
  if (node.next) parts.push(`retry in ${countdown(node.next.at_ms - now)} (attempt ${node.next.attempt})`);
  if (node.explanation) parts.push(node.explanation);
  else if (node.held) parts.push('held');
  if (node.problem && node.healthy === false) parts.push(node.problem);
  if (node.alarming) parts.push(node.alarming);
  if (node.waits_for?.length) parts.push(`waits for ${node.waits_for.join(', ')}`);
  // An exit that a caller has asked for says no more than the caller.
  if (node.last_exit && !node.ready && node.explanation === node.why) parts.push(`last: ${node.last_exit.reason.message}`);
  if (node.status) parts.push(`“${node.status}”`);
  if (node.kids.length) {
    const { children, problems } = node.below;
    parts.push(plural(children, 'child', 'children') + (problems ? `, ${plural(problems, 'problem')}` : ''));
  }
  return parts.join(' · ');
}

export class Tree {
  #grid;
  #body;
  #model;
  #rows = [];
  #pool = [];
  #folded = new Set();
  #current = null;
  #queued = false;
  #hovered = undefined;
  #on;
  view = { filter: '', problems: false };

  /** `on` has `select(path)`, `act(action, path)`, `shown(count)` and `actions(node)`, which returns the buttons of a row. */
  constructor(grid, model, on) {
    this.#grid = grid;
    this.#body = grid.querySelector('.tree-body');
    this.#model = model;
    this.#on = on;
    grid.addEventListener('scroll', () => this.#queue(), { passive: true });
    new ResizeObserver(() => this.#queue()).observe(grid);
    this.#body.addEventListener('click', (event) => this.#clicked(event));
    this.#body.addEventListener('pointermove', (event) => this.#hover(event.target.closest('[role=row]')?.dataset.index));
    this.#body.addEventListener('pointerleave', () => this.#hover(undefined));
    // The buttons of a row take no focus: the row may be gone when the dialog closes.
    this.#body.addEventListener('pointerdown', (event) => {
      if (!event.target.closest('button')) return;
      event.preventDefault();
      grid.focus();
    });
    this.#body.addEventListener('mousedown', (event) => event.target.closest('button') && event.preventDefault());
  }

  get current() {
    return this.#current;
  }

  /** Finds the rows anew, after children have come or gone, or the view has changed. */
  arrange() {
    if (!this.#model.root) return;
    this.#rows = this.#model.rows({ ...this.view, folded: this.#folded });
    this.#rows.forEach((node, i) => { node.row = i; });
    this.#body.style.height = `${this.#rows.length * ROW}px`;
    setAttr(this.#grid, 'aria-rowcount', this.#rows.length + 1);
    const gone = !this.#model.nodes.has(this.#current);
    if (gone) this.select(this.#model.root.path, { scroll: false });
    this.#on.shown(this.#rows.length);
    this.render();
  }

  /** Whether which rows exist depends on the state of the children. */
  get narrowed() {
    return this.view.problems || this.view.filter.trim() !== '';
  }

  select(path, { scroll = true } = {}) {
    this.#current = path;
    this.#on.select(path);
    if (scroll) this.reveal();
    this.render();
  }

  /** Moves the selection by rows. */
  move(by) {
    if (!this.#rows.length) return;
    const at = this.#at();
    const to = at < 0 ? 0 : Math.min(this.#rows.length - 1, Math.max(0, at + by));
    this.select(this.#rows[to].path);
  }

  page(direction) {
    this.move(direction * Math.max(1, Math.floor((this.#grid.clientHeight - ROW) / ROW) - 1));
  }

  /** Folds or unfolds a node with children. `open` is `true`, `false`, or nothing for the opposite of now. */
  toggle(path, open) {
    const node = this.#model.nodes.get(path);
    if (!node?.kids.length) return;
    if (open ?? this.#folded.has(path)) this.#folded.delete(path);
    else this.#folded.add(path);
    this.arrange();
  }

  foldAll(fold) {
    this.#folded.clear();
    if (fold) for (const node of this.#model.order) if (node.kids.length && node.parent) this.#folded.add(node.path);
    if (fold) this.#leaveFolded();
    this.arrange();
    this.reveal();
  }

  /** The arrow to the right: unfolds, or goes to the first child. */
  enter() {
    const node = this.#model.nodes.get(this.#current);
    if (!node?.kids.length) return;
    if (this.#folded.has(node.path) && !this.narrowed) this.toggle(node.path, true);
    else this.move(1);
  }

  /** The arrow to the left: folds, or goes to the parent. */
  leave() {
    const node = this.#model.nodes.get(this.#current);
    if (node?.kids.length && !this.#folded.has(node.path) && !this.narrowed) this.toggle(node.path, false);
    else if (node?.parent) this.select(node.parent.path);
  }

  /** Scrolls as little as needed to bring the current row into sight. */
  reveal() {
    const at = this.#at();
    if (at < 0) return;
    const top = at * ROW;
    const room = this.#grid.clientHeight - ROW;
    if (top < this.#grid.scrollTop) this.#grid.scrollTop = top;
    else if (top + ROW > this.#grid.scrollTop + room) this.#grid.scrollTop = top + ROW - room;
  }

  /** Writes the rows in sight. Returns whether one of them counts tenths of a second. */
  render() {
    const first = Math.max(0, Math.floor(this.#grid.scrollTop / ROW) - SPARE);
    const wanted = Math.ceil(this.#grid.clientHeight / ROW) + 2 * SPARE;
    while (this.#pool.length < wanted) this.#pool.push(this.#makeRow());
    const size = this.#pool.length;
    const end = Math.min(this.#rows.length, first + size);
    let urgent = false;
    const { now } = this.#model;
    // A row keeps its element while it is in sight, so that what the pointer and a screen reader are at doesn't change under them.
    for (let slot = 0; slot < size; slot++) {
      const cells = this.#pool[slot];
      const index = first + ((slot - (first % size) + size) % size);
      if (index >= end) {
        this.#clear(cells);
        continue;
      }
      cells.row.hidden = false;
      const node = this.#rows[index];
      urgent ||= Boolean(node.next && node.next.at_ms - now < 10_000);
      this.#write(cells, node, index, now);
    }
    const at = this.#at();
    setAttr(this.#grid, 'aria-activedescendant', at >= first && at < end ? `row-${at}` : null);
    return urgent;
  }

  #at() {
    const node = this.#model.nodes.get(this.#current);
    return node && this.#rows[node.row] === node ? node.row : -1;
  }

  #leaveFolded() {
    let node = this.#model.nodes.get(this.#current);
    while (node?.parent?.parent) node = node.parent;
    if (node && node.path !== this.#current) this.select(node.path, { scroll: false });
  }

  #queue() {
    if (this.#queued) return;
    this.#queued = true;
    requestAnimationFrame(() => {
      this.#queued = false;
      if (this.#model.root) this.render();
    });
  }

  #hover(index) {
    if (index === this.#hovered) return;
    this.#hovered = index;
    this.#queue();
  }

  #clicked(event) {
    const row = event.target.closest('[role=row]');
    const node = row && this.#rows[row.dataset.index];
    if (!node) return;
    const action = event.target.closest('[data-action]')?.dataset.action;
    if (event.target.closest('.twisty')) this.toggle(node.path);
    else if (action) this.#on.act(action, node.path);
    else this.select(node.path, { scroll: false });
  }

  #makeRow() {
    const cell = (name, ...children) => el('span', { role: 'gridcell', class: `c-${name}` }, ...children);
    const cells = {
      twisty: el('span', { class: 'twisty', 'aria-hidden': 'true' }),
      label: el('span', { class: 'label' }),
      shape: shape('active'),
      word: el('span'),
      for: cell('for num'),
      restarts: cell('restarts num'),
      limit: cell('limit num'),
      mail: cell('mail num'),
      ready: cell('ready'),
      text: el('span', { class: 'text' }),
      actions: el('span', { class: 'row-actions' }),
    };
    cells.name = cell('name', cells.twisty, cells.label);
    cells.row = el('div', { role: 'row', class: 'row' }, cells.name, cell('state', cells.shape, cells.word), cells.for, cells.restarts,
      cells.limit, cells.mail, cells.ready, cell('text', cells.text, cells.actions));
    this.#body.append(cells.row);
    return cells;
  }

  /** Hides a row, and makes sure that a search by path doesn't find it. */
  #clear(cells) {
    if (cells.row.hidden) return;
    cells.row.hidden = true;
    cells.index = -1;
    cells.row.removeAttribute('id');
    cells.row.removeAttribute('data-path');
  }

  #write(cells, node, index, now) {
    const { row } = cells;
    if (cells.index !== index) {
      cells.index = index;
      row.id = `row-${index}`;
      row.dataset.index = index;
      row.style.transform = `translateY(${index * ROW}px)`;
      setAttr(row, 'aria-rowindex', index + 2);
    }
    const state = stateOf(node);
    const folded = this.#folded.has(node.path) && !this.narrowed;
    setAttr(row, 'aria-level', node.level);
    setAttr(row, 'aria-posinset', node.position ?? 1);
    setAttr(row, 'aria-setsize', node.parent?.shownKids ?? 1);
    setAttr(row, 'aria-expanded', node.kids.length ? String(!folded) : null);
    setAttr(row, 'aria-selected', String(node.path === this.#current));
    setAttr(row, 'data-state', state);
    setAttr(row, 'data-problem', isProblem(node) ? '' : null);
    setAttr(row, 'data-path', node.path);
    const indent = `${Math.min(node.level - 1, DEEPEST_INDENT) * 16}px`;
    if (cells.name.style.paddingInlineStart !== indent) cells.name.style.paddingInlineStart = indent;
    setText(cells.twisty, node.kids.length ? (folded ? '▸' : '▾') : '');
    setText(cells.label, node.name);
    setAttr(cells.label, 'title', node.path);
    setAttr(cells.shape.firstChild, 'href', `#shape-${state}`);
    setText(cells.word, state);
    setText(cells.for, duration(now - node.since_ms));
    setText(cells.restarts, node.restarts ? String(node.restarts) : '');
    setText(cells.limit, limitText(node));
    setAttr(cells.limit, 'data-reached', limitReached(node) ? '' : null);
    setText(cells.mail, node.mailbox ? `${node.mailbox.len}/${node.mailbox.capacity}` : '');
    setAttr(cells.mail, 'data-reached', node.mailbox && node.mailbox.len >= node.mailbox.capacity ? '' : null);
    setText(cells.ready, node.ready ? 'yes' : 'no');
    const text = details(node, now);
    setText(cells.text, text);
    setAttr(cells.text, 'title', text);
    // Only where they can be seen, because they are the most expensive part of a row.
    if (String(index) === this.#hovered) this.#on.actions(cells.actions, node);
    else if (cells.actions.firstChild) cells.actions.replaceChildren();
  }
}
