// The page: connects the tree, the details and the calls with the server, and the keyboard with all of them.
//
// 1. The stream carries changes, and a snapshot everything else. A snapshot is fetched at the start, after a gap, and from time
//    to time, because mailboxes, limits and texts change without an event.
// 2. The page never shows old facts as live ones: without news for six seconds it says that it is disconnected, and its clock stops.

import { ACTIONS, Actions, buttons } from './console/actions.js';
import { get } from './console/api.js';
import { Detail } from './console/detail.js';
import { clock, duration, el, plural, reconcile, setAttr, setText, shape } from './console/format.js';
import { Model } from './console/model.js';
import { Tree } from './console/tree.js';

const SILENCE = 6_000;
const RETRY = 2_000;
const STATES = ['active', 'activating', 'restarting', 'errored', 'deactivating', 'stopped', 'resolved', 'discovered'];

const $ = (id) => document.getElementById(id);

const model = new Model();
const actions = new Actions(null, announce);
const detail = new Detail(document.querySelector('.detail-pane'), model, actions);
const tree = new Tree($('tree'), model, {
  select: (path) => detail.select(path),
  shown: (count) => setText($('shown'), count === model.order.length ? plural(count, 'row') : `${count.toLocaleString('en')} of ${plural(model.order.length, 'row')}`),
  act: (name, path) => actions.run(name, model.nodes.get(path)),
  // Only the actions that apply now: the Overview says why the others don't.
  actions: (place, node) => {
    const names = actions.info.actions ? Object.keys(ACTIONS).filter((name) => ACTIONS[name].row && !ACTIONS[name].refuse(node)) : [];
    buttons(place, node, names, { tabindex: -1 });
  },
});

/** Shows the result of a call in the line at the bottom, which a screen reader reads out. */
function announce(text, isError = false) {
  setAttr($('message'), 'data-error', isError ? '' : null);
  setText($('message'), `${clock(Date.now())} ${text}`);
}

// --- The connection ------------------------------------------------------------------------------

let source = null;
let state = 'connecting';
let lastNews = 0;
let retryTimer = null;
/** The changes that a snapshot may not include yet, because it is up to half a second old. */
let recent = [];
/** The snapshots: whether one is being fetched, when the last one ended and how long it took, and when the next is due. */
const fetched = { busy: false, ended: 0, took: 0, next: Infinity };

function setState(next) {
  model.freeze(Boolean(model.root) && next !== 'live');
  if (next === state) return;
  state = next;
  document.body.dataset.connection = state;
  setAttr($('connection'), 'data-state', state);
  setText($('connection'), state === 'disconnected' ? `disconnected at ${clock(Date.now())}, trying again` : state);
}

/** Fetches a snapshot. */
async function snapshot() {
  if (fetched.busy) return;
  fetched.busy = true;
  const began = performance.now();
  try {
    actions.info ??= await get('api/info');
    const status = await get('api/status');
    model.replace(status);
    recent = recent.filter((change) => change.seq > status.seq);
    for (const change of recent) model.apply(change);
    tree.arrange();
    header();
    detail.render();
  } finally {
    fetched.busy = false;
    fetched.ended = performance.now();
    fetched.took = fetched.ended - began;
    // The larger the tree, the longer until the next one.
    fetched.next = fetched.ended + Math.max(2_000, 20 * fetched.took);
  }
}

function connect() {
  clearTimeout(retryTimer);
  source?.close();
  source = new EventSource('api/stream');
  source.addEventListener('open', async () => {
    lastNews = Date.now();
    // The process may be a different one by now.
    actions.info = null;
    recent = [];
    model.freeze(false);
    try {
      await snapshot();
      setState('live');
      tick();
    } catch {
      lost();
    }
  });
  source.addEventListener('change', (event) => changed(JSON.parse(event.data)));
  // The browser tries again by itself after a lost connection, and not after a refusal.
  source.addEventListener('error', lost);
}

function lost() {
  setState('disconnected');
  if (source.readyState === EventSource.CLOSED) retryTimer = setTimeout(connect, RETRY);
}

function changed(change) {
  lastNews = Date.now();
  if (!model.root) return;
  const tells = change.children.length + change.removed.length > 0;
  if (tells) recent = [...recent.slice(-99), change];
  const what = model.apply(change);
  // Not at once, because a tree that changes so much may be large.
  if (what === 'gap') fetched.next = Math.min(fetched.next, fetched.ended + Math.max(500, 4 * fetched.took));
  if (what === 'structure' || (tree.narrowed && tells)) tree.arrange();
  else if (tells) tree.render();
  header();
  detail.render();
  detail.refresh();
}

$('pause').addEventListener('click', () => {
  const pause = state !== 'paused';
  setAttr($('pause'), 'aria-pressed', String(pause));
  setText($('pause'), pause ? 'Continue' : 'Pause');
  if (!pause) {
    setState('connecting');
    return connect();
  }
  clearTimeout(retryTimer);
  source.close();
  setState('paused');
});

// --- What moves by itself ------------------------------------------------------------------------

function header() {
  const { root, totals, program } = model;
  setText($('root-name'), root.path);
  document.title = `${root.below.problems ? `(${root.below.problems}) ` : ''}${root.path} · verger`;
  const present = STATES.filter((name) => totals.lifecycle[name]);
  reconcile($('counts'), present, (name) => name, (name) => el('li', { 'data-state': name }, shape(name), el('b', { class: 'num' }), name),
    (item, name) => setText(item.querySelector('b'), totals.lifecycle[name].toLocaleString('en')));
  setAttr($('program'), 'title', `started ${clock(program.started_at_ms)}, process ${program.pid}`);
  $('reload').hidden = !(actions.info.actions && actions.info.reload);
  $('stop-tree').hidden = !actions.info.actions;
}

function tick() {
  if (!model.root) return false;
  const { root, program, now } = model;
  const version = root.version ? `${root.version} · ` : '';
  setText($('program'), `${version}verger ${program.verger} · up ${duration(now - program.started_at_ms)}`);
  const { count, whole, minutes } = model.restartsPerMinute();
  // A rate of the first seconds says nothing.
  const soon = minutes * 60 < 10;
  setText($('rate'), soon ? '' : whole ? `${Math.round(count / minutes)} restarts/min` : `${plural(count, 'restart')} in ${duration(minutes * 60_000)}`);
  detail.render();
  return tree.render();
}

/** Once a second, or four times while a countdown in sight shows tenths. */
function beat() {
  let urgent = false;
  if (state === 'live') {
    urgent = tick();
    if (Date.now() - lastNews > SILENCE) {
      setState('disconnected');
      connect();
    } else if (!document.hidden && performance.now() > fetched.next) {
      snapshot().catch(lost);
    }
  }
  setTimeout(beat, urgent ? 250 : 1_000);
}

// --- The toolbar, and the keyboard ---------------------------------------------------------------

$('filter').addEventListener('input', () => { tree.view.filter = $('filter').value; tree.arrange(); });
$('problems').addEventListener('change', () => { tree.view.problems = $('problems').checked; tree.arrange(); });
$('fold').addEventListener('click', () => tree.foldAll(true));
$('unfold').addEventListener('click', () => tree.foldAll(false));
$('reload').addEventListener('click', () => actions.reload());
$('stop-tree').addEventListener('click', () => actions.stopTree(model.root.path));
$('help').addEventListener('click', help);

const KEYS = [
  ['↑ ↓  j k', 'move', ['ArrowUp', 'k'], () => tree.move(-1)],
  [null, null, ['ArrowDown', 'j'], () => tree.move(1)],
  ['→ ←', 'unfold or to the first child · fold or to the parent', ['ArrowRight'], () => tree.enter()],
  [null, null, ['ArrowLeft'], () => tree.leave()],
  ['Home End', 'first and last row', ['Home'], () => tree.move(-Infinity)],
  [null, null, ['End'], () => tree.move(Infinity)],
  ['Page ↑ ↓', 'a page', ['PageUp'], () => tree.page(-1)],
  [null, null, ['PageDown'], () => tree.page(1)],
  ['Space', 'fold or unfold', [' '], () => tree.toggle(tree.current)],
  ['Enter', 'to the details; Esc leads back', ['Enter'], () => detail.open(detail.tab, true)],
  ['r', 'restart (of a supervisor: its subtree)', ['r'], () => act('restart')],
  ['s', 'stop', ['s'], () => act('stop')],
  ['n', 'resume now', ['n'], () => act('resume')],
  ['e  l', 'events · log', ['e'], () => detail.open('events', true)],
  [null, null, ['l'], () => detail.open('log', true)],
];
const ANYWHERE = [
  ['/', 'filter; Esc leads back', ['/'], () => { $('filter').focus(); $('filter').select(); }],
  ['x', 'problems only', ['x'], () => $('problems').click()],
  ['p', 'pause and continue', ['p'], () => $('pause').click()],
  ['?', 'this list', ['?'], help],
];

function act(name) {
  const node = model.nodes.get(tree.current);
  if (node) actions.run(name, node);
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  const { target } = event;
  if (event.key === 'Escape' && target !== $('tree')) {
    if (target === $('filter')) { $('filter').value = ''; tree.view.filter = ''; tree.arrange(); }
    $('tree').focus();
    return;
  }
  if (target.matches('input[type=search], input[type=text]')) {
    if (event.key === 'Enter' || event.key === 'ArrowDown') { event.preventDefault(); $('tree').focus(); }
    return;
  }
  const keys = target === $('tree') ? [...KEYS, ...ANYWHERE] : ANYWHERE;
  const found = keys.find(([, , names]) => names.includes(event.key));
  if (!found || !model.root) return;
  event.preventDefault();
  found[3]();
});

function help() {
  const pairs = [...KEYS, ...ANYWHERE].filter(([keys]) => keys);
  $('help-keys').replaceChildren(...pairs.flatMap(([keys, what]) => [el('dt', {}, ...keys.split(/\s+/).map((key) => el('kbd', { text: key }))), el('dd', { text: what })]));
  const words = ['active', 'activating', 'restarting', 'errored', 'unhealthy', 'held', 'deactivating', 'stopped', 'resolved', 'discovered'];
  $('help-shapes').replaceChildren(...words.flatMap((name) => [el('dt', { 'data-state': name }, shape(name)), el('dd', { text: name })]));
  $('help-dialog').showModal();
}

// A closed dialog returns the focus, unless the element that had it is gone.
for (const dialog of document.querySelectorAll('dialog')) {
  dialog.addEventListener('close', () => { if (document.activeElement === document.body) $('tree').focus(); });
}

$('tree').focus();
connect();
beat();
