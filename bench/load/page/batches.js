// What a run's server told of its steps: charts, one below the other on one time
// axis, and the page map.

function banner(kind, head, ...texts) {
  return html('div', {class: `banner ${kind}`, role: 'alert'}, html('strong', {}, head),
              ...texts.filter(Boolean).map((text) => html('p', {}, text)));
}

const timeAxis = (data) => ({
  label: 'time since the start (s)', domain: [0, data.seconds], head: (time) => `at ${seconds(time)}`,
});

// A layer with what happened in each row; none where nothing did.
function eventsOf(name, color, starts, counts) {
  const rows = counts.flatMap((number, i) => (number > 0 ? [i] : []));
  if (rows.length === 0) return [];
  return [new Events({name, color, xs: rows.map((i) => starts[i]), counts: rows.map((i) => counts[i])})];
}

function occupancyLayers(batches, starts, ends) {
  const pages = pagesByUse(batches);
  return [
    new Stack({
      starts, ends, format: short,
      bands: [{name: 'tokens held', color: 'var(--blue)', values: pages.own},
              {name: 'shared', color: 'var(--green)', values: pages.shared},
              {name: 'waste', color: 'var(--red)', values: pages.waste},
              {name: 'cached', color: 'var(--grey)', values: pages.cached},
              {name: 'free', color: 'var(--free)', values: pages.free}],
    }),
    ...eventsOf('preemptions', 'var(--ink)', starts, batches.columns.preempted),
    ...eventsOf('evictions', 'var(--purple)', starts, batches.columns.evicted),
  ];
}

// Up to how many pages the occupancy is drawn: all, unless most are always free.
function topOfPool({columns, pool}) {
  const used = pool.pages_total - extentOf(columns.pages_free)[0];
  return used > 0.4 * pool.pages_total ? pool.pages_total : niceDomain([0, Math.max(used, 1) * 1.2], false)[1];
}

// Until when the sequences of each step are there: to the next step, but between
// steps no longer than some request that had arrived.
function endsOfSequences(data, ends, nexts) {
  const {arrival_ms: arrival, end_ms: end} = data.requests;
  let busy = 0;
  let request = 0;
  return ends.map((done, i) => {
    for (; arrival[request] / 1000 <= done; ++request) {
      busy = Math.max(busy, (arrival[request] + (end[request] ?? 0)) / 1000);
    }
    return Math.min(nexts[i], Math.max(done, busy));
  });
}

function batchCharts(data) {
  const {columns, pool} = data.run.batches;
  const top = topOfPool(data.run.batches);
  const cut = top < pool.pages_total ? ` All above ${shown(top)} is free, and not drawn.` : '';
  const starts = columns.start_ms.map((ms) => ms / 1000);
  const ends = starts.map((start, i) => start + columns.duration_ms[i] / 1000);
  const nexts = starts.map((_, i) => starts[i + 1] ?? data.seconds);
  const each = (values) => values.map((value, i) => value / columns.steps[i]);
  const head = (i) => (columns.steps[i] > 1 ? `mean of ${columns.steps[i]} steps` : 'one step');
  const merged = columns.steps.some((steps) => steps > 1) ? ' Neighbouring steps are merged: their mean.' : '';
  const common = {wide: true, x: timeAxis(data), height: 170};
  return [
    new Chart({
      ...common, title: 'Batch composition', note: `Tokens that each step computed.${merged}`,
      y: {label: 'tokens per step'},
      layers: [new Stack({
        starts, ends, head, format: short,
        bands: [{name: 'decode', color: 'var(--blue)', values: each(columns.decode_tokens)},
                {name: 'prefill', color: 'var(--orange)', values: each(columns.prefill_tokens)}],
      })],
    }),
    new Chart({
      ...common, title: 'Time of a step', note: `What each step took.${merged}`, y: {label: 'milliseconds per step'},
      layers: [new Stack({
        starts, ends, head, format: milliseconds,
        bands: [{name: 'forward pass', color: 'var(--blue)', values: each(columns.forward_ms)},
                {name: 'all else', color: 'var(--orange)',
                 values: each(columns.duration_ms.map((ms, i) => Math.max(0, ms - columns.forward_ms[i])))}],
      })],
    }),
    new Chart({
      ...common, title: 'Running and waiting', y: {label: 'sequences'},
      note: 'Sequences at each step; nothing is drawn while no request is there.',
      layers: [new Stack({
        starts, ends: endsOfSequences(data, ends, nexts),
        bands: [{name: 'running', color: 'var(--blue)', values: columns.running},
                {name: 'waiting', color: 'var(--grey)', values: columns.waiting}],
      })],
    }),
    new Chart({
      ...common, title: 'Page occupancy', height: 240, y: {label: 'pages', domain: [0, top]},
      note: `Where the pool's ${shown(pool.pages_total)} pages, of ${pool.page_size} tokens and ` +
          `${short(pool.page_bytes / 1024)} KiB each, are at each step, and drawn so until the next. ` +
          'A shared page has several sequences, and counts once. ' +
          `Waste is the slots of pages in use that hold no token.${cut}`,
      layers: occupancyLayers(data.run.batches, starts, nexts),
    }),
  ];
}

function batchSection(data) {
  const title = html('h2', {}, 'Batches and pages');
  const batches = data.run.batches;
  if (!batches?.columns.start_ms?.length) {
    const why = 'The server told nothing of its batches, or none was computed.';
    return {nodes: [title, html('p', {class: 'note'}, why)], charts: []};
  }
  const charts = batchCharts(data);
  if (batches.maps?.length) charts.push(new PageMap(batches));
  const lost = batches.dropped ? [banner(
    'warning', `${count(batches.dropped, 'batch', 'batches')} were not seen.`,
    'The server drops reports when their reader is slow; these charts have holes there.')] : [];
  return {nodes: [title, ...lost, html('div', {class: 'grid'}, ...charts.map((chart) => chart.node))], charts};
}
