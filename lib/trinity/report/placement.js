// The found placement on the map of the graph's layers, coloured by device; a layer opens into its operators.

/** Moves and scales `scene` (a <g>) inside `svg`: drag, pinch, wheel, keys. `size` is the scene's { width, height }. */
class PanZoom {
  constructor(svg, scene, size) {
    Object.assign(this, { svg, scene, size, k: 1, x: 0, y: 0, pointers: new Map(), moved: 0, before: null });
    svg.addEventListener('wheel', event => this.wheel(event), { passive: false });
    svg.addEventListener('pointerdown', event => this.press(event));
    svg.addEventListener('pointermove', event => this.move(event));
    for (const name of ['pointerup', 'pointercancel', 'pointerleave']) {
      svg.addEventListener(name, event => { this.pointers.delete(event.pointerId); this.before = null; });
    }
    svg.addEventListener('click', event => this.click(event), true);
    svg.addEventListener('keydown', event => this.key(event));
  }

  box() { return this.svg.getBoundingClientRect(); }

  apply() {
    this.scene.setAttribute('transform', `translate(${this.x.toFixed(2)} ${this.y.toFixed(2)}) scale(${this.k.toFixed(5)})`);
    this.svg.classList.toggle('far', this.k < 0.62);
    this.svg.dataset.zoom = this.k.toFixed(4);
  }

  scaleTo(factor, cx, cy) {
    const { width, height } = this.box();
    const least = Math.min((width || 800) / this.size.width, (height || 500) / this.size.height, 1) * 0.6;
    const next = Math.min(4, Math.max(least, this.k * factor));
    this.x = cx - (cx - this.x) * next / this.k;
    this.y = cy - (cy - this.y) * next / this.k;
    this.k = next;
    this.apply();
  }

  by(factor) { this.scaleTo(factor, this.box().width / 2, this.box().height / 2); }

  fit() {
    const { width, height } = this.box();
    this.k = Math.min(width / this.size.width, height / this.size.height, 1.3) || 1;
    this.x = (width - this.size.width * this.k) / 2;
    this.y = (height - this.size.height * this.k) / 2;
    this.apply();
  }

  /** Brings a point of the scene into view. */
  show(cx, cy) {
    const { width, height } = this.box(), { k } = this;
    if (cx * k + this.x < 20 || cx * k + this.x > width - 20) this.x = width / 2 - cx * k;
    if (cy * k + this.y < 20 || cy * k + this.y > height - 20) this.y = height / 2 - cy * k;
    this.apply();
  }

  shift(x, y) {
    this.x += x;
    this.y += y;
    this.apply();
  }

  wheel(event) {
    if (!this.svg.contains(document.activeElement) && !event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    const { left, top } = this.box();
    this.scaleTo(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.clientX - left, event.clientY - top);
  }

  press(event) {
    this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
    this.moved = 0;
    this.before = null;
  }

  move(event) {
    const last = this.pointers.get(event.pointerId);
    if (!last) return;
    const dx = event.clientX - last[0], dy = event.clientY - last[1];
    this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
    const points = [...this.pointers.values()];
    if (points.length === 1) {
      this.moved += Math.abs(dx) + Math.abs(dy);
      if (this.moved > 6 && !this.svg.hasPointerCapture(event.pointerId)) this.svg.setPointerCapture(event.pointerId);
      this.shift(dx, dy);
    } else if (points.length === 2) {
      const distance = Math.hypot(points[0][0] - points[1][0], points[0][1] - points[1][1]), { left, top } = this.box();
      this.shift(dx / 2, dy / 2);
      const middle = [(points[0][0] + points[1][0]) / 2 - left, (points[0][1] + points[1][1]) / 2 - top];
      if (this.before) this.scaleTo(distance / this.before, ...middle);
      this.before = distance;
      this.moved += 10;
    }
  }

  /** The click that ends a drag chooses nothing. */
  click(event) {
    if (this.moved > 6) { event.stopPropagation(); event.preventDefault(); }
    this.moved = 0;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 60, moves = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    if (event.key === '+' || event.key === '=') this.by(1.3);
    else if (event.key === '-') this.by(1 / 1.3);
    else if (event.key === '0') this.fit();
    else if (moves[event.key] && (event.target === this.svg || event.shiftKey)) this.shift(...moves[event.key]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

function cut(name, most) { return name.length <= most ? name : '…' + name.slice(name.length - most + 1); }

/** Where the parts of a node lie: [[device, from, to], ...] over its width. */
function segments(shares, width) {
  const all = shares.reduce((sum, share) => sum + share[1], 0) || 1;
  let at = 0;
  return shares.map(([device, members]) => {
    const from = at;
    at += members / all * width;
    return [device, from, at];
  });
}

/** Nodes reached by arrow keys: one tab stop for all. nodes: [{ element, x, y }]. */
function rove(svg, nodes, zoom) {
  let current = 0;
  const focus = i => {
    nodes[current].element.setAttribute('tabindex', -1);
    current = i;
    nodes[i].element.setAttribute('tabindex', 0);
    zoom.show(nodes[i].x, nodes[i].y);
    nodes[i].element.focus();
  };
  nodes.forEach((node, i) => {
    node.element.setAttribute('tabindex', i === 0 ? 0 : -1);
    node.element.addEventListener('keydown', event => {
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!way || event.shiftKey) return;
      event.preventDefault();
      event.stopPropagation();
      let best = -1, least = Infinity;
      nodes.forEach((other, j) => {
        const dx = other.x - node.x, dy = other.y - node.y, along = dx * way[0] + dy * way[1],
          across = Math.abs(dx * way[1]) + Math.abs(dy * way[0]);
        if (along > 1 && along + 2.5 * across < least) { least = along + 2.5 * across; best = j; }
      });
      if (best >= 0) focus(best);
    });
  });
}

let pictures = 0;

/** One node: colours of its devices, a plate with its name, a frame. */
function drawNode(defs, prefix, node) {
  const { x, y, width, height, shares, labels } = node;
  const clip = prefix + 'clip';
  if (!defs.querySelector('#' + clip)) defs.append(el('clipPath', { id: clip }, el('rect', { width, height, rx: 7 })));
  const where = shares.slice(0, 4).map(([d]) => (d ? labels[d - 1] : '?')).join(' + ')
    + (shares.length > 4 ? ' +' + (shares.length - 4) : '');
  return el('g', { class: 'node', role: 'button', transform: `translate(${x - width / 2} ${y - height / 2})`,
    'aria-label': node.label, 'data-node': node.index },
    el('g', { 'clip-path': `url(#${clip})` },
      segments(shares, width).map(([d, from, to]) => el('rect',
        { x: from, width: Math.max(0.5, to - from), height, fill: deviceFill(d, defs, prefix) })),
      el('rect', { class: 'plate', width, height: height - 8 })),
    el('text', { x: 8, y: (height - 8) / 2 + 4 }, cut(node.name, Math.floor((width - 22 - where.length * 5.8) / 6.5))),
    el('text', { class: 'where', x: width - 8, y: (height - 8) / 2 + 4, 'text-anchor': 'end' }, where),
    el('rect', { class: 'frame', width, height, rx: 7 }));
}

function shareText(shares, devices) {
  return shares.map(([d, n]) => n + ' on ' + (d ? devices[d - 1] : 'no device')).join(', ');
}

/** A long network cut into columns, read like those of a newspaper, so that it is about `wide` times as wide as high. */
function foldLayout(layout, wide) {
  const ranks = [...new Set(layout.y.map(Math.round))].sort((a, b) => a - b), low = Math.min(...layout.x), gap = 60;
  const width = Math.max(...layout.x) - low + layout.width + gap,
    height = ranks[ranks.length - 1] - ranks[0] + layout.height;
  const columns = Math.min(ranks.length, Math.max(1, Math.round(Math.sqrt(wide * height / width)))),
    columnOf = new Map(), top = [];
  ranks.forEach((rank, r) => {
    const column = Math.floor(r * columns / ranks.length);
    columnOf.set(rank, column);
    if (top[column] === undefined) top[column] = rank;
  });
  const of = layout.y.map(y => columnOf.get(Math.round(y))),
    right = (x, c) => x - low + layout.width / 2 + 12 + c * width, down = (y, c) => y - top[c] + layout.height / 2 + 12;
  return { width: layout.width, height: layout.height, of, x: layout.x.map((x, i) => right(x, of[i])),
    y: layout.y.map((y, i) => down(y, of[i])),
    path: (points, c) => points.map((value, k) => (k % 2 ? down(value, c) : right(value, c))),
    size: { width: columns * width - gap + 24, height: Math.max(...layout.y.map((y, i) => down(y, of[i])))
      + layout.height / 2 + 12 } };
}

function edgePath(map, layout, i) {
  const points = map.layout.paths[i], column = layout.of[map.from[i] - 1];
  if (points && column === layout.of[map.to[i] - 1]) {
    const path = layout.path(points, column);
    return { d: 'M' + path.slice(0, 2).join(' ') + ' C' + path.slice(2).join(' '), jump: false };
  }
  const a = map.from[i] - 1, b = map.to[i] - 1, y1 = layout.y[a] + layout.height / 2,
    y2 = layout.y[b] - layout.height / 2;
  const bend = Math.max(20, Math.abs(y2 - y1) / 3);
  return { d: `M${layout.x[a]} ${y1} C${layout.x[a]} ${y1 + bend} ${layout.x[b]} ${y2 - bend} ${layout.x[b]} ${y2}`,
    jump: column !== layout.of[b] };
}

/** The picture of all layers. open(layer) is called for the one that is chosen. */
function layerPicture(problem, map, placement, open, wide) {
  const layout = foldLayout(map.layout, wide), prefix = 'map' + pictures++ + '-',
    labels = deviceLabels(problem.devices);
  const shares = sharesOf(map, placement), defs = el('defs', {}), scene = el('g', {});
  for (let i = 0; i < map.from.length; i++) {
    const same = shares[map.from[i] - 1].length === 1 && shares[map.to[i] - 1].length === 1
      && shares[map.from[i] - 1][0][0] === shares[map.to[i] - 1][0][0];
    const { d, jump } = edgePath(map, layout, i);
    scene.append(el('path', { class: 'edge' + (jump ? ' jump' : '') + (same ? '' : ' cut'), d }));
  }
  const svg = el('svg', { tabindex: 0, role: 'group', 'aria-label': 'Layers of ' + problem.model
    + ' by device. Arrow keys move, plus and minus zoom, Tab goes to the layers.' }, defs, scene);
  const nodes = map.layers.map((name, i) => {
    const members = map.members[i].length;
    const label = name + ': ' + members + (members === 1 ? ' operator' : ' operators') + ', '
      + shareText(shares[i], problem.devices);
    const element = drawNode(defs, prefix, { x: layout.x[i], y: layout.y[i], width: layout.width,
      height: layout.height, shares: shares[i], labels, name, label, index: i });
    element.addEventListener('click', () => open(i));
    element.addEventListener('keydown', event => { if (event.key === 'Enter'
      || event.key === ' ') { event.preventDefault(); open(i); } });
    element.addEventListener('pointermove', event => tip.show(label, event.clientX, event.clientY));
    element.addEventListener('pointerleave', tip.hide);
    scene.append(element);
    return { element, x: layout.x[i], y: layout.y[i] };
  });
  const zoom = new PanZoom(svg, scene, layout.size);
  rove(svg, nodes, zoom);
  return { svg, zoom, size: layout.size };
}

function deviceLegend(problem, placement) {
  const counts = problem.devices.map(() => 0);
  for (const d of placement) if (d) counts[d - 1]++;
  const entries = problem.devices.map((name, d) => [deviceSwatch(d + 1),
    name + ' · ' + count(counts[d]) + ' operators', counts[d]]), used = entries.filter(entry => entry[2]);
  const idle = entries.length - used.length, shown = entries.length <= 8 ? entries : used;
  return [legend(shown.slice(0, 24)), shown.length > 24
    ? fold((shown.length - 24) + ' more devices', legend(shown.slice(24))) : null,
    entries.length > 8 && idle ? el('p', { class: 'hint' }, count(idle) + ' more devices run nothing.') : null];
}

function layerTable(problem, map, placement) {
  const shares = sharesOf(map, placement);
  return table(['Layer', 'Operators', 'Devices'], map.layers.map((name, i) => [name, count(map.members[i].length),
    shareText(shares[i], problem.devices)]), { numbers: [1] });
}

const button = (name, label, act) => el('button', { type: 'button', 'aria-label': label, onclick: act }, name);

/** The map of a problem's placements in `stage`: all layers, or one that is open. */
class LayerMap {
  constructor(problem, map, stage, crumb, back) {
    Object.assign(this, { problem, map, stage, crumb, back, opened: -1, picture: null, placement: null });
    back.addEventListener('click', () => this.overview(true));
    stage.addEventListener('keydown', event => {
      if (event.key !== 'Escape' || this.opened < 0) return;
      event.preventDefault();
      this.overview(true);
    });
    redraw(stage, () => this.show());
  }

  set(placement) {
    this.placement = placement;
    this.show();
  }

  /** Draws again what is shown, and keeps the focus where it was. */
  show() {
    if (!this.placement) return;
    const node = this.stage.contains(document.activeElement) && document.activeElement.dataset.node;
    if (this.opened >= 0) this.open(this.opened); else this.overview();
    const again = node !== false && (this.stage.querySelector(`[data-node="${node}"]`) || this.stage.firstChild);
    if (again) again.focus();
  }

  put(picture) {
    const width = this.stage.clientWidth || 900, { size } = picture;
    this.stage.style.height = Math.round(Math.max(260,
      Math.min(width * size.height / size.width + 24, Math.max(420, innerHeight * 0.72)))) + 'px';
    this.stage.replaceChildren(picture.svg);
    picture.svg.setAttribute('viewBox', `0 0 ${this.stage.clientWidth || width} ${this.stage.clientHeight || 500}`); // paper is narrower
    this.picture = picture;
    picture.zoom.fit();
  }

  overview(focus) {
    const { problem, map } = this, last = this.opened, width = this.stage.clientWidth || 900;
    this.opened = -1;
    this.back.hidden = true;
    this.crumb.textContent = count(map.layers.length) + ' layers, ' + count(map.operators.name.length)
      + ' operators; choose a layer to open it';
    this.put(layerPicture(problem, map, this.placement, layer => this.open(layer, true),
      Math.min(2.1, Math.max(0.7, width / 560))));
    const node = focus && this.stage.querySelector(`[data-node="${last}"]`);
    if (node) node.focus();
  }

  open(layer, focus) {
    const { problem, map } = this;
    this.opened = layer;
    tip.hide();
    this.back.hidden = false;
    this.crumb.textContent = map.layers[layer] + ': ' + count(map.members[layer].length) + ' operators';
    this.put(operatorPicture(problem, map, this.placement, layer));
    if (!focus) return;
    this.stage.firstChild.focus();
    say('Opened ' + this.crumb.textContent + '. Escape goes back.');
  }
}

/** The card of a problem's placements. */
function placementCard(problem) {
  const map = mapOf(problem), found = problem.strategies.filter(s => placementOf(s));
  if (!map || !found.length) return null;
  const stage = el('div', { class: 'stage map' }), below = el('div', {}), keys = el('div', {}),
    crumb = el('span', { class: 'hint' });
  const back = el('button', { type: 'button', hidden: true }, '← All layers'),
    view = new LayerMap(problem, map, stage, crumb, back);
  const update = i => {
    const placement = placementOf(found[i]);
    keys.replaceChildren(...deviceLegend(problem, placement).filter(Boolean));
    below.replaceChildren(fold('The layers as a table', layerTable(problem, map, placement)));
    view.set(placement);
  };
  const zoom = () => view.picture.zoom;
  const tools = el('div', { class: 'tools' }, back, crumb, el('span', { class: 'space' }),
    chooser('Found by', found.map(s => s.method + ' · ' + seconds(s.step_time_s)), update),
    button('+', 'Zoom in', () => zoom().by(1.4)), button('−', 'Zoom out', () => zoom().by(1 / 1.4)),
      button('Fit', 'Show all', () => zoom().fit()));
  update(0);
  return el('div', { class: 'card' }, el('h3', {}, problem.model + ' on ' + problem.cluster), tools, keys, stage,
    below);
}

function placementSection(run, id) {
  const cards = run.problems.map(placementCard).filter(Boolean);
  if (!cards.length) return null;
  return el('section', { id }, el('h2', {}, 'Where everything runs'),
    el('p', { class: 'note' },
      'The graph, its operators grouped into layers. A layer shows the colours of the devices that run its operators, in proportion to their number. ',
      'Amber lines join layers on different devices. Drag to move; ', el('kbd', {}, 'Ctrl'),
        ' and the wheel, or two fingers, zoom.'),
    cards.slice(0, 3), cards.length > 3 ? foldLater((cards.length - 3) + ' more placements', cards.slice(3)) : null);
}

/** Content that is put into the page when it is opened. */
function foldLater(title, content) {
  const box = fold(title);
  box.addEventListener('toggle', () => { if (box.open && box.childElementCount === 1) box.append(...content); });
  return box;
}
