// Every page of the pool as a cell, at one of the steps that the run kept.

const sequenceColors = ['var(--blue)', 'var(--orange)', 'var(--purple)', 'var(--sky)', 'var(--red)'];

// Cells of a large pool that are used little would be too small to see: then no
// more free ones are drawn than others.
const FEW_CELLS = 1500;

function drawnFree(map) {
  const others = map.pages_in_use + map.pages_cached;
  return Math.min(map.pages_free, Math.max(others, FEW_CELLS - others));
}

function numCells(map) {
  return drawnFree(map) + map.pages_in_use + map.pages_cached;
}

// Runs of cells {pages, count, color, name, filled}, in the order of the map;
// `count` of them are drawn, and filled(i) is what share of the i-th holds tokens.
function cellGroups(map, pageSize) {
  const groups = [];
  const add = (pages, color, name, filled = () => 1, count = pages) => {
    if (pages > 0) groups.push({pages, count, color, name, filled});
  };
  let listed = map.pages_shared;
  add(map.pages_shared, 'var(--green)', 'shared by two sequences or more');
  map.sequences.forEach(([name, pages, shared, tokens], i) => {
    const own = pages - shared;
    listed += own;
    // Shared pages come first in a sequence, and are full.
    const left = tokens - shared * pageSize;
    add(own, sequenceColors[i % sequenceColors.length], name,
        (page) => Math.max(0, Math.min(1, left / pageSize - page)));
  });
  add(map.pages_in_use - listed, 'var(--ink)', 'in use by no sequence listed');
  add(map.pages_cached, 'var(--grey)', 'cached: kept for prompts that begin alike');
  add(map.pages_free, 'var(--free)', 'free', undefined, drawnFree(map));
  return groups;
}

class PageMap {
  constructor({pool, maps}) {
    Object.assign(this, {pool, maps, index: 0, most: Math.max(1, ...maps.map(numCells))});
    // The first to be seen is the fullest.
    maps.forEach((map, i) => { if (map.pages_in_use > maps[this.index].pages_in_use) this.index = i; });
    this.said = html('output', {class: 'note'});
    this.slider = html('input', {type: 'range', min: 0, max: maps.length - 1, value: this.index, 'aria-label': 'step'});
    this.slider.addEventListener('input', () => {
      this.index = Number(this.slider.value);
      this.redraw();
    });
    this.canvas = svg('svg', {role: 'img', 'aria-label': 'Page map'});
    this.node = html(
      'figure', {class: 'card wide map'},
      html('h3', {}, 'Page map'),
      html('p', {class: 'note'}, 'One cell a page, ordered by sequence and not by its place in memory; a shared page ' +
          'is there once. Neighbours in colour are pages of one sequence (colours come again); a cell is ' +
          `filled as far as its ${pool.page_size} slots hold tokens.`),
      legendOf([
        {name: 'shared', color: 'var(--green)', shape: 'box'},
        {name: 'of one sequence', colors: sequenceColors, shape: 'box'},
        {name: 'partly filled', color: 'var(--blue)', shape: 'hollow'},
        {name: 'cached', color: 'var(--grey)', shape: 'box'},
        {name: 'free', color: 'var(--free)', shape: 'box'},
      ]),
      html('div', {class: 'chooser'}, this.slider, this.said), this.canvas);
    this.tip = new Tip(this.node);
    followPointer(this.canvas, (x, y) => this.point(x, y), () => this.tip.hide());
  }

  draw(width = this.canvas.clientWidth) {
    if (width === 0 || width === this.width) return;
    this.width = width;
    this.redraw();
  }

  redraw() {
    const map = this.maps[this.index];
    const cells = numCells(map);
    // As large as fits into about half a screen, at all steps.
    this.size = Math.max(4, Math.min(20, Math.floor(Math.sqrt(this.width * 360 / this.most))));
    this.columns = Math.max(1, Math.floor(this.width / this.size));
    const height = Math.ceil(cells / this.columns) * this.size;
    this.groups = cellGroups(map, this.pool.page_size);
    let first = 0;
    const nodes = [];
    for (const group of this.groups) {
      nodes.push(...this.drawGroup(group, first));
      first += group.count;
    }
    this.canvas.setAttribute('height', height);
    this.canvas.setAttribute('viewBox', `0 0 ${this.width} ${height}`);
    this.canvas.replaceChildren(...nodes);
    this.say(map);
  }

  drawGroup({count: cells, color, filled}, first) {
    const inner = this.size - (this.size > 8 ? 2 : 1);
    let back = '';
    let front = '';
    for (let i = 0; i < cells; ++i) {
      const left = ((first + i) % this.columns) * this.size;
      const top = Math.floor((first + i) / this.columns) * this.size;
      const height = Math.round(inner * filled(i));
      if (height < inner) back += `M${left},${top}h${inner}v${inner}h-${inner}z`;
      front += `M${left},${top + inner - height}h${inner}v${height}h-${inner}z`;
    }
    return [svg('path', {d: back, style: `fill:${color};fill-opacity:.28`}),
            svg('path', {d: front, style: `fill:${color}`})];
  }

  say(map) {
    this.said.textContent = `Step ${shown(map.step)} at ${seconds(map.time_ms / 1000)}: ` +
        `${count(map.sequences.length, 'sequence')}; ${shown(map.pages_in_use)} pages in use ` +
        `(${shown(map.pages_shared)} shared), ${shown(map.pages_cached)} cached, ${shown(map.pages_free)} free` +
        (drawnFree(map) < map.pages_free ? `, of which ${shown(drawnFree(map))} are drawn` : '');
  }

  point(clientX, clientY) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((clientX - box.left) / this.size);
    let cell = Math.floor((clientY - box.top) / this.size) * this.columns + column;
    if (column >= this.columns) cell = Infinity;
    for (const group of this.groups) {
      if (cell >= group.count) {
        cell -= group.count;
        continue;
      }
      this.tip.show(clientX, clientY, group.name, [
        {name: 'pages here', color: group.color, text: shown(group.pages)},
        ...(group.filled(cell) < 1 ? [{name: 'this one filled', text: percent(group.filled(cell))}] : []),
      ]);
      return;
    }
    this.tip.hide();
  }
}
