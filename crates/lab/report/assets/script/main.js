// Draws all sections, and prepares printing.

// ---------------------------------------------------------------- printing: light, two columns

window.addEventListener('beforeprint', () => {
  root.classList.add('printing');
  while (queue.length) queue.shift()();
  readTheme('light');
  repaint();
  for (const p of plots) { p.fit(); p.u.redraw(false, true); }
  for (const c of charts) c.redraw();
});
window.addEventListener('afterprint', () => {
  root.classList.remove('printing');
  applyTheme();
  for (const p of plots) p.fit();
});

// ---------------------------------------------------------------- all of it

attempt(document.getElementById('top'), drawHeader);
attempt(document.getElementById('bar'), drawBar);
section('warnings', drawWarnings);
section('results', drawResults);
section('claims', drawClaims);
section('averages', drawAverages);
section('pooled', drawPooled);
section('slowest', drawSlowest);
section('sweep', drawSweep);
section('distributions', drawDistributions);
section('sizes', drawSizes);
section('rates', drawRates);
section('queues', drawQueues);
section('heat', drawHeat);
section('buffers', drawBuffers);
section('pauses', drawPauses);
section('traces', drawTraces);
section('collectives', drawCollectives);
section('network', drawNetwork);
section('links', drawLinks);
section('scenario', drawScenario);
section('replay', drawReplay);
attempt(document.getElementById('provenance'), drawFooter);
followAddress();
wake();
