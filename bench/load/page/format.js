// Numbers as people read them, and nodes of the page.

const numberFormats = new Map();

// With exactly so many digits after the point, and thousands apart.
function fixed(value, digits) {
  if (!numberFormats.has(digits)) {
    numberFormats.set(digits, new Intl.NumberFormat('en', {
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
    }));
  }
  return numberFormats.get(digits).format(value);
}

const isNumber = (value) => typeof value === 'number' && !Number.isNaN(value);

// As many digits as a reader can use, whole or not.
function measured(value) {
  if (!isNumber(value)) return '–';
  const size = Math.abs(value);
  return fixed(value, size >= 100 ? 1 : size >= 1 ? 2 : size > 0 ? 3 : 0);
}

// A whole number as it is.
function shown(value) {
  return Number.isInteger(value) ? fixed(value, 0) : measured(value);
}

// Without zeros at its end: 0.5, 20, 1,000.
function short(value) {
  return value.toLocaleString('en', {maximumSignificantDigits: 4});
}

function milliseconds(value) {
  return Math.abs(value) < 1000 ? `${short(value)} ms` : `${short(value / 1000)} s`;
}

function seconds(value) {
  return `${short(value)} s`;
}

function percent(value) {
  return `${short(100 * value)}%`;
}

function count(value, one, many = one + 's') {
  return `${shown(value)} ${value === 1 ? one : many}`;
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// An element of HTML. Children that are strings become text, never markup, so
// that nothing in a document can become a part of the page.
function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}
