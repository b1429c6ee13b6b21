// What every device, link and memory does in one step: a canvas that zooms. Events narrower than a pixel are drawn together.

const laneHeight = { compute: 26, link: 14, collective: 14, memory: 40 };
const topAxis = 26;

/** Rows from top to bottom: { kind, track or memory, device, y, height, name }. */
function timelineRows(problem, timeline) {
  const rows = [], tracks = tracksOf(timeline), levels = memoryOf(timeline);
  let y = topAxis;
  const add = row => { row.y = y; row.height = laneHeight[row.kind]; y += row.height + 3; rows.push(row); };
  list(timeline.devices).forEach((full, d) => {
    const name = problem.devices[d] || full;
    if (!levels[d]?.peak && !tracks.some(track => track.device === d && track.count)) return; // it does nothing
    for (const track of tracks) {
      if (track.device !== d || !track.count) continue;
      add({ kind: track.kind, track, device: d, name: track.kind === 'compute' ? name : track.name });
    }
    if (levels[d] && levels[d].time.length) add({ kind: 'memory', memory: levels[d], device: d, name: 'memory',
      capacity: list(problem.capacity_bytes)[d] });
    y += 7;
  });
  return { rows, height: y + 4 };
}

/** The first index whose value is at least `value`. */
function lowerBound(values, value) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

function niceStep(span, most) {
  const rough = span / most, power = 10 ** Math.floor(Math.log10(rough));
  for (const factor of [1, 2, 5, 10]) if (power * factor >= rough) return power * factor;
  return power * 10;
}

const eventColour = (row, i) => (row.kind === 'link' ? linkColour : row.kind === 'collective' ? collectiveColour
  : phaseColours[row.track.phase[i]] || hues[7]);

/** The events of a row in [from, to] ns as boxes; those below a pixel are joined, in the colour that takes most of it. */
function drawEvents(ctx, row, view, names) {
  const { start, length } = row.track, scale = view.width / (view.to - view.from);
  let i = Math.max(0, lowerBound(start, view.from) - 1), pixel = -1, filled = 0, weight = new Map();
  const flush = () => {
    if (pixel >= 0 && filled > 0) {
      let colour = '', most = -1;
      for (const [name, w] of weight) if (w > most) { most = w; colour = name; }
      ctx.globalAlpha = Math.min(1, 0.35 + filled);
      ctx.fillStyle = colour;
      ctx.fillRect(view.left + pixel, row.y, 1, row.height);
      ctx.globalAlpha = 1;
    }
    filled = 0;
    weight = new Map();
  };
  let boxes = 0;
  for (; i < row.track.count && start[i] <= view.to; i++) {
    const x1 = (start[i] - view.from) * scale, x2 = x1 + length[i] * scale;
    if (x2 < 0) continue;
    if (x2 - x1 < 1) {
      const at = Math.floor(x1);
      if (at !== pixel) { flush(); pixel = at; }
      const share = Math.max(x2 - x1, 0.02), colour = eventColour(row, i);
      filled += share;
      weight.set(colour, (weight.get(colour) || 0) + share);
      continue;
    }
    const a = Math.max(0, x1), b = Math.min(view.width, x2);
    ctx.fillStyle = eventColour(row, i);
    ctx.fillRect(view.left + a, row.y, Math.max(1, b - a - (b - a > 4 ? 1 : 0)), row.height);
    boxes++;
    if (b - a > 34 && row.height > 12) {
      const name = view.parts > 1 && b - a < 120 ? String(row.track.part[i]) : names(row.track.operator[i]);
      const room = Math.floor((b - a - 8) / 6.2);
      ctx.fillStyle = inkOn(eventColour(row, i));
      if (room > 2) ctx.fillText(cut(name, room), view.left + a + 4, row.y + row.height / 2 + 4);
    }
  }
  flush();
  return boxes;
}

/** Memory as steps: the largest level of every pixel. */
function drawMemory(ctx, row, view) {
  const { time, bytes: level, peak } = row.memory, scale = view.width / (view.to - view.from);
  const top = Math.max(peak, row.capacity && row.capacity < peak * 4 ? row.capacity : 0) * 1.06 || 1;
  const y = value => row.y + row.height - value / top * row.height;
  let i = Math.max(0, lowerBound(time, view.from) - 1), last = i < time.length && time[i] <= view.from ? level[i] : 0;
  ctx.beginPath();
  ctx.moveTo(view.left, y(last));
  for (let pixel = 0; pixel <= view.width; pixel++) {
    const until = view.from + (pixel + 1) / scale;
    let most = last;
    while (i < time.length && time[i] < until) { last = level[i]; most = Math.max(most, last); i++; }
    ctx.lineTo(view.left + pixel, y(most));
  }
  ctx.lineTo(view.left + view.width, row.y + row.height);
  ctx.lineTo(view.left, row.y + row.height);
  ctx.closePath();
  ctx.fillStyle = hues[4];
  ctx.globalAlpha = theme.dark() ? 0.4 : 0.5;
  ctx.fill();
  ctx.globalAlpha = 1;
  if (row.capacity && row.capacity <= top) {
    ctx.strokeStyle = view.ink;
    ctx.setLineDash([5, 4]);
    ctx.beginPath();
    ctx.moveTo(view.left, y(row.capacity));
    ctx.lineTo(view.left + view.width, y(row.capacity));
    ctx.stroke();
    ctx.setLineDash([]);
  }
  ctx.fillStyle = view.ink;
  ctx.fillText('peak ' + bytes(peak) + (row.capacity ? ' of ' + bytes(row.capacity) : ''), view.left + 6, row.y + 12);
}

function drawAxis(ctx, view, height) {
  const span = view.to - view.from, step = niceStep(span, Math.max(2, view.width / 110));
  ctx.strokeStyle = view.grid;
  ctx.fillStyle = view.soft;
  for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
    const x = Math.round(view.left + (t - view.from) / span * view.width) + 0.5;
    ctx.beginPath();
    ctx.moveTo(x, topAxis - 6);
    ctx.lineTo(x, height);
    ctx.stroke();
    const label = seconds(t / 1e9, Math.max(3, Math.ceil(Math.log10((t || 1) / step)) + 1)),
      wide = ctx.measureText(label).width;
    if (x + wide / 2 < view.left + view.width && x - wide / 2 > 0) ctx.fillText(label, x - wide / 2, 14);
  }
}

const canvasFont = '11px system-ui, "DejaVu Sans", sans-serif';

/** The timeline of a strategy. */
class Timeline {
  constructor(problem, timeline) {
    Object.assign(this, timelineRows(problem, timeline), { problem, timeline, chosen: null, queued: false, drawn: 0 });
    this.all = Math.max(1, timeline.step_ns);
    this.view = { from: 0, to: this.all, left: 90, width: 600, parts: timeline.micro_batches };
    this.names = number => operatorName(problem, timeline, number);
    this.lanes = this.rows.filter(row => row.track);
    this.canvas = el('canvas', { tabindex: 0, role: 'img', 'aria-roledescription': 'timeline',
      'aria-label': 'Timeline of a step of ' + seconds(timeline.step_ns / 1e9)
        + '. Left and right go from event to event, up and down from lane to lane, plus and minus zoom, zero shows all.' });
    this.element = el('div', { class: 'stage time' }, this.canvas);
    theme.listeners.push(() => this.queue());
    new ResizeObserver(() => this.queue()).observe(this.element);
    listenTimeline(this.canvas, this);
  }

  queue() {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => this.paint());
  }

  /** Sizes the canvas and reads the theme; false where the page has no room for it yet. */
  prepare() {
    const { canvas, view, height } = this, width = this.element.clientWidth, ratio = devicePixelRatio || 1;
    this.queued = false;
    if (!width) return false;
    view.left = width < 560 ? 62 : 104;
    view.width = width - view.left - 8;
    Object.assign(view, { ink: theme.color('ink'), soft: theme.color('soft'), grid: theme.color('grid') });
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = height + 'px';
    }
    const ctx = canvas.getContext('2d');
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, height);
    ctx.font = canvasFont;
    return ctx;
  }

  paint() {
    const ctx = this.prepare(), { view, canvas } = this;
    if (!ctx) return;
    drawAxis(ctx, view, this.height);
    this.drawn = 0;
    for (const row of this.rows) {
      ctx.save();
      ctx.beginPath();
      ctx.rect(view.left, row.y, view.width, row.height);
      ctx.clip();
      if (row.track) this.drawn += drawEvents(ctx, row, view, this.names); else drawMemory(ctx, row, view);
      ctx.restore();
      ctx.fillStyle = row.kind === 'compute' ? view.ink : view.soft;
      ctx.font = (row.kind === 'compute' ? '600 ' : '') + canvasFont;
      ctx.fillText(cut(row.name, view.left < 80 ? 9 : 15), 8, row.y + row.height / 2 + 4);
      ctx.font = canvasFont;
    }
    this.paintChosen(ctx);
    Object.assign(canvas.dataset, { from: view.from.toFixed(0), to: view.to.toFixed(0), drawn: this.drawn });
  }

  paintChosen(ctx) {
    if (!this.chosen) return;
    const { view, chosen: { row, i } } = this, scale = view.width / (view.to - view.from),
      x = view.left + (row.track.start[i] - view.from) * scale;
    const a = Math.max(view.left, x), b = Math.min(view.left + view.width,
      x + Math.max(3, row.track.length[i] * scale));
    ctx.strokeStyle = view.ink;
    ctx.lineWidth = 2;
    if (b > a) ctx.strokeRect(a - 1, row.y - 1, b - a + 2, row.height + 2);
    ctx.lineWidth = 1;
  }

  look(from, to) {
    const { view, all } = this, span = Math.min(all, Math.max(20, to - from));
    view.from = Math.max(0, Math.min(all - span, from));
    view.to = view.from + span;
    this.queue();
  }

  zoom(factor, at) {
    const { view } = this, middle = at === undefined ? (view.from + view.to) / 2 : at,
      from = middle - (middle - view.from) / factor;
    this.look(from, from + (view.to - view.from) / factor);
  }

  timeAt(x) { return this.view.from + (x - this.view.left) / this.view.width * (this.view.to - this.view.from); }

  describe(row, i) {
    const { track } = row, what = row.kind === 'compute' ? phaseNames[track.phase[i]] : row.kind === 'link'
      ? bytes(track.bytes[i]) + ' ' + track.name : 'collective, ' + bytes(track.bytes[i]);
    return this.names(track.operator[i]) + '\n' + (this.problem.devices[row.device] || '') + ', ' + what
      + (this.view.parts > 1 ? ', micro-batch ' + track.part[i] : '')
      + '\n' + seconds(track.length[i] / 1e9) + ', from ' + seconds(track.start[i] / 1e9, 6);
  }

  eventAt(x, y) {
    const row = this.lanes.find(r => y >= r.y - 1 && y <= r.y + r.height + 2);
    if (!row) return null;
    const t = this.timeAt(x), { start, length, count: n } = row.track, after = lowerBound(start, t);
    let best = -1, nearest = 3 / this.view.width * (this.view.to - this.view.from);
    for (const k of [after - 1, after]) {
      if (k < 0 || k >= n) continue;
      const away = Math.max(0, start[k] - t, t - start[k] - length[k]);
      if (away <= nearest) { nearest = away; best = k; }
    }
    return best < 0 ? null : { row, i: best };
  }

  memoryAt(x, y) {
    const row = this.rows.find(r => r.memory && y >= r.y && y <= r.y + r.height);
    if (!row) return null;
    const i = lowerBound(row.memory.time, this.timeAt(x) + 1) - 1;
    return i < 0 ? null : (this.problem.devices[row.device] || '') + '\n' + bytes(row.memory.bytes[i], 4) + ' at '
      + seconds(this.timeAt(x) / 1e9, 5);
  }

  /** Chooses what lies under the pointer. */
  point(x, y, pageX, pageY) {
    const found = this.eventAt(x, y), memory = found ? null : this.memoryAt(x, y);
    this.choose(found);
    if (found) tip.show(this.describe(found.row, found.i), pageX, pageY);
    else if (memory) tip.show(memory, pageX, pageY);
    else tip.hide();
  }

  choose(event) {
    this.chosen = event;
    this.queue();
  }

  /** Brings the chosen event into view and says what it is. */
  tell() {
    const { view, chosen: { row, i } } = this, start = row.track.start[i], span = view.to - view.from,
      said = this.describe(row, i);
    if (start < view.from || start + Math.min(row.track.length[i], span) > view.to) this.look(start - span * 0.3,
      start + span * 0.7);
    this.queue();
    const box = this.canvas.getBoundingClientRect(), x = view.left
      + (start - view.from) / (view.to - view.from) * view.width;
    tip.show(said, box.left + Math.max(view.left, x), box.top + row.y + row.height);
    say(said.replace(/\n/g, ', '));
    this.canvas.dataset.chosen = this.names(row.track.operator[i]);
  }

  nearest(row, time) { return { row, i: Math.max(0, Math.min(row.track.count - 1,
    lowerBound(row.track.start, time))) }; }

  step(way) {
    if (!this.lanes.length) return;
    if (!this.chosen) this.chosen = this.nearest(this.lanes[0], this.view.from);
    else this.chosen.i = Math.max(0, Math.min(this.chosen.row.track.count - 1, this.chosen.i + way));
    this.tell();
  }

  lane(way) {
    if (!this.chosen) return this.step(0);
    const { row, i } = this.chosen, next = Math.max(0, Math.min(this.lanes.length - 1, this.lanes.indexOf(row) + way));
    this.chosen = this.nearest(this.lanes[next], row.track.start[i]);
    this.tell();
  }
}

/** Mouse and touch of a timeline. */
function pointTimeline(canvas, t) {
  const pointers = new Map();
  let before = null;
  const at = event => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left,
    event.clientY - box.top]; };
  const pan = pixels => { const by = pixels / t.view.width * (t.view.to - t.view.from); t.look(t.view.from + by,
    t.view.to + by); };
  canvas.addEventListener('wheel', event => {
    const across = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (document.activeElement !== canvas && !event.ctrlKey && !event.metaKey && !across) return; // the page scrolls
    event.preventDefault();
    if (across) pan(event.deltaX);
    else t.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), t.timeAt(at(event)[0]));
  }, { passive: false });
  canvas.addEventListener('pointerdown', event => {
    pointers.set(event.pointerId, at(event));
    before = null;
  });
  canvas.addEventListener('pointermove', event => {
    const [x, y] = at(event), last = pointers.get(event.pointerId);
    if (!last) return t.point(x, y, event.clientX, event.clientY);
    if (!canvas.hasPointerCapture(event.pointerId)) canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, [x, y]);
    const points = [...pointers.values()];
    if (points.length === 1) return pan(last[0] - x);
    const distance = Math.abs(points[0][0] - points[1][0]);
    if (before && distance > 4) t.zoom(distance / before, t.timeAt((points[0][0] + points[1][0]) / 2));
    before = distance;
  });
  for (const name of ['pointerup', 'pointercancel']) canvas.addEventListener(name,
    event => { pointers.delete(event.pointerId); before = null; });
  canvas.addEventListener('pointerleave', () => { t.choose(null); tip.hide(); });
}

function listenTimeline(canvas, t) {
  pointTimeline(canvas, t);
  canvas.addEventListener('blur', tip.hide);
  canvas.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const span = t.view.to - t.view.from, pan = way => t.look(t.view.from + way * span * 0.25,
      t.view.to + way * span * 0.25);
    const keys = { '+': () => t.zoom(1.5), '=': () => t.zoom(1.5), '-': () => t.zoom(1 / 1.5),
      0: () => t.look(0, t.all), ArrowUp: () => t.lane(-1), ArrowDown: () => t.lane(1),
      ArrowLeft: () => (event.shiftKey ? pan(-1) : t.step(-1)),
        ArrowRight: () => (event.shiftKey ? pan(1) : t.step(1)) };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
}

function timelineCard(problem) {
  const found = problem.strategies.filter(s => s.timeline && s.timeline.events);
  if (!found.length) return null;
  const place = el('div', {}), notes = el('p', { class: 'hint' });
  let view = null;
  const update = strategy => {
    const timeline = strategy.timeline;
    view = new Timeline(problem, timeline);
    place.replaceChildren(view.element);
    later(() => view.paint());
    notes.textContent = count(timeline.events) + ' events in ' + seconds(timeline.step_ns / 1e9)
      + (timeline.micro_batches > 1 ? ', ' + timeline.micro_batches + ' micro-batches' : '');
  };
  const kinds = new Set(found.flatMap(s => list(s.timeline.tracks).map(track => track.kind)));
  const card = el('div', { class: 'card' }, el('h3', {}, problem.model + ' on ' + problem.cluster),
    el('div', { class: 'tools' }, notes, el('span', { class: 'space' }),
      chooser('Found by', found.map(s => s.method + ' · ' + seconds(s.step_time_s)), i => update(found[i])),
      button('+', 'Zoom in', () => view.zoom(1.6)), button('−', 'Zoom out', () => view.zoom(1 / 1.6)),
        button('All', 'Show the whole step', () => view.look(0, view.all))),
    legend([...phaseNames.map((name, i) => [boxSwatch(phaseColours[i]), name]),
      kinds.has('link') ? [boxSwatch(linkColour), 'transfers'] : null,
      kinds.has('collective') ? [boxSwatch(collectiveColour), 'collectives'] : null,
        [boxSwatch(hues[4] + '88'), 'memory, dashes: its limit']].filter(Boolean)), place);
  update(found[0]);
  return card;
}

function timelineSection(run, id) {
  const cards = run.problems.map(timelineCard).filter(Boolean);
  if (!cards.length) return null;
  return el('section', { id }, el('h2', {}, 'One step, as simulated'),
    el('p', { class: 'note' }, 'Point at an event to read it; drag to move, ', el('kbd', {}, 'Ctrl'),
      ' and the wheel or two fingers zoom. With the keyboard: ',
      el('kbd', {}, '←'), ' ', el('kbd', {}, '→'), ' events, ', el('kbd', {}, '↑'), ' ', el('kbd', {}, '↓'),
        ' lanes, ', el('kbd', {}, '+'), ' ', el('kbd', {}, '−'), ' zoom, ', el('kbd', {}, '0'), ' all.'),
    cards.slice(0, 3), cards.length > 3 ? foldLater((cards.length - 3) + ' more timelines', cards.slice(3)) : null);
}
