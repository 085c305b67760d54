// The network, drawn from the links that a run lists: their load, and what failed.

// --- network

const network = { run: '' };
keepInAddress('network', network, { run: 'text' });

const TIERS = ['host', 'edge', 'agg', 'core', 'border', 'relay'];
const endsOf = (name) => { const m = /^([^>]+)>([^>#]+)(?:#\d+)?$/.exec(name); return m && [m[1].trim(), m[2].trim()]; };
const tierOf = (node) => TIERS.indexOf((node.split('.').pop() || '').replace(/\d+$/, ''));
const groupOf = (node) => (node.includes('.') ? node.split('.')[0] : /^host\d+$/.test(node) ? '' : tierOf(node) < 0 && !/^(left|right)$/.test(node) ? '' : node);
const naturally = (a, b) => a.localeCompare(b, 'en', { numeric: true });

/** Nodes and cables of a run: those of the links that it lists, and those that failed. */
function graphOf(run) {
  const cables = new Map(); // by both ends: {a, b, forward: [links], reverse: [links]}
  const add = (name, link) => {
    const ends = endsOf(name);
    if (!ends) return;
    const [a, b] = ends.slice().sort(naturally);
    const key = `${a}>${b}`;
    if (!cables.has(key)) cables.set(key, { a, b, forward: new Map(), reverse: new Map() });
    const side = cables.get(key)[ends[0] === a ? 'forward' : 'reverse'];
    if (link || !side.has(name)) side.set(name, link);
  };
  for (const link of run.links || []) add(link.name, link);
  for (const f of failuresOf(run)) for (const name of f.names) add(name, null);
  const nodes = [...new Set([...cables.values()].flatMap((c) => [c.a, c.b]))].sort(naturally);
  return { nodes, cables: [...cables.values()] };
}

/** Where nodes stand: a column a datacenter, a row a tier; what has no tier stands on a circle. */
function placesOf(nodes, width) {
  const groups = [...new Set(nodes.map(groupOf))].sort(naturally);
  const tiers = TIERS.map((_, i) => i).filter((i) => nodes.some((n) => tierOf(n) === i));
  const plain = nodes.some((n) => tierOf(n) < 0) ? 1 : 0;
  const rows = [...tiers.slice(tiers.includes(0) ? 1 : 0).reverse(), ...(plain ? [-1] : []), ...(tiers.includes(0) ? [0] : [])];
  const top = 62;
  const each = (width - 16) / groups.length;
  const places = new Map();
  let bottom = top;
  groups.forEach((group, g) => {
    rows.forEach((tier, row) => {
      const list = nodes.filter((n) => groupOf(n) === group && tierOf(n) === tier);
      const left = 8 + g * each;
      const circle = tier === -1 && list.length > 3;
      list.forEach((node, i) => {
        const turn = (2 * Math.PI * i) / list.length - Math.PI / 2;
        const radius = Math.min(each / 2 - 60, 130);
        const at = circle ? [left + each / 2 + radius * Math.cos(turn), top + row * 74 + 130 + 120 * Math.sin(turn)] : [left + (each * (i + 0.5)) / list.length, top + row * 74];
        places.set(node, { at, room: circle ? 110 : each / list.length - 6, tier });
        bottom = Math.max(bottom, at[1]);
      });
    });
  });
  return { places, groups, each, bottom };
}

function drawNetwork(body, id) {
  const members = shownRuns((r) => (r.links || []).some((link) => endsOf(link.name)));
  if (!members.length) { body.append(el('p', { class: 'none' }, 'No links were listed here.')); return; }
  if (!members.some((r) => String(r.index) === network.run)) network.run = String(members[0].index);
  const run = members.find((r) => String(r.index) === network.run);
  if (members.length > 1) {
    body.append(el('div', { class: 'tools' }, select('Run', members.map((r) => [String(r.index), fullNameOf(r)]), network.run,
      (v) => { network.run = v; redraws.find((r) => r.id === id).go(); }, 'network-run')));
  }
  const { nodes, cables } = graphOf(run);
  const outages = failuresOf(run);
  const broken = (names) => outages.filter((f) => names.some((name) => f.names.includes(name)));
  const loadOf = (side) => { const known = [...side.values()].filter(Boolean).map((link) => link.utilisation || 0); return known.length ? largest(known) : null; };
  // Colours go up to the busiest link: a run has long pauses, and a share of all of it may be small everywhere.
  const busiest = Math.max(0.001, largest(cables.flatMap((c) => [loadOf(c.forward), loadOf(c.reverse)]).map((load) => load ?? 0)));
  const lines = (width) => {
    const { places } = placesOf(nodes, width);
    return cables.flatMap((c) => {
      const [p, q] = [places.get(c.a).at, places.get(c.b).at];
      const length = Math.hypot(q[0] - p[0], q[1] - p[1]) || 1;
      const [dx, dy] = [(2.2 * (q[1] - p[1])) / length, (-2.2 * (q[0] - p[0])) / length];
      return [[c.forward, 1], [c.reverse, -1]].filter(([side]) => side.size).map(([side, sign]) => ({
        side, from: [p[0] + sign * dx, p[1] + sign * dy], to: [q[0] + sign * dx, q[1] + sign * dy], load: loadOf(side), down: broken([...side.keys()]),
      }));
    });
  };
  const box = pictureBox();
  body.append(box);
  later(box, () => chart(box, {
    section: id, title: `${run.label}: the network`, label: `${plural(nodes.length, 'node')}, ${plural(cables.length, 'cable')}. The table of links has the values.`,
    make: (width) => {
      const { places, groups, each, bottom } = placesOf(nodes, width);
      const shapes = rampShapes(8, 2, Math.min(340, width - 16), 'idle', `${show('share', busiest)} busy`);
      groups.forEach((group, g) => { if (group) shapes.push({ text: fitted(group, each - 8, 12), at: [8 + (g + 0.5) * each, 36], fill: theme.ink2, bold: true, anchor: 'middle' }); });
      const all = lines(width).sort((a, b) => (a.load ?? -1) - (b.load ?? -1));
      for (const l of all) {
        if (l.load != null) shapes.push({ line: [l.from, l.to], stroke: ramp(0.14 + (0.86 * l.load) / busiest), width: 2.6 });
        else shapes.push({ line: [l.from, l.to], stroke: theme.line, width: 1.5 });
      }
      for (const l of all.filter((one) => one.down.length)) {
        const [x, y] = [(l.from[0] + l.to[0]) / 2, (l.from[1] + l.to[1]) / 2];
        shapes.push({ line: [l.from, l.to], stroke: theme.bad, width: 1.4, dash: [5, 4] });
        shapes.push({ line: [[x - 5, y - 5], [x + 5, y + 5], null, [x - 5, y + 5], [x + 5, y - 5]], stroke: theme.bad, width: 2.2 });
      }
      for (const [node, { at, room, tier }] of places) {
        shapes.push({ dot: [at[0], at[1], tier === 0 ? 3.5 : 6], fill: theme.ink2, stroke: theme.card, width: 1.5 });
        const word = node.startsWith(`${groupOf(node)}.`) ? node.slice(groupOf(node).length + 1) : node;
        // Above, but for hosts: cables go down from most nodes.
        const wide = widthOf(word, 11);
        if (word === groupOf(node) || wide > room) continue;
        // On a ground of its own: cables cross words.
        shapes.push({ rect: [at[0] - wide / 2 - 2, at[1] + (tier === 0 ? 8 : -21), wide + 4, 13], fill: theme.card, alpha: 0.85 });
        shapes.push({ text: word, at: [at[0], at[1] + (tier === 0 ? 18 : -11)], fill: theme.ink, size: 11, anchor: 'middle' });
      }
      return { width, height: bottom + 28, shapes, count: all.length };
    },
    read: (x, y, width) => {
      let near = null;
      for (const l of lines(width)) {
        const [vx, vy] = [l.to[0] - l.from[0], l.to[1] - l.from[1]];
        const along = Math.max(0, Math.min(1, ((x - l.from[0]) * vx + (y - l.from[1]) * vy) / (vx * vx + vy * vy || 1)));
        const far = Math.hypot(x - l.from[0] - along * vx, y - l.from[1] - along * vy);
        if (far < 8 && (!near || far < near.far)) near = { l, far };
      }
      if (!near) return null;
      const names = [...near.l.side.keys()];
      const first = [...near.l.side].filter(([, link]) => link).sort((a, b) => b[1].utilisation - a[1].utilisation)[0];
      return [names.length > 1 ? `${names[0].replace(/#\d+$/, '')}, ${names.length} links` : names[0],
        first ? `${names.length > 1 ? `busiest ${/#\d+$/.exec(first[0]) || ''}: ` : ''}${show('share', first[1].utilisation)} busy` : 'not among the listed links',
        ...near.l.down.slice(0, 3).map((f) => `${f.names.filter((name) => names.includes(name)).slice(0, 3).join(', ')} down ${whenDown(f)}`)];
    },
    rows: () => [['from', 'to', 'link', 'utilisation', 'down from (ns)', 'up again (ns)'], ...cables.flatMap((c) => [[c.a, c.b, c.forward], [c.b, c.a, c.reverse]])
      .flatMap(([a, b, side]) => [...side].flatMap(([name, link]) => {
        const down = broken([name]);
        return (down.length ? down : [null]).map((f) => [a, b, name, link ? link.utilisation : null, f && f.from, f && f.until]);
      }))],
  }));
  if (outages.length) {
    const limit = 12;
    body.append(el('ul', { class: 'outages', 'data-testid': 'outages' },
      outages.slice(0, limit).map((f) => el('li', {}, `${namesDown(f)} ${whenDown(f)}`)),
      outages.length > limit ? el('li', {}, `and ${plural(outages.length - limit, 'outage')} more`) : null));
  }
}
