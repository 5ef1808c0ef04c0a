"""same_types.py FOLDER FOLDER: compares what g++ has dumped of one unit, compiled in two ways. See same_types_test.sh."""
import pathlib
import re
import sys


def classes(folder):
    """The size of each class, by its name."""
    sizes, name = {}, None
    for line in (folder / "types.class").open(errors="replace"):
        if line.startswith("Class "):
            name = line[6:].strip()
        elif name and line.lstrip().startswith("size="):
            sizes.setdefault(name, set()).add(line.strip())
            name = None
    return sizes


def closures(folder):
    """For each function what its closures hold, in the order in which it puts that there."""
    all_functions, function = {}, None
    for line in (folder / "functions.cfg").open(errors="replace"):
        if line.startswith(";; Function"):
            found = re.search(r"\((_Z\w+), funcdef_no", line)
            function = all_functions.setdefault(found.group(1), {}) if found else None
        elif function is not None and (held := re.match(r"\s+(\w+(?:\.\d+)?)\.__(\w+) = ", line)):
            fields = function.setdefault(held.group(1), [])
            if held.group(2) not in fields:
                fields.append(held.group(2))
    return {name: list(of.values()) for name, of in all_functions.items()}


def main():
    first, second = (pathlib.Path(folder) for folder in sys.argv[1:])
    wrong = 0
    ours = ("far::", "genome::", "programs::", "matrices::", "toolkit::")
    sizes, others = classes(first), classes(second)
    compared = [name for name in sizes if name in others and name.startswith(ours)]
    for name in compared:
        if sizes[name] != others[name]:
            wrong += 1
            print(f"{name}: {sizes[name]}, {others[name]}")
    held, holds = closures(first), closures(second)
    functions = [name for name in held if name in holds]
    for name in functions:
        if held[name] != holds[name]:
            wrong += 1
            print(f"{name}: nvcc {held[name]}\n    g++  {holds[name]}")
    total = sum(len(holds[name]) for name in functions)
    print(f"{len(compared)} classes, {len(functions)} functions with {total} closures compared; {wrong} differ")
    if len(compared) < 500 or total < 200:
        print("that is too few: has the form of the dumps changed?")
        wrong += 1
    return 1 if wrong else 0


sys.exit(main())
