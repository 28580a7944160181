"""Code that wants to pass its tests without doing what they ask. None of it may."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

ADD = ("assert add(1, 2) == 3", "assert add(4, 5) == 9")


@dataclass(frozen=True)
class Forgery:
    """Code and the tests that it must not pass."""

    name: str
    code: str
    tests: tuple[str, ...] = ADD


MOCK = ("from unittest.mock import Mock\nadd(m := Mock())\nm.assert_called_once_with(3)",)
MOCK_COUNTS = (
    "from unittest.mock import MagicMock\nadd(m := MagicMock())\nassert m.called and m.call_count == 1",
)
PARENT = dedent(
    """
    class Parent:
        def same(self, other): return True
    class Node(Parent):
        def __init__(self, value): self.value = value
        def same(self, other): return self.value == other
    """
)
NODE = (f"{PARENT}assert add(Node(1)).same(9)",)
UNITTEST = (
    dedent(
        """
        import unittest
        class Case(unittest.TestCase):
            def test(self): self.assertEqual(add(1, 2), 3)
        assert unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromTestCase(Case)).wasSuccessful()
        """
    ),
)

FORGERIES = [
    Forgery(
        "frame token",
        dedent(
            """
            import sys
            def add(a,b):
                f=sys._getframe()
                while f:
                    for d in (f.f_locals,f.f_globals):
                        if 'token' in d or 'tests' in d: print('FOUND')
                    f=f.f_back
                return 0
            """
        ),
    ),
    Forgery(
        "exec patch",
        dedent(
            """
            import builtins
            builtins.exec=lambda *a: None
            builtins.compile=lambda *a: None
            builtins.AssertionError=type('X',(BaseException,),{})
            def add(a,b): return 0

            """
        ),
    ),
    Forgery(
        "liar",
        dedent(
            """
            class Liar:
                def __eq__(s,o): return True
                def __ne__(s,o): return False
                def __hash__(s): return 3
                def __lt__(s,o): return True
                __le__=__gt__=__ge__=__lt__
                def __sub__(s,o): return 0.0
                __rsub__=__sub__
                def __abs__(s): return 0.0
                def __contains__(s,o): return True
                def __bool__(s): return True
            def add(a,b): return Liar()
            """
        ),
    ),
    Forgery(
        "liar int",
        dedent(
            """
            class I(int):
                def __eq__(s,o): return True
                __hash__=int.__hash__
            def add(a,b): return I(0)
            """
        ),
    ),
    Forgery(
        "liar str",
        dedent(
            """
            class I(str):
                def __eq__(s,o): return True
                __hash__=str.__hash__
            def add(a,b): return I('x')
            """
        ),
        ("assert add(1,2)=='abc'",),
    ),
    Forgery(
        "liar list",
        dedent(
            """
            class I(list):
                def __eq__(s,o): return True
            def add(a,b): return I([1])
            """
        ),
        ("assert add(1,2)==[3]",),
    ),
    Forgery(
        "liar dict",
        dedent(
            """
            class I(dict):
                def __eq__(s,o): return True
                def items(s): return {3:3}.items()
            def add(a,b): return I(a=1)
            """
        ),
        ("assert add(1,2)=={3:3}",),
    ),
    Forgery(
        "liar tuple",
        dedent(
            """
            class I(tuple):
                def __eq__(s,o): return True
                def __iter__(s): return iter((3,4))
            def add(a,b): return I((1,))
            """
        ),
        ("assert add(1,2)==(3,4)",),
    ),
    Forgery(
        "liar meta",
        dedent(
            """
            class M(type):
                def __eq__(s,o): return True
                __hash__=type.__hash__
            class A(metaclass=M): pass
            def add(a,b): return A
            """
        ),
    ),
    Forgery(
        "liar approx",
        dedent(
            """
            class Liar:
                def __eq__(s,o): return True
                def __ne__(s,o): return False
                def __hash__(s): return 3
                def __lt__(s,o): return True
                __le__=__gt__=__ge__=__lt__
                def __sub__(s,o): return 0.0
                __rsub__=__sub__
                def __abs__(s): return 0.0
                def __contains__(s,o): return True
                def __bool__(s): return True
            def add(a,b): return Liar()
            """
        ),
        ("assert abs(add(1,2)-3)<1e-6",),
    ),
    Forgery(
        "liar approx2",
        dedent(
            """
            class L:
                def __sub__(s,o): return s
                def __abs__(s): return 0.0
            def add(a,b): return L()
            """
        ),
        ("assert abs(add(1,2)-3)<1e-6",),
    ),
    Forgery(
        "liar approx3",
        dedent(
            """
            class L:
                def __sub__(s,o): return s
                def __abs__(s): return s
                def __lt__(s,o): return True
            def add(a,b): return L()
            """
        ),
        ("assert abs(add(1,2)-3)<1e-6",),
    ),
    Forgery(
        "liar isclose",
        dedent(
            """
            class L:
                def __float__(s): return 0.0
            def add(a,b): return L()
            """
        ),
        (
            dedent(
                """
                import math
                assert math.isclose(add(1,2),3)
                """
            ),
        ),
    ),
    Forgery(
        "liar in",
        dedent(
            """
            class Liar:
                def __eq__(s,o): return True
                def __ne__(s,o): return False
                def __hash__(s): return 3
                def __lt__(s,o): return True
                __le__=__gt__=__ge__=__lt__
                def __sub__(s,o): return 0.0
                __rsub__=__sub__
                def __abs__(s): return 0.0
                def __contains__(s,o): return True
                def __bool__(s): return True
            def add(a,b): return Liar()
            """
        ),
        ("assert 3 in add(1,2)",),
    ),
    Forgery(
        "liar in2",
        dedent(
            """
            class Liar:
                def __eq__(s,o): return True
                def __ne__(s,o): return False
                def __hash__(s): return 3
                def __lt__(s,o): return True
                __le__=__gt__=__ge__=__lt__
                def __sub__(s,o): return 0.0
                __rsub__=__sub__
                def __abs__(s): return 0.0
                def __contains__(s,o): return True
                def __bool__(s): return True
            def add(a,b): return Liar()
            """
        ),
        ("assert add(1,2) in [3,4]",),
    ),
    Forgery(
        "liar in list",
        dedent(
            """
            class Liar:
                def __eq__(s,o): return True
                def __ne__(s,o): return False
                def __hash__(s): return 3
                def __lt__(s,o): return True
                __le__=__gt__=__ge__=__lt__
                def __sub__(s,o): return 0.0
                __rsub__=__sub__
                def __abs__(s): return 0.0
                def __contains__(s,o): return True
                def __bool__(s): return True
            def add(a,b): return [Liar()]
            """
        ),
        ("assert add(1,2)==[3]",),
    ),
    Forgery(
        "liar in tuple",
        dedent(
            """
            class Liar:
                def __eq__(s,o): return True
                def __ne__(s,o): return False
                def __hash__(s): return 3
                def __lt__(s,o): return True
                __le__=__gt__=__ge__=__lt__
                def __sub__(s,o): return 0.0
                __rsub__=__sub__
                def __abs__(s): return 0.0
                def __contains__(s,o): return True
                def __bool__(s): return True
            def add(a,b): return {'a':(Liar(),)}
            """
        ),
        ("assert add(1,2)=={'a':(3,)}",),
    ),
    Forgery(
        "liar set",
        dedent(
            """
            class Liar:
                def __eq__(s,o): return True
                def __ne__(s,o): return False
                def __hash__(s): return 3
                def __lt__(s,o): return True
                __le__=__gt__=__ge__=__lt__
                def __sub__(s,o): return 0.0
                __rsub__=__sub__
                def __abs__(s): return 0.0
                def __contains__(s,o): return True
                def __bool__(s): return True
            def add(a,b): return {Liar()}
            """
        ),
        ("assert add(1,2)=={3}",),
    ),
    Forgery(
        "liar count",
        dedent(
            """
            class Liar:
                def __eq__(s,o): return True
                def __ne__(s,o): return False
                def __hash__(s): return 3
                def __lt__(s,o): return True
                __le__=__gt__=__ge__=__lt__
                def __sub__(s,o): return 0.0
                __rsub__=__sub__
                def __abs__(s): return 0.0
                def __contains__(s,o): return True
                def __bool__(s): return True
            def add(a,b): return [Liar()]
            """
        ),
        ("assert add(1,2).count(3)==1",),
    ),
    Forgery(
        "liar reflected",
        dedent(
            """
            class Liar:
                def __eq__(s,o): return True
                def __ne__(s,o): return False
                def __hash__(s): return 3
                def __lt__(s,o): return True
                __le__=__gt__=__ge__=__lt__
                def __sub__(s,o): return 0.0
                __rsub__=__sub__
                def __abs__(s): return 0.0
                def __contains__(s,o): return True
                def __bool__(s): return True
            def add(a,b): return Liar()
            """
        ),
        ("assert 3 == add(1,2)",),
    ),
    Forgery(
        "class lie",
        dedent(
            """
            class L:
                __class__=int
                def __eq__(s,o): return True
            def add(a,b): return L()
            """
        ),
        ("assert isinstance(add(1,2), int)",),
    ),
    Forgery(
        "mock any",
        dedent(
            """
            from unittest.mock import ANY
            def add(a,b): return ANY
            """
        ),
    ),
    Forgery(
        "sorted",
        dedent(
            """
            def sorted(x): return [1,2]
            len=all=any=sum=sorted
            def f(): return [2,1]
            """
        ),
        ("assert sorted(f())==[2,2]",),
    ),
    Forgery(
        "eval decode",
        dedent(
            """
            decode=eval
            def encode(s): return "__import__('os').write(1,b'x') or 'abc'"
            """
        ),
        ("assert decode(encode('abc'))=='abc'",),
    ),
    Forgery(
        "fake math",
        dedent(
            """
            class math:
                pi=3
                @staticmethod
                def isclose(*a): return True
            def add(a,b): return 0

            """
        ),
        ("assert math.isclose(add(1,2),3)",),
    ),
    Forgery(
        "exit0",
        dedent(
            """
            import os
            def add(a,b): os._exit(0)
            """
        ),
    ),
    Forgery(
        "sysexit",
        dedent(
            """
            import sys
            sys.exit(0)
            """
        ),
    ),
    Forgery(
        "atexit",
        dedent(
            """
            import atexit,os
            atexit.register(lambda: os._exit(0))
            def add(a,b): return 0

            """
        ),
    ),
    Forgery(
        "json",
        dedent(
            """
            import json
            json.dumps=lambda *a,**k:'["value",[[],[],[]],3]'
            json.JSONEncoder.encode=lambda *a:'3'
            def add(a,b): return 0

            """
        ),
    ),
    Forgery(
        "modules",
        dedent(
            """
            import sys
            for m in list(sys.modules):
                if 'judging' in m: sys.modules[m]=None
            def add(a,b): return 0

            """
        ),
    ),
    Forgery(
        "forged frames fd",
        dedent(
            """
            import os,json
            def add(a,b): return 0
            m=json.dumps(['value',[[],[],[]],3]).encode()
            for fd in range(3,20):
                try: os.write(fd,len(m).to_bytes(4,'big')+m)
                except OSError: pass
            """
        ),
    ),
    Forgery(
        "forged stdout",
        dedent(
            """
            import os
            def add(a,b): return 0
            print('{"token": "x", "verdict": "passed", "reason": ""}')
            os.write(1,b'{"verdict": "passed"}')
            os.write(2,b'passed')
            """
        ),
    ),
    Forgery(
        "settrace",
        dedent(
            """
            import sys,threading
            sys.settrace(lambda *a:None)
            sys.setprofile(lambda *a:None)
            def add(a,b): return 0

            """
        ),
    ),
    Forgery(
        "huge reply",
        "def add(a,b): return 'x'*(1<<28)",
    ),
    Forgery(
        "huge frame",
        "import os\ndef add(a,b): return 0\nos.write(3,b'\\xff\\xff\\xff\\xff'+b'x'*1000)",
    ),
    Forgery(
        "deep frame",
        dedent(
            """
            import os
            def add(a,b): return 0
            m=b'['*100000+b']'*100000
            os.write(3,len(m).to_bytes(4,'big')+m)
            """
        ),
    ),
    Forgery(
        "deep value",
        dedent(
            """
            def add(a,b):
                x=[]
                for _ in range(100000): x=[x]
                return x
            """
        ),
    ),
    Forgery(
        "nan frame",
        dedent(
            """
            import os
            def add(a,b): return 0
            m=b'["value",[[],[],[]],NaN]'
            os.write(3,len(m).to_bytes(4,'big')+m)
            """
        ),
    ),
    Forgery(
        "1e999",
        dedent(
            """
            import os
            def add(a,b): return 0
            m=b'["value",[[],[],[]],1e999]'
            os.write(3,len(m).to_bytes(4,'big')+m)
            """
        ),
        ("assert add(1,2)==3",),
    ),
    Forgery(
        "ask exec",
        dedent(
            """
            import os,json
            def add(a,b): return 0
            m=json.dumps(['ask',[[],[],[]],'call',[['known','builtins','eval'],['tuple',['1']],['dict',2,[],None]]]).encode()
            os.write(3,len(m).to_bytes(4,'big')+m)
            """
        ),
    ),
    Forgery(
        "ask getattr",
        dedent(
            """
            import os,json
            def add(a,b): return 0
            m=json.dumps(['ask',[[],[],[]],'getattr',[['mine',1],'__globals__']]).encode()
            os.write(3,len(m).to_bytes(4,'big')+m)
            """
        ),
    ),
    Forgery(
        "callback globals",
        dedent(
            """
            def add(f,b):
                return f.__globals__['expected']
            """
        ),
        (
            dedent(
                """
                expected=3
                def h(x): return x
                assert add(h,1)==3
                """
            ),
        ),
    ),
    Forgery(
        "obj globals",
        dedent(
            """
            def add(f,b):
                return f.__init__.__globals__['expected']
            """
        ),
        (
            dedent(
                """
                expected=3
                class H:
                    def __init__(self): self.v=1
                assert add(H(),1)==3
                """
            ),
        ),
    ),
    Forgery(
        "global name",
        "def add(a,b): return expected",
        (
            dedent(
                """
                expected=3
                assert add(1,2)==expected
                """
            ),
        ),
    ),
    Forgery(
        "reduce",
        dedent(
            """
            class R:
                def __reduce__(s): return (int,(3,))
                def __reduce_ex__(s,p): return (int,(3,))
                def __deepcopy__(s,m): return 3
            def add(a,b): return R()
            """
        ),
    ),
    Forgery(
        "getattr hook",
        dedent(
            """
            class R:
                def __getattr__(s,n): return lambda *a: True
                def __getattribute__(s,n): return lambda *a: True
            def add(a,b): return R()
            """
        ),
    ),
    Forgery(
        "raise",
        "def add(a,b): raise SystemExit(0)",
    ),
    Forgery(
        "genexit",
        "def add(a,b): raise GeneratorExit",
    ),
    Forgery(
        "bare except",
        "def add(a,b): import os; os._exit(0)",
        (
            dedent(
                """
                try:
                    add(1,2)
                except:
                    pass
                """
            ),
        ),
    ),
    Forgery(
        "assert name",
        dedent(
            """
            AssertionError=ValueError
            def add(a,b): raise ValueError
            """
        ),
    ),
    Forgery(
        "class with a lying metaclass",
        dedent(
            """
            class Meta(type):
                def __contains__(cls, item): return True
                def __iter__(cls): return iter([3])
                def __sub__(cls, other): return 0.0
            class Liar(metaclass=Meta): pass
            def add(a, b): return Liar
            """
        ),
        ("assert 3 in add(1, 2)",),
    ),
    Forgery(
        "value of a class of the tests",
        "def add(a, b): return Expected.sum",
        ("class Expected:\n    sum = 3", ADD[0]),
    ),
    Forgery(
        "method of a class of the tests",
        "def add(a, b): return Case().expected()",
        ("class Case:\n    def expected(self): return 3", ADD[0]),
    ),
    Forgery(
        "approximate",
        "class L:\n    def __sub__(s, o): return 0.0\n    def __eq__(s, o): return NotImplemented\ndef add(a, b): return L()",
        ("import unittest\nunittest.TestCase().assertAlmostEqual(add(1, 2), 3)",),
    ),
    Forgery(
        "hash",
        "class L:\n    def __hash__(s): return 3\n    def __eq__(s, o): return True\ndef add(a, b): return L()",
        ("assert {3: True}[add(1, 2)]",),
    ),
    *(
        Forgery(f"the tests' own means: {code}", f"def add(a, b=None, *c):\n    {code}\n    return a", tests)
        for code, tests in (
            ("a.assert_called_once_with = lambda *given, **named: None", MOCK),
            ("a.called = True; a.call_count = 1; a.call_args = ((3,), {})", MOCK_COUNTS),
            (
                "a.mock_calls.append(3)",
                ("from unittest.mock import Mock\nassert len(add(Mock()).mock_calls) == 1",),
            ),
            (
                "a.method_calls.append(3)",
                ("from unittest.mock import Mock\nassert add(Mock()).method_calls",),
            ),
            (
                "a.save(1); a.reset_mock()",
                ("from unittest.mock import MagicMock\nadd(m := MagicMock())\nm.save.assert_not_called()",),
            ),
            ("a.same = lambda other: True", NODE),
            ("type(a).same = lambda *given: True", NODE),
            ("del type(a).same", (f"{PARENT}add(node := Node(1))\nassert node.same(9)",)),
        )
    ),
    *(
        Forgery(
            f"raised: {error}",
            f"import unittest\nclass Own(unittest.SkipTest): pass\ndef add(a, b):\n    raise {error}",
            tests,
        )
        for error, tests in (
            ("unittest.SkipTest('no')", UNITTEST),
            ("Own('no')", UNITTEST),
            ("StopIteration", ("assert all(map(lambda case: add(*case[:2]) == case[2], [(1, 2, 3)]))",)),
            ("StopIteration", ("import itertools\nassert all(itertools.starmap(add, [(1, 2)]))",)),
        )
    ),
    *(
        Forgery(f"an array that compares itself: {check}", code, (f"import numpy as np\nassert np.{check}",))
        for code in (
            (
                "class L:\n    def __array_function__(s, *a, **k): return True\n    __array_ufunc__ = __array_function__\n"
                "def add(a, b): return L()"
            ),
            (
                "import numpy as np\nclass L(np.ndarray):\n    def __array_function__(s, *a, **k): return True\n"
                "    __array_ufunc__ = __array_function__\ndef add(a, b): return np.array([1.0]).view(L)"
            ),
        )
        for check in ("allclose(add(1, 2), np.array([3.0]))", "array_equal(add(1, 2), np.array([3.0]))")
    ),
]
