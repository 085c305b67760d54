// The data, elements, numbers in words, the theme, colours, and the queue of what is to be drawn. Everything that comes
// from the data is set as text (`el` makes text nodes), never as markup.

const page = JSON.parse(document.getElementById('report-data').textContent);
const report = page.report;
const runs = report.runs || [];
const axes = page.axes || [];
const schemeKey = page.scheme_key;

/** A table of names: a name from the data such as `constructor` finds nothing in it. */
const dict = (entries) => Object.assign(Object.create(null), entries);

// ---------------------------------------------------------------- elements

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value == null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat()) {
    if (child != null && child !== false) node.append(child);
  }
  return node;
}

// A list as arguments (`Math.max(...list)`) lies on the stack, which a grid's curves overflow.
const smallest = (list) => list.reduce((m, v) => (v < m ? v : m), Infinity);
const largest = (list) => list.reduce((m, v) => (v > m ? v : m), -Infinity);

const bodyOf = (id) => document.querySelector(`#${id} > .body`);

// ---------------------------------------------------------------- numbers in words

const DASH = '–';
const MINUS = '\u2212';

/** Three significant digits, without exponents. */
function digits(v) {
  const a = Math.abs(v);
  if (a === 0) return '0';
  if (a >= 99.95 || a < 1e-4) return a >= 1e15 || a < 1e-4 ? v.toExponential(1) : String(Math.round(v));
  return v.toFixed(a >= 9.995 ? 1 : a >= 0.995 ? 2 : Math.min(6, 2 - Math.floor(Math.log10(a))));
}

const grouped = (v) => v.toLocaleString('en-GB', { maximumFractionDigits: 3 }).replace(/,/g, '\u202f');
const NBSP = '\u00a0';

const UNITS = dict({
  // The units of the terminal and of claims.
  ns: [[1, 'ns'], [1e3, 'us'], [1e6, 'ms'], [1e9, 's']],
  bytes: [[1, 'B'], [1e3, 'kB'], [1e6, 'MB'], [1e9, 'GB'], [1e12, 'TB']],
  bps: [[1, 'bps'], [1e3, 'kbps'], [1e6, 'Mbps'], [1e9, 'Gbps'], [1e12, 'Tbps']],
  count: [[1, ''], [1e6, 'M'], [1e9, 'G'], [1e12, 'T']],
});

/** Kinds without units of several sizes. */
const SIGNS = ['ratio', 'share', 'pct', 'ppm'];

/** The unit in which a value of this size reads best. */
function unitFor(kind, max) {
  if (kind === 'ppm') return { div: 1e6, unit: '' };
  if (kind === 'pct') return { div: 1, unit: '%' };
  const units = UNITS[kind];
  if (!units) return { div: 1, unit: '' };
  let best = units[0];
  for (const u of units) if (Math.abs(max) >= u[0] * (kind === 'count' && u[0] > 1 ? 0.1 : 0.9995)) best = u;
  return { div: best[0], unit: best[1] };
}

/** A value with its unit; `null` is a dash. */
function show(kind, v) {
  if (v == null || !Number.isFinite(v)) return DASH;
  if (kind === 'jain') return v.toFixed(3);
  if (kind === 'count' && Math.abs(v) < 1e7) return grouped(v);
  if (!UNITS[kind] && !SIGNS.includes(kind)) return Math.abs(v) >= 1000 ? grouped(Math.round(v)) : digits(v);
  const { div, unit } = unitOf(kind, v);
  return digits(v / div) + unit;
}

/** The unit of a value of this size, as `show` writes it. */
function unitOf(kind, v) {
  if (kind === 'ratio') return { div: 1, unit: '×' };
  if (kind === 'share') return { div: 0.01, unit: `${NBSP}%` };
  if (kind === 'count' && Math.abs(v) < 1e7) return { div: 1, unit: '' };
  const { div, unit } = unitFor(kind, v);
  return { div, unit: unit && NBSP + unit };
}

/** The power of ten of a positive number's second significant digit, when it is rounded to that digit. */
function lastPlace(v) {
  const last = Math.floor(Math.log10(v)) - 1;
  return v / 10 ** last >= 99.5 ? last + 1 : last; // 0.0996 is 0.10
}

/** A number rounded to a power of ten. */
function toPowerOfTen(v, power) {
  const decimals = Math.min(20, Math.max(0, -power));
  const rounded = power > 0 ? Math.round(v / 10 ** power) * 10 ** power : v;
  const text = rounded.toLocaleString('en-GB', { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  return text.replace(/,/g, '\u202f').replace(/^-(?=[0.]*$)/, '');
}

/** Most significant digits of a mean beside its interval. */
const MAX_DIGITS = 6;

/**
 * A value and half of its interval, as the terminal rounds them: both to the interval's second significant digit, in one unit.
 * An interval that is too narrow for that has a unit of its own.
 */
function withMargin(kind, value, margin) {
  const { div, unit } = unitOf(kind, Math.max(Math.abs(value), margin));
  const exactly = lastPlace(margin / div);
  const long = value !== 0 && Math.floor(Math.log10(Math.abs(value) / div)) - exactly >= MAX_DIGITS;
  // Whole numbers that no larger unit shortens are in full.
  const whole = Math.abs(value) / div >= 1000 && margin / div >= 1;
  const last = long ? Math.max(0, exactly) : exactly;
  if (long && !whole) {
    const own = unitOf(kind, margin);
    const half = margin / own.div;
    if (own.unit && half < 0.01) return [show(kind, value), ''];
    return [show(kind, value), `±${NBSP}${half < 1e-4 ? half.toExponential(1) : toPowerOfTen(half, lastPlace(half))}${own.unit}`];
  }
  return [toPowerOfTen(value / div, last) + unit, `±${NBSP}${toPowerOfTen(margin / div, last)}${unit}`];
}

/** A value for a tick or an option: `8`, not `8.00`. */
const brief = (kind, v) => show(kind, v).replace(/(\.\d*?)0+(?=\D|$)/, '$1').replace(/\.(?=\D|$)/, '');

/** A column's head: a name and the unit that its values have where none was chosen. */
const inBase = (name, kind) => name + ({ ns: ' (ns)', bytes: ' (bytes)', bps: ' (bps)' }[kind] || '');

/** The exact value, for a tooltip on the short one. */
function exact(kind, v) {
  if (!Number.isFinite(v)) return null;
  const unit = { ns: ' ns', bytes: ' bytes', bps: ' bps' }[kind] || '';
  return grouped(v) + unit;
}

/** What a name such as `cwnd_bytes` says about its values. */
function kindOfName(name) {
  const last = name.split('_').pop();
  return ['bytes', 'ppm', 'ns', 'bps'].includes(last) ? last : 'number';
}

/** `cwnd_bytes` as a title: `cwnd`. */
const wordsOfName = (name) =>
  (kindOfName(name) === 'number' ? name : name.split('_').slice(0, -1).join('_')).replace(/_/g, ' ');

const plural = (n, one, many) => `${grouped(n)}${NBSP}${n === 1 ? one : many || one + 's'}`;

// ---------------------------------------------------------------- theme

const root = document.documentElement;
const systemDark = window.matchMedia('(prefers-color-scheme: dark)');
let themeChoice = 'auto';
try {
  const kept = localStorage.getItem('narrows-theme');
  if (['auto', 'light', 'dark'].includes(kept)) themeChoice = kept;
} catch { /* a browser may forbid storage to local files */ }

const theme = {};
let themed = []; // what to paint again when the colours change: {node, paint}
function repaint() {
  themed = themed.filter(({ node }) => node.isConnected);
  for (const { paint } of themed) paint();
}

function readTheme(forced) {
  const dark = forced ? forced === 'dark' : themeChoice === 'dark' || (themeChoice === 'auto' && systemDark.matches);
  root.dataset.theme = dark ? 'dark' : 'light';
  const css = getComputedStyle(root);
  const get = (name) => css.getPropertyValue(name).trim();
  theme.dark = dark;
  theme.ink2 = get('--ink-2');
  theme.ink = get('--ink');
  theme.grid = get('--grid');
  theme.card = get('--card');
  theme.bad = get('--bad');
  theme.line = get('--line');
  theme.sunk = get('--sunk');
  theme.series = Array.from({ length: 8 }, (_, i) => get(`--s${i}`));
}
readTheme();

function applyTheme(forced) {
  readTheme(forced);
  repaint();
  for (const p of plots) p.u.redraw(false, true);
  for (const c of charts) c.redraw();
}
systemDark.addEventListener('change', () => applyTheme());

// ---------------------------------------------------------------- colours

// A scheme keeps its colour on the whole page: its place among the schemes (or the run's among the runs), a dash
// pattern telling apart what shares a colour.
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [14, 5]];
const pointOf = (run) => new Map(run.point || []);
const schemeOf = (run) => (schemeKey ? pointOf(run).get(schemeKey) : undefined);
const schemes = [...new Set(runs.map(schemeOf).filter((s) => s !== undefined).map(String))];

runs.forEach((run, i) => {
  run.index = i;
  run.label = run.label || run.id || `run ${i + 1}`;
  const scheme = schemeOf(run);
  run.slot = scheme === undefined ? i : schemes.indexOf(String(scheme));
  run.twin = scheme === undefined ? 0 : runs.slice(0, i).filter((r) => String(schemeOf(r)) === String(scheme)).length;
});

const slotColour = (slot) => theme.series[slot % 8];
const runColour = (run) => slotColour(run.slot);
const slotDash = (slot, twin) => DASHES[(Math.floor(slot / 8) + (twin || 0)) % DASHES.length];

/** Flows of one class share a hue (blue and orange differ for every kind of colour vision), flows differ in lightness. */
const HUES = dict({ intra: [212, 78], inter: [24, 90] });
const OTHER_HUES = [[165, 70], [312, 45], [48, 85], [0, 0]];
function familyColour(cls, position, count, others) {
  const [hue, sat] = HUES[cls] || OTHER_HUES[Math.max(0, others.indexOf(cls)) % OTHER_HUES.length];
  const t = count > 1 ? position / (count - 1) : 0.4;
  const light = theme.dark ? 50 + 28 * t : 30 + 28 * t;
  return `hsl(${hue} ${sat}% ${light.toFixed(1)}%)`;
}

const CLASS_WORDS = dict({ all: 'All flows', intra: 'Intra-DC', inter: 'Inter-DC' });
const classWord = (cls) => CLASS_WORDS[cls] || cls || 'flows';

function swatch(colour, dash, wide) {
  const node = el('span', { class: wide ? 'swatch wide' : 'swatch', 'aria-hidden': 'true' });
  const paint = () => {
    if (wide || !dash || !dash.length) { node.style.background = colour(); return; }
    let at = 0;
    const stops = dash.map((length, i) => {
      const stop = `${i % 2 ? 'transparent' : colour()} ${at}px ${at + length}px`;
      at += length;
      return stop;
    });
    node.style.background = `repeating-linear-gradient(90deg, ${stops.join(', ')})`;
  };
  paint();
  themed.push({ node, paint });
  return node;
}

// ---------------------------------------------------------------- drawing queue

// Plots are drawn one after another between frames, so that a report of forty runs opens at once.
const queue = [];
let draining = false;
/** Draws in `place` when its turn comes, unless a control was used before and `place` is gone. */
function later(place, task) {
  queue.push(() => { if (place.isConnected) attempt(place, task); });
  wake();
}
function wake() {
  if (!draining) { draining = true; setTimeout(drain, 0); }
}
function drain() {
  const end = performance.now() + 24;
  while (queue.length && performance.now() < end) queue.shift()();
  if (queue.length) setTimeout(drain, 0);
  else { draining = false; hook.ready = true; }
}

/** Draws a part of the page; one that fails says so where it would be, and the others are drawn. */
function attempt(place, draw) {
  try { draw(); } catch (error) {
    console.error(error);
    place.append(el('p', { class: 'failed', role: 'alert', 'data-testid': 'failed' },
      `This could not be drawn: ${error}. The rest of the page and the results on disk are not affected.`));
  }
}
