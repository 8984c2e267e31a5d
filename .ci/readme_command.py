"""Print a command of README.rst: the literal block after the comment ``.. ci: NAME``."""

import pathlib
import sys


def readme_command(name, text):
    """The literal block after a marker, without its indent. None is an error, so that CI cannot pass without it."""
    lines = iter(text.splitlines())
    if f".. ci: {name}" not in lines:  # consumes the lines up to the marker
        raise SystemExit(f"README.rst has no line '.. ci: {name}'.")
    block = []
    for line in lines:
        if line.startswith("    "):
            block.append(line[4:])
        elif block and line:
            break
    command = "\n".join(block).strip()
    if not command:
        raise SystemExit(f"README.rst has no literal block after '.. ci: {name}'.")
    return command


if __name__ == "__main__":
    readme = pathlib.Path(__file__).parents[1] / "README.rst"
    print(readme_command(sys.argv[1], readme.read_text(encoding="utf-8")))
