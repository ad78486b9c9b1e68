"""How the tests here run the `folio` binary."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

# A small model whose tokens are bytes, so that tests know them.
BYTES = ("--model", "random:")

# Generous, for sanitizers on busy machines; a hang still fails.
TIMEOUT_SECONDS = 120


def with_model(args):
    """Tests that name no model get BYTES, where a command opens one."""
    opens = args and args[0] in ("serve", "generate", "bench")
    named = any(word in args for word in ("--model", "--server", "--help"))
    return [*args, *BYTES] if opens and not named else [*args]


class Folio:
    def __init__(self, path):
        self.path = path

    def run(self, *args, stdin=None):
        """Returns the finished process: returncode, stdout and stderr (text)."""
        return self.run_as_is(*with_model(args), stdin=stdin)

    def run_as_is(self, *args, stdin=None):
        result = subprocess.run([self.path, *args], input=stdin or b"",
                                capture_output=True, timeout=TIMEOUT_SECONDS)
        # Python's own text mode would turn a generated "\r" into "\n".
        result.stdout = result.stdout.decode("utf-8")
        result.stderr = result.stderr.decode("utf-8")
        return result

    def json_lines(self, *args):
        """The objects that a command which has to succeed prints."""
        result = self.run(*args, "--json")
        assert result.returncode == 0, (args, result.stderr)
        assert result.stderr == "", (args, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def start(self, *args, stdout=subprocess.PIPE, restore_signals=True):
        return subprocess.Popen([self.path, *with_model(args)],
                                stdin=subprocess.DEVNULL,
                                stdout=stdout, stderr=subprocess.PIPE,
                                restore_signals=restore_signals,
                                text=True, encoding="utf-8")


class Terminal:
    """A command on a terminal of 100 columns, for a `with` block."""

    ROWS = 30

    def __init__(self, folio, *args, term="xterm"):
        self._master, slave = pty.openpty()
        self.resize(100)
        self.shown = b""  # All that came so far.
        # A session of its own, so that Ctrl-C goes to it alone.
        self.process = subprocess.Popen(
            [folio.path, *args], stdin=slave, stdout=slave,
            stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": term})
        os.close(slave)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        os.close(self._master)

    def resize(self, columns):
        fcntl.ioctl(self._master, termios.TIOCSWINSZ,
                    struct.pack("HHHH", self.ROWS, columns, 0, 0))

    def write(self, keys):
        os.write(self._master, keys)

    def read(self):
        """Waits for more; False at the end, when nobody has it open."""
        ready, _, _ = select.select([self._master], [], [], TIMEOUT_SECONDS)
        assert ready, self.shown
        try:
            more = os.read(self._master, 1 << 16)
        except OSError:  # So Linux says it.
            more = b""
        self.shown += more
        return bool(more)

    def read_until(self, needle):
        """Returns what came, up to the needle."""
        start = len(self.shown)
        while needle not in self.shown[start:]:
            assert self.read(), self.shown
        return self.shown[start:]

    def read_to_end(self):
        """Returns the exit status."""
        while self.read():
            pass
        self.errors = self.process.communicate(timeout=TIMEOUT_SECONDS)[1]
        return self.process.returncode


class Server:
    """`folio serve` on a free port, for a `with` block."""

    def __init__(self, folio, *args):
        self.process = folio.start("serve", "--listen", "127.0.0.1:0", *args)
        line = self.process.stdout.readline()
        prefix = "listening on "
        if not line.startswith(prefix):
            self.process.kill()
            raise AssertionError(f"{line!r}, {self.process.stderr.read()!r}")
        self.address = line[len(prefix):].strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop(signal.SIGTERM)

    def stop(self, sig):
        """Returns the exit status and how many seconds it took."""
        start = time.monotonic()
        self.process.send_signal(sig)
        self.process.communicate(timeout=TIMEOUT_SECONDS)
        return self.process.returncode, time.monotonic() - start
