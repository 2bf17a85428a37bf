// A long list in a tab, with its tools: a choice of rows, a search, and a copy. Knows no row's content.
//
// 1. At most `STEP` rows exist until the reader asks for more, however long the list is.
// 2. Choice and search decide about the whole list. The copy contains all rows that pass, not only those that exist.
// 3. An element shows its item as of the last update, with the name of its child: nothing is written only at its creation.

import { el, plural, reconcile, setText, visible } from './format.js';

const STEP = 200;

/** Puts a text into the clipboard. */
async function copyText(text) {
  // Only pages that a browser trusts have a clipboard: those of this machine, and those with TLS.
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = el('textarea', { class: 'hidden', 'aria-hidden': 'true' });
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  if (!copied) throw new Error('the browser doesn’t allow it');
}

/** A button that copies what `text` returns, a row in each line. */
export function copyButton(announce, text) {
  return el('button', {
    type: 'button', text: 'Copy', title: 'Copy the rows as text',
    async onclick() {
      const rows = text();
      try {
        // A terminal into which this is pasted must not execute it.
        await copyText(rows.map((row) => visible(row).replace(/\n/g, '\n    ')).join('\n') + '\n');
        announce(`copied ${plural(rows.length, 'row')}`);
      } catch (error) {
        announce(`Not copied: ${error.message}`, true);
      }
    },
  });
}

/** Keeps what is typed into a tool from the keys of the page, except `Esc` in an empty search. */
function ownKeys(event) {
  const { target } = event;
  if (event.key === 'Escape' && !(target.matches('[type=search]') && target.value)) return;
  event.stopPropagation();
  if (event.key !== 'Escape') return;
  target.value = '';
  target.dispatchEvent(new Event('input'));
}

export class List {
  #kind;
  #items = [];
  #most = STEP;

  /**
   * Makes an empty list in `panel`. `kind` has:
   * `what`, the word for its items; `choices`, a list of `[label, passes(item)]`, and `choice`, its name;
   * `text(item)`, which is searched and copied; `key(item)`, `create(item)` and `update(element, item)` as in `reconcile`;
   * `tail`, whether the list shows its last rows first.
   */
  constructor(panel, announce, kind) {
    this.#kind = kind;
    this.choice = el('select', { 'aria-label': kind.choice, onchange: () => this.#write(), onkeydown: ownKeys });
    this.choose(kind.choices);
    this.search = el('input', { type: 'search', 'aria-label': `Search ${kind.what}s`, placeholder: 'Search', autocomplete: 'off', spellcheck: 'false', oninput: () => this.#write(), onkeydown: ownKeys });
    this.shown = el('span', { class: 'muted num' });
    this.note = el('p', { class: 'muted note' });
    this.entries = el('ol', { class: 'entries' });
    this.more = el('button', { type: 'button', class: 'more-rows', hidden: true, onclick: () => this.#showMore() });
    this.end = el('p', { class: 'muted note' });
    const copy = copyButton(announce, () => this.#passing().map((item) => kind.text(item)));
    panel.append(el('div', { class: 'list-tools' }, this.choice, this.search, copy, this.shown), this.note,
      ...(kind.tail ? [this.end, this.more, this.entries] : [this.entries, this.more, this.end]));
  }

  /** Offers these choices, and keeps the one that is chosen if it is among them. */
  choose(choices) {
    this.choices = choices.map(([label, passes]) => [visible(label), passes]);
    const labels = this.choices.map(([label]) => label);
    if (labels.join('\n') === [...this.choice.options].map((option) => option.value).join('\n')) return;
    const chosen = this.choice.value;
    this.choice.replaceChildren(...labels.map((label) => el('option', { value: label, text: label })));
    this.choice.value = labels.includes(chosen) ? chosen : labels[0];
  }

  /** Begins with few rows again, because the list is about another child. */
  restart() {
    this.#most = STEP;
  }

  /** Shows these items. `note` is above them, `end` where the oldest row is. */
  show(items, note, end = '') {
    this.#items = items;
    setText(this.note, note);
    setText(this.end, end);
    this.#write();
  }

  #passing() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const [, passes] = this.choices.find(([label]) => label === this.choice.value) ?? this.choices[0];
    return this.#items.filter((item) => {
      if (!passes(item)) return false;
      if (!words.length) return true;
      const text = this.#kind.text(item).toLowerCase();
      return words.every((word) => text.includes(word));
    });
  }

  #write() {
    const { key, create, update, tail, what } = this.#kind;
    const passing = this.#passing();
    const rows = tail ? passing.slice(-this.#most) : passing.slice(0, this.#most);
    const left = passing.length - rows.length;
    const some = passing.length < this.#items.length;
    setText(this.shown, some ? `${passing.length.toLocaleString('en')} of ${plural(this.#items.length, what)}` : this.#items.length ? plural(this.#items.length, what) : '');
    this.more.hidden = left === 0;
    setText(this.more, `Show ${Math.min(STEP, left)} ${tail ? 'earlier' : 'more'}, of ${left.toLocaleString('en')}`);
    reconcile(this.entries, rows, key, create, update);
  }

  #showMore() {
    this.#most += STEP;
    this.#write();
    // The button moves away from under the focus, or is gone.
    if (this.more.hidden) this.search.focus();
  }
}
