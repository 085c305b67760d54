// What was sampled over time: rates, queues, buffers, what laws tell.

// --- rates

const some = (list) => Array.isArray(list) && list.length > 0;
const rates = { hidden: new Set(), common: null }; // common: null follows the values
keepInAddress('rates', rates, { hidden: 'set', common: 'flag' });

const overlap = (ranges) => [smallest(ranges.map((r) => r[0])), largest(ranges.map((r) => r[1]))];
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
  if (rates.common == null) rates.common = smallest(peaks) * 5 >= peak;

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
    const saves = el('div', { class: 'saves' });
    const fairness = run.summary?.fairness || {};
    const words = [];
    if (fairness.jain_final != null) words.push(`Jain ${show('jain', fairness.jain_final)} at the end`);
    if (fairness.converged_at_ns != null) words.push(`fair from ${show('ns', fairness.converged_at_ns)}`);
    else if (fairness.jain_final != null) words.push('did not converge');
    if (failuresOf(run).length) words.push(failureWords(run));
    grid.append(el('div', { class: 'panel', 'data-testid': 'rate-panel' }, el('header', {}, el('h3', {}, titleOf(run)), el('p', {}, words.join(' · '))), box, jbox, saves));
    const x = { label: `time (${t.unit})`, range: [range[0] / t.div, range[1] / t.div], read: (v) => `at ${show('ns', v * t.div)}` };
    const xs = time.map((v) => v / t.div);
    later(box, () => {
      const many = list.length > 16;
      const u = draw(box, {
        section: id, failures: failureMarks(run, t.div), title: `${run.label}: sending rates`, height, sync: 'rates',
        data: [xs, ...list.map((f) => xs.map((_, i) => (f.rate_bps[i] == null ? null : f.rate_bps[i] / r.div)))],
        series: list.map((f) => ({ label: f.label || `flow ${f.id}`, colour: colourOf(f), width: many ? 1 : 1.5, alpha: list.length > 60 ? 0.45 : many ? 0.7 : 1, show: visible(f) })),
        saveIn: saves, saveWord: hasJain ? 'rates' : '', x: { ...x, hide: hasJain }, y: { label: `rate (${r.unit})`, range: rates.common ? [0, (peak / r.div) * 1.04] : undefined, read: (v) => show('bps', v * r.div) },
      });
      drawn.push([u, list]);
      if (!jbox) return;
      draw(jbox, {
        section: id, failures: failureMarks(run, t.div), title: `${run.label}: Jain’s index`, height: 104, sync: 'rates',
        data: [xs, xs.map((_, i) => jain[i] ?? null)],
        series: [{ label: 'Jain', colour: () => theme.ink, width: 1.5 }],
        saveIn: saves, saveWord: 'Jain’s index', x, y: { label: 'Jain', range: [0, 1.05], splits: () => [0, 0.5, 1], read: (v) => v.toFixed(3) },
        mark: fairness.converged_at_ns != null ? fairness.converged_at_ns / t.div : null,
        markLabel: fairness.converged_at_ns != null ? `fair from ${show('ns', fairness.converged_at_ns)}` : '',
      });
    });
  }
}

// --- queues

// Ports' queues and switches' buffers are drawn alike: `key` is where a run has them.
const QUEUES = { key: 'queues', word: 'queue', longest: 'longest sampled queue', none: 'No queues were sampled here.', panel: 'queue-panel', plural: 'Ports', state: { hidden: new Set(), common: true, all: false } };
const BUFFERS = { key: 'buffers', word: 'buffer', longest: 'most sampled', none: 'No buffers were sampled here.', panel: 'buffer-panel', plural: 'Switches', state: { hidden: new Set(), common: true, all: false } };
for (const { key, state } of [QUEUES, BUFFERS]) keepInAddress(key, state, { hidden: 'set', common: 'flag', all: 'flag' });
const drawQueues = (body, id) => drawHeld(QUEUES, body, id);
const drawBuffers = (body, id) => drawHeld(BUFFERS, body, id);
const largestOrZero = (list) => (list || []).reduce((m, v) => (v > m ? v : m), 0);

/** So many ports have lines of their own; more are a band, from the least to the most of them at each time. */
const FEW = 8;

function drawHeld(what, body, id) {
  const { key, state: queues } = what;
  const members = shownRuns((r) => r[key] && some(r[key].time_ns) && some(r[key].ports));
  if (!members.length) { body.append(el('p', { class: 'none' }, what.none)); return; }
  const again = () => redraws.find((r) => r.id === id).go();
  const heights = new Map();
  for (const run of runs) for (const p of run[key] ? run[key].ports : []) heights.set(p.name, Math.max(heights.get(p.name) || 0, largestOrZero(p.queue_bytes)));
  const ports = [...heights.keys()];
  const tallest = new Set(ports.slice().sort((a, b) => heights.get(b) - heights.get(a)).slice(0, FEW));
  const own = queues.all ? ports : ports.filter((name) => tallest.has(name));
  const place = new Map(own.map((name, i) => [name, i]));
  const rest = ports.length - own.length;
  const colour = (name) => () => slotColour(place.get(name));
  const visible = (s) => !queues.hidden.has(s.port == null ? 'rest' : `port:${s.port}`);
  const drawn = [];
  const refresh = () => { for (const [u, list] of drawn) u.batch(() => list.forEach((s, i) => { if (u.series[i + 1].show !== visible(s)) u.setSeries(i + 1, { show: visible(s) }); })); };

  const top = el('div', { class: 'tools' });
  const grey = () => theme.ink2;
  top.append(legend([
    ...own.map((name) => ({ key: `port:${name}`, label: name, colour: colour(name), dash: slotDash(place.get(name)) })),
    ...(rest ? [{ key: 'rest', label: `the other ${rest}, from the least to the most`, colour: () => `color-mix(in srgb, ${theme.ink2} 30%, transparent)`, wide: true }] : []),
  ], queues.hidden, refresh));
  if (ports.length > FEW) {
    top.append(choice(what.plural, [['few', `The ${FEW} fullest`], ['all', `All ${ports.length}`]], queues.all ? 'all' : 'few', (v) => { queues.all = v === 'all'; again(); }, `${key}-shown`));
  }
  if (members.length > 1) top.append(el('span', { class: 'push' }), commonBox(queues, again));
  body.append(top);

  const span = overlap(members.map((r) => [r[key].time_ns[0], lastOf(r[key].time_ns)]));
  const peakOf = (run, of) => largestOrZero(run[key].ports.map((p) => largestOrZero(p[of])));
  const peaks = { queue_bytes: Math.max(1, largestOrZero(members.map((r) => peakOf(r, 'queue_bytes')))), phantom_bytes: Math.max(1, largestOrZero(members.map((r) => peakOf(r, 'phantom_bytes')))) };
  const t = unitFor('ns', span[1]);
  const grid = panels(members.length);
  body.append(grid);
  for (const run of members) {
    const time = run[key].time_ns;
    const range = queues.common ? span : [time[0], lastOf(time)];
    const saves = el('div', { class: 'saves' });
    const boxes = [['queue_bytes', plotBox(220)]];
    // A phantom queue counts bytes that are not there: it has an axis of its own.
    if (run[key].ports.some((p) => some(p.phantom_bytes))) boxes.push(['phantom_bytes', plotBox(140)]);
    grid.append(el('div', { class: 'panel', 'data-testid': what.panel },
      el('header', {}, el('h3', {}, titleOf(run)), el('p', {}, [`${what.longest} ${show('bytes', peakOf(run, 'queue_bytes'))}`, failureWords(run)].filter(Boolean).join(' · '))),
      boxes.map(([, box]) => box), saves));
    for (const [of, box] of boxes) {
      later(box, () => {
        const phantom = of === 'phantom_bytes';
        const b = unitFor('bytes', peaks[of]);
        const has = run[key].ports.filter((p) => !phantom || some(p[of]));
        const list = has.filter((p) => place.has(p.name)).map((p) => ({ port: p.name, label: p.name, values: p[of], colour: colour(p.name), dash: slotDash(place.get(p.name)) }));
        const others = has.filter((p) => !place.has(p.name));
        if (others.length) {
          const words = others.length === 1 ? [others[0].name, others[0].name] : [`the most of the other ${others.length}`, `the least of the other ${others.length}`];
          list.push({ port: null, label: words[0], values: time.map((_, i) => largestOrZero(others.map((p) => p[of][i]))), colour: grey, width: 0.8 });
          list.push({ port: null, label: words[1], values: time.map((_, i) => smallest(others.map((p) => p[of][i]))), colour: grey, width: 0.8 });
        }
        const u = draw(box, {
          section: id, saveIn: saves, saveWord: boxes.length === 1 ? '' : phantom ? 'phantom queues' : 'real queues',
          failures: failureMarks(run, t.div), title: `${run.label}: ${phantom ? 'phantom queues' : key}`, height: phantom ? 140 : 220, sync: key,
          data: [time.map((v) => v / t.div), ...list.map((s) => time.map((_, i) => (s.values[i] == null ? null : s.values[i] / b.div)))],
          series: list.map((s) => ({ label: s.label, colour: s.colour, dash: s.dash, width: s.width || 1.5, show: visible(s) })),
          bands: others.length ? [[list.length - 1, list.length]] : [],
          x: { label: `time (${t.unit})`, hide: !phantom && boxes.length > 1, range: [range[0] / t.div, range[1] / t.div], read: (v) => `at ${show('ns', v * t.div)}` },
          y: { label: `${phantom ? 'phantom' : what.word} (${b.unit})`, range: queues.common ? [0, (peaks[of] / b.div) * 1.05] : undefined, read: (v) => show('bytes', v * b.div) },
        });
        drawn.push([u, list]);
      });
    }
  }
}

// --- traces

const traces = { name: null, hidden: new Set(), log: null }; // log: null follows the values
keepInAddress('laws', traces, { name: 'text', hidden: 'set', log: 'flag' });
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
  const peak = largestOrZero(all.map((x) => largestOrZero(x.values)));
  const kind = kindOfName(traces.name);
  // Windows of flows inside and across datacenters differ by orders of magnitude.
  const peaks = all.map((x) => largestOrZero(x.values)).filter((v) => v > 0);
  const log = peaks.length > 0 && (traces.log ?? largest(peaks) / smallest(peaks) > 8);
  if (peaks.length) tools.append(choice('Scale', [['lin', 'Linear'], ['log', 'Log']], log ? 'log' : 'lin', (v) => { traces.log = v === 'log'; redraws.find((r) => r.id === id).go(); }, 'trace-scale'));
  const lows = log ? all.map((x) => x.values.reduce((m, v) => (v > 0 && v < m ? v : m), Infinity)) : [];
  const range = log ? padLog(Math.max(smallest(lows), peak / 1e6), peak) : peak > 0 ? [0, peak * 1.05] : undefined;
  const t = unitFor('ns', span[1]);
  const y = log ? { div: 1, unit: '' } : unitFor(kind, peak);
  const grid = panels(members.length);
  body.append(grid);
  for (const run of members) {
    const list = picked.get(run);
    const box = plotBox(200);
    grid.append(el('div', { class: 'panel', 'data-testid': 'trace-panel' }, el('header', {}, el('h3', {}, titleOf(run)), el('p', {}, [run.summary?.law?.name !== run.label ? run.summary?.law?.name : '', failureWords(run)].filter(Boolean).join(' · '))), box));
    later(box, () => {
      // A law's value holds until it tells a new one; times differ from flow to flow.
      const joined = uPlot.join(list.map((x) => [x.time_ns.map((v) => v / t.div), x.values.map((v) => (v == null || (log && v <= 0) ? null : v / y.div))]));
      const u = draw(box, {
        section: id, failures: failureMarks(run, t.div), title: `${run.label}: ${wordsOfName(traces.name)}`, height: 200, sync: 'traces', data: joined,
        series: list.map((x) => ({ label: label(x.flow), colour: colour(x.flow), width: 1.4, spanGaps: true, show: !traces.hidden.has(x.flow) })),
        x: { label: `time (${t.unit})`, range: [span[0] / t.div, span[1] / t.div], read: (v) => `at ${show('ns', v * t.div)}` },
        y: { column: log ? inBase(wordsOfName(traces.name), kind) : undefined, label: wordsOfName(traces.name) + (log ? ' (log scale)' : y.unit ? ` (${y.unit})` : ''), log, range: range && range.map((v) => v / y.div), tick: log ? (v) => brief(kind, v) : undefined, read: (v) => show(kind, v * y.div) },
      });
      drawn.push([u, list]);
    });
  }
}
