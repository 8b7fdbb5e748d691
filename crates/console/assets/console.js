// What pages do beside being read: search as you type, keys, copying, uploads, live activity. Every page works without it.
const $ = (query, from = document) => from.querySelector(query);
const all = (query, from = document) => [...from.querySelectorAll(query)];
const element = (name, properties = {}, ...inner) => { const made = Object.assign(document.createElement(name), properties); made.append(...inner); return made; };
const proof = () => $('meta[name=proof]')?.content ?? '';

function say(text) {
  const note = Object.assign(document.createElement('div'), { className: 'said', textContent: text });
  note.setAttribute('role', 'status');
  document.body.append(note);
  setTimeout(() => note.remove(), 1800);
}

// Copying.
function ready(root) {
  for (const button of all('[data-copy]', root)) button.hidden = false;
}
ready(document);
document.addEventListener('click', async (event) => {
  const button = event.target.closest('[data-copy]');
  if (!button) return;
  const text = button.dataset.copy;
  const whole = text.startsWith('/') && !text.includes('\n') ? location.origin + text : text;
  try { await navigator.clipboard.writeText(whole); say('Copied'); } catch { window.prompt('Copy:', whole); }
});

// Light and dark: the choice is a cookie, so that the server renders pages in it.
const themeSwitches = all('[data-theme-switch]');
for (const button of themeSwitches) {
  button.hidden = false;
  button.addEventListener('click', () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
    document.cookie = `shelf_theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=strict`;
  });
}

// Search as you type: the address is the state, and the server renders the results.
const searchForm = $('[data-search]');
const results = $('[data-results]');
const facets = $('[data-facets]');
const pane = $('[data-preview-pane]');
let here = -1;
if (searchForm && results) {
  const input = $('input[name=q]', searchForm);
  let waiting, running;
  const address = () => {
    const pairs = new URLSearchParams();
    for (const [name, value] of new FormData(searchForm)) if (value && !(name === 'mode' && value === 'hybrid')) pairs.set(name, value);
    return `/search?${pairs}`;
  };
  const run = async () => {
    running?.abort();
    running = new AbortController();
    const to = address();
    try {
      const reply = await fetch(`${to}&part=results`, { signal: running.signal, headers: { accept: 'text/html' } });
      if (reply.redirected || reply.status === 401) { location.href = to; return; }
      results.innerHTML = await reply.text();
      history.replaceState(null, '', to);
      here = -1;
      ready(results);
      if (pane) pane.hidden = true;
      const counts = await fetch(`${to}&part=facets`, { signal: running.signal });
      if (counts.ok && facets) facets.innerHTML = await counts.text();
    } catch (error) { if (error.name !== 'AbortError') results.textContent = 'The server does not answer.'; }
  };
  input.addEventListener('input', () => { clearTimeout(waiting); waiting = setTimeout(run, 40); });
  for (const radio of all('input[type=radio]', searchForm)) radio.addEventListener('change', run);
  searchForm.addEventListener('submit', (event) => { event.preventDefault(); clearTimeout(waiting); run(); });
}

// A preview beside the results, and keys to walk through them.
let shown;
async function preview(item) {
  const from = item?.dataset.preview;
  if (!pane || !from || getComputedStyle(pane).getPropertyValue('position') !== 'sticky' || innerWidth <= 1100 || shown === from) return;
  shown = from;
  const reply = await fetch(from);
  if (!reply.ok || shown !== from) return;
  pane.innerHTML = await reply.text();
  pane.hidden = false;
  $('.marked, .hit', pane)?.scrollIntoView({ block: 'center' });
}
function walk(step) {
  const items = all('.hit-item', results ?? document);
  if (!items.length) return false;
  here = Math.max(0, Math.min(items.length - 1, here + step));
  items.forEach((item, at) => item.classList.toggle('here', at === here));
  $('a', items[here]).focus({ preventScroll: true });
  items[here].scrollIntoView({ block: 'nearest' });
  preview(items[here]);
  return true;
}
results?.addEventListener('mouseover', (event) => {
  const item = event.target.closest('.hit-item');
  if (item) { clearTimeout(walk.timer); walk.timer = setTimeout(() => preview(item), 150); }
});
results?.addEventListener('focusin', (event) => preview(event.target.closest('.hit-item')));

// Lines: an address such as #L10-20 marks a range; shift-click chooses its end.
function markLines() {
  const range = /^#L(\d+)(?:-L?(\d+))?$/.exec(location.hash);
  if (!range) return;
  const [first, last] = [Number(range[1]), Number(range[2] ?? range[1])];
  const asked = new URLSearchParams(location.search);
  // The server has marked the range of the address; its first line as a fragment only says where to look.
  if (asked.get('lines')?.split('-')[0] === range[1] && !range[2]) { ($('.marked, .hit') ?? document.getElementById(`L${first}`))?.scrollIntoView({ block: 'center' }); return; }
  // Where lines have no places of their own, as in prose or on another page of a long text, the server marks them.
  if (!document.getElementById(`L${first}`) && $('.document .prose, .document .code, .document .page') && asked.get('lines') !== `${first}-${last}`) {
    asked.set('lines', `${first}-${last}`);
    asked.delete('from');
    location.replace(`${location.pathname}?${asked}${location.hash}`);
    return;
  }
  for (const line of all('.line.marked')) line.classList.remove('marked');
  for (let number = first; number <= Math.min(last, first + 5000); number += 1) document.getElementById(`L${number}`)?.classList.add('marked');
  document.getElementById(`L${first}`)?.scrollIntoView({ block: 'center' });
}
addEventListener('hashchange', markLines);
markLines();
document.addEventListener('click', (event) => {
  const number = event.target.closest('.line .number');
  if (!number) return;
  event.preventDefault();
  const line = Number(number.dataset.line);
  const start = /^#L(\d+)/.exec(location.hash);
  const range = event.shiftKey && start ? [Number(start[1]), line].sort((a, b) => a - b) : [line];
  location.hash = `L${range.join('-')}`;
});
$('.hit')?.scrollIntoView({ block: 'center' });

// Uploads: each file is sent by itself, a few at a time.
async function entries(items) {
  const found = [];
  const visit = async (entry, path) => {
    if (entry.isFile) { found.push([await new Promise((done, fail) => entry.file(done, fail)), path + entry.name]); return; }
    const reader = entry.createReader();
    for (;;) {
      const part = await new Promise((done, fail) => reader.readEntries(done, fail));
      if (!part.length) return;
      for (const inner of part) await visit(inner, `${path}${entry.name}/`);
    }
  };
  for (const entry of [...items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean)) await visit(entry, '');
  return found;
}
function send(file, name, area, told, stop) {
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    const { to = '/upload', collection } = area.dataset;
    request.open('POST', `${to}?${new URLSearchParams({ ...(collection && { collection }), name, part: 'upload' })}`);
    request.setRequestHeader('x-proof', proof());
    request.setRequestHeader('content-type', 'application/octet-stream');
    request.upload.addEventListener('progress', (event) => { told(event.loaded); });
    request.addEventListener('load', () => done(request.status === 200 ? '' : reason(request)));
    request.addEventListener('error', () => done('the connection broke'));
    request.addEventListener('abort', () => done('stopped'));
    stop.addEventListener('abort', () => request.abort());
    request.send(file);
  });
}
// Why a file was refused, in the words of the server.
function reason(request) {
  const kind = request.getResponseHeader('content-type') ?? '';
  if (kind.startsWith('text/html')) { const page = new DOMParser().parseFromString(request.responseText, 'text/html'); return page.querySelector('.state p')?.textContent ?? request.statusText; }
  try { return JSON.parse(request.responseText).error.message; } catch { return `${request.status} ${request.statusText}`; }
}
const size = (bytes) => `${(bytes / 2 ** 20).toFixed(1).replace('.0', '')} MiB`;
for (const area of all('[data-drop]')) {
  area.hidden = false;
  const list = $('[data-progress]', area);
  const total = $('[data-total]', area);
  const most = Number(area.dataset.most);
  const tell = (text) => list.append(element('li', { className: 'bad', textContent: text }));
  const take = async (files) => {
    const chosen = [...files];
    if (!chosen.length) return;
    list.replaceChildren();
    const large = chosen.filter(([file]) => most && file.size > most);
    const has = (bytes) => (size(bytes) === size(most) ? `a little more than ${size(most)}` : size(bytes));
    const other = area.dataset.command ? ` ${area.dataset.command} has no such limit.` : '';
    for (const [file, path] of large) tell(`${path} was not sent: it has ${has(file.size)}, and a browser may send ${size(most)}.${other}`);
    const waiting = chosen.filter((one) => !large.includes(one));
    const stop = new AbortController();
    const count = waiting.length;
    const bytes = waiting.reduce((sum, [file]) => sum + file.size, 0);
    const sent = new Map();
    let [stored, failed] = [0, large.length];
    const show = () => {
      const now = [...sent.values()].reduce((sum, part) => sum + part, 0);
      $('progress', total).value = bytes ? Math.min(now / bytes, 1) : stored / Math.max(count, 1);
      $('span', total).textContent = `${stored} of ${count} files stored, ${size(now)} of ${size(bytes)}`;
    };
    $('[data-stop]', total).onclick = () => stop.abort();
    total.hidden = !count;
    show();
    const worker = async () => {
      for (let next = waiting.shift(); next && !stop.signal.aborted; next = waiting.shift()) {
        const [file, path] = next;
        const problem = await send(file, (area.dataset.folder ?? '') + path, area, (loaded) => { sent.set(path, Math.min(loaded, file.size)); show(); }, stop.signal);
        if (problem === 'stopped') sent.delete(path);
        else if (problem) { failed += 1; tell(`${path}: ${problem}`); } else { stored += 1; sent.set(path, file.size); }
        show();
      }
    };
    await Promise.all([worker(), worker(), worker()]);
    total.hidden = true;
    say(`${stored} stored${failed ? `, ${failed} not` : ''}${stop.signal.aborted ? ', stopped' : ''}`);
    if (!failed && !stop.signal.aborted && count) location.reload();
    else if (stored || stop.signal.aborted) {
      const again = element('button', { type: 'button', className: 'link', textContent: 'Load the page again' });
      again.addEventListener('click', () => location.reload());
      list.append(element('li', {}, `${stop.signal.aborted ? 'Stopped: ' : ''}${stored} of ${chosen.length} files ${stored === 1 ? 'is' : 'are'} stored. `, again, ' to see what is here now.'));
    }
  };
  area.addEventListener('dragover', (event) => { event.preventDefault(); area.classList.add('over'); });
  area.addEventListener('dragleave', () => area.classList.remove('over'));
  const drop = async (event) => { event.preventDefault(); event.stopPropagation(); area.classList.remove('over'); take(await entries(event.dataTransfer.items)); };
  area.addEventListener('drop', drop);
  // On a page with one place for files, a file may be dropped anywhere.
  if (all('[data-drop]').length === 1) addEventListener('drop', (event) => { if (event.dataTransfer?.types.includes('Files')) drop(event); });
  for (const pick of all('[data-pick]', area)) pick.addEventListener('change', () => take([...pick.files].map((file) => [file, file.webkitRelativePath || file.name])));
}

// A file that is dropped beside the place for it must not take the page's place.
for (const name of ['dragover', 'drop']) addEventListener(name, (event) => { if (event.dataTransfer?.types.includes('Files')) event.preventDefault(); });

// What an address names is opened: a form that is folded in.
function unfoldTarget() {
  const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : undefined;
  if (!target) return;
  if (target.matches('details')) target.open = true;
  if (target.matches('details, form, .drop')) { target.scrollIntoView({ block: 'center' }); $('input:not([type=hidden]), label.link', target)?.focus(); }
}
addEventListener('hashchange', unfoldTarget);
unfoldTarget();

// A page that was made by a form is not made again when it is loaded again.
const made = $('[data-at]');
if (made) history.replaceState(null, '', made.dataset.at);

// A text that is not saved yet is not left by mistake.
const draft = $('[data-unsaved] textarea');
if (draft) {
  const form = draft.form;
  let unsaved = form.dataset.unsaved === '1';
  draft.addEventListener('input', () => { unsaved = true; });
  form.addEventListener('submit', () => { unsaved = false; });
  addEventListener('beforeunload', (event) => { if (unsaved) event.preventDefault(); });
}

// Live activity: the server sends rows as soon as they are there. A page that nobody looks at does not listen.
const live = $('[data-live]');
if (live) {
  const box = $('[data-live-switch] input');
  if (box) box.parentElement.hidden = false;
  let source;
  const listen = () => {
    const wanted = !document.hidden && (box?.checked ?? true);
    if (wanted === Boolean(source)) return;
    source?.close();
    source = wanted ? new EventSource(live.dataset.live) : undefined;
    if (!source) return;
    source.onmessage = (event) => {
      const body = $('tbody', live);
      $('.state, .nothing', live)?.remove();
      const known = new Set(all('tr', body).map((row) => row.dataset.sequence));
      const fresh = element('table');
      fresh.innerHTML = event.data;
      for (const row of all('tr', fresh).reverse()) if (!known.has(row.dataset.sequence)) { row.classList.add('new'); body.prepend(row); }
      for (const row of all('tr', body).slice(Number(live.dataset.most ?? 300))) row.remove();
    };
  };
  box?.addEventListener('change', listen);
  document.addEventListener('visibilitychange', listen);
  addEventListener('pagehide', () => { source?.close(); source = undefined; });
  addEventListener('pageshow', listen);
  listen();
}

// Long work: its progress, and a way to stop it. Closing the stream stops the work.
const outcome = $('[data-run-result]');
for (const link of all('[data-run]')) link.addEventListener('click', (event) => {
  event.preventDefault();
  const bar = element('progress');
  const text = element('span', { className: 'note', textContent: 'Starting' });
  const stop = element('button', { type: 'button', textContent: 'Stop' });
  const state = element('div', { className: 'state running' }, element('strong', { textContent: link.textContent }), element('p', {}, bar, ' ', text), stop);
  state.setAttribute('role', 'status');
  outcome.replaceChildren(state);
  const source = new EventSource(link.dataset.run);
  const end = (words) => { source.close(); if (words) outcome.replaceChildren(element('p', { className: 'note', textContent: words })); };
  source.addEventListener('progress', (message) => {
    const { done, total, message: what } = JSON.parse(message.data);
    if (total) { bar.max = total; bar.value = done; } else bar.removeAttribute('value');
    text.textContent = total ? `${what}: ${done} of ${total}` : `${what}: ${done}`;
  });
  source.addEventListener('done', (message) => { end(); outcome.innerHTML = message.data; ready(outcome); });
  source.onerror = () => end('It could not be done now. Perhaps somebody else is doing it; try again in a while.');
  stop.addEventListener('click', () => end('Stopped.'));
  stop.focus();
});

// Chapters: a click seeks, and the one that plays is marked.
const player = $('[data-player]');
const chapters = all('[data-seek]');
if (player && chapters.length) {
  for (const chapter of chapters) chapter.addEventListener('click', (event) => {
    event.preventDefault();
    player.currentTime = Number(chapter.dataset.seek);
    player.play().catch(() => {});
    history.replaceState(null, '', chapter.href);
  });
  player.addEventListener('timeupdate', () => {
    const now = chapters.filter((chapter) => Number(chapter.dataset.seek) <= player.currentTime + 0.05).pop();
    for (const chapter of chapters) chapter.toggleAttribute('aria-current', chapter === now);
  });
}

// Folders open in place: a tree that is fetched as far as somebody looks.
function branches(rows, level) {
  for (const row of rows) {
    row.dataset.level = level;
    row.style.setProperty('--level', level);
    if (!row.dataset.folder) continue;
    const name = $('a', row).textContent;
    const button = element('button', { type: 'button', className: 'twig', textContent: '▸' });
    button.setAttribute('aria-label', `Folders in ${name}`);
    button.setAttribute('aria-expanded', 'false');
    button.addEventListener('click', () => unfold(row, button, level + 1));
    row.cells[0].prepend(button);
  }
}
async function unfold(row, button, level) {
  const open = button.getAttribute('aria-expanded') === 'true';
  if (open) while (Number(row.nextElementSibling?.dataset.level ?? 0) >= level) row.nextElementSibling.remove();
  else {
    button.disabled = true;
    const reply = await fetch(row.dataset.folder).catch(() => undefined);
    button.disabled = false;
    if (!reply?.ok) { location.href = $('a', row).href; return; }
    const made = element('template');
    made.innerHTML = await reply.text();
    const rows = all('tr', made.content);
    branches(rows, level);
    row.after(...rows);
    button.focus();
  }
  button.setAttribute('aria-expanded', String(!open));
  button.textContent = open ? '▸' : '▾';
}
branches(all('tr[data-folder]'), 0);

// A page that cannot be drawn says so instead of showing nothing.
addEventListener('error', (event) => {
  if (event.target.matches?.('.sheet img')) event.target.closest('.sheet').replaceWith(element('p', { className: 'note', textContent: `${event.target.alt} cannot be shown as an image now. Its text is here, and the file itself has its look.` }));
}, true);

// Choosing all rows of a table.
for (const box of all('[data-all]')) box.addEventListener('change', () => { for (const row of all('input[type=checkbox][name]', box.form)) row.checked = box.checked; });

// The palette and the shortcuts.
function dialog(content) {
  const box = document.createElement('dialog');
  box.append(...content);
  document.body.append(box);
  box.addEventListener('close', () => box.remove());
  box.addEventListener('click', (event) => { if (event.target === box) box.close(); });
  box.showModal();
  return box;
}
function palette() {
  if ($('dialog[open]')) return;
  // Links are gone to and buttons are pressed; what folds out is opened.
  const act = (target) => { if (target.href) location.href = target.href; else if (target.matches('summary')) { target.parentElement.open = true; target.focus(); } else target.click(); };
  const seen = (target) => target.getClientRects().length || target.closest('.side, .menu, [data-places]');
  const names = new Set();
  const places = all('.side a, .side button, .tabs a, main .actions a, main .actions button, main [data-act], main summary, main form:not(.filters) > button, main p > button, [data-places] a').filter(seen)
    .map((target) => [(target.getAttribute('aria-label') ?? target.innerText ?? '').trim() || target.textContent.trim(), target])
    .filter(([name, target]) => name && !target.disabled && !names.has(name) && names.add(name));
  const input = element('input', { type: 'search', placeholder: 'Go to, or search for' });
  input.setAttribute('aria-label', 'Go to a page or search');
  const list = element('ul');
  const fill = () => {
    const text = input.value.trim().toLowerCase();
    const fitting = places.filter(([name]) => name.toLowerCase().includes(text)).slice(0, 12);
    if (text) fitting.push([`Search for “${input.value.trim()}”`, { href: `/search?q=${encodeURIComponent(input.value.trim())}` }]);
    list.replaceChildren(...fitting.map(([name, target], at) => {
      const link = element('a', { href: target.href ?? '#', textContent: name, className: at ? '' : 'here' });
      link.addEventListener('click', (event) => { event.preventDefault(); box.close(); act(target); });
      return element('li', {}, link);
    }));
  };
  const box = dialog([input, list]);
  input.addEventListener('input', fill);
  box.addEventListener('keydown', (event) => {
    const links = all('a', list);
    const at = links.findIndex((link) => link.className === 'here');
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      const next = links[(at + (event.key === 'ArrowDown' ? 1 : links.length - 1)) % links.length];
      for (const link of links) link.className = link === next ? 'here' : '';
      next?.scrollIntoView({ block: 'nearest' });
    } else if (event.key === 'Enter') { event.preventDefault(); links[at]?.click(); }
  });
  fill();
  input.focus();
}
const KEYS = [['/', 'Search'], ['Ctrl K', 'Go to a page or action'], ['↓ ↑', 'Walk through results'], ['Enter', 'Open'], ['Esc', 'Back to the search box, close'], ['g then h, c, s, a, b', 'Overview, collections, search, activity, books'], ['?', 'This list']];
function shortcuts() {
  if ($('dialog[open]')) return;
  const list = element('dl', {}, ...KEYS.flatMap(([key, what]) => [element('dt', {}, element('kbd', { textContent: key })), element('dd', { textContent: what })]));
  const close = element('button', { textContent: 'Close' });
  const box = dialog([element('div', { className: 'keys' }, element('h2', { textContent: 'Shortcuts' }), list, close)]);
  close.addEventListener('click', () => box.close());
}
for (const button of all('[data-shortcuts]')) { button.hidden = false; button.addEventListener('click', shortcuts); }
let going = 0;
const GO = { c: '/c', s: '/search', a: '/activity', b: '/books', h: '/' };
document.addEventListener('keydown', (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') { event.preventDefault(); palette(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || $('dialog[open]')) return;
  const typing = event.target.closest?.('input, textarea, select');
  const search = $('form[role=search] input.big') ?? $('.quick input');
  if (typing) {
    if (event.key === 'Escape') typing.blur();
    else if (event.key === 'ArrowDown' && typing === $('[data-search] input[name=q]')) { if (walk(here < 0 ? 1 : 0)) event.preventDefault(); }
    return;
  }
  if (event.key === '/' && search) { event.preventDefault(); search.focus(); search.select(); }
  else if (event.key === '?') { event.preventDefault(); shortcuts(); }
  else if (event.key === 'Escape' && search && results) { search.focus(); if (pane) pane.hidden = true; shown = undefined; }
  else if ((event.key === 'ArrowDown' || event.key === 'j') && results) { if (walk(1)) event.preventDefault(); }
  else if ((event.key === 'ArrowUp' || event.key === 'k') && results) { if (walk(-1)) event.preventDefault(); }
  else if (event.key === 'g') going = Date.now();
  else if (Date.now() - going < 1000 && GO[event.key]) location.href = GO[event.key];
});
if ($('[data-graph]')) import('/console/graph.js');
