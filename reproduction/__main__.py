"""python -m reproduction NAME [--quick|--full]: run the experiments of the papers."""

from reproduction.command import reproduce

reproduce(prog_name="python -m reproduction")
