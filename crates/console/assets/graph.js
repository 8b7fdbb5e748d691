// The picture of a neighbourhood: drag it, zoom it, move nodes. Clicking a node is a link that adds its neighbours, as without this script.
for (const svg of document.querySelectorAll('svg[data-graph]')) {
  const start = svg.viewBox.baseVal;
  let box = { x: start.x, y: start.y, w: start.width, h: start.height };
  const show = () => svg.setAttribute('viewBox', `${box.x} ${box.y} ${box.w} ${box.h}`);
  const point = (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return [at.x, at.y];
  };
  svg.addEventListener('wheel', (event) => {
    event.preventDefault();
    const [x, y] = point(event);
    const by = Math.min(Math.max(box.w * Math.exp(event.deltaY * 0.001), 100), 3000) / box.w;
    box = { x: x - (x - box.x) * by, y: y - (y - box.y) * by, w: box.w * by, h: box.h * by };
    show();
  }, { passive: false });
  let held, from, moved;
  svg.addEventListener('pointerdown', (event) => {
    held = event.target.closest('[data-node]') ?? svg;
    from = point(event);
    moved = 0;
  });
  svg.addEventListener('dragstart', (event) => event.preventDefault());
  svg.addEventListener('pointermove', (event) => {
    if (!held) return;
    const [x, y] = point(event);
    const [dx, dy] = [x - from[0], y - from[1]];
    moved += Math.abs(dx) + Math.abs(dy);
    if (moved > 4 && !svg.hasPointerCapture(event.pointerId)) svg.setPointerCapture(event.pointerId);
    if (held === svg) { box.x -= dx; box.y -= dy; show(); return; }
    from = [x, y];
    held.setAttribute('transform', `translate(${x} ${y})`);
    for (const line of svg.querySelectorAll('.edge')) {
      if (line.dataset.from === held.dataset.node) { line.setAttribute('x1', x); line.setAttribute('y1', y); }
      if (line.dataset.to === held.dataset.node) { line.setAttribute('x2', x); line.setAttribute('y2', y); }
    }
  });
  const drop = () => { held = undefined; };
  svg.addEventListener('pointerup', drop);
  svg.addEventListener('pointercancel', drop);
  svg.addEventListener('click', (event) => { if (moved > 4) event.preventDefault(); }, true);
  const near = (key) => { for (const line of svg.querySelectorAll('.edge')) line.classList.toggle('near', line.dataset.from === key || line.dataset.to === key); };
  svg.addEventListener('pointerover', (event) => near(event.target.closest('[data-node]')?.dataset.node));
  svg.addEventListener('focusin', (event) => near(event.target.closest('[data-node]')?.dataset.node));
}
