// The address of a view: what is selected and shown, as the part of the URL after `#`. Knows no element.
//
// 1. Reading an address that was written returns the same view. What an address doesn't name is as on the first screen.
// 2. The address names neither what scrolls nor what is folded.

const encode = (text) => encodeURIComponent(text).replaceAll('%2F', '/');

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    // A `%` that someone has typed.
    return text;
  }
}

/** Returns the view that a hash names: `path`, `tab`, `filter`, `problems`, `sort`, and the `token` of a link that has one. */
export function readAddress(hash) {
  const named = new Map(hash.replace(/^#/, '').split('&').filter(Boolean).map((pair) => {
    const at = pair.includes('=') ? pair.indexOf('=') : pair.length;
    return [pair.slice(0, at), decode(pair.slice(at + 1))];
  }));
  const sort = /^(-?)(\w+)$/.exec(named.get('sort') ?? '');
  return {
    token: named.get('token') || null,
    path: named.get('path') || null,
    tab: named.get('tab') || null,
    filter: named.get('filter') ?? '',
    problems: named.get('problems') === '1',
    sort: sort && { by: sort[2], down: sort[1] === '-' },
  };
}

/** Returns the hash that names a view, or an empty text for the first screen. */
export function writeAddress({ path, tab, filter, problems, sort }) {
  const parts = [
    ['path', path], ['tab', tab], ['filter', filter.trim()], ['problems', problems ? '1' : ''], ['sort', sort ? `${sort.down ? '-' : ''}${sort.by}` : ''],
  ].filter(([, text]) => text);
  return parts.length ? `#${parts.map(([name, text]) => `${name}=${encode(text)}`).join('&')}` : '';
}

/** Returns the hash that names a child, and nothing else. */
export const addressOf = (path) => writeAddress({ path, filter: '' });
