// The tree on the left: a `treegrid` of which only the rows in sight exist. Knows how a child is shown in a row.
//
// 1. All rows have the same height. An update changes the text of the rows in sight, and no more.
// 2. The focus stays on the grid; `aria-activedescendant` names the current row, so a row that scrolls away takes no focus with it.
// 3. While the pointer is over the rows, none of them moves, comes or goes, unless the reader does something.
// 4. A name has room at any depth: what is left of its indent is a number.

import { COLUMNS, details } from './columns.js';
import { el, setAttr, setText, shape } from './format.js';
import { isProblem, parentPath, stateOf } from './model.js';
import { Rows } from './rows.js';

export { limitReached, limitText } from './columns.js';

const ROW = { wide: 28, narrow: 46 };
const SPARE = 6;
const INDENT = 16;
/** Below this width a row has two lines, the second one for the details. */
const NARROW = 520;
/** What the columns are given that are always there: name, state, for, details, and the padding of the row. */
const FIXED = 230 + 100 + 56 + 230 + 28;
const GAP = 10;
/** The room of a name that its indent leaves alone, for about twenty letters. */
const NAME = 140;
const OPTIONAL = COLUMNS.filter(({ width }) => width);
const RANKED = OPTIONAL.toSorted((a, b) => a.rank - b.rank);
/** The shortest time between two arrangements that nobody has asked for. In a large tree, they take a twentieth of the time. */
const APART = 500;

export class Tree {
  #grid;
  #body;
  #model;
  #finder;
  #rows = [];
  #matching = 0;
  #pool = [];
  #folded = new Set();
  #unfolded = new Set();
  #current = null;
  #queued = false;
  #hovered = undefined;
  /** Whether the pointer is over the rows, and whether they would be others without it. */
  #pointed = false;
  #waiting = false;
  #arranged = { at: 0, timer: null, apart: 0 };
  /** The columns that are shown, of those that have something to say. */
  #columns = new Set();
  #saying = new Set();
  #narrow = false;
  #indents = 12;
  #on;
  view = { filter: '', problems: false, sort: null };

  /** `on` has `select(path, how)`, `act(action, path)`, `shown(matching, held)`, `sorted(sort)` and `actions(node)`, which returns the buttons of a row. */
  constructor(grid, model, on) {
    this.#grid = grid;
    this.#body = grid.querySelector('.tree-body');
    this.#model = model;
    this.#finder = new Rows(model);
    this.#on = on;
    this.#makeHead();
    grid.addEventListener('scroll', () => this.#queue(), { passive: true });
    new ResizeObserver(() => { this.#fit(); this.#queue(); }).observe(grid);
    this.#body.addEventListener('click', (event) => this.#clicked(event));
    this.#body.addEventListener('pointermove', (event) => this.#hover(event.target.closest('[role=row]')?.dataset.index));
    this.#body.addEventListener('pointerenter', (event) => { this.#pointed = event.pointerType !== 'touch'; });
    this.#body.addEventListener('pointerleave', () => {
      this.#hover(undefined);
      this.#pointed = false;
      if (this.#waiting) this.arrange();
    });
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

  /** Whether there is a child, or a group, of this path. */
  has(path) {
    return Boolean(this.#find(path));
  }

  /** The child that the current row is about: of a group, its supervisor. */
  get child() {
    const row = this.#find(this.#current);
    return row?.members ? row.parent : row ?? null;
  }

  /** Finds the rows anew, because the reader has done something. */
  arrange() {
    const { root, nodes } = this.#model;
    if (!root) return;
    clearTimeout(this.#arranged.timer);
    const began = performance.now();
    this.#waiting = false;
    const list = () => this.#finder.list({ ...this.view, folded: this.#folded, unfolded: this.#unfolded, current: this.#current });
    let { rows, matching } = list();
    if (!nodes.has(this.#current) && !rows.some(({ path }) => path === this.#current)) {
      // What is nearest to a child that is gone. Without one, this is the first arrangement.
      let path = this.#current;
      while (path !== null && !nodes.has(path)) path = parentPath(path);
      this.#current = path ?? root.path;
      this.#on.select(this.child?.path ?? root.path, 'gone');
      ({ rows, matching } = list());
    }
    this.#rows = rows;
    this.#rows.forEach((row, i) => { row.row = i; });
    setAttr(this.#grid, 'aria-rowcount', this.#rows.length + 1);
    this.#matching = matching;
    this.#on.shown(matching, false);
    this.#fit();
    this.render();
    const at = performance.now();
    this.#arranged = { at, timer: null, apart: Math.max(APART, 20 * (at - began)) };
  }

  /** Finds the rows anew after the tree has changed: soon, and not while the reader points at one. */
  update() {
    if (!this.#model.root) return;
    if (this.#pointed) {
      // The rows are those of before, with what is known of them now.
      this.#rows = this.#rows.map((row) => this.#renew(row));
      this.#waiting = true;
      this.#on.shown(this.#matching, true);
      this.#fit();
      return void this.render();
    }
    if (this.#arranged.timer !== null) return void this.render();
    const due = this.#arranged.at + this.#arranged.apart - performance.now();
    if (due <= 0) return void this.arrange();
    this.#arranged.timer = setTimeout(() => { this.#arranged.timer = null; this.update(); }, due);
    this.#rows = this.#rows.map((row) => this.#renew(row));
    this.render();
  }

  /** Whether a filter, or *Problems only*, hides rows. */
  get narrowed() {
    return this.view.problems || this.view.filter.trim() !== '';
  }

  /** Whether which rows there are, or their order, depends on the state of the children. */
  get depends() {
    return this.narrowed || this.view.sort !== null || this.#rows.some(({ members }) => members);
  }

  /** Selects a row. `how` is passed on: `click`, `key`, or nothing. */
  select(path, { scroll = true, how = null } = {}) {
    this.#current = path;
    if (this.#at() < 0) this.#unfoldTo(path);
    this.#on.select(this.child?.path ?? path, how);
    if (scroll) this.reveal();
    this.render();
  }

  /** Sorts by a column, or by the next direction of it: first its own, then the other one, then the order of the tree. */
  sortBy(id) {
    const { sort } = this.view;
    const first = COLUMNS.find((column) => column.id === id).first === 'descending';
    if (sort?.by !== id) this.sort({ by: id, down: first });
    else this.sort(sort.down === first ? { by: id, down: !first } : null);
  }

  /** Sorts by the next column that has something to say, and after the last one by the order of the tree. */
  sortByNext() {
    const columns = COLUMNS.filter((column) => !column.width || this.#saying.has(column.id));
    const next = columns[columns.findIndex(({ id }) => id === this.view.sort?.by) + 1];
    this.sort(next ? { by: next.id, down: next.first === 'descending' } : null);
  }

  /** Sorts by `{ by, down }`, or in the order of the tree. */
  sort(sort) {
    this.view.sort = sort && COLUMNS.some(({ id }) => id === sort.by) ? sort : null;
    this.arrange();
    this.reveal();
    this.#on.sorted(this.view.sort);
  }

  /** Moves the selection by rows. */
  move(by) {
    if (!this.#rows.length) return;
    const at = this.#at();
    const to = at < 0 ? 0 : Math.min(this.#rows.length - 1, Math.max(0, at + by));
    this.select(this.#rows[to].path, { how: 'key' });
  }

  page(direction) {
    this.move(direction * Math.max(1, Math.floor(this.#room / this.#height) - 1));
  }

  /** Folds or unfolds a supervisor or a group. `open` is `true`, `false`, or nothing for the opposite of now. */
  toggle(path, open) {
    const row = this.#find(path);
    if (!this.#foldable(row)) return;
    const unfold = open ?? !this.#open(row);
    const [set, add] = row.members ? [this.#unfolded, unfold] : [this.#folded, !unfold];
    if (add) set.add(path);
    else set.delete(path);
    this.arrange();
  }

  foldAll(fold) {
    this.#folded.clear();
    this.#unfolded.clear();
    if (fold) for (const node of this.#model.order) if (node.kids.length && node.parent) this.#folded.add(node.path);
    if (fold) this.#leaveFolded();
    this.arrange();
    this.reveal();
  }

  /** The arrow to the right: unfolds, or goes to the first child. */
  enter() {
    const row = this.#find(this.#current);
    if (!this.#foldable(row)) return;
    if (!this.#open(row)) this.toggle(row.path, true);
    else this.move(1);
  }

  /** The arrow to the left: folds, or goes to the parent. */
  leave() {
    const row = this.#find(this.#current);
    if (this.#foldable(row) && this.#open(row) && (row.members || !this.narrowed)) return void this.toggle(row.path, false);
    // A child of a group is below it.
    const above = this.#rows.slice(0, Math.max(0, this.#at())).findLast(({ level }) => level < row.level) ?? row?.parent;
    if (above) this.select(above.path, { how: 'key' });
  }

  /** Scrolls as little as needed to bring the current row into sight. */
  reveal() {
    const at = this.#at();
    if (at < 0) return;
    const top = at * this.#height;
    const bottom = top + this.#height - this.#room;
    if (top < this.#grid.scrollTop) this.#grid.scrollTop = top;
    else if (bottom > this.#grid.scrollTop) this.#grid.scrollTop = bottom;
  }

  /** Writes the rows in sight. Returns whether one of them counts tenths of a second. */
  render() {
    this.#writeHead();
    // Read before anything is written, so that the layout is computed once.
    const first = Math.max(0, Math.floor(this.#grid.scrollTop / this.#height) - SPARE);
    const wanted = Math.ceil(this.#grid.clientHeight / this.#height) + 2 * SPARE;
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

  get #height() {
    return this.#narrow ? ROW.narrow : ROW.wide;
  }

  /** The height that the head leaves for rows. */
  get #room() {
    return this.#grid.clientHeight - ROW.wide;
  }

  #at() {
    const row = this.#find(this.#current);
    return row && this.#rows[row.row] === row ? row.row : -1;
  }

  /** The child or group of a path. */
  #find(path) {
    return this.#model.nodes.get(path) ?? this.#rows.find((row) => row.members && row.path === path);
  }

  #foldable(row) {
    return Boolean(row && !this.view.sort && (row.members || row.kids.length));
  }

  #open(row) {
    return row.members ? this.#unfolded.has(row.path) : this.narrowed || !this.#folded.has(row.path);
  }

  /** A row of before with what is known of it now, or as it was if it is gone. */
  #renew(row) {
    const { nodes } = this.#model;
    if (row.members) {
      row.members = row.members.map((child) => nodes.get(child.path)).filter(Boolean);
      return row;
    }
    const node = nodes.get(row.path);
    if (!node) return Object.assign(row, { removed: true });
    if (node !== row) Object.assign(node, { row: row.row, level: row.level, position: row.position, siblings: row.siblings, match: row.match });
    return node;
  }

  /** Unfolds what is above a child, so that it has a row. */
  #unfoldTo(path) {
    const node = this.#model.nodes.get(path);
    if (!node) return;
    for (let above = node.parent; above; above = above.parent) this.#folded.delete(above.path);
    this.arrange();
  }

  #leaveFolded() {
    let node = this.child;
    while (node?.parent?.parent) node = node.parent;
    if (node && node.path !== this.#current) this.select(node.path, { scroll: false, how: 'key' });
  }

  /** Decides which columns there are: those with something to say, as long as there is room. */
  #fit() {
    const width = this.#grid.clientWidth;
    this.#narrow = width < NARROW;
    const { now } = this.#model;
    const { by } = this.view.sort ?? {};
    let room = width - FIXED;
    const says = ({ id, text, worth = text }) => id === by || this.#rows.some((row) => !row.removed && worth(row, now));
    const saying = RANKED.filter(says);
    const shown = saying.filter((column) => {
      const fits = column.id === by || (room >= column.width + GAP && !this.#narrow);
      if (fits) room -= column.width + GAP;
      return fits;
    });
    this.#saying = new Set(saying.map(({ id }) => id));
    this.#columns = new Set(shown.map(({ id }) => id));
    for (const { id } of OPTIONAL) this.#grid.classList.toggle(`no-${id}`, !this.#columns.has(id));
    this.#grid.classList.toggle('narrow', this.#narrow);
    const optional = OPTIONAL.filter((column) => shown.includes(column)).map((column) => `${column.width}px`).join(' ');
    const columns = this.#narrow ? `minmax(0, 1fr) 96px 52px ${optional}` : `minmax(200px, ${this.view.sort ? 1.6 : 1.2}fr) 100px 56px ${optional} minmax(120px, 2fr)`;
    if (this.#grid.style.getPropertyValue('--columns') !== columns) this.#grid.style.setProperty('--columns', columns);
    this.#body.style.height = `${this.#rows.length * this.#height}px`;
    const name = this.#grid.querySelector('.tree-head .c-name').clientWidth;
    this.#indents = Math.max(1, Math.floor((name - NAME) / INDENT));
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
    const element = event.target.closest('[role=row]');
    const row = element && this.#rows[element.dataset.index];
    if (!row) return;
    const action = event.target.closest('[data-action]')?.dataset.action;
    if (event.target.closest('.twisty')) this.toggle(row.path);
    else if (action) this.#on.act(action, row.path);
    else this.select(row.path, { scroll: false, how: 'click' });
  }

  /** The titles of the columns, each a button that sorts. They take no focus: `o` sorts with the keyboard. */
  #makeHead() {
    const head = this.#grid.querySelector('.tree-head [role=row]');
    for (const { id, label, title } of COLUMNS) {
      const button = el('button', { type: 'button', tabindex: -1, title: `Sort by ${label.toLowerCase()}${title ? `. ${title}` : ''}`, onclick: () => this.sortBy(id) }, label, el('span', { class: 'arrow', 'aria-hidden': 'true' }));
      button.addEventListener('pointerdown', (event) => event.preventDefault());
      head.append(el('span', { role: 'columnheader', class: `c-${id}${['name', 'state', 'ready', 'text'].includes(id) ? '' : ' num'}`, 'data-column': id }, button));
    }
  }

  #writeHead() {
    const { sort } = this.view;
    for (const head of this.#grid.querySelectorAll('[role=columnheader]')) {
      const mine = head.dataset.column === sort?.by;
      setAttr(head, 'aria-sort', mine ? (sort.down ? 'descending' : 'ascending') : 'none');
      setText(head.querySelector('.arrow'), mine ? (sort.down ? ' ▾' : ' ▴') : '');
    }
  }

  #makeRow() {
    const cell = (name, ...children) => el('span', { role: 'gridcell', class: `c-${name}` }, ...children);
    const cells = {
      skipped: el('span', { class: 'skipped muted' }),
      twisty: el('span', { class: 'twisty', 'aria-hidden': 'true' }),
      above: el('span', { class: 'muted' }),
      last: el('span'),
      shape: shape('active'),
      word: el('span'),
      for: cell('for num'),
      text: el('span', { class: 'text' }),
      actions: el('span', { class: 'row-actions' }),
      optional: new Map(),
    };
    for (const { id } of OPTIONAL) cells.optional.set(id, cell(id === 'ready' ? id : `${id} num`));
    cells.label = el('span', { class: 'label' }, cells.above, cells.last);
    cells.name = cell('name', cells.skipped, cells.twisty, cells.label);
    cells.row = el('div', { role: 'row', class: 'row' }, cells.name, cell('state', cells.shape, cells.word), cells.for, ...cells.optional.values(),
      cell('text', cells.text, cells.actions));
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
    const place = `${index} ${this.#height}`;
    if (cells.index !== place) {
      cells.index = place;
      row.id = `row-${index}`;
      row.dataset.index = index;
      row.style.transform = `translateY(${index * this.#height}px)`;
      setAttr(row, 'aria-rowindex', index + 2);
    }
    const group = node.members;
    const state = group ? null : stateOf(node);
    const foldable = this.#foldable(node);
    setAttr(row, 'aria-level', node.level);
    setAttr(row, 'aria-posinset', node.position);
    setAttr(row, 'aria-setsize', node.siblings);
    setAttr(row, 'aria-expanded', foldable ? String(this.#open(node)) : null);
    setAttr(row, 'aria-selected', String(node.path === this.#current));
    setAttr(row, 'data-state', state);
    setAttr(row, 'data-problem', !group && isProblem(node) ? '' : null);
    // What is above a child that matches.
    setAttr(row, 'data-context', this.narrowed && !node.match ? '' : null);
    setAttr(row, 'data-removed', node.removed ? '' : null);
    setAttr(row, 'data-path', node.path);
    this.#writeName(cells, node, foldable);
    setAttr(cells.shape, 'visibility', group ? 'hidden' : null);
    if (!group) setAttr(cells.shape.firstChild, 'href', `#shape-${state}`);
    setText(cells.word, group ? '' : node.removed ? 'removed' : state);
    for (const { id, text, reached } of COLUMNS) {
      const cell = id === 'for' ? cells.for : cells.optional.get(id);
      if (!cell || (id !== 'for' && !this.#columns.has(id))) continue;
      setText(cell, text(node, now));
      setAttr(cell, 'data-reached', reached?.(node) ? '' : null);
    }
    const text = details(node, now);
    setText(cells.text, text);
    setAttr(cells.text, 'title', text);
    // Only where they can be seen, because they are the most expensive part of a row.
    if (String(index) === this.#hovered && !group && !node.removed) this.#on.actions(cells.actions, node);
    else if (cells.actions.firstChild) cells.actions.replaceChildren();
  }

  /** The name: in a flat list with the path, and in the tree at its depth, or with the number of levels for which there is no room. */
  #writeName(cells, node, foldable) {
    const { sort } = this.view;
    const deep = sort ? 0 : node.level - 1;
    const indents = Math.min(deep, this.#indents);
    const indent = `${(indents < deep ? Math.max(0, indents - 2) : indents) * INDENT}px`;
    if (cells.name.style.paddingInlineStart !== indent) cells.name.style.paddingInlineStart = indent;
    setText(cells.skipped, indents < deep ? `+${deep - indents}` : '');
    setText(cells.twisty, foldable ? (this.#open(node) ? '▾' : '▸') : '');
    // The root is above everything, and says nothing.
    const above = node.path.length - node.name.length;
    setText(cells.above, sort && node.parent ? node.path.slice(this.#model.root.path.length + 1, above) : '');
    setText(cells.last, node.members ? `${node.name} ×${node.members.length.toLocaleString('en')}` : node.name);
    setAttr(cells.label, 'title', node.members ? `${node.members.length} children ${node.path}` : node.path);
  }
}
