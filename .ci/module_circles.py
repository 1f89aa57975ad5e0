"""Finds circles of imports between the modules of each Rust crate; cargo keeps the crates themselves acyclic.

An arrow goes from the module that uses a name to the module that defines it. Names that a parent re-exports
lead to their origin, so a parent may offer what its children define. Tests and benchmarks are left out.

    python .ci/module_circles.py [--arrows] [--except CRATE ...]
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1] / "rust"
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
STRING = re.compile(r'b?r#*"(?:.*?)"#+|b?"(?:\\.|[^"\\])*"', re.DOTALL)
TESTS = re.compile(
    r"#\[cfg\((?:any\()?test[^\]]*\]\s*(?:pub(?:\([a-z]+\))?\s+)?(?:mod\s+\w+\s*(;|\{)|use\b[^;]*;)"
)
USE = re.compile(r"(?<![\w])(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
PATH = re.compile(r"(?<![\w:])((?:crate|super|self)(?:::\w+)+)")
LOCAL = re.compile(r"(?<![\w:.])(\w+)::\w+")


class Module:
    """A file of Rust: its path in the crate, the modules it declares, what it uses and re-exports."""

    def __init__(self, name, file):
        self.name, self.file = name, file
        text = STRING.sub('""', COMMENT.sub("", file.read_text()))
        text = without_tests(text)
        self.children = re.findall(r"(?m)^\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+);", text)
        self.exports, self.uses = {}, []
        for visibility, tree in USE.findall(text):
            for path, alias in leaves(tree):
                if visibility:
                    self.exports[alias] = path
                else:
                    self.uses.append(path)
        body = USE.sub("", text)
        self.uses += [tuple(path.split("::")) for path in PATH.findall(body)]
        self.uses += [("self", name, "*") for name in set(LOCAL.findall(body)) & set(self.children)]


def without_tests(text):
    """Return ``text`` without modules and imports that only tests have."""
    while match := TESTS.search(text):
        end = match.end()
        if match[1] == "{":
            depth = 1
            while depth and end < len(text):
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
        text = text[: match.start()] + text[end:]
    return text


def leaves(tree, prefix=()):
    """Yield (path, name it gets) for each leaf of a tree of imports."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if not brace:
        path, _, alias = tree.partition(" as ")
        parts = (*prefix, *(part.strip() for part in path.split("::")))
        if parts[-1] == "self":
            parts = parts[:-1]
        yield parts, alias.strip() or parts[-1]
        return
    prefix = (*prefix, *(part.strip() for part in head.split("::") if part.strip()))
    depth, start, inside = 0, 0, rest.rstrip()[:-1]
    for place, char in enumerate(inside + ","):
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            if inside[start:place].strip():
                yield from leaves(inside[start:place], prefix)
            start = place + 1


def read(name, file, modules):
    """Read the module at ``file`` and those below it into ``modules``."""
    module = modules[name] = Module(name, file)
    folder = file.parent if file.stem in ("mod", "lib") else file.parent / file.stem
    for child in module.children:
        for candidate in (folder / f"{child}.rs", folder / child / "mod.rs"):
            if candidate.exists():
                read((*name, child), candidate, modules)


def origin(path, at, modules, depth=0):
    """Return the module that defines the last name of ``path``, seen from ``at``; None if it is foreign."""
    head, *rest = path
    if head == "crate":
        here = ()
    elif head == "super":
        here = at[:-1]
    elif head == "self" or head in modules[at].children:
        here, rest = at, (path if head != "self" else rest)
    else:
        return None
    for place, part in enumerate(rest):
        if part == "super":
            here = here[:-1]
        elif (*here, part) in modules:
            here = (*here, part)
        elif part in modules[here].exports and depth < 8:
            further = (*modules[here].exports[part], *rest[place + 1 :])
            return origin(further, here, modules, depth + 1)
        else:
            break
    return here


def circles(arrows):
    """Return the circles in ``arrows``, one for each module that closes one, as lists of modules."""
    state, found = {}, []

    def visit(node, trail):
        state[node] = "open"
        for other in sorted(arrows[node]):
            if state.get(other) == "open":
                found.append([*trail[trail.index(other) :], other])
            elif other not in state:
                visit(other, [*trail, other])
        state[node] = "done"

    for node in sorted(arrows):
        if node not in state:
            visit(node, [node])
    return found


def main():
    """Print each circle; the exit code is 1 if there is one in a crate that is not excepted."""
    excepted = sys.argv[sys.argv.index("--except") + 1 :] if "--except" in sys.argv else []
    failed = scanned = 0
    for crate in sorted(ROOT.glob("*/src/lib.rs")):
        if crate.parts[-3] in excepted:
            continue
        modules = {}
        read((), crate, modules)
        arrows = defaultdict(set)
        for name, module in modules.items():
            for path in module.uses:
                target = origin(path, name, modules)
                if target is not None and target != name:
                    arrows[name].add(target)
        scanned += len(modules)
        shown = lambda name: "::".join(name) or "(root)"  # noqa: E731
        if "--arrows" in sys.argv:
            for name, others in sorted(arrows.items()):
                print(crate.parts[-3], shown(name), "->", ", ".join(map(shown, sorted(others))))
        for found in circles({**{name: set() for name in modules}, **arrows}):
            failed += 1
            print(
                f"{crate.parts[-3]}: modules import each other in a circle: {' -> '.join(map(shown, found))}"
            )
    if scanned < 50:
        sys.exit(f"module circles: only {scanned} modules found below {ROOT}; the scan is broken")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
