// Results of single experiments: memory and traffic, splits of layers, replicas that synchronise less, measured runs, tables.

const mostBars = 64;

function deviceCard(problem) {
  const best = problem.strategies.find(s => s.timeline && s.timeline.events);
  if (!best) return null;
  const timeline = best.timeline, names = problem.devices, capacity = list(problem.capacity_bytes),
    peaks = list(timeline.memory).map(m => m.peak);
  const used = names.map((name, d) => d).filter(d => names.length <= 8 || peaks[d] || timeline.sent_bytes[d]
    || timeline.received_bytes[d]).slice(0, mostBars);
  const memory = used.map(d => ({ label: names[d] || 'device ' + d, value: peaks[d], limit: capacity[d],
    note: isNumber(capacity[d]) ? '· ' + Math.round(100 * peaks[d] / capacity[d]) + ' %' : '' }));
  const traffic = used.map(d => [names[d], d]).flatMap(([name, d]) => [{ label: name, group: 'sent',
    value: timeline.sent_bytes[d] }, { label: name, group: 'received', value: timeline.received_bytes[d] }]);
  const groups = [{ name: 'sent', colour: linkColour }, { name: 'received', colour: hues[7] }],
    several = names.length > 1 && traffic.some(row => row.value);
  return el('div', { class: 'card' }, el('h3', {}, problem.model + ' on ' + problem.cluster + ', by ' + best.method),
    used.length < names.length ? el('p', { class: 'note' },
      'Shown are ' + used.length + ' of ' + names.length + ' devices'
      + (used.length === mostBars ? '.' : ', those that do something.')) : null,
    el('div', { class: 'charts' },
      el('div', {}, el('h3', {}, 'Peak memory; the line is the limit'),
        bars(memory, { label: 'Peak memory by device: ' + memory.map(m => m.label + ' ' + bytes(m.value)).join(', '),
        title: 'bytes at once', unit: 'B', groups: [{ name: '', colour: hues[4] }] })),
      several ? el('div', {}, el('h3', {}, 'Copied between devices in a step'),
        legend(groups.map(g => [boxSwatch(g.colour), g.name])),
        bars(traffic, { label: 'Bytes sent and received by device', title: 'bytes a step', unit: 'B', groups }))
          : null));
}

function deviceSection(run, id) {
  const cards = run.problems.map(deviceCard).filter(Boolean);
  if (!cards.length) return null;
  return el('section', { id }, el('h2', {}, 'What every device holds and sends'), cards.slice(0, 3),
    cards.length > 3 ? foldLater((cards.length - 3) + ' more', cards.slice(3)) : null);
}

/** How a layer is split: a bar whose parts are the dimensions, as wide as the logarithm of their factors. */
function splitBar(dimensions, factors) {
  const parts = dimensions.map((name, i) => ({ name, factor: factors[i] || 1, i })).filter(part => part.factor > 1);
  const most = Math.log2(Math.max(2, parts.reduce((product, part) => product * part.factor, 1)));
  if (!parts.length) return el('span', { class: 'note' }, 'not split');
  return el('div', { class: 'split', title: parts.map(p => p.name + ' in ' + p.factor).join(', ') }, parts.map(part => {
    const colour = hue(part.name.charCodeAt(0) * 5 + part.name.length);
    return el('span',
      { style: `width: ${Math.log2(part.factor) / most * 100}%; background: ${colour}; color: ${inkOn(colour)}` },
      part.name + ' ' + part.factor);
  }));
}

const words = value => (Array.isArray(value) ? value.map(text)
  : String(value === undefined ? '' : value).split(/[\s,]+/).filter(Boolean));
const factorsOf = value => (Array.isArray(value) ? value : String(value).match(/\d+/g) || []).map(Number);

function paseCard(result) {
  const networks = list(result.data.networks), place = el('div', {});
  if (!networks.length) return null;
  const show = i => {
    const n = networks[i], steps = list(n.steps), rows = list(n.strategy);
    const groups = [{ name: 'simulated', colour: hues[0] }, { name: 'measured in the paper', colour: hues[1] }];
    place.replaceChildren(...[
      el('p', {}, n.network + ' on ' + n.devices + ' devices: cost '
        + (n.cost >= 1e6 ? Number(n.cost).toExponential(4) : trim(n.cost, 6)) + ' FLOP equivalents'
        + (n.optimal ? ', proved optimal' : ', not proved optimal')
        + (isNumber(n.seconds) ? ', found in ' + seconds(n.seconds, 3) : '') + '.'),
      n.over_best && Object.keys(n.over_best).length ? [el('h3', {}, 'Cost of other strategies over the best one'),
        bars([['best', 1], ...Object.entries(n.over_best)].map(([name, value]) => ({ label: String(name), value })),
          { label: 'Cost over the best', title: 'times the cost of the best', unit: '×' })] : null,
      steps.map(step => [el('h3', {}, 'Speed-up over data parallelism on ' + step.cluster),
        legend(groups.map(g => [boxSwatch(g.colour), g.name])),
        bars(Object.entries(step.speed_up || {}).flatMap(([name, value]) => [{ label: name, group: 'simulated', value,
          note: step.fits && step.fits[name] === false ? '(does not fit)' : '' },
          { label: name, group: 'measured in the paper', value: step.measured && step.measured[name] }]),
            { label: 'Speed-up over data parallelism', title: 'times as fast', unit: '×', groups })]),
      rows.length ? [el('h3', {}, 'How every layer is split'),
        table(['Layers', 'Type', 'Dimensions', 'Factors', 'Split'],
        rows.map(row => [text(row.layers), text(row.type), text(row.dimensions), text(row.factors),
          splitBar(words(row.dimensions), factorsOf(row.factors))]))] : null,
    ].flat(5).filter(Boolean));
  };
  const names = networks.map(n => n.network + ', ' + n.devices + ' devices');
  const card = el('div', { class: 'card' }, el('h3', {}, 'Splits of layers (PaSE)'),
    result.summary && !result.said ? el('p', { class: 'note' }, result.summary) : null,
    networks.length > 1 ? el('div', { class: 'tools' }, chooser('Network', names, show)) : null, place);
  show(0);
  return card;
}

/** Columns of a table { keys, rows } as curves over the first one. */
function tableCurves(data, names) {
  const keys = list(data && data.keys);
  return names.filter(name => keys.includes(name)).map((name, k) => {
    const c = keys.indexOf(name), points = list(data.rows).map(row => [Number(row[0]),
      Number(row[c])]).filter(p => p.every(isNumber)).sort((a, b) => a[0] - b[0]);
    return { name: name.replace(/_(hours|ms)$/, '').replace(/_/g, ' '), x: points.map(p => p[0]),
      y: points.map(p => p[1]), colour: hue(k), dash: dashes[k % dashes.length] };
  }).filter(s => s.x.length);
}

/** What replicas do batch by batch: phases: [{ epoch, batches, phase, global_skips, local_skips, wait }]. */
function synchronisationChart(phases) {
  const series = [['global_skips', 'batches between synchronisations of all nodes'],
    ['local_skips', 'batches between those inside a node'], ['wait', 'batches until parameters arrive']]
    .map(([key, name], k) => ({ name, x: phases.map(p => p.epoch), y: phases.map(p => p[key]), colour: hue(k),
      dash: dashes[k] }));
  return curvesCard(series, { label: 'Skips of DASO by epoch', x: 'epoch', y: 'batches', unit: '', steps: true,
    zero: true });
}

function dasoCard(result) {
  const cards = list(result.data.networks).map(n => {
    const gpus = tableCurves(n.gpus, list(n.gpus && n.gpus.keys).filter(key => /_hours$/.test(key))),
      wires = tableCurves(n.bandwidth, list(n.bandwidth && n.bandwidth.keys).filter(key => /_ms$/.test(key)));
    return [el('h3', {}, n.network + ': ' + n.batch_size + ' samples a GPU, ' + n.epochs + ' epochs'),
      el('div', { class: 'charts' },
        gpus.length ? el('div', {}, el('h3', {}, 'Time of a training'),
          curvesCard(gpus, { label: 'Training hours over GPUs', x: 'GPUs', y: 'hours', unit: 'h', log: 2, points: true,
          zero: true })) : null,
        wires.length ? el('div', {}, el('h3', {}, 'Time of a batch by the network’s bandwidth'),
          curvesCard(wires, { label: 'Milliseconds a batch over bandwidth', x: 'GB/s of a network card',
          y: 'ms a batch', unit: '', log: 2, points: true, zero: true })) : null,
        list(n.schedule).length ? el('div', {}, el('h3', {}, 'When replicas synchronise'),
          synchronisationChart(n.schedule)) : null),
      ['gpus', 'bandwidth', 'skips'].map(name => (n[name]
        ? fold('Table: ' + name, table(list(n[name].keys), list(n[name].rows).map(row => row.map(text)),
        { numbers: list(n[name].keys).map((k, c) => c) })) : null))];
  });
  if (!cards.length) return null;
  return el('div', { class: 'card' }, el('h3', {}, 'Synchronising less (DASO)'),
    result.summary && !result.said ? el('p', { class: 'note' }, result.summary) : null, cards);
}

function measuredCard(result) {
  const data = result.data, names = list(data.devices).map(text);
  const groups = [{ name: 'measured', colour: hues[0] }, { name: 'simulated', colour: hues[1] }];
  const pair = (name, measured, expected) => [{ label: name, group: 'measured', value: measured },
    { label: name, group: 'simulated', value: expected }];
  const chartOf = (title, rows, unit, label) => (rows.some(row => isNumber(row.value))
    ? el('div', {}, el('h3', {}, title), bars(rows, { label, title: label, unit, groups })) : null);
  const losses = list(data.losses).filter(isNumber);
  return el('div', { class: 'card' }, el('h3', {}, 'Measured and simulated: ' + text(data.model)),
    result.summary && !result.said ? el('p', { class: 'note' }, result.summary) : null,
    legend(groups.map(g => [boxSwatch(g.colour), g.name])),
    el('div', { class: 'charts' },
      chartOf('Time of a step', pair('step', data.step_time_s, data.simulated_step_time_s), 's', 'time of a step'),
      chartOf('Copied in a step', pair('all devices', data.transferred_bytes, data.simulated_transferred_bytes), 'B',
        'bytes copied in a step'),
      chartOf('Computing, by device', names.flatMap((name, d) => pair(name, list(data.busy_s)[d],
        list(data.simulated_busy_s)[d])), 's', 'time computing'),
      chartOf('Peak memory, by device', names.flatMap((name, d) => pair(name, list(data.peak_memory_bytes)[d],
        list(data.simulated_memory_bytes)[d])), 'B', 'peak memory'),
      chartOf('By type of operator', list(data.types).slice(0,
        10).flatMap(row => pair(text(row.type), row.measured_s, row.simulated_s)), 's', 'time in a step'),
      losses.length > 1 ? el('div', {}, el('h3', {}, 'Loss'),
        curves([{ name: 'loss', x: losses.map((l, i) => i + 1), y: losses, colour: hues[0] }],
        { label: 'Loss by step', x: 'step', y: 'loss', unit: '' })) : null));
}

function tableCard(result) {
  const head = list(result.data.head).map(text),
    rows = list(result.data.rows).map(row => list(row).map(value => (isNumber(value) ? trim(value, 6) : text(value))));
  if (!rows.length) return null;
  const numbers = head.map((name, c) => c).filter(c => c > 0
    && rows.every(row => row[c] === undefined || row[c] === '–' || row[c] === '-'
    || /^[-+]?[\d.,]+(e[-+]?\d+)?( ?[a-zA-Zµ%×]{1,3})?$/.test(row[c])));
  return el('div', { class: 'card' }, table(head, rows, { numbers, caption: result.summary || result.label }));
}

/** What a script logged by round or step: a chart of each of its values. */
function loggedSection(run, id) {
  if (!run.logged.length) return null;
  const charts = run.logged.map(logged => {
    const name = logged.name.replace(/_/g, ' ');
    const series = logged.series.map((s, k) => ({ name: s.name || name, x: list(s.x), y: list(s.y), colour: hue(k),
      dash: dashes[k % dashes.length] }));
    const options = { label: name + ' by ' + logged.over, x: logged.over, y: name, unit: '' };
    return el('div', {}, el('h3', {}, name), series.length > 1 ? curvesCard(series, options) : curves(series, options));
  });
  return el('section', { id }, el('h2', {}, 'By round or step'), el('div', { class: 'card' },
    el('div', { class: 'charts' }, charts.slice(0, 8)),
    charts.length > 8 ? foldLater((charts.length - 8) + ' more', el('div', { class: 'charts' }, charts.slice(8))) : null));
}

const resultCards = { plan: planCard, pase: paseCard, daso: dasoCard, measured: measuredCard, pipeline: pipelineCard,
  table: tableCard };
const resultTitles = { plan: 'Plans', pase: 'How layers are split', daso: 'How replicas synchronise',
  measured: 'Simulated and measured', pipeline: 'The pipeline', table: 'Tables' };

/** Sections of results by kind; schedules of pipelines come with those of kind pipeline. */
function resultSections(run, id) {
  const sections = [];
  for (const kind of Object.keys(resultCards)) {
    const cards = run.results.filter(result => result.kind === kind).map(result => resultCards[kind](result)).filter(Boolean);
    if (kind === 'pipeline') cards.push(...run.problems.map(scheduleCard).filter(Boolean));
    if (cards.length) sections.push([resultTitles[kind],
      el('section', { id: id + '-' + kind }, el('h2', {}, resultTitles[kind]), cards.slice(0, 6),
      cards.length > 6 ? foldLater((cards.length - 6) + ' more', cards.slice(6)) : null)]);
  }
  return sections;
}
