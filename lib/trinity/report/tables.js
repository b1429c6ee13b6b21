// The head of a run, its comparison and its curves.

function figure(name, value, below) { return el('div', { class: 'figure' }, el('dt', {}, name),
  el('dd', {}, value, below ? el('small', {}, below) : null)); }

function keyFigures(run) {
  const problem = run.problems.find(p => p.strategies.length);
  if (!problem) return null;
  const best = problem.strategies[0], bound = best.lower_bound_s || (problem.bounds && problem.bounds.step_time_s);
  const peak = best.timeline && Math.max(...list(best.timeline.memory).map(m => m.peak), 0);
  const capacity = Math.min(...list(problem.capacity_bytes).filter(isNumber));
  return el('dl', { class: 'figures' },
    figure('Best step time', seconds(best.step_time_s),
      'by ' + best.method + (run.problems.length > 1 ? ', ' + problem.model : '')),
    bound ? figure('Lower bound', seconds(bound), 'the step is ' + times(best.step_time_s / bound) + ' that') : null,
    peak ? figure('Peak memory', bytes(peak), isFinite(capacity) ? 'of ' + bytes(capacity) + ' a device' : null) : null,
    figure('Searches', count(run.searches), isNumber(run.seconds) ? 'in ' + duration(run.seconds) : null));
}

function machineText(machine) {
  if (!machine || typeof machine !== 'object') return undefined;
  return [machine.processor, machine.cores && machine.cores + ' cores',
    isNumber(machine.memory_bytes) && bytes(machine.memory_bytes)].filter(Boolean).join(', ');
}

function aboutRows(run) {
  const versions = run.versions && typeof run.versions === 'object'
    ? Object.entries(run.versions).map(([name, v]) => name + ' ' + text(v)).join(', ') : undefined;
  const options = run.options && typeof run.options === 'object' && !Array.isArray(run.options)
    ? Object.entries(run.options).map(([name, v]) => name + ' = ' + text(v)).join('\n') : '';
  return [['Status', run.status + (run.error ? ': ' + run.error : '')], ['Script', run.script], ['Seed', run.seed],
    ['Started', run.started_at], ['Took', isNumber(run.seconds) ? duration(run.seconds) : undefined],
      ['Machine', machineText(run.machine)],
    ['BLAS', run.blas], ['Versions', versions], ['Processes', run.ranks],
      ['Options', options && el('span', { style: 'white-space: pre-line' }, options)]]
    .filter(row => row[1] !== undefined && row[1] !== null && row[1] !== '');
}

const quoted = word => (/^[\w./:,=@%+-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'");

function runHead(run, id) {
  const command = list(run.command).map(text).map(quoted).join(' ');
  const rewards = [...new Set(run.problems.map(p => p.reward).filter(Boolean))];
  return el('section', { id, class: 'run-head' },
    el('p', { class: 'eyebrow' }, run.name, run.status !== 'done'
      ? [' ', el('span', { class: 'badge warn' }, run.status)] : null),
    el('h1', {}, run.model && run.cluster ? run.model + ' on ' + run.cluster : run.name),
    el('p', { class: 'lead' }, run.sentence),
    keyFigures(run),
    fold('How it was made: command, seed, machine, versions', command ? el('pre', { tabindex: 0 }, command) : null,
      table(null, aboutRows(run), { class: 'plain' })),
    rewards.length ? fold('The reward', el('pre', { tabindex: 0 }, rewards.join('\n\n'))) : null,
    list(run.notes).length ? fold('Left out of this page (' + run.notes.length + ')',
      el('ul', { class: 'note' }, run.notes.map(note => el('li', {}, note)))) : null);
}

/** 'median' with the range below it where runs differ. */
function spread(values, show) {
  const known = values.filter(isNumber);
  if (!known.length) return '–';
  const low = Math.min(...known), high = Math.max(...known);
  if (show(low) === show(high)) return show(low);
  return [show(median(known)), el('span', { class: 'range' }, show(low) + ' to ' + show(high))];
}

function comparisonRow(row, best) {
  const take = field => row.runs.map(r => r[field]);
  const fit = row.runs.filter(r => r.fits).length, all = row.runs.length;
  const cells = [[row.method, best ? [' ', el('span', { class: 'badge good' }, '★ best')] : null]];
  if (!all) return cells.concat([row.failures.join('; ') || 'no result', '', '', '', '', '', '']);
  cells.push(spread(take('step'), seconds), spread(row.runs.map(r => r.step / r.bound), times),
    spread(take('memory'), bytes), spread(take('communication'), bytes),
    fit === all ? 'yes' : el('span', { class: 'badge warn' }, fit ? fit + ' of ' + all : 'no'),
      spread(take('evaluations'), count), spread(take('seconds'), s => (s < 60 ? seconds(s, 3) : duration(s))));
  if (best) cells.class = 'best';
  return cells;
}

const comparisonHead = ['Method', 'Step time', 'Over bound', 'Peak memory', 'Peak traffic', 'Fits', 'Evaluations',
  'Search'];

function comparisonTable(run, problem) {
  const found = comparisonRows(run, problem);
  if (!found.rows.length) return null;
  const rows = [...found.rows].sort((a, b) => (median(a.runs.map(r => r.step))
    || Infinity) - (median(b.runs.map(r => r.step)) || Infinity));
  const cells = rows.map(row => comparisonRow(row, row.method === found.best));
  if (isNumber(found.bound)) {
    const bound = ['no strategy is below', seconds(found.bound), times(1),
      problem.bounds && isNumber(problem.bounds.peak_memory_bytes) ? bytes(problem.bounds.peak_memory_bytes) : '', '',
      '', '', ''];
    bound.class = 'rule';
    cells.push(bound);
  }
  const several = rows.some(row => row.runs.length > 1);
  return table(comparisonHead, cells, { numbers: [1, 2, 3, 4, 6, 7],
    caption: problem.model + ' on ' + problem.cluster + ', simulated'
      + (several ? '; medians over seeds, with their range' : '')
      + (problem.rests_on ? '; ' + problem.rests_on : '') });
}

/** Colours of methods: the same on all curves of the page. */
const methodNames = [...new Set(report.runs.flatMap(run => run.curves.flatMap(c => c.series.map(s => s.method))))];
const methodColour = method => hue(methodNames.indexOf(method));
const methodDash = method => dashes[Math.floor(methodNames.indexOf(method) / 8) % dashes.length];

/** Curves of methods: of one with several seeds their median and range, and each seed by itself. */
function seriesOf(entry, suffix, dash) {
  return entry.series.map(s => {
    const one = s.searches.length === 1, name = s.method + (suffix || '');
    return { name: name + (one ? '' : ' (' + s.searches.length + ' seeds)'), colour: methodColour(s.method),
      dash: dash || methodDash(s.method), x: one ? s.searches[0].x : s.x, y: one ? s.searches[0].y : s.middle,
      low: one ? null : s.low, high: one ? null : s.high,
      runs: one ? [] : s.searches.map(r => ({ name: name + ', seed ' + text(r.seed), x: r.x, y: r.y })) };
  });
}

/** How searches converge: curves of methods, with the bound of the first problem; null where none went anywhere. */
function convergenceCard(series, problem, whose) {
  const ends = series.flatMap(s => [s, ...s.runs]).filter(s => s.x.length > 1).map(s => s.x[s.x.length - 1]);
  if (!ends.length) return null;
  const bound = problem.bounds && problem.bounds.step_time_s;
  return [el('h3', {}, 'How the searches converge'),
    series.some(s => s.runs.length) ? el('p', { class: 'note' },
      'A thin line is a seed, with a step wherever its best changed; the thick one is their median, the band their range.') : null,
    curvesCard(series, { label: 'Best step time over evaluations' + whose, x: 'evaluations', y: 'best step time', unit: 's',
      steps: true, steep: true, log: Math.max(...ends) > 300 ? 10 : 0,
      rule: bound ? { value: bound, label: 'lower bound ' + seconds(bound) } : null })];
}

function convergence(run, problem) {
  const entry = run.curves.find(c => c.problem === problem.id);
  return entry ? convergenceCard(seriesOf(entry), problem, ' of ' + entry.series.map(s => s.method).join(', ')) : null;
}

/** The comparisons and curves of a run, a card a problem. */
function comparisonSection(run, id) {
  const cards = run.problems.map(problem => {
    const rows = comparisonTable(run, problem), lines = convergence(run, problem);
    if (!rows && !lines) return null;
    return el('div', { class: 'card' }, rows, lines);
  }).filter(Boolean);
  if (!cards.length) return null;
  return el('section', { id }, el('h2', {}, 'What was compared'),
    el('p', { class: 'note' }, 'Each step time is next to a lower bound that no strategy can beat.'),
      cards.slice(0, 4),
    cards.length > 4 ? fold((cards.length - 4) + ' more problems', cards.slice(4)) : null);
}
