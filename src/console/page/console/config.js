// The tab *Config*: the values of the selected child's policy and of the configuration, and where each comes from.

import { el, plain } from './format.js';

export class Config {
  static id = 'config';
  static label = 'Config';
  every = 10_000;
  #page;
  #panel;
  #note = el('p', { class: 'muted empty', text: 'Nothing is configured here.' });
  #table = el('table', { class: 'config' });

  constructor(panel, page) {
    this.#page = page;
    this.#panel = panel;
    panel.append(this.#note, this.#table);
  }

  url = () => 'api/config';

  concerns = () => false;

  show({ values }) {
    const { node, path } = this.#page;
    const rows = [];
    for (const [name, part] of Object.entries(node?.policy ?? {})) {
      const place = node.configured?.[name];
      rows.push({ path, key: name.replaceAll('_', ' '), value: plain(part.value), source: place ? `${part.source}, ${place}` : part.source });
    }
    rows.push(...values.filter((value) => this.#page.isHere(value.path)));
    this.#note.hidden = rows.length > 0;
    this.#table.hidden = rows.length === 0;
    const parts = [el('thead', {}, el('tr', {}, ...['Key', 'Value', 'Source'].map((text) => el('th', { scope: 'col', text }))))];
    for (const row of rows) {
      let group = parts.at(-1);
      if (group.dataset.path !== row.path) {
        parts.push(group = el('tbody', { 'data-path': row.path }));
        if (row.path !== path) group.append(el('tr', {}, el('th', { colspan: 3, scope: 'rowgroup', text: this.#page.short(row.path) })));
      }
      // A long key breaks after a dot, not within a word.
      const key = el('td', {}, ...row.key.split(/(?<=\.)/).flatMap((part) => [part, el('wbr')]));
      group.append(el('tr', {}, key, el('td', {}, el('code', { text: plain(row.value) })), el('td', { class: 'muted', text: row.source })));
    }
    this.#table.replaceChildren(...parts);
  }
}
