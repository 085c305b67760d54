// Buttons, lists and legends; the part of a grid that is shown; sections that are drawn anew.

// ---------------------------------------------------------------- controls

/** Buttons of which one is pressed. options = [[value, label]] */
function choice(name, options, value, onchange, testid) {
  const group = el('div', { class: 'group', role: 'group', 'aria-label': name, 'data-testid': testid });
  for (const [key, label] of options) {
    group.append(el('button', {
      type: 'button', 'aria-pressed': String(key === value), 'data-value': key,
      onclick: (event) => {
        for (const b of group.children) b.setAttribute('aria-pressed', String(b === event.currentTarget));
        onchange(key);
      },
    }, label));
  }
  return group;
}

function select(label, options, value, onchange, testid) {
  const node = el('select', { 'data-testid': testid, onchange: () => onchange(node.value) },
    options.map(([key, text]) => el('option', { value: key, selected: key === value }, text)));
  return el('label', { class: 'field' }, label, node);
}

/** The choice of colours; it is kept for all reports of this browser. */
const themeButtons = () => choice('Colours', [['auto', 'Auto'], ['light', 'Light'], ['dark', 'Dark']], themeChoice, (value) => {
  themeChoice = value;
  try { localStorage.setItem('narrows-theme', value); } catch { /* a browser may forbid storage to local files */ }
  applyTheme();
}, 'theme');

/** A legend whose items hide and show. items = [{key, label, colour, dash, wide}]; `hidden` is a Set of keys. */
function legend(items, hidden, onchange, head) {
  const box = el('div', { class: 'legend', 'data-testid': 'legend', role: 'group', 'aria-label': head || 'Series shown' });
  if (head) box.append(el('span', { class: 'head' }, head));
  for (const item of items) {
    const button = el('button', {
      type: 'button', title: 'Show or hide', 'aria-pressed': String(!hidden.has(item.key)),
      onclick: () => {
        if (hidden.has(item.key)) hidden.delete(item.key); else hidden.add(item.key);
        button.setAttribute('aria-pressed', String(!hidden.has(item.key)));
        onchange();
      },
    }, swatch(item.colour, item.dash, item.wide), item.label);
    box.append(button);
  }
  return box;
}

function copyButton(text, what) {
  const button = el('button', {
    type: 'button', class: 'plain', 'data-testid': 'copy',
    onclick: async () => {
      let done = false;
      try { await navigator.clipboard.writeText(text); done = true; } catch {
        const area = el('textarea', { class: 'visually-hidden' });
        area.value = text;
        document.body.append(area);
        area.select();
        done = document.execCommand('copy');
        area.remove();
      }
      button.textContent = done ? 'Copied' : 'Select the text and copy it';
      setTimeout(() => { button.textContent = `Copy ${what}`; }, 1600);
    },
  }, `Copy ${what}`);
  return button;
}

// ---------------------------------------------------------------- which part of a grid is shown

const showValue = (v) => (typeof v === 'string' ? v : v === undefined ? DASH : JSON.stringify(v));
const valuesOf = (key) => [...new Map(runs.map((r) => pointOf(r).get(key)).filter((v) => v !== undefined)
  .map((v) => [showValue(v), v])).values()];

// A grid of many runs opens on one of its points; the small multiples would not end otherwise.
const slice = new Map(axes.map((key) => [key, runs.length > 6 ? showValue(valuesOf(key)[0]) : '']));
const inSlice = (run, except) => axes.every((key) => {
  const want = slice.get(key);
  return key === except || !want || showValue(pointOf(run).get(key)) === want;
});
const shownRuns = (has) => runs.filter((run) => inSlice(run) && (!has || has(run)));

const redraws = []; // one for each section that depends on the slice
function section(id, render) {
  const body = bodyOf(id);
  if (!body) return;
  const go = () => {
    // A control that redraws its section keeps the keyboard's focus.
    const active = body.contains(document.activeElement) ? document.activeElement : null;
    const held = active && active.closest('[data-testid]');
    const value = active && active.dataset.value;
    clearPlots(id);
    body.replaceChildren();
    attempt(body, () => render(body, id));
    const again = held && body.querySelector(`[data-testid="${CSS.escape(held.dataset.testid)}"]`);
    const next = again && (value === undefined ? again : again.querySelector(`[data-value="${CSS.escape(value)}"]`));
    if (next) next.focus({ preventScroll: true });
  };
  go();
  redraws.push({ id, go });
}

/** Where runs may be compared: at the same coordinates, with the same traffic. */
const placeOf = (run) => [...axes.map((key) => showValue(pointOf(run).get(key))), seedOf(run)].join('\n');
/** What a run is called where its coordinates stand beside it: its scheme, if a grid tells schemes apart. */
const nameOf = (run) => (axes.length && schemeOf(run) !== undefined ? showValue(schemeOf(run)) : run.label);
const seedOf = (run) => run.summary?.seed ?? null;
const seeds = new Set(runs.map(seedOf));
const seedWords = (run) => (seeds.size > 1 && seedOf(run) !== null ? [`seed ${seedOf(run)}`] : []);
const coordinatesOf = (run, keys) => keys.filter((key) => pointOf(run).has(key)).map((key) => `${key} ${showValue(pointOf(run).get(key))}`);
/** What a run is called in a legend or over a panel: with the coordinates that the controls leave open. */
const titleOf = (run) => {
  const open = axes.length && schemeOf(run) !== undefined ? coordinatesOf(run, axes.filter((key) => !slice.get(key))) : [];
  return [nameOf(run), ...open, ...seedWords(run)].join(', ');
};
/** What tells a run from all others. */
const fullNameOf = (run) => [nameOf(run), ...(schemeOf(run) === undefined ? [] : coordinatesOf(run, axes)), ...seedWords(run)].join(', ');
