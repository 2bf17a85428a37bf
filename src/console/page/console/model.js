// The tree as the page knows it: nodes by path, in order, with sums over what is below each. Knows no element.
//
// 1. `order` lists each node after its parent and before its next sibling. Children with a serial number, as in `conn#7`, are in
//    its order: the server lists them by slots, which it uses again.
// 2. A snapshot replaces everything; a change replaces the nodes that it names.
// 3. Times are the server's. `now` is the local clock, corrected by the last snapshot.
// 4. The server decides what a problem is. `counts` are by the word that a row shows, without the root.

/** The shortest time over which a share of busy time says something. */
const SHARE_OVER = 1_000;
const NOTHING = Object.freeze({ children: 0, problems: 0 });

export const parentPath = (path) => (path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : null);

/** What is wrong with the child, the worst first. */
export const problemsOf = (node) => node.problems ?? [];

/** Whether the child needs attention. */
export const isProblem = (node) => problemsOf(node).length > 0;

/** The word for a child's state: that of its lifecycle, unless a more urgent one applies. */
export function stateOf(node) {
  if (node.lifecycle === 'active') return node.healthy === false ? 'unhealthy' : 'active';
  if (node.held && !['activating', 'deactivating'].includes(node.lifecycle)) return 'held';
  return node.lifecycle;
}

export class Model {
  nodes = new Map();
  order = [];
  root = null;
  totals = null;
  program = null;
  counts = {};
  /** When the last snapshot was taken. What changes without an event is as old as that. */
  captured = null;
  #skew = 0;
  #estimates = [];
  #frozen = null;

  get now() {
    return this.#frozen ?? Date.now() + this.#skew;
  }

  /** Stops the clock while no news of the tree arrives, or lets it go on. */
  freeze(on) {
    this.#frozen = on ? this.now : null;
  }

  /** Takes a snapshot. */
  replace(status) {
    this.#skew = this.#correct(status.captured_at_ms);
    this.totals = status.totals;
    this.program = status.program;
    const before = this.nodes;
    const elapsed = this.captured === null ? 0 : status.captured_at_ms - this.captured;
    this.captured = status.captured_at_ms;
    this.nodes = new Map();
    const stack = [[status.root, null]];
    while (stack.length) {
      const [node, parent] = stack.pop();
      const below = node.children;
      node.children = null;
      this.#adopt(node, parent);
      this.#share(node, before.get(node.path), elapsed);
      // The stack reverses them, so that siblings come out in their order.
      for (let i = below.length - 1; i >= 0; i--) stack.push([below[i], node]);
    }
    this.root = status.root;
    this.#arrange();
  }

  /** Takes a change. Returns `structure` if nodes have come or gone, `nodes` if not, and `gap` if a snapshot is needed. */
  apply(change) {
    if (change.totals) this.totals = change.totals;
    if (change.resync) return 'gap';
    let structure = false;
    for (const path of change.removed) structure = this.#remove(path) || structure;
    for (const fresh of change.children) {
      const known = this.nodes.get(fresh.path);
      if (known) {
        Object.assign(known, fresh);
        continue;
      }
      const parent = this.nodes.get(parentPath(fresh.path));
      if (!parent) return 'gap';
      this.#adopt(fresh, parent);
      structure = true;
    }
    if (structure) this.#arrange();
    else if (change.children.length) this.#sum();
    return structure ? 'structure' : 'nodes';
  }

  /** The difference between the clocks. Each estimate is too low by the age of its snapshot, so the greatest of the last ones is best. */
  #correct(captured) {
    this.#estimates = [...this.#estimates.slice(-9), captured - Date.now()];
    return Math.max(...this.#estimates);
  }

  /** Sets the share of the time since the last snapshot that the child's polls took; of its whole life if that says too little. */
  #share(node, before, elapsed) {
    if (!node.busy) return;
    const same = before?.busy && before.incarnation === node.incarnation;
    if (same && elapsed < SHARE_OVER) return void (node.share = before.share);
    const [busy, over] = same ? [node.busy.total_ms - before.busy.total_ms, elapsed] : [node.busy.total_ms, this.captured - node.started_at_ms];
    node.share = over >= SHARE_OVER ? Math.max(0, busy / over) : null;
  }

  #adopt(node, parent) {
    node.parent = parent;
    node.kids = [];
    node.depth = parent ? parent.depth + 1 : 0;
    node.name = parent ? node.path.slice(parent.path.length + 1) : node.path;
    node.serial = Number(/#(\d+)$/.exec(node.name)?.[1] ?? 0);
    this.nodes.set(node.path, node);
    parent?.kids.push(node);
  }

  #remove(path) {
    const node = this.nodes.get(path);
    if (!node?.parent) return false;
    node.parent.kids.splice(node.parent.kids.indexOf(node), 1);
    const stack = [node];
    while (stack.length) {
      const gone = stack.pop();
      this.nodes.delete(gone.path);
      stack.push(...gone.kids);
    }
    return true;
  }

  /** Lists all nodes in order, without recursion, because a tree may be a thousand levels deep. */
  #arrange() {
    this.order = [];
    const stack = [this.root];
    while (stack.length) {
      const node = stack.pop();
      this.order.push(node);
      node.place = this.order.length - 1;
      // Others have no serial number, and keep their order.
      node.kids.sort((a, b) => a.serial - b.serial);
      for (let i = node.kids.length - 1; i >= 0; i--) stack.push(node.kids[i]);
    }
    this.#sum();
  }

  #sum() {
    for (const node of this.order) node.below = node.kids.length ? { children: 0, problems: 0 } : NOTHING;
    this.counts = {};
    for (let i = this.order.length - 1; i > 0; i--) {
      const { parent, below } = this.order[i];
      const state = stateOf(this.order[i]);
      this.counts[state] = (this.counts[state] ?? 0) + 1;
      parent.below.children += below.children + 1;
      parent.below.problems += below.problems + (isProblem(this.order[i]) ? 1 : 0);
    }
  }
}
