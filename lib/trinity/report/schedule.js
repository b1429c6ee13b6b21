// Pipelines: what every stage does when, micro-batch by micro-batch.

/**
 * Stages by time. spans: [{ device, micro_batch, phase, start_ns, end_ns, busy_ns }]; names: of the stages. A block lasts from the first
 * to the last operator of a pass; where a stage mixes passes, blocks overlap and lie over each other half as high.
 */
function scheduleChart(spans, names, label) {
  const end = Math.max(...spans.map(s => s.end_ns), 1), row = 34, left = 78;
  const box = el('div', { class: 'chart', role: 'img', 'aria-label': label });
  const draw = width => {
    const inner = width - left - 10, x = ns => left + ns / end * inner, height = names.length * row + 40, parts = [];
    const step = niceStep(end, Math.max(2, inner / 110));
    for (let t = 0; t <= end; t += step) {
      parts.push(el('path', { d: `M${x(t)} 4 V${height - 26}`, stroke: 'var(--grid)' }),
        el('text', { x: x(t), y: height - 8, 'text-anchor': 'middle', 'font-size': 11, fill: 'var(--soft)' },
          seconds(t / 1e9, 3)));
    }
    names.forEach((name, d) => parts.push(el('text', { x: 0, y: d * row + 24, 'font-size': 12, fill: 'var(--ink)' },
      cut(name, 11))));
    for (const s of spans) {
      const wide = Math.max(0.6, x(s.end_ns) - x(s.start_ns)), y = s.device * row + 6 + (s.phase ? 9 : 0),
        colour = phaseColours[s.phase] || hues[7];
      const said = phaseNames[s.phase] + ' of micro-batch ' + s.micro_batch + ' on ' + names[s.device] + '\n'
        + seconds((s.end_ns - s.start_ns) / 1e9) + ', computing ' + seconds(s.busy_ns / 1e9);
      parts.push(el('g', { onpointermove: event => tip.show(said, event.clientX, event.clientY),
        onpointerleave: tip.hide },
        el('rect', { x: x(s.start_ns), y, width: wide, height: 16, rx: 2, fill: colour, stroke: 'var(--card)',
          'stroke-width': 0.7 }),
        wide > 13 ? el('text', { x: x(s.start_ns) + wide / 2, y: y + 12, 'text-anchor': 'middle', 'font-size': 10.5,
          fill: inkOn(colour) }, s.micro_batch) : null));
    }
    box.replaceChildren(el('svg', { width, height, viewBox: `0 0 ${width} ${height}` }, parts));
  };
  redraw(box, draw);
  return box;
}

function scheduleCard(problem) {
  const found = problem.strategies.find(s => s.timeline && list(s.timeline.schedule).length);
  if (!found) return null;
  const timeline = found.timeline, names = list(timeline.devices).map((name, d) => problem.devices[d] || name);
  return el('div', { class: 'card' }, el('h3', {}, problem.model + ' on ' + problem.cluster + ', by ' + found.method),
    legend(phaseNames.map((name, i) => [boxSwatch(phaseColours[i]), name])),
    scheduleChart(timeline.schedule, names, 'Schedule of ' + timeline.micro_batches + ' micro-batches on '
      + names.length + ' devices'));
}

function stagesTable(data) {
  const unit = data.unit || '', load = value => (isNumber(value)
    ? (unit === 's' ? seconds(value) : trim(value, 5) + ' ' + unit) : '–');
  return table(['Stage', 'Devices', 'Nodes', 'Load', 'From', 'To'],
    list(data.stages).map((stage, i) => [String(i + 1), text(list(stage.replicas).join(' × ') || stage.devices),
    count(isNumber(stage.nodes) ? stage.nodes : list(stage.nodes).length),
      load(stage.load === undefined ? stage.compute : stage.load), text(stage.first), text(stage.last)]),
      { numbers: [2, 3] });
}

/** A result of kind pipeline: stages and their loads. */
function pipelineCard(result) {
  const data = result.data, stages = list(data.stages),
    loads = stages.map((stage, i) => ({ label: 'stage ' + (i + 1),
    value: stage.load === undefined ? stage.compute : stage.load }));
  return el('div', { class: 'card' }, el('h3', {}, 'Stages of ' + text(data.network) + ' by ' + text(data.method)),
    result.summary && !result.said ? el('p', { class: 'note' }, result.summary) : null,
    loads.some(row => isNumber(row.value)) ? bars(loads,
      { label: 'Load of every stage', title: 'load of a stage'
      + (data.unit && data.unit !== 's' ? ' (' + data.unit + ')' : ''), unit: data.unit === 's' ? 's' : '' }) : null,
    stages.some(stage => stage.first !== undefined) ? stagesTable(data) : null);
}
