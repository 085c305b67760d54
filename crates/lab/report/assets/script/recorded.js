// The page of all recorded claims: a search, three filters and a table.

// No picture is drawn here; the theme and the sections of reports expect these.
const plots = [];
const charts = [];
const clearPlots = () => {};
const hook = { ready: false };
window.narrowsReport = hook;

const claims = report.claims || [];
const LIMIT = 100;

// ---------------------------------------------------------------- search and filters

const filters = { text: '', paper: '', scale: '', verdict: '' };
keepInAddress('claims', filters, { text: 'text', paper: 'text', scale: 'text', verdict: 'text' });

/** What a search finds a claim by. */
const searchTextOf = (c) => [
  c.paper, c.figure, c.in_paper, c.id, c.text, c.paper_value, c.measured, c.scale, c.scaled, c.verdict, c.note,
  ...c.causes.flatMap((cause) => [cause.id, cause.text, cause.change, cause.measured, cause.outcome]),
].join('\n').toLowerCase();
const searched = claims.map(searchTextOf);
claims.forEach((c, i) => { c.index = i; });

/** Whether a claim has all words of the search, and the chosen paper, scale and verdict. */
function matches(c) {
  const words = (filters.text || '').toLowerCase().split(/\s+/).filter(Boolean);
  return ['paper', 'scale', 'verdict'].every((key) => !filters[key] || c[key] === filters[key])
    && words.every((word) => searched[c.index].includes(word));
}

// ---------------------------------------------------------------- cells

function causesOf(c) {
  if (!c.causes.length) return DASH;
  const order = ['shown', 'in part', 'undecided', 'refuted'];
  const best = order.find((outcome) => c.causes.some((cause) => cause.outcome === outcome)) || c.causes[0].outcome;
  const one = (cause) => el('div', { class: 'note' }, el('b', {}, cause.outcome),
    cause.removed_percent ? `, ${cause.removed_percent}${NBSP}% of the shortfall removed` : '', `: ${cause.text}. With `,
    el('code', {}, cause.change), ` measured ${cause.measured || 'nothing'}.`);
  return el('details', {}, el('summary', {}, `${best} (${plural(c.causes.length, 'cause')})`), c.causes.map(one));
}

const COLUMNS = [
  { key: 'paper', label: 'paper', get: (c) => c.paper },
  { key: 'figure', label: 'figure', get: (c) => c.figure, cell: (c) => [el('div', {}, c.figure), c.in_paper ? el('div', { class: 'note' }, c.in_paper) : null] },
  { key: 'text', label: 'claim', get: (c) => c.text, cell: (c) => [el('div', {}, c.text), el('code', {}, c.id), c.note ? el('div', { class: 'note' }, c.note) : null] },
  { key: 'paper_value', label: 'paper’s value', get: (c) => c.paper_value || null },
  { key: 'measured', label: 'measured', get: (c) => c.measured || null },
  { key: 'scale', label: 'scale', get: (c) => c.scale, cell: (c) => [el('div', {}, c.scale), c.scaled ? el('div', { class: 'note' }, c.scaled) : null] },
  { key: 'seeds', label: 'seeds', get: (c) => c.seeds },
  { key: 'verdict', label: 'verdict', get: (c) => Object.keys(VERDICTS).indexOf(c.verdict), cell: (c) => chip(c.verdict) },
  { key: 'cause', label: 'suspected causes', get: (c) => (c.causes.length ? c.causes[0].outcome : null), cell: causesOf },
];

// ---------------------------------------------------------------- the page

function drawTop() {
  document.getElementById('top').append(
    el('h1', { 'data-testid': 'title' }, page.title),
    el('p', { class: 'subtitle' }, 'Claims of the papers’ figures, with the value that each paper states and the measured one: a mean over seeds with its 95\u00a0% interval.'),
    el('ul', { class: 'facts' }, [
      plural(new Set(claims.map((c) => c.paper)).size, 'paper'),
      plural(new Set(claims.map((c) => `${c.paper}/${c.figure}`)).size, 'figure'),
      plural(new Set(claims.map((c) => `${c.paper}/${c.figure}/${c.id}`)).size, 'claim'),
      plural(claims.length, 'verdict'),
      report.generated_by,
    ].filter(Boolean).map((text) => el('li', {}, el('b', {}, text)))),
  );
  document.getElementById('bar').append(el('div', {}, el('div', { class: 'push' }, themeButtons())));
  document.getElementById('provenance').append(el('p', {}, 'This file loads nothing from elsewhere. The address holds the search and the filters.'));
}

function drawRecorded() {
  const body = bodyOf('recorded');
  const made = table(COLUMNS, claims, { testid: 'recorded-table', caption: 'Recorded claims', limit: LIMIT, rowsWord: 'verdict' });
  const inOrder = (key, order) => [...new Set(claims.map((c) => c[key]))].sort((a, b) => order.indexOf(a) - order.indexOf(b) || a.localeCompare(b, 'en'));
  const list = (key, label, order) => select(label, [['', 'all'], ...inOrder(key, order).map((v) => [v, v])], filters[key], (value) => { filters[key] = value; show(); }, `filter-${key}`);
  const counts = el('div', { class: 'tools', 'data-testid': 'counts', 'aria-live': 'polite' });
  const search = el('input', { type: 'search', placeholder: 'Words of a claim, a figure, a value', 'aria-label': 'Search claims', 'data-testid': 'search', oninput: () => { filters.text = search.value; show(); } });
  const lists = { paper: list('paper', 'Paper', []), scale: list('scale', 'Scale', ['quick', 'paper']), verdict: list('verdict', 'Verdict', Object.keys(VERDICTS)) };
  function show() {
    made.refilter(matches);
    const found = claims.filter(matches);
    const chips = Object.keys(VERDICTS).map((verdict) => [verdict, found.filter((c) => c.verdict === verdict).length]).filter(([, n]) => n);
    counts.replaceChildren(...(chips.length ? chips.map(([verdict, n]) => chip(verdict, `${n} ${verdict}`)) : ['No claim has all of these.']));
  }
  redraws.push({
    id: 'recorded',
    go: () => {
      search.value = filters.text || '';
      for (const [key, label] of Object.entries(lists)) label.querySelector('select').value = filters[key] || '';
      show();
    },
  });
  body.append(el('div', { class: 'tools' }, search, Object.values(lists)), counts, made.more, scroller('claims', made.node));
  show();
}

attempt(document.getElementById('top'), drawTop);
attempt(bodyOf('recorded'), drawRecorded);
followAddress();
wake();
