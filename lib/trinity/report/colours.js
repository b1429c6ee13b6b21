// Colours that people who see fewer of them can tell apart (Okabe and Ito, 2008), and patterns beyond eight.

const hues = ['#0072B2', '#E69F00', '#009E73', '#CC79A7', '#56B4E9', '#D55E00', '#F0E442', '#8C8C8C'];
const dashes = [[], [6, 3], [2, 3], [8, 3, 2, 3], [12, 4], [4, 2, 1, 2, 1, 2], [1, 4], [10, 2, 2, 2, 2, 2]];
const patternPaths = ['', 'M-2 2 L2 -2 M0 8 L8 0 M6 10 L10 6', 'M-2 6 L2 10 M0 0 L8 8 M6 -2 L10 2', 'M4 0 L4 8',
  'M0 4 L8 4',
  'M0 0 L8 8 M8 0 L0 8', 'M4 0 L4 8 M0 4 L8 4', 'M3 4 L5 4 M4 3 L4 5'];

/** The colour of phases and lanes of a timeline. */
const phaseColours = [hues[0], hues[1], hues[2]], linkColour = hues[3], collectiveColour = hues[5];

const hue = i => hues[((i % 8) + 8) % 8];

/** Black or white, whichever reads better on a colour. */
function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2),
    16) / 255).map(c => (c <= 0.04 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.22 ? '#000' : '#fff';
}

/** Fill of device `d` (from 1; 0 is unknown): a colour, or from the ninth on a pattern over it that `defs` receives. */
function deviceFill(d, defs, prefix) {
  if (d < 1) return 'var(--line)';
  const kind = Math.floor((d - 1) / 8) % patternPaths.length, colour = hue(d - 1);
  if (!kind) return colour;
  const id = prefix + 'device' + d;
  if (!defs.querySelector('#' + id)) {
    defs.append(el('pattern', { id, width: 8, height: 8, patternUnits: 'userSpaceOnUse' },
      el('rect', { width: 8, height: 8, fill: colour }),
      el('path', { d: patternPaths[kind], stroke: inkOn(colour), 'stroke-opacity': 0.65,
        'stroke-width': kind === 7 ? 2.5 : 1.3 })));
  }
  return 'url(#' + id + ')';
}

let swatches = 0;

/** A square of a device's colour and pattern, for legends. */
function deviceSwatch(d) {
  const defs = el('defs', {});
  const fill = deviceFill(d, defs, 'swatch' + swatches++);
  return el('svg', { width: 16, height: 16, 'aria-hidden': 'true' }, defs,
    el('rect', { width: 16, height: 16, rx: 4, fill }));
}

function lineSwatch(colour, dash) {
  return el('svg', { width: 28, height: 12, 'aria-hidden': 'true' },
    el('path', { d: 'M1 6 H27', stroke: colour, 'stroke-width': 2.5, 'stroke-dasharray': dash.join(' ') }));
}

function boxSwatch(colour) {
  return el('svg', { width: 16, height: 16, 'aria-hidden': 'true' },
    el('rect', { width: 16, height: 16, rx: 4, fill: colour }));
}

function legend(entries) { return el('ul', { class: 'legend' },
  entries.map(([swatch, label]) => el('li', {}, swatch, label))); }
