// Requests as lines, one above the other: what each waited for, and when its
// tokens came.

const LIFE_ROW = 40;  // Pixels.

const lifeParts = [
  {name: 'sent late by the client', color: 'var(--purple)'},
  {name: 'queued', color: 'var(--grey)'},
  {name: 'prefill, up to the first token', color: 'var(--orange)'},
  {name: 'decode', color: 'var(--sky)'},
];

class LifeLines {
  // `rows` are indices of requests.
  constructor(data, rows) {
    this.lives = rows.map((i) => this.lifeOf(data.requests, i));
    this.end = Math.max(0.001, ...this.lives.map((life) => life.end));
  }

  // Seconds after the scheduled arrival.
  lifeOf(requests, i) {
    const first = requests.first_token_ms[i];
    const sent = isNumber(requests.sent_ms[i]) ? requests.sent_ms[i] - requests.arrival_ms[i] : null;
    const tokens = [];
    if (isNumber(first)) {
      let at = first;
      tokens.push(at / 1000);
      for (const tenths of requests.gaps[i]) {
        at += tenths / 10;
        tokens.push(at / 1000);
      }
    }
    const end = Math.max(requests.end_ms[i] ?? 0, tokens.length ? tokens[tokens.length - 1] * 1000 : 0);
    const started = sent === null ? end : Math.min(end, sent);
    const queue = requests.queue_ms[i];
    const queued = Math.min(isNumber(first) ? first : end, started + (queue ?? 0));
    const cuts = [0, started, queued, isNumber(first) ? first : end, end].map((ms) => ms / 1000);
    return {
      name: requests.name[i], status: requests.status[i], cuts, tokens, end: end / 1000,
      arrival: requests.arrival_ms[i] / 1000, prompt: requests.prompt_tokens[i],
      output: requests.output_tokens[i], longest: Math.max(0, ...requests.gaps[i]) / 10,
    };
  }

  legend() {
    return [...lifeParts.map((part) => ({...part, shape: 'box'})),
            {name: 'a token', color: 'var(--blue)', shape: 'mark'}];
  }

  bounds() {
    return {x: [0, this.end], y: [0, this.lives.length]};
  }

  draw(x, y) {
    return this.lives.flatMap((life, row) => this.drawLife(life, x, y.map(row), x.range[1]));
  }

  drawLife(life, x, top, width) {
    const bar = top + 20;
    const nodes = [];
    lifeParts.forEach((part, i) => {
      const [left, right] = [x.map(life.cuts[i]), x.map(life.cuts[i + 1])];
      if (right - left < 0.05) return;
      nodes.push(svg('rect', {
        x: fine(left), y: bar + 3, width: fine(right - left), height: 8, style: `fill:${part.color}`}));
    });
    const ticks = life.tokens.map((at) => `M${fine(x.map(at))},${bar}v14`).join('');
    const failed = life.status !== 'OK';
    nodes.push(svg('path', {d: ticks, style: 'stroke:var(--blue);stroke-width:1'}),
               svg('path', {d: `M${fine(x.map(life.end))},${bar - 2}v18`,
                            style: `stroke:var(--${failed ? 'alarm' : 'ink'});stroke-width:2`}));
    // The whole name is in the values that pointing shows.
    const text = `${life.name}${failed ? ` · ${life.status}` : ''} · ` +
        `${shown(life.prompt)} + ${shown(life.output)} tokens · arrived at ${seconds(life.arrival)}`;
    nodes.push(svg('text', {class: 'name', x: x.range[0], y: bar - 6}, fitting(text, width - x.range[0])));
    return nodes;
  }

  read(at) {
    const life = this.lives[at.row];
    if (!life) return [];
    const took = (i) => milliseconds(1000 * (life.cuts[i + 1] - life.cuts[i]));
    return [
      {name: life.name, text: life.status},
      ...lifeParts.map((part, i) => ({...part, text: took(i)})),
      {name: 'longest gap', text: milliseconds(life.longest)},
      {name: 'in all', text: milliseconds(1000 * life.end)},
      {name: 'tokens so far', text: `${upperBound(life.tokens, at.x)} of ${life.output}`},
    ];
  }
}
