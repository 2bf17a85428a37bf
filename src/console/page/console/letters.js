// The tab *Dead letters*: undelivered messages, those that are alike in one row. Knows the letters of `api/dead-letters`.

import { clock, el, plural, reconcile, setAttr, setText } from './format.js';
import { List } from './lists.js';

/** Letters that differ in their time only, as one group. The group with the latest letter comes first. */
export function groups(letters) {
  const found = new Map();
  for (const letter of letters) {
    const key = JSON.stringify([letter.path, letter.reason, letter.event_type, letter.error]);
    const group = found.get(key) ?? { key, letters: [] };
    group.letters.push(letter);
    // The order is that of the last letters.
    found.delete(key);
    found.set(key, group);
  }
  return [...found.values()].reverse().map((group) => ({ ...group, last: group.letters.at(-1), replayable: group.letters.filter((letter) => letter.replayable) }));
}

const words = (reason) => String(reason).replaceAll('_', ' ');

const what = ({ last }) => `${words(last.reason)}: ${last.event_type ?? 'a message'}`;

const count = ({ letters }) => (letters.length > 1 ? `×${letters.length.toLocaleString('en')} since ${clock(letters[0].at_ms)}` : '');

export class Letters {
  static id = 'letters';
  static label = 'Dead letters';
  /** A letter may also leave the store without a new one. */
  every = 10_000;
  #page;
  #list;
  #count = null;

  constructor(panel, page) {
    this.#page = page;
    this.#list = new List(panel, page.announce, {
      what: 'row',
      choice: 'Reason',
      choices: [['All reasons', () => true]],
      text: (group) => [clock(group.last.at_ms), group.last.path, what(group), group.last.error, count(group)].filter(Boolean).join('  '),
      key: (group) => group.key,
      create: () => el('li', {}, el('time', { class: 'num' }), el('span', { class: 'what' }, el('b'), el('span'), el('span', { class: 'more' }), el('code', { class: 'more' })), el('span', { class: 'count num' }), el('span', { class: 'buttons' })),
      update: (item, group) => this.#write(item, group),
    });
  }

  url = () => 'api/dead-letters';

  /** Whether the tree counts more dead letters than when the list was read. */
  concerns = () => this.#page.model.totals.dead_letters !== this.#count;

  restart() {
    this.#list.restart();
  }

  show({ missed, letters }) {
    this.#count = this.#page.model.totals.dead_letters;
    const here = groups(letters.filter((letter) => this.#page.isHere(letter.path)));
    const reasons = [...new Set(letters.map((letter) => letter.reason))].sort();
    this.#list.choose([['All reasons', () => true], ...reasons.map((reason) => [words(reason), (group) => group.last.reason === reason])]);
    this.#list.show(here, [missed ? `${plural(missed, 'letter')} missed.` : '', here.length ? '' : 'No dead letters are kept here.'].join(' ').trim());
  }

  #write(item, group) {
    const { last } = group;
    const [time, text, times, buttons] = item.children;
    const [name, line, error, payload] = text.children;
    setText(time, clock(last.at_ms));
    setText(name, this.#page.short(last.path));
    setText(line, what(group));
    setText(error, last.error ?? '');
    setText(payload, last.payload ?? '');
    setText(times, count(group));
    const { info } = this.#page;
    const offered = !info.actions || !info.replay ? [] : group.letters.length > 1 ? ['Replay one', `Replay all ${group.letters.length}`] : ['Replay'];
    reconcile(buttons, offered, (label) => label.replace(/\d+/, ''), (label) => {
      const one = !label.includes('all');
      // The group as of the click, not as of the first time that it was shown.
      return el('button', { type: 'button', onclick: () => this.#replay(item.group, one) });
    }, (button, label) => {
      setText(button, label);
      setAttr(button, 'aria-disabled', group.replayable.length ? null : 'true');
      setAttr(button, 'title', group.replayable.length ? null : 'the message wasn’t kept');
    });
    item.group = group;
  }

  async #replay({ last, replayable }, one) {
    if (!replayable.length) return this.#page.announce('This letter can’t be replayed: its message wasn’t kept.', true);
    await this.#page.actions.replay(last, one ? replayable.slice(-1) : replayable);
    this.#page.refresh();
  }
}
