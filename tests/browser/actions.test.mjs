// An operator's loop: the dialogs with a reason and a name, kill, and what the page says while a call lasts.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { child, fake } from './fake.mjs';
import { accessible, choose, json, open, restarted, row } from './page.mjs';
import { serve } from './program.mjs';

const message = (page, text) => page.locator('#message', { hasText: text }).waitFor();

async function app(t, more = {}, over = {}) {
  const info = { root: 'app', actions: true, log: true, replay: true, needs_token: false, identity: null };
  const program = await fake(child('app', { children: { db: {}, jobs: { children: { uploader: {} } }, ...more } }), { info, ...over });
  t.after(() => program.end());
  return program;
}

test('a child that hangs is killed with the keyboard alone, and by whom and why is in its history', async (t) => {
  const program = await serve();
  t.after(() => program.end());
  const page = await open(program.url);
  await choose(page, 'app/db');
  const { child } = await json(page, 'api/child?path=app/db');
  await page.locator('#tree').focus();
  await page.keyboard.press('K');
  const dialog = page.getByRole('dialog', { name: 'Kill: app/db' });
  await dialog.getByText('without its grace').waitFor();
  assert.match(await dialog.textContent(), /any other failure: it is charged to the restart limits/);
  await accessible(page, 'the dialog of kill');
  await page.keyboard.type('it hangs');
  await page.keyboard.press('Tab');
  await page.keyboard.type('alice');
  await page.keyboard.press('Enter');
  await message(page, 'killed app/db');
  await restarted(page, 'app/db', child.incarnation);
  await page.keyboard.press('e');
  await page.getByRole('tabpanel').getByText('kill called by alice (typed): it hangs').waitFor();
  await page.getByRole('tabpanel').getByText('errored: aborted').waitFor();
});

test('a name that was typed is sent, and there again for the next question', async (t) => {
  const program = await app(t);
  const page = await open(program.url);
  await row(page, 'app/db').click();
  await page.keyboard.press('r');
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel(/^Your name/).fill('alice');
  await dialog.getByLabel(/^Reason/).fill('the pool is stuck');
  await page.keyboard.press('Enter');
  await message(page, 'action app/db');
  await page.reload();
  await row(page, 'app/db').click();
  await page.keyboard.press('s');
  assert.equal(await dialog.getByLabel(/^Your name/).inputValue(), 'alice');
  assert.equal(await dialog.getByLabel(/^Reason/).inputValue(), '');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'ask-reason');
  await page.keyboard.press('Enter');
  await message(page, 'action app/db');
  await page.keyboard.press('s');
  await dialog.getByLabel(/^Your name/).fill('');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => localStorage.getItem('verger-name') === null);
  await page.locator('dialog[open]').waitFor({ state: 'detached' });
  assert.deepEqual(program.calls, [
    ['action', { action: 'restart', path: 'app/db', reason: 'the pool is stuck', by: 'alice' }],
    ['action', { action: 'stop', path: 'app/db', by: 'alice' }],
    ['action', { action: 'stop', path: 'app/db' }],
  ]);
});

test('whom a proxy has identified types no name', async (t) => {
  const program = await app(t);
  program.answers.info.identity = 'bob';
  const page = await open(program.url);
  await page.evaluate(() => localStorage.setItem('verger-name', 'alice'));
  await row(page, 'app/db').click();
  await page.keyboard.press('K');
  const dialog = page.getByRole('dialog');
  await dialog.getByText('You act as bob.').waitFor();
  assert.equal(await dialog.getByLabel(/^Your name/).isVisible(), false);
  await page.keyboard.press('Enter');
  await message(page, 'action app/db');
  assert.deepEqual(program.calls, [['action', { action: 'kill', path: 'app/db' }]]);
});

test('a reason that the program refuses stays in the dialog', async (t) => {
  const program = await app(t);
  program.answer = () => [400, { problem: 'bad_request', error: '`reason` has 300 characters; write at most 200' }];
  const page = await open(program.url, { expected: (text) => text.includes('400') });
  await row(page, 'app/db').click();
  await page.keyboard.press('s');
  await page.keyboard.type('much too long');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('alert').getByText('write at most 200').waitFor();
  assert.equal(await dialog.getByLabel(/^Reason/).inputValue(), 'much too long');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'ask-reason');
  await accessible(page, 'a refusal');
});

// A stopped child, and the line below still said that it was being stopped.
test('the message about a stop that takes long is replaced when the child has stopped', async (t) => {
  const program = await app(t);
  program.answer = () => [202, { ok: true, text: 'still stopping app/jobs/uploader after 10s' }];
  const page = await open(program.url);
  await row(page, 'app/jobs/uploader').click();
  await page.keyboard.press('s');
  await page.keyboard.press('Enter');
  await message(page, 'still stopping app/jobs/uploader after 10s');
  program.set('app/jobs/uploader', { lifecycle: 'deactivating', ready: false });
  await row(page, 'app/jobs/uploader').getByText('deactivating').waitFor();
  await message(page, 'still stopping app/jobs/uploader after 10s');
  program.set('app/jobs/uploader', { lifecycle: 'stopped', ready: false });
  await page.locator('#message', { hasText: /stopped app\/jobs\/uploader after \d+s$/ }).waitFor();
});

// The dialog stood there until the program had answered, for up to ten seconds.
test('a call that takes long closes its dialog, and the answer comes as a message', async (t) => {
  const program = await app(t);
  let answer;
  program.answer = () => new Promise((resolve) => { answer = resolve; });
  const page = await open(program.url, { expected: (text) => text.includes('409') });
  await row(page, 'app/db').click();
  for (const [result, text] of [[[200, { ok: true, text: 'stopped app/db' }], 'stopped app/db'], [[409, { problem: 'wrong_state', error: 'app/db is held' }], 'Refused: app/db is held']]) {
    await page.keyboard.press('s');
    await page.keyboard.press('Enter');
    await message(page, 'stopping app/db …');
    assert.equal(await page.locator('dialog[open]').count(), 0);
    assert.equal(await page.evaluate(() => document.activeElement.id), 'tree');
    answer(result);
    await message(page, text);
  }
});

test('the message about a restart that takes long tells how it has ended', async (t) => {
  const program = await app(t);
  program.answer = () => [202, { ok: true, text: 'still restarting app/db after 10s' }];
  const page = await open(program.url);
  await row(page, 'app/db').click();
  for (const [end, text] of [[{ lifecycle: 'active', ready: true, incarnation: 2 }, /restarted app\/db after \d+s$/], [{ lifecycle: 'restarting', ready: false, incarnation: 2, last_exit: { incarnation: 2, at_ms: 1, lived_ms: null, reason: { message: 'failed: no route' } } }, /app\/db has failed: failed: no route$/]]) {
    await page.keyboard.press('r');
    await page.keyboard.press('Enter');
    await message(page, 'still restarting app/db after 10s');
    // On its way it is stopped.
    program.set('app/db', { lifecycle: 'stopped', ready: false });
    await row(page, 'app/db').getByText('stopped').waitFor();
    await message(page, 'still restarting app/db after 10s');
    program.set('app/db', end);
    await page.locator('#message', { hasText: text }).waitFor();
    program.set('app/db', { lifecycle: 'active', ready: true, incarnation: 1, last_exit: null });
    await row(page, 'app/db').getByText('active').waitFor();
  }
});

// Two operators: the second one confirmed a question that was no longer true.
test('an open question tells what another operator has done meanwhile', async (t) => {
  const program = await app(t);
  const page = await open(program.url);
  await row(page, 'app/db').click();
  await page.keyboard.press('s');
  const dialog = page.getByRole('dialog', { name: 'Stop: app/db' });
  await dialog.waitFor();
  program.set('app/db', { lifecycle: 'stopped', ready: false, last_call: { call: 'stop_child', by: 'bob (header)', reason: 'maintenance', at_ms: Date.now() } });
  await dialog.getByText('Meanwhile: stop by bob (header): maintenance.').waitFor();
  await accessible(page, 'news in a dialog');
  await page.keyboard.press('Escape');
  await page.keyboard.press('K');
  await message(page, 'Kill app/db: it doesn’t run.');
});

test('a stopping child shows who asked, why, and how much of its grace is left', async (t) => {
  const program = await app(t, { exporter: { lifecycle: 'deactivating', ready: false, stopping: { ends_ms: Date.now() + 40_000, by: 'alice (typed)', reason: 'maintenance' } } });
  const page = await open(program.url);
  await row(page, 'app/exporter').click();
  await page.getByRole('tab', { name: 'Overview' }).click();
  await page.getByRole('tabpanel').getByText(/^asked by alice \(typed\): maintenance · \d\ds of its grace left, until \d\d:\d\d:\d\d$/).waitFor();
  const left = async () => Number(/(\d+)s of its grace/.exec(await page.getByRole('tabpanel').getByText('of its grace left').textContent())[1]);
  const before = await left();
  await page.waitForFunction((than) => Number(/(\d+)s of its grace/.exec(document.querySelector('.facts').textContent)[1]) < than, before);
});

test('an operator reads no names of the API, and the limit of a child that was given up', async (t) => {
  const program = await app(t, { rates: {
    lifecycle: 'stopped', ready: false, why: 'given up', explanation: 'given up', limit: { restarts: 3, max_restarts: 3, period_ms: 60_000, reached: true },
    last_call: { call: 'terminate_child', by: 'operator', reason: null, at_ms: Date.now() - 5_000 },
    problems: [{ kind: 'down', problem: 'given up: failed: HTTP 503', since_ms: Date.now() - 5_000, essential: true }],
  } });
  const page = await open(program.url);
  await row(page, 'app/rates').click();
  await page.getByRole('tab', { name: 'Overview' }).click();
  const fact = (name) => page.getByRole('tabpanel').locator('.facts > div', { has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) }).locator('dd');
  assert.equal(await fact('Why').textContent(), 'given up; its limit on restarts is 3 in 1m');
  assert.match(await fact('Last call').textContent(), /^stop by operator, \d+s ago, at /);
  // What is wrong is read first.
  assert.equal(await page.getByRole('tabpanel').locator('ul, div, dl').filter({ visible: true }).first().getAttribute('aria-label'), 'Problems');
  assert.match(await page.getByRole('list', { name: 'Problems' }).textContent(), /^given up: failed: HTTP 503since .+, for \d+s$/);
  // At the parent, with its name, which leads to the child.
  await row(page, 'app').click();
  await page.getByRole('list', { name: 'Problems' }).getByRole('link', { name: 'rates' }).click();
  assert.equal(await page.getByRole('row', { selected: true }).getAttribute('data-path'), 'app/rates');
  await accessible(page, 'the overview of a child that was given up');
});

test('names, callers and reasons are shown as text, whatever is in them', async (t) => {
  const evil = '<img src=x onerror=alert(1)>\u001b[31m\u202e';
  const shown = '<img src=x onerror=alert(1)>\\u{1b}[31m\\u{202e}';
  const program = await app(t, { [evil]: {
    lifecycle: 'deactivating', ready: false, stopping: { ends_ms: null, by: evil, reason: evil }, explanation: evil, why: 'stopped manually', status: evil, alarming: evil,
    last_call: { call: 'stop_child', by: evil, reason: evil, at_ms: Date.now() }, problems: [{ kind: 'down', problem: evil, cause: evil, since_ms: null, essential: true }],
  } });
  program.answer = () => [409, { problem: 'wrong_state', error: evil }];
  program.answers.info.identity = evil;
  const page = await open(program.url, { expected: (text) => text.includes('409') });
  await page.locator('.tree-body [role=row]', { hasText: 'onerror' }).first().click();
  const facts = page.getByRole('tabpanel').locator('.facts');
  await facts.getByText(`asked by ${shown}: ${shown} · no bound on its grace`, { exact: true }).waitFor();
  assert.equal(await page.getByRole('list', { name: 'Problems' }).locator('.cause').textContent(), shown);
  await page.keyboard.press('K');
  const dialog = page.getByRole('dialog', { name: `Kill: app/${shown}` });
  await dialog.getByText(`You act as ${shown}.`, { exact: true }).waitFor();
  await page.keyboard.press('Enter');
  await message(page, `Refused: ${shown}`);
  assert.equal(await page.locator('img, body script').count(), 0);
});

test('plots show the minutes before the page was opened, and busy time', async (t) => {
  const now = Date.now();
  const samples = Array.from({ length: 150 }, (_, i) => ({ at_ms: now - 2_000 * (149 - i), restarts: i < 100 ? 7 : i < 120 ? 9 : 1, mailbox: i % 6, busy_ms: i * 500 }));
  const program = await app(t, { writer: { started_at_ms: now - 1_800_000, mailbox: { len: 5, capacity: 5, full_since_ms: now - 12_000 }, busy: { total_ms: 90_000, polls: 1_234, longest_ms: 1_500, long_at_ms: now - 60_000, polling_ms: null } } }, { samples: { every_ms: 2_000, samples } });
  const page = await open(program.url);
  await row(page, 'app/writer').click();
  await page.getByRole('tab', { name: 'Overview' }).click();
  // Two more; and what has begun again is smaller.
  await page.getByRole('img', { name: 'Restarts, last 5m: 2 in total · max 2' }).waitFor();
  await page.getByRole('img', { name: 'Mailbox depth, last 5m: min 0 · max 5 · now 5' }).waitFor();
  await page.getByRole('img', { name: 'Busy, last 5m: max 25 % · now 25 %' }).waitFor();
  const text = await page.getByRole('tabpanel').locator('.facts').textContent();
  assert.match(text, /5 of 5, nearly full for 1\ds/);
  assert.match(text, /5\.0 % of 30m\d*s?, in 1,234 polls, the longest took 1\.5s · the last poll of more than 1s ended 1m\d*s? ago/);
  for (const look of [{ colorScheme: 'dark' }, { forcedColors: 'active' }, { viewport: { width: 390, height: 760 } }]) {
    const other = await open(program.url, look);
    await row(other, 'app/writer').click();
    await other.getByRole('tab', { name: 'Overview' }).click();
    await other.getByRole('img', { name: /^Busy/ }).waitFor();
    await accessible(other, `overview, ${JSON.stringify(look)}`);
    await other.context().close();
  }
});
