"""Drives a headless Chromium over its DevTools protocol, on a pair of pipes.

The protocol: https://chromedevtools.github.io/devtools-protocol. With
--remote-debugging-pipe, Chromium reads messages from descriptor 3 and writes
them to 4, each one JSON followed by a zero byte.
"""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

ANSWER_SECONDS = 60


def find_chromium():
    """The path of a Chromium, or None."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path is not None:
            return path
    return None


class Chromium:
    """A browser with one page. Use it in a `with` statement."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(
            ignore_cleanup_errors=True)
        theirs_in, self.to = os.pipe()
        self.back, theirs_out = os.pipe()
        # The shell puts both ends where Chromium expects them. The sandbox
        # needs rights that containers do not have.
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "sh",
             program, "--headless=new", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--disable-extensions",
             "--disable-background-networking", "--remote-debugging-pipe",
             f"--user-data-dir={self.profile.name}", "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.number = 0
        self.events = []
        self.unread = b""
        self.session = None
        self.attach()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(timeout=ANSWER_SECONDS)
        except (OSError, EOFError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.back)
        self.profile.cleanup()

    def attach(self):
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", flatten=True,
                                 targetId=page["targetId"])["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def receive(self):
        deadline = time.monotonic() + ANSWER_SECONDS
        while b"\0" not in self.unread:
            left = deadline - time.monotonic()
            if left < 0 or not select.select([self.back], [], [], left)[0]:
                raise TimeoutError("Chromium does not answer")
            read = os.read(self.back, 1 << 20)
            if not read:
                raise EOFError("Chromium has ended")
            self.unread += read
        message, self.unread = self.unread.split(b"\0", 1)
        return json.loads(message)

    def send(self, method, **parameters):
        """The number that the answer will have."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        unsent = json.dumps(message).encode() + b"\0"
        while unsent:
            unsent = unsent[os.write(self.to, unsent):]
        return self.number

    def call(self, method, **parameters):
        """The result; events that come meanwhile go to self.events."""
        number = self.send(method, **parameters)
        while True:
            answer = self.receive()
            if "method" in answer:
                self.events.append(answer)
            elif answer["id"] == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            if answer.get("method") == "Page.javascriptDialogOpening":
                # Nothing goes on while one is open.
                self.send("Page.handleJavaScriptDialog", accept=False)

    def evaluate(self, expression):
        """The value of JavaScript in the page; waits for a promise."""
        result = self.call("Runtime.evaluate", expression=expression,
                           awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")

    def look(self, width, dark=False, height=900):
        """Sets the size of the window, and the scheme of colours."""
        self.call("Emulation.setDeviceMetricsOverride", width=width,
                  height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme",
             "value": "dark" if dark else "light"}])

    def open(self, page):
        """Loads a file."""
        self.events.clear()
        self.call("Page.navigate", url=pathlib.Path(page).resolve().as_uri())
        deadline = time.monotonic() + ANSWER_SECONDS
        while self.evaluate("document.readyState") != "complete":
            if time.monotonic() > deadline:
                raise TimeoutError(f"{page} does not load")
            time.sleep(0.02)

    def settle(self):
        """Waits until everything is painted."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => "
                      "setTimeout(done, 50)))")

    def screenshot(self, path):
        """The whole page, however long."""
        self.settle()
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True,
                         format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))
