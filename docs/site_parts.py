"""What Sphinx lacks for this site: formulas without scripts, the help of commands, moved links."""

import re

import click
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.utils.math.latex2mathml import tex2mathml

from craftmaps.cli.main import craftmaps

# Pages that include a file of the repository, for links that lead to the file.
PAGES = {
    "../benchmarks/RESULTS.md": "measured.md",
    "../CONTRIBUTING.md": "contributing.md",
}


def formula_in_line(translator, node):
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def formula_apart(translator, node):
    translator.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


class CommandHelp(Directive):
    """What `craftmaps COMMAND --help` prints, for every command."""

    def run(self):
        parts = []
        shown = {name: one for name, one in craftmaps.commands.items() if not one.hidden}
        for name, command in sorted(shown.items()):
            context = click.Context(
                command,
                info_name=f"craftmaps {name}",
                max_content_width=80,
                help_option_names=["-h", "--help"],
            )
            section = nodes.section(ids=[f"craftmaps-{name}"], names=[f"craftmaps {name}"])
            section += nodes.title(text=name)
            section += nodes.literal_block(text=command.get_help(context), language="text")
            self.state.document.note_implicit_target(section)
            parts.append(section)
        return parts


def adapted(app, name, source):
    """Links to files of the repository lead to the pages that include them."""
    for file, page in PAGES.items():
        source[0] = source[0].replace(f"]({file})", f"]({page})")


def skipped(app, what, name, member, skip, options):
    """Fitted attributes stand in their class, and scikit-learn documents its own methods."""
    theirs = str(getattr(member, "__module__", "")).startswith("sklearn")
    if theirs or name.endswith("_") or re.fullmatch(r"set_\w+_request", name):
        return True
    return None


def bars_are_norms(app, what, name, thing, options, lines):
    """|x| in a docstring is a norm, where Sphinx would look for a substitution."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[number] = line.replace("|", r"\|")


def setup(app):
    app.add_html_math_renderer("mathml", (formula_in_line, None), (formula_apart, None))
    app.add_directive("command-help", CommandHelp)
    app.connect("source-read", adapted)
    app.connect("autodoc-skip-member", skipped)
    app.connect("autodoc-process-docstring", bars_are_norms, priority=400)  # before numpydoc
    return {"parallel_read_safe": True}
