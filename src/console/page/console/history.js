// The tabs *Events* and *Log*: what has happened to the selected child and below. Knows the entries of `api/events` and `api/log`.
//
// 1. A list never denies what it has lost: "since the program started" is said only if nothing was dropped and nothing missed.

import { clock, duration, el, inWords, plural, setAttr, setText } from './format.js';
import { List } from './lists.js';

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error'];
const atLeast = (level) => (item) => !item.level || LEVELS.indexOf(item.level.toLowerCase()) >= LEVELS.indexOf(level);
const ALL = ['All levels', () => true];

/** `×12 in 4m`, for an entry that stands for several events. */
const times = (entry) => (entry.count > 1 ? `×${entry.count.toLocaleString('en')} in ${duration(Math.max(1_000, entry.last_at_ms - entry.first_at_ms))}` : '');

/** The text of an entry, without its child. */
export function entryText(entry) {
  if (entry.event !== 'lives') return (entry.level === 'info' ? '' : `${entry.level}: `) + inWords(entry.text);
  // Lives are folded: the count is part of the sentence.
  const text = entry.count === 1 ? entry.text.replace(/^children/, 'child') : entry.text;
  return `×${entry.count.toLocaleString('en')} ${text}${entry.count > 1 ? ` in ${duration(Math.max(1_000, entry.last_at_ms - entry.first_at_ms))}` : ''}`;
}

const countText = (entry) => (entry.event === 'lives' ? '' : times(entry));

export class Events {
  static id = 'events';
  static label = 'Events';
  #page;
  #list;

  constructor(panel, page) {
    this.#page = page;
    this.#list = new List(panel, page.announce, {
      what: 'event',
      choice: 'Level',
      choices: [ALL, ['Warnings and errors', atLeast('warn')], ['Errors', atLeast('error')]],
      text: (entry) => [clock(entry.last_at_ms), entry.path, entryText(entry), countText(entry)].filter(Boolean).join('  '),
      key: (entry) => `${page.short(entry.path)} ${entry.first_at_ms} ${entry.event} ${entry.text}`,
      create: () => el('li', {}, el('time', { class: 'num' }), el('span', { class: 'what' }, el('b'), el('span')), el('span', { class: 'count num' })),
      update(item, entry) {
        const [time, what, count] = item.children;
        setAttr(item, 'data-level', entry.level);
        setText(time, clock(entry.last_at_ms));
        setAttr(time, 'title', `first ${clock(entry.first_at_ms)}, last ${clock(entry.last_at_ms)}, incarnation ${entry.incarnation}`);
        setText(what.firstElementChild, page.short(entry.path));
        setText(what.lastElementChild, entryText(entry));
        setText(count, countText(entry));
      },
    });
  }

  url = (path) => `api/events?under=${encodeURIComponent(path)}`;

  /** Whether a change adds an entry to the list. */
  concerns = (change) => change.events.some((event) => this.#page.isHere(event.path));

  restart() {
    this.#list.restart();
  }

  show({ missed, dropped_before_ms: dropped = null, entries }) {
    const whole = !missed && dropped === null;
    const none = whole ? 'No events since the program started.' : 'No events are kept of this child and below.';
    const note = [missed ? `${plural(missed, 'event')} missed.` : '', entries.length ? '' : none];
    this.#list.show([...entries].reverse(), note.join(' ').trim(), dropped === null ? '' : `older than ${clock(dropped)}: dropped`);
  }
}

export class Log {
  static id = 'log';
  static label = 'Log';
  /** Lines come without a change of the tree. */
  every = 2_000;
  #page;
  #panel;
  #list;

  constructor(panel, page) {
    this.#page = page;
    this.#panel = panel;
    this.#list = new List(panel, page.announce, {
      what: 'line',
      choice: 'Level',
      choices: [ALL, ['INFO and above', atLeast('info')], ['WARN and above', atLeast('warn')], ['ERROR', atLeast('error')]],
      tail: true,
      text: (line) => line.heading ?? [clock(line.at_ms), line.level, line.path, line.message, line.fields].filter(Boolean).join('  '),
      key: (line) => line.heading ?? `${page.short(line.path)} ${line.incarnation} ${line.at_ms} ${line.message} ${line.fields}`,
      create: (line) => (line.heading ? el('li', { class: 'heading' })
        : el('li', {}, el('time', { class: 'num' }), el('span', { class: 'level' }), el('span', { class: 'what' }, el('b'), el('span'), ' ', el('span', { class: 'muted fields' })))),
      update(item, line) {
        if (line.heading) return setText(item, line.heading);
        const [time, level, what] = item.children;
        const [name, message, fields] = what.children;
        setAttr(item, 'data-level', line.level.toLowerCase());
        setText(time, clock(line.at_ms));
        setText(level, line.level);
        setAttr(what, 'title', line.target);
        setText(name, page.short(line.path));
        setText(message, line.message);
        setText(fields, line.fields ?? '');
      },
    });
  }

  /** Why there is nothing to read. */
  refusal = () => (this.#page.info.log ? null : 'No log lines are kept: the program has given the console no LogLines (Console::log_lines).');

  // A supervisor has few lines of its own: show those of its subtree.
  url = (path, node) => `api/log?${node?.kids.length || node?.kind === 'supervisor' ? 'under' : 'path'}=${encodeURIComponent(path)}`;

  concerns = (change) => change.events.some((event) => this.#page.isHere(event.path));

  restart() {
    this.#list.restart();
  }

  show(answer) {
    const bottom = this.#panel.scrollTop + this.#panel.clientHeight >= this.#panel.scrollHeight - 20;
    // Lines of one child are in two lists.
    const lines = answer.lines ?? [...answer.previous, ...answer.current];
    const split = !answer.lines && answer.previous.length > 0;
    const items = split
      ? [{ heading: `Incarnation ${answer.previous[0].incarnation}, ended` }, ...answer.previous, { heading: `Incarnation ${answer.incarnation}, the current one` }, ...answer.current]
      : lines;
    this.#list.show(items, lines.length ? '' : 'No lines are kept of this child.', answer.lines && lines.length >= 500 ? `older than ${clock(lines[0].at_ms)}: not shown` : '');
    if (bottom) this.#panel.scrollTop = this.#panel.scrollHeight;
  }
}
