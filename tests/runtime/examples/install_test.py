"""`cmake --install`, and a project outside the tree that uses what it installs.

Usage: install_test.py FOLIO CMAKE SOURCE_DIR BUILD_DIR CXX
"""

import pathlib
import re
import shutil
import sys
import tempfile

import embedded

PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(Embedder LANGUAGES CXX)
find_package(Folio REQUIRED)
add_executable(embed embed.cc)
target_link_libraries(embed PRIVATE Folio::folio)
"""


def succeed(*command):
    """Returns what the command prints."""
    result = embedded.run(*command)
    assert result.returncode == 0, (command, result.stdout, result.stderr)
    return result.stdout


def check_headers(source, include):
    """Each installed header is the tree's, and includes installed ones only."""
    headers = {str(path.relative_to(include)): path.read_text("utf-8")
               for path in include.rglob("*") if path.is_file()}
    assert "runtime/folio.h" in headers, sorted(headers)
    for name, text in headers.items():
        assert name.endswith(".h"), name
        assert text == (source / name).read_text("utf-8"), name
        for ours in re.findall(r'#include "((?:cache|runtime|scheduler)/[^"]*)"',
                               text):
            assert ours in headers, f"{name} includes {ours}"
    for path in include.rglob("*"):
        assert path.is_file() or any(path.iterdir()), f"{path} is empty"


def check_texts(installed, *places):
    """No text says where it was built, or gives others our compiler flags."""
    for path in [*installed.rglob("*.h"), *installed.rglob("*.cmake")]:
        text = path.read_text("utf-8")
        for word in (*places, "INTERFACE_COMPILE_OPTIONS", "folio_flags"):
            assert str(word) not in text, (path, word)


def build(cmake, cxx, installed, project):
    """Returns the example, built as somebody else's project."""
    (project / "CMakeLists.txt").write_text(PROJECT, "utf-8")
    succeed(
        cmake, "-S", project, "-B", project / "build",
        f"-DCMAKE_PREFIX_PATH={installed}", f"-DCMAKE_CXX_COMPILER={cxx}",
        # Nobody's own strictness shall fail over what is ours.
        "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
    succeed(cmake, "--build", project / "build")
    return project / "build" / "embed"


def main(folio, cmake, source, build_dir, cxx):
    source = pathlib.Path(source)
    with tempfile.TemporaryDirectory() as temporary:
        installed = pathlib.Path(temporary) / "installed"
        project = pathlib.Path(temporary) / "project"
        succeed(cmake, "--install", build_dir, "--prefix", installed)
        check_headers(source, installed / "include" / "folio")
        check_texts(installed, source, build_dir)

        program = installed / "bin" / "folio"
        assert succeed(program, "--version") == succeed(folio, "--version")
        project.mkdir()
        shutil.copy(source / "runtime" / "examples" / "embed.cc", project)
        embedded.check(build(cmake, cxx, installed, project), program)


if __name__ == "__main__":
    main(*sys.argv[1:])
