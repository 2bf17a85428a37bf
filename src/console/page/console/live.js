// Keeps the model up to date, and knows how up to date it is.
//
// 1. The stream carries changes, and a snapshot everything else. A snapshot is fetched at the start, after a gap, and from time
//    to time, because mailboxes, limits and texts change without an event.
// 2. The page never shows old facts as live ones: without news for six seconds it is disconnected, and its clock stops.
// 3. What takes longer than three seconds is named: the page says what it waits for.

import { get } from './api.js';
import { clock } from './format.js';
import { Stream } from './stream.js';

/** After this time the page says what it waits for. */
const PATIENCE = 3_000;
/** The time between two snapshots. Of a large tree each takes long, so the next one is later, but not later than `MOST` if it can be. */
const OFTEN = 2_000;
const MOST = 8_000;

export class Live {
  #model;
  #on;
  #stream;
  /** Since when the page waits, and what it has said about that. */
  #waiting = { since: Date.now(), text: null };
  #asks = false;
  /** The changes that a snapshot may not include yet, because it is up to half a second old. */
  #recent = [];
  /** The snapshots: whether one is being fetched, when the last one ended and how long it took, and when the next is due. */
  #fetched = { busy: false, ended: 0, took: 0, next: Infinity };
  state = 'connecting';
  /** What the console can do, as the program says. */
  info = null;

  /**
   * `on` has `state(state, text)`, `replaced()` after a snapshot, `changed(what, change)` after a change, and `token(send)`, which asks
   * for the token and resolves with the answer of `send`, or with `null`.
   */
  constructor(model, on) {
    this.#model = model;
    this.#on = on;
    this.#stream = new Stream({
      opened: () => this.#opened(),
      changed: (change) => this.#changed(change),
      lost: (error) => this.#lost(error),
    });
    document.addEventListener('visibilitychange', () => {
      // What a hidden tab hasn't read is due.
      if (!document.hidden) this.#fetched.next = Math.min(this.#fetched.next, performance.now());
    });
  }

  start() {
    this.#set('connecting');
    this.#stream.start();
  }

  pause() {
    this.#stream.stop();
    this.#set('paused');
  }

  /** Once a second. */
  beat() {
    const due = performance.now() > this.#fetched.next;
    if (this.state === 'live') {
      if (due && !document.hidden) this.#snapshot().catch((error) => this.#lost(error));
      return;
    }
    this.#say();
    // The stream is there, and a snapshot wasn't to be had.
    if (due && this.#stream.connected && !this.#fetched.busy) this.#opened();
  }

  #set(state) {
    this.#model.freeze(Boolean(this.#model.root) && state !== 'live');
    if (state !== this.state) this.#waiting = { since: Date.now(), text: null };
    this.state = state;
    this.#say();
  }

  #say() {
    const { since } = this.#waiting;
    const late = Date.now() - since >= PATIENCE;
    const waits = this.#asks ? 'the token' : this.#stream.connected ? 'a snapshot of the tree' : this.#stream.waits;
    const text = this.state === 'connecting' ? (late ? `connecting, waits for ${waits}` : 'connecting')
      : this.state === 'disconnected' ? `disconnected at ${clock(since)}, ${late || this.#asks ? `waits: ${waits}` : 'trying again'}` : this.state;
    if (text === this.#waiting.text) return;
    this.#waiting.text = text;
    this.#on.state(this.state, text);
  }

  async #opened() {
    // The process may be a different one by now.
    this.info = null;
    this.#recent = [];
    this.#model.freeze(false);
    try {
      await this.#snapshot();
      this.#set('live');
    } catch (error) {
      this.#lost(error);
    }
  }

  #lost(error) {
    // An answer may come after the pause.
    if (this.state === 'paused') return;
    if (error.problem === 'bad_token') return void this.#ask();
    // A connection that was never there isn't lost: the page says what it waits for.
    this.#set(this.#model.root ? 'disconnected' : 'connecting');
  }

  /** Asks for the token that reading needs, and continues with it. */
  async #ask() {
    if (this.#asks) return;
    this.#asks = true;
    this.#stream.stop();
    this.#say();
    const info = await this.#on.token(() => get('api/info'));
    this.#asks = false;
    if (info) this.start();
    else this.pause();
  }

  /** Fetches a snapshot. */
  async #snapshot() {
    const fetched = this.#fetched;
    if (fetched.busy) return fetched.busy;
    const began = performance.now();
    const take = async () => {
      const [info, status] = await Promise.all([this.info ?? get('api/info'), get('api/status')]);
      this.info = info;
      this.#model.replace(status);
      this.#recent = this.#recent.filter((change) => change.seq > status.seq);
      for (const change of this.#recent) this.#model.apply(change);
      this.#on.replaced();
    };
    fetched.busy = take().finally(() => {
      fetched.busy = false;
      fetched.ended = performance.now();
      fetched.took = fetched.ended - began;
      fetched.next = fetched.ended + Math.max(OFTEN, Math.min(MOST, 20 * fetched.took), 2 * fetched.took);
    });
    return fetched.busy;
  }

  #changed(change) {
    if (!this.#model.root) return;
    const fetched = this.#fetched;
    const tells = change.children.length + change.removed.length > 0;
    if (tells) this.#recent = [...this.#recent.slice(-99), change];
    const what = this.#model.apply(change);
    // Not immediately, because a tree that changes so much may be large.
    if (what === 'gap') fetched.next = Math.min(fetched.next, fetched.ended + Math.max(500, 4 * fetched.took));
    this.#on.changed(what === 'nodes' && !tells ? 'nothing' : what, change);
  }
}
