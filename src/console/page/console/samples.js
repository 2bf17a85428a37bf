// What the program has measured in the last five minutes, drawn over time. Knows the answer of `api/samples`.
//
// 1. Restarts and busy time are counters, of which the increase is shown. A sum is smaller than before if a part of it has begun again;
//    that is no increase.
// 2. A plot says in words what its line shows.

import { get } from './api.js';
import { duration, el, setAttr, setText, svg } from './format.js';

const PLOT = { width: 240, height: 36, least: 20_000 };
/** Between two requests for the samples of one child. */
const APART = 10_000;

/** The increase of a counter at each sample. */
function increases(samples, name) {
  return samples.slice(1).map((sample, i) => {
    const before = samples[i];
    return { at: sample.at_ms, ms: sample.at_ms - before.at_ms, value: Math.max(0, sample[name] - before[name]) };
  });
}

export const restartsOf = (samples) => increases(samples, 'restarts');

export const mailboxOf = (samples) => samples.filter((sample) => Number.isFinite(sample.mailbox)).map((sample) => ({ at: sample.at_ms, value: sample.mailbox }));

/** The share of the time between two samples in which polls ran, in per cent. */
export const busyOf = (samples) => increases(samples.filter((sample) => Number.isFinite(sample.busy_ms)), 'busy_ms')
  .map(({ at, ms, value }) => ({ at, value: ms > 0 ? Math.round((value / ms) * 100) : 0 }));

/** The restarts in the last minute that the samples tell of, and of how many minutes that is. */
export function restartsPerMinute(samples) {
  const last = samples.at(-1)?.at_ms ?? 0;
  const recent = samples.filter((sample) => sample.at_ms >= last - 60_000);
  const minutes = (last - (recent[0]?.at_ms ?? 0)) / 60_000;
  return { count: restartsOf(recent).reduce((sum, { value }) => sum + value, 0), minutes, whole: minutes > 0.9 };
}

/** Makes an empty plot. */
export function makePlot() {
  const { width, height } = PLOT;
  return el('figure', { class: 'plot', hidden: true },
    el('figcaption', {}, el('span', {}, el('b'), el('span', { class: 'span' })), el('span', { class: 'words muted' })),
    svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', preserveAspectRatio: 'none' },
      svg('line', { x1: 0, x2: width, y1: height - 2, y2: height - 2, class: 'axis' }), svg('path', { class: 'line' })));
}

/**
 * Draws points as a line, or hides the plot if there are too few. `words` tells their least, greatest and last value and their sum;
 * `top` is the value of the upper edge, unless one is greater.
 */
export function drawPlot(figure, name, points, now, words, top = 0) {
  figure.hidden = points.length < 2;
  if (figure.hidden) return;
  const values = points.map((point) => point.value);
  const numbers = { low: Math.min(...values), high: Math.max(...values), last: values.at(-1), sum: values.reduce((sum, value) => sum + value, 0) };
  const text = words(numbers);
  const span = Math.max(PLOT.least, now - points[0].at);
  const x = (at) => Math.max(0, PLOT.width - ((now - at) / span) * PLOT.width);
  const most = Math.max(top, numbers.high);
  const y = (value) => PLOT.height - 2 - (most ? (value / most) * (PLOT.height - 4) : 0);
  // A step per sample: there are no values in between.
  let path = `M${x(points[0].at).toFixed(1)} ${y(points[0].value).toFixed(1)}`;
  for (const point of points.slice(1)) path += `H${x(point.at).toFixed(1)}V${y(point.value).toFixed(1)}`;
  path += `H${PLOT.width}`;
  setAttr(figure.querySelector('path'), 'd', path);
  // The age of the first sample, to ten seconds.
  const length = duration(Math.round(span / 10_000) * 10_000);
  setAttr(figure.querySelector('svg'), 'aria-label', `${name}, last ${length}: ${text}`);
  setText(figure.querySelector('b'), name);
  setText(figure.querySelector('.span'), ` in ${length}`);
  setText(figure.querySelector('.words'), text);
}

/** The samples of several children, read one after the other and not too often. */
export class SamplesOfMany {
  #known = new Map();
  #reading = false;

  /** The samples of a child as they were last read. */
  of(path) {
    return this.#known.get(path)?.samples ?? [];
  }

  /** Reads those that are missing or old, and calls `fresh` after each. Forgets all others. */
  async read(paths, fresh = () => {}) {
    if (this.#reading) return;
    this.#reading = true;
    const wanted = new Set(paths);
    for (const path of this.#known.keys()) if (!wanted.has(path)) this.#known.delete(path);
    try {
      for (const path of wanted) {
        if (performance.now() - (this.#known.get(path)?.at ?? -Infinity) < APART) continue;
        // A child that is gone has none.
        const answer = await get(`api/samples?path=${encodeURIComponent(path)}`).catch(() => null);
        this.#known.set(path, { at: performance.now(), samples: answer?.samples ?? [] });
        fresh();
      }
    } finally {
      this.#reading = false;
    }
  }
}
