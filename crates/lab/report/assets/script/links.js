// Totals of links, and pauses.

// --- pauses

function drawPauses(body) {
  const rows = shownRuns((r) => net('pfc_pauses')(r) > 0).flatMap((r) => Object.entries(net('pfc_pauses_by_tier')(r) || {})
    .filter(([, pauses]) => pauses > 0)
    .map(([tier, pauses]) => ({ r, tier, pauses, ns: (net('pfc_pause_ns_by_tier')(r) || {})[tier] ?? null })));
  if (!rows.length) { body.append(el('p', { class: 'none' }, 'No port was paused here.')); return; }
  const columns = [
    { key: 'run', label: 'run', name: true, get: (row) => fullNameOf(row.r) },
    { key: 'tier', label: 'class of ports', get: (row) => row.tier },
    { key: 'pauses', label: 'pauses', kind: 'count', get: (row) => row.pauses },
    { key: 'ns', label: 'paused together', kind: 'ns', get: (row) => row.ns },
    { key: 'mean', label: 'mean pause', kind: 'ns', get: (row) => (row.ns == null ? null : row.ns / row.pauses) },
  ];
  body.append(scroller('', table(columns, rows, { testid: 'pauses-table', caption: 'Pauses by class of ports' }).node));
}

// --- links

const links = { run: '', text: '' };
keepInAddress('links', links, { run: 'text', text: 'text' });
function drawLinks(body, id) {
  const members = shownRuns((r) => some(r.links));
  if (!members.length) { body.append(el('p', { class: 'none' }, 'No links were counted here.')); return; }
  if (links.run !== 'all' && !members.some((r) => String(r.index) === links.run)) links.run = String(members[0].index);
  const rows = members.filter((r) => links.run === 'all' || String(r.index) === links.run).flatMap((r) => r.links.map((link) => ({ r, link })));
  const of = (key) => (row) => row.link[key] ?? null;
  const columns = [
    ...(links.run === 'all' ? [{ key: 'run', label: 'run', get: (row) => fullNameOf(row.r) }] : []),
    { key: 'name', label: 'link', name: true, get: of('name') },
    { key: 'class', label: 'class', get: of('class') },
    { key: 'utilisation', label: 'utilisation', kind: 'share', get: of('utilisation'), cell: ({ link }) => {
      const bar = el('i');
      bar.style.width = `${Math.max(0, Math.min(1, link.utilisation || 0)) * 100}%`;
      return [el('span', { class: 'meter', 'aria-hidden': 'true' }, bar), el('span', { class: 'percent' }, link.utilisation == null ? DASH : `${(link.utilisation * 100).toFixed(1)}${NBSP}%`)];
    } },
    { key: 'packets', label: 'packets', kind: 'count', get: of('packets') },
    { key: 'drops', label: 'drops', kind: 'count', get: of('drops') },
    { key: 'losses', label: 'losses', kind: 'count', title: 'Packets taken by random loss', get: of('losses') },
    ...(rows.some(({ link }) => (link.lost_data ?? 0) !== (link.drops ?? 0) + (link.losses ?? 0)) ? [
      { key: 'lost_data', label: 'data', kind: 'count', title: 'Of both, data packets', get: of('lost_data') },
      { key: 'lost_acks', label: 'acks', kind: 'count', title: 'Of both, acknowledgements', get: of('lost_acks') },
      { key: 'lost_credits', label: 'credits', kind: 'count', title: 'Of both, credits', get: of('lost_credits') },
    ] : []),
    { key: 'marks', label: 'marks', kind: 'count', get: of('marks') },
    { key: 'max_queue_bytes', label: 'max queue', kind: 'bytes', get: of('max_queue_bytes') },
    ...(rows.some(({ link }) => link.pauses > 0) ? [
      { key: 'pauses', label: 'pauses', kind: 'count', title: 'Times that the other end paused it', get: of('pauses') },
      { key: 'pause_ns', label: 'paused', kind: 'ns', get: of('pause_ns') },
    ] : []),
  ];
  const t = table(columns, rows, { testid: 'links-table', sort: { key: 'utilisation', descending: true }, limit: 25, rowsWord: 'link', caption: 'Links' });
  const wanted = () => {
    const words = (links.text || '').toLowerCase().split(/\s+/).filter(Boolean);
    t.refilter(({ link, r }) => words.every((w) => `${link.name} ${link.class} ${fullNameOf(r)}`.toLowerCase().includes(w)));
  };
  const box = el('input', { type: 'search', placeholder: 'Filter by name or class', 'aria-label': 'Filter links', 'data-testid': 'links-filter', value: links.text || '', oninput: () => { links.text = box.value; wanted(); } });
  const tools = el('div', { class: 'tools' });
  if (members.length > 1) tools.append(select('Run', [...members.map((r) => [String(r.index), fullNameOf(r)]), ['all', 'all runs']], links.run, (v) => { links.run = v; redraws.find((x) => x.id === id).go(); }, 'links-run'));
  tools.append(box, t.more);
  t.more.style.margin = '0';
  body.append(tools, scroller('', t.node));
  if (links.text) wanted();
}
