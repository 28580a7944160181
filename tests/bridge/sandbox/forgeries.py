"""Incorrect code that tries to pass its tests and must fail."""

from __future__ import annotations

from dataclasses import dataclass

ADD = ("assert add(1, 2) == 3", "assert add(4, 5) == 9")


@dataclass(frozen=True)
class Forgery:
    """Code and the tests that it must not pass."""

    name: str
    code: str
    tests: tuple[str, ...] = ADD


WRONG = "def add(a, b): return 0\n"
LIAR = """
class Liar:
    def __eq__(s, o): return True
    def __ne__(s, o): return False
    def __hash__(s): return 3
    def __lt__(s, o): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __sub__(s, o): return 0.0
    __rsub__ = __sub__
    def __abs__(s): return 0.0
    def __bool__(s): return True
"""
UNITTEST = (
    """
import unittest
class Case(unittest.TestCase):
    def test(self): self.assertEqual(add(1, 2), 3)
assert unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(Case)).wasSuccessful()
""",
)

ENDS = {
    "os._exit(0) in the function": "import os\ndef add(a, b): os._exit(0)",
    "sys.exit(0) while the code loads": "import sys\nsys.exit(0)",
    "SystemExit in the function": "def add(a, b): raise SystemExit(0)",
    "GeneratorExit in the function": "def add(a, b): raise GeneratorExit",
    "exit by atexit": f"{WRONG}import atexit, os\natexit.register(lambda: os._exit(0))",
    "exit by a thread": f"import os, threading, time\n{WRONG}threading.Thread(target=os._exit, args=(0,)).start()\ntime.sleep(5)",
    "exit by a signal": f"import os, signal\n{WRONG}signal.signal(15, lambda *a: os._exit(0))\nos.kill(os.getpid(), 15)",
    "exit by exec": "import os\ndef add(a, b): os.execv('/bin/true', ['true'])",
    "exit with printed verdicts": "import os\ndef add(a, b):\n    print('passed \\n' * 9, flush=True)\n    os._exit(0)",
    "a closed output": f"import os\nos.closerange(0, 64)\n{WRONG}",
}
PATCHES = {
    "exec and compile": "import builtins\nbuiltins.exec = builtins.compile = lambda *a, **k: None\n" + WRONG,
    "the exception of assert": (
        "import builtins\nbuiltins.AssertionError = type('X', (BaseException,), {})\nAssertionError = ValueError\n"
        "def add(a, b): raise ValueError"
    ),
    "trace functions": f"import sys, threading\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)\n{WRONG}",
    "json": f"import json\njson.dumps = json.JSONEncoder.encode = lambda *a, **k: 'passed'\n{WRONG}",
    "os.write and os.getpid": f"import os\nos.write = os.getpid = lambda *a: 0\n{WRONG}",
    "traceback": f"import traceback\ntraceback.extract_tb = lambda *a: 1 / 0\n{WRONG}",
}
READS = {
    "random texts of the process": """
import gc, sys
def texts(value):
    if isinstance(value, dict): value = list(value.values())
    return [x for x in value if isinstance(x, str) and len(x) == 32] if isinstance(value, (list, tuple)) else []
def add(a, b):
    frame, values = sys._getframe(), gc.get_objects()
    while frame:
        values += [frame.f_locals, frame.f_globals]
        frame = frame.f_back
    for text in [text for value in values for text in texts(value)]: print(text, 'passed ')
    return 0
""",
    "standard input": f"import os, sys\nprint(sys.stdin.read() + os.read(0, 99).decode(), 'passed ')\n{WRONG}",
    "every descriptor": WRONG
    + """
import os
for descriptor in range(64):
    try: os.write(descriptor, b'\\npassed \\n')
    except OSError: pass
""",
}
LIES = {
    "object": "def add(a, b): return Liar()",
    "int": "class I(int):\n    __eq__ = lambda s, o: True\n    __hash__ = int.__hash__\ndef add(a, b): return I(0)",
    "class": (
        "class M(type):\n    def __eq__(s, o): return True\n    __hash__ = type.__hash__\nclass A(metaclass=M): pass\n"
        "def add(a, b): return A"
    ),
    "class of a function": "def add(a, b):\n    class L:\n        def __eq__(s, o): return True\n    return L()",
    "reduce": "class R:\n    def __reduce__(s): return (int, (3,))\n    def __deepcopy__(s, m): return 3\ndef add(a, b): return R()",
    "getattr": "class R:\n    def __getattribute__(s, n): return lambda *a: True\ndef add(a, b): return R()",
}
LIES_IN_TESTS = {
    "str": (
        "class I(str):\n    def __eq__(s, o): return True\n    __hash__ = str.__hash__",
        "I('x')",
        "{} == 'abc'",
    ),
    "list": ("class I(list):\n    def __eq__(s, o): return True", "I([1])", "{} == [3]"),
    "dict": ("class I(dict):\n    def __eq__(s, o): return True", "I(a=1)", "{} == {{3: 3}}"),
    "tuple": ("class I(tuple):\n    def __eq__(s, o): return True", "I((1,))", "{} == (3, 4)"),
    "approximate": (LIAR, "Liar()", "abs({} - 3) < 1e-6"),
    "approximate, less": (
        "class L:\n    def __sub__(s, o): return s\n    __abs__ = lambda s: s\n    def __lt__(s, o): return True",
        "L()",
        "abs({} - 3) < 1e-6",
    ),
    "approximate, unittest": (
        "class L:\n    def __sub__(s, o): return 0.0\n    def __eq__(s, o): return NotImplemented",
        "L()",
        "not __import__('unittest').TestCase().assertAlmostEqual({}, 3)",
    ),
    "isclose": ("class L:\n    def __float__(s): return 0.0", "L()", "__import__('math').isclose({}, 3)"),
    "one of a list": (LIAR, "Liar()", "{} in [3, 4]"),
    "in a list": (LIAR, "[Liar()]", "{} == [3]"),
    "in a tuple": (LIAR, "{'a': (Liar(),)}", "{} == {{'a': (3,)}}"),
    "in a set": (LIAR, "{Liar()}", "{} == {{3}}"),
    "counted": (LIAR, "[Liar()]", "{}.count(3) == 1"),
    "reflected": (LIAR, "Liar()", "3 == {}"),
    "hashed": (LIAR, "Liar()", "{{3: True}}[{}]"),
}

FORGERIES = [
    *(Forgery(f"end: {name}", code) for name, code in ENDS.items()),
    Forgery(
        "end: bare except",
        "def add(a, b): import os; os._exit(0)",
        ("try:\n    add(1, 2)\nexcept:\n    pass",),
    ),
    Forgery(
        "end: a copy of the process that passes",
        "import os\ndef add(a, b): return 3 if os.fork() == 0 else os.wait()[0]",
        ADD[:1],
    ),
    Forgery("end: unittest", "def add(a, b): raise SystemExit(0)", UNITTEST),
    *(Forgery(f"patch: {name}", code) for name, code in PATCHES.items()),
    Forgery(
        "patch: unittest",
        "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\n"
        f"unittest.TestResult.wasSuccessful = lambda *a: True\n{WRONG}",
        UNITTEST,
    ),
    Forgery(
        "patch: a module of the tests",
        f"import math\nmath.isclose = lambda *a: True\n{WRONG}",
        ("import math\nassert math.isclose(add(1, 2), 3)",),
    ),
    Forgery(
        "patch: names of Python",
        "def sorted(x): return [1, 2]\nlen = all = any = sum = sorted\ndef f(): return [2, 1]",
        ("assert sorted(f()) == [2, 2]",),
    ),
    Forgery(
        "patch: abs",
        f"abs = lambda x: 0\n{WRONG}",
        ("def check(candidate):\n    assert abs(candidate(1, 2) - 3) < 1e-6", "check(add)"),
    ),
    Forgery(
        "patch: __builtins__",
        f"__builtins__ = {{'__build_class__': __build_class__, 'abs': lambda x: 0}}\n{WRONG}",
        ("def check(candidate):\n    assert abs(candidate(1, 2) - 3) < 1e-6", "check(add)"),
    ),
    Forgery(
        "patch: two names of Python",
        "def abs(x): return 0\ndef sum(*a): return 0",
        ("assert abs(sum(1, 2) - 3) < 1e-6",),
    ),
    *(Forgery(f"read: {name}", code) for name, code in READS.items()),
    *(Forgery(f"lie: {name}", LIAR + code) for name, code in LIES.items()),
    *(
        Forgery(
            f"lie: {name}", f"{code}\ndef add(a, b): return {value}", (f"assert {test.format('add(1, 2)')}",)
        )
        for name, (code, value, test) in LIES_IN_TESTS.items()
    ),
    Forgery(
        "eval of what was encoded",
        "decode = eval\ndef encode(s): return \"__import__('os').write(1, b'passed') or 'abc'\"",
        ("assert decode(encode('abc')) == 'abc'",),
    ),
]
