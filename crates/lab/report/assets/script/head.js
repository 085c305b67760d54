// What frames the page: its top, bar and foot, warnings, the scenario and the commands.

// ---------------------------------------------------------------- header, bar, footer

function drawHeader() {
  const header = document.getElementById('top');
  const facts = [];
  const fact = (name, value) => facts.push(el('li', {}, name ? `${name} ` : '', el('b', {}, value)));
  if (runs.length) fact('', plural(runs.length, 'run'));
  if (report.scale) fact('scale', report.scale);
  const hosts = [...new Set(runs.map((r) => r.summary?.backend).filter(Boolean))];
  if (hosts.length) fact('run by', hosts.map((h) => ({ simulator: 'the simulator', emulator: 'the emulator, with real packets', virtual: 'the transport in virtual time' }[h] || h)).join(' and '));
  const seeds = [...new Set(runs.map((r) => r.summary?.seed).filter((s) => s != null))];
  if (seeds.length) fact(seeds.length === 1 ? 'seed' : 'seeds', seeds.length <= 4 ? seeds.join(', ') : String(seeds.length));
  const names = [...new Set(runs.map((r) => r.summary?.scenario).filter(Boolean))];
  if (names.length === 1 && names[0] !== report.name) fact('scenario', names[0]);
  if (report.generated_by) fact('', report.generated_by);
  header.append(el('h1', { 'data-testid': 'title' }, page.title || document.title));
  if (report.subtitle) header.append(el('p', { class: 'subtitle' }, report.subtitle));
  if (report.paper) header.append(el('p', { class: 'subtitle', 'data-testid': 'paper' }, 'Of ', el('cite', {}, report.paper)));
  if (facts.length) header.append(el('ul', { class: 'facts' }, facts));
}

function drawBar() {
  const links = [...document.querySelectorAll('main > section')].map((s) =>
    el('a', { href: `#${s.id}`, onclick: (event) => { event.preventDefault(); address.at = s.id; s.scrollIntoView(); } }, { warnings: 'Warnings', sweep: 'Grid', distributions: 'Completion times', sizes: 'Sizes', rates: 'Rates', queues: 'Queues', heat: 'Heat map', buffers: 'Buffers', pauses: 'Pauses', traces: 'Laws', collectives: 'Collectives', network: 'Network', claims: 'Claims', averages: 'Averages', pooled: 'Slowdowns', slowest: 'Slowest flows', scenario: 'Scenario' }[s.id] || s.querySelector('h2').textContent));
  const inner = el('div', {}, el('div', { class: 'links' }, links));
  for (const key of axes) {
    const options = valuesOf(key).map((v) => [showValue(v), showValue(v)]);
    inner.append(select(key, [['', 'all'], ...options], slice.get(key), (value) => {
      slice.set(key, value);
      for (const r of redraws) if (r.id !== 'results') r.go();
    }, `slice-${key}`));
  }
  inner.append(el('div', { class: 'push' }, themeButtons()));
  document.getElementById('bar').append(inner);
}

function drawFooter() {
  const footer = document.getElementById('provenance');
  if (report.generated_by) footer.append(el('p', {}, `Written by ${report.generated_by}. This file loads nothing from elsewhere.`));
  const engines = runs.filter((r) => r.summary?.engine);
  if (!engines.length) return;
  const engine = (key) => (r) => r.summary.engine[key] ?? null;
  const columns = [
    { key: 'run', label: 'run', name: true, get: fullNameOf },
    { key: 'backend', label: 'backend', get: (r) => (r.summary.emulator ? `${r.summary.backend}, ${r.summary.emulator.validity ?? 'sound'}` : r.summary.backend ?? null) },
    { key: 'seed', label: 'seed', kind: 'number', get: seedOf, cell: (r) => String(seedOf(r) ?? DASH) },
    { key: 'events', label: 'events', kind: 'count', get: engine('events') },
    { key: 'wall', label: 'wall clock', kind: 'ns', get: (r) => (r.summary.engine.wall_s == null ? null : r.summary.engine.wall_s * 1e9) },
    { key: 'threads', label: 'threads', kind: 'count', get: engine('threads') },
    { key: 'speed', label: 'packet-hops/s', kind: 'count', get: engine('packet_hops_per_s'), cell: (r) => (engine('packet_hops_per_s')(r) == null ? DASH : `${digits(r.summary.engine.packet_hops_per_s / 1e6)}${NBSP}M`) },
    { key: 'rss', label: 'peak memory', kind: 'bytes', get: engine('peak_rss_bytes') },
  ].filter((c) => c.name || engines.some((r) => c.get(r) != null));
  footer.append(el('details', {}, el('summary', {}, 'What each run cost'), scroller('', table(columns, engines, { testid: 'cost-table', caption: 'Cost of each run' }).node)));
}

function drawWarnings(body) {
  const list = el('ul', {});
  for (const text of report.warnings || []) list.append(el('li', {}, text));
  for (const cause of report.causes || []) list.append(el('li', {}, el('b', {}, cause.runs), ': ', cause.text));
  body.append(list);
}

// --- scenario and replay

function drawScenario(body) {
  const lines = report.scenario_toml.split('\n').length;
  const details = el('details', { 'data-testid': 'scenario-text' }, el('summary', {}, `Show the scenario file (${plural(lines, 'line')})`), el('pre', { tabindex: '0' }, report.scenario_toml));
  body.append(el('div', { class: 'tools' }, copyButton(report.scenario_toml, 'scenario')), details);
}

function drawReplay(body) {
  const text = report.replay.join('\n');
  body.append(el('div', { class: 'tools' }, copyButton(text, 'commands')), el('pre', { tabindex: '0' }, text));
}
