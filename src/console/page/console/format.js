// Values as text, and elements that hold text. Knows nothing of the tree or the server.
//
// 1. Text from the server enters the document as text nodes and attributes only, never as markup.
// 2. Characters that can't be seen, or that change the order of others, are written as escapes.

// Line breaks and tabs are left to the layout.
const INVISIBLE = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Writes characters that can't be seen as escapes, as Rust does: `\u{1b}`. */
export const visible = (text) => String(text).replace(INVISIBLE, (found) => `\\u{${found.codePointAt(0).toString(16)}}`);

/** Makes an element. Properties that start with `on` are listeners, `text` is its text, the rest are attributes. */
export function el(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'text') element.textContent = visible(value);
    else if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : visible(value));
  }
  element.append(...children.filter((child) => child !== null).map((child) => (typeof child === 'string' ? visible(child) : child)));
  return element;
}

/** Makes an element of SVG. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Makes the shape of a state, from the symbols in `index.html`. */
export function shape(name) {
  return svg('svg', { class: 'shape', 'aria-hidden': 'true' }, svg('use', { href: `#shape-${name}` }));
}

/** Sets a text only if it differs, so that an unchanged page costs no layout and keeps the selection. */
export function setText(element, text) {
  const shown = visible(text);
  if (element.textContent !== shown) element.textContent = shown;
}

/** Sets an attribute only if it differs; `null` removes it. */
export function setAttr(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

/** Writes a duration with its two largest units: `2h15m`, `41s`. */
export function duration(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s}s`;
  const two = (big, unit, small, rest) => (small ? `${big}${unit}${small}${rest}` : `${big}${unit}`);
  if (s < 3600) return two(Math.floor(s / 60), 'm', s % 60, 's');
  if (s < 86400) return two(Math.floor(s / 3600), 'h', Math.floor((s % 3600) / 60), 'm');
  return two(Math.floor(s / 86400), 'd', Math.floor((s % 86400) / 3600), 'h');
}

/** Writes a duration that something took: `0ms`, `240ms`, `1.3s`, then as `duration`. */
export function took(ms) {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  return ms < 10_000 ? `${(ms / 1000).toFixed(1)}s` : duration(ms);
}

const CALM = matchMedia('(prefers-reduced-motion: reduce)');

/** Writes what is left of a wait, in tenths below ten seconds, or in whole seconds if the reader prefers less motion. */
export function countdown(ms) {
  const left = Math.max(0, ms);
  return left < 10_000 && !CALM.matches ? `${(left / 1000).toFixed(1)}s` : duration(left + 999);
}

/** Writes a point in time: the local time of day, with the date unless it is today's. */
export function clock(ms) {
  const pad = (n) => String(n).padStart(2, '0');
  const at = new Date(ms);
  const time = `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
  if (at.toDateString() === new Date().toDateString()) return time;
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ${time}`;
}

/** Counts in words: `1 child`, `12 children`. */
export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
}

/** The words of operators for the calls of the API. */
const CALLS = { terminate_child: 'stop', stop_child: 'stop', restart_child: 'resume', start_child: 'start', add_child: 'add', replace_child: 'replace', delete_child: 'remove', kill_child: 'kill' };

/** Writes a call in an operator's words: `stop`, not `terminate_child`. */
export const callName = (call) => CALLS[call] ?? call.replace(/_child$/, '').replaceAll('_', ' ');

/** Writes the text of an event, in which a call is named first, in an operator's words. */
export const inWords = (text) => text.replace(/^([a-z_]+)(?= called by )/, callName);

/** Writes a value of a policy in one line: `exponential, initial 200ms, max 30s`. */
export function plain(value) {
  if (value === null || value === undefined) return '';
  if (Array.isArray(value)) return value.map(plain).join(', ');
  if (typeof value !== 'object') return String(value);
  return Object.entries(value).map(([name, part]) => {
    if (name === 'curve' || part === true) return name === 'curve' ? plain(part) : name;
    return `${name.replaceAll('_', ' ')} ${plain(part)}`;
  }).join(', ');
}

/**
 * Makes the children of `list` those for `items`, by key and in order. Elements that stay keep their place, so that focus,
 * selection and scrolling survive an update.
 */
export function reconcile(list, items, key, create, update = () => {}) {
  const have = new Map([...list.children].map((element) => [element.dataset.key, element]));
  // Two items may be equal in all that they show.
  const seen = new Map();
  let next = list.firstElementChild;
  for (const item of items) {
    const wanted = String(key(item));
    seen.set(wanted, (seen.get(wanted) ?? 0) + 1);
    const name = `${wanted} ${seen.get(wanted)}`;
    let element = have.get(name);
    if (element) have.delete(name);
    else (element = create(item)).dataset.key = name;
    update(element, item);
    if (element === next) next = next.nextElementSibling;
    else list.insertBefore(element, next);
  }
  for (const element of have.values()) element.remove();
}
