// The tab *Incidents*, which opens first: from a page that was just opened to the cause of a failure.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { child, entry, fake } from './fake.mjs';
import { accessible, open, row } from './page.mjs';
import { serve } from './program.mjs';

const MINUTE = 60_000;
const panel = (page) => page.getByRole('tabpanel');
/** The incident of a child. */
const incident = (page, path) => panel(page).locator('.incident', { has: page.getByRole('link', { name: path, exact: true }) });

function incidents(now) {
  const problem = (kind, text) => ({ kind, problem: text, since_ms: now - 2 * MINUTE, essential: true });
  return [
    {
      path: 'app/ingest/mqtt', children: 1, now: true, since_ms: now - 2 * MINUTE, last_ms: now - 1_000, failures: 12, attempt: 4, next_ms: now + 30_000,
      cause: `failed: ${'no route to the broker; '.repeat(40)}last of all`,
      problems: [problem('down', 'restarting, attempt 4 in 30s: failed: no route'), problem('limit', '4 of 5 restarts in 1m are used')],
      changes: [
        entry('app/ingest', 'reload called by alice (typed): more room', { event: 'reloaded', last_at_ms: now - 3 * MINUTE }),
        entry('app/ingest/mqtt', 'terminate_child called by bob (header): to see', { event: 'called', last_at_ms: now - 2 * MINUTE }),
      ],
    },
    {
      path: 'app/db', children: 1, now: false, since_ms: now - 10 * MINUTE, last_ms: now - 9 * MINUTE, failures: 3, attempt: null, next_ms: null,
      cause: 'failed: relation "invoices" doesn’t exist', problems: [], changes: [],
    },
    {
      path: 'app/conns/conn#9', children: 7, now: false, since_ms: now - 12 * MINUTE, last_ms: now - 11 * MINUTE, failures: 7, attempt: null, next_ms: null,
      cause: 'panicked: <img src=x onerror=alert(1)>\u001b[31m\u202e', problems: [], changes: [],
    },
  ];
}

/** A tree in which `mqtt` restarts, and that had incidents. */
async function broken(t, over = {}) {
  const now = Date.now();
  const mqtt = { lifecycle: 'restarting', ready: false, next: { at_ms: now + 30_000, attempt: 4, delay_ms: 30_000 } };
  const program = await fake(child('app', { children: { db: {}, ingest: { children: { mqtt } } } }), {
    incidents: { from_ms: now - 15 * MINUTE, dropped_before_ms: null, incidents: incidents(now) },
    samples: ({ path }) => ({ every_ms: 2_000, samples: path === 'app/db' ? [] : [0, 1, 1, 3].map((restarts, i) => ({ at_ms: now - 8_000 + 2_000 * i, restarts, mailbox: 0, busy_ms: 0 })) }),
    ...over,
  });
  t.after(() => program.end());
  return program;
}

// What the page is opened for: no click and no key leads to the cause of a failure of ten minutes ago.
test('the causes of what is wrong and of what was are in sight when the page is opened', async (t) => {
  const program = await broken(t);
  const page = await open(program.url);
  await page.getByRole('tab', { name: 'Incidents', selected: true }).waitFor();
  const mqtt = incident(page, 'app/ingest/mqtt');
  await mqtt.waitFor();
  assert.match(await mqtt.locator('.num').first().textContent(), /^since .+, for 2m\d*s? · 12 failures · attempt 4 in \d+s$/);
  assert.equal(await mqtt.locator('.cause').textContent(), `failed: ${'no route to the broker; '.repeat(40)}last of all`, 'the whole cause');
  const [text, box] = await mqtt.locator('.cause').evaluate((cause) => [cause.scrollWidth, cause.clientWidth]);
  assert.equal(text, box, 'nothing of the cause is cut off');
  assert.deepEqual(await mqtt.locator('.problems li').allTextContents(), ['restarting, attempt 4 in 30s: failed: no route', '4 of 5 restarts in 1m are used']);
  assert.deepEqual(await mqtt.locator('.changes .what').allTextContents(), ['app/ingest reload called by alice (typed): more room', 'stop called by bob (header): to see']);
  await mqtt.getByRole('img', { name: /^Restarts, last 20s: 3 in total · max 2$|^Restarts, last 10s: 3 in total · max 2$/ }).waitFor();
  const db = incident(page, 'app/db');
  await db.getByText('relation "invoices" doesn’t exist').waitFor();
  assert.match(await db.locator('.num').first().textContent(), /^from .+ to .+, 9m\d*s? ago · 3 failures$/);
  assert.equal(await db.locator('.word').textContent(), 'active again');
  assert.deepEqual(await panel(page).getByRole('heading', { level: 3 }).allTextContents(), ['Wrong now (1)', 'In the last fifteen minutes (2)']);
  const gone = incident(page, 'app/conns/conn#9');
  assert.match(await gone.locator('.num').first().textContent(), /7 failures · 7 children, this one last$/);
  assert.equal(await gone.locator('.cause').textContent(), 'panicked: <img src=x onerror=alert(1)>\\u{1b}[31m\\u{202e}');
  assert.equal(await page.locator('img').count(), 0);
});

test('a path leads to the facts of the child, and its own incidents then come first', async (t) => {
  const program = await broken(t);
  const page = await open(program.url);
  await incident(page, 'app/db').getByRole('link').click();
  await page.getByRole('tab', { name: 'Overview', selected: true }).waitFor();
  assert.equal(await page.getByRole('row', { selected: true }).getAttribute('data-path'), 'app/db');
  await page.locator('#tree').focus();
  await page.keyboard.press('i');
  await page.getByRole('tab', { name: 'Incidents', selected: true }).waitFor();
  const titles = panel(page).getByRole('heading', { level: 3 });
  assert.deepEqual(await titles.allTextContents(), ['At app/db and below (1)', 'Elsewhere (2)']);
  await row(page, 'app/ingest').click();
  await titles.filter({ hasText: 'At app/ingest and below (1)' }).waitFor();
  // A child that was well: the others are still there.
  program.answers.incidents = { ...program.answers.incidents, incidents: program.answers.incidents.incidents.slice(1) };
  program.send({ children: [child('app/db')] });
  await panel(page).getByText('Nothing is wrong at app/ingest or below, and nothing was in the last fifteen minutes.').waitFor();
  assert.deepEqual(await titles.allTextContents(), ['Elsewhere (2)']);
});

// The first screen is about the tree, and what a click asks for is the child.
test('until a tab is chosen, the root shows the incidents and a child its overview', async (t) => {
  const program = await broken(t);
  const page = await open(program.url);
  const shown = (name) => page.getByRole('tab', { name, selected: true }).waitFor();
  await shown('Incidents');
  await row(page, 'app/db').click();
  await shown('Overview');
  await row(page, 'app').click();
  await shown('Incidents');
  await page.getByRole('tab', { name: 'Events' }).click();
  await row(page, 'app/db').click();
  await shown('Events');
  await row(page, 'app').click();
  await shown('Events');
});

// The rate began at nothing whenever a page was opened.
test('the header has the rate of the last minute when the page is opened', async (t) => {
  const now = Date.now();
  const samples = Array.from({ length: 40 }, (_, i) => ({ at_ms: now - 2_000 * (39 - i), restarts: Math.floor(i / 5), mailbox: 0, busy_ms: 0 }));
  const program = await broken(t, { samples: { every_ms: 2_000, samples } });
  const page = await open(program.url);
  await page.locator('#rate', { hasText: /^6 restarts\/min$/ }).waitFor();
});

test('the link of a child that is gone says so', async (t) => {
  const program = await broken(t);
  const page = await open(program.url);
  await incident(page, 'app/conns/conn#9').getByRole('link').click();
  await page.locator('#message', { hasText: 'There is no app/conns/conn#9 any more.' }).waitFor();
  assert.equal(await page.getByRole('row', { selected: true }).getAttribute('data-path'), 'app');
});

test('a calm tree says that nothing is wrong, and how far back that is known', async (t) => {
  const program = await broken(t, { incidents: { from_ms: 0, dropped_before_ms: null, incidents: [] } });
  const page = await open(program.url);
  await panel(page).getByText('Nothing is wrong, and nothing was in the last fifteen minutes.').waitFor();
  assert.equal(await panel(page).getByText('dropped').count(), 0);
  const at = new Date();
  at.setHours(0, 0, 1, 0);
  program.answers.incidents = { from_ms: 0, dropped_before_ms: at.getTime(), incidents: [] };
  program.send({ events: [entry('app/db', 'active')] });
  await panel(page).getByText('older than 00:00:01: dropped').waitFor();
});

// Once a second at most, while the page is visible and the tab open.
test('the incidents are read once a second at most, and only if something has changed', async (t) => {
  const asked = [];
  const now = Date.now();
  const program = await broken(t, { incidents: () => { asked.push(Date.now()); return { from_ms: 0, dropped_before_ms: null, incidents: incidents(now) }; } });
  const page = await open(program.url);
  await incident(page, 'app/db').waitFor();
  const first = asked.length;
  for (let i = 0; i < 20; i++) program.send({ events: [entry('app/db', `event ${i}`)] });
  await page.waitForFunction(() => performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('api/incidents')).length > 1);
  assert.equal(asked.length, first + 1, 'twenty changes lead to one request');
  assert.ok(asked.at(-1) - asked[first - 1] >= 990, `${asked.at(-1) - asked[first - 1]} ms after the one before`);
  await page.getByRole('tab', { name: 'Config' }).click();
  await page.getByText('Nothing is configured here.').waitFor();
  const before = asked.length;
  program.send({ events: [entry('app/db', 'later')] });
  await page.getByRole('tab', { name: 'Dead letters' }).click();
  await page.getByText('No dead letters are kept here.').waitFor();
  assert.equal(asked.length, before, 'another tab is open');
});

test('a tab without an answer says so after three seconds', async (t) => {
  let answer;
  const program = await broken(t, { incidents: () => new Promise((resolve) => { answer = resolve; }) });
  const page = await open(program.url);
  const began = Date.now();
  await panel(page).getByText('The program hasn’t answered for 3 s.').waitFor();
  assert.ok(Date.now() - began < 4_500, `said after ${Date.now() - began} ms`);
  answer({ from_ms: 0, dropped_before_ms: null, incidents: [] });
  await panel(page).getByText('Nothing is wrong').waitFor();
  assert.equal(await panel(page).getByText('hasn’t answered').count(), 0);
});

// The first screen of the sixth tab was headings without content.
test('a page without any answer says so after three seconds, in place of an empty tab', async (t) => {
  const program = await broken(t, { streams: false, status: () => new Promise(() => {}) });
  const page = await open(program.url, { wait: false });
  await panel(page).getByText('The program hasn’t answered for 3 s.').waitFor();
  await page.getByRole('tab', { name: 'Overview' }).click();
  await panel(page).getByText('The program hasn’t answered for 3 s.').waitFor();
  assert.equal(await panel(page).getByText('Removed in the last minute').isVisible(), false);
});

// 50 lives a second for a minute are 3,000. As fast as they can, they are here within seconds.
test('a failure from before three thousand short lives is still there with its cause', async (t) => {
  const program = await serve({ churn: 3_000 });
  t.after(() => program.end());
  const page = await open(program.url);
  await page.getByLabel('Filter').fill('app/churn/invoices');
  await row(page, 'app/churn/invoices').getByText('3000 of 3000 lives').waitFor({ timeout: 60_000 });
  const opened = await open(program.url);
  const invoices = incident(opened, 'app/churn/invoices');
  await invoices.getByText('relation "invoices" doesn\'t exist: run the migrations').waitFor();
  // In the events of the child, and those of the root: the lives have taken the place of nothing.
  await opened.getByRole('tab', { name: 'Events' }).click();
  await opened.getByLabel('Search events').fill('relation');
  await panel(opened).getByText('relation "invoices" doesn\'t exist').first().waitFor();
  await opened.getByLabel('Search events').fill('exited normally');
  await panel(opened).getByText(/^×[\d,]+ children exited normally in \d+s$/).first().waitFor();
});

test('axe finds nothing, in any state of the tab, and nothing is wider than a narrow window', async (t) => {
  const looks = [
    {}, { colorScheme: 'dark' }, { forcedColors: 'active' },
    { viewport: { width: 390, height: 760 } }, { viewport: { width: 390, height: 760 }, colorScheme: 'dark' },
  ];
  const program = await broken(t);
  for (const look of looks) {
    const page = await open(program.url, look);
    await incident(page, 'app/db').waitFor();
    await accessible(page, `incidents, ${JSON.stringify(look)}`);
    const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    assert.equal(wide, room, JSON.stringify(look));
    await page.context().close();
  }
  const calm = await broken(t, { incidents: { from_ms: 0, dropped_before_ms: Date.now(), incidents: [] } });
  const page = await open(calm.url);
  await panel(page).getByText('Nothing is wrong').waitFor();
  await accessible(page, 'no incidents');
  const slow = await broken(t, { incidents: () => new Promise(() => {}) });
  const waiting = await open(slow.url);
  await panel(waiting).getByText('hasn’t answered').waitFor();
  await accessible(waiting, 'no answer');
});
