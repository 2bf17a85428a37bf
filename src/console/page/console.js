// The page: connects the tree, the details and the calls with the server, and the keyboard and the address with all of them.
//
// 1. What the reader sees has an address: what is selected, which tab is open, what is filtered, and how the rows are sorted. A step
//    with the arrow keys, or a letter of the filter, replaces the last address; everything else can be undone with *Back*.
// 2. A hidden tab keeps its title up to date, and no more.

import { ACTIONS, Actions, buttons } from './console/actions.js';
import { readAddress, writeAddress } from './console/address.js';
import { keepToken } from './console/api.js';
import { COLUMNS, STATES } from './console/columns.js';
import { Detail } from './console/detail.js';
import { clock, duration, el, plural, reconcile, setAttr, setText, shape } from './console/format.js';
import { Live } from './console/live.js';
import { Model } from './console/model.js';
import { restartsPerMinute, SamplesOfMany } from './console/samples.js';
import { Tree } from './console/tree.js';

/** Facts that are older than this have their age beside them. */
const OLD = 10_000;
/** The time in which steps become one address. Browsers refuse more than a few a second. */
const STEPS = 250;

const $ = (id) => document.getElementById(id);

const model = new Model();
const samples = new SamplesOfMany();
const actions = new Actions(null, announce);
const detail = new Detail(document.querySelector('.detail-pane'), model, actions);
const tree = new Tree($('tree'), model, {
  select: (path, how) => {
    detail.select(path);
    remember(how === 'click' ? 'push' : 'replace');
  },
  shown: (matching, held) => {
    const { children } = model.root.below;
    const all = plural(children, 'child', 'children');
    const of = matching === children ? all : `${matching.toLocaleString('en')} of ${all}`;
    setText($('shown'), held ? `${of} · held in place` : of);
    setAttr($('shown'), 'title', held ? 'The rows don’t move while the pointer is over them.' : null);
  },
  sorted: (sort) => {
    $('order').value = sort?.by ?? '';
    remember('push');
  },
  act: (name, path) => actions.run(name, model.nodes.get(path)),
  // Only the actions that apply now: the Overview says why the others don't.
  actions: (place, node) => {
    const names = actions.info?.actions ? Object.keys(ACTIONS).filter((name) => ACTIONS[name].row && !ACTIONS[name].refuse(node)) : [];
    buttons(place, node, names, { tabindex: -1 });
  },
});
const live = new Live(model, {
  state: (state, text) => {
    document.body.dataset.connection = state;
    setAttr($('connection'), 'data-state', state);
    setText($('connection'), text);
    setAttr($('pause'), 'aria-pressed', String(state === 'paused'));
    setText($('pause'), state === 'paused' ? 'Continue' : 'Pause');
    if (state === 'live') tick();
  },
  replaced: () => {
    actions.info = live.info;
    if (wanted) show(wanted);
    else tree.update();
    header();
    detail.render();
  },
  changed: (what, change) => {
    header();
    if (document.hidden) return;
    if (what === 'structure' || (what === 'nodes' && tree.depends)) tree.update();
    else if (what !== 'nothing') tree.render();
    detail.render();
    detail.refresh(change);
  },
  token: (send) => actions.token(send),
});
detail.follow = (path) => tree.select(path, { how: 'click' });

/** Shows the result of a call in the line at the bottom, which a screen reader reads out. */
function announce(text, isError = false) {
  setAttr($('message'), 'data-error', isError ? '' : null);
  setText($('message'), `${clock(Date.now())} ${text}`);
}

// --- The address ---------------------------------------------------------------------------------

/** The view of the address that isn't shown yet, because nothing is known of the tree. */
let wanted = readAddress(location.hash);
let stepped = null;

/** The tab of a view that names none: what is wrong, or everything about the selected child. */
const usual = (path) => (path ? 'overview' : 'incidents');

/** Writes the address of what is shown now: `push` keeps the one before. */
function remember(how) {
  clearTimeout(stepped);
  if (wanted || !model.root) return;
  if (how === 'replace') {
    stepped = setTimeout(write, STEPS, 'replace');
    return;
  }
  write(how);
}

function write(how) {
  const path = tree.current === model.root.path ? null : tree.current;
  const tab = detail.tab === usual(path) ? null : detail.tab;
  const hash = writeAddress({ ...tree.view, path, tab });
  if (hash === location.hash) return;
  history[`${how}State`](null, '', location.pathname + location.search + hash);
}

/** Shows the view of an address. */
function show(view) {
  wanted = view;
  if (!model.root) return;
  $('filter').value = view.filter;
  $('problems').checked = view.problems;
  Object.assign(tree.view, { filter: view.filter, problems: view.problems });
  tree.sort(view.sort);
  const known = !view.path || tree.has(view.path);
  tree.select(known && view.path ? view.path : model.root.path);
  detail.open(view.tab);
  wanted = null;
  // What can't be shown leaves the address, or *Back* would lead to it again and again.
  write('replace');
  if (!known) announce(`There is no ${view.path} any more.`, true);
}

addEventListener('popstate', () => {
  const view = readAddress(location.hash);
  if (view.token) {
    // A link with the token that was opened in this tab must not stay in the history.
    keepToken(view.token);
    history.replaceState(null, '', location.pathname + location.search + writeAddress(view));
    live.start();
  }
  show(view);
});
addEventListener('pagehide', () => { if (!wanted && model.root) write('replace'); });
// Whoever opens a tab: a click, a key, or an incident.
new MutationObserver(() => remember('push')).observe(document.querySelector('[role=tablist]'), { subtree: true, attributeFilter: ['aria-selected'] });

// --- What moves by itself ------------------------------------------------------------------------

function header() {
  document.body.removeAttribute('data-empty');
  const { root, counts, program } = model;
  const problems = root.below.problems + (root.problems?.length ? 1 : 0);
  document.title = `${problems ? `(${problems}) ` : ''}${root.path} · verger`;
  if (document.hidden) return;
  setText($('root-name'), root.path);
  const present = STATES.filter((name) => counts[name]).reverse();
  reconcile($('counts'), present, (name) => name, (name) => el('li', { 'data-state': name }, shape(name), el('b', { class: 'num' }), name),
    (item, name) => setText(item.querySelector('b'), counts[name].toLocaleString('en')));
  setAttr($('program'), 'title', `started ${clock(program.started_at_ms)}, process ${program.pid}`);
  $('reload').hidden = !(actions.info?.actions && actions.info.reload);
  $('stop-tree').hidden = !actions.info?.actions;
}

function tick() {
  if (!model.root) return false;
  const { root, program, now } = model;
  const version = root.version ? `${root.version} · ` : '';
  setText($('program'), `${version}verger ${program.verger} · up ${duration(now - program.started_at_ms)}`);
  samples.read([root.path]);
  const { count, whole, minutes } = restartsPerMinute(samples.of(root.path));
  // A rate of the first seconds says nothing.
  const soon = minutes * 60 < 10;
  setText($('rate'), soon ? '' : whole ? `${Math.round(count / minutes)} restarts/min` : `${plural(count, 'restart')} in ${duration(minutes * 60_000)}`);
  const age = now - model.captured;
  setText($('age'), age > OLD ? `mailboxes and texts ${duration(age)} old` : '');
  const urgent = detail.render();
  return tree.render() || urgent;
}

/** Once a second, or four times while a countdown in sight shows tenths. */
function beat() {
  live.beat();
  const urgent = live.state === 'live' && !document.hidden && tick();
  setTimeout(beat, urgent ? 250 : 1_000);
}

// --- The toolbar, and the keyboard ---------------------------------------------------------------

function filter() {
  tree.view.filter = $('filter').value;
  tree.arrange();
  remember('replace');
}

$('filter').addEventListener('input', filter);
$('problems').addEventListener('change', () => {
  tree.view.problems = $('problems').checked;
  tree.arrange();
  remember('push');
});
$('order').append(el('option', { value: '', text: 'In order of the tree' }), ...COLUMNS.map(({ id, label }) => el('option', { value: id, text: `By ${label.toLowerCase()}` })));
$('order').addEventListener('change', () => ($('order').value ? tree.sortBy($('order').value) : tree.sort(null)));
$('pause').addEventListener('click', () => (live.state === 'paused' ? live.start() : live.pause()));
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
  ['K', 'kill, without its grace', ['K'], () => act('kill')],
  ['i e l', 'incidents · events · log', ['i'], () => detail.open('incidents', true)],
  [null, null, ['e'], () => detail.open('events', true)],
  [null, null, ['l'], () => detail.open('log', true)],
];
const ANYWHERE = [
  ['/', 'search; Esc leads back', ['/'], () => { $('filter').focus(); $('filter').select(); }],
  ['x', 'problems only', ['x'], () => $('problems').click()],
  ['o  O', 'sort by the next column · the other way round', ['o'], () => tree.sortByNext()],
  [null, null, ['O'], () => { if (tree.view.sort) tree.sort({ ...tree.view.sort, down: !tree.view.sort.down }); }],
  ['p', 'pause and continue', ['p'], () => $('pause').click()],
  ['?', 'this list', ['?'], help],
];

function act(name) {
  const node = model.nodes.get(tree.current);
  if (node) actions.run(name, node);
  else announce(`${tree.current} is a group: unfold it, and choose one of its children.`, true);
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  const { target } = event;
  if (event.key === 'Escape' && target !== $('tree')) {
    if (target === $('filter')) { $('filter').value = ''; filter(); }
    $('tree').focus();
    return;
  }
  if (target.matches('input[type=search], input[type=text], select')) {
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
  $('help-shapes').replaceChildren(...[...STATES].reverse().flatMap((name) => [el('dt', { 'data-state': name }, shape(name)), el('dd', { text: name })]));
  $('help-dialog').showModal();
}

// A closed dialog returns the focus, unless the element that had it is gone.
for (const dialog of document.querySelectorAll('dialog')) {
  dialog.addEventListener('close', () => { if (document.activeElement === document.body) $('tree').focus(); });
}

$('tree').focus();
live.start();
beat();
