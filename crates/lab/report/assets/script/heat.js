// Sampled ports over time, as a heat map: a row a port.

// --- heat map

const heat = { log: false };
keepInAddress('heat', heat, { log: 'flag' });
/** So many ports have a row: of more the fullest. */
const HEAT_ROWS = 48;

function drawHeat(body, id) {
  const again = () => redraws.find((r) => r.id === id).go();
  const members = shownRuns((r) => r.queues && some(r.queues.time_ns) && r.queues.ports.length > 1);
  if (!members.length) { body.append(el('p', { class: 'none' }, 'No queues of several ports were sampled here.')); return; }
  const heights = new Map();
  for (const run of members) for (const p of run.queues.ports) heights.set(p.name, Math.max(heights.get(p.name) || 0, largestOrZero(p.queue_bytes)));
  const fullest = new Set([...heights.keys()].sort((a, b) => heights.get(b) - heights.get(a)).slice(0, HEAT_ROWS));
  const peak = Math.max(1, largest([...heights.values()]));
  const span = overlap(members.map((r) => [r.queues.time_ns[0], lastOf(r.queues.time_ns)]));
  const t = unitFor('ns', span[1]);
  // On a logarithmic scale what is under a thousandth of the longest queue is as good as empty.
  const shareOf = (bytes) => (heat.log ? (bytes <= peak / 1000 ? 0 : 1 + Math.log10(bytes / peak) / 3) : bytes / peak);
  body.append(el('div', { class: 'tools' }, el('label', { class: 'field' }, 'colours',
    choice('Scale of colours', [['lin', 'Linear'], ['log', 'Log']], heat.log ? 'log' : 'lin', (v) => { heat.log = v === 'log'; again(); }, 'heat-scale'))));
  if (heights.size > HEAT_ROWS) body.append(el('p', { class: 'lead' }, `The ${HEAT_ROWS} fullest of ${heights.size} ports.`));
  const grid = panels(Math.min(2, members.length));
  body.append(grid);
  for (const run of members) {
    const { time_ns: time, ports } = run.queues;
    const rows = ports.filter((p) => fullest.has(p.name));
    const high = Math.max(9, Math.min(20, 420 / rows.length));
    const box = pictureBox();
    grid.append(el('div', { class: 'panel', 'data-testid': 'heat-panel' }, el('header', {}, el('h3', {}, titleOf(run)), el('p', {}, failureWords(run))), box));
    const frame = (width) => {
      const names = Math.min(width * 0.36, Math.max(...rows.map((p) => widthOf(p.name, 11))) + 8);
      const [left, right, top] = [names, width - 8, 22];
      const X = (ns) => left + ((ns - span[0]) / Math.max(1, span[1] - span[0])) * (right - left);
      return { left, right, top, X, bottom: top + rows.length * high };
    };
    later(box, () => chart(box, {
      section: id, title: `${run.label}: queues of ports over time`, label: `${plural(rows.length, 'port')} from ${show('ns', span[0])} to ${show('ns', span[1])}.`,
      make: (width) => {
        const { left, right, top, X, bottom } = frame(width);
        const shapes = rampShapes(left, 2, right - left, heat.log ? `up to ${show('bytes', peak / 1000)}` : '0 B', show('bytes', peak));
        const cells = Math.max(1, Math.min(time.length, Math.floor((right - left) / 2)));
        rows.forEach((p, i) => {
          const y = top + i * high;
          shapes.push({ text: fitted(p.name, left - 8, 11), at: [left - 6, y + high / 2 + 4], fill: theme.ink, size: 11, anchor: 'end' });
          for (let c = 0; c < cells; c++) { // of each cell the longest queue
            const [a, b] = [Math.floor((c * time.length) / cells), Math.floor(((c + 1) * time.length) / cells)];
            const x = X(time[a]);
            const end = b < time.length ? X(time[b]) : Math.max(x + 1, X(time[time.length - 1]));
            const longest = largestOrZero(p.queue_bytes.slice(a, Math.max(b, a + 1)));
            shapes.push({ rect: [x, y, end - x + 0.3, high - 1], fill: ramp(shareOf(longest)) });
          }
          for (const f of failuresOf(run).filter((one) => one.names.includes(p.name))) {
            const [from, until] = [Math.max(left, X(f.from)), Math.min(right, f.until == null ? right : X(f.until))];
            if (until > from) shapes.push({ rect: [from, y, until - from, high - 1], stroke: theme.bad, width: 1.5 });
          }
        });
        for (const f of failuresOf(run)) if (f.from >= span[0] && f.from <= span[1]) shapes.push({ line: [[X(f.from), top], [X(f.from), bottom]], stroke: theme.bad, width: 1 });
        shapes.push(...timeAxis(span, t.div, t.unit, X, [left, right], bottom));
        return { width, height: bottom + 42, shapes, count: rows.length * cells };
      },
      read: (x, y, width) => {
        const { left, right, top, bottom } = frame(width);
        if (x < left || x > right || y < top || y >= bottom) return null;
        const ns = span[0] + ((x - left) / (right - left)) * (span[1] - span[0]);
        const at = Math.min(time.length - 1, Math.max(0, time.findIndex((v) => v > ns) < 0 ? time.length - 1 : time.findIndex((v) => v > ns) - 1));
        const p = rows[Math.floor((y - top) / high)];
        return [p.name, `${show('bytes', p.queue_bytes[at])} at ${show('ns', time[at])}`, ...failuresOf(run).filter((f) => f.from <= ns && (f.until == null || ns < f.until)).slice(0, 2).map(namesDown)];
      },
      rows: () => [['time (ns)', ...rows.map((p) => `${p.name} (bytes)`)], ...time.map((ns, i) => [ns, ...rows.map((p) => p.queue_bytes[i])])],
    }));
  }
}
