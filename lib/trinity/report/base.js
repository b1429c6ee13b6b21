// What all parts of the page use: elements, numbers as people read them, packed columns, theme, tooltip.

/** An element with attributes and children. Texts become text nodes: nothing of a run is ever read as HTML. */
function el(tag, attributes, ...children) {
  const svg = /^(svg|g|path|rect|text|circle|line|title|defs|pattern|clipPath)$/.test(tag);
  const node = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(9)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child.nodeType ? child : document.createTextNode(String(child)));
  }
  return node;
}

const isNumber = value => typeof value === 'number' && isFinite(value);
const list = value => (Array.isArray(value) ? value : []);
const text = value => (value === undefined || value === null ? '–' : typeof value === 'object' ? JSON.stringify(value)
  : String(value));

function trim(value, digits) {
  const shown = Math.abs(value) >= 10 ** digits ? String(Math.round(value)) : value.toPrecision(digits);
  return shown.includes('.') && !shown.includes('e') ? shown.replace(/\.?0+$/, '') : shown;
}

function scaled(value, units, digits) {
  if (!isNumber(value)) return '–';
  if (value === 0) return '0 ' + units[0][1];
  for (const [size, unit] of units) if (Math.abs(value) >= size) return trim(value / size, digits || 4) + ' ' + unit;
  const [size, unit] = units[units.length - 1];
  return trim(value / size, digits || 4) + ' ' + unit;
}

const seconds = (s, digits) => scaled(s, [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [1e-9, 'ns']], digits);
const bytes = (n, digits) => (n === 0 ? '0 B' : scaled(n,
  [[1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'], [1, 'B']], digits || 3));
const count = n => (isNumber(n) ? n.toLocaleString('en') : '–');
const times = x => (isNumber(x) ? x.toFixed(2) + '×' : '–');
function duration(s) {
  if (!isNumber(s)) return '–';
  if (s < 60) return trim(s, 3) + ' s';
  const m = Math.round(s / 60);
  return m < 120 ? m + ' min' : (s / 3600).toFixed(1) + ' h';
}

/** The integers of a packed column (lib/trinity/report/pack.lua). */
function unpack(packed) {
  const raw = atob(packed || ''), values = [];
  let at = 0, before = 0;
  while (at < raw.length) {
    let code = 0, weight = 1, byte;
    do {
      byte = raw.charCodeAt(at++);
      code += (byte & 127) * weight;
      weight *= 128;
    } while (byte > 127);
    before += code % 2 ? -(code + 1) / 2 : code / 2;
    values.push(before);
  }
  return Float64Array.from(values);
}

function median(values) {
  const sorted = values.filter(isNumber).sort((a, b) => a - b), n = sorted.length;
  return n ? (sorted[(n - 1) >> 1] + sorted[n >> 1]) / 2 : NaN;
}

// Theme: that of the system, until the button says otherwise.
const theme = {
  listeners: [],
  dark: () => document.documentElement.dataset.theme === 'dark',
  color: name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim(),
  set(name) {
    document.documentElement.dataset.theme = name;
    const button = document.getElementById('theme');
    button.textContent = name === 'dark' ? 'Light' : 'Dark';
    button.setAttribute('aria-label', 'Show this page in ' + (name === 'dark' ? 'light' : 'dark') + ' colours');
    theme.listeners.forEach(listener => listener());
  },
  start() {
    const query = matchMedia('(prefers-color-scheme: dark)');
    theme.set(query.matches ? 'dark' : 'light');
    query.addEventListener('change', () => theme.set(query.matches ? 'dark' : 'light'));
    document.getElementById('theme').addEventListener('click', () => theme.set(theme.dark() ? 'light' : 'dark'));
  },
};

const tip = {
  show(message, x, y) {
    const box = document.getElementById('tip');
    box.textContent = message;
    box.hidden = false;
    const width = box.offsetWidth, height = box.offsetHeight;
    box.style.left = Math.max(6, Math.min(x + 14, innerWidth - width - 6)) + 'px';
    box.style.top = (y + 18 + height > innerHeight ? Math.max(6, y - height - 12) : y + 18) + 'px';
  },
  hide() { document.getElementById('tip').hidden = true; },
};

/** Tells people who do not see the page what a key or a click did. */
function say(message) { document.getElementById('say').textContent = message; }

/** Calls `draw` now, and again when the element's width or the theme changes. */
function redraw(element, draw) {
  let width = -1;
  const again = force => {
    const now = element.clientWidth;
    if (now > 0 && (force || now !== width)) {
      width = now;
      draw(now);
    }
  };
  theme.listeners.push(() => again(true));
  new ResizeObserver(() => requestAnimationFrame(() => again(false))).observe(element);
  again(true);
}

/** A choice among several: nothing where there is only one. */
function chooser(label, entries, chosen) {
  if (entries.length < 2) return null;
  const select = el('select', { onchange: () => chosen(select.selectedIndex) },
    entries.map(entry => el('option', {}, entry)));
  return el('label', {}, label, ' ', select);
}

function table(head, rows, options) {
  const numbers = (options && options.numbers) || [];
  const cell = (tag, value, c) => el(tag, { class: numbers.includes(c) ? 'number' : null,
    scope: tag === 'th' ? 'row' : null }, value);
  return el('div', { class: 'scroll', tabindex: 0, role: 'region',
    'aria-label': (options && options.caption) || 'Table' },
    el('table', { class: options && options.class },
      options && options.caption ? el('caption', {}, options.caption) : null,
      head ? el('thead', {}, el('tr', {}, head.map((name, c) => el('th',
        { scope: 'col', class: numbers.includes(c) ? 'number' : null }, name)))) : null,
      el('tbody', {}, rows.map(row => el('tr', { class: row.class },
        row.map((value, c) => cell(c === 0 ? 'th' : 'td', value, c)))))));
}

function fold(title, ...content) { return el('details', {}, el('summary', {}, title), content); }
