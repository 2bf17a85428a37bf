// The right side: tabs about the selected child and what is below it. Knows when a tab reads, and not what it shows.
//
// 1. Only the open tab reads: at most once a second, while the page is visible, and after a change that concerns it. One that took
//    long to read is read less often.
// 2. An answer that comes after another child or tab was selected is dropped. An answer that is the same as before costs nothing.
// 3. A tab without an answer after three seconds says so.
// 4. Until the reader chooses a tab, the root shows the incidents, and a child its overview.
//
// A tab has `id` and `label`, `url(path, node)`, `show(answer)`, and if it needs them `refusal()`, why it can't read; `concerns(change)`;
// `every`, the time after which it reads without a change; `restart()`, for another child; `render(now)`, for what moves by itself.

import { getText } from './api.js';
import { Config } from './config.js';
import { el, setAttr, setText, shape } from './format.js';
import { Events, Log } from './history.js';
import { Incidents } from './incidents.js';
import { Letters } from './letters.js';
import { stateOf } from './model.js';
import { Overview } from './overview.js';

const TABS = [Incidents, Overview, Events, Letters, Config, Log];
const APART = 1_000;
const SLOW = 3_000;

const below = (path, root) => path === root || path.startsWith(`${root}/`);

export class Detail {
  #model;
  #actions;
  #path = null;
  #tab = 'incidents';
  #chosen = false;
  /** By name: `{ tab, button, panel, note }`. */
  #tabs = new Map();
  /** What was asked for last: its key, when, how long it took, and the text of its answer. */
  #asked = { key: null, at: 0, took: 0, text: null, answer: null };
  #due = true;
  #busy = false;
  #timer = null;
  #slow = null;
  /** Selects a child in the tree. Set by the page. */
  follow = () => {};

  constructor(pane, model, actions) {
    this.#model = model;
    this.#actions = actions;
    this.title = pane.querySelector('h2');
    const list = pane.querySelector('[role=tablist]');
    const panels = pane.querySelector('.panels');
    const page = this.#page();
    for (const Tab of TABS) {
      const { id, label } = Tab;
      const button = el('button', { type: 'button', role: 'tab', id: `tab-${id}`, 'aria-controls': `panel-${id}`, text: label, onclick: () => this.open(id) });
      const note = el('p', { class: 'muted tab-note', role: 'status' });
      const panel = el('div', { role: 'tabpanel', id: `panel-${id}`, class: `panel ${id}`, 'aria-labelledby': `tab-${id}`, tabindex: 0, hidden: true }, note);
      list.append(button);
      panels.append(panel);
      this.#tabs.set(id, { tab: new Tab(panel, page), button, panel, note });
    }
    list.addEventListener('keydown', (event) => this.#tabKey(event));
    document.addEventListener('visibilitychange', () => this.refresh());
    this.open(null);
  }

  /** The name of the open tab. */
  get tab() {
    return this.#tab;
  }

  /** Shows another child. */
  select(path) {
    if (this.#path === path) return;
    this.#path = path;
    for (const { tab } of this.#tabs.values()) tab.restart?.();
    if (!this.#chosen) this.open(null);
    // What was read about all children is sorted by the one that is selected.
    const { tab } = this.#current;
    if (this.#key() === this.#asked.key && this.#asked.answer) tab.show(this.#asked.answer);
    this.render();
    this.refresh();
  }

  /** Opens a tab, or the usual one if that is `null`, and moves the focus to it if `focus` is set. */
  open(name, focus = false) {
    const { root } = this.#model;
    this.#chosen = this.#tabs.has(name);
    const id = this.#chosen ? name : this.#path === (root?.path ?? null) ? 'incidents' : 'overview';
    this.#tab = id;
    for (const [other, { button, panel }] of this.#tabs) {
      setAttr(button, 'aria-selected', String(other === id));
      button.tabIndex = other === id ? 0 : -1;
      panel.hidden = other !== id;
    }
    if (focus) this.#current.button.focus();
    this.render();
    this.refresh();
  }

  /** Writes what the model knows and what moves by itself. Returns whether a countdown shows tenths of a second. */
  render() {
    const node = this.#model.nodes.get(this.#path);
    if (!node) return false;
    const state = stateOf(node);
    if (this.title.dataset.shown !== node.path + state) {
      this.title.dataset.shown = node.path + state;
      this.title.dataset.state = state;
      const at = node.path.length - node.name.length;
      this.title.replaceChildren(shape(state), el('span', { class: 'path' }, el('span', { class: 'muted', text: node.path.slice(0, at) }), node.name), el('span', { class: 'word', text: state }));
    }
    this.#actions.settle(this.#model);
    const { tab } = this.#current;
    if (tab.every && performance.now() - this.#asked.at > tab.every) this.refresh();
    return Boolean(tab.render?.(this.#model.now));
  }

  /** Reads again what the open tab shows, unless `change` doesn't concern it. */
  refresh(change = null) {
    if (change && !change.resync && !this.#current.tab.concerns(change)) return;
    this.#due = true;
    this.#read();
  }

  get #current() {
    return this.#tabs.get(this.#tab);
  }

  /** What a tab may know of the page. */
  #page() {
    const detail = this;
    return {
      get model() { return detail.#model; },
      get actions() { return detail.#actions; },
      get info() { return detail.#actions.info ?? {}; },
      get path() { return detail.#path; },
      get node() { return detail.#model.nodes.get(detail.#path); },
      /** Whether a path is that of the selected child, or below. */
      isHere: (path) => detail.#path !== null && below(path, detail.#path),
      /** A path as seen from the selected child: nothing for that itself. */
      short: (path) => (path === detail.#path ? '' : path.startsWith(`${detail.#path}/`) ? path.slice(detail.#path.length + 1) : path),
      announce: (text, isError) => detail.#actions.announce(text, isError),
      refresh: () => detail.refresh(),
      /** Selects a child, and opens its overview. */
      follow(path) {
        if (!detail.#model.nodes.has(path)) return detail.#actions.announce(`There is no ${path} any more.`, true);
        detail.follow(path);
        detail.open(path === detail.#model.root.path ? 'overview' : null, true);
      },
    };
  }

  #key() {
    return `${this.#tab} ${this.#current.tab.url(this.#path, this.#model.nodes.get(this.#path))}`;
  }

  /** Reads if that is due, or later if it is too soon. */
  async #read() {
    clearTimeout(this.#timer);
    if (document.hidden) return;
    const { tab, panel } = this.#current;
    const key = this.#path && this.#actions.info ? this.#key() : `${this.#tab} nothing`;
    const fresh = key !== this.#asked.key;
    if (fresh) {
      this.#asked = { key, at: 0, took: 0, text: null, answer: null };
      this.#due = true;
      this.#busy = false;
      this.#wait();
    }
    if (!this.#path || !this.#actions.info) return;
    const refusal = tab.refusal?.() ?? null;
    if (refusal) return this.#note(refusal);
    const soon = this.#asked.at + Math.max(APART, 10 * this.#asked.took) - performance.now();
    // An answer that is on its way is followed by the next request.
    if (!this.#due || this.#busy && !fresh) return;
    if (soon > 0 && !fresh) {
      this.#timer = setTimeout(() => this.#read(), soon);
      return;
    }
    this.#due = false;
    this.#busy = true;
    const asked = this.#asked;
    asked.at = performance.now();
    try {
      const text = await getText(key.slice(this.#tab.length + 1));
      asked.took = performance.now() - asked.at;
      if (asked !== this.#asked) return;
      this.#note(null);
      if (text === asked.text) return;
      asked.text = text;
      asked.answer = JSON.parse(text);
      tab.show(asked.answer);
      tab.render?.(this.#model.now);
      setAttr(panel, 'aria-busy', null);
    } catch (error) {
      // Without an answer, the page says that it is disconnected, and rows that were read before stay.
      if (asked === this.#asked && (error.problem !== 'unreachable' || asked.text === null)) this.#note(`${error.message[0].toUpperCase()}${error.message.slice(1)}.`);
    } finally {
      if (asked === this.#asked) {
        this.#busy = false;
        if (this.#due) this.#read();
      }
    }
  }

  /** Marks the open tab as without an answer yet. */
  #wait() {
    clearTimeout(this.#slow);
    const { tab, panel, note } = this.#current;
    if (!tab.instant) setAttr(panel, 'aria-busy', 'true');
    setText(note, '');
    setAttr(panel, 'data-note', null);
    this.#slow = setTimeout(() => this.#note('The program hasn’t answered for 3 s. Still waiting.'), SLOW);
  }

  /** Shows a text in place of what the open tab has, or no text. */
  #note(text) {
    clearTimeout(this.#slow);
    const { tab, panel, note } = this.#current;
    // What a tab knows without an answer stays.
    const shown = tab.instant && this.#path ? null : text;
    if (shown !== null) setAttr(panel, 'aria-busy', null);
    setAttr(panel, 'data-note', shown === null ? null : '');
    setText(note, shown ?? '');
  }

  #tabKey(event) {
    const ids = [...this.#tabs.keys()];
    const at = ids.indexOf(this.#tab);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: ids.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.open(ids[(to + ids.length) % ids.length], true);
  }
}
