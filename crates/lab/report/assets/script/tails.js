// Slowdowns over all seeds together, and why the slowest flows are slow.

// ---------------------------------------------------------------- tails

/** What is not told: a page of a thousand points would not open. */
function leftOut(body) {
  const count = report.points_left_out || 0;
  if (count) body.append(el('p', { class: 'lead', 'data-testid': 'left-out' }, `Of the first points of the grid; ${plural(count, 'point')} more would make this page too long. `, el('code', {}, 'narrows show'), ' and ', el('code', {}, 'narrows explain'), ' have all of them.'));
}

const runOf = (it) => runs[it.run];
/** The coordinates that the controls leave open, as columns. */
const openAxes = () => axes.filter((key) => !slice.get(key)).map((key) => ({
  key: `axis:${key}`, label: key, kind: 'number',
  get: (it) => { const v = pointOf(runOf(it)).get(key); return coordinate(v)?.n ?? (v === undefined ? null : showValue(v)); },
  cell: (it) => (pointOf(runOf(it)).has(key) ? showValue(pointOf(runOf(it)).get(key)) : DASH),
}));
const namedRun = (it) => el('span', { class: 'runname' }, swatch(() => runColour(runOf(it)), slotDash(runOf(it).slot)), el('span', {}, nameOf(runOf(it))));

// --- slowdowns over all seeds

const FEW_WORDS = `fewer than ${MANY} values, so p99 is the maximum`;

const slowdowns = { cls: '' };
keepInAddress('slowdowns', slowdowns, { cls: 'text' });

function drawPooled(body, id) {
  const here = report.pooled.filter((it) => runOf(it) && inSlice(runOf(it)));
  const classes = [...new Set(here.map((it) => it.class))];
  if (!classes.includes(slowdowns.cls)) slowdowns.cls = '';
  const rows = here.filter((it) => !slowdowns.cls || it.class === slowdowns.cls);
  leftOut(body);
  if (classes.length > 1) {
    body.append(el('div', { class: 'tools' }, choice('Class of flows', [['', 'Both classes'], ...classes.map((cls) => [cls, classWord(cls)])], slowdowns.cls,
      (v) => { slowdowns.cls = v; redraws.find((r) => r.id === id).go(); }, 'pooled-class')));
  }
  if (!rows.length) { body.append(el('p', { class: 'none' }, 'This point is not among them, or has one seed.')); return; }
  const firsts = new Set(rows.map((it) => it.first));
  const over = firsts.size === 1 ? `over ${rows[0].first}’s` : 'over the first scheme’s';
  const numbers = (of, sign, text) => [show('number', of.value), sign ? el('span', { class: 'flag', title: text }, ` ${sign}`, el('span', { class: 'visually-hidden' }, ` ${text}`)) : null,
    el('div', { class: 'margin' }, `${show('number', of.low)} to ${show('number', of.high)}`)];
  const quantile = (key, first) => ({ key, label: key, group: 'slowdown', kind: 'number', first, get: (it) => it[key].value, cell: (it) => numbers(it[key], key === 'p99' && it.few ? '?' : '', FEW_WORDS) });
  const ratio = (key, at, first) => ({ key: `ratio_${key}`, label: key, group: over, kind: 'number', first, get: (it) => it.ratios?.[at].of.value ?? null,
    cell: (it) => (it.ratios ? numbers(it.ratios[at].of, it.ratios[at].differs ? '*' : '', 'the interval is without 1') : DASH) });
  const columns = [
    { key: 'scheme', label: axes.length && schemeKey ? schemeKey : 'scheme', name: true, get: (it) => nameOf(runOf(it)), cell: namedRun },
    ...openAxes(),
    { key: 'class', label: 'class', get: (it) => it.class },
    { key: 'seeds', label: 'seeds', kind: 'number', get: (it) => it.seeds, cell: (it) => String(it.seeds) },
    { key: 'flows', label: 'flows', kind: 'number', title: 'Flows that finished, over all seeds', get: (it) => it.flows, cell: (it) => grouped(it.flows) },
    quantile('p50', true), quantile('p99', false), ratio('p50', 0, true), ratio('p99', 1, false),
  ];
  const made = table(columns, rows, { testid: 'pooled-table', caption: 'Slowdowns over all seeds together', limit: rows.length > 30 ? 24 : Infinity, rowsWord: rows.length > 30 ? 'row' : null });
  body.append(scroller('sticky means', made.node), rows.length > 30 ? made.more : '');
  const signs = [];
  if (rows.some((it) => it.ratios?.some((r) => r.differs))) signs.push([el('span', { class: 'flag' }, '*'), ' the interval is without 1: the two schemes differ in more than chance. ']);
  if (rows.some((it) => it.few)) signs.push([el('span', { class: 'flag' }, '?'), ` ${FEW_WORDS}.`]);
  if (signs.length) body.append(el('p', { class: 'lead signs', 'data-testid': 'pooled-signs' }, signs.flat()));
}

// --- the slowest flows

const GROUPS = 24; // schemes and points that are listed before a click
function drawSlowest(body) {
  const groups = report.slowest.filter((it) => runOf(it) && inSlice(runOf(it)));
  leftOut(body);
  if (!groups.length) { body.append(el('p', { class: 'none' }, 'This point is not among them.')); return; }
  const list = el('div', { class: 'slowest' });
  body.append(list);
  const add = (some) => some.forEach((it) => list.append(slowestOf(it)));
  add(groups.slice(0, GROUPS));
  if (groups.length <= GROUPS) return;
  const more = el('p', { class: 'lead' }, `${plural(groups.length, 'entry', 'entries')}, the first ${GROUPS} shown. `,
    el('button', { type: 'button', class: 'plain', 'data-testid': 'slowest-more', onclick: () => { add(groups.slice(GROUPS)); more.remove(); } }, 'Show all'));
  body.append(more);
}

/** A scheme at a point, folded: what its slowest flows have beside typical ones. */
function slowestOf(group) {
  const run = runOf(group);
  const coordinates = schemeOf(run) === undefined ? [] : coordinatesOf(run, axes.filter((key) => !slice.get(key)));
  const seedsWord = group.seeds > 1 ? plural(group.seeds, 'seed') : seedWords(run)[0];
  const slowdownOf = (cls) => cls.traits.find((t) => report.counted[t.counted]?.label === 'slowdown');
  const short = group.classes.map((cls) => {
    const of = slowdownOf(cls);
    return of ? `${show('number', of.slowest)}${of.typical == null ? '' : ` against ${show('number', of.typical)}`} (${cls.class})` : cls.class;
  });
  const inside = el('div', { class: 'inside' });
  const details = el('details', { 'data-testid': 'slowest-group', ontoggle: () => {
    if (details.open && !inside.childElementCount) group.classes.forEach((cls) => inside.append(slowestTables(cls, group.seeds > 1)));
  } }, el('summary', {}, swatch(() => runColour(run), slotDash(run.slot)), el('span', { class: 'who' }, [nameOf(run), ...coordinates].join(', ')),
    el('span', { class: 'dim' }, [seedsWord, short.length ? `slowdown ${short.join(', ')}` : 'no flow ended'].filter(Boolean).join(' · '))), inside);
  return details;
}

function slowestTables(cls, withSeeds) {
  const columns = [
    { key: 'label', label: 'mean of a flow', name: true, get: (t) => report.counted[t.counted]?.label ?? DASH },
    { key: 'slowest', label: 'slowest', kind: 'number', get: (t) => t.slowest, cell: (t) => show(report.counted[t.counted]?.kind, t.slowest) },
    { key: 'typical', label: 'typical', kind: 'number', get: (t) => t.typical, cell: (t) => show(report.counted[t.counted]?.kind, t.typical) },
    { key: 'times', label: 'times', kind: 'number', title: 'The slowest over the typical', get: (t) => (t.typical > 0 ? t.slowest / t.typical : null), cell: (t) => [t.typical > 0 ? show('ratio', t.slowest / t.typical) : DASH,
      el('span', { class: 'flag star', title: t.stands_out ? 'at least twice as much' : null }, t.stands_out ? '*' : '')] },
  ];
  const flows = [
    ...(withSeeds ? [{ key: 'seed', label: 'seed', kind: 'number', get: (f) => f.seed, cell: (f) => String(f.seed) }] : []),
    { key: 'flow', label: 'flow', kind: 'number', get: (f) => f.flow, cell: (f) => String(f.flow) },
    { key: 'hosts', label: 'hosts', get: (f) => `${f.src}${NBSP}to${NBSP}${f.dst}` },
    { key: 'size', label: 'size', kind: 'bytes', get: (f) => f.size_bytes },
    { key: 'start', label: 'started', kind: 'ns', get: (f) => f.start_ns },
    { key: 'fct', label: 'took', kind: 'ns', get: (f) => f.fct_ns },
    { key: 'slowdown', label: 'slowdown', kind: 'ratio', get: (f) => f.slowdown },
    { key: 'marked', label: 'marked', kind: 'share', get: (f) => f.marked_share },
    { key: 'resent', label: 'retransmits', kind: 'share', get: (f) => f.retransmitted_share },
    { key: 'timeouts', label: 'timeouts', kind: 'count', get: (f) => f.timeouts },
    { key: 'quick_adapts', label: 'quick adapts', kind: 'count', title: 'Quick Adapt invocations of its law', get: (f) => f.quick_adapts },
  ];
  const said = [];
  if (cls.unfinished) said.push(`${plural(cls.unfinished, 'flow')} did not end and ${cls.unfinished === 1 ? 'is' : 'are'} in none of this. `);
  if (cls.few) said.push([el('span', { class: 'flag' }, '?'), ` Fewer than ${MANY} flows: the slowest may be slow by chance.`]);
  return el('div', { class: 'of-class' },
    el('h3', {}, `${classWord(cls.class)}: the slowest ${grouped(cls.count)} of ${plural(cls.flows, 'flow')}`, cls.few ? el('span', { class: 'flag' }, ' ?') : null),
    said.length ? el('p', { class: 'lead' }, said.flat()) : null,
    el('div', { class: 'pair' },
      scroller('', table(columns, cls.traits, { testid: 'traits-table', caption: `Slowest and typical flows, ${cls.class}` }).node),
      scroller('', table(flows, cls.listed, { testid: 'slowest-flows', caption: `The slowest flows, ${cls.class}` }).node)));
}
