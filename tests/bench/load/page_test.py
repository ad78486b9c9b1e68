"""Looks at the report's pages in headless Chromium.

Usage: page_test.py RENDER_REPORT FOLDER_OF_THE_PAGE

Skipped, with exit status 77, where Chromium is not installed.
"""

import sys
import unittest

import sample_report
from page_browser import LEGENDS, TITLES, PageTestCase, chromium, number_of

SKIPPED = 77


class PageTest(PageTestCase):
    """Pages of every kind of document."""

    def test_every_kind_of_document_at_every_width(self):
        for kind in ("single", "comparison", "sweep", "suite", "broken",
                     "empty"):
            document = sample_report.make_document(kind, 2000)
            for width in (1280, 400):
                with self.subTest(kind=kind, width=width):
                    self.show(document, width, dark=width == 400)
                    self.check_layout(width)

    def test_single_run_has_every_chart(self):
        self.show(sample_report.make_document("single", 8000))
        titles = self.browser.evaluate(TITLES)
        for title in ("How long requests took", "How fast tokens came",
                      "Time to first token over time",
                      "Inter-token latency over time", "Output over time",
                      "Batch composition", "Time of a step",
                      "Running and waiting", "Page occupancy", "Page map",
                      "The slowest 12 by end to end"):
            self.assertIn(title, titles)
        self.assertEqual(len(titles), 11)

    def test_sweep_has_charts_over_rate(self):
        self.show(sample_report.make_document("sweep", 2000))
        titles = self.browser.evaluate(TITLES)
        for title in ("Time to first token over rate",
                      "Inter-token latency over rate", "Goodput over rate",
                      "Time to first token: distribution"):
            self.assertIn(title, titles)

    def test_sweep_says_what_is_common_once(self):
        document = sample_report.make_document("sweep", 2000)
        self.show(document)
        self.assertEqual(self.texts("h1"), ["chat"])
        self.assertEqual(self.texts("#comparison thead th"), [""] + [
            run["name"].removeprefix("chat, ") for run in document["runs"]])
        self.assertEqual(
            self.charts()["End to end: distribution"]["legend"],
            [run["name"].removeprefix("chat, ") for run in document["runs"]])
        common = "prompts log-normal, median 148"
        self.assertIn(common, self.texts(".lead")[0])
        self.assertNotIn(common, self.texts("#comparison")[0])

    def test_sweeps_are_lines_of_their_own(self):
        runs = []
        for name in ("bf16", "int8"):
            runs += sample_report.make_document("sweep", 1000)["runs"]
            for run in runs[-8:]:
                run["name"] = run["name"].replace("chat", name)
        # Another load, which is no line.
        runs.append(sample_report.make_run("alone", 500, rate=3))
        runs[-1]["load"] += ", and another"
        self.show({"format": "folio-load 1", "runs": runs})
        chart = self.charts()["Output over rate"]
        self.assertEqual(chart["legend"], ["bf16: output tokens/s",
                                           "int8: output tokens/s"])

    def test_suite_does_not_mix_its_runs(self):
        document = sample_report.make_document("suite", 2000)
        for name in ("again", "at last"):
            more = sample_report.make_document("suite", 2000)["runs"]
            for run in more:
                run["name"] += f", {name}"
            document["runs"] += more
        self.show(document)
        names = []
        for chart in self.browser.evaluate(LEGENDS):
            self.assertNotIn("over rate", chart["title"])
            self.assertEqual(len(set(chart["colors"])), len(chart["colors"]))
            if chart["title"] == "End to end: distribution":
                self.assertLessEqual(len(chart["legend"]), 6)
                names += chart["legend"]
        self.assertEqual(names, [run["name"] for run in document["runs"]])

    def test_table_marks_runs_to_read_with_care(self):
        document = sample_report.make_document("comparison", 1000)
        document["runs"][0].update(complete=False, error="gone")
        document["runs"][1]["client"].update(is_bottleneck=True, note="late")
        self.show(document)
        self.assertEqual(self.texts("#comparison thead th"),
                         ["", "bf16broke off", "int8client lagged"])

    def test_two_runs_fit_a_narrow_window(self):
        self.show(sample_report.make_document("comparison", 1000), 400)
        self.assertEqual(self.browser.evaluate(
            "(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)("
            "document.querySelector('#comparison').parentNode)"), 0)

    def test_tokens_that_come_several_to_a_message(self):
        document = sample_report.make_document("single", 2000)
        run = document["runs"][0]
        requests = run["requests"]
        # Two of three gaps are none, and the third has 0.2 ms.
        requests["gaps"] = [[2 * (i % 3 == 2) for i in range(len(gaps))]
                            for gaps in requests["gaps"]]
        requests["end_ms"] = [
            first + sum(gaps) / 10 for first, gaps
            in zip(requests["first_token_ms"], requests["gaps"])]
        run["distributions"] = sample_report.distributions(requests)
        self.show(document)
        tiles = self.texts(".tile .name")
        self.assertIn("Time per output token", tiles)
        self.assertNotIn("Inter-token latency", tiles)
        charts = self.charts()
        tokens = charts["How fast tokens came"]
        self.assertIn("as 0 is, lies on the left edge", tokens["note"])
        self.assertTrue(any(text.endswith(" ms") and number_of(text) < 0.1
                            for text in tokens["ticks"]), tokens)
        self.assertNotIn("edge",
                         charts["Time to first token over time"]["note"])

    def test_tables_are_the_documents(self):
        document = sample_report.make_document("single", 2000)
        self.show(document)
        run = document["runs"][0]
        self.check_cells("latencies", {
            (metric["key"], ""): [metric[column] for column in (
                "count", "mean", "p50", "p90", "p95", "p99", "max")]
            for metric in run["distributions"]})
        self.check_cells("totals", {
            (total["key"], ""): [total["value"]] for total in run["totals"]})
        self.check_cells("statuses", {
            (key, ""): [value] for key, value in run["statuses"].items()})
        text = self.browser.evaluate("document.body.innerText")
        for metric in run["distributions"] + run["totals"]:
            self.assertIn(metric["formula"], text)

    def test_comparison_is_the_documents(self):
        document = sample_report.make_document("comparison", 2000)
        self.show(document)
        runs = document["runs"]
        expected = {}
        for i, total in enumerate(runs[0]["totals"]):
            expected[total["key"], "value"] = [
                run["totals"][i]["value"] for run in runs]
        for i, metric in enumerate(runs[0]["distributions"]):
            for column in ("p50", "p90", "p99", "max"):
                expected[metric["key"], column] = [
                    run["distributions"][i][column] for run in runs]
        self.check_cells("comparison", expected)
        ratio = self.browser.evaluate(
            "document.querySelector('#comparison [data-key=ttft] .ratio')"
            ".textContent")
        first, second = expected["ttft", "p50"]
        self.assertEqual(ratio, f"× {second / first:.2f} better")

    def test_run_can_be_chosen(self):
        document = sample_report.make_document("comparison", 2000)
        self.show(document)
        self.browser.evaluate(
            "{ const choice = document.getElementById('run'); choice.value = 1;"
            " choice.dispatchEvent(new Event('change')); }")
        self.browser.settle()
        self.check_layout(1280)
        metrics = document["runs"][1]["distributions"]
        self.check_cells("latencies", {
            (metric["key"], ""): [metric[column] for column in (
                "count", "mean", "p50", "p90", "p95", "p99", "max")]
            for metric in metrics})

    def test_text_stays_text(self):
        document = sample_report.make_document("broken", 0)
        run = document["runs"][0]
        self.show(document)
        self.assertEqual(
            self.browser.evaluate("document.querySelector('h1').textContent"),
            run["name"])
        self.assertEqual(self.browser.evaluate(
            "document.querySelectorAll('main img, main b:not(.tip b), main i')"
            ".length"), 0)
        banners = self.browser.evaluate(
            "[...document.querySelectorAll('.banner')].map((b) => b.innerText)")
        self.assertEqual(len(banners), 2)
        self.assertIn(run["error"], banners[0])
        self.assertIn("The client lagged.", banners[1])
        self.assertIn(run["client"]["note"], banners[1])

    def test_distributions_are_those_of_the_requests(self):
        requests = self.show_single()["requests"]
        samples = {
            "queue": requests["queue_ms"],
            "time to first token": requests["first_token_ms"],
            "end to end": requests["end_ms"]}
        compared = 0
        for tip in self.tips("How long requests took"):
            most = number_of(tip["head"].removeprefix("at most "))
            for name, text in tip["rows"].items():
                # The place is told with four digits, and so is the share.
                low, high = (sum(value <= most * near for value in samples[name])
                             / len(samples[name]) * 100
                             for near in (0.999, 1.001))
                self.assertLessEqual(low * 0.999, number_of(text), (tip, name))
                self.assertGreaterEqual(high * 1.001, number_of(text),
                                        (tip, name))
                compared += 1
        self.assertGreater(compared, 40)

    def test_output_over_time_is_that_of_the_requests(self):
        requests = self.show_single()["requests"]
        times = []
        for arrival, first, gaps in zip(requests["arrival_ms"],
                                        requests["first_token_ms"],
                                        requests["gaps"]):
            times.append(arrival + first)
            for gap in gaps:
                times.append(times[-1] + gap / 10)
        note = self.browser.evaluate(
            "[...document.querySelectorAll('figure')].find((f) => f.innerText"
            ".startsWith('Output over time')).querySelector('.note').innerText")
        step = number_of(note.partition("steps of ")[2].rstrip("."))
        compared = 0
        for tip in self.tips("Output over time"):
            at = number_of(tip["head"].removeprefix("at "))
            if at // step >= max(times) // step - 1 or at % step < 0.01 * step:
                continue  # The last step is a longer one.
            tokens = sum(time // step == at // step for time in times)
            # Sums of many fractions may fall on the other side of an edge.
            self.assertAlmostEqual(
                number_of(tip["rows"]["output tokens/s"]),
                tokens / step * 1000, delta=1.01 / step * 1000, msg=tip)
            compared += 1
        self.assertGreater(compared, 20)

    def test_batches_are_the_documents(self):
        batches = self.show_single()["batches"]
        columns = batches["columns"]
        # The state after a step is there until the next one.
        starts = columns["start_ms"]
        nexts = starts[1:] + [float("inf")]
        ends = [start + duration for start, duration
                in zip(starts, columns["duration_ms"])]
        compared = 0
        for title, names in (
                ("Batch composition", {"prefill": "prefill_tokens",
                                       "decode": "decode_tokens"}),
                ("Running and waiting", {"running": "running",
                                         "waiting": "waiting"}),
                ("Page occupancy", {"cached": "pages_cached",
                                    "free": "pages_free",
                                    "shared": "pages_shared"})):
            for tip in self.tips(title):
                at = number_of(tip["head"].removeprefix("at "))
                # The step is one of those around the time, of four digits.
                untils = ends if title == "Batch composition" else nexts
                rows = [i for i, (start, until) in enumerate(zip(starts, untils))
                        if start * 0.999 <= at <= until * 1.001]
                if not tip["rows"]:
                    # Pages are somewhere even while nothing is computed.
                    self.assertNotEqual(title, "Page occupancy", tip)
                    continue
                found = [number_of(tip["rows"][name]) for name in names]
                self.assertIn(found, [[columns[column][i] for column
                                       in names.values()] for i in rows], tip)
                compared += 1
        self.assertGreater(compared, 60)

    def test_pages_add_up_to_the_pool(self):
        batches = self.show_single()["batches"]
        bands = ("tokens held", "shared", "waste", "cached", "free")
        tips = [tip["rows"] for tip in self.tips("Page occupancy")
                if tip["rows"]]
        self.assertGreater(len(tips), 20)
        for rows in tips:
            # Four digits are shown of each of the five.
            self.assertAlmostEqual(
                sum(number_of(rows[band]) for band in bands),
                batches["pool"]["pages_total"], delta=5 * 0.05)

    def test_page_map_shows_each_step(self):
        batches = self.show_single()["batches"]
        shown = self.browser.evaluate("""(() => {
          const figure = document.querySelector('figure.map');
          const slider = figure.querySelector('input');
          return Array.from({length: Number(slider.max) + 1}, (_, i) => {
            slider.value = i;
            slider.dispatchEvent(new Event('input'));
            // Of each group of pages: what is empty of them, and what is full.
            return {said: figure.querySelector('output').textContent,
                    cells: [...figure.querySelectorAll('svg path:nth-child(even)')].map(
                      (path) => path.getAttribute('d').split('M').length - 1)};
          });
        })()""")
        self.assertEqual(len(shown), len(batches["maps"]))
        for page_map, step in zip(batches["maps"], shown):
            expected = [page_map["pages_shared"]] + [
                pages - shared for _, pages, shared, _ in page_map["sequences"]]
            expected += [page_map["pages_in_use"] - sum(expected),
                         page_map["pages_cached"], page_map["pages_free"]]
            self.assertEqual(step["cells"], [n for n in expected if n > 0])
            self.assertIn(f"Step {page_map['step']:,} ", step["said"])
            self.assertIn(f" {page_map['pages_in_use']:,} pages in use",
                          step["said"])

    def test_values_by_keyboard(self):
        self.show(sample_report.make_document("single", 2000))
        self.browser.evaluate("document.querySelector('figure svg').focus()")
        for _ in range(8):
            self.browser.call("Input.dispatchKeyEvent", type="keyDown",
                              key="ArrowRight", modifiers=8)
        tip = self.browser.evaluate(
            "document.querySelector('figure .tip').innerText")
        self.assertRegex(tip, r"at most [\d.]+ m?s\n")
        self.assertIn("time to first token", tip)

    def test_rows_by_keyboard(self):
        self.show(sample_report.make_document("single", 2000))
        names = "[...%s.querySelectorAll('svg .name')].map((t) => t.textContent)"
        last = "[...document.querySelectorAll('figure')].pop()"
        self.browser.evaluate(f"{last}.querySelector('svg').focus()")
        for key in ("ArrowRight", "ArrowDown", "ArrowDown"):
            self.browser.call("Input.dispatchKeyEvent", type="keyDown", key=key)
        third = self.browser.evaluate(names % last)[2].split(" · ")[0]
        self.assertIn(third + "\n", self.browser.evaluate(
            f"{last}.querySelector('.tip').innerText"))

    def test_draws_a_hundred_thousand_tokens(self):
        document = sample_report.make_document("single", 100_000)
        self.show(document)
        self.check_layout(1280)
        drawn = float(self.browser.evaluate(
            "document.documentElement.dataset.drawnMs"))
        size = self.render(document).stat().st_size
        # For the reader of the log; the time depends on what else runs here.
        print(f"\n100,000 tokens: drawn {drawn:.0f} ms after the page was asked "
              f"for ({'within' if drawn < 2000 else 'NOT WITHIN'} 2,000 ms), "
              f"{size / 1e6:.2f} MB")
        self.assertLess(size, 5e6)


if __name__ == "__main__":
    if chromium.find_chromium() is None:
        print("skipped: Chromium is not installed (Debian: chromium)")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
