// The left side of the page and its frame: rows, order, search, groups, the address of a view, and the stream that tabs share.
//
// Most trees are made up by `fake.mjs`, so that each row is known. Nothing here waits for a time.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';

import { child, failing, fake } from './fake.mjs';
import { accessible, browser, open, row } from './page.mjs';
import { serve } from './program.mjs';

const WIDE = { viewport: { width: 1400, height: 900 } };
const NARROW = { viewport: { width: 390, height: 844 } };
const CAUSE = 'no route to the broker';

/** A tree in which every column has something to say. */
const shop = () => child('app', {
  children: {
    db: { status: 'pool 3/10', restarts: 2, busy: { total_ms: 30_000, polls: 9, longest_ms: 3, long_at_ms: null, polling_ms: null } },
    mqtt: failing(CAUSE, { restarts: 7, limit: { restarts: 3, max_restarts: 5, period_ms: 60_000, reached: false } }),
    writer: { mailbox: { len: 5, capacity: 5 }, restarts: 1 },
    reader: { mailbox: { len: 1, capacity: 5 }, since_ms: Date.now() - 3_000 },
    importer: { lifecycle: 'stopped', ready: false, why: 'stopped manually', explanation: 'stopped by operator: the vendor is down', problems: [{ kind: 'down', problem: 'stopped, stopped manually', since_ms: 1, essential: true }] },
    mailer: { lifecycle: 'discovered', ready: false, held: true, why: 'held', explanation: 'held by operator: no mail today', problems: [{ kind: 'down', problem: 'discovered, held', since_ms: 1, essential: true }] },
  },
});

/** Connections below `app/conns`, the eighth of which fails. */
const crowd = (count) => child('app', {
  children: {
    conns: { children: Object.fromEntries(Array.from({ length: count }, (_, i) => [`conn#${i + 1}`, i === 7 ? failing('broken pipe', { restarts: 1 }) : {}])) },
    db: {},
  },
});

/** A chain of supervisors with a child at this level. */
const chain = (levels, name, facts = {}) => {
  let below = { children: { [name]: facts } };
  for (let level = levels - 1; level > 1; level--) below = { children: { [`d${level}`]: below } };
  return child('app', below);
};

const servers = [];
const start = async (...args) => {
  servers.push(await fake(...args));
  return servers.at(-1);
};
after(() => Promise.all(servers.map((server) => server.end())));

/** The paths of the rows in sight, top to bottom. */
const shown = (page) => page.locator('.tree-body [role=row]:visible').evaluateAll((rows) => rows
  .sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((one) => one.dataset.path));
/** Waits until the rows in sight are these. */
const rowsAre = (page, paths) => page.waitForFunction((wanted) => {
  const rows = [...document.querySelectorAll('.tree-body [role=row]:not([hidden])')].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex);
  return rows.map((one) => one.dataset.path).join() === wanted;
}, paths.join());
/** Waits until something is true of the server. */
async function until(page, condition) {
  for (let frames = 0; !condition(); frames++) {
    assert.ok(frames < 2_000, String(condition));
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
}
const text = (page, path) => row(page, path).locator('.text').textContent();
const live = (page) => page.locator('#connection', { hasText: /^live$/ }).waitFor();
const hash = (page, wanted) => page.waitForFunction((expected) => location.hash === expected, wanted);
const column = (page, name) => page.getByRole('columnheader', { name });

describe('what a row says', () => {
  test('the cause comes first, then the countdown, and nothing is said twice', async () => {
    const server = await start(shop());
    const page = await open(server.url, WIDE);
    assert.match(await text(page, 'app/mqtt'), new RegExp(`^${CAUSE} · retry in \\d+m\\d+s \\(attempt 4\\)$`));
    assert.equal(await text(page, 'app/importer'), 'stopped by operator: the vendor is down');
    assert.equal(await text(page, 'app/mailer'), 'held by operator: no mail today');
    assert.equal(await text(page, 'app/db'), '“pool 3/10”');
    assert.equal(await text(page, 'app'), '6 children, 3 problems');
    assert.equal(await page.title(), '(3) app · verger');
  });

  test('a child that works again still says why it failed', async () => {
    const now = Date.now();
    const exit = (message, ago) => ({ incarnation: 1, at_ms: now - ago, lived_ms: 1, reason: { kind: 'failed', message: `failed: ${message}` } });
    const server = await start(child('app', {
      children: {
        recent: { last_exit: exit(CAUSE, 62_000), problems: [{ kind: 'failed', problem: `62s ago: failed: ${CAUSE}`, cause: `failed: ${CAUSE}`, since_ms: now - 62_000, essential: false }], status: 'warm' },
        past: { last_exit: exit('out of memory', 7_200_000), status: 'warm' },
      },
    }));
    const page = await open(server.url, WIDE);
    assert.match(await text(page, 'app/recent'), new RegExp(`^${CAUSE} · failed 1m\\d+s ago · “warm”$`));
    assert.equal(await text(page, 'app/past'), '“warm” · failed 2h ago: out of memory');
    assert.equal(await page.title(), '(1) app · verger', 'a failure of two hours ago is no problem');
  });

  test('a stop that has begun says who asked for it, and the grace that is left', async () => {
    const server = await start(child('app', {
      children: { uploader: { lifecycle: 'deactivating', ready: false, stopping: { ends_ms: Date.now() + 600_000, by: 'alice', reason: 'it hangs' }, problems: [{ kind: 'down', problem: 'deactivating', since_ms: 1, essential: true }] } },
    }));
    const page = await open(server.url, WIDE);
    assert.match(await text(page, 'app/uploader'), /^stopped by alice: it hangs · (10m|9m\d+s) of grace left$/);
  });

  test('the header counts the words of the rows', async () => {
    const server = await start(shop());
    const page = await open(server.url, WIDE);
    const counts = await page.locator('#counts li').evaluateAll((items) => items.map((item) => item.textContent));
    assert.deepEqual(counts, ['3active', '1stopped', '1held', '1restarting']);
  });

  test('columns that say nothing are hidden, and their room is the cause’s', async () => {
    const server = await start(child('app', { children: { db: {}, mqtt: failing(CAUSE, { restarts: 0 }) } }));
    const page = await open(server.url, WIDE);
    const columns = () => page.getByRole('columnheader').evaluateAll((heads) => heads.filter((head) => head.offsetWidth).map((head) => head.dataset.column));
    assert.deepEqual(await columns(), ['name', 'state', 'for', 'ready', 'text']);
    const { width } = await row(page, 'app/mqtt').locator('.text').boundingBox();
    server.root = shop();
    server.send();
    await row(page, 'app/writer').waitFor();
    assert.deepEqual(await columns(), ['name', 'state', 'for', 'restarts', 'mail', 'busy', 'text']);
    assert.ok((await row(page, 'app/mqtt').locator('.text').boundingBox()).width < width);
  });

  test('the buttons of a row don’t move its cause', async () => {
    const server = await start(shop());
    const page = await open(server.url, { ...WIDE, wait: false });
    await page.route('**/api/info', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...await response.json(), actions: true } });
    });
    await page.reload();
    await live(page);
    const cause = row(page, 'app/mqtt').locator('.text');
    const before = await cause.boundingBox();
    await row(page, 'app/mqtt').hover();
    await row(page, 'app/mqtt').getByRole('button', { name: 'Restart' }).waitFor();
    assert.deepEqual(await cause.boundingBox(), before);
    assert.ok((await cause.getAttribute('title')).startsWith(CAUSE));
  });

  test('names can be read at any depth, in wide and in narrow windows', async () => {
    const server = await start(chain(30, 'db', failing(CAUSE)));
    for (const options of [WIDE, NARROW]) {
      const { width } = options.viewport;
      const page = await open(server.url, options);
      await page.keyboard.press('End');
      const deepest = row(page, `app/${Array.from({ length: 28 }, (_, i) => `d${i + 2}`).join('/')}/db`);
      await deepest.waitFor();
      assert.match(await deepest.locator('.skipped').textContent(), /^\+\d+$/);
      for (const label of await page.locator('.tree-body .label:visible').all()) {
        const [name, cell] = [await label.boundingBox(), await label.locator('..').boundingBox()];
        assert.ok(cell.x + cell.width - name.x >= 110, `${await label.textContent()} has ${cell.x + cell.width - name.x} px of ${width}`);
        assert.ok(await label.evaluate((element) => element.lastElementChild.scrollWidth <= element.lastElementChild.clientWidth), `${await label.textContent()} is cut at ${width} px`);
      }
      assert.ok((await deepest.locator('.text').boundingBox()).width >= 200, `the cause has room at ${width} px`);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
    }
  });
});

describe('which rows there are', () => {
  test('problems are those that the program names', async () => {
    const root = shop();
    // Nothing else about this child tells that something is wrong.
    root.children[0].problems = [{ kind: 'long_poll', problem: 'a poll took 4.1s', since_ms: Date.now(), essential: false }];
    const server = await start(root);
    const page = await open(server.url, WIDE);
    await page.getByLabel('Problems only').check();
    await rowsAre(page, ['app', 'app/db', 'app/mqtt', 'app/importer', 'app/mailer']);
    assert.equal(await text(page, 'app/db'), 'a poll took 4.1s · “pool 3/10”');
    assert.equal(await page.locator('#shown').textContent(), '4 of 6 children');
  });

  test('rows neither move nor go while the pointer is over them', async () => {
    const server = await start(shop());
    const page = await open(server.url, WIDE);
    await page.getByLabel('Problems only').check();
    const before = ['app', 'app/mqtt', 'app/importer', 'app/mailer'];
    await rowsAre(page, before);
    await row(page, 'app/importer').hover();
    // The first problem is solved, and a new one comes before the others.
    server.root = shop();
    Object.assign(server.root.children[1], child('app/mqtt', { status: 'connected' }));
    Object.assign(server.root.children[0], failing('disk full'));
    server.send();
    await row(page, 'app/mqtt').getByText('“connected”').waitFor();
    assert.deepEqual(await shown(page), before, 'the row shows what is true now, in its place');
    await page.locator('#shown', { hasText: 'held in place' }).waitFor();
    await page.mouse.move(0, 0);
    await rowsAre(page, ['app', 'app/db', 'app/importer', 'app/mailer']);
  });

  test('a child that is removed keeps its row until the pointer has left', async () => {
    const server = await start(shop());
    const page = await open(server.url, WIDE);
    await row(page, 'app/db').hover();
    server.send({ removed: ['app/reader'] });
    await row(page, 'app/reader').getByText('removed').waitFor();
    await page.mouse.move(0, 0);
    await rowsAre(page, ['app', 'app/db', 'app/mqtt', 'app/writer', 'app/importer', 'app/mailer']);
  });

  test('the search finds causes, statuses, states and paths', async () => {
    const server = await start(shop());
    const page = await open(server.url, WIDE);
    for (const [words, found] of [['route broker', 'app/mqtt'], ['pool', 'app/db'], ['held', 'app/mailer'], ['vendor', 'app/importer'], ['app/wri', 'app/writer']]) {
      await page.getByLabel('Filter').fill(words);
      await rowsAre(page, ['app', found]);
      assert.equal(await row(page, 'app').getAttribute('data-context'), '', 'what is above a match is muted');
    }
    await page.getByLabel('Filter').fill('no such thing');
    await rowsAre(page, []);
  });

  test('each column sorts in both directions, and then the tree is back', async () => {
    const server = await start(shop());
    const page = await open(server.url, { viewport: { width: 1900, height: 900 } });
    const inTree = ['app', 'app/db', 'app/mqtt', 'app/writer', 'app/reader', 'app/importer', 'app/mailer'];
    const first = {
      Name: ['ascending', ['app', 'app/db', 'app/importer', 'app/mailer', 'app/mqtt', 'app/reader', 'app/writer']],
      State: ['ascending', ['app/mqtt', 'app/mailer', 'app/importer', 'app', 'app/db', 'app/writer', 'app/reader']],
      For: ['ascending', ['app/mqtt', 'app/reader']],
      Restarts: ['descending', ['app/mqtt', 'app/db', 'app/writer', 'app', 'app/reader', 'app/importer', 'app/mailer']],
      'Limit used': ['descending', ['app/mqtt', 'app']],
      Mailbox: ['descending', ['app/writer', 'app/reader', 'app']],
      Busy: ['descending', ['app/db', 'app']],
      Ready: ['ascending', ['app/mqtt', 'app/importer', 'app/mailer', 'app']],
      Details: ['ascending', ['app/mailer', 'app/mqtt', 'app/importer', 'app', 'app/db', 'app/writer', 'app/reader']],
    };
    for (const [name, [direction, order]] of Object.entries(first)) {
      await column(page, name).getByRole('button').click();
      assert.equal(await column(page, name).getAttribute('aria-sort'), direction);
      const now = await shown(page);
      assert.deepEqual(now.slice(0, order.length), order, `by ${name}`);
      assert.equal(now.length, inTree.length);
      assert.equal(await page.locator('[aria-sort=ascending], [aria-sort=descending]').count(), 1);
      await column(page, name).getByRole('button').click();
      assert.equal(await column(page, name).getAttribute('aria-sort'), direction === 'ascending' ? 'descending' : 'ascending');
      await column(page, name).getByRole('button').click();
      assert.equal(await column(page, name).getAttribute('aria-sort'), 'none');
      assert.deepEqual(await shown(page), inTree);
    }
  });

  test('columns without room are in the list beside the search, and a sorted column is always shown', async () => {
    const server = await start(shop());
    const page = await open(server.url, NARROW);
    for (const [name, least] of [['By busy', 'app/db'], ['By ready', 'app/mqtt'], ['By restarts', 'app/mqtt']]) {
      await page.getByLabel('Order').selectOption(name);
      assert.equal((await shown(page))[0], least);
      assert.ok(await column(page, name.slice(3).replace(/^./, (letter) => letter.toUpperCase())).isVisible());
    }
    assert.equal(await row(page, 'app/mqtt').locator('.c-restarts').textContent(), '7');
  });

  test('a key goes through the columns, and another one turns the order round', async () => {
    const server = await start(shop());
    const page = await open(server.url, WIDE);
    const sorted = () => page.locator('[aria-sort=ascending], [aria-sort=descending]').evaluateAll((heads) => heads.map((head) => `${head.dataset.column} ${head.ariaSort}`));
    const seen = [];
    for (let i = 0; i < 10; i++) {
      await page.keyboard.press('o');
      seen.push(...await sorted());
    }
    assert.deepEqual(seen, ['name ascending', 'state ascending', 'for ascending', 'restarts descending', 'limit descending', 'mail descending', 'busy descending', 'ready ascending', 'text ascending']);
    await page.keyboard.press('o');
    await page.keyboard.press('O');
    assert.deepEqual(await sorted(), ['name descending']);
  });

  test('a sorted list is flat, and shows the paths', async () => {
    const server = await start(chain(5, 'db', failing(CAUSE)));
    const page = await open(server.url, WIDE);
    await page.keyboard.press('o');
    await page.keyboard.press('o');
    const db = row(page, 'app/d2/d3/d4/db');
    assert.equal((await shown(page))[0], 'app/d2/d3/d4/db');
    assert.equal(await db.locator('.label').textContent(), 'd2/d3/d4/db');
    assert.equal(await db.getAttribute('aria-level'), '1');
    assert.equal(await row(page, 'app/d2').getAttribute('aria-expanded'), null);
  });

  test('more than eight dynamic children are one row, which unfolds', async () => {
    const server = await start(crowd(501));
    const page = await open(server.url, WIDE);
    const group = row(page, 'app/conns/conn#…');
    await rowsAre(page, ['app', 'app/conns', 'app/conns/conn#…', 'app/conns/conn#8', 'app/db']);
    assert.equal(await group.locator('.label').textContent(), 'conn#… ×501');
    assert.equal(await group.locator('.text').textContent(), '500 active, 1 restarting');
    assert.equal(await group.getAttribute('aria-expanded'), 'false');
    assert.equal(await row(page, 'app/conns/conn#8').getAttribute('aria-level'), '4');
    await group.click();
    assert.match(await page.getByRole('heading', { level: 2 }).first().textContent(), /app\/conns/, 'the details are about their supervisor');
    await page.keyboard.press('ArrowRight');
    assert.equal(await group.getAttribute('aria-expanded'), 'true');
    assert.equal(await page.locator('#tree').getAttribute('aria-rowcount'), '506');
    await page.keyboard.press('End');
    await row(page, 'app/db').waitFor();
    assert.ok(await page.locator('.tree-body [role=row]').count() < 80, 'only the rows in sight exist');
    await page.keyboard.press('ArrowUp');
    assert.equal(await page.getByRole('row', { selected: true }).getAttribute('data-path'), 'app/conns/conn#501');
    await page.keyboard.press('ArrowLeft');
    assert.equal(await page.getByRole('row', { selected: true }).getAttribute('data-path'), 'app/conns/conn#…');
    await page.keyboard.press(' ');
    await rowsAre(page, ['app', 'app/conns', 'app/conns/conn#…', 'app/conns/conn#8', 'app/db']);
    await page.keyboard.press('r');
    await page.locator('#message', { hasText: 'is a group' }).waitFor();
  });

  test('eight dynamic children have a row each, and a group lasts until few are left', async () => {
    const server = await start(crowd(8));
    const page = await open(server.url, WIDE);
    const all = (count) => ['app', 'app/conns', ...Array.from({ length: count }, (_, i) => `app/conns/conn#${i + 1}`), 'app/db'];
    await rowsAre(page, all(8));
    for (const [count, rows] of [[9, ['app', 'app/conns', 'app/conns/conn#…', 'app/conns/conn#8', 'app/db']], [5, ['app', 'app/conns', 'app/conns/conn#…', 'app/db']], [4, all(4)]]) {
      server.root = crowd(count);
      server.send();
      await rowsAre(page, rows);
    }
  });
});

describe('the address of a view', () => {
  test('a link that is opened in a second browser shows the same view', async () => {
    const server = await start(shop());
    const page = await open(server.url, WIDE);
    await page.getByLabel('Filter').fill('app/');
    await page.getByLabel('Problems only').check();
    await column(page, 'Restarts').getByRole('button').click();
    await row(page, 'app/importer').click();
    await page.getByRole('tab', { name: 'Events' }).click();
    await hash(page, '#path=app/importer&tab=events&filter=app/&problems=1&sort=-restarts');
    const other = await open(page.url(), WIDE);
    await other.getByRole('tab', { name: 'Events', selected: true }).waitFor();
    assert.equal(await other.getByRole('row', { selected: true }).getAttribute('data-path'), 'app/importer');
    assert.match(await other.getByRole('heading', { level: 2 }).first().textContent(), /app\/importer/);
    assert.equal(await other.getByLabel('Filter').inputValue(), 'app/');
    assert.ok(await other.getByLabel('Problems only').isChecked());
    assert.equal(await column(other, 'Restarts').getAttribute('aria-sort'), 'descending');
    assert.deepEqual(await shown(other), await shown(page));
    assert.equal(await other.evaluate(() => location.hash), await page.evaluate(() => location.hash));
  });

  test('any text survives the way into the address and back', async () => {
    const server = await start(shop());
    const page = await open(server.url, WIDE);
    const odd = ['a b', '50 %', '%41', 'x&tab=log', 'a=b#c', '1+1', '“ü”/ß', '\u{1f600}'];
    const came = await page.evaluate(async (texts) => {
      const { readAddress, writeAddress } = await import('/console/address.js');
      return texts.map((text) => {
        const view = { path: `app/${text}`, tab: 'log', filter: text, problems: true, sort: { by: 'mail', down: false } };
        // As a browser writes it.
        history.replaceState(null, '', writeAddress(view));
        const { token, ...read } = readAddress(location.hash);
        return JSON.stringify(read) === JSON.stringify(view) && location.hash === writeAddress(view) ? text : JSON.stringify(read);
      });
    }, odd);
    assert.deepEqual(came, odd);
  });

  test('a reload keeps the view', async () => {
    const server = await start(crowd(20));
    const page = await open(server.url, WIDE);
    await page.keyboard.press('End');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('l');
    await hash(page, '#path=app/conns/conn%238&tab=log');
    await page.reload();
    await live(page);
    await page.getByRole('tab', { name: 'Log', selected: true }).waitFor();
    assert.equal(await page.getByRole('row', { selected: true }).getAttribute('data-path'), 'app/conns/conn#8');
  });

  test('a link to a child in a group, or below a folded supervisor, shows its row', async () => {
    const server = await start(crowd(501));
    const page = await open(`${server.url}#path=app/conns/conn%23300`, WIDE);
    await rowsAre(page, ['app', 'app/conns', 'app/conns/conn#…', 'app/conns/conn#8', 'app/conns/conn#300', 'app/db']);
    await row(page, 'app/conns/conn#…').click();
    await page.reload();
    await live(page);
    assert.equal(await page.getByRole('row', { selected: true }).getAttribute('data-path'), 'app/conns/conn#…');
    await page.getByRole('button', { name: 'Fold all', exact: true }).click();
    await rowsAre(page, ['app', 'app/conns', 'app/db']);
    await page.evaluate(() => { location.hash = '#path=app/conns/conn%237'; });
    await row(page, 'app/conns/conn#7').waitFor();
    assert.equal(await page.getByRole('row', { selected: true }).getAttribute('data-path'), 'app/conns/conn#7');
  });

  test('a link to a child that is gone says so, and shows the tree', async () => {
    const server = await start(shop());
    const page = await open(`${server.url}#path=app/conns/conn%231&tab=nonsense&sort=nonsense`, WIDE);
    await page.locator('#message', { hasText: 'There is no app/conns/conn#1 any more.' }).waitFor();
    assert.equal(await page.getByRole('row', { selected: true }).getAttribute('data-path'), 'app');
    await hash(page, '');
    // *Back* to such a child doesn't hold the reader there.
    await row(page, 'app/reader').click();
    await hash(page, '#path=app/reader');
    await row(page, 'app/mailer').click();
    await hash(page, '#path=app/mailer');
    server.root.children.splice(3, 1);
    server.send({ removed: ['app/reader'] });
    await page.mouse.move(0, 0);
    await rowsAre(page, ['app', 'app/db', 'app/mqtt', 'app/writer', 'app/importer', 'app/mailer']);
    const entries = await page.evaluate(() => history.length);
    await page.goBack();
    await page.locator('#message', { hasText: 'There is no app/reader any more.' }).waitFor();
    assert.equal(await page.evaluate(() => history.length), entries);
    await page.goForward();
    await hash(page, '#path=app/mailer');
  });

  test('Back undoes a click, and steps with the arrow keys are one entry', async () => {
    const server = await start(shop());
    const page = await open(server.url, WIDE);
    const selected = (path) => page.locator(`[aria-selected=true][data-path="${path}"]`).waitFor();
    await row(page, 'app/db').click();
    await hash(page, '#path=app/db');
    await page.getByRole('tab', { name: 'Log' }).click();
    await hash(page, '#path=app/db&tab=log');
    await page.locator('#tree').focus();
    const before = await page.evaluate(() => history.length);
    for (let i = 0; i < 3; i++) await page.keyboard.press('ArrowDown');
    await hash(page, '#path=app/reader&tab=log');
    assert.equal(await page.evaluate(() => history.length), before);
    await column(page, 'Restarts').getByRole('button').click();
    await hash(page, '#path=app/reader&tab=log&sort=-restarts');
    await page.goBack();
    assert.equal(await column(page, 'Restarts').getAttribute('aria-sort'), 'none');
    await page.goBack();
    await selected('app/db');
    await page.getByRole('tab', { name: 'Log', selected: false }).waitFor();
    await page.goBack();
    await selected('app');
    await page.goForward();
    await selected('app/db');
  });

  test('the token of a link never stays in the address, and what is beside it does', async () => {
    const server = await start(shop(), { token: 'secret' });
    const page = await open(`${server.url}#token=secret&path=app/db&tab=log`, WIDE);
    await hash(page, '#path=app/db&tab=log');
    assert.equal(await page.getByRole('row', { selected: true }).getAttribute('data-path'), 'app/db');
    assert.ok(!await page.evaluate(() => JSON.stringify(performance.getEntriesByType('resource').map(({ name }) => name)).includes('secret')));
    // Also when it is pasted into the address of an open page.
    await page.evaluate(() => {
      sessionStorage.removeItem('verger-token');
      location.hash = '#token=secret&path=app/mqtt';
    });
    await hash(page, '#path=app/mqtt');
    assert.equal(await page.evaluate(() => sessionStorage.getItem('verger-token')), 'secret');
  });
});

describe('the stream', () => {
  test('ten tabs of a browser show the program, and each sees a restart', async (t) => {
    const program = await serve();
    t.after(() => program.end());
    const first = await open(program.url);
    const tabs = [first, ...await Promise.all(Array.from({ length: 9 }, async () => {
      const tab = await first.context().newPage();
      await tab.goto(program.url);
      return tab;
    }))];
    await Promise.all(tabs.map(live));
    await Promise.all(tabs.map((tab) => row(tab, 'app/db').waitFor()));
    // An action has a connection left.
    await row(tabs[9], 'app/db').click();
    await tabs[9].keyboard.press('r');
    await tabs[9].getByRole('dialog').getByRole('button', { name: 'Restart' }).click();
    await tabs[9].locator('#message', { hasText: 'restarted app/db' }).waitFor();
    await Promise.all(tabs.map((tab) => row(tab, 'app/db').locator('.c-restarts', { hasText: /^1$/ }).waitFor()));
  });

  test('tabs share one request, and another tab makes it when the first one is closed or paused', async () => {
    const server = await start(shop());
    const first = await open(server.url);
    const tabs = await Promise.all(Array.from({ length: 3 }, () => first.context().newPage()));
    for (const tab of tabs) await tab.goto(server.url);
    await Promise.all(tabs.map(live));
    assert.deepEqual([server.opened, server.open], [1, 1]);
    const restarted = (count) => {
      const { children: _, ...fresh } = child('app/db', { restarts: count });
      server.send({ children: [fresh] });
    };
    restarted(20);
    await Promise.all([first, ...tabs].map((tab) => row(tab, 'app/db').locator('.c-restarts', { hasText: /^20$/ }).waitFor()));
    await first.close();
    await Promise.all(tabs.map(live));
    await until(tabs[0], () => server.opened === 2);
    server.root.children[0].restarts = 21;
    restarted(21);
    await Promise.all(tabs.map((tab) => row(tab, 'app/db').locator('.c-restarts', { hasText: /^21$/ }).waitFor()));
    for (const tab of tabs.slice(0, 2)) await tab.getByRole('button', { name: 'Pause' }).click();
    server.root.children[0].restarts = 22;
    server.send();
    await row(tabs[2], 'app/db').locator('.c-restarts', { hasText: /^22$/ }).waitFor();
    assert.equal(server.open, 1);
    assert.equal(await row(tabs[0], 'app/db').locator('.c-restarts').textContent(), '21', 'a paused tab hears nothing');
    await tabs[0].getByRole('button', { name: 'Continue' }).click();
    await row(tabs[0], 'app/db').locator('.c-restarts', { hasText: /^22$/ }).waitFor();
    assert.equal(server.open, 1);
  });

  test('a tab takes over from one that has frozen', async () => {
    const server = await start(shop());
    const frozen = await open(server.url);
    const tab = await frozen.context().newPage();
    await tab.goto(server.url);
    await live(tab);
    // It holds the lock, and neither reads nor answers for longer than the other one waits.
    const thawed = frozen.evaluate(() => { for (const until = Date.now() + 12_000; Date.now() < until;); });
    await until(tab, () => server.opened === 2);
    server.root.children[0].restarts = 40;
    await row(tab, 'app/db').locator('.c-restarts', { hasText: /^40$/ }).waitFor();
    await thawed;
    await row(frozen, 'app/db').locator('.c-restarts', { hasText: /^40$/ }).waitFor();
    await until(tab, () => server.open <= 1);
  });

  test('without locks, as behind plain http of another host, a tab reads while it is visible', async () => {
    const server = await start(shop());
    const context = await browser.newContext();
    await context.addInitScript(() => Object.defineProperty(Navigator.prototype, 'locks', { value: undefined }));
    const [first, second] = [await context.newPage(), await context.newPage()];
    for (const page of [first, second]) await page.goto(server.url);
    await Promise.all([live(first), live(second)]);
    assert.equal(server.open, 2);
    const hide = (hidden) => first.evaluate((to) => {
      Object.defineProperty(document, 'hidden', { value: to, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }, hidden);
    await hide(true);
    await until(second, () => server.open <= 1);
    server.root.children[0].restarts = 30;
    await hide(false);
    await row(first, 'app/db').locator('.c-restarts', { hasText: /^30$/ }).waitFor();
    assert.equal(server.open, 2);
  });

  test('a page that isn’t connected says what it waits for', async () => {
    const server = await start(shop(), { streams: false });
    const page = await open(server.url, { wait: false });
    assert.equal(await page.locator('#connection').textContent(), 'connecting');
    await page.locator('#connection', { hasText: `connecting, waits for an answer of ${new URL(server.url).host}` }).waitFor();
    await accessible(page, 'connecting');
  });

  test('a snapshot that fails is read again', async () => {
    const server = await start(shop());
    const page = await open('about:blank', { wait: false, expected: (said) => said.includes('503') });
    let refused = 0;
    await page.route('**/api/status', (route) => (refused++ < 2 ? route.fulfill({ status: 503, json: { error: 'busy', problem: 'busy' } }) : route.continue()));
    await page.goto(server.url);
    await live(page);
    assert.equal(refused, 3);
    assert.equal(server.opened, 1, 'with the stream that was there');
  });

  test('a program that is gone is named as what the page waits for', async () => {
    const server = await fake(shop());
    const page = await open(server.url, { expected: (said) => /ERR_(CONNECTION|INCOMPLETE|EMPTY)/.test(said) });
    await server.end();
    await page.locator('#connection', { hasText: `waits: ${new URL(server.url).host} can’t be reached` }).waitFor();
  });

  test('reading that needs the token asks for it', async () => {
    const server = await start(shop(), { token: 'secret' });
    const page = await open(server.url, { wait: false, expected: (said) => said.includes('403') });
    const dialog = page.getByRole('dialog', { name: 'This console needs its token' });
    await dialog.getByLabel(/Token/).fill('wrong');
    await page.keyboard.press('Enter');
    await dialog.getByRole('alert').getByText('reading needs the token').waitFor();
    await accessible(page, 'the token is asked for');
    await dialog.getByLabel(/Token/).fill('secret');
    await page.keyboard.press('Enter');
    await live(page);
    await row(page, 'app/db').waitFor();
    assert.equal(await page.evaluate(() => location.hash), '');
  });

  test('facts that are more than ten seconds old have their age', async () => {
    const server = await start(shop());
    const page = await open(server.url, WIDE);
    assert.equal(await page.locator('#age').textContent(), '');
    server.age = 25_000;
    await page.locator('#age', { hasText: /^mailboxes and texts 2\ds old$/ }).waitFor();
    server.age = 0;
    await page.locator('#age', { hasText: /^$/ }).waitFor({ state: 'attached' });
  });
});

test('axe finds nothing in any state, in a narrow and dark window, and with forced colours', async () => {
  const [small, large, deep] = [await start(shop()), await start(crowd(501)), await start(chain(30, 'db', failing(CAUSE)))];
  const looks = { light: WIDE, dark: { ...WIDE, colorScheme: 'dark' }, 'narrow and dark': { ...NARROW, colorScheme: 'dark' }, 'forced colours': { ...WIDE, forcedColors: 'active' } };
  const views = { tree: small.url, sorted: `${small.url}#sort=-restarts&path=app/mqtt`, problems: `${small.url}#problems=1&filter=broker`, group: large.url, deep: deep.url };
  for (const [look, options] of Object.entries(looks)) {
    const page = await open(small.url, { ...options, reducedMotion: 'reduce' });
    for (const [view, url] of Object.entries(views)) {
      await page.goto(url);
      await live(page);
      await row(page, url === small.url ? 'app/db' : view === 'deep' ? 'app/d2' : view === 'group' ? 'app/conns' : 'app/mqtt').waitFor();
      await page.keyboard.press('End');
      await accessible(page, `${view}, ${look}`);
      const [page_, window_] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
      assert.equal(page_, window_, `nothing overflows: ${view}, ${look}`);
    }
  }
});
