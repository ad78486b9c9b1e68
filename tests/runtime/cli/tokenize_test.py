"""`folio tokenize`, with a small tokenizer made here.

Usage: tokenize_test.py FOLIO
"""

import json
import pathlib
import sys
import tempfile
import unittest

from folio_binary import Folio

# Bytes of ASCII without control characters, "ab", and a special token.
VOCABULARY = {chr(byte): byte - ord("!") for byte in range(ord("!"), 127)}
SPACE, AB, END = 94, 95, 96
TOKENIZER = {
    "added_tokens": [{"id": END, "content": "<end>", "special": True}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "merges": ["a b"],
              "vocab": VOCABULARY | {"\u0120": SPACE, "ab": AB}},
}
CONFIG = {"bos_token": "<end>", "add_bos_token": True}
A = ord("a") - ord("!")

folio = None


class Tokenize(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "tokenizer.json"
        self.model.write_text(json.dumps(TOKENIZER), "utf-8")
        (self.folder / "tokenizer_config.json").write_text(json.dumps(CONFIG))

    def run_lines(self, lines, *flags, model=None):
        stdin = "".join(line + "\n" for line in lines).encode()
        return folio.run("tokenize", "--model", str(model or self.model),
                         *flags, stdin=stdin)

    def translate(self, objects, *flags, model=None):
        result = self.run_lines(map(json.dumps, objects), *flags, model=model)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_lines_of_text_become_lines_of_ids_and_text_again(self):
        texts = [{"text": "ab a"}, {"text": ""}, {"text": "<end>", "n": 1}]
        ids = self.translate(texts)
        name = [VOCABULARY[letter] for letter in "<end>"]
        self.assertEqual(ids, [{"ids": [AB, SPACE, A]}, {"ids": []},
                               {"ids": name}])
        self.assertEqual(self.translate(ids, "--decode"),
                         [{"text": "ab a"}, {"text": ""}, {"text": "<end>"}])

    def test_flags(self):
        def ids(*flags):
            return self.translate([{"text": "ab<end>"}], *flags)[0]["ids"]
        self.assertEqual(ids("--parse-special"), [AB, END])
        self.assertEqual(ids("--parse-special", "--add-bos"), [END, AB, END])
        self.assertEqual(ids("--add-bos")[:2], [END, AB])

    def test_reads_a_file_and_a_folder(self):
        lines = self.folder / "lines.jsonl"
        lines.write_text('{"text": "a"}\n{"text": "ab"}')  # No last line end.
        result = folio.run("tokenize", "--model", str(self.folder), "--input",
                           str(lines))
        self.assertEqual(result.stdout, f'{{"ids":[{A}]}}\n{{"ids":[{AB}]}}\n')

    def test_a_bad_line_is_named_after_the_output_for_those_before(self):
        good = '{"text": "a"}'
        for bad, why in (("nonsense", "not valid JSON"), ("", "not valid JSON"),
                         ("[]", '{"text": a string}'),
                         ('{"text": 1}', '{"text": a string}'),
                         ('{"ids": [1]}', '{"text": a string}'),
                         ('{"text": "a\\u00e9"}', "offset 1")):
            with self.subTest(bad=bad):
                result = self.run_lines([good, bad, good])
                self.assertEqual(result.returncode, 1)
                self.assertEqual(result.stdout, f'{{"ids":[{A}]}}\n')
                self.assertIn("standard input, line 2: ", result.stderr)
                self.assertIn(why, result.stderr)

    def test_ids_must_be_in_the_vocabulary(self):
        for bad in (-1, 97, 2**31, 2**63, 2**64 - 1, 0.5, "1", None):
            with self.subTest(bad=bad):
                result = self.run_lines([json.dumps({"ids": [bad]})],
                                        "--decode")
                self.assertEqual(result.returncode, 1)
                self.assertIn("line 1: ", result.stderr)
                self.assertIn(json.dumps(bad), result.stderr)
                self.assertIn("0 to 96", result.stderr)

    def test_models_that_are_not_there(self):
        result = self.run_lines([], model=self.folder / "none/tokenizer.json")
        self.assertEqual(result.returncode, 1)
        self.assertIn("none/tokenizer.json", result.stderr)
        result = folio.run("tokenize", "--model", str(self.model), "--input",
                           str(self.folder / "none.jsonl"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("none.jsonl", result.stderr)

    def test_the_built_in_and_random_models_have_tokenizers(self):
        text = [{"text": "And it came to pass"}]
        for flags in ((), ("--model", "random:")):
            result = folio.run_as_is("tokenize", *flags,
                                     stdin=json.dumps(text[0]).encode())
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            back = folio.run_as_is("tokenize", "--decode", *flags,
                                   stdin=result.stdout.encode())
            self.assertEqual(json.loads(back.stdout), text[0])


if __name__ == "__main__":
    folio = Folio(sys.argv.pop(1))
    unittest.main()
