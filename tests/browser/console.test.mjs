// The console's page as a whole, against `examples/console.rs`.
//
// Nothing here waits for a time: each step waits for what the page shows, and times are measured in the page.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { choose, json, open, restarted, row } from './page.mjs';
import { serve } from './program.mjs';

const SHOTS = process.env.VERGER_SCREENSHOTS
  ? fileURLToPath(new URL('../../book/src/console/', import.meta.url))
  : mkdtempSync(join(tmpdir(), 'verger-console-'));
const MOST_BYTES = 150_000;

describe('a small tree', () => {
  let program;
  before(async () => { program = await serve(); });
  after(() => program?.end());

  test('the tree is a treegrid whose rows say level, state and name', async () => {
    const page = await open(program.url);
    const grid = page.getByRole('treegrid', { name: 'Supervision tree' });
    const db = grid.getByRole('row', { name: /^db active/ });
    await db.waitFor();
    assert.equal(await db.getAttribute('aria-level'), '2');
    assert.equal(await db.getAttribute('aria-posinset'), '1');
    assert.equal(await db.getAttribute('aria-setsize'), '4');
    assert.equal(await db.getAttribute('aria-expanded'), null, 'a worker has nothing to unfold');
    const ingest = grid.getByRole('row', { name: /ingest active/, expanded: true });
    assert.equal(await ingest.getAttribute('aria-selected'), 'false');
    for (const name of ['Name', 'State', 'For', 'Details']) await grid.getByRole('columnheader', { name }).waitFor();
    const root = grid.getByRole('row', { selected: true });
    assert.equal(await root.getAttribute('data-path'), 'app');
    await page.getByRole('tab', { name: 'Incidents', selected: true }).waitFor();
    assert.equal(await page.getByRole('tab').count(), 6);
    assert.equal(new URL(page.url()).hash, '', 'the token has left the address');
    // Every control has a name.
    for (const control of await page.locator('button:visible, input:visible').all()) {
      const name = await control.evaluate((element) => element.getAttribute('aria-label') || element.textContent.trim() || element.labels?.[0]?.textContent.trim());
      assert.ok(name, await control.evaluate((element) => element.outerHTML));
    }
  });

  test('a crash is seen within a second', async () => {
    const page = await open(program.url);
    await row(page, 'app/ingest/mqtt').waitFor();
    // The row's own change, so that nothing but the page is measured. The child fails every few seconds.
    const seen = await page.evaluate(() => new Promise((resolve) => {
      let was = null;
      const look = () => {
        const now = document.querySelector('[data-path="app/ingest/mqtt"]')?.dataset.state;
        if (was === 'active' && now === 'restarting') resolve(Date.now());
        was = now;
      };
      new MutationObserver(look).observe(document.querySelector('#tree'), { subtree: true, attributes: true, attributeFilter: ['data-state'] });
    }));
    const { child } = await json(page, 'api/child?path=app/ingest/mqtt');
    const took = seen - child.last_exit.at_ms;
    console.log(`a crash was seen after ${took} ms`);
    assert.ok(took >= 0 && took < 1_000, `seen after ${took} ms`);
    assert.match(await row(page, 'app/ingest/mqtt').innerText(), /retry in .*attempt/);
  });

  test('a button restarts a child, and the reason is in the events', async () => {
    const page = await open(program.url);
    await row(page, 'app/db').click();
    const { child } = await json(page, 'api/child?path=app/db');
    await page.getByRole('group', { name: 'Actions' }).getByRole('button', { name: 'Restart' }).click();
    const dialog = page.getByRole('dialog', { name: 'Restart: app/db' });
    await dialog.getByLabel(/Reason/).fill('the pool is stuck');
    await dialog.getByRole('button', { name: 'Restart' }).click();
    await page.locator('#message', { hasText: 'restarted app/db' }).waitFor();
    await restarted(page, 'app/db', child.incarnation);
    await page.getByRole('tab', { name: 'Events' }).click();
    await page.getByRole('tabpanel').getByText('the pool is stuck').first().waitFor();
  });

  test('a child can be stopped and resumed, and shows the caller that has stopped it', async () => {
    const page = await open(program.url);
    await choose(page, 'app/http/listener');
    await page.keyboard.press('s');
    const stop = page.getByRole('dialog', { name: 'Stop: app/http/listener' });
    await stop.getByLabel(/Reason/).fill('maintenance');
    await stop.getByRole('button', { name: 'Stop' }).click();
    await page.locator('#message', { hasText: 'stopped app/http/listener' }).waitFor();
    await row(page, 'app/http/listener').getByText('stopped by operator: maintenance').waitFor();
    // A button that doesn't apply says why.
    const again = page.getByRole('group', { name: 'Actions' }).getByRole('button', { name: 'Stop' });
    assert.equal(await again.getAttribute('aria-disabled'), 'true');
    assert.equal(await again.getAttribute('title'), 'it is stopped already');
    await page.locator('#tree').focus();
    await page.keyboard.press('n');
    await page.getByRole('dialog', { name: 'Resume: app/http/listener' }).getByRole('button', { name: 'Resume' }).click();
    await page.locator('#message', { hasText: 'resumed app/http/listener' }).waitFor();
  });

  test('an action without the right token is refused, and the dialog asks for it', async () => {
    const page = await open(program.url.split('#')[0], { expected: (text) => text.includes('403') });
    const refusal = await page.evaluate(async () => {
      const response = await fetch('api/action', {
        method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ action: 'restart', path: 'app/db' }),
      });
      return [response.status, (await response.json()).problem];
    });
    assert.deepEqual(refusal, [403, 'bad_token']);
    await row(page, 'app/db').click();
    await page.keyboard.press('r');
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel(/Token/).fill('wrong');
    await dialog.getByRole('button', { name: 'Restart' }).click();
    await dialog.getByRole('alert').getByText(/token/).waitFor();
    await dialog.getByLabel(/Token/).fill(program.token);
    await dialog.getByRole('button', { name: 'Restart' }).click();
    await page.locator('#message', { hasText: 'restarted app/db' }).waitFor();
  });

  test('the page of another site can neither read nor act', async () => {
    const other = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>other</title>')).listen(0, '127.0.0.1');
    await new Promise((resolve) => { other.once('listening', resolve); });
    // Also if an assertion fails, the tests end.
    other.unref();
    const page = await open(`http://127.0.0.1:${other.address().port}/`, { wait: false, expected: () => true });
    const sent = [];
    page.on('request', (request) => { if (request.method() === 'POST') sent.push(request.url()); });
    const incarnation = async () => (await (await fetch(new URL('api/child?path=app/db', program.url))).json()).child.incarnation;
    const before = await incarnation();
    const came = await page.evaluate(async ([url, token]) => {
      const attempt = (path, options) => fetch(new URL(path, url), options).then((response) => response.type, () => 'blocked');
      const body = JSON.stringify({ action: 'restart', path: 'app/db' });
      return [
        await attempt('api/status'),
        await attempt('api/action', { method: 'POST', body, headers: { 'Content-Type': 'application/json', 'X-Verger-Token': token } }),
        // Without a preflight: this one is sent and refused, and the page learns nothing of it.
        await attempt('api/action', { method: 'POST', body, mode: 'no-cors' }),
      ];
    }, [program.url, program.token]);
    assert.deepEqual(came, ['blocked', 'blocked', 'blocked']);
    assert.ok(sent.includes(new URL('api/action', program.url).href));
    assert.equal(await incarnation(), before);
    other.close();
  });

  test('a child is restarted with the keyboard alone', async () => {
    const page = await open(program.url);
    await row(page, 'app/db').waitFor();
    const { child } = await json(page, 'api/child?path=app/db');
    await page.keyboard.press('/');
    await page.keyboard.type('app/db');
    await page.keyboard.press('Enter');
    await page.keyboard.press('End');
    assert.equal(await page.getByRole('row', { selected: true }).getAttribute('data-path'), 'app/db');
    const active = await page.locator('#tree').getAttribute('aria-activedescendant');
    assert.equal(await page.locator(`#${active}`).getAttribute('data-path'), 'app/db');
    await page.keyboard.press('r');
    await page.keyboard.type('by keys');
    // Tab stays inside of the dialog, and Esc returns the focus.
    for (let i = 0; i < 8; i++) {
      await page.keyboard.press('Tab');
      assert.ok(await page.evaluate(() => document.activeElement === document.body || document.querySelector('#ask').contains(document.activeElement)));
    }
    await page.keyboard.press('Escape');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'tree');
    // The late end of one dialog doesn't close the next.
    for (let i = 0; i < 20; i++) {
      for (const key of ['r', 'Escape', 'r']) await page.keyboard.press(key);
      await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));
      assert.ok(await page.locator('#ask').evaluate((dialog) => dialog.open));
      await page.keyboard.press('Escape');
    }
    await page.keyboard.press('r');
    await page.keyboard.type('by keys');
    await page.keyboard.press('Enter');
    await page.locator('#message', { hasText: 'restarted app/db' }).waitFor();
    await restarted(page, 'app/db', child.incarnation);
    assert.equal(await page.evaluate(() => document.activeElement.id), 'tree');
    // To the details and back, and over the tabs.
    await page.keyboard.press('Enter');
    await page.keyboard.press('ArrowRight');
    await page.getByRole('tab', { name: 'Events', selected: true }).waitFor();
    await page.keyboard.press('End');
    await page.getByRole('tab', { name: 'Log', selected: true }).waitFor();
    await page.keyboard.press('Escape');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'tree');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys and shapes' }).waitFor();
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'tree');
  });

  test('arrows, space, the filter and problems-only decide which rows there are', async () => {
    const page = await open(program.url);
    await row(page, 'app/ingest/mqtt').waitFor();
    await row(page, 'app/ingest').click();
    await page.keyboard.press('ArrowLeft');
    await row(page, 'app/ingest/mqtt').waitFor({ state: 'detached' }).catch(() => {});
    assert.equal(await row(page, 'app/ingest/mqtt').filter({ visible: true }).count(), 0);
    assert.equal(await row(page, 'app/ingest').getAttribute('aria-expanded'), 'false');
    await page.keyboard.press(' ');
    await row(page, 'app/ingest/mqtt').waitFor();
    await page.keyboard.press('ArrowRight');
    assert.equal(await page.getByRole('row', { selected: true }).getAttribute('data-path'), 'app/ingest/mqtt');
    await page.keyboard.press('ArrowLeft');
    assert.equal(await page.getByRole('row', { selected: true }).getAttribute('data-path'), 'app/ingest');
    await page.getByLabel('Filter').fill('listener');
    const shown = () => page.locator('.tree-body [role=row]:visible').evaluateAll((rows) => rows.map((one) => one.dataset.path).sort());
    assert.deepEqual(await shown(), ['app', 'app/http', 'app/http/listener'], 'with what is above it');
    await page.keyboard.press('Escape');
    await page.getByLabel('Problems only').check();
    // `vendor` never starts.
    await row(page, 'app/jobs/vendor').waitFor();
    assert.ok(!(await shown()).includes('app/db'));
  });

  test('every tab has something to say, and the events of a subtree are folded', async () => {
    const page = await open(program.url);
    await row(page, 'app/ingest/parser').click();
    await page.getByRole('tab', { name: 'Config' }).click();
    const config = page.getByRole('tabpanel');
    await config.getByRole('row', { name: /^backoff/ }).waitFor();
    await page.getByRole('tab', { name: 'Log' }).click();
    await row(page, 'app/ingest/mqtt').click();
    await page.getByRole('tabpanel').getByText('connected').first().waitFor();
    await row(page, 'app').click();
    await page.getByRole('tab', { name: 'Events' }).click();
    await page.getByRole('tabpanel').getByText(/×\d+ in/).first().waitFor();
  });

  test('markup and escape sequences in errors are shown as text', async () => {
    const page = await open(program.url);
    await row(page, 'app/ingest/parser').click();
    const exit = page.getByRole('tabpanel').getByText('<script>alert(1)</script>');
    await exit.first().waitFor();
    const text = await exit.first().textContent();
    assert.ok(text.includes('\\u{1b}[31m') && !text.includes('\u001b'), text);
  });

  test('markup in names and texts is shown as text', async () => {
    const context = { viewport: { width: 1280, height: 720 } };
    const page = await open('about:blank', { wait: false, ...context });
    const evil = '<img src=x onerror=alert(1)><script>alert(2)</script>\u001b[31m';
    await page.route('**/api/status', async (route) => {
      const response = await route.fetch();
      const status = await response.json();
      const db = status.root.children[0];
      Object.assign(db, { path: `app/${evil}`, status: evil, problem: evil, healthy: false, explanation: evil });
      await route.fulfill({ response, json: status });
    });
    await page.goto(program.url);
    const line = page.locator('.tree-body [role=row]', { hasText: 'onerror' });
    await line.waitFor();
    const shown = evil.replace('\u001b', '\\u{1b}');
    assert.equal(await line.locator('.label').textContent(), shown);
    await line.click();
    assert.ok((await page.getByRole('heading', { level: 2 }).first().textContent()).includes(shown));
    assert.equal(await page.locator('img, body script').count(), 0);
  });

  test('dynamic children are in the order of their serial numbers', async () => {
    const page = await open(program.url);
    const names = await page.evaluate(async () => {
      const { Model } = await import('/console/model.js');
      const child = (path, children = []) => ({ path, children, ready: true, restarts: 0 });
      const model = new Model();
      const conns = child('app/conns', [child('app/conns/conn#10'), child('app/conns/conn#9')]);
      const root = child('app', [child('app/z'), conns, child('app/a')]);
      model.replace({ root, captured_at_ms: Date.now(), totals: { restarts: 0 }, program: { started_at_ms: 1 } });
      model.apply({ removed: [], children: [child('app/conns/conn#11')] });
      return model.order.map((node) => node.name);
    });
    assert.deepEqual(names, ['app', 'z', 'conns', 'conn#9', 'conn#10', 'conn#11', 'a']);
  });

  test('a reload shows the mistakes of the file, and then its plan, before it applies that', async () => {
    const page = await open(program.url, { expected: (text) => text.includes('409') });
    const plan = { id: '7', text: '~ app/db  config.pool  10 → 20  live  app.toml:2', changes: [{}] };
    const mistakes = 'app.toml:2:8: a number is expected\n  |\n2 | pool = x\n  |        ^';
    const answers = [[409, { problem: 'invalid', error: mistakes }], [200, plan]];
    await page.route('**/api/info', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...await response.json(), reload: true } });
    });
    await page.route('**/api/plan', async (route) => {
      const [status, body] = answers.shift();
      await route.fulfill({ status, json: body });
    });
    await page.route('**/api/reload', async (route) => {
      assert.deepEqual(route.request().postDataJSON(), { plan: '7', reason: 'more room' });
      await route.fulfill({ json: { ok: true, text: 'reloaded: 1 change, 0 unchanged' } });
    });
    await page.reload();
    await page.getByRole('button', { name: 'Reload' }).click();
    await page.keyboard.press('Enter');
    await page.locator('#ask-error', { hasText: '2 | pool = x' }).waitFor();
    await page.keyboard.press('Enter');
    await page.locator('.plan', { hasText: '10 → 20' }).waitFor();
    await page.keyboard.type('more room');
    await page.keyboard.press('Enter');
    await page.locator('#message', { hasText: 'reloaded: 1 change' }).waitFor();
  });

  test('nothing overflows a narrow window', async () => {
    for (const width of [360, 700, 1000]) {
      const page = await open(program.url, { viewport: { width, height: 740 } });
      await row(page, 'app/ingest/mqtt').click();
      const [page_, window_] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
      assert.equal(page_, window_, `at ${width} px`);
      }
  });

  test('pausing stops the page, and continuing catches up', async () => {
    const page = await open(program.url);
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.locator('#connection', { hasText: 'paused' }).waitFor();
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.locator('#connection', { hasText: /^live$/ }).waitFor();
  });

  test('screenshots', async () => {
    mkdirSync(SHOTS, { recursive: true });
    const shots = { wide: [1280, 640, 'light'], dark: [1280, 640, 'dark'], narrow: [390, 760, 'light'] };
    for (const [name, [width, height, colorScheme]] of Object.entries(shots)) {
      const page = await open(program.url, { viewport: { width, height }, colorScheme, reducedMotion: 'reduce' });
      // The page opens with the incidents. One picture shows a child.
      if (name === 'dark') await row(page, 'app/ingest').click();
      else await page.locator('.incident .cause').first().waitFor();
      await page.mouse.move(0, 0);
      // The book's have something to see in the plots of the restarts, which may take half a minute.
      const plot = page.locator('[role=tabpanel]:not([hidden]) .plot .words', { hasText: /max [1-9]/ }).first();
      if (process.env.VERGER_SCREENSHOTS) await plot.waitFor();
      const path = join(SHOTS, `${name}.png`);
      await page.screenshot({ path, animations: 'disabled' });
      assert.ok(statSync(path).size < MOST_BYTES, `${path} has ${statSync(path).size} bytes`);
      }
  });

  test('dead letters are listed, and can be sent again', async () => {
    const page = await open(program.url);
    await page.getByRole('tab', { name: 'Dead letters' }).click();
    const replay = page.getByRole('tabpanel').getByRole('button', { name: 'Replay' });
    await replay.first().waitFor({ timeout: 45_000 });
    // Without the sensor, the mailbox has room again.
    await row(page, 'app/ingest/sensor').click();
    await page.keyboard.press('s');
    await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click();
    await row(page, 'app/ingest/writer').locator('.c-mail', { hasText: /^[0-4]\/5$/ }).waitFor();
    await row(page, 'app/ingest/writer').click();
    await replay.first().click();
    await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click();
    await page.locator('#message', { hasText: 'replayed dead letter' }).waitFor();
  });
});

test('the page says that the program is gone, and goes on with the next one', async (t) => {
  let program = await serve();
  t.after(() => program.end());
  const page = await open(program.url, { expected: (text) => /ERR_(CONNECTION|INCOMPLETE|EMPTY)/.test(text) });
  await row(page, 'app/db').waitFor();
  const pid = (await json(page, 'api/status')).program.pid;
  await program.end();
  await page.locator('#connection', { hasText: 'disconnected' }).waitFor();
  program = await serve({ port: program.port });
  await page.locator('#connection', { hasText: /^live$/ }).waitFor();
  assert.notEqual((await json(page, 'api/status')).program.pid, pid);
});

test('ten thousand children are shown within a second, and scroll to the end', async (t) => {
  const program = await serve({ children: 10_000 });
  t.after(() => program.end());
  const page = await open('about:blank', { wait: false });
  await page.addInitScript(() => {
    // The first frame with rows, since the navigation began.
    const look = () => {
      if (Number(document.querySelector('#tree')?.getAttribute('aria-rowcount')) > 10_000) globalThis.shownAfter = performance.now();
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  const times = [];
  for (let i = 0; i < 3; i++) {
    await page.goto(program.url.replace('#', `?${i}#`));
    await page.waitForFunction(() => globalThis.shownAfter);
    times.push(Math.round(await page.evaluate(() => globalThis.shownAfter)));
  }
  const rows = await page.locator('.tree-body [role=row]').count();
  assert.ok(rows < 80, `only the rows in sight exist, not ${rows}`);
  // Frames while scrolling from top to bottom, and what is there at the end.
  const frames = await page.evaluate(async () => {
    const grid = document.querySelector('#tree');
    const took = [];
    const step = grid.scrollHeight / 100;
    for (let i = 0, last = performance.now(); i <= 100; i++) {
      grid.scrollTop = i * step;
      await new Promise(requestAnimationFrame);
      took.push(performance.now() - last);
      last = performance.now();
    }
    return took.sort((a, b) => a - b);
  });
  await row(page, 'app/crowd/idle-9999').waitFor();
  console.log(`10,000 children: shown after ${times.join(', ')} ms; frames while scrolling: median ${frames[50].toFixed(0)} ms, 95 % ${frames[95].toFixed(0)} ms`);
  assert.ok(Math.min(...times) < 1_000, `the fastest of three loads took ${Math.min(...times)} ms`);
  await page.keyboard.press('Home');
  await row(page, 'app/db').waitFor();
  await page.keyboard.press('End');
  assert.equal(await page.getByRole('row', { selected: true }).getAttribute('data-path'), 'app/crowd/idle-9999');
});
