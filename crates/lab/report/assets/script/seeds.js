// Means over seeds: runs that differ in their seeds alone, and the interval in which their mean lies.

// ---------------------------------------------------------------- means over seeds

/** The 97.5 % quantile of Student's t, as the terminal has it: between two rows the lower row's counts. */
function studentsT(degrees) {
  const quantiles = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
  ];
  if (degrees <= 30) return quantiles[degrees - 1];
  return degrees < 40 ? 2.042 : degrees < 60 ? 2.021 : degrees < 120 ? 2.000 : 1.980;
}

/** The mean of the values that there are, half of its 95 % interval (null of one value), and how many there are. */
function meanOf(values) {
  const known = values.filter((v) => Number.isFinite(v));
  const n = known.length;
  if (!n) return null;
  // Differences from the first value: the mean of equal values is that value to the last bit.
  const mean = known[0] + known.reduce((sum, v) => sum + (v - known[0]), 0) / n;
  const squares = known.reduce((sum, v) => sum + (v - mean) ** 2, 0);
  return { mean, margin: n > 1 ? (studentsT(n - 1) * Math.sqrt(squares / (n - 1))) / Math.sqrt(n) : null, n, of: values.length };
}

const isSeedKey = (key) => key.split('.').pop() === 'seed';
/** Runs that differ in their seeds alone, in the order of their first ones. */
function bySeed(list) {
  const groups = new Map();
  for (const run of list) {
    const place = (run.point || []).filter(([key]) => !isSeedKey(key)).map(([key, v]) => `${key} ${showValue(v)}`);
    const key = [schemeOf(run) === undefined ? run.label : '', ...place].join('\n');
    if (!groups.has(key)) groups.set(key, { run, runs: [] });
    groups.get(key).runs.push(run);
  }
  return [...groups.values()];
}
const seedGroups = bySeed(runs.filter((run) => run.summary));
/** What a group of runs is called, without the seed. */
const groupTitle = (g) => [nameOf(g.run), ...(axes.length && schemeOf(g.run) !== undefined ? coordinatesOf(g.run, axes.filter((key) => !slice.get(key))) : [])].join(', ');
const severalSeeds = seeds.size > 1 && seedGroups.some((g) => g.runs.length > 1);

/** A mean and, behind ±, its margin: empty of one value alone, and where all agree. */
function within(kind, m) {
  if (!m) return [DASH, ''];
  const count = m.n < m.of ? ` (${m.n} of ${m.of})` : '';
  if (!m.margin) return [show(kind, m.mean) + count, ''];
  const [shown, margin] = withMargin(kind, m.mean, m.margin);
  return [shown, margin + count];
}
/** The same in one line. */
const withinWords = (kind, m) => within(kind, m).filter(Boolean).join(' ');
