// Distributions of flow completion times.

// --- distributions

const dist = { cls: null, what: 'fct_ns', tail: 'cdf', hidden: new Set() };
keepInAddress('times', dist, { cls: 'text', what: 'text', tail: 'text', hidden: 'set' });
const hasDist = (run, what, cls) => (run.distributions || []).some((d) => (d[what] || []).length && (cls == null || d.class === cls));

const classOf = (run, cls) => cellOf(run, cls) ?? jobOf(run, cls);
/** How many flows a run has of a class, or null. */
const countOf = (run, cls) => classOf(run, cls)?.count ?? null;

/** The distribution function of all flows together, from those of their runs, which have so many flows each. */
function pooledShares(curves, counts) {
  const weights = counts.every((n) => n > 0) ? counts : counts.map(() => 1);
  const all = weights.reduce((sum, w) => sum + w, 0);
  return curves[0].map((_, i) => curves.reduce((sum, curve, k) => sum + weights[k] * curve[i], 0) / all);
}

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

  const tail = dist.tail === 'tail';
  const curveOf = (run) => ((run.distributions || []).find((d) => d.class === dist.cls) || {})[dist.what] || [];
  // A seed of which no flow finished counts: its curve stays at zero.
  const groups = bySeed(shownRuns((run) => curveOf(run).length || (countOf(run, dist.cls) > 0 && !classOf(run, dist.cls).completed))).filter((g) => g.runs.some((run) => curveOf(run).length));
  const used = new Map();
  for (const g of groups) { // schemes that share a colour here differ in their dashes
    const twin = used.get(g.run.slot) || 0;
    used.set(g.run.slot, twin + 1);
    g.dash = slotDash(g.run.slot, twin);
  }
  const xs = [...new Set(groups.flatMap((g) => g.runs.flatMap((run) => curveOf(run).map((p) => p[0]))))].filter((v) => v > 0).sort((a, b) => a - b);
  // A distribution function is a staircase: between its points it keeps its value, before the first it is zero.
  const stairs = (points) => {
    let k = 0;
    let last = 0;
    return xs.map((x) => {
      while (k < points.length && points[k][0] <= x) last = points[k++][1];
      return last;
    });
  };
  const percent = (shares) => shares.map((share) => (!tail ? share * 100 : 1 - share > 1e-9 ? (1 - share) * 100 : null));
  // One curve of all flows of a group's seeds, and a thin one of each seed.
  const lines = groups.flatMap((g) => {
    const curves = g.runs.map((run) => stairs(curveOf(run)));
    const line = { g, label: groupTitle(g), width: 2, ys: percent(curves.length > 1 ? pooledShares(curves, g.runs.map((run) => countOf(run, dist.cls))) : curves[0]) };
    const thin = curves.length > 1 ? curves.map((curve, i) => ({ g, label: titleOf(g.runs[i]), quiet: true, width: 1, alpha: 0.4, ys: percent(curve) })) : [];
    return [...thin, line];
  });
  let u;
  body.append(legend(groups.map((g) => ({ key: g.run.index, label: groupTitle(g), colour: () => runColour(g.run), dash: g.dash })), dist.hidden,
    () => lines.forEach((l, i) => u && u.setSeries(i + 1, { show: !dist.hidden.has(l.g.run.index) }))));
  if (groups.some((g) => g.runs.length > 1)) body.append(el('p', { class: 'lead' }, 'Thick lines pool the flows of all seeds; thin lines are single seeds.'));
  const box = plotBox(340);
  body.append(box);
  const kind = dist.what === 'fct_ns' ? 'ns' : 'ratio';
  const noun = dist.what === 'fct_ns' ? 'completion time' : 'slowdown: completion time over the ideal';
  const floor = smallest(lines.map((l) => smallest(l.ys.filter((v) => v != null && v > 0))));
  const about = `${classWord(dist.cls)}: share of flows by ${dist.what === 'fct_ns' ? 'completion time' : 'slowdown'}`;
  later(box, () => {
    u = draw(box, {
      section: id, title: about, height: 340, data: [xs, ...lines.map((l) => l.ys)], stepped: true,
      series: lines.map((l) => ({ label: l.label, colour: () => runColour(l.g.run), dash: l.quiet ? undefined : l.g.dash, width: l.width, alpha: l.alpha, quiet: l.quiet, show: !dist.hidden.has(l.g.run.index) })),
      x: { column: inBase(noun, kind), label: `${noun} (log scale)`, log: true, tick: (v) => brief(kind, v), read: (v) => `${tail ? 'longer than' : 'within'} ${show(kind, v)}` },
      y: tail
        ? { label: 'flows still unfinished (%)', log: true, range: [Math.max(0.001, Math.min(50, floor * 0.8)), 105], tick: (v) => brief('', v), read: (v) => `${digits(v)}${NBSP}%` }
        : { label: 'flows finished (%)', range: [0, 102], splits: () => [0, 25, 50, 75, 100], read: (v) => `${digits(v)}${NBSP}%` },
    });
  });
}
