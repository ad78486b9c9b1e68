"""Documents as folio-load writes them, of a made-up server.

A toy of a serving engine: steps of a prefill chunk and one token for each
sequence that decodes, pages that run out, and the oldest sequence served first.
Nothing of it is measured; it is there for pages to be looked at, and tested.

Usage: sample_report.py KIND [OUTPUT_TOKENS] > document.json
KIND is single, comparison, sweep, suite, broken or empty.
"""

import collections
import json
import math
import random
import sys

PAGE_SIZE = 16
BYTES_PER_TOKEN = 23040
MAX_ROWS = 4000
MAX_MAPS = 40
STEP_TOKENS = 256
STATES = ("running", "waiting", "pages_free", "pages_in_use", "pages_cached",
          "pages_shared", "tokens_held", "waste_bytes")
SUMS = ("duration_ms", "forward_ms", "steps", "prefill_tokens",
        "decode_tokens", "preempted", "evicted")


class Sequence:
    """One request in the toy."""

    def __init__(self, name, arrival, prompt, output, shared_pages):
        self.name = name
        self.arrival = arrival
        self.prompt = prompt
        self.output = output
        self.shared_pages = shared_pages
        self.computed = shared_pages * PAGE_SIZE
        self.queue_ms = None
        self.token_times = []
        self.end = None
        self.status = "OK"

    def pages(self):
        return max(self.shared_pages, math.ceil(self.computed / PAGE_SIZE))

    def own_pages(self):
        return self.pages() - self.shared_pages

    def wanted(self):
        """Tokens whose K/V the next token needs."""
        return self.prompt + len(self.token_times)


class Engine:
    """Time in milliseconds after the start of the run."""

    def __init__(self, sequences, pages_total, max_running, slowness):
        self.arrivals = collections.deque(sequences)
        self.pages_total = pages_total
        self.max_running = max_running
        self.slowness = slowness
        self.shared = max((s.shared_pages for s in sequences), default=0)
        self.waiting = collections.deque()
        self.running = []
        self.cached = 0
        self.now = 0.0
        self.rows = []
        self.maps = []

    def run(self):
        while self.arrivals or self.waiting or self.running:
            if not self.waiting and not self.running:
                self.now = max(self.now, self.arrivals[0].arrival)
            while self.arrivals and self.arrivals[0].arrival <= self.now:
                self.waiting.append(self.arrivals.popleft())
            self.step()

    def in_use(self):
        shared = self.shared if self.running else 0
        return shared + sum(s.own_pages() for s in self.running)

    def step(self):
        row = collections.Counter(start_ms=self.now, steps=1)
        budget = STEP_TOKENS - len(self.running)
        while (self.waiting and len(self.running) < self.max_running and
               self.in_use() + self.waiting[0].prompt // PAGE_SIZE + 4 <
               self.pages_total):
            sequence = self.waiting.popleft()
            if sequence.queue_ms is None:
                sequence.queue_ms = self.now - sequence.arrival
            self.running.append(sequence)
        for sequence in self.running:
            missing = sequence.wanted() - sequence.computed
            take = missing if missing == 1 else min(missing, max(budget, 0))
            row["decode_tokens" if missing == 1 else "prefill_tokens"] += take
            budget -= take
            sequence.computed += take
        self.make_room(row)
        forward = self.slowness * (9 + 0.55 * row["prefill_tokens"] +
                                   1.9 * row["decode_tokens"])
        row["forward_ms"] = forward * random.uniform(0.95, 1.1)
        row["duration_ms"] = row["forward_ms"] + random.uniform(0.2, 0.9)
        self.now += row["duration_ms"]
        self.sample()
        self.report(row)

    def make_room(self, row):
        while self.in_use() > self.pages_total:
            last = self.running.pop()
            last.computed = last.shared_pages * PAGE_SIZE
            self.waiting.appendleft(last)
            row["preempted"] += 1
        room = self.pages_total - self.in_use()
        if self.cached > room:
            row["evicted"] += self.cached - room
            self.cached = room

    def sample(self):
        still = []
        for sequence in self.running:
            if sequence.computed == sequence.wanted():
                sequence.token_times.append(self.now + random.uniform(0, 0.4))
            if len(sequence.token_times) < sequence.output:
                still.append(sequence)
            else:
                sequence.end = sequence.token_times[-1] + 0.3
                self.cached += sequence.own_pages() // 2
        self.running = still
        self.cached = min(self.cached, self.pages_total - self.in_use())

    def report(self, row):
        in_use = self.in_use()
        shared = self.shared if len(self.running) > 1 else 0
        held = shared * PAGE_SIZE + sum(
            s.computed - (s.shared_pages if shared else 0) * PAGE_SIZE
            for s in self.running)
        row.update(
            running=len(self.running), waiting=len(self.waiting),
            pages_in_use=in_use, pages_cached=self.cached,
            pages_free=self.pages_total - in_use - self.cached,
            pages_shared=shared, tokens_held=held,
            waste_bytes=(in_use * PAGE_SIZE - held) * BYTES_PER_TOKEN)
        self.rows.append(row)
        self.maps.append({
            "step": len(self.rows), "time_ms": round(self.now, 3),
            "pages_free": row["pages_free"], "pages_in_use": in_use,
            "pages_cached": self.cached, "pages_shared": shared,
            "sequences": [[s.name, s.pages(), s.shared_pages if shared else 0,
                           s.computed] for s in self.running]})

    def batches(self):
        stride = math.ceil(len(self.rows) / MAX_ROWS)
        columns = {name: [] for name in ("start_ms",) + SUMS + STATES}
        for first in range(0, len(self.rows), stride):
            group = self.rows[first:first + stride]
            columns["start_ms"].append(round(group[0]["start_ms"], 3))
            for name in SUMS:
                columns[name].append(round(sum(r[name] for r in group), 3))
            for name in STATES:
                columns[name].append(group[-1][name])
        every = max(1, len(self.maps) // MAX_MAPS)
        return {
            "pool": {"page_size": PAGE_SIZE,
                     "page_bytes": PAGE_SIZE * BYTES_PER_TOKEN,
                     "bytes_per_token": BYTES_PER_TOKEN,
                     "pages_total": self.pages_total},
            "columns": columns, "dropped": 0,
            "maps": self.maps[::every][:MAX_MAPS]}


def summary(values):
    """Nearest-rank percentiles."""
    values = sorted(values)
    if not values:
        return dict.fromkeys(("count", "mean", "p50", "p90", "p95", "p99",
                              "max"), 0)

    def rank(percent):
        return round(values[max(0, math.ceil(len(values) * percent / 100) - 1)],
                     3)
    return {"count": len(values), "mean": round(sum(values) / len(values), 3),
            "p50": rank(50), "p90": rank(90), "p95": rank(95), "p99": rank(99),
            "max": round(values[-1], 3)}


def columns_of(sequences):
    requests = collections.defaultdict(list)
    for s in sequences:
        times = s.token_times
        tenths = [round(10 * (t - s.arrival)) for t in times]
        row = {
            "name": s.name, "tenant": "", "n": 1, "reads_slowly": False,
            "arrival_ms": round(s.arrival, 3),
            "sent_ms": round(s.arrival + random.expovariate(8), 3),
            "first_token_ms": tenths[0] / 10 if times else None,
            "end_ms": round(s.end - s.arrival, 3) if s.end else None,
            "queue_ms": None if s.queue_ms is None else round(s.queue_ms, 3),
            "prompt_tokens": s.prompt, "output_tokens": len(times),
            "status": s.status,
            "gaps": [b - a for a, b in zip(tenths, tenths[1:])]}
        for name, value in row.items():
            requests[name].append(value)
    return requests


def distributions(requests):
    rows = list(zip(*(requests[name] for name in (
        "first_token_ms", "end_ms", "queue_ms", "output_tokens", "status",
        "gaps"))))
    ok = [row for row in rows if row[4] == "OK"]
    metrics = (
        ("ttft", "Time to first token",
         "first token's time - scheduled arrival",
         [row[0] for row in rows if row[0] is not None]),
        ("itl", "Inter-token latency",
         "every gap between two tokens of a request",
         [gap / 10 for row in rows for gap in row[5]]),
        ("tpot", "Time per output token", "(E2E - TTFT) / (output tokens - 1)",
         [(row[1] - row[0]) / (row[3] - 1) for row in ok if row[3] > 1]),
        ("e2e", "End to end", "end's time - scheduled arrival",
         [row[1] for row in ok]),
        ("queue", "Queue", "as the server tells: from its receipt to its first "
         "step", [row[2] for row in rows if row[2] is not None]))
    return [{"key": key, "name": name, "unit": "ms", "formula": formula,
             **summary(values)} for key, name, formula, values in metrics]


def good_requests(requests, limits):
    good = 0
    for first, gaps, status in zip(requests["first_token_ms"], requests["gaps"],
                                   requests["status"]):
        good += (status == "OK" and first <= limits["ttft"] and
                 summary(gaps)["p99"] / 10 <= limits["itl"])
    return good


def totals(requests, seconds, limits):
    output = sum(requests["output_tokens"])
    inputs = sum(requests["prompt_tokens"])
    count = len(requests["name"])
    ok = requests["status"].count("OK")
    rows = [
        ("duration", "Duration", "s", "first scheduled arrival to last end",
         seconds),
        ("requests", "Requests", "", "all that were scheduled", count),
        ("ended_as_asked", "Ended as asked", "", "those that were cancelled, or "
         "timed out, as they were asked to", 0),
        ("not_sent", "Not sent", "", "those that never went out", 0),
        ("failed", "Failed", "", "those with another status than OK that was "
         "not asked for", count - ok),
        ("input_tokens", "Input tokens", "", "tokens of prompts", inputs),
        ("cached_input_tokens", "Cached input tokens", "", "tokens of prompts "
         "that the server did not compute", 0),
        ("output_tokens", "Output tokens", "", "tokens generated", output),
        ("output_tokens_per_second", "Output rate", "tokens/s",
         "output tokens / duration", output / seconds),
        ("input_tokens_per_second", "Input rate", "tokens/s",
         "input tokens / duration", inputs / seconds),
        ("total_tokens_per_second", "Total rate", "tokens/s",
         "(input + output tokens) / duration", (inputs + output) / seconds),
        ("requests_per_second", "Request rate", "requests/s",
         "requests served / duration", ok / seconds)]
    if limits:
        rows.append(("goodput", "Goodput", "requests/s",
                     "requests served within the limits / duration",
                     good_requests(requests, limits) / seconds))
    return [{"key": key, "name": name, "unit": unit, "formula": formula,
             "value": round(value, 3)}
            for key, name, unit, formula, value in rows]


def make_run(name, output_tokens, rate=None, pages=728, slowness=1.0, seed=1,
             limits=None, shared_pages=0, model="random:llama-135m"):
    """A run that generates about `output_tokens`; all at once without a rate."""
    random.seed(seed)
    sequences = []
    arrival = 0.0
    left = output_tokens
    while left > 0:
        prompt = min(3000, 1 + shared_pages * PAGE_SIZE +
                     round(random.lognormvariate(5.0, 0.8)))
        output = min(left, 400, 1 + round(random.lognormvariate(4.5, 0.6)))
        sequences.append(Sequence(f"request-{len(sequences)}", arrival, prompt,
                                  output, shared_pages))
        left -= output
        if rate:
            arrival += random.expovariate(rate / 1000)
    engine = Engine(sequences, pages, 16, slowness)
    engine.run()
    requests = columns_of(sequences)
    lag = [s - a for s, a in zip(requests["sent_ms"], requests["arrival_ms"])]
    at = f"{rate} requests/s, Poisson" if rate else "all at once"
    load = f"{len(sequences)} requests, {at}; prompts log-normal, median 148"
    return {
        "name": name, "target": "folio://127.0.0.1:50051",
        "server": "Folio 0.1.0", "model": model,
        "started": "2026-11-30T05:00:00Z", "seed": seed,
        "command": "folio-load --target folio://127.0.0.1:50051 "
                   f"--requests {len(sequences)} --seed {seed}",
        "load": load, "complete": True, "error": "",
        "client": {"send_lag_ms": summary(lag),
                   "timer_lag_ms": summary([x / 3 for x in lag]),
                   "cpu_share": 0.043, "is_bottleneck": False, "note": ""},
        "distributions": distributions(requests),
        "totals": totals(requests, engine.now / 1000, limits),
        "limits": limits, "offered_rate": rate,
        "statuses": dict(collections.Counter(requests["status"])),
        "requests": requests, "batches": engine.batches()}


def broken_run():
    """Broke off, with a slow client, an unfriendly name, and little known."""
    run = make_run("</script><img src=x onerror=alert(1)>\u2028", 900, seed=3)
    requests = run["requests"]
    for i, status in ((3, "UNAVAILABLE"), (5, "DEADLINE_EXCEEDED")):
        requests["status"][i] = status
        requests["gaps"][i] = requests["gaps"][i][:4]
    requests["status"][6] = "UNAVAILABLE"
    requests["gaps"][6] = []
    for name in ("first_token_ms", "sent_ms", "end_ms"):
        requests[name][6] = None
    requests["output_tokens"][6] = 0
    requests["queue_ms"] = [None] * len(requests["name"])
    requests["name"][4] = "<b>bold</b> & \"quoted\" " + "long " * 30
    run["distributions"] = [
        metric for metric in distributions(requests) if metric["count"]]
    run["totals"] = totals(requests, run["totals"][0]["value"], None)
    run["statuses"] = dict(collections.Counter(requests["status"]))
    run.update(complete=False, batches=None, server="",
               error="UNAVAILABLE: <i>folio://127.0.0.1:50051</i> went away")
    run["client"].update(is_bottleneck=True, cpu_share=0.98,
                         note="It sent 40 ms late at p99.")
    return run


def empty_run():
    """Broke off before its first request."""
    run = make_run("nothing", 1)
    run["requests"] = {name: [] for name in run["requests"]}
    run.update(complete=False, error="UNAVAILABLE: nobody answers",
               distributions=distributions(run["requests"]),
               totals=totals(run["requests"], 1, None), statuses={})
    columns = run["batches"]["columns"]
    run["batches"].update(columns={name: [] for name in columns}, maps=[])
    return run


def make_document(kind, output_tokens):
    limits = {"ttft": 1000, "itl": 100}
    if kind == "single":
        runs = [make_run("chat, steady", output_tokens, rate=2.0, pages=240,
                         limits=limits, shared_pages=6)]
    elif kind == "comparison":
        runs = [make_run("bf16", output_tokens, rate=2.5),
                make_run("int8", output_tokens, rate=2.5, slowness=0.6,
                         model="random:llama-135m, int8")]
    elif kind == "sweep":
        runs = [make_run(f"chat, rate={rate / 2:g}", output_tokens // 2, rate=rate / 2,
                         limits=limits) for rate in range(1, 9)]
    elif kind == "suite":
        runs = [make_run("chat burst", output_tokens // 4),
                make_run("steady chat", output_tokens // 4, rate=2.0),
                make_run("shared system prompt", output_tokens // 4,
                         shared_pages=30),
                make_run("memory pressure", output_tokens // 4, pages=120)]
    elif kind == "broken":
        runs = [broken_run()]
    elif kind == "empty":
        runs = [empty_run()]
    else:
        raise SystemExit(__doc__)
    return {"format": "folio-load 1", "runs": runs}


if __name__ == "__main__":
    json.dump(make_document(sys.argv[1] if len(sys.argv) > 1 else "",
                            int(sys.argv[2]) if len(sys.argv) > 2 else 8000),
              sys.stdout)
