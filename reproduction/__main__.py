"""python -m reproduction NAME [--quick|--full]: run the experiments of the papers."""

from reproduction.command import main

main()
