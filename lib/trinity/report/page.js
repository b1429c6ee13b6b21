// The page: its sections in order, and the list of them at the top.

function runSections(run, prefix) {
  const id = name => prefix + name;
  return [['Summary', runHead(run, id('summary'))], ['By round or step', loggedSection(run, id('logged'))],
    ...resultSections(run, id('result')),
    ['Comparison', comparisonSection(run, id('comparison'))], ['Placement', placementSection(run, id('placement'))],
    ['Timeline', timelineSection(run, id('timeline'))], ['Devices', deviceSection(run, id('devices'))]]
    .filter(entry => entry[1]);
}

function build() {
  const main = document.getElementById('main'), contents = document.getElementById('contents'), runs = report.runs;
  const link = (section, name) => contents.append(el('a', { href: '#' + section.id }, name));
  if (runs.length === 1) {
    for (const [name, section] of runSections(runs[0], '')) {
      main.append(section);
      link(section, name);
    }
  } else {
    main.classList.add('pair');
    const together = pairSection(runs, 'together');
    main.append(together);
    link(together, 'Together');
    const columns = el('div', { class: 'runs' + (runs.length === 2 ? ' two' : '') });
    main.append(columns);
    runs.forEach((run, r) => {
      const sections = runSections(run, 'run' + (r + 1) + '-');
      columns.append(el('div', {}, sections.map(entry => entry[1])));
      link(sections[0][1], run.name);
    });
  }
  document.getElementById('foot').append(el('p', {}, 'Made by ' + report.made_by
    + '. This page loads nothing: all of it is in this file. Times are simulated unless called measured.'));
}

theme.start();
build();
drawWaiting();
requestAnimationFrame(() => requestAnimationFrame(() => { document.documentElement.dataset.painted = performance.now().toFixed(0); }));
