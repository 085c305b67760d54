// What summaries say, as metrics of tables and of the grid's plot.

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

/** Whether a 99th percentile is of so few that one of the slowest decides it. */
const MANY = 100;
const few = (stat, run, cls) => { const c = stat === 'p99' && cellOf(run, cls); return !!c && c.completed < MANY; };

const sizeNames = [...new Set(runs.flatMap((run) => Object.keys(((run.summary || {}).flows || {}).sizes || {})))];
const METRICS = [];
const MEASURES = dict({ fct_ns: ['fct', 'FCT', 'ns'], slowdown: ['slowdown', 'Slowdown', 'ratio'] });
function classMetrics(measure, stat, word, group, classes) {
  const [key, name, kind] = MEASURES[measure];
  for (const cls of classes) METRICS.push({
    key: `${key}_${stat}_${cls}`, group, label: cls, kind, best: 'low', long: `${name} ${word}, ${(CLASS_WORDS[cls] || cls).replace('All', 'all')}`, cls,
    get: (run) => cellOf(run, cls)?.[measure]?.[stat] ?? null, unfit: (run) => unfinished(run, cls), few: (run) => few(stat, run, cls),
  });
}
const THREE = ['all', 'intra', 'inter'];
classMetrics('fct_ns', 'mean', 'mean', 'FCT mean', THREE);
classMetrics('fct_ns', 'p99', '99th percentile', 'FCT p99', THREE);
classMetrics('slowdown', 'p99', '99th percentile', 'Slowdown p99', THREE);
const fair = (key) => (run) => run.summary?.fairness?.[key] ?? null;
const net = (key) => (run) => run.summary?.network?.[key] ?? null;
METRICS.push(
  { key: 'jain_final', group: 'Fairness', label: 'Jain', kind: 'jain', best: 'high', long: 'Jain’s index at the end', get: fair('jain_final') },
  { key: 'converged', group: 'Fairness', label: 'fair from', kind: 'ns', best: 'low', long: 'Time to become fair', get: fair('converged_at_ns'),
    cell: (run) => (fair('converged_at_ns')(run) == null && fair('jain_final')(run) != null ? 'never' : show('ns', fair('converged_at_ns')(run))) },
  { key: 'drops', group: 'Network', label: 'drops', kind: 'count', best: 'low', long: 'Packets lost', get: net('drops') },
  { key: 'data_drops', group: 'Network', label: 'of data', kind: 'count', best: 'low', long: 'Data packets lost', get: (run) => run.summary?.network?.drops_by_kind?.data ?? null },
  { key: 'retransmits', group: 'Network', label: 'retransmits', kind: 'count', best: 'low', long: 'Packets retransmitted', get: net('retransmits') },
  { key: 'timeouts', group: 'Network', label: 'timeouts', kind: 'count', best: 'low', long: 'Retransmission timeouts', get: net('timeouts') },
  { key: 'marks', group: 'Network', label: 'marks', kind: 'count', long: 'Packets marked by ECN', get: net('ecn_marks') },
  { key: 'max_queue', group: 'Network', label: 'max queue', kind: 'bytes', best: 'low', long: 'Maximum queue', get: net('max_queue_bytes') },
);
// What few runs have gets a column only where some run has it.
if (runs.some((run) => net('trims')(run))) {
  METRICS.push({ key: 'trims', group: 'Network', label: 'trimmed', kind: 'count', best: 'low', long: 'Packets trimmed', get: (run) => net('trims')(run) ?? 0 });
}
if (runs.some((run) => cellOf(run, 'requests'))) {
  for (const [stat, word] of [['mean', 'mean'], ['p99', '99th percentile']]) {
    METRICS.push({ key: `fct_${stat}_requests`, group: 'Requests', label: stat, kind: 'ns', best: 'low', long: `Request completion time ${word}`, cls: 'requests',
      get: (run) => cellOf(run, 'requests')?.fct_ns?.[stat] ?? null, unfit: (run) => unfinished(run, 'requests'), few: (run) => few(stat, run, 'requests') });
  }
}
const jobsOf = (run) => run.summary?.jobs || {};
const jobOf = (run, job) => (Object.hasOwn(jobsOf(run), job) ? jobsOf(run)[job] : null);
const jobNames = [...new Set(runs.flatMap((run) => Object.keys(jobsOf(run))))];
const trainingOf = (run, job) => jobOf(run, job)?.training ?? null;
const trains = (job) => runs.some((run) => trainingOf(run, job));
const unfinishedJob = (job) => (run) => { const c = jobOf(run, job); return !!c && c.completed < c.count; };

/** What the critical paths of a job's iterations wait for, as shares of them: means over these runs, the largest first. */
function waitingOf(list, job) {
  const known = list.map((run) => trainingOf(run, job)).filter((it) => it && Number.isFinite(it.iteration_mean_ns));
  if (!known.length) return null;
  const shares = new Map();
  const add = (name, share) => shares.set(name, (shares.get(name) || 0) + share / known.length);
  for (const it of known) for (const [name, share] of Object.entries(it.critical || {})) add(name, share);
  return {
    steps: [...shares].filter(([, share]) => share > 0).sort((a, b) => b[1] - a[1]),
    inter: known.reduce((sum, it) => sum + (it.inter || 0), 0) / known.length,
    flows: 1 - (shares.get('compute') || 0),
    pairs: known.flatMap((it) => it.waits || []),
  };
}

const wholePercent = (share) => `${share > 0 && share < 0.005 ? '<1' : Math.round(share * 100)}${NBSP}%`;
/** The same as a cell of a table: the largest share, and below it the others. */
function waitingWords(list, job) {
  const it = waitingOf(list, job);
  if (!it || !it.steps.length) return DASH;
  const words = it.steps.map(([name, share]) => `${name.replace(/ /g, NBSP)}${NBSP}${wholePercent(share)}`);
  const rest = [words.slice(1).join(', '), it.inter > 0 ? `between${NBSP}datacenters${NBSP}${wholePercent(it.inter)}` : ''].filter(Boolean).join('; ');
  const pairs = it.pairs.slice(0, 8).map((w) => `${w.step}, ${w.from} to ${w.to}: ${wholePercent(w.share)}`);
  return el('div', { class: 'waits', title: pairs.join('\n') || null }, words[0], rest ? el('div', { class: 'margin' }, rest) : null);
}

if (runs.some((run) => cellOf(run, 'collectives'))) {
  const collective = (metric) => ({ group: 'Collective', best: 'low', cls: 'collectives', unfit: (run) => unfinished(run, 'collectives'), ...metric });
  // Of a training run this is the result: it stands first.
  const first = [
    collective({ key: 'fct_mean_collectives', label: 'mean', kind: 'ns', long: 'Collective time mean', get: (run) => cellOf(run, 'collectives')?.fct_ns?.mean ?? null }),
    collective({ key: 'fct_p99_collectives', label: 'p99', kind: 'ns', long: 'Collective time 99th percentile', get: (run) => cellOf(run, 'collectives')?.fct_ns?.p99 ?? null, few: (run) => few('p99', run, 'collectives') }),
    collective({ key: 'slowdown_mean_collectives', label: 'over ideal', kind: 'ratio', long: 'Collective time over the ideal one, mean', get: (run) => cellOf(run, 'collectives')?.slowdown?.mean ?? null }),
  ];
  const several = runs.map((run) => Object.keys(jobsOf(run))).filter((names) => names.length > 1);
  for (const job of new Set(several.flat())) {
    if (trains(job)) continue;
    first.push(collective({ key: `job_fct_mean_${job}`, label: `${job} mean`, kind: 'ns', long: `Collective time mean, job ${job}`, get: (run) => jobOf(run, job)?.fct_ns?.mean ?? null, unfit: unfinishedJob(job) }));
  }
  METRICS.unshift(...first);
}
// What training is about stands before all else: how long an iteration takes, and what it waits for.
METRICS.unshift(...jobNames.filter(trains).flatMap((job) => {
  const one = (metric) => ({ group: `${job} iteration`, best: 'low', unfit: unfinishedJob(job), ...metric });
  return [
    one({ key: `iteration_mean_${job}`, label: 'mean', kind: 'ns', long: `Iteration mean, job ${job}`, get: (run) => trainingOf(run, job)?.iteration_mean_ns ?? null }),
    one({ key: `iteration_exposed_${job}`, label: 'exposed', kind: 'ns', long: `Exposed communication of an iteration, job ${job}`, get: (run) => trainingOf(run, job)?.exposed_ns ?? null }),
    one({ key: `iteration_waits_${job}`, label: 'waits for', kind: 'share', best: null, words: true, long: `Share of an iteration that waits for flows, job ${job}`, get: (run) => waitingOf([run], job)?.flows ?? null, of: (list) => waitingWords(list, job) }),
  ];
}));
METRICS.unshift(...[...new Set(runs.flatMap((run) => Object.keys(run.summary?.schedules || {})))].map((name) => {
  const of = (run) => run.summary?.schedules?.[name];
  return { key: `end_to_end_${name}`, group: name, label: 'end to end', kind: 'ns', best: 'low', long: `End-to-end time, ${name}`,
    get: (run) => of(run)?.end_to_end_ns ?? null, unfit: (run) => of(run)?.completed < of(run)?.flows };
}));
if (runs.some((run) => net('parity_packets')(run) > 0)) {
  METRICS.push(
    { key: 'parity', group: 'Coding', label: 'parity', kind: 'count', long: 'Parity packets sent', get: net('parity_packets') },
    { key: 'recovered', group: 'Coding', label: 'recovered', kind: 'count', long: 'Blocks complete by their parity', get: net('recovered_blocks') },
    { key: 'nacks', group: 'Coding', label: 'asked', kind: 'count', long: 'Requests for what a block lacks', get: net('nacks') },
  );
}
const credits = (key) => (run) => run.summary?.credits?.[key] ?? null;
if (runs.some((run) => credits('sent')(run) > 0)) {
  METRICS.push(
    { key: 'credits_used', group: 'Credits', label: 'used', kind: 'count', long: 'Credits that let a packet go', get: credits('used') },
    { key: 'credits_wasted', group: 'Credits', label: 'wasted', kind: 'count', long: 'Credits that came with nothing to send', get: credits('wasted') },
    { key: 'credits_dropped', group: 'Credits', label: 'dropped', kind: 'count', long: 'Credits that found no room', get: credits('dropped') },
  );
}
if (runs.some((run) => net('pfc_pauses')(run) > 0)) {
  METRICS.push(
    { key: 'pfc_pauses', group: 'Pauses', label: 'count', kind: 'count', best: 'low', long: 'Pauses by flow control', get: net('pfc_pauses') },
    { key: 'pfc_pause', group: 'Pauses', label: 'together', kind: 'ns', best: 'low', long: 'Pauses together', get: net('pfc_pause_ns') },
    { key: 'host_pause', group: 'Pauses', label: 'a host', kind: 'ns', best: 'low', long: 'Pause of a host, on average', get: net('host_pause_ns') },
  );
}
if (runs.some((run) => net('max_buffer_bytes')(run) > 0)) {
  METRICS.push({ key: 'max_buffer', group: 'Buffers', label: 'fullest', kind: 'bytes', best: 'low', long: 'Most held by a shared buffer', get: net('max_buffer_bytes') });
}
const TABLE_METRICS = METRICS.slice();
// Only the grid plot offers these.
classMetrics('slowdown', 'mean', 'mean', '', THREE);
classMetrics('fct_ns', 'p50', 'median', '', THREE);
for (const name of sizeNames) {
  classMetrics('fct_ns', 'mean', 'mean', '', [name]);
  classMetrics('fct_ns', 'p99', '99th percentile', '', [name]);
  classMetrics('slowdown', 'p99', '99th percentile', '', [name]);
}
// Quantiles over all seeds together are of the first run of its kind, with an interval of their own.
const pooledOf = new Map((report.pooled || []).map((it) => [`${it.run} ${it.class}`, it]));
const firstsOfPooled = [...new Set([...pooledOf.values()].map((it) => it.first))];
const firstWord = firstsOfPooled.length === 1 && firstsOfPooled[0].length <= 12 ? `${firstsOfPooled[0]}’s` : 'the first’s';
for (const cls of ['intra', 'inter']) {
  for (const [stat, at] of [['p50', 0], ['p99', 1]]) {
    const pooled = (key, long, interval) => {
      const of = (run) => { const it = pooledOf.get(`${run.index} ${cls}`); const v = it && interval(it); return v ? { ...v, few: stat === 'p99' && it.few } : null; };
      METRICS.push({ key: `pooled_${key}_${cls}`, kind: 'ratio', long: `${long}, ${CLASS_WORDS[cls]}`, interval: of, get: (run) => of(run)?.value ?? null });
    };
    pooled(stat, `Slowdown ${stat}, all seeds`, (it) => it[stat]);
    pooled(`ratio_${stat}`, `Slowdown ${stat} over ${firstWord}`, (it) => it.ratios?.[at].of);
  }
}
const hasValue = (metric) => runs.some((run) => Number.isFinite(metric.get(run)));

const warningsOf = (run) => run.warnings || [];
