// The picture of a neighbourhood: drag it, zoom it, move nodes. Clicking a node is a link that adds its neighbours, as without this script.
for (const svg of document.querySelectorAll('svg[data-graph]')) {
  const start = svg.viewBox.baseVal;
  let box = { x: start.x, y: start.y, w: start.width, h: start.height };
  const whole = { ...box };
  // Names are always as large on the screen, and shown where they stand neither on each other nor on a node: first those
  // that come first.
  const [LETTERS, RADIUS] = [12, 7];
  const nodes = [...svg.querySelectorAll('[data-node]')].map((node) => [node, node.querySelector('text')]);
  const name = () => {
    const scale = svg.getScreenCTM()?.a;
    if (!scale) return;
    const letters = LETTERS / scale;
    svg.style.setProperty('--label', `${letters}px`);
    const taken = [];
    const points = nodes.map(([node]) => { const { e: x, f: y } = node.transform.baseVal.consolidate().matrix; return { x, y }; });
    for (const [at, [, text]] of nodes.entries()) {
      const { x, y } = points[at];
      // At the right edge a name stands on the left of its node.
      const width = 12 + text.textContent.length * letters * 0.66;
      const turned = x + width > box.x + box.w && x - width > box.x;
      text.setAttribute('x', turned ? -12 : 12);
      text.setAttribute('text-anchor', turned ? 'end' : 'start');
      const place = { left: turned ? x - width : x + 12, right: turned ? x - 12 : x + width, top: y - letters * 0.78, bottom: y + letters * 0.78 };
      const covers = (point) => point.x > place.left - RADIUS && point.x < place.right + RADIUS && point.y > place.top - RADIUS && point.y < place.bottom + RADIUS;
      const free = (at === 0 || !points.some((point, other) => other !== at && covers(point))) && taken.every((other) => place.left > other.right || place.right < other.left || place.top > other.bottom || place.bottom < other.top);
      text.classList.toggle('far', !free);
      if (free) taken.push(place);
    }
  };
  const show = () => {
    svg.setAttribute('viewBox', `${box.x} ${box.y} ${box.w} ${box.h}`);
    name();
  };
  new ResizeObserver(name).observe(svg);
  const zoom = (by, x, y) => {
    const bounded = Math.min(Math.max(box.w * by, 100), 3000) / box.w;
    box = { x: x - (x - box.x) * bounded, y: y - (y - box.y) * bounded, w: box.w * bounded, h: box.h * bounded };
    show();
  };
  const tools = svg.parentElement.querySelector('[data-graph-tools]');
  if (tools) tools.hidden = false;
  tools?.addEventListener('click', (event) => {
    const by = event.target.dataset.zoom;
    if (by === 'whole') { box = { ...whole }; show(); }
    else if (by) zoom(Number(by), box.x + box.w / 2, box.y + box.h / 2);
  });
  const point = (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return [at.x, at.y];
  };
  svg.addEventListener('wheel', (event) => {
    event.preventDefault();
    zoom(Math.exp(event.deltaY * 0.001), ...point(event));
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
    name();
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
