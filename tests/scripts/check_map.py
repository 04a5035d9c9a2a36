#!/usr/bin/env python3
"""check_map.py: checks statements of ARCHITECTURE.md against the source. Prints each that is false, and exits 1 if there are any.

    tests/scripts/check_map.py [PAGE]        another page instead of ARCHITECTURE.md
"""
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def tracked():
    try:
        return subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True,
                              check=True).stdout.split("\n")
    except (OSError, subprocess.CalledProcessError):  # a tarball
        return [os.path.relpath(os.path.join(folder, name)) for folder, _, names in os.walk(".") for name in names]


PAGE = read(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "ARCHITECTURE.md"))
os.chdir(ROOT)
FILES = [path for path in tracked() if os.path.isfile(path)]
CODE = {path: re.sub(r"/\*.*?\*/|//[^\n]*", "", read(path), flags=re.S) for path in FILES if re.search(r"\.(c|h|cu)$", path)}


def code(below, outside="-"):
    return {path: text for path, text in CODE.items() if path.startswith(below) and not path.startswith(outside)}


def uses(pattern, below, outside="-"):
    return [path for path, text in code(below, outside).items() if re.search(pattern, text)]


def named_paths():
    """Paths in the page, as they are or below src; <name> and * stand for anything."""
    for text in re.findall(r"`([^`\n]+)`|\]\(([^)#\n]+)", PAGE):
        yield from re.findall(r"[\w<>*./-]+\.(?:[chu]+|cu|cpp|md|py|sh|t|txt|cmake)\b", " ".join(text))
    for line in re.findall(r"^    \w+ .*$", PAGE, re.M):
        yield from (path for path in re.findall(r"[\w<>/*]+\.(?:[ch]|md)\b", line))


def exists(path):
    pattern = re.escape(path).replace("<name>", r"\w+").replace("<family>", r"\w+").replace(r"\*", r"\w*")
    return any(re.search(rf"(^|/){pattern}$", file) for file in FILES)


def modules_of_script():
    return re.search(r'^modules="([^"]+)"', read("scripts/check_modules.sh"), re.M)[1].split()


def modules_of_page():
    return [name[4:] for name in re.findall(r"^\| `([^`]+)` \|", PAGE, re.M) if name.startswith("src/")]


def ops_with_examples():
    """Ops that have a gradient have an example."""
    rows = re.findall(r"const lp_op lp_op_\w+ = \{(.*?)\};", "".join(code("src/graph").values()), re.S)
    return bool(rows) and all(".example" in row for row in rows if ".gradient" in row)


def opens_with_comment(path):
    return read(path).lstrip().startswith(("/*", "//"))


PUBLIC_ONLY = r'#include "(base|data|graph|model|train)/'
MODEL_SETTINGS = r"\b(sasrec|caser|rmtpp|timejoint)_settings\b"
CLOCK = r"\btime\(NULL\)|\bstrftime\(|CLOCK_REALTIME"
ALLOCATES = r"(?<![\w.>])(malloc|calloc|realloc|aligned_alloc)\("


def has(path, pattern):
    return re.search(pattern, read(path)) is not None


def missing_rows(below, row, table, prefix):
    """Files below a path that define a row which the table does not have."""
    return [path for path, text in code(below).items()
            if not all(prefix + name in CODE[table] for name in re.findall(row, text))]


# Each with a function that returns counterexamples, or True if the statement is false.
STATEMENTS = [
    ("every file that the page names exists", lambda: [path for path in named_paths() if not exists(path)]),
    ("the table of modules is that of check_modules.sh", lambda: modules_of_page() != modules_of_script()),
    ("every module is a folder", lambda: [name for name in modules_of_page() if not os.path.isdir("src/" + name)]),
    ("each source file opens with a comment",
     lambda: [path for path in CODE if re.match("src/|cli/|server/|include/", path) and not opens_with_comment(path)]),
    ("files have at most 700 lines", lambda: not has("scripts/check_modules.sh", "max_lines=700")),
    ("no code outside the GPU plugin switches over ops", lambda: uses(r"case LP_OP_\w+", "src/", "src/backend/cuda/")),
    ("inside it, cuda_row_steps.h does", lambda: not has("src/backend/cuda/cuda_row_steps.h", "case LP_OP_ADD")),
    ("code outside src/backend calls no function of CUDA", lambda: uses(r"\bcu(da|blas)?[A-Z]\w+\(", "src/", "src/backend/")),
    ("an op with a gradient has an example", lambda: not ops_with_examples()),
    ("data needs neither graph nor model", lambda: uses(r'#include "(graph|model|nn|backend)/', "src/data/")),
    ("the tool and the server use the public headers alone", lambda: uses(PUBLIC_ONLY, "cli/") + uses(PUBLIC_ONLY, "server/")),
    ("no code outside a model's file reads its settings",
     lambda: [path for path in uses(MODEL_SETTINGS, "src/") if not path.startswith("src/model/model_")]),
    ("baselines are rows of the model table", lambda: len(uses(r"\.predict = ", "src/model/")) < 4),
    ("the library takes memory in base/memory.c alone",
     lambda: [path for path in uses(ALLOCATES, "src/", "src/backend/cuda/") if path != "src/base/memory.c"]),
    ("files are synced and renamed", lambda: not (has("src/base/file.c", r"\bfsync\(") and has("src/base/file.c", r"\brename\("))),
    ("a test counts the allocations of steps", lambda: not has("tests/unit/test_allocations.c", "training_allocates_nothing")),
    ("an option is a row of base/option.h", lambda: not has("src/base/option.h", r"typedef struct lp_option\b")),
    ("lapse_train_option walks the options", lambda: not uses(r"bool lapse_train_option\(int index", "include/")),
    ("the shards are an option of the run", lambda: not has("src/train/train_options.c", r'\.name = "shards"')),
    ("models and checkpoints store no clock time", lambda: uses(CLOCK, "src/model/") + uses(CLOCK, "src/train/")),
    ("laws are rows of one table", lambda: len(re.findall(r"const lp_time_law lp_law_\w+ = \{", read("src/model/next_time.c"))) < 3),
    ("each model has a row in model.c",
     lambda: missing_rows("src/model/model_", r"const lp_model_row lp_model_(\w+) = ", "src/model/model.c", "&lp_model_")),
    ("each encoding has a row in encoding.c",
     lambda: missing_rows("src/nn/encoding_", r"const lp_encoding lp_encoding_(\w+) = ", "src/nn/encoding.c", "&lp_encoding_")),
    ("each verb has a row in cli/main.c",
     lambda: missing_rows("cli/verb_", r"const cli_verb cli_verb_(\w+) = ", "cli/main.c", "cli_verb_")),
    ("a preset of simulate is a row of simulate.c", lambda: not has("src/simulate/simulate.c", '"shop", lp_preset_shop')),
    ("a split rule is a row of split.c", lambda: not has("src/data/dataset/split.c", "static const lp_split_rule rules")),
    ("a metric has its value in evaluator_metrics.c",
     lambda: not has("src/evaluate/evaluator_metrics.c", r"metric_values\[LP_METRIC_COUNT\]")),
    ("a loss of a recommender is a row of loss.h", lambda: not has("src/formula/loss.h", "#define LP_SAMPLED_LOSSES")),
    ("a route of the server is a row of route_table.c", lambda: not has("server/route_table.c", r"srv_route srv_routes\[\]")),
    ("invariants are asserted, at least 60",
     lambda: sum(len(re.findall(r"\bLP_ASSERT\(", text)) for path, text in code("src/").items() if path != "src/base/assert.h") < 60),
]


def main():
    false = 0
    for statement, counterexamples in STATEMENTS:
        found = counterexamples()
        if found:
            false += 1
            print(f"false: {statement}{': ' + ', '.join(sorted(set(found))) if isinstance(found, list) else ''}")
    print(f"{len(STATEMENTS)} statements checked, {false} false")
    return 1 if false else 0


if __name__ == "__main__":
    sys.exit(main())
