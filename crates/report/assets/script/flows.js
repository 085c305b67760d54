// How long flows took.

// --- distributions

const dist = { cls: null, what: 'fct_ns', tail: 'cdf', hidden: new Set() };
keepInAddress('times', dist, { cls: 'text', what: 'text', tail: 'text', hidden: 'set' });
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
      x: { column: inBase(noun, kind), label: `${noun} (log scale)`, log: true, tick: (v) => brief(kind, v), read: (v) => `${tail ? 'longer than' : 'within'} ${show(kind, v)}` },
      y: tail
        ? { label: 'flows still unfinished (%)', log: true, range: [Math.max(0.001, Math.min(50, floor * 0.8)), 105], tick: (v) => brief('', v), read: (v) => `${digits(v)}${NBSP}%` }
        : { label: 'flows finished (%)', range: [0, 102], splits: () => [0, 25, 50, 75, 100], read: (v) => `${digits(v)}${NBSP}%` },
    });
  });
}
