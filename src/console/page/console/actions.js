// Calls that change the tree: the actions, when they apply, and the dialog that confirms each. Knows the POST half of the API.
//
// 1. Nothing is sent before the dialog was confirmed.

import { keepToken, post, token } from './api.js';
import { el, reconcile, setAttr, setText } from './format.js';

const $ = (id) => document.getElementById(id);

const running = (node) => ['active', 'activating'].includes(node.lifecycle);
const withheld = (node) => (node.held ? 'it is held; release it first' : null);
const under = (node) => (node.parent ? null : 'the root has no supervisor that could do it');

/** `refuse` returns why the action doesn't apply to a child now, or `null`. */
export const ACTIONS = {
  restart: {
    label: (node) => (node.kind === 'supervisor' ? 'Restart subtree' : 'Restart'), key: 'r', row: true,
    refuse: (node) => under(node) ?? withheld(node),
  },
  stop: {
    label: () => 'Stop', key: 's', row: true,
    refuse: (node) => under(node) ?? (node.lifecycle === 'stopped' ? 'it is stopped already' : null),
  },
  resume: {
    label: () => 'Resume', key: 'n', row: true,
    refuse: (node) => under(node) ?? withheld(node) ?? (running(node) ? 'it runs already' : null),
  },
  reset: {
    label: () => 'Reset counters',
    refuse: (node) => under(node),
  },
  hold: {
    label: () => 'Hold',
    refuse: (node) => under(node) ?? (node.held ? 'it is held already' : null),
  },
  release: {
    label: () => 'Release',
    refuse: (node) => under(node) ?? (node.held ? null : 'it isn’t held'),
  },
};

/** The actions to offer for a child: of two that undo each other, the one that applies. */
export const offered = (node) => Object.keys(ACTIONS).filter((name) => name !== (node.held ? 'hold' : 'release'));

const EXPLAIN = {
  restart: 'Runs a new incarnation of the child. A child that runs is stopped with its grace and started again, with the siblings that its supervisor’s strategy restarts with it. This doesn’t count as a failure.',
  stop: 'Stops the child with its grace and leaves it stopped until it is resumed. A temporary or dynamic child is removed.',
  resume: 'Starts the child now: one that is stopped, waits for its backoff or was given up.',
  reset: 'Failures in a row, backoff and restart limits begin again.',
  hold: 'The child isn’t started automatically until it is released. If it runs, it goes on.',
  release: 'The child is started automatically again.',
};

/** Shows in the dialog why it stays open. The mistakes of a file have lines that point at a column. */
function complain(text) {
  setText($('ask-error'), text);
  $('ask-error').classList.toggle('listing', text.includes('\n'));
}

/** Ends the question that is open. The browser reports the end of a dialog late, perhaps after the next one has opened. */
let abandon = () => {};

/**
 * Asks before a call, and makes it. Resolves with the answer, or with `null` if the dialog was cancelled.
 *
 * A refusal that another try may mend is shown in the dialog: a wrong token, and what `again` lists. Others close it.
 */
function ask({ title, text, ok, danger = false, reason = true, confirm = null, again = [], needsToken, send }) {
  abandon();
  const dialog = $('ask');
  setText($('ask-title'), title);
  $('ask-text').replaceChildren(...text);
  setText($('ask-ok'), ok);
  $('ask-ok').classList.toggle('danger', danger);
  $('ask-reason-field').hidden = !reason;
  $('ask-confirm-field').hidden = confirm === null;
  setText($('ask-confirm-name'), confirm ?? '');
  $('ask-token-field').hidden = !needsToken || Boolean(token());
  for (const id of ['ask-reason', 'ask-confirm', 'ask-token']) $(id).value = '';
  complain('');
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
        finish(resolve, await send($('ask-reason').value.trim() || undefined));
      } catch (error) {
        if (!['bad_token', ...again].includes(error.problem)) return finish(reject, error);
        complain(error.message);
        $('ask-ok').disabled = false;
        if (error.problem !== 'bad_token') return $('ask-ok').focus();
        $('ask-token-field').hidden = false;
        $('ask-token').value = '';
        $('ask-token').focus();
      } finally {
        $('ask-ok').disabled = false;
      }
    });
  });
}

const say = (text) => el('p', { text });

export class Actions {
  /** `announce(text, isError)` shows the result of a call. */
  constructor(info, announce) {
    this.info = info;
    this.announce = announce;
  }

  /** Performs the action `name` on a child, once the dialog is confirmed. */
  async run(name, node) {
    if (!this.info.actions) return this.announce('Actions are off: the program doesn’t allow them.', true);
    const action = ACTIONS[name];
    const refusal = action.refuse(node);
    if (refusal) return this.announce(`${action.label(node)} ${node.path}: ${refusal}.`, true);
    await this.#ask({
      title: `${action.label(node)}: ${node.path}`,
      text: [say(EXPLAIN[name])],
      ok: action.label(node),
      danger: name === 'stop',
      send: (reason) => post('api/action', { action: name, path: node.path, reason }),
    });
  }

  /** Asks for the token that reading needs. Resolves with the answer of `send`, or with `null` if the dialog was cancelled. */
  token(send) {
    return this.#ask({ title: 'This console needs its token', text: [], ok: 'Continue', reason: false, needsToken: true, send });
  }

  /** Stops the tree: asks twice, and the second time for the name of the root. */
  async stopTree(root) {
    const sure = await this.#ask({
      title: `Stop the whole tree ${root}?`,
      text: [say('All children stop in order, and the program ends as after a signal. The console ends with it.')],
      ok: 'Continue…', danger: true,
      send: async (reason) => ({ reason }),
    });
    if (!sure) return;
    await this.#ask({
      title: `Stop ${root} now`, text: [], ok: `Stop ${root}`, danger: true, reason: false, confirm: root,
      send: () => post('api/action', { action: 'stop_tree', path: root, confirm: root, reason: sure.reason }),
    });
  }

  /** Shows what a reload would change, and applies that. */
  async reload() {
    const plan = await this.#ask({
      title: 'Reload the configuration', text: [say('Reads the file and compares it. Nothing is changed yet.')], ok: 'Show the plan', reason: false,
      // The file can be mended while its mistakes are in sight.
      again: ['invalid'],
      send: () => post('api/plan', {}),
    });
    if (!plan) return;
    if (!plan.changes.length) return this.announce(plan.text || 'The configuration has not changed.');
    await this.#ask({
      title: 'Apply this plan?', text: [el('pre', { class: 'plan', tabindex: 0 }, ...plan.text.split('\n').map((text) => el('span', { text })))], ok: 'Apply',
      send: (reason) => post('api/reload', { plan: plan.id, reason }),
    });
  }

  async replay(letter) {
    await this.#ask({
      title: `Replay a dead letter to ${letter.path}`, text: [say(`Sends ${letter.event_type ?? 'the message'} again. If that succeeds, the dead letter is removed from the list.`)], ok: 'Replay', reason: false,
      send: () => post('api/dead-letters/replay', { id: letter.id }),
    });
  }

  async #ask(question) {
    try {
      const answer = await ask({ needsToken: this.info?.needs_token, ...question });
      if (answer?.ok) this.announce(answer.text);
      return answer;
    } catch (error) {
      this.announce(/^refused/i.test(error.message) ? error.message : `Refused: ${error.message}`, true);
      return null;
    }
  }
}

/** Fills `place` with buttons, in order. A button that doesn't apply says why, and stays reachable by keyboard. */
export function buttons(place, node, names, attributes = {}) {
  reconcile(place, names, (name) => name, (name) => el('button', { type: 'button', 'data-action': name, ...attributes }), (button, name) => {
    const action = ACTIONS[name];
    const refusal = action.refuse(node);
    setText(button, action.label(node));
    setAttr(button, 'aria-disabled', refusal ? 'true' : null);
    setAttr(button, 'title', refusal ?? (action.key ? `${action.label(node)} (${action.key})` : null));
  });
}
