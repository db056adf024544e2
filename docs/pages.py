"""Adds pages to the site beside the files of docs/: README, files of the tree that pages link to, reference.

A hook of mkdocs (mkdocs.yml). The site has the layout of the tree, so that the links between its files are
valid in the site, too; a link to a source file leads to a page that shows the file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(?<=\]\()([^)#\s]+)")
BLOCK = re.compile(r"```|\||[-*](?= )|\d+\.(?= )")
REPORT = re.compile(r"`(results/gallery/[^`]+)`(?=\n)")
SHOWN = {".yaml": "yaml", ".py": "python", ".sh": "bash", ".rs": "rust"}
COMMANDS = "docs/reference/commands.md"
PYTHON = "docs/reference/python.md"
API = ("load", "Run", "Campaign", "Topology", "LoadError", "labs.Lab", "measured.Measured")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Lists all files of the site by their paths in the tree."""
    made = dict(_own(config))
    made |= dict(_linked(config, made))
    made |= {uri: File.generated(config, uri, abs_src_path=str(ROOT / uri)) for uri in _reports()}
    made[COMMANDS] = File.generated(config, COMMANDS, content="".join(_commands()))
    made[PYTHON] = File.generated(config, PYTHON, content="".join(_python()))
    theme = [file for file in files if file.src_dir != config.docs_dir]
    return Files([*made.values(), *theme])


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Changes a page's links to source files into links to the pages that show these files."""

    def shown(match: re.Match[str]) -> str:
        target = _target(page.file.src_uri, match[0])
        return f"{match[0]}.md" if files.get_file_from_path(f"{target}.md") else match[0]

    markdown = REPORT.sub(lambda match: _report(match[1], files), markdown)
    return LINK.sub(shown, "".join(_as_written(markdown)))


def _report(uri: str, files: Files) -> str:
    """Returns a link to a report of the gallery if `make gallery` has made it, else its name."""
    return f"[{uri}](../{uri})" if files.get_file_from_path(uri) else f"`{uri}`"


def _reports() -> Iterator[str]:
    for path in sorted((ROOT / "results/gallery").rglob("*")):
        if path.is_file():
            yield path.relative_to(ROOT).as_posix()


def _as_written(markdown: str) -> Iterator[str]:
    """Rewrites lists, tables and code for Python-Markdown, which, unlike GitHub, requires an empty line
    before them, and four spaces for each level of indentation.
    """
    before, more, inside = "", "", False
    for line in markdown.splitlines(keepends=True):
        kind = found[0] if (found := BLOCK.match(line.lstrip(" "))) else ""
        fence = "```" in (kind, before.strip()[:3])
        if not inside:
            indent = len(line) - len(line.lstrip(" "))
            more = " " * (4 * round(indent / 2.5) - indent)  # below "- " two, below "1. " three
            if before.strip() and (fence or (kind and not before.startswith((" ", "#", kind)))):
                yield "\n"
        yield more + line if line.strip() else line
        inside ^= kind == "```"
        before = line


def _own(config: MkDocsConfig) -> Iterator[tuple[str, File]]:
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*"))]:
        if path.is_file() and path.suffix not in {".py", ".pyc", ".toml"}:
            uri = path.relative_to(ROOT).as_posix()
            yield uri, File.generated(config, uri, abs_src_path=str(path))


def _linked(config: MkDocsConfig, pages: dict[str, File]) -> Iterator[tuple[str, File]]:
    """Yields each file outside docs/ that pages link to, by its path: source as a page that shows it, others
    unchanged.
    """
    for uri in [uri for uri in pages if uri.endswith(".md")]:
        for link in LINK.findall((ROOT / uri).read_text(encoding="utf-8")):
            target = _target(uri, link)
            path = ROOT / target
            if ":" in link or target in pages or target.startswith("..") or not path.is_file():
                continue  # mkdocs reports links that lead nowhere
            if language := SHOWN.get(path.suffix):
                head = f"---\nsearch: {{exclude: true}}\n---\n# {target}\n"
                text = f"{head}\n````{language}\n{path.read_text(encoding='utf-8')}\n````\n"
                yield f"{target}.md", File.generated(config, f"{target}.md", content=text)
            else:
                yield target, File.generated(config, target, abs_src_path=str(path))


def _target(uri: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(uri), link))


def _commands() -> Iterator[str]:
    """Returns the help texts of all commands."""
    from orchestrator.cli.main import vnet

    examples = "[the command line](../cli.md) has the examples"
    yield f"# All commands\n\nWhat `vnet COMMAND --help` says; {examples}.\n"
    yield from _helps(click.Context(vnet, info_name="vnet", terminal_width=100, max_content_width=100))


def _helps(context: click.Context) -> Iterator[str]:
    yield f"\n## {context.command_path}\n\n```text\n{context.command.get_help(context)}\n```\n"
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            yield from _helps(type(context)(command, info_name=name, parent=context))


def _python() -> Iterator[str]:
    explained = "[vNET in Python](../python.md) and [labs in pytest](../pytest.md) explain it"
    yield f"# All of `vnet` in Python\n\nFrom the sources; {explained}.\n"
    for name in API:
        yield f"\n::: vnet.{name}\n"
