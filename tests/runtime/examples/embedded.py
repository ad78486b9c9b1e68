"""What a program made of embed.cc has to do, wherever it was built."""

import subprocess

MAX_TOKENS = "32"  # As the example has it.

PROMPT = "And the king said unto his servants,"
TIMEOUT_SECONDS = 120  # Generous, for sanitizers on busy machines.


def run(*command):
    """Returns the finished process: returncode, stdout and stderr (text)."""
    return subprocess.run([str(word) for word in command], encoding="utf-8",
                          stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=TIMEOUT_SECONDS)


def check(embed, folio):
    """`embed` generates what the command line does, and explains its errors."""
    for model in ([], ["random:"]):
        flags = ["--model", *model] if model else []
        expected = run(folio, "generate", "--prompt", PROMPT, "--temperature",
                       "0", "--max-tokens", MAX_TOKENS, *flags)
        assert expected.returncode == 0, expected
        assert expected.stdout.strip(), expected
        found = run(embed, PROMPT, *model)
        assert found.returncode == 0, found
        assert found.stdout == expected.stdout, (found, expected)
        assert found.stderr == f"{MAX_TOKENS} tokens generated\n", found

    missing = run(embed, PROMPT, "/nowhere/model")
    assert missing.returncode == 1, missing
    assert missing.stdout == "", missing
    assert "'/nowhere/model': there is no such file" in missing.stderr, missing
