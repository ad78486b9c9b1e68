// What charts are made of. A layer has
//   legend()  [{name, color, shape}]
//   bounds(log = {})  {x: [low, high], y: [low, high]} of its values; of those
//             above zero where log.x, or log.y, is set
//   draw(x, y)  nodes, by two scales
//   read(at)  rows {name, color, text} of what is at `at.x`; where a pointer
//             points, `at.near(x, y)` is the distance of a value from it in
//             pixels.

const fine = (pixel) => Math.round(pixel * 10) / 10;

// Least and largest; with `positive`, of the values above zero.
function extentOf(values, positive = false) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (positive && !(value > 0)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

// A line through (xs[i], ys[i]), ascending in x, broken where y is NaN. With
// `steps` each value holds up to the next x, the last one up to `end`.
class Line {
  constructor({name, color, xs, ys, steps = false, end = Infinity, dash = false, dots = false, format = shown}) {
    Object.assign(this, {name, color, xs, ys, steps, end, dash, dots, format});
  }

  legend() {
    return [{name: this.name, color: this.color, shape: this.dash ? 'dotted' : 'dash'}];
  }

  bounds(log = {}) {
    const [low, high] = extentOf(this.xs, log.x);
    return {x: [low, Number.isFinite(this.end) ? this.end : high], y: extentOf(this.ys, log.y)};
  }

  draw(x, y) {
    let path = '';
    let pen = 'M';
    for (let i = 0; i < this.xs.length; ++i) {
      if (Number.isNaN(this.ys[i])) {
        pen = 'M';
        continue;
      }
      path += `${pen}${fine(x.map(this.xs[i]))},${fine(y.map(this.ys[i]))}`;
      pen = 'L';
      const next = this.xs[i + 1] ?? this.end;
      if (this.steps && Number.isFinite(next)) path += `H${fine(x.map(next))}`;
    }
    const nodes = [svg('path', {
      d: path,
      style: `fill:none;stroke:${this.color};stroke-width:2;stroke-linejoin:round;` +
          (this.dash ? 'stroke-dasharray:6 4' : ''),
    })];
    for (let i = 0; this.dots && i < this.xs.length; ++i) {
      if (Number.isNaN(this.ys[i])) continue;
      nodes.push(svg('circle', {
        cx: fine(x.map(this.xs[i])), cy: fine(y.map(this.ys[i])), r: 3.5, style: `fill:${this.color}`,
      }));
    }
    return nodes;
  }

  read(at) {
    let i = upperBound(this.xs, at.x) - 1;
    if (this.dots) {  // The nearest one.
      if (i < 0 || (i + 1 < this.xs.length && at.x - this.xs[i] > this.xs[i + 1] - at.x)) ++i;
    } else if (i < 0 || at.x > this.end) {
      return [];
    }
    if (i >= this.xs.length || Number.isNaN(this.ys[i])) return [];
    return [{name: this.name, color: this.color, text: this.format(this.ys[i])}];
  }
}

// Bands that lie on one another: values[i] of each from starts[i] to ends[i]. What
// is above the domain of y is cut off.
class Stack {
  constructor({bands, starts, ends, format = shown, head}) {
    Object.assign(this, {bands, starts, ends, format, head});
  }

  legend() {
    return this.bands.map(({name, color}) => ({name, color, shape: 'box'}));
  }

  bounds() {
    let high = 0;
    for (let i = 0; i < this.starts.length; ++i) {
      high = Math.max(high, this.bands.reduce((sum, band) => sum + band.values[i], 0));
    }
    return {x: [this.starts[0] ?? 0, this.ends[this.ends.length - 1] ?? 1], y: [0, high]};
  }

  draw(x, y) {
    const base = new Float64Array(this.starts.length);
    return this.bands.map((band) => {
      const path = this.areaOf(band, base, x, y);
      band.values.forEach((value, i) => { base[i] += value; });
      return svg('path', {d: path, style: `fill:${band.color}`});
    });
  }

  // Rows that touch are one shape, there along its top and back along its base.
  areaOf(band, base, x, y) {
    let path = '';
    let back = '';
    for (let i = 0; i < this.starts.length; ++i) {
      const left = fine(x.map(this.starts[i]));
      const right = fine(x.map(this.ends[i]));
      const bottom = fine(y.map(base[i]));
      const top = fine(y.map(Math.min(base[i] + band.values[i], y.domain[1])));
      const joins = i > 0 && left <= fine(x.map(this.ends[i - 1])) + 0.5;
      if (!joins) {
        if (path) path += `${back}Z`;
        path += `M${left},${top}`;
        back = '';
      }
      path += `V${top}H${right}`;
      back = `V${bottom}H${left}` + back;
    }
    return path ? `${path}${back}Z` : '';
  }

  read(at) {
    const i = upperBound(this.starts, at.x) - 1;
    if (i < 0 || at.x > this.ends[i]) return [];
    const rows = this.bands.map((band) => (
      {name: band.name, color: band.color, text: this.format(band.values[i])}));
    rows.reverse();  // As they lie.
    if (this.head) rows.unshift({name: this.head(i), text: ''});
    return rows;
  }
}

// A dot at each (xs[i], ys[i]); describe(i) are the rows of one.
class Dots {
  constructor({name, color, xs, ys, describe, shape = 'dot'}) {
    Object.assign(this, {name, color, xs, ys, describe, shape});
  }

  legend() {
    return [{name: this.name, color: this.color, shape: 'dot'}];
  }

  bounds(log = {}) {
    return {x: extentOf(this.xs, log.x), y: extentOf(this.ys, log.y)};
  }

  draw(x, y) {
    let path = '';
    for (let i = 0; i < this.xs.length; ++i) {
      path += `M${fine(x.map(this.xs[i]))},${fine(y.map(this.ys[i]))}h0`;
    }
    return [svg('path', {
      d: path, style: `stroke:${this.color};stroke-width:6;stroke-linecap:round;stroke-opacity:.75`,
    })];
  }

  read(at) {
    let best = -1;
    let least = 40;  // Pixels; what is farther off is not meant.
    for (let i = 0; i < this.xs.length; ++i) {
      const distance = at.near(this.xs[i], this.ys[i]);
      if (distance < least) [best, least] = [i, distance];
    }
    return best < 0 ? [] : this.describe(best);
  }
}

// So many dots that each cell of a few pixels is as dark as it has of them.
class Cloud {
  constructor({name, color, xs, ys}) {
    Object.assign(this, {name, color, xs, ys});
  }

  legend() {
    return [{name: this.name, color: this.color, shape: 'dot'}];
  }

  bounds(log = {}) {
    return {x: extentOf(this.xs, log.x), y: extentOf(this.ys, log.y)};
  }

  draw(x, y) {
    const size = 3;
    const columns = Math.ceil((x.range[1] - x.range[0]) / size) + 1;
    const cells = new Map();
    for (let i = 0; i < this.xs.length; ++i) {
      const column = Math.floor((x.map(this.xs[i]) - x.range[0]) / size);
      const row = Math.floor((y.map(this.ys[i]) - y.range[1]) / size);
      const cell = row * columns + column;
      cells.set(cell, (cells.get(cell) ?? 0) + 1);
    }
    const shades = [[1, 0.3], [4, 0.5], [16, 0.7], [Infinity, 0.95]].map(
      ([most, opacity]) => ({most, opacity, path: ''}));
    for (const [cell, dots] of cells) {
      const left = x.range[0] + (cell % columns) * size;
      const top = y.range[1] + Math.floor(cell / columns) * size;
      shades.find(({most}) => dots <= most).path += `M${fine(left)},${fine(top)}h${size}v${size}h-${size}z`;
    }
    return shades.filter(({path}) => path).map(({path, opacity}) => (
      svg('path', {d: path, style: `fill:${this.color};fill-opacity:${opacity}`})));
  }

  read() {
    return [];
  }
}

// A value to compare with, across the whole chart.
class Rule {
  constructor({name, axis, at, color = 'var(--alarm)'}) {
    Object.assign(this, {name, axis, at, color});
  }

  legend() {
    return [{name: this.name, color: this.color, shape: 'dotted'}];
  }

  bounds() {
    const own = [this.at, this.at];
    const none = [Infinity, -Infinity];
    return this.axis === 'x' ? {x: own, y: none} : {x: none, y: own};
  }

  draw(x, y) {
    const [x1, x2] = this.axis === 'x' ? [x.map(this.at), x.map(this.at)] : x.range;
    const [y1, y2] = this.axis === 'y' ? [y.map(this.at), y.map(this.at)] : y.range;
    return [svg('line', {x1, x2, y1, y2, style: `stroke:${this.color};stroke-width:1.5;stroke-dasharray:5 4`})];
  }

  read() {
    return [];
  }
}

// Events, each a stroke in a lane of its own above the chart.
class Events {
  constructor({name, color, xs, counts}) {
    Object.assign(this, {name, color, xs, counts, isLane: true});
  }

  legend() {
    return [{name: this.name, color: this.color, shape: 'mark'}];
  }

  bounds() {
    return {x: [Infinity, -Infinity], y: [Infinity, -Infinity]};
  }

  drawLane(x, top, height) {
    const path = this.xs.map((at) => `M${fine(x.map(at))},${top}v${height}`).join('');
    return [svg('path', {d: path, style: `stroke:${this.color};stroke-width:1.5`})];
  }

  // Those within two pixels.
  read(at) {
    const near = this.xs.reduce((sum, x, i) => sum + (at.apart(x) <= 2 ? this.counts[i] : 0), 0);
    return near > 0 ? [{name: this.name, color: this.color, text: shown(near)}] : [];
  }
}
