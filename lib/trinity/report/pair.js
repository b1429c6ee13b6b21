// Several runs side by side: what differs first, then their tables and curves together.

function flatOptions(run) {
  const flat = new Map([['script', run.script], ['model', run.model], ['cluster', run.cluster], ['seed', run.seed]]);
  if (run.options && !Array.isArray(run.options)) for (const [name,
    value] of Object.entries(run.options)) flat.set('--' + name, value);
  for (const [name, value] of Object.entries(run.versions || {})) flat.set('version of ' + name, value);
  flat.set('BLAS', run.blas);
  flat.set('machine', machineText(run.machine));
  return flat;
}

function differences(runs) {
  const all = runs.map(flatOptions), names = [...new Set(all.flatMap(flat => [...flat.keys()]))];
  const rows = names.map(name => [name,
    ...all.map(flat => text(flat.get(name)))]).filter(row => row.slice(2).some(value => value !== row[1]));
  rows.forEach(row => { row.class = 'differs'; });
  if (!rows.length) return el('p', {}, 'All options, versions and machines are the same.');
  return table(['What differs', ...runs.map(run => run.name)], rows);
}

/** Problems of the runs that are about the same model and cluster. */
function sharedProblems(runs) {
  const groups = new Map();
  runs.forEach((run, r) => run.problems.forEach(problem => {
    const key = problem.model + '\n' + problem.cluster;
    groups.set(key, (groups.get(key) || []).concat({ run, problem, r }));
  }));
  return [...groups.values()].filter(group => new Set(group.map(entry => entry.r)).size > 1);
}

function jointTable(group) {
  const rows = group.flatMap(({ run, problem }) => comparisonRows(run, problem).rows.map(row => ({ run, row })))
    .sort((a, b) => (median(a.row.runs.map(r => r.step)) || Infinity) - (median(b.row.runs.map(r => r.step))
      || Infinity));
  const best = rows.find(({ row }) => row.runs.length && row.runs.some(r => r.fits));
  const cells = rows.map(entry => {
    const cell = comparisonRow(entry.row, entry === best);
    const line = [cell[0], entry.run.name, ...cell.slice(1)];
    line.class = cell.class;
    return line;
  });
  const { problem } = group[0];
  return table([comparisonHead[0], 'Run', ...comparisonHead.slice(1)], cells,
    { numbers: [2, 3, 4, 5, 7, 8], caption: problem.model + ' on ' + problem.cluster + ', all runs' });
}

function jointCurves(group) {
  const series = group.flatMap(({ run, problem, r }) => {
    const entry = run.curves.find(c => c.problem === problem.id);
    return entry ? seriesOf(entry, ' · ' + run.name, dashes[r % dashes.length]) : [];
  });
  return convergenceCard(series, group[0].problem, ', all runs');
}

function pairSection(runs, id) {
  const shared = sharedProblems(runs), plans = jointPlans(runs);
  return el('section', { id }, el('p', { class: 'eyebrow' }, runs.length + ' runs side by side'),
    el('h1', {}, runs.map(run => run.name).join(' and ')),
    runs.map(run => el('p', { class: 'lead' }, el('strong', {}, run.name + ': '), run.sentence)),
    plans, el('div', { class: 'card' }, differences(runs)),
    shared.length ? shared.slice(0, 6).map(group => el('div', { class: 'card' }, jointTable(group),
      jointCurves(group))) : plans ? null : el('p', { class: 'note' },
      'The runs are about different problems, so that their results stand apart below.'));
}
