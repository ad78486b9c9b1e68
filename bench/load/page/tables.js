// Numbers of runs in tables.

const summaryColumns = ['count', 'mean', 'p50', 'p90', 'p95', 'p99', 'max'];

// A number as it is read; pointing at it shows all its digits. Where the window
// is narrow, the label stands above it instead of at the head of its column.
function numberCell(label, value, format, ...more) {
  return html('td', {title: value ?? null, 'data-label': label}, format(value), ...more);
}

// How values of a unit are shown; those without one are counts.
const formatOf = (unit) => (unit ? measured : shown);

function headRow(...names) {
  return html('thead', {}, html('tr', {}, ...names.map(
    ([name, kind]) => html('th', {class: kind ?? '', scope: 'col'}, name))));
}

function rowHead(name, unit = '') {
  return html('th', {scope: 'row'}, name, ...(unit ? [html('span', {class: 'note'}, `  ${unit}`)] : []));
}

function scrolling(table) {
  return html('div', {class: 'card'}, html('div', {class: 'scroll', tabindex: 0}, table));
}

function latencyTable(run) {
  return scrolling(html(
    'table', {id: 'latencies', class: 'folds'}, html('caption', {}, 'Latencies'),
    headRow(['Metric'], ...summaryColumns.map((name) => [name]), ['How it is counted', 'text']),
    html('tbody', {}, ...run.distributions.map((metric) => html(
      'tr', {'data-key': metric.key}, rowHead(metric.name, metric.unit),
      ...summaryColumns.map((column) => numberCell(column, metric[column], column === 'count' ? shown : measured)),
      html('td', {class: 'formula'}, metric.formula))))));
}

function totalsTable(run) {
  return scrolling(html(
    'table', {id: 'totals', class: 'folds'}, html('caption', {}, 'Totals'),
    headRow(['Metric'], ['Value'], ['How it is counted', 'text']),
    html('tbody', {}, ...run.totals.map((total) => html(
      'tr', {'data-key': total.key}, rowHead(total.name, total.unit), numberCell('', total.value, formatOf(total.unit)),
      html('td', {class: 'formula'}, total.formula))))));
}

function statusTable(run) {
  const all = Object.values(run.statuses).reduce((sum, requests) => sum + requests, 0);
  return scrolling(html(
    'table', {id: 'statuses'}, html('caption', {}, 'Requests by status'),
    headRow(['Status'], ['Requests'], ['Share']),
    html('tbody', {}, ...Object.entries(run.statuses).map(([status, requests]) => html(
      'tr', {'data-key': status}, rowHead(status), numberCell('', requests, shown),
      html('td', {}, all ? percent(requests / all) : '–'))))));
}

const lessIsBetter = new Set(['duration', 'failed']);
const moreIsBetter = new Set(['output_tokens_per_second', 'input_tokens_per_second', 'total_tokens_per_second',
                              'requests_per_second', 'goodput']);

// The sign says which way is better; 0: neither.
function directionOf(key) {
  return lessIsBetter.has(key) ? -1 : moreIsBetter.has(key) ? 1 : 0;
}

// `value` over the first run's, unless they are alike. Which is better is not told
// of a small difference.
function ratioOf(value, base, direction) {
  const ratio = isNumber(value) ? value / base : NaN;
  if (!Number.isFinite(ratio) || Math.abs(ratio - 1) < 0.005) return [];
  const way = Math.abs(ratio - 1) < 0.02 ? 0 : direction * Math.sign(ratio - 1);
  return [html('span', {class: `ratio ${way > 0 ? 'better' : way < 0 ? 'worse' : ''}`},
               `× ${fixed(ratio, ratio < 10 ? 2 : 1)}${way > 0 ? ' better' : way < 0 ? ' worse' : ''}`)];
}

// {key, name, unit, values, direction} for each row: totals, and percentiles of
// the latencies; whatever at least one run has.
function comparedRows(datas) {
  const rows = [];
  const keysOf = (list) => [...new Set(datas.flatMap((data) => data.run[list].map(({key}) => key)))];
  const add = (key, find, column, group, direction) => {
    const found = datas.map(find);
    const {name, unit} = found.find(Boolean);
    rows.push({key, column, group: group ?? name, name: group ? name : column, unit, direction,
               values: found.map((metric) => metric?.[column])});
  };
  for (const key of keysOf('totals')) add(key, (data) => data.total(key), 'value', 'Totals', directionOf(key));
  for (const key of keysOf('distributions')) {
    for (const column of ['p50', 'p90', 'p99', 'max']) add(key, (data) => data.metric(key), column, null, -1);
  }
  return rows;
}

// What is said of all loads, and own(run): what of one alone.
function loadsOf(datas) {
  const partsOf = (run) => (run.load ?? '').split('; ');
  const shared = partsOf(datas[0].run).filter((part) => datas.every(({run}) => partsOf(run).includes(part)));
  return {
    shared: shared.join('; '),
    own: (run) => partsOf(run).filter((part) => !shared.includes(part)).join('; '),
  };
}

// Ratios say nothing of different loads, unless those are of one sweep, or someone
// chose just these two; and which is better, only of the same load.
function comparisonTable(datas) {
  const first = datas[0].run;
  const sameLoad = datas.every(({run}) => run.load === first.load && run.offered_rate === first.offered_rate);
  const withRatios = sameLoad || datas.length === 2 || commonSweep(datas.map((data) => data.run));
  const body = html('tbody');
  const facts = ['Target', 'Server', 'Model'].map((name) => [name, (run) => run[name.toLowerCase()]]);
  const {own} = loadsOf(datas);
  let group = '';
  for (const [name, factOf] of [...facts, ['Load', own]]) {
    if (datas.every(({run}) => factOf(run) === factOf(first)) || datas.every(({run}) => factOf(run) === run.name)) {
      continue;  // What is common to all, or the name above it, tells nothing.
    }
    body.append(html('tr', {}, rowHead(name), ...datas.map(({run}) => html('td', {class: 'said note'}, factOf(run)))));
  }
  for (const row of comparedRows(datas)) {
    if (row.group !== group) {
      group = row.group;
      body.append(html('tr', {class: 'group'}, html('th', {scope: 'rowgroup', colspan: datas.length + 1}, group)));
    }
    body.append(html(
      'tr', {'data-key': row.key, 'data-column': row.column}, rowHead(row.name, row.unit),
      ...row.values.map((value, i) => numberCell(
        '', value, formatOf(row.unit),
        ...(withRatios && i ? ratioOf(value, row.values[0], sameLoad ? row.direction : 0) : [])))));
  }
  return scrolling(html(
    'table', {id: 'comparison', class: datas.length > 3 ? 'compare' : 'compare few'},
    ...(withRatios ? [html('caption', {class: 'note'}, '× is a value over that of the first run.')] : []),
    html('thead', {}, html('tr', {}, html('th'), ...datas.map(({run, label, color}) => html(
      'th', {scope: 'col'}, swatch({color, shape: 'box'}), label,
      ...(run.complete ? [] : [html('span', {class: 'mark-of alarm'}, 'broke off')]),
      ...(run.client?.is_bottleneck ? [html('span', {class: 'mark-of warning'}, 'client lagged')] : []))))), body));
}
