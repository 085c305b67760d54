// Pictures that no plot library draws: on a canvas of the page, with a tip, and saved like plots.

// ---------------------------------------------------------------- charts

const charts = [];

/**
 * A picture in `host`. o = { section, title, make(width) -> picture, read(x, y) -> lines of a tip or null, items() -> legend of
 * the saved file, rows() -> table, label, saveIn }
 */
function chart(host, o) {
  const canvas = el('canvas', {});
  const tip = el('div', { class: 'tip', 'data-testid': 'tip' });
  host.append(canvas, tip);
  host.setAttribute('role', 'img');
  host.setAttribute('aria-label', `${o.title}. ${o.label || ''} Arrow keys read values.`);
  let picture = null;
  const redraw = () => {
    const ratio = window.devicePixelRatio || 1;
    picture = o.make(Math.max(200, host.clientWidth));
    canvas.width = Math.round(picture.width * ratio);
    canvas.height = Math.round(picture.height * ratio);
    canvas.style.width = `${picture.width}px`;
    canvas.style.height = `${picture.height}px`;
    host.style.height = `${picture.height}px`;
    const ctx = canvas.getContext('2d');
    ctx.scale(ratio, ratio);
    paint(ctx, picture.shapes);
  };
  const read = (x, y) => {
    const lines = o.read(x, y, picture.width);
    tip.style.display = lines ? 'block' : 'none';
    if (!lines) return;
    tip.replaceChildren(...lines.map((text, i) => (text ? el(i ? 'div' : 'b', { class: i ? 'line' : null }, text) : '')));
    const flip = x + tip.offsetWidth + 20 > host.clientWidth && x - tip.offsetWidth - 14 > 0;
    tip.style.left = `${Math.max(0, flip ? x - tip.offsetWidth - 14 : Math.min(x + 14, host.clientWidth - tip.offsetWidth))}px`;
    tip.style.top = `${Math.max(0, Math.min(y + 14, picture.height - tip.offsetHeight))}px`;
  };
  host.addEventListener('mousemove', (event) => {
    const r = canvas.getBoundingClientRect();
    read(event.clientX - r.left, event.clientY - r.top);
  });
  for (const type of ['mouseleave', 'blur']) host.addEventListener(type, () => { tip.style.display = 'none'; });
  // Keys move a point over the picture and read what lies there.
  const at = [0.5, 0.5];
  host.tabIndex = 0;
  host.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') tip.style.display = 'none';
    const move = { ArrowLeft: [-0.01, 0], ArrowRight: [0.01, 0], ArrowUp: [0, -4 / picture.height], ArrowDown: [0, 4 / picture.height] }[event.key];
    if (!move) return;
    event.preventDefault();
    [0, 1].forEach((i) => { at[i] = Math.max(0, Math.min(1, at[i] + move[i])); });
    read(at[0] * picture.width, at[1] * picture.height);
  });
  redraw();
  let width = host.clientWidth;
  const observer = new ResizeObserver(() => { if (host.clientWidth !== width) { width = host.clientWidth; redraw(); } });
  observer.observe(host);
  charts.push({ section: o.section, title: o.title, observer, redraw, count: () => picture.count });
  const buttons = saveButtons(o.title, () => framed(o.title, o.items ? o.items() : [], o.make(Math.max(200, host.clientWidth))), o.rows);
  if (o.saveIn) o.saveIn.append(buttons); else host.after(buttons);
}

const pictureBox = () => el('div', { class: 'picture' });

/** A colour of a ramp: what is more stands out more from the ground, in light and dark. share = 0 to 1. */
function ramp(share) {
  const t = Math.max(0, Math.min(1, share));
  return theme.dark ? `hsl(${(212 - 30 * t).toFixed(0)} ${(35 + 50 * t).toFixed(0)}% ${(17 + 65 * t).toFixed(1)}%)`
    : `hsl(${(196 + 30 * t).toFixed(0)} ${(40 + 45 * t).toFixed(0)}% ${(94 - 70 * t).toFixed(1)}%)`;
}

/** A ramp's key at the top of a picture: words, colours, words. */
function rampShapes(x, y, width, from, to) {
  const shapes = [{ text: from, at: [x, y + 10], fill: theme.ink2, size: 11 }];
  const start = x + widthOf(from, 11) + 6;
  const each = Math.max(2, Math.min(10, (width - (start - x) - widthOf(to, 11) - 8) / 12));
  for (let i = 0; i < 12; i++) shapes.push({ rect: [start + i * each, y + 1, each + 0.5, 10], fill: ramp(i / 11) });
  shapes.push({ text: to, at: [start + 12 * each + 6, y + 10], fill: theme.ink2, size: 11 });
  return shapes;
}

/** Ticks and the words of a time axis under a picture. */
function timeAxis(range, div, unit, X, [left, right], bottom) {
  const splits = linearSplits(range[0] / div, range[1] / div, Math.max(2, Math.floor((right - left) / 66)));
  const step = splits.length > 1 ? splits[1] - splits[0] : 1;
  return [
    ...splits.flatMap((v) => [{ line: [[X(v * div), bottom], [X(v * div), bottom + 4]], stroke: theme.ink2 },
      { text: tidy(v, step), at: [X(v * div), bottom + 17], fill: theme.ink2, anchor: 'middle' }]),
    { text: `time (${unit})`, at: [(left + right) / 2, bottom + 35], fill: theme.ink2, anchor: 'middle' },
  ];
}
