"""Print the oldest version of every dependency that a pyproject.toml allows, as pip constraints."""

import re
import sys
import tomllib

with open(sys.argv[1], "rb") as file:
    project = tomllib.load(file)["project"]
groups = [project["dependencies"], *project["optional-dependencies"].values()]
for requirement in sorted({requirement for group in groups for requirement in group}):
    if found := re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\w.]+)", requirement):
        print(f"{found[1]}=={found[2]}")
