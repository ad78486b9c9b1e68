// The frame of every chart: title, legend, axes, and values under the pointer.

const LANE = 12;  // Pixels.

function swatch({color, shape}) {
  const style = ['box', 'dot', 'mark'].includes(shape) ? `background:${color}` : `border-color:${color}`;
  return html('span', {class: `swatch ${shape}`, style});
}

// An entry may have several colours.
function legendOf(entries) {
  return html('ul', {class: 'legend'}, ...entries.map(({name, shape, color, colors = [color]}) => html(
    'li', {}, ...colors.map((each) => swatch({color: each, shape})), name)));
}

// `text`, or so much of its beginning as is at most `width` pixels wide in a
// chart.
function fitting(text, width) {
  const pen = document.createElement('canvas').getContext('2d');
  pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  const share = width / pen.measureText(text).width;
  return share >= 1 ? text : `${text.slice(0, Math.max(0, Math.floor(text.length * share * 0.95) - 1))}…`;
}

// The values under the pointer, beside it. One is shown at a time.
class Tip {
  static shown = null;

  constructor(figure) {
    this.figure = figure;
    this.node = html('div', {class: 'tip', role: 'status'});
    figure.append(this.node);
  }

  // At a place of the window.
  show(clientX, clientY, head, rows) {
    if (Tip.shown !== this) Tip.shown?.hide();
    Tip.shown = this;
    this.node.replaceChildren(
      html('div', {class: 'head'}, head),
      ...rows.map((row) => html(
        'div', {class: 'row'},
        html('span', {}, ...(row.color ? [swatch({color: row.color, shape: 'box'})] : []), row.name),
        html('b', {}, row.text))));
    const box = this.figure.getBoundingClientRect();
    const own = this.node.getBoundingClientRect();
    const right = clientX - box.left + 14;
    const left = right + own.width > box.width ? clientX - box.left - own.width - 14 : right;
    this.node.style.left = `${Math.max(0, Math.min(left, box.width - own.width))}px`;
    this.node.style.top = `${Math.max(0, clientY - box.top - own.height - 10)}px`;
    this.node.style.visibility = 'visible';
  }

  hide() {
    this.node.style.visibility = 'hidden';
  }
}

// Calls show(clientX, clientY) while the pointer is over `node`, and hide()
// after. What a touch shows stays until the next one.
function followPointer(node, show, hide) {
  const move = (event) => show(event.clientX, event.clientY);
  node.addEventListener('pointermove', move);
  node.addEventListener('pointerdown', move);
  node.addEventListener('pointerleave', (event) => {
    if (event.pointerType !== 'touch') hide();
  });
  node.addEventListener('blur', hide);
}

// {title, note, x, y, layers, height, wide}: x and y are {label, log, domain,
// format, head}, where a format makes text of a value, and a head that of a tip;
// y may have ticks of its own, or be {label, rows}: so many rows, without ticks.
class Chart {
  constructor(spec) {
    Object.assign(this, {height: 230, note: '', wide: false, row: 0}, spec);
    for (const axis of ['x', 'y']) this[axis] = {format: short, ...this[axis]};
    this.x.domain ??= niceDomain(this.boundsOf('x'), this.x.log);
    this.y.domain ??= this.y.rows ? [0, this.y.rows] : niceDomain(this.boundsOf('y'), this.y.log);
    const note = [this.note, this.edgeNote('x', 'left'), this.edgeNote('y', 'lower')].filter(Boolean).join(' ');
    this.canvas = svg('svg', {tabindex: 0, role: 'img', 'aria-label': `${this.title}. Arrow keys show values.`});
    this.node = html('figure', {class: this.wide ? 'card wide chart' : 'card chart'},
                     html('h3', {}, this.title),
                     ...(note ? [html('p', {class: 'note'}, note)] : []),
                     legendOf(this.layers.flatMap((layer) => layer.legend())), this.canvas);
    this.tip = new Tip(this.node);
    followPointer(this.canvas, (x, y) => this.point(x, y), () => this.unpoint());
    this.canvas.addEventListener('keydown', (event) => this.step(event));
  }

  // Of all layers; what is linear begins at zero, and what is logarithmic above.
  boundsOf(axis) {
    const log = this[axis].log;
    const bounds = this.layers.map((layer) => layer.bounds({[axis]: log})[axis]);
    const low = Math.min(...bounds.map((each) => each[0]));
    const high = Math.max(...bounds.map((each) => each[1]));
    if (!Number.isFinite(low)) return log ? [1, 10] : [0, 1];
    return [log ? low : Math.min(low, 0), high];
  }

  // Says where values are that a logarithmic axis has no place for.
  edgeNote(axis, side) {
    const {log, domain, format} = this[axis];
    if (!log || !this.layers.some((layer) => layer.bounds()[axis][0] < domain[0])) return '';
    return `What is below ${format(domain[0])}, as 0 is, lies on the ${side} edge.`;
  }

  draw(width = this.canvas.clientWidth) {
    if (width === 0 || width === this.width) return;
    this.width = width;
    const lanes = this.layers.filter((layer) => layer.isLane);
    const top = 22 + lanes.length * LANE;
    const bottom = top + this.height;
    const yTicks = this.y.rows ? [] : this.y.ticks ??
        new Scale({domain: this.y.domain, log: this.y.log, range: [0, 1]}).ticks(Math.max(3, this.height / 40));
    const left = this.y.rows ? 2 : 10 + 7 * Math.max(...yTicks.map((value) => this.y.format(value).length));
    this.xScale = new Scale({domain: this.x.domain, log: this.x.log, range: [left, width - 10]});
    this.yScale = new Scale({
      domain: this.y.domain, log: this.y.log, range: this.y.rows ? [top, bottom] : [bottom, top],
    });
    this.area = {left, right: width - 10, top, bottom};
    this.canvas.setAttribute('height', bottom + 40);
    this.canvas.setAttribute('viewBox', `0 0 ${width} ${bottom + 40}`);
    this.cursor = svg('line', {class: 'cursor', y1: top, y2: bottom, visibility: 'hidden'});
    this.canvas.replaceChildren(
      ...this.drawAxes(yTicks),
      ...lanes.flatMap((layer, i) => layer.drawLane(this.xScale, 20 + i * LANE, LANE - 3)),
      ...this.layers.filter((layer) => !layer.isLane).flatMap((layer) => layer.draw(this.xScale, this.yScale)),
      this.cursor);
  }

  drawAxes(yTicks) {
    const {left, right, top, bottom} = this.area;
    const nodes = [svg('text', {class: 'axis-label y', x: 0, y: 12}, this.y.label)];
    for (const value of yTicks) {
      const y = this.yScale.map(value);
      nodes.push(svg('line', {class: 'grid-line', x1: left, x2: right, y1: y, y2: y}),
                 svg('text', {x: left - 6, y: y + 4, 'text-anchor': 'end'}, this.y.format(value)));
    }
    let free = -Infinity;  // Where there is room for the next text.
    for (const value of this.xScale.ticks(Math.max(2, (right - left) / 80))) {
      const x = this.xScale.map(value);
      const text = this.x.format(value);
      const half = text.length * 3.5;
      const center = Math.max(left + half - 4, Math.min(x, right + 10 - half));
      nodes.push(svg('line', {class: 'grid-line', x1: x, x2: x, y1: top, y2: bottom + 4}));
      if (center - half < free) continue;
      nodes.push(svg('text', {x: center, y: bottom + 17, 'text-anchor': 'middle'}, text));
      free = center + half + 6;
    }
    nodes.push(svg('line', {class: 'base-line', x1: left, x2: right, y1: bottom, y2: bottom}),
               svg('text', {class: 'axis-label x', x: (left + right) / 2, y: bottom + 34, 'text-anchor': 'middle'},
                   this.x.label));
    return nodes;
  }

  point(clientX, clientY) {
    const box = this.canvas.getBoundingClientRect();
    const {left, right} = this.area;
    const x = Math.max(left, Math.min(right, clientX - box.left));
    const y = clientY - box.top;
    this.show(x, clientY, (valueX, valueY) => (
      Math.hypot(this.xScale.map(valueX) - x, this.yScale.map(valueY) - y)), y);
  }

  // Shows the values at a column of pixels.
  show(pixel, clientY, near, y) {
    this.at = pixel;
    const at = {
      x: this.xScale.invert(pixel),
      row: y === undefined ? 0 : Math.floor(this.yScale.invert(y)),
      near,
      apart: (x) => Math.abs(this.xScale.map(x) - pixel),
    };
    const rows = this.layers.flatMap((layer) => layer.read(at));
    this.cursor.setAttribute('x1', pixel);
    this.cursor.setAttribute('x2', pixel);
    this.cursor.setAttribute('visibility', 'visible');
    const box = this.canvas.getBoundingClientRect();
    this.tip.show(box.left + pixel, clientY, this.x.head ? this.x.head(at.x) : this.x.format(at.x), rows);
  }

  unpoint() {
    this.tip.hide();
    this.cursor?.setAttribute('visibility', 'hidden');
  }

  // Arrow keys move along x, with Shift farther; where there are rows, also from
  // one to another.
  step(event) {
    if (event.key === 'Escape') this.unpoint();
    const along = {ArrowLeft: -1, ArrowRight: 1}[event.key] ?? 0;
    const down = (this.y.rows && {ArrowUp: -1, ArrowDown: 1}[event.key]) || 0;
    if (!along && !down) return;
    event.preventDefault();
    const {left, right, top} = this.area;
    const far = (right - left) / (event.shiftKey ? 10 : 100);
    const pixel = Math.max(left, Math.min(right, (this.at ?? left) + along * far));
    this.row = Math.max(0, Math.min((this.y.rows ?? 1) - 1, this.row + down));
    const y = this.y.rows ? this.yScale.map(this.row + 0.5) : undefined;
    this.show(pixel, this.canvas.getBoundingClientRect().top + (y ?? top + 20),
              (valueX) => Math.abs(this.xScale.map(valueX) - pixel), y);
  }
}
