// A console whose tree a test makes up: the files of the page as they are, and answers in the form of the program's.
//
// A change of the tree is a change of `root` and a call of `send`, which tells all open pages to read it.

import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';

const PAGE = new URL('../../src/console/page/', import.meta.url);
const TYPES = { html: 'text/html; charset=utf-8', js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8' };
/** As `src/console/guard.rs` sends it. */
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** A child that is active, with what `facts` says instead. Its `children` are pairs of a name and facts. */
export function child(path, { children = {}, ...facts } = {}) {
  const below = Object.entries(children).map(([name, of]) => child(`${path}/${name}`, of));
  const now = Date.now();
  const supervisor = below.length ? { strategy: 'one_for_one', restarts_in_period: 0, max_restarts: 5, period_ms: 60_000, limit_reached: false, counts: {}, gone: [] } : null;
  return {
    path, kind: below.length ? 'supervisor' : 'worker', declared: true, restart: 'permanent', policy: null, essential: true, significant: false,
    ready: true, lifecycle: 'active', why: null, explanation: null, incarnation: 1, restarts: 0, failures: 0, limit: null, created_at_ms: now - 60_000,
    started_at_ms: now - 60_000, since_ms: now - 60_000, for_ms: 60_000, last_exit: null, next: null, status: null, healthy: null, problem: null,
    requires: [], waits_for: [], held: false, last_call: null, mailbox: null, problems: [], supervisor, children: below, ...facts,
  };
}

/** A child that waits for its next attempt after a failure with this text. */
export function failing(cause, facts = {}) {
  const now = Date.now();
  return {
    lifecycle: 'restarting', ready: false, restarts: 3, failures: 4, since_ms: now - 2_000,
    last_exit: { incarnation: 4, at_ms: now - 2_000, lived_ms: 10, reason: { kind: 'failed', message: `failed: ${cause}` } },
    next: { at_ms: now + 600_000, attempt: 4, delay_ms: 600_000, remaining_ms: 600_000 },
    problems: [{ kind: 'down', problem: `restarting, attempt 4 in 600.0s, last: failed: ${cause}`, cause: `failed: ${cause}`, since_ms: now - 2_000, essential: true }],
    ...facts,
  };
}

/** An entry of the events. */
export const entry = (path, text, facts = {}) => ({ path, incarnation: 1, count: 1, first_at_ms: Date.now() - 5_000, last_at_ms: Date.now() - 5_000, seq: 1, level: 'info', event: 'active', text, ...facts });

/**
 * Serves a tree with this root. `token`: what reading needs. `own` has answers by what comes after `api/`: a value, or a function of the
 * query, whose promise may stay without a result.
 */
export async function fake(root, { token = null, streams = true, ...own } = {}) {
  const pages = new Set();
  let seq = 1;
  const status = () => ({
    seq, captured_at_ms: Date.now() - server.age, program: { verger: '1.2.3', pid: 1, started_at_ms: 1, uptime_ms: 1 },
    totals: { children: 0, lifecycle: {}, starts: 0, restarts: 0, failures: 0, dead_letters: 0 }, root: server.root,
  });
  const answers = {
    info: { root: 'app', actions: false, reload: false, log: false, replay: false, verger: '1.2.3', needs_token: true, read_token: token !== null, identity: null },
    status,
    events: { missed: 0, dropped_before_ms: null, entries: [] },
    incidents: { from_ms: 0, dropped_before_ms: null, incidents: [] },
    samples: { every_ms: 2_000, samples: [] },
    'dead-letters': { missed: 0, letters: [] },
    config: { values: [] },
    ...own,
  };
  const send = (change = {}) => {
    const message = JSON.stringify({ seq, captured_at_ms: Date.now(), totals: null, children: [], removed: [], events: [], resync: false, ...change });
    for (const page of pages) page.write(`event: change\ndata: ${message}\n\n`);
  };
  const http = createServer(async (request, response) => {
    const path = request.url.split('?')[0].slice(1) || 'index.html';
    response.setHeader('Content-Security-Policy', POLICY);
    const json = (code, body) => response.writeHead(code, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
    if (path.startsWith('api/')) {
      if (token !== null && request.headers['x-verger-token'] !== token) return json(403, { error: 'reading needs the token', problem: 'bad_token' });
      if (path === 'api/stream') {
        server.opened += 1;
        // As a program that hangs.
        if (!streams) return undefined;
        pages.add(response);
        response.on('close', () => pages.delete(response));
        return response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('retry: 1000\n\n');
      }
      const name = path.slice(4);
      if (request.method === 'POST') {
        let text = '';
        for await (const part of request.setEncoding('utf8')) text += part;
        server.calls.push([name, JSON.parse(text)]);
        return json(...await server.answer(name, JSON.parse(text)));
      }
      const answer = answers[name];
      if (!answer) return json(404, { error: 'not found', problem: 'not_found' });
      return json(200, typeof answer === 'function' ? await answer(Object.fromEntries(new URL(request.url, 'http://fake').searchParams)) : answer);
    }
    try {
      const text = await readFile(new URL(path, PAGE));
      return response.writeHead(200, { 'Content-Type': TYPES[path.split('.').at(-1)] }).end(text);
    } catch {
      return response.writeHead(404).end();
    }
  });
  const heartbeat = setInterval(() => send(), 500);
  await new Promise((resolve) => { http.listen(0, '127.0.0.1', resolve); });
  const server = {
    root,
    url: `http://127.0.0.1:${http.address().port}/`,
    /** How old the answers of `api/status` are, as if taking one took that long. */
    age: 0,
    /** How many streams have been opened, and are open. */
    opened: 0,
    get open() { return pages.size; },
    /** What `GET` requests are answered with, by the name after `api/`. */
    answers,
    /** The calls, each with its name and content, and the status and the answer that each gets. */
    calls: [],
    answer: (name, { path }) => [200, { ok: true, text: `${name} ${path}` }],
    /** Sends a change, such as `{ children }`. Without one, pages read the whole tree again. */
    send(change) {
      seq += 1;
      send(change ?? { resync: true });
    },
    /** Changes a child, and tells all open pages. */
    set(path, facts) {
      const find = (node) => (node.path === path ? node : node.children.map(find).find(Boolean));
      const node = Object.assign(find(server.root), facts);
      server.send({ children: [{ ...node, children: undefined }] });
    },
    end() {
      clearInterval(heartbeat);
      http.closeAllConnections();
      return new Promise((resolve) => { http.close(resolve); });
    },
  };
  return server;
}
