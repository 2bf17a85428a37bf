// Which rows there are, and in which order. Knows no element and no text but what a row says.
//
// 1. In the order of the tree, a row comes after its supervisor's. Sorted by a column, the rows are one flat list of children.
// 2. A filter and *Problems only* keep the children that match and, in the order of the tree, what is above them.
// 3. More than eight dynamic children of one name are one row, a group, until that is unfolded. Those with a problem, and the
//    selected one, have rows even while it is folded.
// 4. Every row has its `level`, and its `position` among the `siblings` that have rows.

import { comparison, details } from './columns.js';
import { isProblem, stateOf } from './model.js';

/** The most dynamic children of one name that have a row each. */
const ALONE = 8;
/** A group that exists stays one until it has no more than this, so that it doesn't come and go with every connection. */
const ALONE_AGAIN = 4;

/** Whether a child is dynamic, and then its name up to the number: `conn#`. */
const stem = (node) => (node.serial ? node.name.slice(0, node.name.lastIndexOf('#') + 1) : null);

const within = (path, above) => path === above || path?.startsWith(`${above}/`);

/** Returns a predicate: whether a child has all words of the filter, in its path, its state or what its row says. */
function matcher({ filter, problems }, now) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return (node) => {
    if (problems && !isProblem(node)) return false;
    if (!words.length) return true;
    const path = node.path.toLowerCase();
    const rest = words.filter((word) => !path.includes(word));
    if (!rest.length) return true;
    const said = `${stateOf(node)}\n${details(node, now)}`.toLowerCase();
    return rest.every((word) => said.includes(word));
  };
}

export class Rows {
  #model;
  /** The groups that exist, by path. */
  #groups = new Map();

  constructor(model) {
    this.#model = model;
  }

  /** Returns the rows, top to bottom, and how many children match, without the root. `view` has `filter`, `problems`, `sort`, `folded`, `unfolded` and `current`. */
  list(view) {
    const { order, now } = this.#model;
    const matches = matcher(view, now);
    const narrowed = view.problems || view.filter.trim() !== '';
    if (view.sort) return this.#flat(order.filter(matches), view, now);
    let matching = order.length - 1;
    if (narrowed) {
      matching = 0;
      for (const node of order) {
        node.match = matches(node);
        node.keep = node.match;
        matching += node.match && node.parent ? 1 : 0;
      }
      // A node that is kept keeps its ancestors, which come before it.
      for (let i = order.length - 1; i > 0; i--) if (order[i].keep) order[i].parent.keep = true;
    }
    return { rows: this.#tree(view, narrowed), matching };
  }

  #flat(nodes, { sort }, now) {
    nodes.sort(comparison(sort, now));
    nodes.forEach((node, i) => Object.assign(node, { level: 1, position: i + 1, siblings: nodes.length, match: true }));
    return { rows: nodes, matching: nodes.filter(({ parent }) => parent).length };
  }

  #tree(view, narrowed) {
    const rows = [];
    const stack = [];
    const groups = new Map();
    const push = (siblings, level) => {
      for (let i = siblings.length - 1; i >= 0; i--) {
        Object.assign(siblings[i], { level, position: i + 1, siblings: siblings.length });
        stack.push(siblings[i]);
      }
    };
    const { root } = this.#model;
    if (!narrowed || root.keep) push([root], 1);
    while (stack.length) {
      const row = stack.pop();
      rows.push(row);
      if (row.members) {
        const open = view.unfolded.has(row.path);
        push(open ? row.members : row.members.filter((child) => isProblem(child) || child.below.problems || within(view.current, child.path)), row.level + 1);
      } else if (row.kids.length && (narrowed || !view.folded.has(row.path))) {
        push(this.#grouped(row, narrowed ? row.kids.filter((child) => child.keep) : row.kids, groups), row.level + 1);
      }
    }
    this.#groups = groups;
    return rows;
  }

  /** Returns the rows directly below a supervisor: its children, and a group in place of many dynamic ones. */
  #grouped(parent, children, groups) {
    const byStem = new Map();
    for (const child of children) {
      const name = stem(child);
      if (name === null) continue;
      if (!byStem.has(name)) byStem.set(name, []);
      byStem.get(name).push(child);
    }
    for (const [name, members] of byStem) {
      const path = `${parent.path}/${name}…`;
      if (members.length <= (this.#groups.has(path) ? ALONE_AGAIN : ALONE)) byStem.delete(name);
      else groups.set(path, { path, parent, members, name: `${name}…`, depth: parent.depth + 1, match: true });
    }
    if (!byStem.size) return children;
    const rows = [];
    for (const child of children) {
      const members = byStem.get(stem(child));
      if (!members) rows.push(child);
      else if (members[0] === child) rows.push(groups.get(`${parent.path}/${stem(child)}…`));
    }
    return rows;
  }
}
