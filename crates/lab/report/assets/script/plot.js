// A plot over uPlot: its axes and ticks, the tip that reads values, marks.

// ---------------------------------------------------------------- plots

const plots = [];
const hook = {
  ready: false,
  withMargin,
  /** The pictures that are drawn now; `count` is how many of their parts show a value. */
  get charts() { return charts.map(({ section, title, count }) => ({ section, title, count: count() })); },
  /** What is drawn now; `series` and `points` count what is visible, `thin` the lines of single seeds, `range` is that of the x axis. */
  get plots() {
    return plots.map(({ section, title, u, o }) => {
      const shown = u.series.map((s, i) => (i > 0 && s.show ? i : 0)).filter(Boolean);
      const visible = shown.filter((i) => !o.series[i - 1].quiet);
      const points = shown.reduce((sum, i) => sum + u.data[i].reduce((n, v) => n + (v == null ? 0 : 1), 0), 0);
      return { section, title, series: visible.length, thin: shown.length - visible.length, total: o.series.filter((it) => !it.quiet).length, points, range: [u.scales.x.min, u.scales.x.max], failures: (o.failures || []).length, x: o.x.label, bars: barsOf(o, u).length };
    });
  },
};
window.narrowsReport = hook;

function clearPlots(section) {
  for (let i = charts.length - 1; i >= 0; i--) {
    if (charts[i].section === section) charts.splice(i, 1)[0].observer.disconnect();
  }
  for (let i = plots.length - 1; i >= 0; i--) {
    if (plots[i].section !== section) continue;
    plots[i].observer.disconnect();
    plots[i].u.destroy();
    plots.splice(i, 1);
  }
}

const FONT = `12px ${FAMILY}`;

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

function padLog(lo, hi) {
  if (!(lo > 0)) lo = hi > 0 ? hi / 1000 : 0.1;
  if (!(hi > 0)) hi = 1;
  const pad = Math.max(1.04, (hi / lo) ** 0.03);
  if (hi / lo < 1.2) { const mid = Math.sqrt(hi * lo); return [mid / 1.15, mid * 1.15]; }
  return [lo / pad, hi * pad];
}

/**
 * One plot in `host`.
 * o = { section, title, height, data, stepped, sync, x, y, mark, markLabel, bands, failures, saveIn, saveWord,
 *       series: [{ label, colour, dash, width, alpha, show, points, spanGaps, bars, tell, quiet }] }
 *   x, y: { label, column, log, range, tick, splits, read, hide, word }; `column` heads the values in a CSV file
 *   bars: at each x a low and a high end, or null; `tell` gives the tip's words for a value; what is `quiet` has none
 *   bands: pairs of series' numbers from 1, high and low
 *   failures: see failureMarks
 */
function draw(host, o) {
  const axis = (spec, side) => ({
    words: (splits) => {
      const step = splits.length > 1 ? splits[1] - splits[0] : 1;
      return splits.map((v) => (v == null ? '' : spec.tick ? spec.tick(v, step) : tidy(v, step)));
    },
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
      return spec.log ? logSplits(lo, hi, room) : linearSplits(lo, hi, Math.max(2, Math.floor(room)));
    },
    filter: (_u, splits) => splits,
    values: (u, splits) => (spec.hide ? splits.map(() => '') : u.axes[side === 2 ? 0 : 1].words(splits)),
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
      for (const [, low, high] of barsOf(o, _u)) { lo = Math.min(lo, o.y.log && low <= 0 ? lo : low); hi = Math.max(hi, high); }
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
      if (u.series[i].show && !o.series[i - 1].quiet && v != null) rows.push({ i, v, far: Math.abs(u.valToPos(v, 'y') - top) });
    }
    const hidden = Math.max(0, rows.length - 9);
    if (hidden) rows = rows.sort((a, b) => a.far - b.far).slice(0, 9);
    rows.sort((a, b) => b.v - a.v);
    if (!rows.length) { tip.style.display = 'none'; return; }
    const at = u.data[0][idx];
    tip.replaceChildren(el('b', {}, o.x.read(at)), ...rows.map(({ i, v }) => {
      const s = o.series[i - 1];
      const line = el('span', { class: 'swatch' });
      line.style.background = s.colour();
      return el('div', {}, line, el('span', {}, s.label), el('span', {}, s.tell ? s.tell(idx) : o.y.read(v)));
    }), hidden ? el('div', { class: 'dim' }, `and ${hidden} more`) : '',
      ...(o.failures || []).filter((f) => f.from <= at && at < f.until).slice(0, 3).map((f) => el('div', { class: 'down' }, namesDown(f))));
    tip.style.display = 'block';
    const x = left + u.over.offsetLeft;
    const flip = x + tip.offsetWidth + 20 > host.clientWidth && x - tip.offsetWidth - 14 > 0;
    tip.style.left = `${Math.max(0, flip ? x - tip.offsetWidth - 14 : x + 14)}px`;
    tip.style.top = `${Math.max(0, Math.min(top + u.over.offsetTop - 10, host.clientHeight - tip.offsetHeight))}px`;
  }

  o.axes = [axis(o.x, 2), axis(o.y, 3)];
  const options = {
    width: Math.max(120, host.clientWidth), height: o.height,
    padding: [8, 10, o.x.hide ? 0 : 2, 0],
    legend: { show: false },
    scales: { x: scaleX, y: scaleY },
    axes: o.axes,
    bands: (o.bands || []).map((pair) => ({ series: pair, fill: () => `color-mix(in srgb, ${theme.ink2} 25%, transparent)` })),
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
      drawClear: [(u) => drawMarks(u, o, 'background')],
      draw: [(u) => { drawBars(u, o); drawMarks(u, o, 'labels'); }],
    },
  };
  const u = new uPlot(options, o.data, host);
  host.append(tip);
  u.over.addEventListener('mouseenter', () => { inside = true; });
  u.over.addEventListener('mouseleave', () => { inside = false; tip.style.display = 'none'; });

  host.tabIndex = 0;
  host.setAttribute('role', 'img');
  const what = `${o.title}: ${o.y.label} against ${o.x.label}, ${plural(o.series.filter((it) => !it.quiet).length, 'line')}.${o.failures && o.failures.length ? ` Links were down: ${o.failures.length} times.` : ''}`;
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
  const plot = { section: o.section, title: o.title, u, o, observer, fit };
  plots.push(plot);
  const buttons = saveButtons(o.title, () => pictureOf(plot), () => rowsOf(plot), o.saveWord);
  if (o.saveIn) o.saveIn.append(buttons); else host.after(buttons);
  return u;
}

/** The ends of all error bars that are shown: [series, low, high, x]. */
function barsOf(o, u) {
  return o.series.flatMap((s, i) => (s.bars && u.series[i + 1].show ? s.bars.flatMap((bar, k) => (bar ? [[i, bar[0], bar[1], o.data[0][k]]] : [])) : []));
}

function drawBars(u, o) {
  const ratio = window.devicePixelRatio || 1;
  const { left, top, width, height } = u.bbox;
  const ctx = u.ctx;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  ctx.lineWidth = 1.5 * ratio;
  for (const [i, low, high, at] of barsOf(o, u)) {
    const x = u.valToPos(at, 'x', true);
    const y = (v) => (o.y.log && v <= 0 ? top + height + 9 : u.valToPos(v, 'y', true));
    ctx.strokeStyle = o.series[i].colour();
    ctx.beginPath();
    ctx.moveTo(x, y(low));
    ctx.lineTo(x, y(high));
    for (const end of [low, high]) {
      ctx.moveTo(x - 4 * ratio, y(end));
      ctx.lineTo(x + 4 * ratio, y(end));
    }
    ctx.stroke();
  }
  ctx.restore();
}

/**
 * What marks times, as shapes: when links were down, and a dashed line, for instance where rates became fair. `background`
 * lies behind the lines of data. X gives an x value's place; `top` and `height` are those of the plot.
 */
function marksOf(u, o, X, top, height) {
  const ends = [X(u.scales.x.min), X(u.scales.x.max)];
  const { background, labels } = failureShapes(o.failures || NONE, X, ends, top, height);
  const x = o.mark == null ? NaN : X(o.mark);
  if (x >= ends[0] && x <= ends[1]) {
    labels.push({ line: [[x, top], [x, top + height]], stroke: theme.ink, dash: [4, 3] });
    const right = x + 6 + widthOf(o.markLabel || '', 11) < ends[1];
    if (o.markLabel) labels.push({ text: o.markLabel, at: [x + (right ? 5 : -5), top + height - 6], fill: theme.ink, size: 11, anchor: right ? 'start' : 'end' });
  }
  return { background, labels };
}

/** One of these on uPlot's canvas, which counts the screen's pixels. */
function drawMarks(u, o, which) {
  const ratio = window.devicePixelRatio || 1;
  const { left, top, height } = u.bbox;
  u.ctx.save();
  u.ctx.scale(ratio, ratio);
  paint(u.ctx, marksOf(u, o, (v) => left / ratio + u.valToPos(v, 'x'), top / ratio, height / ratio)[which]);
  u.ctx.restore();
}

/** The grounds between pairs of series, as shapes. */
function bandsOf(u, o, X, Y) {
  return (o.bands || []).filter(([high, low]) => u.series[high].show && u.series[low].show).map(([high, low]) => {
    const edge = (i) => u.data[0].map((x, k) => (u.data[i][k] == null ? null : [X(x), Y(u.data[i][k])])).filter(Boolean);
    return { area: [...edge(high), ...edge(low).reverse()], fill: theme.ink2, alpha: 0.25 };
  });
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
