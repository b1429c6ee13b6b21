// Runs inside a copy of a report: does what a person would do, and tells the console what happened.
(function () {
  const wait = () => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve,
    20))));
  const key = (target, name, more) => target.dispatchEvent(new KeyboardEvent('keydown',
    { key: name, bubbles: true, cancelable: true, ...more }));
  const all = selector => [...document.querySelectorAll(selector)];

  /** What is not drawn yet. */
  const undrawn = () => [...all('.chart').filter(chart => !chart.querySelector('svg path, svg rect')),
    ...all('.stage.map').filter(stage => !stage.querySelector('.node')),
    ...all('.stage.time canvas').filter(canvas => !Number(canvas.dataset.drawn))].length;

  /** The lines of the charts that are called so: of each the name, its points as they are and in pixels, and its path. */
  const curvesOf = label => all('.chart[aria-label^="' + label + '"] .mark-line path').map(path => {
    const items = path.__data__.mark.items;
    return { name: items[0].datum.tip.split('\n')[0], x: items.map(item => item.datum.x), y: items.map(item => item.datum.y),
      px: items.map(item => item.x), py: items.map(item => item.y), path: path.getAttribute('d') };
  });

  async function tryMap(seen) {
    const stage = document.querySelector('.stage.map');
    if (!stage) return;
    const svg = stage.querySelector('svg');
    seen.layers = stage.querySelectorAll('.node').length;
    const box = svg.getBoundingClientRect(), before = Number(svg.dataset.zoom);
    svg.dispatchEvent(new WheelEvent('wheel', { deltaY: -400, ctrlKey: true, bubbles: true, cancelable: true,
      clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 }));
    seen.wheelZoom = Number(svg.dataset.zoom) / before;
    key(svg, '0');
    seen.fitAgain = Number(svg.dataset.zoom) / before;
    const node = stage.querySelector('.node');
    for (const type of ['pointerdown', 'pointerup']) node.dispatchEvent(new PointerEvent(type,
      { bubbles: true, pointerId: 1, clientX: 5, clientY: 5 }));
    node.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }));
    await wait();
    seen.opened = stage.querySelectorAll('.node').length;
    seen.openedLabel = stage.querySelector('svg').getAttribute('aria-label');
    key(stage.querySelector('svg'), 'Escape');
    seen.focusBack = stage.contains(document.activeElement); // at once: another frame may take the focus
    seen.layersAgain = stage.querySelectorAll('.node').length;
  }

  async function tryTimeline(seen) {
    const canvas = document.querySelector('.stage.time canvas');
    if (!canvas) return;
    canvas.scrollIntoView();
    await wait();
    seen.boxes = Number(canvas.dataset.drawn);
    const span = () => Number(canvas.dataset.to) - Number(canvas.dataset.from), before = span();
    canvas.focus();
    key(canvas, '+');
    await wait();
    seen.timelineZoom = before / span();
    key(canvas, '0');
    await wait();
    seen.timelineAll = before / span();
    key(canvas, 'ArrowRight');
    await wait();
    seen.chosen = canvas.dataset.chosen;
    seen.tip = document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent;
    canvas.blur();
    const box = canvas.getBoundingClientRect();
    let painted = 0;
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    for (let i = 3; i < pixels.length; i += 4) if (pixels[i]) painted++;
    seen.painted = painted / (canvas.width * canvas.height);
    seen.canvasFits = box.width <= innerWidth;
  }

  async function run() {
    const seen = { name: window.reportName, errors: window.reportErrors, undrawnAfterLoad };
    try {
      seen.curves = curvesOf('Best step time over evaluations');
      seen.losses = curvesOf('Loss by step');
      seen.logged = curvesOf('loss by round');
      seen.axes = all('.chart .role-axis-title text').map(title => title.textContent);
      seen.curvePoints = all('.chart[aria-label^="Best step time over evaluations"] .mark-symbol path').length;
      for (let i = 0; i < 100 && all('.chart').some(chart => !chart.firstChild); i++) await wait();
      seen.title = document.querySelector('h1').textContent;
      seen.lead = (document.querySelector('.lead') || {}).textContent;
      seen.sections = all('main section').map(section => section.id);
      seen.charts = all('.chart').length;
      seen.emptyCharts = all('.chart').filter(chart => !chart.querySelector('svg path, svg rect')).length;
      seen.tables = all('table').length;
      seen.best = all('tr.best').map(row => row.textContent);
      seen.injected = all('b, img, script[src], link, iframe').length + (window.pwned ? 1 : 0);
      seen.outside = all('[href], [src]').map(e => e.getAttribute('href')
        || e.getAttribute('src')).filter(a => !a.startsWith('#'));
      seen.chartNames = all('.chart').map(chart => chart.getAttribute('aria-label'));
      seen.unnamed = all('button, a, canvas, [role=img], select').filter(e => !(e.getAttribute('aria-label')
        || e.textContent.trim())).length;
      seen.sideways = document.documentElement.scrollWidth - document.documentElement.clientWidth;
      await tryMap(seen);
      await tryTimeline(seen);
      const dark = document.documentElement.dataset.theme;
      document.getElementById('theme').click();
      await wait();
      seen.theme = [dark, document.documentElement.dataset.theme];
      seen.text = document.querySelector('main').textContent.slice(0, 20000);
    } catch (error) {
      seen.errors.push('self-test: ' + error.stack);
    }
    console.log('SEEN ' + encodeURIComponent(JSON.stringify(seen)) + ' END');
  }
  // Once it is loaded a page draws itself, without being touched: within a few frames, which take long where the machine
  // has much else to do.
  let undrawnAfterLoad = -1;
  addEventListener('load', async () => {
    for (let i = 0; i < 50 && (undrawnAfterLoad = undrawn()) > 0; i++) await wait();
    setTimeout(run, 100);
  });
})();
