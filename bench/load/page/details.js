// Everything about one run.

const SLOWEST = 12;

function warningsOf(run) {
  const warnings = [];
  if (!run.complete) {
    warnings.push(banner('alarm', 'This run broke off.', run.error || 'The reason is not known.',
                         'What is here came before.'));
  }
  if (run.client?.is_bottleneck) {
    warnings.push(banner('warning', 'The client lagged.', run.client.note));
  }
  return warnings;
}

function factsOf(run) {
  const client = run.client;
  const lag = (summary) => `${milliseconds(summary.p99)} at p99, ${milliseconds(summary.max)} at most`;
  const facts = [
    ['Target', run.target], ['Server', run.server], ['Model', run.model], ['Load', run.load],
    ['Started', run.started], ['Seed', isNumber(run.seed) ? String(run.seed) : run.seed],
    ['Command', run.command && html('code', {}, run.command)],
    ['Limits', Object.entries(run.limits ?? {}).filter(([, ms]) => isNumber(ms)).map(
      ([key, ms]) => `${key.toUpperCase()} ${milliseconds(ms)}`).join(', ')],
    ['Client', client && [
      client.send_lag_ms && `sent late by ${lag(client.send_lag_ms)}`,
      client.timer_lag_ms && `its timer late by ${lag(client.timer_lag_ms)}`,
      isNumber(client.cpu_share) && `${percent(client.cpu_share)} of a core`,
      !client.is_bottleneck && client.note,
    ].filter(Boolean).join('; ')],
  ];
  return html('dl', {class: 'facts card'}, ...facts.filter(([, value]) => value).flatMap(([name, value]) => [
    html('dt', {}, name), html('dd', {}, value)]));
}

function tilesOf(data) {
  const tile = (name, value, unit, more = '') => html(
    'div', {class: 'card tile'}, html('div', {class: 'name'}, name),
    html('div', {class: 'value'}, value, html('span', {class: 'unit'}, ` ${unit}`)),
    html('div', {class: 'more'}, more));
  const tiles = [];
  // Of tokens that come several to a message, most gaps are none.
  const pace = data.metric('itl')?.p50 < 0.05 ? 'tpot' : 'itl';
  for (const key of ['ttft', pace, 'e2e']) {
    const metric = data.metric(key);
    if (!metric?.count) continue;
    const [value, unit] = milliseconds(metric.p50).split(' ');
    tiles.push(tile(metric.name, value, unit, `median; p99 ${milliseconds(metric.p99)}`));
  }
  const rate = data.total('output_tokens_per_second');
  const duration = data.total('duration');
  if (rate) tiles.push(tile('Output', short(rate.value), 'tokens/s', duration && `over ${seconds(duration.value)}`));
  const good = data.total('goodput');
  if (good) tiles.push(tile('Goodput', short(good.value), good.unit, 'within the limits'));
  const failed = data.total('failed')?.value ?? 0;
  tiles.push(tile('Requests', shown(data.size), '', failed ? `${shown(failed)} failed` : 'none failed'));
  return html('div', {class: 'tiles'}, ...tiles);
}

// Latencies of whole requests in one chart, those of tokens in another.
function latencyCharts(data) {
  const chart = (title, what, metrics) => {
    const having = metrics.filter(([key]) => data.samples(key).length > 0);
    const layers = having.flatMap(([key, name, color]) => [
      distributionLine(data, key, name, color), ...limitRules([data], key, 'x', color)]);
    return layers.length ? [new Chart({title, x: latencyAxis, y: shareAxis(what), layers})] : [];
  };
  return [
    ...chart('How long requests took', 'requests', [
      ['queue', 'queue', 'var(--grey)'], ['ttft', 'time to first token', 'var(--orange)'],
      ['e2e', 'end to end', 'var(--blue)']]),
    ...chart('How fast tokens came', 'gaps, or of requests', [
      ['itl', 'inter-token latency (each gap)', 'var(--blue)'],
      ['tpot', 'time per output token (each request)', 'var(--orange)']]),
  ];
}

function firstTokenChart(data) {
  const {name, arrival_ms: arrival, first_token_ms: first, prompt_tokens: prompt} = data.requests;
  const got = first.flatMap((ms, i) => (isNumber(ms) ? [i] : []));
  if (got.length === 0) return [];
  const color = 'var(--orange)';
  return [new Chart({
    title: 'Time to first token over time', note: 'Each request, where its first token came.', x: timeAxis(data),
    y: {label: 'time to first token (logarithmic)', log: true, format: milliseconds},
    layers: [
      new Dots({
        name: 'a request', color, xs: got.map((i) => (arrival[i] + first[i]) / 1000), ys: got.map((i) => first[i]),
        describe: (dot) => [
          {name: name[got[dot]], color, text: milliseconds(first[got[dot]])},
          {name: 'prompt', text: count(prompt[got[dot]], 'token')},
          {name: 'arrived', text: `at ${seconds(arrival[got[dot]] / 1000)}`},
        ],
      }),
      ...limitRules([data], 'ttft', 'y'),
    ],
  })];
}

function gapChart(data) {
  if (data.gaps.length === 0) return [];
  const {xs, p50, p99, end} = data.gapPercentiles();
  const line = (name, color, ys) => new Line({name, color, xs, ys, steps: true, end, format: milliseconds});
  return [new Chart({
    title: 'Inter-token latency over time',
    note: `Each gap, where its second token came; percentiles of each ${seconds(data.bin)}. ` +
        'Tokens of one message have no gap between them.',
    x: timeAxis(data), y: {label: 'gap (logarithmic)', log: true, format: milliseconds},
    layers: [
      new Cloud({name: 'gaps', color: 'var(--sky)', xs: data.gapTimes, ys: data.gaps}),
      line('p50', 'var(--blue)', p50), line('p99', 'var(--red)', p99), ...limitRules([data], 'itl', 'y'),
    ],
  })];
}

function outputChart(data) {
  const rate = data.total('output_tokens_per_second')?.value;
  return new Chart({
    title: 'Output over time', note: `Tokens as they came, in steps of ${seconds(data.bin)}.`, wide: true, height: 180,
    x: timeAxis(data), y: {label: 'output tokens/s'},
    layers: [
      new Line({name: 'output tokens/s', color: 'var(--blue)', steps: true, ...data.throughput()}),
      ...(rate ? [new Rule({
        name: `over the whole run, ${short(rate)}`, axis: 'y', at: rate, color: 'var(--grey)'})] : []),
    ],
  });
}

const slowness = [
  ['end to end', ({requests}) => (i) => requests.end_ms[i]],
  ['time to first token', ({requests}) => (i) => requests.first_token_ms[i]],
  ['longest gap', ({requests}) => (i) => requests.gaps[i].reduce((most, gap) => Math.max(most, gap), 0)],
];

function lifeChart(data, by) {
  const [name, measure] = slowness[by];
  const of = measure(data);
  const order = data.requests.name.map((_, i) => i).sort((a, b) => (of(b) ?? -1) - (of(a) ?? -1) || a - b);
  const rows = order.slice(0, SLOWEST);
  const lives = new LifeLines(data, rows);
  return new Chart({
    title: `The slowest ${rows.length} by ${name}`, wide: true, height: rows.length * LIFE_ROW,
    note: 'From the scheduled arrival to the end. The last, bold stroke is the end; in red, that of a request that failed.',
    x: {label: 'time since the scheduled arrival (s)', domain: [0, lives.end * 1.01], head: (time) => `${seconds(time)} after its arrival`},
    y: {label: 'requests, the slowest first', rows: rows.length}, layers: [lives],
  });
}

function slowestSection(data, redraw) {
  if (data.size === 0) return {nodes: [], charts: []};
  const chart = lifeChart(data, 0);
  const box = html('div', {}, chart.node);
  const choice = html('select', {}, ...slowness.map(([name], i) => html('option', {value: i}, name)));
  choice.addEventListener('change', () => {
    const next = lifeChart(data, Number(choice.value));
    box.replaceChildren(next.node);
    redraw(next);
  });
  return {nodes: [html('h2', {}, 'The slowest requests'),
                  html('label', {class: 'chooser'}, 'Slowest by', choice), box], charts: [chart]};
}

// Nodes, and the charts among them. `redraw` draws a chart that comes later.
function detailsOf(data, redraw) {
  const latency = latencyCharts(data);
  const overTime = data.tokenTimes.length ? [...firstTokenChart(data), ...gapChart(data), outputChart(data)] : [];
  const batches = batchSection(data);
  const slowest = slowestSection(data, redraw);
  const section = (title, charts) => (charts.length ?
    [html('h2', {}, title), html('div', {class: 'grid two'}, ...charts.map((chart) => chart.node))] : []);
  return {
    nodes: [
      ...warningsOf(data.run), tilesOf(data), html('h2', {}, 'The run'), factsOf(data.run),
      html('h2', {}, 'Numbers'), latencyTable(data.run),
      html('div', {class: 'grid tables'}, totalsTable(data.run), statusTable(data.run)),
      ...(overTime.length ? [] : [html('p', {class: 'note'}, 'No token came.')]),
      ...section('Latency', latency), ...section('Over time', overTime),
      ...batches.nodes, ...slowest.nodes,
    ],
    charts: [...latency, ...overTime, ...batches.charts, ...slowest.charts],
  };
}
