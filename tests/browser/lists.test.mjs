// The tabs *Events*, *Dead letters* and *Log*: each row names its child, nothing that was lost is denied, and long lists stay quick.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { child, entry, fake } from './fake.mjs';
import { accessible, open, row } from './page.mjs';

const panel = (page) => page.getByRole('tabpanel');
const rows = (page) => panel(page).locator('.entries > li');
const EVIL = '<img src=x onerror=alert(1)>\u001b[31m\u202e';

const line = (path, message, over = {}) => ({ path, incarnation: 1, at_ms: Date.now(), level: 'INFO', target: 'shop', message, fields: null, ...over });
const letter = (id, path, over = {}) => ({ id, at_ms: Date.now() - 60_000 + id, path, reason: 'mailbox_full', event_type: 'Reading', error: null, payload: null, replayable: true, ...over });
const under = (all, { under: root, path }) => all.filter((one) => one.path === (path ?? root) || one.path.startsWith(`${root}/`));

async function shop(t, over = {}) {
  const events = [entry('app/vendor/rates', 'active', { first_at_ms: 1, count: 11 }), entry('app/db', 'active', { first_at_ms: 2 }), entry('app/vendor', 'errored: failed: HTTP 503', { first_at_ms: 3, level: 'warn', event: 'errored' })];
  const lines = [line('app/vendor/rates', 'connected'), line('app/vendor', 'up'), line('app/db', 'pool is open')];
  const program = await fake(child('app', { children: { db: {}, vendor: { children: { rates: {} } } } }), {
    info: { root: 'app', actions: true, log: true, replay: true, needs_token: false },
    events: (query) => ({ missed: 0, dropped_before_ms: null, entries: under(events, query) }),
    log: (query) => (query.path ? { incarnation: 1, previous: [], current: under(lines, query) } : { lines: under(lines, query) }),
    'dead-letters': { missed: 0, letters: [letter(1, 'app/db'), letter(2, 'app/vendor/rates')] },
    ...over,
  });
  t.after(() => program.end());
  return program;
}

/** Waits until the rows name these children, top to bottom. */
const named = (page, names) => page.waitForFunction((expected) => {
  const open = document.querySelector('[role=tabpanel]:not([hidden])');
  return !open.ariaBusy && JSON.stringify([...open.querySelectorAll('.entries > li .what b')].map((name) => name.textContent)) === expected;
}, JSON.stringify(names), { timeout: 10_000 });

// A row that was made for the child had no name, and kept none for the parent: it read as the parent's own.
test('each row names its child, from a child to its parent and back', async (t) => {
  const program = await shop(t);
  const page = await open(program.url);
  const shown = { Events: ['vendor', 'db', 'vendor/rates'], Log: ['vendor/rates', 'vendor', 'db'], 'Dead letters': ['vendor/rates', 'db'] };
  const below = { Events: ['', 'rates'], Log: ['rates', ''], 'Dead letters': ['rates'] };
  for (const tab of Object.keys(shown)) {
    await page.getByRole('tab', { name: tab }).click();
    for (const [path, expected] of [['app/vendor', below[tab]], ['app', shown[tab]], ['app/vendor', below[tab]], ['app', shown[tab]]]) {
      await row(page, path).click();
      await named(page, expected);
    }
  }
});

test('what was dropped is told, and nothing is denied', async (t) => {
  const at = new Date();
  at.setHours(0, 0, 1, 0);
  const program = await shop(t, { events: { missed: 0, dropped_before_ms: null, entries: [] } });
  const page = await open(program.url);
  await page.getByRole('tab', { name: 'Events' }).click();
  await panel(page).getByText('No events since the program started.').waitFor();
  program.answers.events = { missed: 0, dropped_before_ms: at.getTime(), entries: [] };
  program.send();
  await panel(page).getByText('older than 00:00:01: dropped').waitFor();
  assert.equal(await panel(page).getByText('since the program started').count(), 0);
  program.answers.events = { missed: 7, dropped_before_ms: null, entries: [] };
  program.send();
  await panel(page).getByText('7 events missed. No events are kept of this child and below.').waitFor();
  // The list ends where what was dropped begins.
  program.answers.events = { missed: 0, dropped_before_ms: at.getTime(), entries: [entry('app/conns', 'children exited normally', { event: 'lives', count: 501, first_at_ms: 10_000, last_at_ms: 20_000 }), entry('app/conns', 'children started', { event: 'lives', count: 1 })] };
  program.send();
  await panel(page).getByText('×501 children exited normally in 10s', { exact: true }).waitFor();
  await panel(page).getByText('×1 child started', { exact: true }).waitFor();
  await panel(page).getByText('older than 00:00:01: dropped').waitFor();
});

test('level and search decide which rows there are, and the copy has these', async (t) => {
  const program = await shop(t, {
    events: { missed: 0, dropped_before_ms: null, entries: [entry('app/db', 'active', { first_at_ms: 1 }), entry('app/db', `errored: failed: ${EVIL}`, { first_at_ms: 2, level: 'warn' }), entry('app/vendor', 'given up: failed: HTTP 503', { first_at_ms: 3, level: 'error' })] },
    log: { lines: [line('app/db', 'open'), line('app/db', 'slow', { level: 'WARN', fields: 'took=3s' })] },
  });
  const page = await open(program.url, { permissions: ['clipboard-read', 'clipboard-write'] });
  await page.getByRole('tab', { name: 'Events' }).click();
  await rows(page).nth(2).waitFor();
  await panel(page).getByLabel('Level').selectOption('Warnings and errors');
  assert.equal(await rows(page).count(), 2);
  assert.equal(await panel(page).locator('.list-tools .num').textContent(), '2 of 3 events');
  await panel(page).getByRole('button', { name: 'Copy' }).click();
  await page.locator('#message', { hasText: 'copied 2 rows' }).waitFor();
  const copied = (await page.evaluate(() => navigator.clipboard.readText())).split('\n').map((text) => text.replace(/^\S*\d\d:\d\d:\d\d/, 'T'));
  assert.deepEqual(copied, ['T  app/vendor  error: given up: failed: HTTP 503', 'T  app/db  warn: errored: failed: <img src=x onerror=alert(1)>\\u{1b}[31m\\u{202e}', '']);
  await panel(page).getByLabel('Search events').fill('db errored');
  assert.equal(await rows(page).count(), 1);
  // Keys in a tool are for the tool, and `Esc` first clears the search.
  await page.keyboard.press('x');
  assert.equal(await page.getByLabel('Problems only').isChecked(), false);
  await page.keyboard.press('Escape');
  assert.equal(await panel(page).getByLabel('Search events').inputValue(), '');
  assert.equal(await rows(page).count(), 2);
  await page.keyboard.press('Escape');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'tree');
  await page.getByRole('tab', { name: 'Log' }).click();
  await rows(page).nth(1).waitFor();
  await panel(page).getByLabel('Level').selectOption('WARN and above');
  assert.deepEqual(await rows(page).locator('.what').allTextContents(), ['dbslow took=3s']);
  // A line that comes later passes too, or doesn't.
  program.answers.log = { lines: [...program.answers.log.lines, line('app/db', 'fine again'), line('app/db', 'broken', { level: 'ERROR' })] };
  await rows(page).nth(1).waitFor();
  assert.deepEqual(await rows(page).locator('.what span:first-of-type').allTextContents(), ['slow', 'broken']);
});

test('the log of a supervisor is read for what is below it, and that of a worker by incarnation', async (t) => {
  const asked = [];
  const program = await shop(t, {
    log: (query) => {
      asked.push(query);
      return query.under ? { lines: [line('app/db', 'one')] } : { incarnation: 2, previous: [line('app/db', 'old')], current: [line('app/db', 'new', { incarnation: 2 })] };
    },
  });
  const page = await open(program.url);
  await page.getByRole('tab', { name: 'Log' }).click();
  await panel(page).getByText('one').waitFor();
  await row(page, 'app/db').click();
  await panel(page).getByText('Incarnation 1, ended').waitFor();
  await panel(page).getByText('Incarnation 2, the current one').waitFor();
  assert.deepEqual([asked[0], asked.at(-1)], [{ under: 'app' }, { path: 'app/db' }]);
});

// At two thousand entries, the page made 25,000 elements anew each second.
test('of two thousand events a tenth exists until more are asked for, and an unchanged answer writes nothing', async (t) => {
  const entries = Array.from({ length: 2_000 }, (_, i) => entry(`app/db`, `event ${i}`, { first_at_ms: i, last_at_ms: i }));
  const program = await shop(t, { events: { missed: 0, dropped_before_ms: null, entries } });
  const page = await open(program.url);
  await page.getByRole('tab', { name: 'Events' }).click();
  await panel(page).getByText('event 1999', { exact: true }).waitFor();
  assert.equal(await rows(page).count(), 200);
  await page.evaluate(() => {
    globalThis.written = 0;
    new MutationObserver((records) => { globalThis.written += records.length; }).observe(document.querySelector('#panel-events'), { subtree: true, childList: true, characterData: true, attributes: true });
  });
  const read = () => page.evaluate(() => performance.getEntriesByType('resource').filter(({ name }) => name.includes('api/events')).length);
  const before = await read();
  program.send({ events: [entry('app/db', 'event 1999')] });
  await page.waitForFunction((than) => performance.getEntriesByType('resource').filter(({ name }) => name.includes('api/events')).length > than, before);
  assert.equal(await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => resolve(globalThis.written)); })), 0);
  // One more entry is one more row, and the last one leaves.
  program.answers.events = { missed: 0, dropped_before_ms: null, entries: [...entries, entry('app/db', 'event 2000', { first_at_ms: 2_000 })] };
  program.send({ events: [entry('app/db', 'event 2000')] });
  await panel(page).getByText('event 2000', { exact: true }).waitFor();
  assert.equal(await rows(page).count(), 200);
  assert.ok(await page.evaluate(() => globalThis.written) < 20, 'the other rows stay as they are');
  await panel(page).getByRole('button', { name: 'Show 200 more, of 1,801' }).click();
  assert.equal(await rows(page).count(), 400);
  // A search finds what doesn't exist as a row.
  await panel(page).getByLabel('Search events').fill('event 1234');
  assert.equal(await rows(page).count(), 1);
});

// The second of two equal rows stayed for good.
test('rows that are equal in all that they show come and go by their number', async (t) => {
  const twin = () => line('app/db', 'again', { at_ms: 1_000 });
  const program = await shop(t, { log: { lines: [twin(), twin(), twin()] } });
  const page = await open(program.url);
  await page.getByRole('tab', { name: 'Log' }).click();
  await rows(page).nth(2).waitFor();
  for (const lines of [[twin()], [twin(), twin(), twin(), twin()], [twin(), twin()]]) {
    program.answers.log = { lines };
    await page.waitForFunction((count) => document.querySelectorAll('#panel-log .entries > li').length === count, lines.length);
  }
});

test('a change elsewhere in the tree reads no events', async (t) => {
  const asked = [];
  const program = await shop(t, { events: ({ under: path }) => { asked.push(path); return { missed: 0, dropped_before_ms: null, entries: [entry('app/db', `read ${asked.length}`)] }; } });
  const page = await open(program.url);
  await row(page, 'app/db').click();
  await page.getByRole('tab', { name: 'Events' }).click();
  await panel(page).getByText('read 1').waitFor();
  program.send({ events: [entry('app/vendor/rates', 'active')], children: [child('app/vendor/rates', { status: 'elsewhere' })] });
  await row(page, 'app/vendor/rates').getByText('elsewhere').waitFor();
  program.send({ events: [entry('app/db', 'active')] });
  await panel(page).getByText('read 2').waitFor();
  assert.deepEqual(asked, ['app/db', 'app/db']);
});

test('dead letters that are alike share a row, and one or all of them are sent again', async (t) => {
  const letters = [...Array.from({ length: 12 }, (_, i) => letter(i, 'app/vendor/rates')), letter(20, 'app/db', { event_type: 'Query', reason: 'gave_up', error: EVIL, replayable: false })];
  const program = await shop(t, { 'dead-letters': { missed: 0, letters } });
  const page = await open(program.url, { expected: (text) => text.includes('409') });
  await page.getByRole('tab', { name: 'Dead letters' }).click();
  await rows(page).nth(1).waitFor();
  assert.deepEqual(await rows(page).locator('.what').allTextContents(), ['dbgave up: Query<img src=x onerror=alert(1)>\\u{1b}[31m\\u{202e}', 'vendor/ratesmailbox full: Reading']);
  assert.match(await rows(page).nth(1).locator('.count').textContent(), /^×12 since /);
  assert.deepEqual(await rows(page).nth(1).getByRole('button').allTextContents(), ['Replay one', 'Replay all 12']);
  assert.equal(await rows(page).nth(0).getByRole('button').getAttribute('title'), 'the message wasn’t kept');
  program.answer = (name, { id }) => (id === 7 ? [409, { problem: 'wrong_state', error: 'the mailbox is full' }] : [200, { ok: true, text: `replayed dead letter ${id}` }]);
  await page.getByRole('button', { name: 'Replay one' }).click();
  await page.getByRole('dialog', { name: 'Replay a dead letter to app/vendor/rates' }).getByRole('button', { name: 'Replay' }).click();
  await page.locator('#message', { hasText: 'replayed dead letter 11' }).waitFor();
  await page.getByRole('button', { name: 'Replay all 12' }).click();
  await page.getByRole('dialog', { name: 'Replay 12 dead letters to app/vendor/rates' }).getByRole('button', { name: 'Replay all' }).click();
  await page.locator('#message', { hasText: 'Refused: after 7 of 12 dead letters to app/vendor/rates: the mailbox is full' }).waitFor();
  assert.deepEqual(program.calls.map(([, { id }]) => id), [11, 0, 1, 2, 3, 4, 5, 6, 7], 'the oldest first, until one is refused');
  // A reason is a choice once there is one.
  await panel(page).getByLabel('Reason').selectOption('gave up');
  assert.equal(await rows(page).count(), 1);
});

test('axe finds nothing in the lists, and nothing is wider than a narrow window', async (t) => {
  const long = `app/${'a-very-long-name-'.repeat(8)}`;
  const program = await shop(t, {
    events: { missed: 3, dropped_before_ms: 1, entries: [...Array.from({ length: 300 }, (_, i) => entry('app/db', `event ${i}`, { first_at_ms: i })), entry(long, `errored: failed: ${'x'.repeat(500)}`, { level: 'error', count: 12 })] },
    log: { lines: [line(long, 'm'.repeat(500), { level: 'ERROR', fields: `a=${'f'.repeat(300)}` })] },
    'dead-letters': { missed: 2, letters: [letter(1, long, { error: 'e'.repeat(400) }), letter(2, long, { error: 'e'.repeat(400) })] },
    config: { values: [{ path: 'app/db', key: `restart.backoff.${'k'.repeat(80)}`, value: 'v'.repeat(200), source: 'app.toml:12' }] },
  });
  for (const look of [{}, { colorScheme: 'dark', viewport: { width: 390, height: 760 } }, { forcedColors: 'active' }]) {
    const page = await open(program.url, look);
    for (const tab of ['Events', 'Dead letters', 'Log', 'Config']) {
      await page.getByRole('tab', { name: tab }).click();
      await panel(page).locator('li, td').first().waitFor();
      await accessible(page, `${tab}, ${JSON.stringify(look)}`);
      const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
      assert.equal(wide, room, `${tab}, ${JSON.stringify(look)}`);
    }
    await page.context().close();
  }
});
