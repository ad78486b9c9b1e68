// What the charts show of a run, worked out of its requests.

// The nearest-rank percentile, as the report's tables have it.
function percentileOf(sorted, share) {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
}

const requestColumns = ['name', 'arrival_ms', 'sent_ms', 'first_token_ms', 'end_ms', 'queue_ms', 'prompt_tokens',
                        'output_tokens', 'status', 'gaps'];

class RunData {
  // `run` is of the document; `label` and `color` tell it from others. What a run
  // lacks is empty.
  constructor(run, label, color) {
    this.run = {...run, distributions: run.distributions ?? [], totals: run.totals ?? [], statuses: run.statuses ?? {}};
    this.label = label;
    this.color = color;
    this.requests = Object.fromEntries(requestColumns.map((name) => [name, run.requests?.[name] ?? []]));
    this.size = this.requests.name.length;
    this.findTokens();
    this.seconds = this.findEnd();
    // Bins over time that hold enough tokens for a p99 of each.
    this.bin = niceStep(Math.max(this.seconds, 0.01) / 60);
  }

  // tokenTimes: when every token came, gapTimes and gaps: every gap and when it
  // ended; seconds of the run, and milliseconds.
  findTokens() {
    const {arrival_ms: arrival, first_token_ms: first, gaps} = this.requests;
    const total = gaps.reduce((sum, own) => sum + own.length, 0);
    const firsts = first.filter(isNumber).length;
    this.tokenTimes = new Float64Array(total + firsts);
    this.gapTimes = new Float64Array(total);
    this.gaps = new Float64Array(total);
    let token = 0;
    let gap = 0;
    for (let i = 0; i < this.size; ++i) {
      if (!isNumber(first[i])) continue;
      let at = arrival[i] + first[i];
      this.tokenTimes[token++] = at / 1000;
      for (const tenths of gaps[i]) {
        at += tenths / 10;
        this.tokenTimes[token++] = at / 1000;
        this.gapTimes[gap] = at / 1000;
        this.gaps[gap++] = tenths / 10;
      }
    }
  }

  // The time axis is the same in all charts of a run.
  findEnd() {
    const {arrival_ms: arrival, end_ms: end} = this.requests;
    let last = 0;
    for (let i = 0; i < this.size; ++i) last = Math.max(last, (arrival[i] + (end[i] ?? 0)) / 1000);
    last = this.tokenTimes.reduce((most, time) => Math.max(most, time), last);
    const batches = this.run.batches?.columns;
    const row = (batches?.start_ms.length ?? 0) - 1;
    if (row >= 0) last = Math.max(last, (batches.start_ms[row] + batches.duration_ms[row]) / 1000);
    return last || 1;
  }

  // Milliseconds, ascending; by the definitions of the tables.
  samples(key) {
    const {first_token_ms: first, end_ms: end, queue_ms: queue, output_tokens: output, status} = this.requests;
    if (key === 'itl') return this.gaps.slice().sort();
    const each = {
      ttft: (i) => first[i],
      e2e: (i) => (status[i] === 'OK' ? end[i] : null),
      tpot: (i) => (status[i] === 'OK' && output[i] > 1 && isNumber(first[i]) && isNumber(end[i]) ?
        (end[i] - first[i]) / (output[i] - 1) : null),
      queue: (i) => queue[i],
    }[key];
    const values = [];
    for (let i = 0; each && i < this.size; ++i) {
      if (isNumber(each(i))) values.push(each(i));
    }
    return Float64Array.from(values).sort();
  }

  // {xs, ys}: the share of samples that are at most xs[i], at a few hundred of
  // them; closer to one another at the slow end.
  distribution(key) {
    const sorted = this.samples(key);
    const xs = [];
    const ys = [];
    const take = (i) => {
      xs.push(sorted[i]);
      ys.push((i + 1) / sorted.length);
    };
    const tail = Math.floor(sorted.length * 0.99);
    for (let i = 0; i < sorted.length;) {
      take(i);
      const stride = Math.max(1, Math.floor(sorted.length / (i < tail ? 300 : 30000)));
      i = i < sorted.length - 1 ? Math.min(i + stride, sorted.length - 1) : sorted.length;
    }
    return {xs, ys};
  }

  // How many bins a run has: what is left at its end belongs to the last one, for
  // alone it would be too short for a rate.
  numBins(bin) {
    return Math.max(1, Math.floor(this.seconds / bin + 1e-9));
  }

  // {xs, ys, end}: output tokens a second in each bin.
  throughput(bin = this.bin) {
    const ys = new Array(this.numBins(bin)).fill(0);
    for (const time of this.tokenTimes) ys[Math.min(ys.length - 1, Math.floor(time / bin))] += 1;
    const xs = ys.map((_, i) => i * bin);
    return {xs, ys: ys.map((tokens, i) => tokens / ((xs[i + 1] ?? this.seconds) - xs[i])), end: this.seconds};
  }

  // {xs, p50, p99, end}: of the gaps that ended in each bin; NaN where none did.
  gapPercentiles() {
    const bins = Array.from({length: this.numBins(this.bin)}, () => []);
    this.gapTimes.forEach((time, i) => {
      bins[Math.min(bins.length - 1, Math.floor(time / this.bin))].push(this.gaps[i]);
    });
    const sorted = bins.map((values) => Float64Array.from(values).sort());
    const each = (share) => sorted.map((values) => (values.length ? percentileOf(values, share) : NaN));
    return {xs: bins.map((_, i) => i * this.bin), p50: each(0.5), p99: each(0.99), end: this.seconds};
  }

  metric(key) {
    return this.run.distributions.find((metric) => metric.key === key);
  }

  total(key) {
    return this.run.totals.find((total) => total.key === key);
  }
}

// Where every page of the pool is, row by row of the batches; together they are
// the pool. Pages held by several sequences are there once, and full, or nearly.
function pagesByUse({pool, columns}) {
  const held = columns.tokens_held.map((tokens) => tokens / pool.page_size);
  const shared = columns.pages_shared;
  const own = held.map((pages, i) => Math.max(0, Math.min(pages, columns.pages_in_use[i]) - shared[i]));
  return {
    own,
    shared,
    waste: columns.pages_in_use.map((pages, i) => Math.max(0, pages - shared[i] - own[i])),
    cached: columns.pages_cached,
    free: columns.pages_free,
  };
}
