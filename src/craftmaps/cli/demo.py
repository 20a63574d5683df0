"""`craftmaps demo`: kernel classifiers on the digits."""

import json

import click

from craftmaps.cli import options


@click.command()
@options.as_json
def demo(as_json: bool) -> None:
    """Compare every map with an exact kernel machine on small images of digits.

    A table is printed, and a plot is written to demo-output/digits.png if matplotlib is installed.

    \b
    Example:
      craftmaps demo
    """
    from craftmaps.cli import digits

    if as_json:
        click.echo(json.dumps([row._asdict() for row in digits.measured()]))
    else:
        digits.main()


if __name__ == "__main__":
    demo()
