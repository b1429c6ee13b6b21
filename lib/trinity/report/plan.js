// Plans of `trinity plan`: their pictures (plan_picture.lua), two of them compared, all in a table.

const planFields = [['step_time_s', 'Step', seconds], ['lower_bound_s', 'Bound', seconds],
  ['tokens_per_s', 'Tokens a second', value => trim(value, 5)],
  ['mfu', 'MFU', value => trim(100 * value, 3) + ' %'],
  ['memory_bytes', 'Memory of the fullest device', bytes],
  ...['tensor', 'pipeline', 'virtual_stages', 'data', 'expert', 'context', 'micro_batch', 'schedule', 'recompute',
    'zero_stage'].map(name => [name, name.replace(/_/g, ' '), text])];

const planValue = (plan, [name, , say]) => (plan[name] === undefined || plan[name] === null ? '–' : say(plan[name]));

/** The picture, which has all texts of the run escaped. */
function planPicture(plan, name) {
  const title = name[0].toUpperCase() + name.slice(1);
  const drawn = new DOMParser().parseFromString(plan.picture, 'image/svg+xml').documentElement;
  return [el('h3', {}, title), el('div', { class: 'scroll', tabindex: 0, role: 'region',
    'aria-label': 'Picture of ' + name }, el('div', { class: 'chart', role: 'img', 'aria-label': title
      + ': stages with their layers, devices, a step of ' + seconds(plan.step_time_s) + ' and memory of '
      + bytes(plan.memory_bytes) }, document.importNode(drawn, true)))];
}

/** What two plans have in common, and what not. */
function planDifferences(a, b, names) {
  const rows = planFields.map(field => [field[1], planValue(a, field), planValue(b, field)]);
  rows.forEach(row => { if (row[1] !== row[2]) row.class = 'differs'; });
  return table(['', ...names], rows, { caption: names.join(' and ') });
}

/** Two plans under each other, chosen among all; second: which the other one is at first. */
function planPair(plans, names = plans.map((plan, i) => 'plan ' + (i + 1)), second = Math.min(1, plans.length - 1)) {
  const place = el('div', {}), chosen = [0, second];
  const show = () => {
    const two = chosen[0] === chosen[1] ? [chosen[0]] : chosen;
    place.replaceChildren(...two.filter(i => plans[i].picture).flatMap(i => planPicture(plans[i], names[i])),
      ...(two.length > 1 ? [planDifferences(plans[two[0]], plans[two[1]], two.map(i => names[i]))] : []));
  };
  const choices = ['First', 'Second'].map((label, k) => {
    const choice = chooser(label, names, i => { chosen[k] = i; show(); });
    if (choice) choice.querySelector('select').selectedIndex = chosen[k];
    return choice;
  });
  show();
  return [el('div', { class: 'tools' }, choices), place];
}

/** The plans of several runs, whichever options made them; null where only one run has some. */
function jointPlans(runs) {
  const found = runs.flatMap(run => run.results.filter(result => result.kind === 'plan').flatMap(result =>
    list(result.data.plans).map((plan, i) => ({ plan, run, name: run.name + ', plan ' + (i + 1) }))));
  const second = found.findIndex(entry => entry.run !== found[0].run);
  return second < 0 ? null : el('div', { class: 'card' }, planPair(found.map(entry => entry.plan),
    found.map(entry => entry.name), second));
}

function planCard(result) {
  const plans = list(result.data.plans);
  if (!plans.length) return null;
  return el('div', { class: 'card' },
    result.summary && !result.said ? el('p', { class: 'note' }, result.summary) : null, planPair(plans),
    plans.length > 2 ? table(['Plan', ...planFields.map(field => field[1])], plans.map((plan, i) => [String(i + 1),
      ...planFields.map(field => planValue(plan, field))]), { caption: 'The best plans' }) : null);
}
