// The data of the page, its columns unpacked when first asked for.

const report = JSON.parse(document.getElementById('report-data').textContent);

// Lua writes an empty list as an empty object.
for (const run of report.runs) {
  for (const part of ['problems', 'curves', 'logged', 'results', 'notes']) run[part] = list(run[part]);
  for (const problem of run.problems) for (const part of ['strategies', 'devices']) problem[part] = list(problem[part]);
}

/** The map of a problem's graph; undefined where the run has none. */
function mapOf(problem) {
  const map = problem.graph && report.graphs[problem.graph - 1];
  if (!map || map.layerOf) return map;
  const operators = map.operators;
  map.layerOf = unpack(operators.layer_of);
  map.typeOf = unpack(operators.type_of);
  map.phaseOf = unpack(operators.phase);
  map.from = unpack(map.edges.from);
  map.to = unpack(map.edges.to);
  map.bytes = unpack(map.edges.bytes);
  map.members = map.layers.map(() => []);
  map.layerOf.forEach((layer, i) => map.members[layer - 1].push(i));
  return map;
}

/** Devices (from 1, 0: unknown) by operator of a strategy. */
function placementOf(strategy) {
  if (!strategy.devices && strategy.placement) strategy.devices = unpack(strategy.placement);
  return strategy.devices;
}

/** The operators of every layer by device: [[device, how many], ...] with the most first. */
function sharesOf(map, placement) {
  return map.members.map(members => {
    const counts = new Map();
    for (const i of members) counts.set(placement[i], (counts.get(placement[i]) || 0) + 1);
    return [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  });
}

function tracksOf(timeline) {
  if (timeline.read) return timeline.read;
  timeline.read = list(timeline.tracks).map(track => ({
    device: track.device, name: track.name, kind: track.kind, count: track.count,
    start: unpack(track.start), length: unpack(track.length), operator: unpack(track.operator),
    phase: unpack(track.phase), part: unpack(track.part), bytes: unpack(track.bytes),
  }));
  return timeline.read;
}

function memoryOf(timeline) {
  if (!timeline.levels) {
    timeline.levels = list(timeline.memory).map(memory => ({ time: unpack(memory.time), bytes: unpack(memory.bytes),
      peak: memory.peak }));
  }
  return timeline.levels;
}

/** The name of operator `number` (from 1) of a timeline. */
function operatorName(problem, timeline, number) {
  const map = mapOf(problem), known = map ? map.operators.name.length : 0;
  return number <= known ? map.operators.name[number - 1] : list(timeline.extra)[number - known - 1]
    || 'operator ' + number;
}

const phaseNames = ['forward', 'backward', 'update'];

/** A short label of a device: its own name without what all share where that says enough. */
function deviceLabels(devices) {
  if (devices.every(name => name.length <= 6)) return devices;
  return devices.map((name, d) => (/(\d+)$/.test(name) && name.length <= 9 ? name : String(d)));
}

/** The best run of every method of a problem's comparison, or its searches, as rows of the same shape. */
function comparisonRows(run, problem) {
  const found = list(run.results).find(result => result.kind === 'comparison' && list(result.data.rows).length
    && (result.data.problem === undefined ? run.problems.length === 1 : String(result.data.problem) === problem.id));
  if (found) {
    const bound = found.data.lower_bound_s;
    return { title: found.summary, best: found.data.best, bound, rows: found.data.rows.map(row => ({
      method: row.method, failures: list(row.failures), runs: list(row.runs).map(r => ({
        step: r.step_time_s, bound: r.lower_bound_s || bound, fits: r.fits,
          memory: Math.max(...list(r.peak_memory_bytes), 0),
        communication: r.peak_communication_bytes, evaluations: r.evaluations, seconds: r.seconds,
          reward: r.reward })) })) };
  }
  const bound = problem.bounds && problem.bounds.step_time_s;
  return { best: problem.strategies.length > 1 ? problem.strategies[0].method : undefined, bound,
    rows: problem.strategies.map(s => ({ method: s.method, failures: [], runs: [{ step: s.step_time_s, fits: s.fits,
      bound: s.lower_bound_s || bound, evaluations: s.evaluations, seconds: s.seconds,
      memory: s.timeline ? Math.max(...list(s.timeline.memory).map(m => m.peak), 0) || undefined : undefined,
      communication: s.timeline ? Math.max(...list(s.timeline.sent_bytes), 0) : undefined }] })) };
}
