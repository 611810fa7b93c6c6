"""What the static analysis of a large repository takes: 2,000 Python files of 100 lines, in layers and with a circle.

    python benchmarks/code_graph.py [--files 2000] [--lines 100] [--folder DIR]

Prints wall time, CPU time and the peak memory of a process that does nothing else.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

from codex_multi_role.checks import CheckContext, find_check
from codex_multi_role.workspace import Workspace

FUNCTION = '''
def function_{number}(first: int, second: list[str]) -> dict[str, int]:
    """Count what is longer than first."""
    found = {{}}
    for each in second:
        if len(each) > first:
            found[each] = len(each) * {number}
    return found

'''


def write_repository(root: Path, files: int, lines: int) -> None:
    for number in range(files):
        folder = root / "package" / f"part_{number % 40}"
        folder.mkdir(parents=True, exist_ok=True)
        needed = [(number - step) % files for step in (1, 7, 40) if number >= step or number == 0]
        imports = "".join(f"import package.part_{each % 40}.module_{each}\n" for each in needed[:3])
        body = "".join(FUNCTION.format(number=each) for each in range(lines // 9))
        (folder / f"module_{number}.py").write_text(imports + body)


def measure(repo: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        context = CheckContext(Workspace(repo), Path(name), {}, 300.0, options={"repo": str(repo)})
        started, used = time.monotonic(), time.process_time()
        result = find_check("code_graph")(context)
        seconds, used = time.monotonic() - started, time.process_time() - used
        size = (Path(name) / "result.json").stat().st_size
    files = result["files"]
    assert isinstance(files, list)
    print(f"files      {len(files)}")
    print(f"lines      {sum(each['lines'] for each in files)}")
    print(f"seconds    {seconds:.2f}")
    print(f"of a CPU   {used:.2f}")
    print(f"peak       {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    print(f"result     {size / 1e6:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--lines", type=int, default=100)
    parser.add_argument("--folder", type=Path, help="analyse this one instead")
    options = parser.parse_args()
    if options.folder:
        measure(options.folder)
        return
    with tempfile.TemporaryDirectory() as name:
        write_repository(Path(name), options.files, options.lines)
        measure(Path(name))


if __name__ == "__main__":
    main()
