// Collective operations over time: what each rank sent in each step.

// --- collectives

const collectives = { run: '', number: '' };
keepInAddress('collectives', collectives, { run: 'text', number: 'text' });

/** The flows of an operation as bars: which rank, which of its steps, from when to when. */
function barsOfCollective(c, end) {
  const steps = new Map();
  return c.start_ns.map((start, i) => {
    const step = (steps.get(c.src[i]) || 0) + 1; // a rank's flows are listed in the order of their starts
    steps.set(c.src[i], step);
    return { rank: c.src[i], to: c.dst[i], step, start, end: c.end_ns[i] ?? end, open: c.end_ns[i] == null };
  });
}

function drawCollectives(body, id) {
  const again = () => redraws.find((r) => r.id === id).go();
  const members = shownRuns((r) => some(r.collectives));
  if (!members.length) { body.append(el('p', { class: 'none' }, 'No collective operations here.')); return; }
  const count = largest(members.map((r) => r.collectives.length));
  const name = (c) => `${c.job || 'operation'} ${c.number + 1}`;
  const listed = members.find((r) => r.collectives.length === count).collectives;
  const windows = [...Array(Math.min(count, 400)).keys()];
  if (collectives.number !== 'all' && !windows.some((i) => String(i) === collectives.number)) collectives.number = count > 1 ? 'all' : '0';
  if (collectives.run !== 'all' && !members.some((r) => String(r.index) === collectives.run)) collectives.run = members.length > 3 ? String(members[0].index) : 'all';
  const tools = el('div', { class: 'tools' });
  if (members.length > 1) tools.append(select('Run', [['all', 'all runs'], ...members.map((r) => [String(r.index), fullNameOf(r)])], collectives.run, (v) => { collectives.run = v; again(); }, 'collectives-run'));
  if (count > 1) tools.append(select('Operation', [['all', `all ${count}`], ...windows.map((i) => [String(i), name(listed[i])])], collectives.number, (v) => { collectives.number = v; again(); }, 'collectives-number'));
  body.append(tools);
  const left = members.filter((r) => collectives.run === 'all' || String(r.index) === collectives.run);
  const cut = left.find((r) => r.collective_count > r.collectives.length);
  if (cut) body.append(el('p', { class: 'lead' }, `The first ${grouped(cut.collectives.length)} of ${grouped(cut.collective_count)} operations; flows.parquet has all.`));
  const grid = panels(Math.min(2, left.length));
  body.append(grid);
  for (const run of left) {
    const chosen = collectives.number === 'all' ? run.collectives : run.collectives.slice(+collectives.number, +collectives.number + 1);
    const box = pictureBox();
    const last = largest([...run.collectives.flatMap((c) => c.end_ns.map((v, i) => v ?? c.start_ns[i])), run.summary?.end_ns || 0]);
    const bars = chosen.map((c) => ({ c, bars: barsOfCollective(c, last) }));
    const flat = bars.flatMap(({ c, bars: list }) => list.map((b) => ({ ...b, c })));
    if (!flat.length) { grid.append(el('div', { class: 'panel' }, el('h3', {}, titleOf(run)), el('p', { class: 'none' }, 'It did not begin in this run.'))); continue; }
    const span = [smallest(flat.map((b) => b.start)), largest(flat.map((b) => b.end))];
    const ranks = [...new Set(flat.map((b) => b.rank))].sort((a, b) => a - b);
    const place = new Map(ranks.map((rank, i) => [rank, i]));
    const steps = largest(flat.map((b) => b.step));
    const t = unitFor('ns', span[1]);
    const high = Math.max(4, Math.min(20, 420 / ranks.length));
    grid.append(el('div', { class: 'panel', 'data-testid': 'collective-panel' }, el('header', {}, el('h3', {}, titleOf(run)),
      el('p', {}, [`${show('ns', span[1] - span[0])} for ${plural(flat.length, 'flow')} of ${plural(ranks.length, 'rank')}`, failureWords(run)].filter(Boolean).join(' · '))), box));
    const word = (rank) => `host ${rank}`;
    const frame = (width) => {
      const start = Math.max(...ranks.map((rank) => widthOf(word(rank), 11))) + 12;
      const [right, top] = [width - 8, failuresOf(run).length ? 36 : 22]; // words of failures stand over the rows
      const X = (ns) => start + ((ns - span[0]) / Math.max(1, span[1] - span[0])) * (right - start);
      return { start, right, top, X, bottom: top + ranks.length * high };
    };
    later(box, () => chart(box, {
      section: id, title: `${run.label}: steps of ${collectives.number === 'all' ? 'collective operations' : name(chosen[0])}`, label: `${plural(flat.length, 'flow')} of ${plural(ranks.length, 'rank')}.`,
      make: (width) => {
        const { start, right, top, X, bottom } = frame(width);
        const { background, labels } = failureShapes(failureMarks(run, 1), X, [start, right], top - 16, bottom - top + 16);
        const shapes = [...rampShapes(start, 2, right - start, 'step 1', steps > 1 ? `step ${steps}` : ''), ...background];
        const every = Math.ceil(13 / high);
        ranks.forEach((rank, i) => {
          if (i % every === 0) shapes.push({ text: word(rank), at: [start - 6, top + i * high + high / 2 + 4], fill: theme.ink, size: 11, anchor: 'end' });
          shapes.push({ line: [[start, top + (i + 1) * high], [right, top + (i + 1) * high]], stroke: theme.grid });
        });
        for (const b of flat) {
          const x = X(b.start);
          const wide = Math.max(1, X(b.end) - x);
          shapes.push({ rect: [x, top + place.get(b.rank) * high + 1, wide, high - 2], fill: ramp(0.2 + (0.8 * (b.step - 1)) / Math.max(1, steps - 1)), ...(wide > 3 ? { stroke: theme.card, width: 0.7 } : {}) });
          if (b.open) shapes.push({ line: [[X(b.end) - 3, top + place.get(b.rank) * high + 1], [X(b.end) - 3, top + (place.get(b.rank) + 1) * high - 1]], stroke: theme.bad, width: 2 });
        }
        // Where one operation ends and the next begins.
        for (const { bars: list } of bars.slice(1)) { const x = X(smallest(list.map((b) => b.start))); shapes.push({ line: [[x, top], [x, bottom]], stroke: theme.ink, dash: [2, 3] }); }
        shapes.push(...labels, ...timeAxis(span, t.div, t.unit, X, [start, right], bottom));
        return { width, height: bottom + 42, shapes, count: flat.length };
      },
      read: (x, y, width) => {
        const { start, right, top, bottom } = frame(width);
        if (x < start || x > right || y < top || y >= bottom) return null;
        const ns = span[0] + ((x - start) / (right - start)) * (span[1] - span[0]);
        const rank = ranks[Math.floor((y - top) / high)];
        const slack = ((span[1] - span[0]) / (right - start)) * 2;
        const here = flat.filter((b) => b.rank === rank && b.start - slack <= ns && ns <= b.end + slack);
        if (!here.length) return [word(rank), `sends nothing at ${show('ns', ns)}`];
        return [`${name(here[0].c)}, ${word(rank)}`, ...here.slice(0, 4).map((b) => `step ${b.step} to host ${b.to}: ${show('ns', b.start)} to ${b.open ? 'the end, unfinished' : show('ns', b.end)}, ${show('ns', b.end - b.start)}`)];
      },
      rows: () => [['job', 'operation', 'rank', 'to', 'step', 'start (ns)', 'end (ns)'], ...flat.map((b) => [b.c.job, b.c.number + 1, b.rank, b.to, b.step, b.start, b.open ? null : b.end])],
    }));
  }
}
