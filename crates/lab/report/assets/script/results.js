// Tables of results: of runs, of claims, of averages.

/** Behind what a few flows decide. */
const questioned = () => el('span', { class: 'flag hung', title: FEW_WORDS }, '?', el('span', { class: 'visually-hidden' }, ` ${FEW_WORDS}`));

function drawResults(body) {
  let metrics = TABLE_METRICS.filter(hasValue);
  // One class alone says nothing that "all" does not.
  const classes = new Set(metrics.map((m) => m.cls).filter((c) => c === 'intra' || c === 'inter'));
  if (classes.size === 1 && metrics.some((m) => m.cls === 'all')) metrics = metrics.filter((m) => !classes.has(m.cls));
  let group = null;
  const said = (m) => (m.of ? (r) => m.of([r]) : m.few && !m.cell ? (r) => (m.few(r) && m.get(r) != null ? [show(m.kind, m.get(r)), questioned()] : show(m.kind, m.get(r))) : m.cell);
  metrics = metrics.map((m) => { const first = m.group !== group; group = m.group; return { ...m, first, title: m.long, cell: said(m) }; });
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
  const single = [scroller('sticky', results.node), rows.length > 18 ? results.more : null].filter(Boolean);
  const same = [...axes, ...(seeds.size > 1 ? ['seed'] : [])];
  if (severalSeeds) {
    const means = meansTable(columns, metrics);
    body.append(scroller('sticky means', means.node), means.more);
    body.append(el('details', { 'data-testid': 'single-runs' }, el('summary', {}, `The single runs (${grouped(rows.length)})`),
      el('p', { class: 'lead' }, `A dot and bold type mark the best of a column among the runs with the same ${same.join(', ')}.`), single));
    body.previousElementSibling.textContent = `${axes.length ? 'One row per scheme and point' : 'One row per scheme'}: the mean over seeds and, behind ±, half of its 95 % confidence interval (Student’s t); no ± where all seeds agree. `
      + `A dot and bold type mark the best mean of a column${axes.length ? ` at the same ${axes.join(', ')}` : ''}; where intervals overlap, the seeds do not decide.`;
  } else {
    body.append(...single);
    if (same.length) body.previousElementSibling.textContent = `One row per run. A dot and bold type mark the best of a column among the runs with the same ${same.join(', ')}.`;
  }
  if (rows.some((r) => metrics.some((m) => m.few && m.few(r) && m.get(r) != null))) {
    body.append(el('p', { class: 'lead signs', 'data-testid': 'results-signs' }, el('span', { class: 'flag' }, '?'), ` ${FEW_WORDS}.`));
  }
  if (runs.some((r) => unfinished(r, 'all'))) {
    body.append(el('p', { class: 'lead' }, 'Where flows did not finish, times are those of the flows that did, and are not marked best.'));
  }
  for (const line of report.conditions || []) body.append(el('p', { class: 'lead', 'data-testid': 'condition' }, line));
  const lawRows = runs.map((r) => [r, r.summary?.law]).filter(([, law]) => law && law.actions && typeof law.actions === 'object');
  if (lawRows.length) {
    const keys = [...new Set(lawRows.flatMap(([, law]) => Object.keys(law.actions)))].filter((k) => lawRows.some(([, law]) => Number.isFinite(law.actions[k])));
    const cols = [
      { key: 'run', label: 'run', name: true, get: ([r]) => fullNameOf(r) },
      { key: 'law', label: 'law', get: ([, law]) => law.name ?? null },
      ...keys.map((k) => ({ key: k, label: k.replace(/_/g, ' '), kind: 'count', get: ([, law]) => law.actions[k] ?? null })),
    ];
    body.append(el('details', {}, el('summary', {}, 'Actions of each law'), scroller('', table(cols, lawRows, { testid: 'actions-table', caption: 'Actions of each law' }).node)));
  }
}

/** One row per scheme and point of a grid, with means over seeds. */
function meansTable(columns, metrics) {
  const ofFirst = (c) => ({ ...c, get: (g) => c.get(g.run), cell: c.cell ? (g) => c.cell(g.run) : undefined, flag: undefined });
  const kept = columns.filter((c) => c.key === 'run' || c.key.startsWith('axis:')).map(ofFirst);
  const flows = (g) => g.runs.map((r) => cellOf(r, 'all')).filter(Boolean);
  const sum = (g, key) => flows(g).reduce((n, c) => n + (c[key] ?? 0), 0);
  const anyUnfinished = (g) => g.runs.some((r) => unfinished(r, 'all'));
  kept[0].cell = (g) => {
    const warned = g.runs.filter((r) => warningsOf(r).length);
    const texts = [...new Set(warned.flatMap(warningsOf))];
    return el('span', { class: 'runname' }, swatch(() => runColour(g.run), slotDash(g.run.slot)), el('span', {}, nameOf(g.run),
      warned.length ? el('span', { class: 'flag', title: texts.join('\n') }, ' ⚠', el('span', { class: 'visually-hidden' }, ` ${plural(warned.length, 'run')} with warnings`)) : null));
  };
  kept.push(
    { key: 'seeds', label: 'seeds', kind: 'number', get: (g) => g.runs.length, cell: (g) => String(g.runs.length) },
    { key: 'flows', label: 'flows', kind: 'number', title: 'Flows that finished, of all, over all seeds', get: (g) => (flows(g).length ? sum(g, 'completed') : null),
      flag: (g) => (anyUnfinished(g) ? 'weak' : ''),
      cell: (g) => (!flows(g).length ? DASH : anyUnfinished(g) ? `${grouped(sum(g, 'completed'))} of ${grouped(sum(g, 'count'))}` : grouped(sum(g, 'completed'))) },
  );
  const mean = (metric, g) => meanOf(g.runs.map(metric.get));
  const ofMetric = (metric) => ({ ...metric, get: (g) => mean(metric, g)?.mean ?? null,
    unfit: (g) => g.runs.some((r) => metric.unfit && metric.unfit(r)) || g.runs.some((r) => !Number.isFinite(metric.get(r))),
    cell: (g) => {
      if (metric.of) return metric.of(g.runs);
      const m = mean(metric, g);
      if (!m && metric.cell) return metric.cell(g.run);
      const [shown, margin] = within(metric.kind, m);
      const sign = metric.few && g.runs.some((r) => metric.few(r)) ? questioned() : null;
      return [shown, sign, margin ? el('div', { class: 'margin' }, margin) : null];
    } });
  return table([...kept, ...metrics.map(ofMetric)], seedGroups, {
    testid: 'means-table', caption: 'Means over seeds', limit: seedGroups.length > 24 ? 20 : Infinity, rowsWord: 'row',
    peers: (g) => axes.map((key) => showValue(pointOf(g.run).get(key))).join('\n'),
  });
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
  body.append(scroller('claims', table(columns, claims, { testid: 'claims-table', caption: 'Claims' }).node));
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
      body.append(scroller('averages', table(columns, rows, { testid: 'averages-table', caption: `${it.title} ${point}` }).node));
    }
  }
}
