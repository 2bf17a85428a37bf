// Requests to the program. Knows the token, and no element.
//
// 1. The token is kept for this tab only, and sent in a header.
// 2. A refusal is an `Error` with the program's words and its `problem`. Without an answer, the problem is `unreachable`.

import { readAddress, writeAddress } from './address.js';

const KEY = 'verger-token';

// A link with the token, such as the one that the program logs, must not stay in the history.
const view = readAddress(location.hash);
if (view.token) {
  sessionStorage.setItem(KEY, view.token);
  history.replaceState(null, '', location.pathname + location.search + writeAddress(view));
}

export const token = () => sessionStorage.getItem(KEY);

/** Keeps the token that the operator has typed. */
export const keepToken = (text) => sessionStorage.setItem(KEY, text);

/** The headers of every request: actions need the token, and reading may need it. */
export const headers = () => (token() ? { 'X-Verger-Token': token() } : {});

async function request(url, options) {
  let response;
  let text;
  try {
    response = await fetch(url, options);
    text = await response.text();
  } catch {
    throw Object.assign(new Error('the program can’t be reached'), { problem: 'unreachable' });
  }
  if (response.ok) return { text, pending: response.status === 202 };
  let refusal = { error: `the program answered with status ${response.status}` };
  try {
    refusal = JSON.parse(text);
  } catch {
    // A proxy in between has no words for a page.
  }
  if (refusal.problem === 'bad_token') sessionStorage.removeItem(KEY);
  throw Object.assign(new Error(refusal.error), { problem: refusal.problem });
}

/** Reads, and resolves with the text of the answer, which is cheaper to compare than what is in it. */
export const getText = async (url) => (await request(url, { headers: headers() })).text;

/** Reads, and resolves with the answer. */
export const get = async (url) => JSON.parse(await getText(url));

/** Sends a call, and resolves with the answer. That is `pending` if the call takes longer than the program waits for it. */
export async function post(url, body) {
  const { text, pending } = await request(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers() },
    body: JSON.stringify(body),
  });
  return { ...JSON.parse(text), pending };
}
