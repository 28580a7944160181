"""Correct solutions with tests as in code benchmarks, which must all pass."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Solution:
    """Code and the tests that it passes."""

    name: str
    code: str
    tests: tuple[str, ...]


SOLUTIONS = [
    Solution(
        "a function with the name of one of Python's",
        dedent(
            """
            def sum(a, b):
                return len([each for each in range(min(a, b)) if 6 % (each + 1) == 0]) + 2
            """
        ),
        ("assert sum(10,15) == 6",),
    ),
    Solution(
        "exceptions of its own",
        dedent(
            """
            class E(Exception):
                def __init__(self, code): super().__init__('code %d'%code); self.code=code
            def f(): raise E(3)
            """
        ),
        (
            dedent(
                """
                try:
                    f()
                except E as e:
                    assert e.code==3 and str(e)=='code 3'
                else: assert 0
                """
            ),
        ),
    ),
    Solution(
        "a decorator",
        dedent(
            """
            import functools
            def d(f):
                @functools.wraps(f)
                def w(*a): return f(*a)+1
                return w
            """
        ),
        (
            dedent(
                """
                @d
                def h(x): return x*2
                assert h(3)==7 and h.__name__=='h'
                """
            ),
        ),
    ),
    Solution(
        "printed output",
        "def hi(): print('hi', end='')",
        (
            dedent(
                """
                import io, contextlib
                b=io.StringIO()
                with contextlib.redirect_stdout(b):
                    hi()
                assert b.getvalue()=='hi'
                """
            ),
        ),
    ),
    Solution(
        "standard input",
        "def m(): return int(input())+int(input())",
        ("import sys, io\nsys.stdin=io.StringIO('3\\n4\\n')\nassert m()==7",),
    ),
    Solution(
        "a patched input",
        "def m(): return input('?')",
        (
            dedent(
                """
                from unittest.mock import patch
                with patch('builtins.input', return_value='q'):
                    assert m()=='q'
                """
            ),
        ),
    ),
    Solution(
        "named tuples",
        dedent(
            """
            from collections import namedtuple
            P=namedtuple('P','x y')
            def f(): return P(1,2)
            """
        ),
        ("assert f()==(1,2) and f().x==1 and f()==P(1,2) and repr(f())=='P(x=1, y=2)'",),
    ),
    Solution(
        "enumerations",
        dedent(
            """
            from enum import Enum
            class C(Enum):
                R=1
                G=2
            def f(): return C.G
            """
        ),
        (
            "assert f()==C.G and f() is C.G and f().value==2 and C['R'] is C.R and list(C)==[C.R,C.G] and f()!=C.R and len({C.R,C.G,C.R})==2",
        ),
    ),
    Solution(
        "operators",
        dedent(
            """
            class V:
                def __init__(s,x,y): s.x,s.y=x,y
                def __add__(s,o): return V(s.x+o.x,s.y+o.y)
                def __mul__(s,k): return V(s.x*k,s.y*k)
                def __eq__(s,o): return isinstance(o,V) and (s.x,s.y)==(o.x,o.y)
                def __repr__(s): return f'V({s.x}, {s.y})'
            """
        ),
        (
            dedent(
                """
                assert V(1,2)+V(3,4)==V(4,6)
                assert V(1,2)*3==V(3,6)
                assert repr(V(1,2))=='V(1, 2)'
                assert V(1,2)!=V(2,2)
                assert V(1,2)!=3
                assert V(1,2)!=None
                """
            ),
        ),
    ),
    Solution(
        "coroutines",
        dedent(
            """
            import asyncio
            async def f(x):
                await asyncio.sleep(0)
                return x+1
            """
        ),
        (
            dedent(
                """
                import asyncio
                assert asyncio.run(f(1))==2
                """
            ),
        ),
    ),
    Solution(
        "a class that the tests define",
        dedent(
            """
            def total(node):
                t=0
                while node: t+=node.val; node=node.next
                return t
            def mk(): return ListNode(5)
            """
        ),
        (
            dedent(
                """
                class ListNode:
                    def __init__(s,val,next=None): s.val=val; s.next=next
                """
            ),
            dedent(
                """
                assert total(ListNode(1,ListNode(2)))==3
                assert mk().val==5
                """
            ),
        ),
    ),
    Solution(
        "data classes",
        dedent(
            """
            from dataclasses import dataclass, field
            @dataclass(order=True)
            class P:
                a:int
                b:list=field(default_factory=list)
            """
        ),
        (
            dedent(
                """
                assert P(1)==P(1) and P(1)<P(2) and P(1,[2]).b==[2]
                import copy
                p=P(1,[2]); q=copy.deepcopy(p); q.b.append(3)
                assert p.b==[2] and q.b==[2,3]
                assert sorted([P(2),P(1)])[0].a==1
                assert vars(p)=={'a':1,'b':[2]}
                """
            ),
        ),
    ),
    Solution(
        "global variables",
        dedent(
            """
            count=0
            def inc():
                global count
                count+=1
            """
        ),
        (
            dedent(
                """
                inc(); inc()
                assert count==2
                """
            ),
        ),
    ),
    Solution(
        "modules and types of the library",
        dedent(
            """
            import math
            from typing import List
            from collections import Counter, defaultdict
            def area(r): return math.pi*r*r
            def c(s): return Counter(s)
            def d():
                x=defaultdict(list); x['a'].append(1); return x
            """
        ),
        (
            dedent(
                """
                def t(x: List[int]) -> None: ...
                assert math.isclose(area(1), math.pi)
                assert c('aab')==Counter('aab')==dict(a=2,b=1)
                assert d()['q']==[]
                """
            ),
        ),
    ),
    Solution(
        "a check with a candidate and a helper of the answer",
        dedent(
            """
            import math
            def poly(xs, x):
                return sum([c*math.pow(x,i) for i,c in enumerate(xs)])
            def find_zero(xs): return -xs[0]/xs[1]
            """
        ),
        (
            dedent(
                """
                def check(candidate):
                    import copy, random
                    for _ in range(20):
                        co=[random.randint(1,9),random.randint(1,9)]
                        s=candidate(copy.deepcopy(co))
                        assert math.fabs(poly(co,s))<1e-4
                """
            ),
            "check(find_zero)",
        ),
    ),
    Solution(
        "a class derived from dict",
        dedent(
            """
            class D(dict):
                def __getattr__(s,k): return s[k]
            def f(): return D(a=1)
            """
        ),
        (
            "assert f()=={'a':1} and f().a==1 and dict(f())=={'a':1} and len(f())==1 and list(f())==['a'] and 'a' in f()",
        ),
    ),
    Solution(
        "a class derived from str",
        dedent(
            """
            class S(str): pass
            def f(): return S('abc')
            """
        ),
        ("assert f()=='abc' and f().upper()=='ABC' and isinstance(f(),str) and {f():1}['abc']==1",),
    ),
    Solution(
        "a main program",
        dedent(
            """
            def f(): return 1
            if __name__=='__main__':
                print(f())
            """
        ),
        ("assert f()==1",),
    ),
    Solution(
        "odd characters",
        "def f(): return '\\ud800', 'é\\n\\0'",
        ("assert f()==('\\ud800','é\\n\\0')",),
    ),
    Solution(
        "recursion",
        "def f(n): return 0 if n==0 else 1+f(n-1)",
        (
            dedent(
                """
                assert f(980)==980
                try:
                    f(5000)
                except RecursionError: pass
                else: assert 0
                """
            ),
        ),
    ),
    Solution(
        "test cases of unittest",
        "def f(x): return x",
        (
            dedent(
                """
                import unittest
                class T(unittest.TestCase):
                    def test_a(self): self.assertEqual(f(1),1); self.assertAlmostEqual(f(1.0),1.00000001)
                    def test_b(self):
                        with self.assertRaises(TypeError): f()
                """
            ),
            dedent(
                """
                r=unittest.TextTestRunner(stream=__import__('io').StringIO()).run(unittest.defaultTestLoader.loadTestsFromTestCase(T))
                assert r.wasSuccessful() and r.testsRun==2
                """
            ),
        ),
    ),
    Solution(
        "threads of the tests",
        "def f(x): return x*2",
        (
            dedent(
                """
                from concurrent.futures import ThreadPoolExecutor
                with ThreadPoolExecutor(4) as p: assert list(p.map(f, range(20)))==[2*i for i in range(20)]
                """
            ),
        ),
    ),
    Solution(
        "threads of the code",
        dedent(
            """
            from concurrent.futures import ThreadPoolExecutor
            def par(f,xs):
                with ThreadPoolExecutor(4) as p: return list(p.map(f,xs))
            """
        ),
        ("assert par(lambda x:x+1, range(20))==list(range(1,21))",),
    ),
    Solution(
        "objects of the tests, used as intended",
        dedent(
            """
            def change(node): node.value = 3; node.next = None; return node
            def use(callback): callback.level = 3; callback.log.write(4); return callback(5)
            class Empty:
                def __iter__(self): return self
                def __next__(self): raise StopIteration
            """
        ),
        (
            dedent(
                """
                from dataclasses import dataclass
                from unittest.mock import Mock
                @dataclass
                class Node:
                    value: int = 0
                    next: object = 1
                    def total(self): return self.value
                node = change(Node())
                assert node == Node(3, None) and node.total() == 3
                mock = Mock(return_value=7)
                assert use(mock) == 7 and mock.level == 3
                mock.assert_called_once_with(5)
                mock.log.write.assert_called_with(4)
                assert list(Empty()) == []
                try:
                    Empty().__next__()
                except StopIteration:
                    pass
                """
            ),
        ),
    ),
    Solution(
        "a redefined built-in name that the code needs",
        "def max(xs):\n    best = xs[0]\n    for x in xs:\n        best = x if x > best else best\n    return best\ndef top(xs): return max(xs)",
        ("assert top([1, 3, 2]) == max(3, 1)",),
    ),
    Solution(
        "comparisons with plain data inside the code",
        "class Size:\n    def __init__(s, n): s.n = n\n    def __eq__(s, o): return s.n == getattr(o, 'n', o)\n"
        "def same(n): return Size(n) == n and n in [Size(1), Size(n)]",
        ("assert same(3)",),
    ),
    Solution(
        "names that the code patches", "import builtins\nbuiltins.answer = 42", ("assert answer == 42",)
    ),
]
