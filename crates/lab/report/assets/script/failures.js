// Links that failed: in every plot over time, and in words.

// ---------------------------------------------------------------- failures

const NONE = [];
/** When links of a run were down: { from, until (null: to the end), names, count }, in order, in nanoseconds. */
const failuresOf = (run) => run.outages || (run.outages = (run.failures || NONE)
  .flatMap((f) => (f.down_ns || NONE).map(([from, until]) => ({ from, until, names: f.links || NONE, count: f.count || (f.links || NONE).length })))
  .sort((a, b) => a.from - b.from));

const linksDown = (f) => (f.count === 1 && f.names.length ? `${f.names[0]} down` : `${plural(f.count, 'link')} down`);
/** What failed, with names: of many the first ones. */
const namesDown = (f) => (f.names.length <= 2 && f.names.length === f.count ? `${f.names.join(', ')} down`
  : `${f.names.slice(0, 2).join(', ')}${f.names.length ? ' and ' : ''}${f.count - Math.min(2, f.names.length)} more down`);
const whenDown = (f) => (f.until == null ? `from ${show('ns', f.from)} on` : `from ${show('ns', f.from)} to ${show('ns', f.until)}`);

/** What failed in a run, for the head of a panel; nothing of a run without failures. */
function failureWords(run) {
  const list = failuresOf(run);
  if (!list.length) return '';
  const more = list.length > 1 ? `, and ${grouped(list.length - 1)} more outage${list.length > 2 ? 's' : ''}` : '';
  return `${linksDown(list[0])} ${whenDown(list[0])}${more}`;
}

/** The failures that a plot shows, where its x axis counts time in `div` nanoseconds. */
const failureMarks = (run, div) => failuresOf(run).map((f) => ({ ...f, from: f.from / div, until: f.until == null ? Infinity : f.until / div }));

/** Failures as shapes: `background` lies behind the lines, `labels` over them. X gives a time's place between `left` and `right`. */
function failureShapes(marks, X, [left, right], top, height) {
  const spans = [];
  for (const f of marks) {
    const [from, until] = [Math.max(left, X(f.from)), f.until === Infinity ? right : Math.min(right, X(f.until))];
    if (until < left || from > right || until < from) continue;
    const last = spans[spans.length - 1];
    // What flaps faster than pixels is one span.
    if (last && from - last.until < 2) { last.until = Math.max(last.until, until); last.several = true; last.comesUp = f.until !== Infinity && X(f.until) <= right; } else {
      spans.push({ from, until, f, goesDown: X(f.from) >= left, comesUp: f.until !== Infinity && X(f.until) <= right });
    }
  }
  const [background, labels] = [[], []];
  spans.forEach((s, i) => {
    background.push({ rect: [s.from, top, Math.max(1, s.until - s.from), height], fill: theme.bad, alpha: 0.12 });
    if (s.goesDown) background.push({ line: [[s.from, top], [s.from, top + height]], stroke: theme.bad, width: 1.2 });
    if (s.comesUp) background.push({ line: [[s.until, top], [s.until, top + height]], stroke: theme.bad, dash: [3, 3] });
    // As much as there is room for before the next one.
    const room = (i + 1 < spans.length ? spans[i + 1].from : right) - s.from - 8;
    const label = (s.several ? ['links flap', 'flap'] : [linksDown(s.f), plural(s.f.count, 'link') + ' down', 'down']).find((text) => widthOf(text, 11) <= room);
    if (label && height > 60) labels.push({ text: label, at: [s.from + 4, top + 12], fill: theme.bad, size: 11 });
  });
  return { background, labels };
}
