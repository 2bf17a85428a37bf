// Calls that change the tree: the actions, when they apply, and what each question says. Knows the POST half of the API.
//
// 1. Nothing is sent before the dialog was confirmed.
// 2. A message about a call that still runs is replaced when the call has ended.

import { post } from './api.js';
import { ask, tellNews } from './ask.js';
import { callName, duration, el, reconcile, setAttr, setText } from './format.js';

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
  kill: {
    label: () => 'Kill…', key: 'K',
    refuse: (node) => under(node) ?? (running(node) || node.lifecycle === 'deactivating' ? null : 'it doesn’t run'),
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
  kill: 'Aborts the child’s task now, without its grace: for a child that hangs. What it was doing is lost. Its supervisor treats that as any other failure: it is charged to the restart limits, and the child is restarted after its backoff, if its policy says so. A child that is being stopped is aborted and stays stopped. Code that blocks its thread can’t be aborted; such a child is reported as leaked.',
  reset: 'Failures in a row, backoff and restart limits begin again.',
  hold: 'The child isn’t started automatically until it is released. If it runs, it goes on.',
  release: 'The child is started automatically again.',
};
const KILL_SUPERVISOR = 'All children below are aborted with it, at the same time and without their grace.';

/** What a call does while it lasts, if it may last, and what it has done then. */
const DOING = { restart: 'restarting', stop: 'stopping', resume: 'resuming', kill: 'killing' };
const DONE = { restart: 'restarted', stop: 'stopped', resume: 'resumed', kill: 'killed' };

const say = (text) => el('p', { text });

export class Actions {
  #announce;
  /** The call that takes long, about which the message is: `{ name, path, incarnation, began }`. */
  #awaited = null;
  /** The question that is open: `{ path, seen }`, with the last call that its author has seen. */
  #asked = null;

  /** `announce(text, isError)` shows the result of a call. */
  constructor(info, announce) {
    this.info = info;
    this.#announce = announce;
  }

  /** Shows a message, in place of the last one. */
  announce(text, isError = false) {
    this.#awaited = null;
    this.#announce(text, isError);
  }

  /** Performs the action `name` on a child, once the dialog is confirmed. */
  async run(name, node) {
    if (!this.info.actions) return this.announce('Actions are off: the program doesn’t allow them.', true);
    const action = ACTIONS[name];
    const refusal = action.refuse(node);
    const label = action.label(node).replace('…', '');
    const { path, incarnation } = node;
    if (refusal) return this.announce(`${label} ${path}: ${refusal}.`, true);
    const text = [say(EXPLAIN[name])];
    if (name === 'kill' && node.kind === 'supervisor') text.push(say(KILL_SUPERVISOR));
    const began = Date.now();
    this.#asked = { path, seen: lastCall(node) };
    const answer = await this.#ask({
      title: `${label}: ${path}`, text, ok: label, danger: ['stop', 'kill'].includes(name),
      doing: DOING[name] && `${DOING[name]} ${path}`,
      send: (who) => {
        this.#asked = null;
        return post('api/action', { action: name, path, ...who });
      },
    });
    this.#asked = null;
    if (answer?.pending && DONE[name]) this.#awaited = { name, path, incarnation, began };
  }

  /** Replaces the message about a call that has ended meanwhile, and tells an open question what has happened to its child. */
  settle(model) {
    if (this.#asked) {
      const { path, seen } = this.#asked;
      const node = model.nodes.get(path);
      const call = node?.last_call;
      tellNews(!node ? 'Meanwhile the child was removed.' : lastCall(node) === seen || !call ? ''
        : `Meanwhile: ${callName(call.call)} by ${call.by ?? 'a call'}${call.reason ? `: ${call.reason}` : ''}.`);
    }
    if (!this.#awaited) return;
    const { name, path, incarnation, began } = this.#awaited;
    const node = model.nodes.get(path);
    const done = `${DONE[name]} ${path} after ${duration(Date.now() - began)}`;
    if (name === 'stop' || name === 'kill') {
      if (node && running(node) && node.incarnation === incarnation || node?.lifecycle === 'deactivating') return;
      return this.announce(node ? done : `${done}; it was removed`);
    }
    if (!node) return this.announce(`${path} was removed`, true);
    // In between, a child that is restarted is stopped.
    if (node.lifecycle === 'active' && node.incarnation > incarnation) this.announce(done);
    else if (['errored', 'restarting'].includes(node.lifecycle)) this.announce(`${path} has failed: ${node.last_exit?.reason.message ?? node.lifecycle}`, true);
  }

  /** Asks for the token that reading needs. Resolves with the answer of `send`, or with `null` if the dialog was cancelled. */
  token(send) {
    return this.#ask({ title: 'This console needs its token', text: [], ok: 'Continue', who: false, needsToken: true, send });
  }

  /** Stops the tree: asks twice, and the second time for the name of the root. */
  async stopTree(root) {
    const sure = await this.#ask({
      title: `Stop the whole tree ${root}?`,
      text: [say('All children stop in order, and the program ends as after a signal. The console ends with it.')],
      ok: 'Continue…', danger: true,
      send: async (who) => ({ who }),
    });
    if (!sure) return;
    await this.#ask({
      title: `Stop ${root} now`, text: [], ok: `Stop ${root}`, danger: true, who: false, confirm: root, doing: `stopping ${root}`,
      send: () => post('api/action', { action: 'stop_tree', path: root, confirm: root, ...sure.who }),
    });
  }

  /** Shows what a reload would change, and applies that. */
  async reload() {
    const plan = await this.#ask({
      title: 'Reload the configuration', text: [say('Reads the file and compares it. Nothing is changed yet.')], ok: 'Show the plan', who: false,
      // The file can be fixed while its mistakes are in sight.
      again: ['invalid'],
      send: () => post('api/plan', {}),
    });
    if (!plan) return;
    if (!plan.changes.length) return this.announce(plan.text || 'The configuration has not changed.');
    await this.#ask({
      title: 'Apply this plan?', text: [el('pre', { class: 'plan', tabindex: 0 }, ...plan.text.split('\n').map((text) => el('span', { text })))], ok: 'Apply',
      send: (who) => post('api/reload', { plan: plan.id, ...who }),
    });
  }

  /** Sends dead letters again that are alike, of which `last` is one. */
  async replay(last, letters) {
    const many = letters.length > 1;
    const what = many ? `${letters.length} dead letters` : 'a dead letter';
    await this.#ask({
      title: `Replay ${what} to ${last.path}`, ok: many ? 'Replay all' : 'Replay', who: false,
      text: [say(`Sends ${last.event_type ?? 'the message'} again${many ? ', the oldest first' : ''}. ${many ? 'Each dead letter that arrives' : 'If it arrives, the dead letter'} is removed from the list.`)],
      send: () => replayAll(letters, last.path),
    });
  }

  async #ask(question) {
    try {
      let answer = await ask({ needsToken: this.info?.needs_token, identity: this.info?.identity ?? null, long: Boolean(question.doing), ...question });
      if (answer?.sending) {
        this.announce(`${question.doing} …`);
        answer = await answer.sending;
      }
      if (answer?.ok) this.announce(answer.text);
      return answer;
    } catch (error) {
      this.announce(/^refused/i.test(error.message) ? error.message : `Refused: ${error.message}`, true);
      return null;
    }
  }
}

/** What tells two calls of a child apart. */
const lastCall = (node) => `${node.last_call?.at_ms} ${node.last_call?.by}`;

/** Sends letters again, one after the other, until one is refused. */
async function replayAll(letters, path) {
  if (letters.length === 1) return post('api/dead-letters/replay', { id: letters[0].id });
  let sent = 0;
  for (const { id } of letters) {
    try {
      await post('api/dead-letters/replay', { id });
      sent++;
    } catch (error) {
      if (!sent) throw error;
      throw Object.assign(new Error(`after ${sent} of ${letters.length} dead letters to ${path}: ${error.message}`), { problem: error.problem });
    }
  }
  return { ok: true, text: `replayed ${sent} dead letters to ${path}` };
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
