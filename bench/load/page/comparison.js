// What several runs have to say together.

const runColors = ['blue', 'orange', 'green', 'red', 'purple', 'sky'].map((name) => `var(--${name})`);

// Runs of a sweep in one chart; others are as many as there are colours.
const MOST_STEPS = 8;

// The points of a sweep are an order, so their colours are one: from cold to hot.
function colorOfRun(i, all, isSweep) {
  if (!isSweep) return runColors[i % runColors.length];
  const place = i / (all - 1);
  const [from, to, share] = place < 0.5 ? ['cold', 'warm', place * 2] : ['warm', 'hot', place * 2 - 1];
  return `color-mix(in oklab, var(--${from}), var(--${to}) ${Math.round(share * 100)}%)`;
}

// "NAME, rate=2" of a sweep in its parts; a name without the point is whole.
function partsOfName(name) {
  const [, sweep = '', point = name] = name.match(/^(.*), ((?:rate|concurrency)=[^,]*)$/s) ?? [];
  return {sweep, point};
}

// The name of the sweep that all runs are points of, if they are.
function commonSweep(runs) {
  const names = new Set(runs.map(({name}) => partsOfName(name).sweep));
  return runs.length > 1 && names.size === 1 ? [...names][0] : '';
}

// {name, datas} of runs that differ in their rate alone, ascending in it.
function sweepsOf(datas) {
  const sweeps = new Map();
  for (const data of datas.filter(({run}) => isNumber(run.offered_rate))) {
    const {name, target, server, model, load} = data.run;
    // More requests may belong to a higher rate.
    const kind = (load ?? '').replace(/^\d+ requests/, '').replace(/[\d.]+ (a second|requests\/s)/, '');
    const key = JSON.stringify([partsOfName(name).sweep, target, server, model, kind]);
    if (!sweeps.has(key)) sweeps.set(key, {name: partsOfName(name).sweep || model, datas: []});
    sweeps.get(key).datas.push(data);
  }
  for (const sweep of sweeps.values()) sweep.datas.sort((a, b) => a.run.offered_rate - b.run.offered_rate);
  return [...sweeps.values()].filter((sweep) => new Set(sweep.datas.map(({run}) => run.offered_rate)).size > 1);
}

function chunksOf(list, size) {
  return Array.from({length: Math.ceil(list.length / size)}, (_, i) => list.slice(i * size, (i + 1) * size));
}

const sweepColors = [['var(--blue)', 'var(--orange)'], ['var(--green)', 'var(--purple)'], ['var(--sky)', 'var(--red)']];

function rateLines(sweeps, curves) {
  return sweeps.flatMap(({name: sweep, datas}, i) => curves.map(({name, value, format}, j) => new Line({
    name: sweeps.length > 1 ? `${sweep}: ${name}` : name,
    color: sweepColors[i][j],
    xs: datas.map(({run}) => run.offered_rate),
    ys: datas.map((data) => value(data) ?? NaN),
    dots: true, format,
  })));
}

// Of at most as many sweeps as have colours.
function rateCharts(sweeps) {
  const datas = sweeps.flatMap((sweep) => sweep.datas);
  const highest = Math.max(...datas.map(({run}) => run.offered_rate));
  const x = {
    label: 'offered rate (requests/s)', domain: [0, highest * 1.04],
    head: (rate) => `around ${short(rate)} requests/s`,
  };
  const latency = (key, title) => new Chart({
    title: `${title} over rate`, x, y: {label: 'latency (logarithmic)', log: true, format: milliseconds},
    layers: [
      ...rateLines(sweeps, ['p50', 'p99'].map((column) => (
        {name: column, value: (data) => data.metric(key)?.[column], format: milliseconds}))),
      ...limitRules(datas, key, 'y'),
    ],
  });
  const hasGoodput = datas.some((data) => data.total('goodput'));
  const served = {name: 'requests served', value: (data) => data.total('requests_per_second')?.value};
  const good = {name: 'goodput: within the limits', value: (data) => data.total('goodput')?.value};
  return [
    latency('ttft', 'Time to first token'), latency('itl', 'Inter-token latency'),
    new Chart({
      title: hasGoodput ? 'Goodput over rate' : 'Requests served over rate',
      note: 'The dashed line is the rate asked for. A run may lie below it because its random arrivals were slower, ' +
          'or its last requests took long; a curve that goes flat, or falls, shows that the server does not keep up.',
      x, y: {label: 'requests/s'},
      layers: [
        ...rateLines(sweeps, hasGoodput ? [served, good] : [served]),
        new Line({name: 'offered', color: 'var(--grey)', xs: [0, highest], ys: [0, highest], dash: true}),
      ],
    }),
    new Chart({
      title: 'Output over rate', x, y: {label: 'output tokens/s'},
      layers: rateLines(sweeps, [
        {name: 'output tokens/s', value: (data) => data.total('output_tokens_per_second')?.value}]),
    }),
  ];
}

// A rule for the limit on this latency, if the runs that have one agree on it.
function limitRules(datas, key, axis, color = 'var(--alarm)') {
  const limits = new Set(datas.map(({run}) => run.limits?.[key]).filter(isNumber));
  if (limits.size !== 1) return [];
  return [...limits].map((at) => new Rule({name: `limit, ${milliseconds(at)}`, axis, at, color}));
}

const latencyAxis = {
  label: 'latency (logarithmic)', log: true, format: milliseconds, head: (ms) => `at most ${milliseconds(ms)}`,
};
const shareAxis = (what) => ({
  label: `share of ${what}`, domain: [0, 1], ticks: [0, 0.25, 0.5, 0.75, 0.9, 0.99], format: percent,
});

function distributionLine(data, key, name, color) {
  const {xs, ys} = data.distribution(key);
  // From nothing, and up to all.
  return new Line({name, color, xs: [xs[0], ...xs], ys: [0, ...ys], steps: true, format: percent});
}

// The runs of each chart: what is in one of a sweep stands for the rest, and of
// other runs each is in one.
function charted(datas, isSweep) {
  if (!isSweep) return chunksOf(datas, runColors.length);
  const steps = Math.min(datas.length, MOST_STEPS);
  return [Array.from({length: steps}, (_, i) => datas[Math.round(i * (datas.length - 1) / (steps - 1))])];
}

function distributionChart(datas, {key, name}) {
  const having = datas.filter((data) => data.samples(key).length > 0);
  if (having.length === 0) return [];
  return [new Chart({
    title: `${name}: distribution`, x: latencyAxis, y: shareAxis(key === 'itl' ? 'gaps' : 'requests'),
    layers: [...having.map((data) => distributionLine(data, key, data.label, data.color)),
             ...limitRules(having, key, 'x')],
  })];
}

function distributionCharts(groups) {
  const metrics = new Map(groups.flat().flatMap(({run}) => run.distributions).map((metric) => [metric.key, metric]));
  return [...metrics.values()].flatMap((metric) => groups.flatMap((datas) => distributionChart(datas, metric)));
}

// Runs of very different length are each drawn over the whole width, in as many
// steps.
function throughputChart(datas, wide) {
  const longest = Math.max(...datas.map((data) => data.seconds));
  const isShare = longest > 3 * Math.min(...datas.map((data) => data.seconds));
  const bin = Math.max(...datas.map((data) => data.bin));
  return new Chart({
    title: 'Output over time', wide,
    note: `Tokens as they came, in ${isShare ? 'twentieths of each run' : `steps of ${seconds(bin)}`}.`,
    x: isShare ? {label: 'share of the run that has passed', domain: [0, 1], format: percent} :
      {label: 'time since the start (s)', domain: [0, longest], head: seconds},
    y: {label: 'output tokens/s'},
    layers: datas.map((data) => {
      const {xs, ys, end} = data.throughput(isShare ? data.seconds / 20 : bin);
      const unit = isShare ? end : 1;
      return new Line({
        name: data.label, color: data.color, steps: true, xs: xs.map((x) => x / unit), ys, end: end / unit});
    }),
  });
}

// Nodes, and the charts among them.
function comparisonSection(datas, isSweep) {
  const groups = charted(datas, isSweep);
  const distributions = distributionCharts(groups);
  const wide = groups.length === 1 && distributions.length % 2 === 0;
  const charts = [...distributions, ...groups.map((group) => throughputChart(group, wide))];
  const rates = chunksOf(sweepsOf(datas), sweepColors.length).flatMap(rateCharts);
  const grid = (list) => html('div', {class: 'grid two'}, ...list.map((chart) => chart.node));
  const left = isSweep && groups[0].length < datas.length ?
    [html('p', {class: 'note'}, `Of ${groups[0].length} of the ${datas.length} runs.`)] : [];
  return {
    nodes: [...(rates.length ? [html('h2', {}, 'Over the offered rate'), grid(rates)] : []),
            html('h2', {}, 'Side by side'), comparisonTable(datas),
            html('h2', {}, 'Distributions and output'), ...left, grid(charts)],
    charts: [...rates, ...charts],
  };
}
