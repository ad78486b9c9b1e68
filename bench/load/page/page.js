// Puts the page together, out of the document that is embedded in it.

class Report {
  constructor(root, document_) {
    this.root = root;
    const runs = document_.runs;
    this.sweep = commonSweep(runs);
    this.datas = runs.map((run, i) => new RunData(
      run, this.sweep ? partsOfName(run.name).point : run.name, colorOfRun(i, runs.length, this.sweep)));
    this.charts = new Map();  // By their nodes.
    this.observer = new ResizeObserver((entries) => {
      for (const {target} of entries) this.charts.get(target)?.draw();
    });
    this.details = html('section', {id: 'details'});
  }

  show() {
    const several = this.datas.length > 1;
    const first = this.datas[0]?.run;
    const names = this.datas.map(({label}) => label);
    const title = this.sweep ||
        (names.length > 2 ? `${names.length} runs compared` : names.join(' and ') || 'No runs');
    document.title = `${title} – Folio load report`;
    this.root.append(html('header', {}, html('h1', {}, title), html('p', {class: 'lead'}, this.leadOf(first))));
    if (!first) return;
    if (several) {
      const {nodes, charts} = comparisonSection(this.datas, Boolean(this.sweep));
      this.root.append(...this.datas.flatMap((data) => this.warningOf(data)), ...nodes, this.chooser());
      this.watch(charts);
    }
    this.root.append(this.details);
    this.choose(0);
  }

  leadOf(run) {
    if (!run) return 'The document holds no run.';
    const same = ['model', 'server'].filter((key) => this.datas.every((data) => data.run[key] === run[key]));
    const facts = [loadsOf(this.datas).shared, ...same.map((key) => run[key])].filter(Boolean);
    if (this.sweep) return [`${this.datas.length} runs`, ...facts].join(' · ');
    return (this.datas.length > 2 ? this.datas.map(({label}) => label) : facts).join(' · ');
  }

  // Whose numbers to read with care, before they are compared.
  warningOf({run, label}) {
    return warningsOf(run).map((node) => {
      node.firstChild.prepend(`${label}: `);
      return node;
    });
  }

  chooser() {
    const choice = html('select', {id: 'run'}, ...this.datas.map(({label}, i) => html('option', {value: i}, label)));
    choice.addEventListener('change', () => this.choose(Number(choice.value)));
    return html('h2', {}, html('label', {class: 'chooser'}, 'Details of', choice));
  }

  choose(i) {
    for (const node of this.charts.keys()) {
      if (this.details.contains(node)) this.forget(node);
    }
    const {nodes, charts} = detailsOf(this.datas[i], (chart) => this.watch([chart]));
    this.details.replaceChildren(...nodes);
    this.watch(charts);
  }

  // Draws charts that are in the page, and again whenever their width changes.
  watch(charts) {
    const widths = charts.map((chart) => chart.canvas.clientWidth);
    charts.forEach((chart, i) => {
      chart.draw(widths[i]);
      this.charts.set(chart.node, chart);
      this.observer.observe(chart.node);
    });
  }

  forget(node) {
    this.observer.unobserve(node);
    this.charts.delete(node);
  }
}

function start() {
  const text = document.getElementById('document').textContent;
  new Report(document.getElementById('report'), JSON.parse(text)).show();
  // After the next frame is painted, says how long all took since the page was
  // asked for.
  requestAnimationFrame(() => setTimeout(() => {
    document.documentElement.dataset.drawnMs = performance.now().toFixed(1);
  }));
}

start();
