// Percentiles by size of flow.

// --- sizes

const sizes = { what: 'slowdown', stat: 'both', log: null, hidden: new Set() }; // log: null follows the values
keepInAddress('sizes', sizes, { what: 'text', stat: 'text', log: 'flag', hidden: 'set' });

function drawSizes(body, id) {
  const again = () => redraws.find((r) => r.id === id).go();
  const ofBin = (run, name) => { const all = run.summary?.flows?.sizes || {}; return Object.hasOwn(all, name) && all[name].completed > 0 ? all[name] : null; };
  const groups = seedGroups.filter((g) => inSlice(g.run) && sizeNames.some((name) => g.runs.some((r) => ofBin(r, name))));
  const names = sizeNames.filter((name) => groups.some((g) => g.runs.some((r) => ofBin(r, name))));
  if (!names.length) { body.append(el('p', { class: 'none' }, 'No flows of these sizes finished here.')); return; }
  if (!['slowdown', 'fct_ns'].includes(sizes.what)) sizes.what = 'slowdown';
  const stats = [['both', 'p50 and p99'], ['p50', 'p50'], ['p90', 'p90'], ['p95', 'p95'], ['p99', 'p99'], ['max', 'Slowest']];
  if (!stats.some(([s]) => s === sizes.stat)) sizes.stat = 'both';
  const kind = sizes.what === 'slowdown' ? 'ratio' : 'ns';
  const word = sizes.what === 'slowdown' ? 'slowdown' : 'completion time';
  const shown = sizes.stat === 'both' ? ['p99', 'p50'] : [sizes.stat];
  const used = new Map();
  const lines = groups.flatMap((g) => {
    const twin = used.get(g.run.slot) || 0;
    used.set(g.run.slot, twin + 1);
    return shown.map((stat, i) => ({
      g, key: groupTitle(g), label: shown.length > 1 ? `${groupTitle(g)}, ${stat}` : groupTitle(g), twin,
      dash: i ? [3, 4] : slotDash(g.run.slot, twin), means: names.map((name) => meanOf(g.runs.map((r) => ofBin(r, name)?.[sizes.what]?.[stat] ?? null))),
    }));
  });
  const values = lines.flatMap((l) => l.means).filter(Boolean).map((m) => m.mean).filter((v) => v > 0);
  const top = largest(values);
  const log = values.length > 0 && (sizes.log ?? top / smallest(values) > 30);
  const { div, unit } = log || kind === 'ratio' ? { div: 1, unit: '' } : unitFor(kind, top);

  const tools = el('div', { class: 'tools' });
  tools.append(choice('Measure', [['slowdown', 'Slowdown'], ['fct_ns', 'Completion time']], sizes.what, (v) => { sizes.what = v; sizes.log = null; again(); }, 'sizes-measure'));
  tools.append(choice('Percentile', stats, sizes.stat, (v) => { sizes.stat = v; again(); }, 'sizes-stat'));
  tools.append(el('label', { class: 'field' }, 'y', choice('y axis', [['lin', 'Linear'], ['log', 'Log']], log ? 'log' : 'lin', (v) => { sizes.log = v === 'log'; again(); }, 'sizes-scale')));
  body.append(tools);
  const box = plotBox(320);
  let u;
  const items = groups.map((g) => { const l = lines.find((line) => line.g === g); return { key: l.key, label: l.key, colour: () => runColour(g.run), dash: slotDash(g.run.slot, l.twin) }; });
  body.append(legend(items, sizes.hidden, () => lines.forEach((l, i) => u && u.setSeries(i + 1, { show: !sizes.hidden.has(l.key) }))), box);
  later(box, () => {
    u = draw(box, {
      section: id, title: `${word} by size of flow`, height: 320,
      data: [names.map((_, i) => i), ...lines.map((l) => l.means.map((m) => (m && (!log || m.mean > 0) ? m.mean / div : null)))],
      series: lines.map((l) => ({ label: l.label, colour: () => runColour(l.g.run), dash: l.dash, width: 2, points: true, show: !sizes.hidden.has(l.key),
        bars: l.means.map((m) => (m && m.margin ? [(m.mean - m.margin) / div, (m.mean + m.margin) / div] : null)), tell: (at) => withinWords(kind, l.means[at]) })),
      x: {
        label: 'size of flow', range: [-0.4, names.length - 0.6], splits: () => names.map((_, i) => i), column: 'size', word: (v) => names[v],
        tick: (v) => fitted(names[v] ?? '', Math.max(24, (box.clientWidth - 70) / names.length - 8)), read: (v) => names[v],
      },
      y: { column: log ? inBase(word, kind) : undefined, label: `${word}${log ? ' (log scale)' : unit ? ` (${unit})` : ''}`, log, tick: log ? (v) => brief(kind, v) : undefined, read: (v) => show(kind, v * div) },
    });
  });
}
