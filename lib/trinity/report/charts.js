// Curves and bars, drawn by Vega. Expressions are interpreted, so that the page needs no eval.

const vega = (function () {
  if (typeof vegaModules === 'undefined' || !vegaModules['vega-view']) return null;
  Object.assign(vegaModules['vega-dataflow'].transforms, vegaModules['vega-transforms'],
    vegaModules['vega-view-transforms'], vegaModules['vega-encode']);
  return { View: vegaModules['vega-view'].View, parse: vegaModules['vega-parser'].parse,
    expr: vegaModules['vega-interpreter'].expressionInterpreter };
})();

const waiting = [];
let standing = false;

/** Draws something once it is in the page, before anything else happens there. */
function later(work) {
  if (standing) queueMicrotask(work); else waiting.push(work);
}

/** Draws all that waits: before the page is loaded, so that pictures and prints of it have everything. */
function drawWaiting() {
  standing = true;
  for (const work of waiting.splice(0)) work();
}

function chartConfig() {
  const soft = theme.color('soft'), grid = theme.color('grid'), ink = theme.color('ink');
  const font = 'system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
  return {
    background: 'transparent',
    axis: { labelColor: soft, titleColor: soft, gridColor: grid, domainColor: soft, tickColor: soft, labelFont: font,
      titleFont: font,
      labelFontSize: 11.5, titleFontSize: 12, titleFontWeight: 'normal', titlePadding: 8, labelLimit: 170 },
    text: { font, fill: ink }, title: { color: ink, font, fontSize: 13, fontWeight: 600, anchor: 'start', offset: 10 },
  };
}

const formats = { s: v => seconds(v, 4), B: v => bytes(v, 3), '': v => trim(v, 4), '%': v => trim(v, 3) + ' %',
  '×': v => trim(v, 3) + '×', h: v => trim(v, 4) + ' h' };

/** Least and greatest of the values that are numbers. */
function extent(values) {
  return values.filter(isNumber).reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);
}

/** The unit in which an axis counts: { factor, name }. */
function axisUnit(kind, values) {
  const [low, high] = extent(values), most = Math.max(-low, high, 0);
  const choose = units => units.find(([size]) => most >= size) || units[units.length - 1];
  if (kind === 's') { const [factor, name] = choose([[1, 's'], [1e-3, 'ms'], [1e-6, 'µs']]); return { factor, name }; }
  if (kind === 'B') { const [factor, name] = choose([[1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'],
    [1, 'bytes']]); return { factor, name }; }
  return { factor: 1, name: kind };
}

const unitTitle = (title, unit) => (unit.name ? title + ' (' + unit.name + ')' : title);

/** A place for a chart: `spec(width)` gives its Vega specification, `label` says in words what it shows. */
function chart(label, spec) {
  const box = el('div', { class: 'chart', role: 'img', 'aria-label': label });
  if (!vega) {
    box.append(el('p', { class: 'note' }, report.no_charts || 'Charts are not part of this page.'));
    return box;
  }
  let view = null;
  const draw = width => {
    if (view) view.finalize();
    const place = el('div', { 'aria-hidden': 'true' }); // Vega gives it a name of its own
    box.replaceChildren(place);
    view = new vega.View(vega.parse(spec(width), chartConfig(), { ast: true }),
      { expr: vega.expr, renderer: 'svg', container: place, hover: true,
      logger: { level() { return this; }, error: e => console.error(e), warn() { return this; },
        info() { return this; }, debug() { return this; } } });
    view.tooltip((handler, event, item, value) => (value ? tip.show(String(value), event.clientX, event.clientY)
      : tip.hide()));
    view.run();
  };
  later(() => redraw(box, draw));
  return box;
}

const numeric = (field, scale) => ({ scale, field });

const enter = values => ({ enter: values });
const plain = value => ({ value });

/** The line of a bound across a chart, with its name. */
function ruleMarks(rule, unit) {
  const y = { scale: 'y', value: rule.value / unit.factor }, right = { signal: 'width' };
  return [
    { type: 'rule', encode: enter({ x: plain(0), x2: right, y, stroke: plain(theme.color('ink')), strokeDash: plain([2, 3]),
      opacity: plain(0.8) }) },
    { type: 'text', encode: enter({ x: right, dx: plain(-4), y, dy: plain(-5), align: plain('right'), text: plain(rule.label),
      fontSize: plain(11.5), fill: plain(theme.color('soft')) }) },
  ];
}

/** Band, line and points of series `k`, and thin lines of its runs. */
function seriesMarks(s, k, options) {
  const data = { data: 'rows' + k }, x = numeric('x', 'x'), y = numeric('y', 'y');
  const interpolate = plain(options.steps ? 'step-after' : 'linear');
  const line = (from, width, opacity) => ({ type: 'line', from, encode: enter({ x, y, interpolate, stroke: plain(s.colour),
    strokeWidth: plain(width), strokeOpacity: plain(opacity), strokeDash: plain(s.dash || []) }) });
  const points = (from, visible) => ({ type: 'symbol', from, encode: enter({ x, y, size: plain(visible ? 45 : 90),
    fill: plain(s.colour), fillOpacity: plain(visible ? 1 : 0), tooltip: { field: 'tip' } }) });
  const band = { type: 'area', from: data, encode: enter({ x, y: numeric('low', 'y'), y2: numeric('high', 'y'), interpolate,
    fill: plain(s.colour), fillOpacity: plain(0.14) }) };
  const runs = list(s.runs).map((run, j) => ({ from: { data: 'rows' + k + '_' + j }, run }));
  return [...(s.low ? [band] : []), ...runs.map(({ from }) => line(from, 0.9, 0.6)), line(data, 2.2, 1),
    ...(options.hover ? runs.map(({ from, run }) => points(from, run.x.length === 1)) : []),
    ...(options.hover || options.points ? [points(data, options.points || s.x.length === 1)] : [])];
}

/** The points of a curve as rows, in units of the axis. */
function curveRows(s, options, unit) {
  const tipOf = (x, y) => s.name + '\n' + options.x + ' ' + trim(x, 6) + ': ' + formats[options.unit](y);
  return s.x.map((x, i) => ({ x, y: s.y[i] / unit.factor, low: (s.low ? s.low[i] : s.y[i]) / unit.factor,
    high: (s.high ? s.high[i] : s.y[i]) / unit.factor, tip: tipOf(x, s.y[i]) })).filter(row => isNumber(row.y));
}

/** The axes' scales. xs, ys: the values shown, ys in units of the axis, the rule's with them. */
function curveScales(xs, ys, options) {
  const [low, high] = extent(ys), [from, to] = extent(xs);
  const steep = options.steep && low > 0 && high > 1.8 * low, logarithmic = options.log && from > 0;
  return { steep, scales: [
    { name: 'x', type: logarithmic ? 'log' : 'linear', base: options.log === 2 ? 2 : 10, domain: [from, to],
      range: 'width', nice: !logarithmic, zero: false },
    { name: 'y', type: steep ? 'log' : 'linear', range: 'height', zero: !steep && !!options.zero, nice: !steep,
      domain: steep ? [low * 0.9, high * 1.06] : [low, high] },
  ] };
}

const mostHovered = 3000; // points that say what they are when pointed at; beyond it lines alone are drawn

/**
 * Curves. series: [{ name, x, y, low, high (optional bands), runs: [{ name, x, y }] (optional thin lines), colour, dash }];
 * options: { label, x, y (titles), unit, log (x by powers of 2 or 10), steep (y by powers where values differ much),
 * rule: { value, label }, height, steps, points }.
 */
function curves(series, options) {
  const lines = series.flatMap(s => [s, ...list(s.runs)]), xs = lines.flatMap(s => s.x);
  const values = lines.flatMap(s => [...s.y, ...(s.low || []), ...(s.high || [])])
    .concat(options.rule ? [options.rule.value] : []).filter(isNumber);
  const unit = axisUnit(options.unit, values), shown = { ...options, hover: xs.length <= mostHovered };
  const rows = (s, name) => ({ name, values: curveRows(s, options, unit) });
  const data = series.flatMap((s, k) => [rows(s, 'rows' + k), ...list(s.runs).map((run, j) => rows(run, 'rows' + k + '_' + j))]);
  return chart(options.label, width => {
    const { steep, scales } = curveScales(xs, values.map(v => v / unit.factor), options);
    return {
      width: Math.max(160, width - 76), height: options.height || 260, autosize: 'none',
      padding: { left: 52, right: 22, top: 8, bottom: 40 }, data, scales,
      axes: [
        { scale: 'x', orient: 'bottom', title: options.x, tickCount: Math.max(3, Math.floor(width / 110)), labelOverlap: true,
          format: options.log === 2 ? '~g' : undefined },
        { scale: 'y', orient: 'left', title: unitTitle(options.y, unit), grid: true, tickCount: 5, domain: false, ticks: false,
          format: steep ? '~g' : undefined, labelOverlap: true },
      ],
      marks: [...(options.rule ? ruleMarks(options.rule, unit) : []), ...series.flatMap((s, k) => seriesMarks(s, k, shown))],
    };
  });
}

/** Curves with their legend. */
function curvesCard(series, options) {
  return [legend(series.map(s => [lineSwatch(s.colour, s.dash || []), s.name])), curves(series, options)];
}

const barHeight = 20, barGap = 12;

/** What bars show, in units of the axis. */
function barRows(rows, options, groups, unit) {
  const show = formats[options.unit];
  return rows.filter(row => isNumber(row.value)).map(row => {
    const group = Math.max(0, groups.findIndex(g => g.name === (row.group || ''))), note = row.note ? ' ' + row.note : '';
    const limit = isNumber(row.limit) ? ' of ' + show(row.limit) : '';
    return { label: row.label, group, value: row.value / unit.factor, limit: limit ? row.limit / unit.factor : null,
      colour: groups[group].colour, shown: show(row.value) + note,
      tip: row.label + (row.group ? ', ' + row.group : '') + ': ' + show(row.value) + limit + note };
  });
}

function barMarks() {
  const top = "scale('y', datum.label) + datum.group * " + barHeight, y = { signal: top + ' + ' + barGap / 2 };
  const value = { scale: 'x', field: 'value' }, tooltip = { field: 'tip' }, ink = plain(theme.color('ink'));
  return [
    { type: 'rect', from: { data: 'rows' }, encode: enter({ x: { scale: 'x', value: 0 }, x2: value, y,
      height: plain(barHeight - 4), fill: { field: 'colour' }, cornerRadius: plain(2), tooltip }) },
    { type: 'text', from: { data: 'rows' }, encode: enter({ x: value, dx: plain(5), y, dy: plain((barHeight - 4) / 2),
      baseline: plain('middle'), text: { field: 'shown' }, fontSize: plain(11.5), fill: ink }) },
    { type: 'rule', from: { data: 'limits' }, encode: enter({ x: { scale: 'x', field: 'limit' }, y,
      y2: { signal: top + ' + ' + (barHeight - 4 + barGap / 2) }, stroke: ink, strokeWidth: plain(2.5), tooltip }) },
  ];
}

/**
 * Horizontal bars. rows: [{ label, group, value, limit, note }]; options: { label, title, unit, groups: [{ name, colour }] }.
 * A limit is a line across its bar. Groups stand below each other in a row.
 */
function bars(rows, options) {
  const groups = options.groups || [{ name: '', colour: hues[0] }];
  const unit = axisUnit(options.unit, rows.flatMap(row => [row.value, row.limit]));
  const labels = [...new Set(rows.map(row => row.label))], longest = Math.max(...labels.map(label => label.length), 3);
  return chart(options.label, width => {
    const left = Math.min(longest * 7 + 14, width * 0.34), right = 70;
    return {
      width: Math.max(120, width - left - right), height: labels.length * (groups.length * barHeight + barGap),
      padding: { left, right, top: 6, bottom: 40 }, autosize: 'none',
      data: [{ name: 'rows', values: barRows(rows, options, groups, unit) },
        { name: 'limits', source: 'rows', transform: [{ type: 'filter', expr: 'datum.limit !== null' }] }],
      scales: [
        { name: 'x', type: 'linear', range: 'width', zero: true, nice: true,
          domain: { fields: [{ data: 'rows', field: 'value' }, { data: 'limits', field: 'limit' }] } },
        { name: 'y', type: 'band', range: 'height', domain: labels },
      ],
      axes: [
        { scale: 'x', orient: 'bottom', grid: true, title: unitTitle(options.title, unit), domain: false,
          tickCount: Math.max(3, Math.floor(width / 140)) },
        { scale: 'y', orient: 'left', domain: false, ticks: false, labelLimit: left - 10, labelPadding: 6 },
      ],
      marks: barMarks(),
    };
  });
}
