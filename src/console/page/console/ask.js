// The dialog before a call: the reason, who asks, the confirmation and the token. Knows no action.
//
// 1. A refusal that another try may fix keeps the dialog open, with all that was typed.
// 2. A call that takes long doesn't keep the operator in the dialog.
// 3. The name that was typed last is kept in this browser. Whom a proxy has identified can't type one.

import { keepToken, token } from './api.js';
import { setText } from './format.js';

const NAME = 'verger-name';
/** How long the dialog waits for an answer to a call that may take long. Refusals come sooner. */
const PATIENCE = 1_000;
const LATER = Symbol('later');

const $ = (id) => document.getElementById(id);

/** Shows in the dialog why it stays open. The mistakes of a file have lines that point at a column. */
function complain(text) {
  setText($('ask-error'), text);
  $('ask-error').classList.toggle('listing', text.includes('\n'));
}

/** Shows in the open dialog what has happened since it was opened, or nothing. */
export const tellNews = (text) => setText($('ask-news'), text);

/** Ends the question that is open. The browser reports the end of a dialog late, perhaps after the next one has opened. */
let abandon = () => {};

/**
 * Asks before a call, and makes it. Resolves with the answer, or with `null` if the dialog was cancelled. For a call that may take
 * `long`, it may also resolve with `{ sending }`, a promise of the answer.
 *
 * `send` gets `{ reason, by }`, each only if it was typed, which is asked for unless `who` is `false`. A refusal that another
 * try may fix is shown in the dialog: a wrong token, an unfit text, and what `again` lists. Others close it.
 */
export function ask({ title, text, ok, danger = false, who = true, identity = null, confirm = null, again = [], long = false, needsToken, send }) {
  abandon();
  const dialog = $('ask');
  setText($('ask-title'), title);
  $('ask-text').replaceChildren(...text);
  setText($('ask-ok'), ok);
  $('ask-ok').classList.toggle('danger', danger);
  $('ask-reason-field').hidden = !who;
  $('ask-name-field').hidden = !who || identity !== null;
  $('ask-identity').hidden = !who || identity === null;
  setText($('ask-identity'), identity === null ? '' : `You act as ${identity}.`);
  $('ask-confirm-field').hidden = confirm === null;
  setText($('ask-confirm-name'), confirm ?? '');
  $('ask-token-field').hidden = !needsToken || Boolean(token());
  for (const id of ['ask-reason', 'ask-confirm', 'ask-token']) $(id).value = '';
  $('ask-name').value = localStorage.getItem(NAME) ?? '';
  complain('');
  tellNews('');
  dialog.showModal();
  const fields = [...dialog.querySelectorAll('label:not([hidden]) input')];
  (fields.at(0) ?? $('ask-ok')).focus();

  return new Promise((resolve, reject) => {
    const events = new AbortController();
    const finish = (settle, value) => {
      events.abort();
      dialog.close();
      settle(value);
    };
    abandon = () => {
      events.abort();
      resolve(null);
    };
    const on = (element, name, listener) => element.addEventListener(name, listener, { signal: events.signal });
    on(dialog, 'close', () => { if (!dialog.open) finish(resolve, null); });
    on($('ask-cancel'), 'click', () => finish(resolve, null));
    on(dialog.querySelector('form'), 'submit', async (event) => {
      event.preventDefault();
      if (confirm !== null && $('ask-confirm').value !== confirm) {
        complain(`This isn’t the name of the root. Type ${confirm} to confirm.`);
        $('ask-confirm').focus();
        return;
      }
      if ($('ask-token').value) keepToken($('ask-token').value.trim());
      complain('');
      $('ask-ok').disabled = true;
      try {
        const sending = send(who ? typed(identity) : {});
        const later = new Promise((late) => { if (long) setTimeout(late, PATIENCE, LATER); });
        const answer = await Promise.race([sending, later]);
        finish(resolve, answer === LATER ? { sending } : answer);
      } catch (error) {
        if (!['bad_token', 'bad_request', ...again].includes(error.problem)) return finish(reject, error);
        complain(error.message);
        $('ask-ok').disabled = false;
        if (error.problem !== 'bad_token') return (who ? $('ask-reason') : $('ask-ok')).focus();
        $('ask-token-field').hidden = false;
        $('ask-token').value = '';
        $('ask-token').focus();
      } finally {
        $('ask-ok').disabled = false;
      }
    });
  });
}

/** The reason and the name, as far as they were typed. Remembers the name. */
function typed(identity) {
  const reason = $('ask-reason').value.trim();
  const by = identity === null ? $('ask-name').value.trim() : '';
  if (by) localStorage.setItem(NAME, by);
  else if (identity === null) localStorage.removeItem(NAME);
  return { ...(reason && { reason }), ...(by && { by }) };
}
