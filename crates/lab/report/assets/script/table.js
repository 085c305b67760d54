// Tables that sort by the heads of their columns.

// ---------------------------------------------------------------- tables

/** A table in a box of its own that scrolls sideways, by keys, too. */
const scroller = (cls, node) => el('div', { class: `scroll ${cls}`.trim(), tabindex: '0', role: 'region', 'aria-label': node.caption?.textContent || 'Table' }, node);

/**
 * A table that sorts by its column heads.
 * columns = [{key, label, group, kind, get(row), cell(row), best: 'low'|'high', first, name, words}]; `words` stand on the left, numbers on
 * the right
 */
function table(columns, rows, options) {
  const o = options || {};
  const isNumber = (c) => c.kind && !c.name && !c.words;
  const thead = el('thead');
  const groups = columns.some((c) => c.group);
  if (groups) {
    const line = el('tr', { class: 'groups' });
    for (let i = 0; i < columns.length;) {
      let j = i + 1;
      while (columns[i].group && j < columns.length && columns[j].group === columns[i].group) j++;
      const text = columns[i].group || '';
      line.append(el('th', { colspan: j - i, scope: text ? 'colgroup' : null, class: [text ? 'span' : '', columns[i].first ? 'first' : ''].join(' ').trim() },
        text ? el('span', {}, text) : null));
      i = j;
    }
    thead.append(line);
  }
  const heads = el('tr');
  thead.append(heads);
  const tbody = el('tbody');
  let sortKey = o.sort ? o.sort.key : null;
  let descending = o.sort ? o.sort.descending : false;
  let limit = o.limit || Infinity;

  for (const c of columns) {
    c.th = el('th', { scope: 'col', class: [isNumber(c) ? 'n' : '', c.first ? 'first' : ''].join(' ').trim() },
      el('button', {
        type: 'button', title: c.title || null, 'data-key': c.key,
        onclick: () => {
          if (sortKey === c.key) descending = !descending;
          else { sortKey = c.key; descending = !!c.kind && c.best !== 'low'; }
          fill();
        },
      }, c.label));
    heads.append(c.th);
  }
  for (const c of columns) {
    if (!c.best) continue;
    // Best among the rows that may be compared: those of one point of a grid.
    const peers = new Map();
    for (const row of rows) {
      const v = c.get(row);
      if (v == null || !Number.isFinite(v) || (c.unfit && c.unfit(row))) continue;
      const key = o.peers ? o.peers(row) : '';
      if (!peers.has(key)) peers.set(key, []);
      peers.get(key).push(v);
    }
    c.bests = new Map([...peers].filter(([, v]) => smallest(v) !== largest(v))
      .map(([key, v]) => [key, c.best === 'low' ? smallest(v) : largest(v)]));
  }

  const node = el('table', { 'data-testid': o.testid }, o.caption ? el('caption', { class: 'visually-hidden' }, o.caption) : null, thead, tbody);
  const more = el('p', { class: 'lead' });
  let filter = () => true;

  function fill() {
    for (const c of columns) {
      if (c.key === sortKey) c.th.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
      else c.th.removeAttribute('aria-sort');
    }
    let shown = rows.filter(filter);
    const column = columns.find((c) => c.key === sortKey);
    if (column) {
      const sign = descending ? -1 : 1;
      shown = shown.map((row, i) => [column.get(row), i, row]).sort((a, b) => {
        const [x, y] = [a[0], b[0]];
        const gone = (x == null) - (y == null); // what has no value stays last
        if (gone || x == null) return gone || a[1] - b[1];
        const by = typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y), 'en', { numeric: true });
        return sign * by || a[1] - b[1];
      }).map((t) => t[2]);
    }
    const total = shown.length;
    tbody.replaceChildren();
    for (const row of shown.slice(0, limit)) tbody.append(el('tr', {}, columns.map((c) => {
      const value = c.get(row);
      const best = !!c.bests && value != null && value === c.bests.get(o.peers ? o.peers(row) : '') && !(c.unfit && c.unfit(row));
      const extra = c.flag ? c.flag(row) : '';
      const classes = [isNumber(c) ? 'n' : '', c.first ? 'first' : '', best ? 'best' : '', c.name ? 'name' : '', extra].filter(Boolean).join(' ');
      return el(c.name ? 'th' : 'td', { class: classes || null, scope: c.name ? 'row' : null, title: c.kind && !c.name ? [exact(c.kind, value), best ? '(best)' : ''].filter(Boolean).join(' ') || null : null },
        c.cell ? c.cell(row) : c.kind ? show(c.kind, value) : value ?? DASH);
    })));
    if (o.rowsWord) {
      more.replaceChildren(total > limit ? `${plural(total, o.rowsWord)}, the first ${limit} shown. ` : plural(total, o.rowsWord),
        total > limit ? el('button', { type: 'button', class: 'plain', onclick: () => { limit = Infinity; fill(); } }, 'Show all') : '');
    }
  }
  fill();
  return { node, more, refilter: (f) => { filter = f; fill(); } };
}
