// The view, kept in the address: which runs are shown, which tabs, axes and lines. `#queues&load=40%25&grid.log=true` opens
// at the queues, at that load, with the grid's plot on a logarithmic axis.

// ---------------------------------------------------------------- the view in the address

const kept = []; // {name, of, key, type}: what the address may hold
/** Keeps keys of a section's state. types = {key: 'text' | 'flag' (null too) | 'set'} */
function keepInAddress(prefix, of, types) {
  for (const [key, type] of Object.entries(types)) kept.push({ name: `${prefix}.${key}`, of, key, type });
}

const valueAsText = ({ of, key, type }) => {
  const v = of[key];
  if (v == null) return '';
  return type === 'set' ? JSON.stringify([...v]) : String(v);
};
function valueOfText({ type }, text) {
  if (type === 'text') return text || null;
  if (type === 'flag') return text === '' ? null : text === 'true';
  try {
    const list = JSON.parse(text);
    return Array.isArray(list) ? new Set(list.filter((v) => ['string', 'number'].includes(typeof v))) : null;
  } catch { return null; }
}

/** The view as names and texts. */
const viewNow = () => new Map([...axes.map((key) => [key, slice.get(key)]), ...kept.map((k) => [k.name, valueAsText(k)])]);

const address = { first: null, at: '', written: null };
const anchorOf = (hash) => decodeURIComponentOr(hash.replace(/^#/, '').split('&')[0]);
function decodeURIComponentOr(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

/** Writes what differs from the page as it opens without a fragment. */
function writeAddress() {
  if (!address.first) return;
  const changed = [...viewNow()].filter(([name, text]) => text !== address.first.get(name));
  const hash = [address.at, ...changed.map(([name, text]) => `${encodeURIComponent(name)}=${encodeURIComponent(text)}`)].join('&');
  const full = hash ? `#${hash}` : '';
  if (full === address.written || (!full && !location.hash)) return;
  address.written = full;
  // Some browsers forbid the first to local files; the second makes an entry in the history.
  try { history.replaceState(null, '', full || location.pathname + location.search); } catch { location.hash = hash; }
}

/** Takes a view from the address, and draws it if it is another one. */
function readAddress() {
  const entries = new Map(location.hash.replace(/^#/, '').split('&').slice(1).map((part) => part.split('=').map(decodeURIComponentOr)));
  address.at = anchorOf(location.hash);
  address.written = location.hash;
  const before = viewNow();
  for (const key of axes) {
    const text = entries.get(key) ?? address.first.get(key);
    if (text === '' || valuesOf(key).some((v) => showValue(v) === text)) slice.set(key, text);
    const list = document.querySelector(`[data-testid="${CSS.escape(`slice-${key}`)}"]`);
    if (list) list.value = slice.get(key);
  }
  for (const k of kept) k.of[k.key] = valueOfText(k, entries.get(k.name) ?? address.first.get(k.name)) ?? (k.type === 'set' && k.of[k.key] ? new Set() : null);
  const after = viewNow();
  if ([...after].some(([name, text]) => text !== before.get(name))) for (const r of redraws) r.go();
  if (address.at) document.getElementById(address.at)?.scrollIntoView({ behavior: 'instant' });
}

function followAddress() {
  address.first = viewNow();
  if (location.hash) readAddress();
  window.addEventListener('hashchange', () => { if (location.hash !== address.written) readAddress(); });
  // Whatever a control does, it has done when these have passed.
  for (const type of ['click', 'change', 'input']) document.addEventListener(type, () => setTimeout(writeAddress, 0));
}
