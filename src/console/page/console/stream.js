// The changes of the tree, from one request for all tabs of a browser: a browser has six connections to a host, and a stream holds
// one for as long as its page is open. Knows no node.
//
// 1. Of the tabs of a browser, the one that holds the lock reads, and passes on what it reads. When it goes, the next one reads.
// 2. A tab that hears nothing takes the lock away: a hidden tab may be frozen while it holds the lock.
// 3. Without locks, behind plain http of another host, each tab reads by itself, and only while it is visible.
// 4. `opened` is called once for each connection. What changed before may have been missed.

import { headers } from './api.js';

const NAME = 'verger-stream';
/** The server sends something every two seconds. */
const SILENCE = 6_000;
const RETRY = 1_000;

/** Resolves after a time, or when the signal aborts. */
const pause = (ms, signal) => new Promise((resolve) => {
  const timer = setTimeout(resolve, ms);
  signal.addEventListener('abort', () => { clearTimeout(timer); resolve(); }, { once: true });
});

/** Yields the data of each event. The server writes each event as one `event:` and one `data:` line. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (text + value).split('\n\n');
    text = parts.pop();
    for (const part of parts) yield /^data: (.*)$/m.exec(part)?.[1] ?? null;
  }
}

export class Stream {
  #on;
  #shared = Boolean(globalThis.isSecureContext && navigator.locks && globalThis.BroadcastChannel);
  #channel = null;
  /** The request for the lock that was made last; aborting it leaves the queue. */
  #turn = null;
  /** While this tab reads: whether it has stopped, and the request that it reads. */
  #reading = null;
  /** The connection whose changes this tab follows, what is known of it, and when something was heard of it last. */
  #connection = null;
  #known = null;
  #heard = 0;
  #started = false;
  /** What this tab waits for, in words, while it isn't connected. */
  waits = '';

  /** `on` has `opened()`, `changed(change)` and `lost(error)`, whose `problem` is `unreachable` if there was no answer. */
  constructor(on) {
    this.#on = on;
    document.addEventListener('visibilitychange', () => {
      if (this.#shared || !this.#started) return;
      if (document.hidden) this.#stopReading();
      else this.start();
    });
    setInterval(() => this.#watch(), 1_000);
  }

  get connected() {
    return this.#connection !== null;
  }

  start() {
    this.stop();
    this.#started = true;
    this.#heard = Date.now();
    this.waits = `an answer of ${location.host}`;
    if (!this.#shared) return void this.#read();
    this.#channel = new BroadcastChannel(NAME);
    this.#channel.addEventListener('message', ({ data }) => this.#hear(data));
    this.#channel.postMessage({ kind: 'hello' });
    this.#queue();
  }

  stop() {
    this.#started = false;
    this.#turn?.abort();
    this.#stopReading();
    this.#channel?.close();
    this.#channel = this.#connection = this.#known = null;
  }

  #stopReading() {
    if (!this.#reading) return;
    this.#reading.stopped = true;
    this.#reading.request.abort();
    this.#reading = null;
  }

  /** Waits for the lock, or takes it, and reads for as long as this tab holds it. */
  async #queue(steal = false) {
    this.#turn?.abort();
    const turn = new AbortController();
    this.#turn = turn;
    try {
      await navigator.locks.request(NAME, steal ? { steal } : { signal: turn.signal }, () => this.#read());
    } catch {
      if (turn.signal.aborted) return;
      // Another tab has taken the lock.
      this.#stopReading();
      this.#heard = Date.now();
      this.#queue();
    }
  }

  /** Reads, and after a lost connection again, until `#stopReading`. */
  async #read() {
    const reading = { stopped: false, request: new AbortController() };
    this.#reading = reading;
    while (!reading.stopped) {
      try {
        await this.#follow(reading.request.signal);
      } catch (error) {
        if (reading.stopped) return;
        this.#tell({ kind: 'lost', text: error.message, problem: error.problem ?? 'unreachable' });
      }
      reading.request = new AbortController();
      await pause(RETRY, reading.request.signal);
    }
  }

  async #follow(signal) {
    const unreachable = () => { throw new Error(`${location.host} can’t be reached`); };
    const response = await fetch('api/stream', { headers: headers(), signal, cache: 'no-store' }).catch(unreachable);
    if (!response.ok) {
      const refusal = await response.json().catch(() => ({ error: `${location.host} answered with status ${response.status}`, problem: 'refused' }));
      throw Object.assign(new Error(refusal.error), { problem: refusal.problem });
    }
    this.#tell({ kind: 'open', connection: `${Date.now()} ${Math.random()}` });
    try {
      for await (const change of events(response.body)) if (change) this.#tell({ kind: 'change', change });
    } catch {
      unreachable();
    }
    throw new Error(`${location.host} has closed the connection`);
  }

  /** Passes a message on to all tabs, this one included. */
  #tell(message) {
    this.#channel?.postMessage(message);
    this.#hear(message);
  }

  #hear(message) {
    if (message.kind === 'hello') {
      // From a tab that has just been opened. The others know the connection.
      if (this.#reading && this.#known) this.#channel.postMessage(this.#known);
      return;
    }
    this.#heard = Date.now();
    if (message.kind === 'change') {
      if (this.#connection) this.#on.changed(JSON.parse(message.change));
      return;
    }
    this.#known = message;
    if (message.kind === 'lost') {
      this.#lose(Object.assign(new Error(message.text), { problem: message.problem }));
    } else if (this.#connection !== message.connection) {
      this.#connection = message.connection;
      this.#on.opened();
    }
  }

  #lose(error) {
    this.#connection = null;
    this.waits = error.message;
    this.#on.lost(error);
  }

  /** Once a second: what to do about silence. A hidden tab can wait: it is the visible one that somebody looks at. */
  #watch() {
    if (!this.#started || document.hidden || Date.now() - this.#heard < SILENCE) return;
    this.#heard = Date.now();
    // Tells all tabs, and tries again.
    if (this.#reading) return this.#reading.request.abort();
    this.#lose(Object.assign(new Error(`nothing was heard for ${SILENCE / 1_000} s`), { problem: 'unreachable' }));
    this.#queue(true);
  }
}
