// Draws the report's sections from the data embedded in the page. No framework, no build step, no network.
// Everything that comes from the data is set as text (`el` makes text nodes), never as markup.
(() => {
  'use strict';

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
  const least = (list) => list.reduce((m, v) => (v < m ? v : m), Infinity);
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
    ns: [[1, 'ns'], [1e3, 'µs'], [1e6, 'ms'], [1e9, 's']],
    bytes: [[1, 'B'], [1024, 'KiB'], [1024 ** 2, 'MiB'], [1024 ** 3, 'GiB'], [1024 ** 4, 'TiB']],
    bps: [[1, 'b/s'], [1e3, 'kb/s'], [1e6, 'Mb/s'], [1e9, 'Gb/s'], [1e12, 'Tb/s']],
    count: [[1, ''], [1e6, 'M'], [1e9, 'G'], [1e12, 'T']],
  });

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
    if (kind === 'ratio') return digits(v) + '×';
    if (kind === 'share') return digits(v * 100) + NBSP + '%';
    if (kind === 'pct') return digits(v) + NBSP + '%';
    if (kind === 'ppm') return digits(v / 1e6);
    if (kind === 'count' && Math.abs(v) < 1e7) return grouped(v);
    if (!UNITS[kind]) return Math.abs(v) >= 1000 ? grouped(Math.round(v)) : digits(v);
    const { div, unit } = unitFor(kind, v);
    return digits(v / div) + (unit ? NBSP + unit : '');
  }

  /** A value for a tick or an option: `8`, not `8.00`. */
  const brief = (kind, v) => show(kind, v).replace(/(\.\d*?)0+(?=\D|$)/, '$1').replace(/\.(?=\D|$)/, '');

  /** The exact value, for a tooltip on the short one. */
  function exact(kind, v) {
    if (!Number.isFinite(v)) return null;
    const unit = { ns: ' ns', bytes: ' bytes', bps: ' b/s' }[kind] || '';
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
    theme.series = Array.from({ length: 8 }, (_, i) => get(`--s${i}`));
  }
  readTheme();

  function applyTheme(forced) {
    readTheme(forced);
    repaint();
    for (const p of plots) p.u.redraw(false, true);
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
        `This could not be drawn: ${error}. The rest of the page is not affected; the results on disk are whole.`));
    }
  }

  // ---------------------------------------------------------------- plots

  const plots = [];
  const hook = {
    ready: false,
    /** What is drawn now; `series` and `points` count what is visible, `range` is that of the x axis. */
    get plots() {
      return plots.map(({ section, title, u }) => {
        const visible = u.series.map((s, i) => (i > 0 && s.show ? i : 0)).filter(Boolean);
        const points = visible.reduce((sum, i) => sum + u.data[i].reduce((n, v) => n + (v == null ? 0 : 1), 0), 0);
        return { section, title, series: visible.length, total: u.series.length - 1, points, range: [u.scales.x.min, u.scales.x.max] };
      });
    },
  };
  window.narrowsReport = hook;

  function clearPlots(section) {
    for (let i = plots.length - 1; i >= 0; i--) {
      if (plots[i].section !== section) continue;
      plots[i].observer.disconnect();
      plots[i].u.destroy();
      plots.splice(i, 1);
    }
  }

  const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif';

  function decimals(step) {
    for (let d = 0; d < 10; d++) if (Math.abs(step * 10 ** d - Math.round(step * 10 ** d)) < 1e-6) return d;
    return 10;
  }
  const tidy = (v, step) => (Math.abs(v) < step / 1e6 ? 0 : v).toFixed(decimals(step)).replace('-', MINUS);

  function niceStep(span, count) {
    const raw = span / Math.max(1, count);
    const mag = 10 ** Math.floor(Math.log10(raw));
    const m = raw / mag;
    return (m <= 1 ? 1 : m <= 2 ? 2 : m <= 2.5 ? 2.5 : m <= 5 ? 5 : 10) * mag;
  }

  function linearSplits(lo, hi, count) {
    const step = niceStep(hi - lo, count);
    const out = [];
    for (let k = Math.ceil(lo / step - 1e-9); k * step <= hi + step * 1e-9; k++) out.push(+(k * step).toPrecision(12));
    return out;
  }

  /** Ticks of a logarithmic axis: as many of 1, 2, 5 as have room, even steps where less than a decade is seen. */
  function logSplits(lo, hi, room) {
    const spread = Math.log(hi / lo);
    for (const set of [[1, 2, 3, 4, 5, 6, 8], [1, 2, 5], [1, 3], [1]]) {
      const out = [];
      for (let e = Math.floor(Math.log10(lo)); e <= Math.ceil(Math.log10(hi)); e++) {
        for (const m of set) {
          const v = +(m * 10 ** e).toPrecision(6);
          if (v >= lo * 0.9999 && v <= hi * 1.0001) out.push(v);
        }
      }
      let gap = Infinity;
      for (let i = 1; i < out.length; i++) gap = Math.min(gap, Math.log(out[i] / out[i - 1]) / spread);
      if (gap * room >= 1) return out.length > 1 ? out : linearSplits(lo, hi, Math.max(2, Math.floor(room)));
    }
    const out = [];
    const every = Math.max(1, Math.ceil(Math.log10(hi / lo) / Math.max(1, room)));
    for (let e = Math.ceil(Math.log10(lo) - 1e-9); 10 ** e <= hi * 1.0001; e += every) out.push(+(10 ** e).toPrecision(6));
    return out;
  }

  /** The same for bytes: powers of two. */
  function binarySplits(lo, hi, room) {
    const first = Math.ceil(Math.log2(lo) - 1e-9);
    const last = Math.floor(Math.log2(hi) + 1e-9);
    const every = [1, 2, 5, 10].find((n) => Math.log2(hi / lo) / n <= room) || 10;
    const out = [];
    for (let e = Math.ceil(first / every) * every; e <= last; e += every) out.push(2 ** e);
    return out.length > 1 ? out : linearSplits(lo, hi, 2);
  }

  function padLog(lo, hi) {
    if (!(lo > 0)) lo = hi > 0 ? hi / 1000 : 0.1;
    if (!(hi > 0)) hi = 1;
    const pad = Math.max(1.04, (hi / lo) ** 0.03);
    if (hi / lo < 1.2) { const mid = Math.sqrt(hi * lo); return [mid / 1.15, mid * 1.15]; }
    return [lo / pad, hi * pad];
  }

  /**
   * One plot in `host`.
   * o = { section, title, height, data, series: [{label, colour, dash, width, show, points}], stepped, sync,
   *       x: {label, log, range, format, splits, hide}, y: {label, log, range, format, splits}, mark }
   */
  function draw(host, o) {
    const axis = (spec, side) => ({
      side, scale: side === 2 ? 'x' : 'y', font: FONT, labelFont: FONT,
      stroke: () => theme.ink2,
      grid: { stroke: () => theme.grid, width: 1 },
      ticks: { stroke: () => theme.grid, width: 1, size: 4 },
      label: spec.hide ? undefined : spec.label, labelSize: side === 2 ? 18 : 17, labelGap: side === 2 ? 2 : 0, gap: 4,
      size: side === 2 ? (spec.hide ? 8 : 24) : spec.log ? 64 : 54,
      splits: (u, _axis, lo, hi) => {
        if (spec.splits) return spec.splits(lo, hi);
        const px = side === 2 ? u.bbox.width : u.bbox.height;
        const room = px / (window.devicePixelRatio || 1) / (side === 2 ? 66 : 26);
        return spec.log ? (spec.bytes ? binarySplits : logSplits)(lo, hi, room) : linearSplits(lo, hi, Math.max(2, Math.floor(room)));
      },
      filter: (_u, splits) => splits,
      values: (_u, splits) => {
        if (spec.hide) return splits.map(() => '');
        const step = splits.length > 1 ? splits[1] - splits[0] : 1;
        return splits.map((v) => (v == null ? '' : spec.tick ? spec.tick(v, step) : tidy(v, step)));
      },
    });

    const ends = o.data[0].length ? [o.data[0][0], o.data[0][o.data[0].length - 1]] : [0, 1];
    const full = (o.x.range) || (o.x.log ? padLog(ends[0], ends[1]) : ends[0] === ends[1] ? [ends[0] - 1, ends[1] + 1] : ends);
    const scaleX = {
      time: false, distr: o.x.log ? 3 : 1,
      // Zooming asks for a part; everything else shows the full range.
      range: (_u, lo, hi) => (lo == null || (lo <= ends[0] && hi >= ends[1]) || ends[0] === ends[1] ? full : [lo, hi]),
    };
    const scaleY = {
      distr: o.y.log ? 3 : 1,
      range: (_u, lo, hi) => {
        if (o.y.range) return o.y.range;
        if (o.y.log) return padLog(lo, hi);
        if (hi == null) return [0, 1];
        const top = hi > 0 ? hi * 1.06 : 1;
        return [Math.min(0, lo * 1.06), top === Math.min(0, lo) ? 1 : top];
      },
    };

    const tip = el('div', { class: 'tip', 'data-testid': 'tip' });
    let inside = false;

    function fillTip(u) {
      const { left, top, idx } = u.cursor;
      if (!inside || idx == null || left < 0) { tip.style.display = 'none'; return; }
      let rows = [];
      for (let i = 1; i < u.series.length; i++) {
        const v = u.data[i][idx];
        if (u.series[i].show && v != null) rows.push({ i, v, far: Math.abs(u.valToPos(v, 'y') - top) });
      }
      const hidden = Math.max(0, rows.length - 9);
      if (hidden) rows = rows.sort((a, b) => a.far - b.far).slice(0, 9);
      rows.sort((a, b) => b.v - a.v);
      if (!rows.length) { tip.style.display = 'none'; return; }
      tip.replaceChildren(el('b', {}, o.x.read(u.data[0][idx])), ...rows.map(({ i, v }) => {
        const s = o.series[i - 1];
        const line = el('span', { class: 'swatch' });
        line.style.background = s.colour();
        return el('div', {}, line, el('span', {}, s.label), el('span', {}, o.y.read(v)));
      }), hidden ? el('div', { class: 'dim' }, `and ${hidden} more`) : '');
      tip.style.display = 'block';
      const x = left + u.over.offsetLeft;
      const flip = x + tip.offsetWidth + 20 > host.clientWidth && x - tip.offsetWidth - 14 > 0;
      tip.style.left = `${Math.max(0, flip ? x - tip.offsetWidth - 14 : x + 14)}px`;
      tip.style.top = `${Math.max(0, Math.min(top + u.over.offsetTop - 10, host.clientHeight - tip.offsetHeight))}px`;
    }

    const options = {
      width: Math.max(120, host.clientWidth), height: o.height,
      padding: [8, 10, o.x.hide ? 0 : 2, 0],
      legend: { show: false },
      scales: { x: scaleX, y: scaleY },
      axes: [axis(o.x, 2), axis(o.y, 3)],
      cursor: {
        y: false, points: { size: 6 }, drag: { x: true, y: false, setScale: true },
        sync: o.sync ? { key: o.sync, scales: ['x', null], setSeries: false } : undefined,
      },
      series: [{}, ...o.series.map((s) => ({
        label: s.label, show: s.show !== false, stroke: () => s.colour(), dash: s.dash && s.dash.length ? s.dash : undefined,
        width: s.width || 1.8, alpha: s.alpha || 1, spanGaps: !!s.spanGaps,
        paths: o.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
        points: s.points ? { show: true, size: 7, fill: () => s.colour(), stroke: () => theme.card, width: 1 } : { show: false },
      }))],
      hooks: {
        setCursor: [fillTip],
        draw: o.mark != null ? [(u) => drawMark(u, o.mark, o.markLabel)] : [],
      },
    };
    const u = new uPlot(options, o.data, host);
    host.append(tip);
    u.over.addEventListener('mouseenter', () => { inside = true; });
    u.over.addEventListener('mouseleave', () => { inside = false; tip.style.display = 'none'; });

    host.tabIndex = 0;
    host.setAttribute('role', 'img');
    const what = `${o.title}: ${o.y.label} against ${o.x.label}, ${plural(o.series.length, 'line')}.`;
    host.setAttribute('aria-label', `${what} Left and right arrow keys read values.`);
    host.addEventListener('keydown', (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 }[event.key];
      if (event.key === 'Escape') { inside = false; u.setCursor({ left: -10, top: -10 }); tip.style.display = 'none'; }
      if (!move) return;
      event.preventDefault();
      inside = true;
      const from = u.cursor.idx ?? 0;
      const to = Math.max(0, Math.min(u.data[0].length - 1, from + move));
      u.setCursor({ left: u.valToPos(u.data[0][to], 'x'), top: u.over.clientHeight / 3 });
    });
    host.addEventListener('blur', () => { inside = false; tip.style.display = 'none'; });

    const fit = () => {
      const width = Math.max(120, host.clientWidth);
      if (width !== u.width) u.setSize({ width, height: o.height });
    };
    const observer = new ResizeObserver(fit);
    observer.observe(host);
    plots.push({ section: o.section, title: o.title, u, observer, fit });
    return u;
  }

  /** A dashed line at a time, for instance where rates became fair. */
  function drawMark(u, at, label) {
    const x = Math.round(u.valToPos(at, 'x', true));
    const { left, top, width, height } = u.bbox;
    if (x < left || x > left + width) return;
    const ratio = window.devicePixelRatio || 1;
    const ctx = u.ctx;
    ctx.save();
    ctx.strokeStyle = theme.ink;
    ctx.lineWidth = ratio;
    ctx.setLineDash([4 * ratio, 3 * ratio]);
    ctx.beginPath();
    ctx.moveTo(x + 0.5, top);
    ctx.lineTo(x + 0.5, top + height);
    ctx.stroke();
    if (label) {
      ctx.font = `${11 * ratio}px system-ui, "Liberation Sans", Arial, sans-serif`;
      ctx.fillStyle = theme.ink;
      const right = x + 6 * ratio + ctx.measureText(label).width < left + width;
      ctx.textAlign = right ? 'left' : 'right';
      ctx.textBaseline = 'bottom';
      ctx.fillText(label, x + (right ? 5 : -5) * ratio, top + height - 4 * ratio);
    }
    ctx.restore();
  }

  const plotBox = (height) => {
    const box = el('div', { class: 'plot' });
    box.style.height = `${height}px`;
    return box;
  };

  function panels(count) {
    const node = el('div', { class: 'panels' });
    const cols = count <= 3 ? count : count === 4 ? 2 : 3;
    node.setAttribute('style', `--cols: ${cols}`);
    return node;
  }

  // ---------------------------------------------------------------- controls

  /** Buttons of which one is pressed. options = [[value, label]] */
  function choice(name, options, value, onchange, testid) {
    const group = el('div', { class: 'group', role: 'group', 'aria-label': name, 'data-testid': testid });
    for (const [key, label] of options) {
      group.append(el('button', {
        type: 'button', 'aria-pressed': String(key === value), 'data-value': key,
        onclick: (event) => {
          for (const b of group.children) b.setAttribute('aria-pressed', String(b === event.currentTarget));
          onchange(key);
        },
      }, label));
    }
    return group;
  }

  function select(label, options, value, onchange, testid) {
    const node = el('select', { 'data-testid': testid, onchange: () => onchange(node.value) },
      options.map(([key, text]) => el('option', { value: key, selected: key === value }, text)));
    return el('label', { class: 'field' }, label, node);
  }

  /** A legend whose items hide and show. items = [{key, label, colour, dash, wide}]; `hidden` is a Set of keys. */
  function legend(items, hidden, onchange, head) {
    const box = el('div', { class: 'legend', 'data-testid': 'legend', role: 'group', 'aria-label': head || 'Series shown' });
    if (head) box.append(el('span', { class: 'head' }, head));
    for (const item of items) {
      const button = el('button', {
        type: 'button', title: 'Show or hide', 'aria-pressed': String(!hidden.has(item.key)),
        onclick: () => {
          if (hidden.has(item.key)) hidden.delete(item.key); else hidden.add(item.key);
          button.setAttribute('aria-pressed', String(!hidden.has(item.key)));
          onchange();
        },
      }, swatch(item.colour, item.dash, item.wide), item.label);
      box.append(button);
    }
    return box;
  }

  function copyButton(text, what) {
    const button = el('button', {
      type: 'button', class: 'plain', 'data-testid': 'copy',
      onclick: async () => {
        let done = false;
        try { await navigator.clipboard.writeText(text); done = true; } catch {
          const area = el('textarea', { class: 'visually-hidden' });
          area.value = text;
          document.body.append(area);
          area.select();
          done = document.execCommand('copy');
          area.remove();
        }
        button.textContent = done ? 'Copied' : 'Select the text and copy it';
        setTimeout(() => { button.textContent = `Copy ${what}`; }, 1600);
      },
    }, `Copy ${what}`);
    return button;
  }

  // ---------------------------------------------------------------- which part of a grid is shown

  const showValue = (v) => (typeof v === 'string' ? v : v === undefined ? DASH : JSON.stringify(v));
  const valuesOf = (key) => [...new Map(runs.map((r) => pointOf(r).get(key)).filter((v) => v !== undefined)
    .map((v) => [showValue(v), v])).values()];

  // A grid of many runs opens on one of its points; the small multiples would not end otherwise.
  const slice = new Map(axes.map((key) => [key, runs.length > 6 ? showValue(valuesOf(key)[0]) : '']));
  const inSlice = (run, except) => axes.every((key) => {
    const want = slice.get(key);
    return key === except || !want || showValue(pointOf(run).get(key)) === want;
  });
  const shownRuns = (has) => runs.filter((run) => inSlice(run) && (!has || has(run)));

  const redraws = []; // one for each section that depends on the slice
  function section(id, render) {
    const body = bodyOf(id);
    if (!body) return;
    const go = () => {
      // A control that redraws its section keeps the keyboard's focus.
      const active = body.contains(document.activeElement) ? document.activeElement : null;
      const held = active && active.closest('[data-testid]');
      const value = active && active.dataset.value;
      clearPlots(id);
      body.replaceChildren();
      attempt(body, () => render(body, id));
      const again = held && body.querySelector(`[data-testid="${CSS.escape(held.dataset.testid)}"]`);
      const next = again && (value === undefined ? again : again.querySelector(`[data-value="${CSS.escape(value)}"]`));
      if (next) next.focus({ preventScroll: true });
    };
    go();
    redraws.push({ id, go });
  }

  /** Where runs may be compared: at the same coordinates, with the same traffic. */
  const placeOf = (run) => [...axes.map((key) => showValue(pointOf(run).get(key))), seedOf(run)].join('\n');
  /** What a run is called where its coordinates stand beside it: its scheme, if a grid tells schemes apart. */
  const nameOf = (run) => (axes.length && schemeOf(run) !== undefined ? showValue(schemeOf(run)) : run.label);
  const seedOf = (run) => run.summary?.seed ?? null;
  const seeds = new Set(runs.map(seedOf));
  const seedWords = (run) => (seeds.size > 1 && seedOf(run) !== null ? [`seed ${seedOf(run)}`] : []);
  const coordinatesOf = (run, keys) => keys.filter((key) => pointOf(run).has(key)).map((key) => `${key} ${showValue(pointOf(run).get(key))}`);
  /** What a run is called in a legend or over a panel: with the coordinates that the controls leave open. */
  const titleOf = (run) => {
    const open = axes.length && schemeOf(run) !== undefined ? coordinatesOf(run, axes.filter((key) => !slice.get(key))) : [];
    return [nameOf(run), ...open, ...seedWords(run)].join(', ');
  };
  /** What tells a run from all others. */
  const fullNameOf = (run) => [nameOf(run), ...(schemeOf(run) === undefined ? [] : coordinatesOf(run, axes)), ...seedWords(run)].join(', ');

  // ---------------------------------------------------------------- tables

  /**
   * A table that sorts by its column heads.
   * columns = [{key, label, group, kind, get(row), cell(row), best: 'low'|'high', first, name}]
   */
  function table(columns, rows, options) {
    const o = options || {};
    const thead = el('thead');
    const groups = columns.some((c) => c.group);
    if (groups) {
      const line = el('tr', { class: 'groups' });
      for (let i = 0; i < columns.length;) {
        let j = i + 1;
        while (columns[i].group && j < columns.length && columns[j].group === columns[i].group) j++;
        const text = columns[i].group || '';
        line.append(el('th', { colspan: j - i, scope: text ? 'colgroup' : null, class: [text ? 'span' : '', columns[i].first ? 'first' : ''].join(' ').trim() },
          text ? el('span', {}, text) : null));
        i = j;
      }
      thead.append(line);
    }
    const heads = el('tr');
    thead.append(heads);
    const tbody = el('tbody');
    let sortKey = o.sort ? o.sort.key : null;
    let descending = o.sort ? o.sort.descending : false;
    let limit = o.limit || Infinity;

    for (const c of columns) {
      c.th = el('th', { scope: 'col', class: [c.kind && !c.name ? 'n' : '', c.first ? 'first' : ''].join(' ').trim() },
        el('button', {
          type: 'button', title: c.title || null, 'data-key': c.key,
          onclick: () => {
            if (sortKey === c.key) descending = !descending;
            else { sortKey = c.key; descending = !!c.kind && c.best !== 'low'; }
            fill();
          },
        }, c.label));
      heads.append(c.th);
    }
    for (const c of columns) {
      if (!c.best) continue;
      // Best among the rows that may be compared: those of one point of a grid.
      const peers = new Map();
      for (const row of rows) {
        const v = c.get(row);
        if (v == null || !Number.isFinite(v) || (c.unfit && c.unfit(row))) continue;
        const key = o.peers ? o.peers(row) : '';
        if (!peers.has(key)) peers.set(key, []);
        peers.get(key).push(v);
      }
      c.bests = new Map([...peers].filter(([, v]) => least(v) !== largest(v))
        .map(([key, v]) => [key, c.best === 'low' ? least(v) : largest(v)]));
    }

    const node = el('table', { 'data-testid': o.testid }, o.caption ? el('caption', { class: 'visually-hidden' }, o.caption) : null, thead, tbody);
    const more = el('p', { class: 'lead' });
    let filter = () => true;

    function fill() {
      for (const c of columns) {
        if (c.key === sortKey) c.th.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
        else c.th.removeAttribute('aria-sort');
      }
      let shown = rows.filter(filter);
      const column = columns.find((c) => c.key === sortKey);
      if (column) {
        const sign = descending ? -1 : 1;
        shown = shown.map((row, i) => [column.get(row), i, row]).sort((a, b) => {
          const [x, y] = [a[0], b[0]];
          const gone = (x == null) - (y == null); // what has no value stays last
          if (gone || x == null) return gone || a[1] - b[1];
          const by = typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y), 'en', { numeric: true });
          return sign * by || a[1] - b[1];
        }).map((t) => t[2]);
      }
      const total = shown.length;
      tbody.replaceChildren();
      for (const row of shown.slice(0, limit)) tbody.append(el('tr', {}, columns.map((c) => {
        const value = c.get(row);
        const best = !!c.bests && value != null && value === c.bests.get(o.peers ? o.peers(row) : '') && !(c.unfit && c.unfit(row));
        const extra = c.flag ? c.flag(row) : '';
        const classes = [c.kind && !c.name ? 'n' : '', c.first ? 'first' : '', best ? 'best' : '', c.name ? 'name' : '', extra].filter(Boolean).join(' ');
        return el(c.name ? 'th' : 'td', { class: classes || null, scope: c.name ? 'row' : null, title: c.kind && !c.name ? [exact(c.kind, value), best ? '(best)' : ''].filter(Boolean).join(' ') || null : null },
          c.cell ? c.cell(row) : c.kind ? show(c.kind, value) : value ?? DASH);
      })));
      if (o.rowsWord) {
        more.replaceChildren(total > limit ? `${plural(total, o.rowsWord)}, the first ${limit} shown. ` : plural(total, o.rowsWord),
          total > limit ? el('button', { type: 'button', class: 'plain', onclick: () => { limit = Infinity; fill(); } }, 'Show all') : '');
      }
    }
    fill();
    return { node, more, refilter: (f) => { filter = f; fill(); } };
  }

  // ---------------------------------------------------------------- metrics

  const cellOf = (run, cls) => {
    const s = run.summary || {};
    const flows = s.flows || {};
    const c = cls === 'requests' || cls === 'collectives' ? s[cls] : cls in CLASS_WORDS ? flows[cls] : (flows.sizes || {})[cls];
    return c && (c.count > 0 || c.completed > 0) ? c : null;
  };
  const unfinished = (run, cls) => {
    const c = cellOf(run, cls);
    return !!c && c.count != null && c.completed != null && c.completed < c.count;
  };

  const sizeNames = [...new Set(runs.flatMap((run) => Object.keys(((run.summary || {}).flows || {}).sizes || {})))];
  const METRICS = [];
  function timeMetrics(stat, word, group, classes, first) {
    classes.forEach((cls, i) => METRICS.push({
      key: `fct_${stat}_${cls}`, group, label: cls, kind: 'ns', best: 'low', first: first && i === 0,
      long: `FCT ${word}, ${(CLASS_WORDS[cls] || cls).replace('All', 'all')}`, cls,
      get: (run) => cellOf(run, cls)?.fct_ns?.[stat] ?? null, unfit: (run) => unfinished(run, cls),
    }));
  }
  function slowMetrics(stat, word, group, classes) {
    classes.forEach((cls, i) => METRICS.push({
      key: `slowdown_${stat}_${cls}`, group, label: cls, kind: 'ratio', best: 'low', first: i === 0,
      long: `Slowdown ${word}, ${(CLASS_WORDS[cls] || cls).replace('All', 'all')}`, cls,
      get: (run) => cellOf(run, cls)?.slowdown?.[stat] ?? null, unfit: (run) => unfinished(run, cls),
    }));
  }
  const THREE = ['all', 'intra', 'inter'];
  timeMetrics('mean', 'mean', 'FCT mean', THREE, true);
  timeMetrics('p99', '99th percentile', 'FCT p99', THREE, true);
  slowMetrics('p99', '99th percentile', 'Slowdown p99', THREE);
  const fair = (key) => (run) => run.summary?.fairness?.[key] ?? null;
  const net = (key) => (run) => run.summary?.network?.[key] ?? null;
  METRICS.push(
    { key: 'jain_final', group: 'Fairness', label: 'Jain', kind: 'jain', best: 'high', first: true, long: 'Jain’s index at the end', get: fair('jain_final') },
    { key: 'converged', group: 'Fairness', label: 'fair from', kind: 'ns', best: 'low', long: 'Time to become fair', get: fair('converged_at_ns'),
      cell: (run) => (fair('converged_at_ns')(run) == null && fair('jain_final')(run) != null ? 'never' : show('ns', fair('converged_at_ns')(run))) },
    { key: 'drops', group: 'Network', label: 'drops', kind: 'count', best: 'low', first: true, long: 'Packets lost', get: net('drops') },
    { key: 'data_drops', group: 'Network', label: 'of data', kind: 'count', best: 'low', long: 'Data packets lost', get: (run) => run.summary?.network?.drops_by_kind?.data ?? null },
    { key: 'retransmits', group: 'Network', label: 'resent', kind: 'count', best: 'low', long: 'Packets retransmitted', get: net('retransmits') },
    { key: 'timeouts', group: 'Network', label: 'timeouts', kind: 'count', best: 'low', long: 'Retransmission timeouts', get: net('timeouts') },
    { key: 'marks', group: 'Network', label: 'marks', kind: 'count', long: 'Packets marked by ECN', get: net('ecn_marks') },
    { key: 'max_queue', group: 'Network', label: 'max queue', kind: 'bytes', best: 'low', long: 'Longest queue', get: net('max_queue_bytes') },
  );
  // What few runs have gets a column only where some run has it.
  if (runs.some((run) => cellOf(run, 'requests'))) {
    for (const [stat, word] of [['mean', 'mean'], ['p99', '99th percentile']]) {
      METRICS.push({ key: `fct_${stat}_requests`, group: 'Requests', label: stat, kind: 'ns', best: 'low', first: stat === 'mean', long: `Request completion time ${word}`, cls: 'requests',
        get: (run) => cellOf(run, 'requests')?.fct_ns?.[stat] ?? null, unfit: (run) => unfinished(run, 'requests') });
    }
  }
  if (runs.some((run) => cellOf(run, 'collectives'))) {
    const collective = (metric) => ({ group: 'Collective', best: 'low', cls: 'collectives', unfit: (run) => unfinished(run, 'collectives'), ...metric });
    // Of a training run this is the result: it stands first.
    const first = [
      collective({ key: 'fct_mean_collectives', label: 'mean', kind: 'ns', first: true, long: 'Collective time mean', get: (run) => cellOf(run, 'collectives')?.fct_ns?.mean ?? null }),
      collective({ key: 'fct_p99_collectives', label: 'p99', kind: 'ns', long: 'Collective time 99th percentile', get: (run) => cellOf(run, 'collectives')?.fct_ns?.p99 ?? null }),
      collective({ key: 'slowdown_mean_collectives', label: 'over ideal', kind: 'ratio', long: 'Collective time over the ideal one, mean', get: (run) => cellOf(run, 'collectives')?.slowdown?.mean ?? null }),
    ];
    const jobsOf = (run) => run.summary?.jobs || {};
    const cellOfJob = (run, job) => (Object.hasOwn(jobsOf(run), job) ? jobsOf(run)[job] : null);
    const several = runs.map((run) => Object.keys(jobsOf(run))).filter((names) => names.length > 1);
    for (const job of new Set(several.flat())) {
      first.push(collective({ key: `job_fct_mean_${job}`, label: `${job} mean`, kind: 'ns', long: `Collective time mean, job ${job}`, get: (run) => cellOfJob(run, job)?.fct_ns?.mean ?? null,
        unfit: (run) => { const c = cellOfJob(run, job); return !!c && c.completed < c.count; } }));
    }
    METRICS.unshift(...first);
  }
  if (runs.some((run) => net('parity_packets')(run) > 0)) {
    METRICS.push(
      { key: 'parity', group: 'Coding', label: 'parity', kind: 'count', first: true, long: 'Parity packets sent', get: net('parity_packets') },
      { key: 'recovered', group: 'Coding', label: 'recovered', kind: 'count', long: 'Blocks complete by their parity', get: net('recovered_blocks') },
      { key: 'nacks', group: 'Coding', label: 'asked', kind: 'count', long: 'Requests for what a block lacks', get: net('nacks') },
    );
  }
  const credits = (key) => (run) => run.summary?.credits?.[key] ?? null;
  if (runs.some((run) => credits('sent')(run) > 0)) {
    METRICS.push(
      { key: 'credits_used', group: 'Credits', label: 'used', kind: 'count', first: true, long: 'Credits that let a packet go', get: credits('used') },
      { key: 'credits_wasted', group: 'Credits', label: 'wasted', kind: 'count', long: 'Credits that came with nothing to send', get: credits('wasted') },
      { key: 'credits_dropped', group: 'Credits', label: 'dropped', kind: 'count', long: 'Credits that found no room', get: credits('dropped') },
    );
  }
  if (runs.some((run) => net('pfc_pauses')(run) > 0)) {
    METRICS.push(
      { key: 'pfc_pauses', group: 'Pauses', label: 'count', kind: 'count', best: 'low', first: true, long: 'Pauses by flow control', get: net('pfc_pauses') },
      { key: 'pfc_pause', group: 'Pauses', label: 'together', kind: 'ns', best: 'low', long: 'Pauses together', get: net('pfc_pause_ns') },
      { key: 'host_pause', group: 'Pauses', label: 'a host', kind: 'ns', best: 'low', long: 'Pause of a host, on average', get: net('host_pause_ns') },
    );
  }
  if (runs.some((run) => net('max_buffer_bytes')(run) > 0)) {
    METRICS.push({ key: 'max_buffer', group: 'Buffers', label: 'fullest', kind: 'bytes', best: 'low', first: true, long: 'Most held by a shared buffer', get: net('max_buffer_bytes') });
  }
  const TABLE_METRICS = METRICS.slice();
  // Only the grid plot offers these.
  slowMetrics('mean', 'mean', '', THREE);
  timeMetrics('p50', 'median', '', THREE);
  for (const name of sizeNames) {
    timeMetrics('mean', 'mean', '', [name]);
    timeMetrics('p99', '99th percentile', '', [name]);
    slowMetrics('p99', '99th percentile', '', [name]);
  }
  const hasValue = (metric) => runs.some((run) => Number.isFinite(metric.get(run)));

  const warningsOf = (run) => run.warnings || [];

  // ---------------------------------------------------------------- header, bar, footer

  function drawHeader() {
    const header = document.getElementById('top');
    const facts = [];
    const fact = (name, value) => facts.push(el('li', {}, name ? `${name} ` : '', el('b', {}, value)));
    if (runs.length) fact('', plural(runs.length, 'run'));
    if (report.scale) fact('scale', report.scale);
    const hosts = [...new Set(runs.map((r) => r.summary?.host).filter(Boolean))];
    if (hosts.length) fact('run by', hosts.map((h) => ({ simulator: 'the simulator', emulator: 'the emulator, with real packets' }[h] || h)).join(' and '));
    const seeds = [...new Set(runs.map((r) => r.summary?.seed).filter((s) => s != null))];
    if (seeds.length) fact(seeds.length === 1 ? 'seed' : 'seeds', seeds.length <= 4 ? seeds.join(', ') : String(seeds.length));
    const names = [...new Set(runs.map((r) => r.summary?.scenario).filter(Boolean))];
    if (names.length === 1) fact('scenario', names[0]);
    if (report.generated_by) fact('', report.generated_by);
    header.append(el('h1', { 'data-testid': 'title' }, report.title || 'Narrows report'));
    if (report.subtitle) header.append(el('p', { class: 'subtitle' }, report.subtitle));
    if (facts.length) header.append(el('ul', { class: 'facts' }, facts));
  }

  function drawBar() {
    const links = [...document.querySelectorAll('main > section')].map((s) =>
      el('a', { href: `#${s.id}` }, { warnings: 'Warnings', sweep: 'Grid', distributions: 'Completion times', rates: 'Rates', queues: 'Queues', buffers: 'Buffers', pauses: 'Pauses', traces: 'Laws', claims: 'Claims', averages: 'Averages', scenario: 'Scenario' }[s.id] || s.querySelector('h2').textContent));
    const inner = el('div', {}, el('div', { class: 'links' }, links));
    for (const key of axes) {
      const options = valuesOf(key).map((v) => [showValue(v), showValue(v)]);
      inner.append(select(key, [['', 'all'], ...options], slice.get(key), (value) => {
        slice.set(key, value);
        for (const r of redraws) if (r.id !== 'results') r.go();
      }, `slice-${key}`));
    }
    inner.append(el('div', { class: 'push' }, choice('Colours', [['auto', 'Auto'], ['light', 'Light'], ['dark', 'Dark']], themeChoice, (value) => {
      themeChoice = value;
      try { localStorage.setItem('narrows-theme', value); } catch { /* see above */ }
      applyTheme();
    }, 'theme')));
    document.getElementById('bar').append(inner);
  }

  function drawFooter() {
    const footer = document.getElementById('provenance');
    if (report.generated_by) footer.append(el('p', {}, `Written by ${report.generated_by}. This file loads nothing from elsewhere.`));
    const engines = runs.filter((r) => r.summary?.engine);
    if (!engines.length) return;
    const engine = (key) => (r) => r.summary.engine[key] ?? null;
    const columns = [
      { key: 'run', label: 'run', name: true, get: fullNameOf },
      { key: 'host', label: 'run by', get: (r) => (r.summary.emulator ? `${r.summary.host}, ${r.summary.emulator.soundness ?? 'sound'}` : r.summary.host ?? null) },
      { key: 'seed', label: 'seed', kind: 'number', get: seedOf, cell: (r) => String(seedOf(r) ?? DASH) },
      { key: 'events', label: 'events', kind: 'count', get: engine('events') },
      { key: 'wall', label: 'wall clock', kind: 'ns', get: (r) => (r.summary.engine.wall_s == null ? null : r.summary.engine.wall_s * 1e9) },
      { key: 'threads', label: 'threads', kind: 'number', get: engine('threads') },
      { key: 'speed', label: 'packet-hops/s', kind: 'count', get: engine('packet_hops_per_s') },
      { key: 'rss', label: 'peak memory', kind: 'bytes', get: engine('peak_rss_bytes') },
    ].filter((c) => c.name || engines.some((r) => c.get(r) != null));
    footer.append(el('details', {}, el('summary', {}, 'What each run cost'), table(columns, engines, { caption: 'Cost of each run' }).node));
  }

  // ---------------------------------------------------------------- sections

  function drawWarnings(body) {
    const list = el('ul', {});
    for (const text of report.warnings || []) list.append(el('li', {}, text));
    for (const cause of report.causes || []) list.append(el('li', {}, el('b', {}, cause.runs), ': ', cause.text));
    body.append(list);
  }

  function drawResults(body) {
    let metrics = TABLE_METRICS.filter(hasValue);
    // One class alone says nothing that "all" does not.
    const classes = new Set(metrics.map((m) => m.cls).filter((c) => c === 'intra' || c === 'inter'));
    if (classes.size === 1 && metrics.some((m) => m.cls === 'all')) metrics = metrics.filter((m) => !classes.has(m.cls));
    let group = null;
    metrics = metrics.map((m) => { const first = m.group !== group; group = m.group; return { ...m, first, title: m.long }; });
    const columns = [
      { key: 'run', label: axes.length && schemeKey ? schemeKey : 'run', name: true, get: nameOf, cell: (r) => el('span', { class: 'runname', title: r.label }, swatch(() => runColour(r), slotDash(r.slot)), el('span', {}, nameOf(r),
        warningsOf(r).length ? el('span', { class: 'flag', title: warningsOf(r).join('\n') }, ' ⚠', el('span', { class: 'visually-hidden' }, ' has warnings')) : null)) },
      ...axes.map((key) => ({ key: `axis:${key}`, label: key, kind: 'number', get: (r) => { const v = pointOf(r).get(key); return coordinate(v)?.n ?? (v === undefined ? null : showValue(v)); }, cell: (r) => (pointOf(r).has(key) ? showValue(pointOf(r).get(key)) : DASH) })),
      ...(seeds.size > 1 ? [{ key: 'seed', label: 'seed', kind: 'number', get: seedOf, cell: (r) => String(seedOf(r) ?? DASH) }] : []),
      { key: 'flows', label: 'flows', kind: 'number', title: 'Flows that finished, of all', get: (r) => cellOf(r, 'all')?.completed ?? null,
        flag: (r) => (unfinished(r, 'all') ? 'weak' : ''),
        cell: (r) => { const c = cellOf(r, 'all'); return c ? (unfinished(r, 'all') ? `${grouped(c.completed)} of ${grouped(c.count)}` : grouped(c.completed ?? c.count)) : DASH; } },
      ...metrics,
    ];
    const rows = runs.filter((r) => r.summary);
    const results = table(columns, rows, { testid: 'results-table', caption: 'Results of each run', limit: rows.length > 18 ? 15 : Infinity, rowsWord: rows.length > 18 ? 'run' : null, peers: placeOf });
    body.append(el('div', { class: 'scroll sticky' }, results.node));
    if (rows.length > 18) body.append(results.more);
    const same = [...axes, ...(seeds.size > 1 ? ['seed'] : [])];
    if (same.length) body.previousElementSibling.textContent = `One row a run. A dot and bold type mark the best of a column among the runs with the same ${same.join(', ')}.`;
    if (runs.some((r) => unfinished(r, 'all'))) {
      body.append(el('p', { class: 'lead' }, 'Where flows did not finish, times are those of the flows that did, and are not marked best.'));
    }
    const acted = runs.map((r) => [r, r.summary?.law]).filter(([, law]) => law && law.acted && typeof law.acted === 'object');
    if (acted.length) {
      const keys = [...new Set(acted.flatMap(([, law]) => Object.keys(law.acted)))].filter((k) => acted.some(([, law]) => Number.isFinite(law.acted[k])));
      const cols = [
        { key: 'run', label: 'run', name: true, get: ([r]) => fullNameOf(r) },
        { key: 'law', label: 'law', get: ([, law]) => law.name ?? null },
        ...keys.map((k) => ({ key: k, label: k.replace(/_/g, ' '), kind: 'count', get: ([, law]) => law.acted[k] ?? null })),
      ];
      body.append(el('details', {}, el('summary', {}, 'How often each law acted'), el('div', { class: 'scroll' }, table(cols, acted, { testid: 'acted-table', caption: 'How often each law acted' }).node)));
    }
  }

  const VERDICTS = dict({ reproduced: ['reproduced', '✓'], 'direction only': ['direction', '≈'], undecided: ['pending', '?'], 'not reproduced': ['not', '✗'], pending: ['pending', '…'] });
  function chip(verdict, text) {
    const [cls, sign] = VERDICTS[verdict] || ['pending', '…'];
    return el('span', { class: `chip ${cls}`, 'data-testid': 'verdict' }, el('span', { 'aria-hidden': 'true' }, sign), text || verdict);
  }

  function drawClaims(body) {
    const claims = report.claims;
    const tools = el('div', { class: 'tools' });
    for (const verdict of Object.keys(VERDICTS)) {
      const n = claims.filter((c) => c.verdict === verdict).length;
      if (n) tools.append(chip(verdict, `${n} ${verdict}`));
    }
    body.append(tools);
    const columns = [
      { key: 'figure', label: 'figure', get: (c) => c.figure || null },
      { key: 'text', label: 'claim', get: (c) => c.text, cell: (c) => [el('div', {}, c.text), c.id ? el('code', {}, c.id) : null, c.note ? el('div', { class: 'note' }, c.note) : null] },
      { key: 'paper', label: 'paper', get: (c) => c.paper || null },
      { key: 'measured', label: 'measured', get: (c) => c.measured || null },
      { key: 'verdict', label: 'verdict', get: (c) => Object.keys(VERDICTS).indexOf(c.verdict), cell: (c) => chip(c.verdict) },
    ].filter((c) => c.key !== 'figure' || claims.some((x) => x.figure));
    body.append(el('div', { class: 'scroll claims' }, table(columns, claims, { testid: 'claims-table', caption: 'Claims' }).node));
  }

  // --- averages over seeds

  function drawAverages(body) {
    for (const it of report.averages) {
      body.append(el('h3', {}, it.title));
      for (const [point, rows] of it.parts) {
        if (point) body.append(el('p', { class: 'lead' }, point));
        const columns = [{ key: 'scheme', label: 'scheme', name: true, get: (row) => row.label }];
        it.columns.forEach((label, i) => columns.push({
          key: `c${i}`, label, kind: 'count', get: (row) => (row.cells[i] ? row.cells[i][0] : null),
          cell: (row) => (row.cells[i] ? el('span', { class: row.best[i] ? 'best' : null }, row.cells[i][1]) : DASH),
        }));
        body.append(el('div', { class: 'scroll averages' }, table(columns, rows, { testid: 'averages-table', caption: `${it.title} ${point}` }).node));
      }
    }
  }

  // --- grid

  const COORD_UNITS = dict({
    ns: ['ns', 1], us: ['ns', 1e3], '\u00b5s': ['ns', 1e3], '\u03bcs': ['ns', 1e3], ms: ['ns', 1e6], s: ['ns', 1e9],
    B: ['bytes', 1], KB: ['bytes', 1e3], MB: ['bytes', 1e6], GB: ['bytes', 1e9], KiB: ['bytes', 1024], MiB: ['bytes', 1024 ** 2], GiB: ['bytes', 1024 ** 3],
    bps: ['bps', 1], Kbps: ['bps', 1e3], Mbps: ['bps', 1e6], Gbps: ['bps', 1e9], Tbps: ['bps', 1e12], '%': ['pct', 1], '': ['number', 1],
  });
  function coordinate(v) {
    if (typeof v === 'number') return { kind: 'number', n: v };
    const m = typeof v === 'string' && /^\s*([+-]?[\d.]+(?:e[+-]?\d+)?)\s*([^\d\s]*)\s*$/i.exec(v);
    const unit = m && COORD_UNITS[m[2]];
    return unit && Number.isFinite(+m[1]) ? { kind: unit[0], n: +m[1] * unit[1] } : null;
  }

  const sweep = { axis: axes[0], metric: null, log: null }; // log: null follows the values
  function drawSweep(body, id) {
    const metrics = METRICS.filter(hasValue);
    if (!metrics.length) return;
    if (!sweep.metric) sweep.metric = (metrics.find((m) => m.key === 'fct_p99_all') || metrics[0]).key;
    const tools = el('div', { class: 'tools' });
    const again = () => redraws.find((r) => r.id === id).go();
    tools.append(select('Metric', metrics.map((m) => [m.key, m.long]), sweep.metric, (v) => { sweep.metric = v; sweep.log = null; again(); }, 'sweep-metric'));
    if (axes.length > 1) tools.append(select('against', axes.map((a) => [a, a]), sweep.axis, (v) => { sweep.axis = v; again(); }, 'sweep-axis'));
    body.append(tools);

    const metric = metrics.find((m) => m.key === sweep.metric);
    const members = runs.filter((r) => inSlice(r, sweep.axis) && pointOf(r).has(sweep.axis));
    const values = valuesOf(sweep.axis);
    const coords = values.map(coordinate);
    const numeric = coords.every((c) => c && c.kind === coords[0].kind);
    const xs = numeric ? [...new Set(coords.map((c) => c.n))].sort((a, b) => a - b) : values.map((_, i) => i);
    const xOf = (run) => {
      const v = pointOf(run).get(sweep.axis);
      return numeric ? xs.indexOf(coordinate(v).n) : values.findIndex((w) => showValue(w) === showValue(v));
    };
    const kind = numeric ? coords[0].kind : null;
    const spread = numeric && xs[0] > 0 && xs[xs.length - 1] / xs[0] >= 12;

    const lines = new Map();
    for (const run of members) {
      const rest = axes.filter((a) => a !== sweep.axis && !slice.get(a) && pointOf(run).has(a)).map((a) => `${a} ${showValue(pointOf(run).get(a))}`);
      const scheme = schemeOf(run);
      const name = [scheme === undefined ? (rest.length ? null : run.summary?.law?.name || 'all runs') : showValue(scheme), ...rest].filter(Boolean).join(', ');
      if (!lines.has(name)) {
        const slot = scheme === undefined ? lines.size : run.slot;
        const twin = [...lines.values()].filter((l) => l.slot === slot).length;
        lines.set(name, { name, slot, twin, sums: xs.map(() => [0, 0]) });
      }
      const v = metric.get(run);
      const cell = lines.get(name).sums[xOf(run)];
      if (cell && Number.isFinite(v)) { cell[0] += v; cell[1] += 1; }
    }
    const list = [...lines.values()];
    const raw = list.map((l) => l.sums.map(([sum, n]) => (n ? sum / n : null)));
        const known = raw.flat().filter((v) => v != null);
    const { div, unit } = unitFor(metric.kind, Math.max(0, largest(known)));
    const positive = known.length > 0 && known.every((v) => v > 0);
    const log = positive && (sweep.log ?? largest(known) / least(known) > 30);
    if (positive) tools.append(choice('Scale', [['lin', 'Linear'], ['log', 'Log']], log ? 'log' : 'lin', (v) => { sweep.log = v === 'log'; again(); }, 'sweep-scale'));
    const hidden = sweep.hidden || (sweep.hidden = new Set());
    let u;
    body.append(legend(list.map((l) => ({ key: l.name, label: l.name, colour: () => slotColour(l.slot), dash: slotDash(l.slot, l.twin) })), hidden,
      () => list.forEach((l, i) => u && u.setSeries(i + 1, { show: !hidden.has(l.name) }))));
    const box = plotBox(320);
    body.append(box);
    const readX = (v) => (numeric ? `${sweep.axis} ${brief(kind, v)}` : `${sweep.axis} ${showValue(values[v])}`);
    later(box, () => {
      u = draw(box, {
        section: id, title: metric.long, height: 320,
        data: [xs, ...raw.map((line) => line.map((v) => (v == null ? null : v / (log ? 1 : div))))],
        series: list.map((l) => ({ label: l.name, colour: () => slotColour(l.slot), dash: slotDash(l.slot, l.twin), width: 2, points: true, spanGaps: true, show: !hidden.has(l.name) })),
        x: {
          label: sweep.axis + (spread ? ' (log scale)' : ''), log: spread, bytes: kind === 'bytes', read: readX,
          range: spread ? undefined : numeric ? [xs[0] - (xs[xs.length - 1] - xs[0]) * 0.03, xs[xs.length - 1] + (xs[xs.length - 1] - xs[0]) * 0.03] : [-0.3, xs.length - 0.7],
          splits: xs.length <= 14 ? () => xs : undefined,
          tick: numeric ? (v) => brief(kind, v) : (v) => (values[v] === undefined ? '' : showValue(values[v])),
        },
        y: { label: metric.long + (log ? ' (log scale)' : unit ? ` (${unit})` : ''), log, bytes: metric.kind === 'bytes', read: (v) => show(metric.kind, v * (log ? 1 : div)), tick: log || !UNITS[metric.kind] ? (log ? (v) => brief(metric.kind, v) : undefined) : undefined },
      });
    });
  }

  // --- distributions

  const dist = { cls: null, what: 'fct_ns', tail: 'cdf', hidden: new Set() };
  const hasDist = (run, what, cls) => (run.distributions || []).some((d) => (d[what] || []).length && (cls == null || d.class === cls));

  function drawDistributions(body, id) {
    const members = shownRuns((r) => hasDist(r, 'fct_ns') || hasDist(r, 'slowdown'));
    const kinds = [['fct_ns', 'Completion time'], ['slowdown', 'Slowdown']].filter(([k]) => members.some((r) => hasDist(r, k)));
    if (!kinds.some(([k]) => k === dist.what)) dist.what = kinds.length ? kinds[0][0] : 'fct_ns';
    const found = [...new Set(members.flatMap((r) => r.distributions.filter((d) => (d[dist.what] || []).length).map((d) => d.class)))];
    const classes = [...THREE.filter((c) => found.includes(c)), ...found.filter((c) => !THREE.includes(c))];
    if (!classes.length) { body.append(el('p', { class: 'none' }, 'No distribution here.')); return; }
    if (!classes.includes(dist.cls)) dist.cls = classes[0];
    const again = () => redraws.find((r) => r.id === id).go();
    const tools = el('div', { class: 'tools' });
    tools.append(choice('Class of flows', classes.map((c) => [c, classWord(c)]), dist.cls, (v) => { dist.cls = v; again(); }, 'class-tabs'));
    if (kinds.length > 1) tools.append(choice('Measure', kinds, dist.what, (v) => { dist.what = v; again(); }, 'measure-tabs'));
    tools.append(choice('View', [['cdf', 'Share finished'], ['tail', 'Tail (log)']], dist.tail, (v) => { dist.tail = v; again(); }, 'view-tabs'));
    body.append(tools);

    const lines = members.map((run) => ({ run, points: (run.distributions.find((d) => d.class === dist.cls) || {})[dist.what] || [] })).filter((l) => l.points.length);
    const used = new Map();
    for (const l of lines) { // runs that share a colour here differ in their dashes
      l.twin = used.get(l.run.slot) || 0;
      used.set(l.run.slot, l.twin + 1);
      l.dash = slotDash(l.run.slot, l.twin);
    }
    let u;
    body.append(legend(lines.map((l) => ({ key: l.run.index, label: titleOf(l.run), colour: () => runColour(l.run), dash: l.dash })), dist.hidden,
      () => lines.forEach((l, i) => u && u.setSeries(i + 1, { show: !dist.hidden.has(l.run.index) }))));
    const box = plotBox(340);
    body.append(box);

    const tail = dist.tail === 'tail';
    const xs = [...new Set(lines.flatMap((l) => l.points.map((p) => p[0])))].filter((v) => v > 0).sort((a, b) => a - b);
    // A distribution function is a staircase: between its points it keeps its value, before the first it is zero.
    const ys = lines.map((l) => {
      let k = 0;
      let last = 0;
      return xs.map((x) => {
        while (k < l.points.length && l.points[k][0] <= x) last = l.points[k++][1];
        if (!tail) return last * 100;
        return 1 - last > 1e-9 ? (1 - last) * 100 : null;
      });
    });
    const kind = dist.what === 'fct_ns' ? 'ns' : 'ratio';
    const noun = dist.what === 'fct_ns' ? 'completion time' : 'slowdown: completion time over the ideal';
    const floor = least(ys.map((line) => least(line.filter((v) => v != null && v > 0))));
    const about = `${classWord(dist.cls)}: share of flows by ${dist.what === 'fct_ns' ? 'completion time' : 'slowdown'}`;
    later(box, () => {
      u = draw(box, {
        section: id, title: about, height: 340, data: [xs, ...ys], stepped: true,
        series: lines.map((l) => ({ label: titleOf(l.run), colour: () => runColour(l.run), dash: l.dash, width: 2, show: !dist.hidden.has(l.run.index) })),
        x: { label: `${noun} (log scale)`, log: true, tick: (v) => brief(kind, v), read: (v) => `${tail ? 'longer than' : 'within'} ${show(kind, v)}` },
        y: tail
          ? { label: 'flows still unfinished (%)', log: true, range: [Math.max(0.001, Math.min(50, floor * 0.8)), 105], tick: (v) => brief('', v), read: (v) => `${digits(v)}${NBSP}%` }
          : { label: 'flows finished (%)', range: [0, 102], splits: () => [0, 25, 50, 75, 100], read: (v) => `${digits(v)}${NBSP}%` },
      });
    });
  }

  // --- rates

  const some = (list) => Array.isArray(list) && list.length > 0;
  const rates = { hidden: new Set(), common: null }; // common: null follows the values

  const overlap = (ranges) => [least(ranges.map((r) => r[0])), largest(ranges.map((r) => r[1]))];
  const lastOf = (list) => list[list.length - 1];

  /** Common and own time axes are asked for by a box that sections of small multiples share in looks. */
  function commonBox(state, again) {
    const box = el('input', { type: 'checkbox', 'data-testid': 'common', checked: state.common, onchange: () => { state.common = box.checked; again(); } });
    return el('label', { class: 'field' }, box, 'same axes for all runs');
  }

  function drawRates(body, id) {
    const members = shownRuns((r) => r.rates && some(r.rates.time_ns) && some(r.rates.flows));
    if (!members.length) { body.append(el('p', { class: 'none' }, 'No rates were sampled here.')); return; }
    const again = () => redraws.find((r) => r.id === id).go();
    const classes = [...new Set(members.flatMap((r) => r.rates.flows.map((f) => f.class)))];
    const rank = (c) => { const i = ['intra', 'inter'].indexOf(c); return i < 0 ? 9 : i; };
    classes.sort((a, b) => rank(a) - rank(b));
    const others = classes.filter((c) => !(c in HUES));
    // Flows are the same in all runs of a report, or nearly: the legend knows them by class and number.
    const keyOf = (f) => `${f.class}:${f.id}`;
    const flows = new Map();
    for (const run of members) for (const f of run.rates.flows) if (!flows.has(keyOf(f))) flows.set(keyOf(f), f);
    const place = new Map();
    for (const cls of classes) {
      const list = [...flows.values()].filter((f) => f.class === cls);
      list.forEach((f, i) => place.set(keyOf(f), [cls, i, list.length]));
    }
    const colourOf = (flow) => () => { const [cls, i, n] = place.get(keyOf(flow)); return familyColour(cls, i, n, others); };
    const visible = (f) => !rates.hidden.has(`class:${f.class}`) && !rates.hidden.has(`flow:${keyOf(f)}`);
    const drawn = [];
    const refresh = () => { for (const [u, list] of drawn) u.batch(() => list.forEach((f, i) => { if (u.series[i + 1].show !== visible(f)) u.setSeries(i + 1, { show: visible(f) }); })); };

    const peaks = members.map((run) => run.rates.flows.reduce((m, f) => f.rate_bps.reduce((n, v) => (v > n ? v : n), m), 0));
    const peak = largest(peaks);
    // One axis shows which scheme is fair; with eight flows in one run and two hundred in another it shows nothing.
    if (rates.common == null) rates.common = least(peaks) * 5 >= peak;

    const top = el('div', { class: 'tools' });
    const few = flows.size <= 24;
    const rows = classes.map((c) => {
      const list = [...flows.values()].filter((f) => f.class === c);
      return [
        { key: `class:${c}`, label: `${classWord(c)} (${list.length})`, colour: () => familyColour(c, 0.4, 2, others), wide: true },
        ...(few ? list.map((f) => ({ key: `flow:${keyOf(f)}`, label: f.label || `flow ${f.id}`, colour: colourOf(f) })) : []),
      ];
    });
    const legends = el('div', {}, (few ? rows : [rows.flat()]).map((items) => legend(items, rates.hidden, refresh)));
    top.append(legends);
    if (members.length > 1) top.append(el('span', { class: 'push' }), commonBox(rates, again));
    body.append(top);

    const span = overlap(members.map((r) => [r.rates.time_ns[0], lastOf(r.rates.time_ns)]));
    const t = unitFor('ns', span[1]);
    const r = unitFor('bps', peak);
    const grid = panels(members.length);
    body.append(grid);
    for (const run of members) {
      const { time_ns: time, flows: list, jain } = run.rates;
      const range = rates.common ? span : [time[0], lastOf(time)];
      const hasJain = some(jain) && jain.some((v) => v != null);
      const height = members.length > 6 ? 180 : 220;
      const box = plotBox(height);
      const jbox = hasJain ? plotBox(104) : null;
      const fairness = run.summary?.fairness || {};
      const words = [];
      if (fairness.jain_final != null) words.push(`Jain ${show('jain', fairness.jain_final)} at the end`);
      if (fairness.converged_at_ns != null) words.push(`fair from ${show('ns', fairness.converged_at_ns)}`);
      else if (fairness.jain_final != null) words.push('did not converge');
      grid.append(el('div', { class: 'panel', 'data-testid': 'rate-panel' }, el('header', {}, el('h3', {}, titleOf(run)), el('p', {}, words.join(' · '))), box, jbox));
      const x = { label: `time (${t.unit})`, range: [range[0] / t.div, range[1] / t.div], read: (v) => `at ${show('ns', v * t.div)}` };
      const xs = time.map((v) => v / t.div);
      later(box, () => {
        const many = list.length > 16;
        const u = draw(box, {
          section: id, title: `${run.label}: sending rates`, height, sync: 'rates',
          data: [xs, ...list.map((f) => xs.map((_, i) => (f.rate_bps[i] == null ? null : f.rate_bps[i] / r.div)))],
          series: list.map((f) => ({ label: f.label || `flow ${f.id}`, colour: colourOf(f), width: many ? 1 : 1.5, alpha: list.length > 60 ? 0.45 : many ? 0.7 : 1, show: visible(f) })),
          x: { ...x, hide: hasJain }, y: { label: `rate (${r.unit})`, range: rates.common ? [0, (peak / r.div) * 1.04] : undefined, read: (v) => show('bps', v * r.div) },
        });
        drawn.push([u, list]);
        if (!jbox) return;
        draw(jbox, {
          section: id, title: `${run.label}: Jain’s index`, height: 104, sync: 'rates',
          data: [xs, xs.map((_, i) => jain[i] ?? null)],
          series: [{ label: 'Jain', colour: () => theme.ink, width: 1.5 }],
          x, y: { label: 'Jain', range: [0, 1.05], splits: () => [0, 0.5, 1], read: (v) => v.toFixed(3) },
          mark: fairness.converged_at_ns != null ? fairness.converged_at_ns / t.div : null,
          markLabel: fairness.converged_at_ns != null ? `fair from ${show('ns', fairness.converged_at_ns)}` : '',
        });
      });
    }
  }

  // --- queues

  // Ports' queues and switches' buffers are drawn alike: `key` is where a run has them.
  const QUEUES = { key: 'queues', word: 'queue', longest: 'longest sampled real queue', none: 'No queues were sampled here.', panel: 'queue-panel', state: { hidden: null, common: true } };
  const BUFFERS = { key: 'buffers', word: 'buffer', longest: 'most sampled', none: 'No buffers were sampled here.', panel: 'buffer-panel', state: { hidden: null, common: true } };
  const drawQueues = (body, id) => drawHeld(QUEUES, body, id);
  const drawBuffers = (body, id) => drawHeld(BUFFERS, body, id);
  const most = (list) => (list || []).reduce((m, v) => (v > m ? v : m), 0);

  function drawHeld(what, body, id) {
    const { key, state: queues } = what;
    const members = shownRuns((r) => r[key] && some(r[key].time_ns) && some(r[key].ports));
    if (!members.length) { body.append(el('p', { class: 'none' }, what.none)); return; }
    const again = () => redraws.find((r) => r.id === id).go();
    const ports = [...new Set(runs.flatMap((r) => (r[key] ? r[key].ports.map((p) => p.name) : [])))];
    const heights = new Map(ports.map((name) => [name, most(runs.flatMap((r) => (r[key] ? r[key].ports.filter((p) => p.name === name).map((p) => most(p.queue_bytes)) : [])))]));
    if (!queues.hidden) { // many ports: open on the eight that were fullest
      const byHeight = ports.slice().sort((a, b) => heights.get(b) - heights.get(a));
      queues.hidden = new Set(byHeight.slice(8).map((n) => `port:${n}`));
    }
    const colour = (name) => () => slotColour(ports.indexOf(name));
    const visible = (s) => !queues.hidden.has(`port:${s.port}`) && !queues.hidden.has(`kind:${s.phantom ? 'phantom' : 'real'}`);
    const drawn = [];
    const refresh = () => { for (const [u, list] of drawn) u.batch(() => list.forEach((s, i) => { if (u.series[i + 1].show !== visible(s)) u.setSeries(i + 1, { show: visible(s) }); })); };
    const phantoms = members.some((r) => r[key].ports.some((p) => some(p.phantom_bytes)));

    const top = el('div', { class: 'tools' });
    top.append(legend(ports.map((name) => ({ key: `port:${name}`, label: name, colour: colour(name) })), queues.hidden, refresh));
    if (phantoms) top.append(legend([{ key: 'kind:real', label: 'real', colour: () => theme.ink }, { key: 'kind:phantom', label: 'phantom', colour: () => theme.ink, dash: [7, 4] }], queues.hidden, refresh));
    if (members.length > 1) top.append(el('span', { class: 'push' }), commonBox(queues, again));
    body.append(top);

    const span = overlap(members.map((r) => [r[key].time_ns[0], lastOf(r[key].time_ns)]));
    const peakOf = (run) => most(run[key].ports.map((p) => Math.max(most(p.queue_bytes), most(p.phantom_bytes))));
    const peak = Math.max(1, most(members.map(peakOf)));
    const t = unitFor('ns', span[1]);
    const b = unitFor('bytes', peak);
    const grid = panels(members.length);
    body.append(grid);
    for (const run of members) {
      const time = run[key].time_ns;
      const range = queues.common ? span : [time[0], lastOf(time)];
      const list = run[key].ports.flatMap((p) => [
        { port: p.name, phantom: false, values: p.queue_bytes, label: phantoms ? `${p.name}, real` : p.name },
        ...(some(p.phantom_bytes) ? [{ port: p.name, phantom: true, values: p.phantom_bytes, label: `${p.name}, phantom` }] : []),
      ]);
      const box = plotBox(220);
      const real = most(run[key].ports.map((p) => most(p.queue_bytes)));
      grid.append(el('div', { class: 'panel', 'data-testid': what.panel }, el('header', {}, el('h3', {}, titleOf(run)), el('p', {}, `${what.longest} ${show('bytes', real)}`)), box));
      later(box, () => {
        const u = draw(box, {
          section: id, title: `${run.label}: ${key}`, height: 220, sync: key,
          data: [time.map((v) => v / t.div), ...list.map((s) => time.map((_, i) => (s.values[i] == null ? null : s.values[i] / b.div)))],
          series: list.map((s) => ({ label: s.label, colour: colour(s.port), dash: s.phantom ? [6, 4] : [], width: s.phantom ? 1.4 : 1.6, show: visible(s) })),
          x: { label: `time (${t.unit})`, range: [range[0] / t.div, range[1] / t.div], read: (v) => `at ${show('ns', v * t.div)}` },
          y: { label: `${what.word} (${b.unit})`, range: queues.common ? [0, (peak / b.div) * 1.05] : undefined, read: (v) => show('bytes', v * b.div) },
        });
        drawn.push([u, list]);
      });
    }
  }

  // --- pauses

  function drawPauses(body) {
    const rows = shownRuns((r) => net('pfc_pauses')(r) > 0).flatMap((r) => Object.entries(net('pfc_pauses_by_tier')(r) || {})
      .filter(([, pauses]) => pauses > 0)
      .map(([tier, pauses]) => ({ r, tier, pauses, ns: (net('pfc_pause_ns_by_tier')(r) || {})[tier] ?? null })));
    if (!rows.length) { body.append(el('p', { class: 'none' }, 'No port was paused here.')); return; }
    const columns = [
      { key: 'run', label: 'run', name: true, get: (row) => fullNameOf(row.r) },
      { key: 'tier', label: 'class of ports', get: (row) => row.tier },
      { key: 'pauses', label: 'pauses', kind: 'count', get: (row) => row.pauses },
      { key: 'ns', label: 'paused together', kind: 'ns', get: (row) => row.ns },
      { key: 'mean', label: 'mean pause', kind: 'ns', get: (row) => (row.ns == null ? null : row.ns / row.pauses) },
    ];
    body.append(el('div', { class: 'scroll' }, table(columns, rows, { testid: 'pauses-table', caption: 'Pauses by class of ports' }).node));
  }

  // --- traces

  const traces = { name: null, hidden: new Set(), log: null }; // log: null follows the values
  function drawTraces(body, id) {
    const useful = (r) => (r.traces || []).filter((x) => some(x.time_ns));
    const names = [...new Set(runs.flatMap((r) => useful(r).map((x) => x.name)))];
    // Of laws that set a rate, the rate says most.
    if (!names.includes(traces.name)) traces.name = names.includes('rate_bps') ? 'rate_bps' : names[0];
    const tools = el('div', { class: 'tools' });
    tools.append(names.length <= 8
      ? choice('Value', names.map((n) => [n, wordsOfName(n)]), traces.name, (v) => { traces.name = v; traces.log = null; redraws.find((r) => r.id === id).go(); }, 'trace-tabs')
      : select('Value', names.map((n) => [n, wordsOfName(n)]), traces.name, (v) => { traces.name = v; traces.log = null; redraws.find((r) => r.id === id).go(); }, 'trace-tabs'));
    body.append(tools);
    const members = shownRuns((r) => useful(r).some((x) => x.name === traces.name));
    if (!members.length) { body.append(el('p', { class: 'none' }, 'This value was not traced here.')); return; }
    const picked = new Map(members.map((r) => [r, useful(r).filter((x) => x.name === traces.name)]));
    const flowIds = [...new Set([...picked.values()].flatMap((list) => list.map((x) => x.flow)))].sort((a, b) => a - b);
    const known = new Map();
    for (const run of runs) for (const f of (run.rates ? run.rates.flows : [])) if (!known.has(f.id)) known.set(f.id, f);
    const others = [...new Set(flowIds.map((i) => known.get(i)?.class).filter((c) => c && !(c in HUES)))];
    const colour = (flow) => () => {
      const f = known.get(flow);
      if (!f) return slotColour(flowIds.indexOf(flow));
      const mates = flowIds.filter((i) => known.get(i)?.class === f.class);
      return familyColour(f.class, mates.indexOf(flow), mates.length, others);
    };
    const label = (flow) => known.get(flow)?.label || `flow ${flow}`;
    const drawn = [];
    if (flowIds.length <= 24) {
      body.append(legend(flowIds.map((f) => ({ key: f, label: label(f), colour: colour(f) })), traces.hidden,
        () => { for (const [u, list] of drawn) list.forEach((x, i) => u.setSeries(i + 1, { show: !traces.hidden.has(x.flow) })); }));
    }
    const all = [...picked.values()].flat();
    const span = overlap(all.map((x) => [x.time_ns[0], lastOf(x.time_ns)]));
    const peak = most(all.map((x) => most(x.values)));
    const kind = kindOfName(traces.name);
    // Windows of flows inside and across datacenters differ by orders of magnitude.
    const peaks = all.map((x) => most(x.values)).filter((v) => v > 0);
    const log = peaks.length > 0 && (traces.log ?? largest(peaks) / least(peaks) > 8);
    if (peaks.length) tools.append(choice('Scale', [['lin', 'Linear'], ['log', 'Log']], log ? 'log' : 'lin', (v) => { traces.log = v === 'log'; redraws.find((r) => r.id === id).go(); }, 'trace-scale'));
    const lows = log ? all.map((x) => x.values.reduce((m, v) => (v > 0 && v < m ? v : m), Infinity)) : [];
    const range = log ? padLog(Math.max(least(lows), peak / 1e6), peak) : peak > 0 ? [0, peak * 1.05] : undefined;
    const t = unitFor('ns', span[1]);
    const y = log ? { div: 1, unit: '' } : unitFor(kind, peak);
    const grid = panels(members.length);
    body.append(grid);
    for (const run of members) {
      const list = picked.get(run);
      const box = plotBox(200);
      grid.append(el('div', { class: 'panel', 'data-testid': 'trace-panel' }, el('header', {}, el('h3', {}, titleOf(run)), el('p', {}, run.summary?.law?.name && run.summary.law.name !== run.label ? run.summary.law.name : '')), box));
      later(box, () => {
        // A law's value holds until it tells a new one; times differ from flow to flow.
        const joined = uPlot.join(list.map((x) => [x.time_ns.map((v) => v / t.div), x.values.map((v) => (v == null || (log && v <= 0) ? null : v / y.div))]));
        const u = draw(box, {
          section: id, title: `${run.label}: ${wordsOfName(traces.name)}`, height: 200, sync: 'traces', data: joined,
          series: list.map((x) => ({ label: label(x.flow), colour: colour(x.flow), width: 1.4, spanGaps: true, show: !traces.hidden.has(x.flow) })),
          x: { label: `time (${t.unit})`, range: [span[0] / t.div, span[1] / t.div], read: (v) => `at ${show('ns', v * t.div)}` },
          y: { label: wordsOfName(traces.name) + (log ? ' (log scale)' : y.unit ? ` (${y.unit})` : ''), log, bytes: kind === 'bytes', range: range && range.map((v) => v / y.div), tick: log ? (v) => brief(kind, v) : undefined, read: (v) => show(kind, v * y.div) },
        });
        drawn.push([u, list]);
      });
    }
  }

  // --- links

  const links = { run: '', text: '' };
  function drawLinks(body, id) {
    const members = shownRuns((r) => some(r.links));
    if (!members.length) { body.append(el('p', { class: 'none' }, 'No links were counted here.')); return; }
    if (links.run !== 'all' && !members.some((r) => String(r.index) === links.run)) links.run = String(members[0].index);
    const rows = members.filter((r) => links.run === 'all' || String(r.index) === links.run).flatMap((r) => r.links.map((link) => ({ r, link })));
    const of = (key) => (row) => row.link[key] ?? null;
    const columns = [
      ...(links.run === 'all' ? [{ key: 'run', label: 'run', get: (row) => fullNameOf(row.r) }] : []),
      { key: 'name', label: 'link', name: true, get: of('name') },
      { key: 'class', label: 'class', get: of('class') },
      { key: 'utilisation', label: 'utilisation', kind: 'share', get: of('utilisation'), cell: ({ link }) => {
        const bar = el('i');
        bar.style.width = `${Math.max(0, Math.min(1, link.utilisation || 0)) * 100}%`;
        return [el('span', { class: 'meter', 'aria-hidden': 'true' }, bar), el('span', { class: 'percent' }, link.utilisation == null ? DASH : `${(link.utilisation * 100).toFixed(1)}${NBSP}%`)];
      } },
      { key: 'packets', label: 'packets', kind: 'count', get: of('packets') },
      { key: 'drops', label: 'drops', kind: 'count', get: of('drops') },
      { key: 'losses', label: 'losses', kind: 'count', title: 'Packets taken by random loss', get: of('losses') },
      ...(rows.some(({ link }) => (link.lost_data ?? 0) !== (link.drops ?? 0) + (link.losses ?? 0)) ? [
        { key: 'lost_data', label: 'data', kind: 'count', title: 'Of both, data packets', get: of('lost_data') },
        { key: 'lost_acks', label: 'acks', kind: 'count', title: 'Of both, acknowledgements', get: of('lost_acks') },
        { key: 'lost_credits', label: 'credits', kind: 'count', title: 'Of both, credits', get: of('lost_credits') },
      ] : []),
      { key: 'marks', label: 'marks', kind: 'count', get: of('marks') },
      { key: 'max_queue_bytes', label: 'max queue', kind: 'bytes', get: of('max_queue_bytes') },
      ...(rows.some(({ link }) => link.pauses > 0) ? [
        { key: 'pauses', label: 'pauses', kind: 'count', title: 'Times that the other end paused it', get: of('pauses') },
        { key: 'pause_ns', label: 'paused', kind: 'ns', get: of('pause_ns') },
      ] : []),
    ];
    const t = table(columns, rows, { testid: 'links-table', sort: { key: 'utilisation', descending: true }, limit: 25, rowsWord: 'link', caption: 'Links' });
    const wanted = () => {
      const words = links.text.toLowerCase().split(/\s+/).filter(Boolean);
      t.refilter(({ link, r }) => words.every((w) => `${link.name} ${link.class} ${fullNameOf(r)}`.toLowerCase().includes(w)));
    };
    const box = el('input', { type: 'search', placeholder: 'Filter by name or class', 'aria-label': 'Filter links', 'data-testid': 'links-filter', value: links.text, oninput: () => { links.text = box.value; wanted(); } });
    const tools = el('div', { class: 'tools' });
    if (members.length > 1) tools.append(select('Run', [...members.map((r) => [String(r.index), fullNameOf(r)]), ['all', 'all runs']], links.run, (v) => { links.run = v; redraws.find((x) => x.id === id).go(); }, 'links-run'));
    tools.append(box, t.more);
    t.more.style.margin = '0';
    body.append(tools, el('div', { class: 'scroll' }, t.node));
    if (links.text) wanted();
  }

  // --- scenario and replay

  function drawScenario(body) {
    const lines = report.scenario_toml.split('\n').length;
    const details = el('details', { 'data-testid': 'scenario-text' }, el('summary', {}, `Show the scenario file (${plural(lines, 'line')})`), el('pre', { tabindex: '0' }, report.scenario_toml));
    body.append(el('div', { class: 'tools' }, copyButton(report.scenario_toml, 'scenario')), details);
  }

  function drawReplay(body) {
    const text = report.replay.join('\n');
    body.append(el('div', { class: 'tools' }, copyButton(text, 'commands')), el('pre', { tabindex: '0' }, text));
  }

  // ---------------------------------------------------------------- printing: light, two columns

  window.addEventListener('beforeprint', () => {
    root.classList.add('printing');
    while (queue.length) queue.shift()();
    readTheme('light');
    repaint();
    for (const p of plots) { p.fit(); p.u.redraw(false, true); }
  });
  window.addEventListener('afterprint', () => {
    root.classList.remove('printing');
    applyTheme();
    for (const p of plots) p.fit();
  });

  // ---------------------------------------------------------------- all of it

  attempt(document.getElementById('top'), drawHeader);
  attempt(document.getElementById('bar'), drawBar);
  section('warnings', drawWarnings);
  section('results', drawResults);
  section('claims', drawClaims);
  section('averages', drawAverages);
  section('sweep', drawSweep);
  section('distributions', drawDistributions);
  section('rates', drawRates);
  section('queues', drawQueues);
  section('buffers', drawBuffers);
  section('pauses', drawPauses);
  section('traces', drawTraces);
  section('links', drawLinks);
  section('scenario', drawScenario);
  section('replay', drawReplay);
  attempt(document.getElementById('provenance'), drawFooter);
  wake();
})();
