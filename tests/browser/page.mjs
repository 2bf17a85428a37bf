// What the tests of the page share: a browser for each file, and pages that complain about nothing. `.ci/run browser` builds the
// example and runs all `*.test.mjs`.
//
// Importing this starts the browser before the first test of a file, and closes all pages after each.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, afterEach, before } from 'node:test';

import { launch } from './program.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export let browser;
/** What a page has said that it should not have: console messages, errors, violations of its policy. */
export const complaints = [];

before(async () => { browser = await launch(); });
after(async () => { await browser?.close(); });
afterEach(async () => {
  for (const context of browser.contexts()) await context.close();
  assert.deepEqual(complaints.splice(0), [], 'the browser has nothing to complain about');
});

/** Opens a page in a context of its own, and waits for its tree. */
export async function open(url, { expected = () => false, wait = true, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 720 }, ...options });
  const page = await context.newPage();
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()) && !expected(message.text())) complaints.push(`${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('dialog', (dialog) => complaints.push(`a script has opened a dialog: ${dialog.message()}`));
  await page.goto(url);
  if (wait) await page.locator('#connection', { hasText: /^live$/ }).waitFor();
  return page;
}

export const row = (page, path) => page.locator(`[role=row][data-path="${path}"]`);
/** Selects a child whose row would move, because connections above it come and go: finds it by the filter first. */
export async function choose(page, path) {
  await page.getByLabel('Filter').fill(path);
  await row(page, path).locator('.label').click();
}
export const json = (page, url) => page.evaluate(async (at) => (await fetch(at)).json(), url);

/** Whether `node` has an incarnation after `before`. */
export async function restarted(page, path, before) {
  await page.waitForFunction(async ([of, than]) => {
    const { child } = await (await fetch(`api/child?path=${encodeURIComponent(of)}`)).json();
    return child.incarnation > than && child.lifecycle === 'active';
  }, [path, before]);
}

/** Asserts that axe finds nothing on the page as it is now. `state` names that state. */
export async function accessible(page, state) {
  await page.evaluate(`${AXE}; undefined`);
  const found = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run({ resultTypes: ['violations'] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`);
  });
  assert.deepEqual(found, [], `axe, ${state}`);
}
