// One layer opened: its operators in ranks from left to right, the forward pass above, then gradients and updates.

const operatorSize = { width: 148, height: 30, right: 44, down: 10 };

/** The rank of every operator of a layer: the longest path inside the layer and its phase. */
function ranksOf(map, members) {
  const inside = new Map(members.map((op, i) => [op, i])), rank = members.map(() => 0), edges = [];
  if (!map.innerFrom) {
    map.innerFrom = unpack(map.inner.from);
    map.innerTo = unpack(map.inner.to);
  }
  for (let e = 0; e < map.innerFrom.length; e++) {
    const a = inside.get(map.innerFrom[e] - 1), b = inside.get(map.innerTo[e] - 1);
    if (a !== undefined && b !== undefined) edges.push([a, b]);
  }
  const phase = i => map.phaseOf[members[i]];
  const rising = edges.filter(([a, b]) => phase(a) === phase(b)).sort((p, q) => p[0] - q[0] || p[1] - q[1]);
  for (let round = 0, changed = true; changed && round < 64; round++) {
    changed = false;
    for (const [a, b] of rising) if (rank[b] < rank[a] + 1
      && rank[a] < members.length) { rank[b] = rank[a] + 1; changed = true; }
  }
  return { rank, edges };
}

/** Where operators stand: bands by phase, ranks as columns; a long band is cut into lines of `most` ranks. */
function arrange(map, members, rank) {
  const { width, height, right, down } = operatorSize, places = members.map(() => null), bands = [];
  let top = 0, widest = 0;
  for (let phase = 0; phase < 3; phase++) {
    const own = members.map((op, i) => i).filter(i => map.phaseOf[members[i]] === phase);
    if (!own.length) continue;
    bands.push({ y: top + 16, name: phaseNames[phase] + ' · ' + own.length });
    top += 28;
    const perRank = new Map();
    for (const i of own) perRank.set(rank[i], (perRank.get(rank[i]) || []).concat(i));
    const ranks = [...perRank.keys()].sort((a, b) => a - b);
    const columns = [];
    for (const r of ranks) for (let k = 0; k < perRank.get(r).length; k += 12) columns.push(perRank.get(r).slice(k,
      k + 12));
    const most = Math.max(6, Math.ceil(Math.sqrt(columns.length * 2.5)));
    for (let c = 0; c < columns.length; c += most) {
      const line = columns.slice(c, c + most), rows = Math.max(...line.map(column => column.length));
      line.forEach((column, k) => column.forEach((i, row) => {
        places[i] = { x: k * (width + right) + width / 2 + 10,
          y: top + (row + (rows - column.length) / 2) * (height + down) + height / 2 };
      }));
      widest = Math.max(widest, line.length * (width + right));
      top += rows * (height + down) + 12;
    }
    top += 12;
  }
  return { places, bands, size: { width: widest + 20, height: top + 10 } };
}

function innerEdge(a, b) {
  const { width } = operatorSize, x1 = a.x + width / 2, x2 = b.x - width / 2;
  if (x2 > x1) return `M${x1} ${a.y} C${(x1 + x2) / 2} ${a.y} ${(x1 + x2) / 2} ${b.y} ${x2} ${b.y}`;
  const bend = a.y < b.y ? 18 : -18;
  return `M${a.x} ${a.y + bend * 0.85} C${a.x} ${a.y + bend * 2.5} ${b.x} ${b.y - bend * 2.5} ${b.x} ${b.y - bend * 0.85}`;
}

const mostDrawn = 3000;

function operatorPicture(problem, map, placement, layer) {
  const members = map.members[layer].slice(0, mostDrawn), labels = deviceLabels(problem.devices),
    prefix = 'ops' + pictures++ + '-';
  const { rank, edges } = ranksOf(map, members), { places, bands, size } = arrange(map, members, rank);
  const defs = el('defs', {}), scene = el('g', {}), own = map.layers[layer];
  for (const [a, b] of edges) {
    const same = placement[members[a]] === placement[members[b]];
    scene.append(el('path', { class: 'edge' + (same ? '' : ' cut'), d: innerEdge(places[a], places[b]) }));
  }
  for (const band of bands) scene.append(el('text', { class: 'band', x: 10, y: band.y }, band.name));
  const svg = el('svg', { tabindex: 0, role: 'group', 'aria-label': 'Operators of ' + own
    + '. Escape goes back to all layers.' }, defs, scene);
  const nodes = members.map((op, i) => {
    const full = map.operators.name[op], type = map.operators.type[map.typeOf[op] - 1], d = placement[op];
    const short = full.startsWith(own + '/') ? full.slice(own.length + 1) : full.replace('gradients/' + own + '/', '');
    const label = full + '\n' + type + ', ' + phaseNames[map.phaseOf[op]] + ', on '
      + (d ? problem.devices[d - 1] : 'no device');
    const element = drawNode(defs, prefix, { x: places[i].x, y: places[i].y, width: operatorSize.width,
      height: operatorSize.height, shares: [[d, 1]], labels, name: short || full, label, index: op });
    element.setAttribute('role', 'img');
    element.addEventListener('pointermove', event => tip.show(label, event.clientX, event.clientY));
    element.addEventListener('pointerleave', tip.hide);
    element.addEventListener('focus', () => say(label));
    scene.append(element);
    return { element, x: places[i].x, y: places[i].y };
  });
  const zoom = new PanZoom(svg, scene, size);
  rove(svg, nodes, zoom);
  return { svg, zoom, size };
}
