// Pictures as lists of shapes: painted on a canvas, written as SVG, and saved as files.

// ---------------------------------------------------------------- pictures

// A picture is { width, height, shapes }. Shapes, in CSS pixels:
//   { rect: [x, y, width, height], fill, stroke, alpha }
//   { line: [[x, y], null, ...], stroke, width, dash, alpha }    null breaks the line
//   { area: [[x, y], ...], fill, stroke, alpha }
//   { dot: [x, y, radius], fill, stroke }
//   { text, at: [x, y], fill, size, bold, anchor: 'start' | 'middle' | 'end', turned }
//   { clip: [x, y, width, height], shapes }

const FAMILY = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif';

function paint(ctx, shapes) {
  for (const s of shapes) {
    ctx.save();
    if (s.alpha != null) ctx.globalAlpha = s.alpha;
    if (s.clip) {
      ctx.beginPath();
      ctx.rect(...s.clip);
      ctx.clip();
      paint(ctx, s.shapes);
    } else if (s.rect) {
      if (s.fill) { ctx.fillStyle = s.fill; ctx.fillRect(...s.rect); }
      if (s.stroke) { ctx.strokeStyle = s.stroke; ctx.lineWidth = s.width || 1; ctx.setLineDash(s.dash || []); ctx.strokeRect(...s.rect); }
    } else if (s.line) {
      ctx.strokeStyle = s.stroke;
      ctx.lineWidth = s.width || 1;
      ctx.lineJoin = 'round';
      ctx.setLineDash(s.dash || []);
      ctx.beginPath();
      let down = false;
      for (const p of s.line) {
        if (!p) { down = false; continue; }
        if (down) ctx.lineTo(p[0], p[1]); else ctx.moveTo(p[0], p[1]);
        down = true;
      }
      ctx.stroke();
    } else if (s.area) {
      ctx.beginPath();
      s.area.forEach(([x, y], i) => (i ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
      ctx.closePath();
      ctx.fillStyle = s.fill;
      ctx.fill();
      if (s.stroke) { ctx.strokeStyle = s.stroke; ctx.lineWidth = s.width || 1; ctx.stroke(); }
    } else if (s.dot) {
      ctx.beginPath();
      ctx.arc(s.dot[0], s.dot[1], s.dot[2], 0, 2 * Math.PI);
      if (s.fill) { ctx.fillStyle = s.fill; ctx.fill(); }
      if (s.stroke) { ctx.strokeStyle = s.stroke; ctx.lineWidth = s.width || 1; ctx.stroke(); }
    } else if (s.text != null) {
      ctx.translate(s.at[0], s.at[1]);
      if (s.turned) ctx.rotate(-Math.PI / 2);
      ctx.font = `${s.bold ? '600 ' : ''}${s.size || 12}px ${FAMILY}`;
      ctx.fillStyle = s.fill;
      ctx.textAlign = s.anchor === 'middle' ? 'center' : s.anchor === 'end' ? 'right' : 'left';
      ctx.fillText(s.text, 0, 0);
    }
    ctx.restore();
  }
}

/** The same as an SVG document. */
function svgOf(picture) {
  const esc = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`)
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd');
  const n = (v) => String(+v.toFixed(2));
  let clips = 0;
  const attributes = (s, filled) => [
    ` fill="${filled && s.fill ? esc(s.fill) : 'none'}"`,
    s.stroke ? ` stroke="${esc(s.stroke)}" stroke-width="${n(s.width || 1)}"` : '',
    s.dash && s.dash.length ? ` stroke-dasharray="${s.dash.map(n).join(' ')}"` : '',
    s.alpha != null ? ` opacity="${n(s.alpha)}"` : '',
  ].join('');
  const write = (s) => {
    if (s.clip) {
      const id = `c${clips++}`;
      const [x, y, w, h] = s.clip.map(n);
      return `<clipPath id="${id}"><rect x="${x}" y="${y}" width="${w}" height="${h}"/></clipPath><g clip-path="url(#${id})">${s.shapes.map(write).join('\n')}</g>`;
    }
    if (s.rect) {
      const [x, y, w, h] = s.rect.map(n);
      return `<rect x="${x}" y="${y}" width="${w}" height="${h}"${attributes(s, true)}/>`;
    }
    if (s.line) {
      let down = false;
      const path = s.line.map((p) => {
        const step = p ? `${down ? 'L' : 'M'}${n(p[0])} ${n(p[1])}` : '';
        down = !!p;
        return step;
      }).join('');
      return path ? `<path d="${path}" stroke-linejoin="round"${attributes(s, false)}/>` : '';
    }
    if (s.area) return `<path d="M${s.area.map((p) => p.map(n).join(' ')).join('L')}Z"${attributes(s, true)}/>`;
    if (s.dot) return `<circle cx="${n(s.dot[0])}" cy="${n(s.dot[1])}" r="${n(s.dot[2])}"${attributes(s, true)}/>`;
    const turn = s.turned ? ` transform="rotate(-90 ${n(s.at[0])} ${n(s.at[1])})"` : '';
    return `<text x="${n(s.at[0])}" y="${n(s.at[1])}" fill="${esc(s.fill)}" font-size="${s.size || 12}"${s.bold ? ' font-weight="600"' : ''}`
      + ` text-anchor="${s.anchor || 'start'}"${turn}>${esc(s.text)}</text>`;
  };
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${n(picture.width)}" height="${n(picture.height)}" viewBox="0 0 ${n(picture.width)} ${n(picture.height)}"`
    + ` font-family="${esc(FAMILY)}">\n${picture.shapes.map(write).filter(Boolean).join('\n')}\n</svg>\n`;
}

const measure = document.createElement('canvas').getContext('2d');
function widthOf(text, size, bold) {
  measure.font = `${bold ? '600 ' : ''}${size || 12}px ${FAMILY}`;
  return measure.measureText(text).width;
}
/** Text that is at most so wide, cut in its middle, where names differ least. */
function fitted(text, room, size) {
  if (widthOf(text, size) <= room) return text;
  const letters = [...text];
  for (let keep = letters.length - 1; keep > 1; keep--) {
    const cut = `${letters.slice(0, Math.ceil(keep / 2)).join('')}…${letters.slice(letters.length - Math.floor(keep / 2)).join('')}`;
    if (widthOf(cut, size) <= room) return cut;
  }
  return '…';
}

// ---------------------------------------------------------------- saving

/** A table as CSV (RFC 4180). */
const csvOf = (rows) => rows.map((row) => row.map((v) => {
  const text = v == null ? '' : String(v);
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}).join(',')).join('\r\n') + '\r\n';

function save(name, blob) {
  const href = URL.createObjectURL(blob);
  const link = el('a', { href, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(href), 10000);
}

const fileName = (title, ending) => `${(title.normalize('NFKD').replace(/[^\w.+-]+/g, '-').replace(/^[-.]+|-+$/g, '') || 'plot').slice(0, 100)}.${ending}`;

/** Buttons that save a plot: `picture()` and `rows()` are asked for when one is used. */
function saveButtons(title, picture, rows, word) {
  const button = (ending, go) => el('button', { type: 'button', 'data-value': ending, 'aria-label': `Save as ${ending.toUpperCase()}: ${title}`, onclick: go }, ending.toUpperCase());
  return el('div', { class: 'save', 'data-testid': 'save' }, el('span', {}, word ? `Save ${word} as` : 'Save as'),
    button('svg', () => save(fileName(title, 'svg'), new Blob([svgOf(picture())], { type: 'image/svg+xml' }))),
    button('png', () => {
      const p = picture();
      // Twice the size on the screen, as long as browsers paint that.
      const ratio = Math.min(2, 16000 / Math.max(p.width, p.height));
      const canvas = Object.assign(document.createElement('canvas'), { width: Math.round(p.width * ratio), height: Math.round(p.height * ratio) });
      const ctx = canvas.getContext('2d');
      ctx.scale(ratio, ratio);
      paint(ctx, p.shapes);
      canvas.toBlob((blob) => { if (blob) save(fileName(title, 'png'), blob); });
    }),
    button('csv', () => save(fileName(title, 'csv'), new Blob([csvOf(rows())], { type: 'text/csv' }))));
}

/** A title and a legend over a picture. items = [{label, colour, dash, wide}] */
function framed(title, items, picture) {
  const shapes = [];
  const width = picture.width;
  let y = 20;
  if (title) shapes.push({ text: fitted(title, width - 16, 13), at: [8, y], fill: theme.ink, size: 13, bold: true });
  let x = 8;
  if (items.length) y += 20;
  const shown = items.slice(0, 40);
  if (shown.length < items.length) shown.push({ label: `and ${items.length - shown.length} more` });
  for (const { label, colour, dash, wide } of shown) {
    const text = fitted(label, width - 50, 12);
    const needs = 26 + widthOf(text) + 14;
    if (x > 8 && x + needs > width) { x = 8; y += 17; }
    if (wide) shapes.push({ rect: [x, y - 9, 18, 10], fill: colour });
    else if (colour) shapes.push({ line: [[x, y - 4], [x + 20, y - 4]], stroke: colour, width: 2, dash });
    shapes.push({ text, at: [x + 26, y], fill: theme.ink });
    x += needs;
  }
  const top = y + 10;
  const move = (s) => {
    const at = ([px, py, ...rest]) => [px, py + top, ...rest];
    if (s.clip) return { ...s, clip: at(s.clip), shapes: s.shapes.map(move) };
    if (s.rect) return { ...s, rect: at(s.rect) };
    if (s.line) return { ...s, line: s.line.map((p) => p && at(p)) };
    if (s.area) return { ...s, area: s.area.map(at) };
    if (s.dot) return { ...s, dot: at(s.dot) };
    return { ...s, at: at(s.at) };
  };
  return { width, height: picture.height + top, shapes: [{ rect: [0, 0, width, picture.height + top], fill: theme.card }, ...shapes, ...picture.shapes.map(move)] };
}

/** What uPlot shows, as shapes from the same data. */
function pictureOf({ u, o, title }) {
  const ratio = window.devicePixelRatio || 1;
  const [left, top, width, height] = [u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height].map((v) => v / ratio);
  const X = (v) => left + u.valToPos(v, 'x');
  const Y = (v) => top + u.valToPos(v, 'y');
  const shapes = [];
  const ticks = (axis, scale) => {
    const splits = axis.splits(u, 0, scale.min, scale.max).filter((v) => v >= scale.min * (scale.min < 0 ? 1.0001 : 0.9999) && v <= scale.max * (scale.max < 0 ? 0.9999 : 1.0001));
    return [splits, axis.words(splits)];
  };
  const [xs, xWords] = ticks(o.axes[0], u.scales.x);
  const [ys, yWords] = ticks(o.axes[1], u.scales.y);
  for (const v of xs) shapes.push({ line: [[X(v), top], [X(v), top + height]], stroke: theme.grid });
  for (const v of ys) shapes.push({ line: [[left, Y(v)], [left + width, Y(v)]], stroke: theme.grid });
  xs.forEach((v, i) => shapes.push({ text: xWords[i], at: [X(v), top + height + 17], fill: theme.ink2, anchor: 'middle' }));
  ys.forEach((v, i) => shapes.push({ text: yWords[i], at: [left - 8, Y(v) + 4], fill: theme.ink2, anchor: 'end' }));
  shapes.push({ text: o.x.label, at: [left + width / 2, top + height + 36], fill: theme.ink2, anchor: 'middle' });
  shapes.push({ text: o.y.label, at: [13, top + height / 2], fill: theme.ink2, anchor: 'middle', turned: true });
  const marks = marksOf(u, o, X, top, height);
  const inside = [...marks.background, ...bandsOf(u, o, X, Y)];
  o.series.forEach((s, i) => {
    if (!u.series[i + 1].show) return;
    const line = [];
    const dots = [];
    let last = null;
    u.data[0].forEach((x, k) => {
      const v = u.data[i + 1][k];
      if (v === undefined || (v == null && s.spanGaps)) return;
      if (v == null || (o.y.log && v <= 0)) { line.push(null); last = null; return; }
      const at = [X(x), Y(v)];
      if (o.stepped && last) line.push([at[0], last[1]]);
      line.push(at);
      if (s.points) dots.push({ dot: [at[0], at[1], 3.5], fill: s.colour(), stroke: theme.card });
      last = at;
    });
    inside.push({ line, stroke: s.colour(), width: s.width || 1.8, dash: s.dash, alpha: s.alpha });
    inside.push(...dots);
  });
  for (const [i, low, high, at] of barsOf(o, u)) {
    const end = (v) => (o.y.log && v <= 0 ? top + height + 9 : Y(v));
    const x = X(at);
    inside.push({ line: [[x, end(low)], [x, end(high)], null, [x - 4, end(low)], [x + 4, end(low)], null, [x - 4, end(high)], [x + 4, end(high)]], stroke: o.series[i].colour(), width: 1.5 });
  }
  shapes.push({ clip: [left, top, width, height], shapes: [...inside, ...marks.labels] });
  const items = o.series.filter((s, i) => u.series[i + 1].show && !s.quiet).map((s) => ({ label: s.label, colour: s.colour(), dash: s.dash }));
  return framed(title, items, { width: u.width, height: top + height + 46, shapes });
}

/** What uPlot shows, as a table: x, then each series, with the ends of its error bars. */
function rowsOf({ u, o }) {
  const shown = o.series.map((s, i) => [s, i + 1]).filter(([, i]) => u.series[i].show);
  const head = [o.x.column || o.x.label, ...shown.flatMap(([s]) => [`${s.label}: ${o.y.column || o.y.label}`, ...(s.bars ? [`${s.label}: low`, `${s.label}: high`] : [])])];
  const values = u.data[0].map((x, k) => [o.x.word ? o.x.word(x) : x, ...shown.flatMap(([s, i]) => [u.data[i][k], ...(s.bars ? s.bars[k] || [null, null] : [])])]);
  return [head, ...values];
}
