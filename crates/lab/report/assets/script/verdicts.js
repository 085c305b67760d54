// Verdicts of claims as chips: a colour, a sign and a word.

const VERDICTS = dict({ reproduced: ['reproduced', '✓'], 'direction only': ['direction', '≈'], undecided: ['pending', '?'], 'not reproduced': ['not', '✗'], pending: ['pending', '…'] });
function chip(verdict, text) {
  const [cls, sign] = VERDICTS[verdict] || ['pending', '…'];
  return el('span', { class: `chip ${cls}`, 'data-testid': 'verdict' }, el('span', { 'aria-hidden': 'true' }, sign), text || verdict);
}
