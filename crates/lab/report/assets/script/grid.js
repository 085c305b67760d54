// One metric across a grid.

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

const sweep = { axis: axes[0], metric: null, log: null, logX: null, hidden: new Set() }; // log, logX: null follow the values
keepInAddress('grid', sweep, { axis: 'text', metric: 'text', log: 'flag', logX: 'flag', hidden: 'set' });
function drawSweep(body, id) {
  const metrics = METRICS.filter(hasValue);
  if (!metrics.length) return;
  if (!axes.includes(sweep.axis)) sweep.axis = axes[0];
  if (!metrics.some((m) => m.key === sweep.metric)) sweep.metric = (metrics.find((m) => m.key === 'fct_p99_all') || metrics[0]).key;
  const tools = el('div', { class: 'tools' });
  const again = () => redraws.find((r) => r.id === id).go();
  tools.append(select('Metric', metrics.map((m) => [m.key, m.long]), sweep.metric, (v) => { sweep.metric = v; sweep.log = null; again(); }, 'sweep-metric'));
  if (axes.length > 1) tools.append(select('against', axes.map((a) => [a, a]), sweep.axis, (v) => { sweep.axis = v; sweep.logX = null; again(); }, 'sweep-axis'));
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
  const canSpread = numeric && xs.length > 1 && xs[0] > 0;
  const spread = canSpread && (sweep.logX ?? xs[xs.length - 1] / xs[0] >= 12);

  const lines = new Map();
  for (const run of members) {
    const rest = axes.filter((a) => a !== sweep.axis && !slice.get(a) && pointOf(run).has(a)).map((a) => `${a} ${showValue(pointOf(run).get(a))}`);
    const scheme = schemeOf(run);
    const name = [scheme === undefined ? (rest.length ? null : run.summary?.law?.name || 'all runs') : showValue(scheme), ...rest].filter(Boolean).join(', ');
    if (!lines.has(name)) {
      const slot = scheme === undefined ? lines.size : run.slot;
      const twin = [...lines.values()].filter((l) => l.slot === slot).length;
      lines.set(name, { name, slot, twin, values: xs.map(() => []) });
    }
    const cell = lines.get(name).values[xOf(run)];
    if (cell) cell.push(metric.interval ? metric.interval(run) : metric.get(run));
  }
  const list = [...lines.values()];
  // Of a metric that has an interval itself, one run of a point and scheme has it; of others, the runs have one together.
  const alone = (its) => { const it = its.find(Boolean); return it ? { mean: it.value, low: it.low, high: it.high, few: it.few } : null; };
  const means = list.map((l) => l.values.map(metric.interval ? alone : meanOf));
  const raw = means.map((line) => line.map((m) => (m ? m.mean : null)));
  const known = raw.flat().filter((v) => v != null);
  const { div, unit } = unitFor(metric.kind, Math.max(0, largest(known)));
  const positive = known.length > 0 && known.every((v) => v > 0);
  const log = positive && (sweep.log ?? largest(known) / smallest(known) > 30);
  const scales = (name, on, set, testid) => tools.append(el('label', { class: 'field' }, name,
    choice(`${name} axis`, [['lin', 'Linear'], ['log', 'Log']], on ? 'log' : 'lin', (v) => { set(v === 'log'); again(); }, testid)));
  if (canSpread) scales('x', spread, (on) => { sweep.logX = on; }, 'sweep-scale-x');
  if (positive) scales('y', log, (on) => { sweep.log = on; }, 'sweep-scale');
  const hidden = sweep.hidden;
  let u;
  body.append(legend(list.map((l) => ({ key: l.name, label: l.name, colour: () => slotColour(l.slot), dash: slotDash(l.slot, l.twin) })), hidden,
    () => list.forEach((l, i) => u && u.setSeries(i + 1, { show: !hidden.has(l.name) }))));
  const box = plotBox(320);
  body.append(box);
  const readX = (v) => (numeric ? `${sweep.axis} ${asWritten.get(v) ?? brief(kind, v)}` : `${sweep.axis} ${showValue(values[v])}`);
  const scaled = (v) => v / (log ? 1 : div);
  const barOf = (m) => (!m ? null : m.low != null ? [scaled(m.low), scaled(m.high)] : m.margin != null ? [scaled(m.mean - m.margin), scaled(m.mean + m.margin)] : null);
  const readPoint = (m) => (m?.low == null ? withinWords(metric.kind, m) : `${show(metric.kind, m.mean)} ${show(metric.kind, m.low)} to ${show(metric.kind, m.high)}${m.few ? ' ?' : ''}`);
  const asWritten = new Map(numeric ? coords.map((c, i) => [c.n, showValue(values[i])]) : []);
  later(box, () => {
    u = draw(box, {
      section: id, title: metric.long, height: 320,
      data: [xs, ...raw.map((line) => line.map((v) => (v == null ? null : scaled(v))))],
      series: list.map((l, i) => ({ label: l.name, colour: () => slotColour(l.slot), dash: slotDash(l.slot, l.twin), width: 2, points: true, spanGaps: true, show: !hidden.has(l.name),
        bars: means[i].map(barOf), tell: (at) => readPoint(means[i][at]) })),
      x: {
        label: sweep.axis + (spread ? ' (log scale)' : ''), log: spread, read: readX, column: numeric ? inBase(sweep.axis, kind) : sweep.axis, word: numeric ? undefined : (v) => showValue(values[v]),
        range: spread ? undefined : numeric ? [xs[0] - (xs[xs.length - 1] - xs[0]) * 0.03, xs[xs.length - 1] + (xs[xs.length - 1] - xs[0]) * 0.03] : [-0.3, xs.length - 0.7],
        splits: xs.length <= 14 ? () => xs : undefined,
        tick: numeric ? (v) => asWritten.get(v) ?? brief(kind, v) : (v) => (values[v] === undefined ? '' : showValue(values[v])),
      },
      y: { column: log ? inBase(metric.long, metric.kind) : undefined, label: metric.long + (log ? ' (log scale)' : unit ? ` (${unit})` : ''), log, read: (v) => show(metric.kind, v * (log ? 1 : div)), tick: log || !UNITS[metric.kind] ? (log ? (v) => brief(metric.kind, v) : undefined) : undefined },
    });
  });
}
