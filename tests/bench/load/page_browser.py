"""What the tests of the report's pages need: Chromium, and what a page shows.

The program's arguments are those of page_test.py.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import sample_report

RENDER = sys.argv[1]
sys.path.insert(0, sys.argv[2])
import chromium  # pylint: disable=wrong-import-position

# What a chart lacks; a chart is a figure with the class.
FAULTS_OF_CHARTS = """
  [...document.querySelectorAll('figure.chart')].flatMap((figure) => {
    const faults = [];
    const text = (selector) => figure.querySelector(selector)?.textContent.trim();
    const title = text('h3');
    for (const part of ['h3', '.axis-label.x', '.axis-label.y', '.legend li']) {
      if (!text(part)) faults.push(`${title}: no ${part}`);
    }
    const box = figure.querySelector('svg').getBoundingClientRect();
    const ticks = figure.querySelectorAll('svg text:not(.axis-label):not(.name)');
    if (ticks.length < 2) faults.push(`${title}: ${ticks.length} ticks`);
    for (const node of figure.querySelectorAll('svg text, svg path, svg rect')) {
      const own = node.getBoundingClientRect();
      if (own.left < box.left - 3 || own.right > box.right + 3) {
        faults.push(`${title}: ${node.outerHTML.slice(0, 80)} sticks out`);
      }
    }
    if (/NaN|undefined|Infinity|null/.test(figure.outerHTML)) faults.push(`${title}: not a number`);
    return faults;
  })"""

TITLES = "[...document.querySelectorAll('figure h3')].map((h) => h.textContent)"

# {head, rows: {name: text}} under each of COUNT places along the chart TITLE.
TIPS = """((title, places) => {
  const figure = [...document.querySelectorAll('figure')].find(
    (each) => each.querySelector('h3').textContent === title);
  figure.scrollIntoView();
  const canvas = figure.querySelector('svg');
  const box = canvas.getBoundingClientRect();
  return Array.from({length: places}, (_, i) => {
    canvas.dispatchEvent(new PointerEvent('pointermove', {
      clientX: box.left + box.width * (i + 0.5) / places, clientY: box.top + box.height / 2}));
    return {head: figure.querySelector('.tip .head').textContent,
            rows: Object.fromEntries([...figure.querySelectorAll('.tip .row')].map(
              (row) => [row.firstChild.textContent, row.lastChild.textContent]))};
  });
})"""

# Texts of every chart, and how the entries of its legend are coloured.
LEGENDS = """
  [...document.querySelectorAll('figure.chart')].map((figure) => ({
    title: figure.querySelector('h3').textContent,
    note: figure.querySelector('.note')?.textContent ?? '',
    ticks: [...figure.querySelectorAll('svg text:not(.axis-label)')].map((text) => text.textContent),
    legend: [...figure.querySelectorAll('.legend li')].map((entry) => entry.textContent),
    colors: [...figure.querySelectorAll('.legend .swatch')].map((swatch) => swatch.getAttribute('style'))}))"""

CELLS = """
  [...document.querySelectorAll('#%s tbody tr[data-key]')].map((row) => [
    row.dataset.key, row.dataset.column ?? '',
    [...row.querySelectorAll('td[title]')].map((cell) => [cell.title, cell.firstChild.data])])"""


def number_of(text):
    """Of "1,234.5 s": the number, in milliseconds if it is a time."""
    number, _, unit = text.partition(" ")
    return float(number.replace(",", "").rstrip("%")) * (
        1000 if unit == "s" else 1)


def is_shown_as(value, text):
    """Whether `text` is `value`, rounded to the digits that it has."""
    digits = len(text.partition(".")[2])
    # Half a unit of the last digit, and what binary fractions add to it.
    return abs(float(text.replace(",", "")) - value) <= (
        0.5 * 10 ** -digits + 1e-9 * abs(value))


class PageTestCase(unittest.TestCase):
    """One browser for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.browser = chromium.Chromium(chromium.find_chromium())

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.folder.cleanup()

    def render(self, document):
        page = subprocess.run([RENDER], input=json.dumps(document).encode(),
                              capture_output=True, check=True).stdout
        path = pathlib.Path(self.folder.name) / "page.html"
        path.write_bytes(page)
        return path

    def show(self, document, width=1280, dark=False):
        self.browser.look(width, dark)
        self.browser.open(self.render(document))
        self.browser.settle()
        self.check_events()

    def show_single(self):
        """Shows one run, which it returns."""
        document = sample_report.make_document("single", 4000)
        self.show(document)
        return document["runs"][0]

    def check_events(self):
        """No error was told, and nothing was loaded but the page."""
        requests = []
        for event in self.browser.events:
            parameters = event.get("params", {})
            if event["method"] == "Network.requestWillBeSent":
                requests.append(parameters["request"]["url"])
            self.assertNotEqual(event["method"], "Runtime.exceptionThrown",
                                parameters)
            if event["method"] in ("Log.entryAdded", "Runtime.consoleAPICalled",
                                   "Page.javascriptDialogOpening"):
                self.fail(parameters)
        self.assertEqual(
            [url for url in requests if not url.startswith("data:")][1:], [])

    def check_layout(self, width):
        self.assertEqual(self.browser.evaluate(FAULTS_OF_CHARTS), [])
        self.assertLessEqual(
            self.browser.evaluate("document.documentElement.scrollWidth"),
            width)

    def tips(self, title, places=40):
        return self.browser.evaluate(
            f"{TIPS}({json.dumps(title)}, {places})")

    def check_cells(self, table, found):
        """Rows of a table against {(key, column): [values]}."""
        rows = {(key, column): cells for key, column, cells
                in self.browser.evaluate(CELLS % table)}
        self.assertEqual(rows.keys(), found.keys())
        for key, values in found.items():
            self.assertEqual([float(title) for title, _ in rows[key]], values)
            for value, (_, text) in zip(values, rows[key]):
                self.assertTrue(is_shown_as(value, text), (key, value, text))

    def charts(self):
        """LEGENDS by title, which no two charts have alike."""
        return {chart["title"]: chart for chart
                in self.browser.evaluate(LEGENDS)}

    def texts(self, selector):
        return self.browser.evaluate(
            f"[...document.querySelectorAll({json.dumps(selector)})]"
            ".map((node) => node.textContent)")
