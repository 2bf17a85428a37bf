// The example program and the browser, as the tests start them.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

import { chromium } from 'playwright-core';

const PROGRAM = process.env.VERGER_CONSOLE_EXAMPLE ?? new URL('../../target/release/examples/console', import.meta.url).pathname;

/** Starts the example, and waits for the line that says where its console is. */
export async function serve({ port = 0, children = 0, churn = 0 } = {}) {
  const child = spawn(PROGRAM, [String(port), '--children', String(children), '--churn', String(churn)], { stdio: ['ignore', 'pipe', 'pipe'] });
  // Children panic on purpose, so the log is shown only if the program doesn't come up.
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text) => { log = (log + text).slice(-4_000); });
  const ended = new Promise((resolve) => { child.once('exit', resolve); });
  const url = await new Promise((resolve, reject) => {
    child.once('error', reject);
    ended.then((code) => reject(new Error(`the example has ended with ${code}: ${log}`)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      const found = /^console: (http:\S+)/.exec(line);
      if (found) resolve(found[1]);
    });
  });
  const { port: at, hash } = new URL(url);
  return {
    url,
    port: Number(at),
    token: new URLSearchParams(hash.slice(1)).get('token'),
    /** Ends the program as a crash would, because a test has no time for its graceful stop. */
    async end() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Starts Debian's Chromium without what it would look up on the network. */
export function launch() {
  const args = ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
  // Its sandbox refuses to run as root, as in a container.
  if (process.getuid() === 0) args.push('--no-sandbox');
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args });
}
