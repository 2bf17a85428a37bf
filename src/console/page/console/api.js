// Requests to the program. Knows the token, and no element.
//
// 1. The token is kept for this tab only, and sent in a header.
// 2. A refusal is an `Error` with the program's words and its `problem`. Without an answer, the problem is `unreachable`.

const KEY = 'verger-token';

// A link with the token, such as the one that the program logs, must not stay in the history.
const hash = new URLSearchParams(location.hash.slice(1));
if (hash.has('token')) {
  sessionStorage.setItem(KEY, hash.get('token'));
  hash.delete('token');
  const rest = hash.toString();
  history.replaceState(null, '', location.pathname + location.search + (rest && `#${rest}`));
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
  if (response.ok) return text;
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
export const getText = (url) => request(url, { headers: headers() });

/** Reads, and resolves with the answer. */
export const get = async (url) => JSON.parse(await getText(url));

/** Sends a call, and resolves with the answer. */
export const post = async (url, body) => JSON.parse(await request(url, {
  method: 'POST',
  headers: { 'Content-Type': 'application/json', ...headers() },
  body: JSON.stringify(body),
}));
