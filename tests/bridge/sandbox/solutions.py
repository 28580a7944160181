"""Solutions and tests as benchmarks of code have them: all of these are right, and pass."""

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
        "values of every plain kind",
        "def f(x): return (x, [x], {x: {x}}, 1+2j, b'a', float('inf'), 10**50, None, True)",
        ("assert f(1) == (1,[1],{1:{1}},1+2j,b'a',float('inf'),10**50,None,True)",),
    ),
    Solution(
        "an argument changed in place",
        "def s(l): l.sort()",
        (
            dedent(
                """
                x=[3,1,2]
                s(x)
                assert x==[1,2,3]
                """
            ),
        ),
    ),
    Solution(
        "an argument given back",
        "def s(l): l.sort(); return l",
        (
            dedent(
                """
                x=[3,1,2]
                assert s(x) is x
                """
            ),
        ),
    ),
    Solution(
        "a class with methods and state",
        dedent(
            """
            class Stack:
                def __init__(self): self.items=[]
                def push(self,x): self.items.append(x)
                def pop(self): return self.items.pop()
                def __len__(self): return len(self.items)

            """
        ),
        (
            dedent(
                """
                s=Stack()
                s.push(1); s.push(2)
                assert len(s)==2 and s.items==[1,2]
                assert s.pop()==2
                s.items.append(5)
                assert s.pop()==5
                assert isinstance(s, Stack) and type(s).__name__=='Stack'
                """
            ),
        ),
    ),
    Solution(
        "exceptions of Python's",
        dedent(
            """
            def f(x):
                if x<0: raise ValueError('neg')
                return x
            """
        ),
        (
            dedent(
                """
                try:
                    f(-1)
                    assert False
                except ValueError as e:
                    assert str(e)=='neg' and e.args==('neg',)
                """
            ),
        ),
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
        "generators",
        dedent(
            """
            def g(n):
                for i in range(n): yield i
            """
        ),
        (
            dedent(
                """
                assert list(g(3))==[0,1,2]
                it=g(5); assert next(it)==0 and next(it)==1
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
        "a cached function",
        dedent(
            """
            from functools import lru_cache
            @lru_cache(None)
            def fib(n): return n if n<2 else fib(n-1)+fib(n-2)
            """
        ),
        (
            dedent(
                """
                assert fib(30)==832040
                assert fib.cache_info().hits>0
                """
            ),
        ),
    ),
    Solution(
        "nodes that tests tie together",
        dedent(
            """
            class Node:
                def __init__(s,v): s.v=v; s.left=None; s.right=None
            def h(n): return 0 if n is None else 1+max(h(n.left),h(n.right))
            """
        ),
        (
            dedent(
                """
                root=Node(1)
                root.left=Node(2)
                root.left.left=Node(3)
                """
            ),
            "assert h(root)==3 and root.left.left.v==3 and root.right is None",
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
        "context managers",
        dedent(
            """
            from contextlib import contextmanager
            log=[]
            @contextmanager
            def c():
                log.append('in')
                yield 5
                log.append('out')
            class M:
                def __enter__(s): return s
                def __exit__(s,t,v,tb): s.t=t; return t is ValueError
            """
        ),
        (
            dedent(
                """
                with c() as x:
                    assert x==5 and log==['in']
                assert log==['in','out']
                m=M()
                with m: raise ValueError(3)
                assert m.t is ValueError
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
        "functions as arguments",
        dedent(
            """
            def app(f, xs): return [f(x) for x in xs]
            def curry(f): return lambda a: lambda b: f(a,b)
            """
        ),
        (
            dedent(
                """
                assert app(lambda x:x+1,[1,2])==[2,3]
                assert curry(lambda a,b:a+b)(1)(2)==3
                assert app(len,['a','bb'])==[1,2]
                assert app(str,[1])==['1']
                """
            ),
        ),
    ),
    Solution(
        "iterators as arguments",
        dedent(
            """
            def first(it): return next(iter(it))
            def tot(it): return sum(it)
            """
        ),
        (
            dedent(
                """
                assert first(iter([4,5]))==4
                assert tot(x for x in [1,2,3])==6
                assert tot(range(4))==6
                assert tot({1:2,3:4}.values())==6
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
        "sets, sorting, membership",
        "def f(x): return [3,1,2,1]",
        (
            dedent(
                """
                assert set(f(0))=={1,2,3}
                assert sorted(f(0))==[1,1,2,3]
                assert 3 in f(0)
                assert isinstance(f(0), list)
                """
            ),
        ),
    ),
    Solution(
        "a default argument that is kept",
        dedent(
            """
            def f(x, acc=[]):
                acc.append(x)
                return acc
            """
        ),
        (
            dedent(
                """
                a=f(1)
                b=f(2)
                assert a is b and a==[1,2]
                """
            ),
        ),
    ),
    Solution(
        "attributes and methods of classes",
        dedent(
            """
            class A:
                n=0
                @staticmethod
                def s(x): return x
                @classmethod
                def c(cls): cls.n+=1; return cls.n
                @property
                def p(self): return 7
                @p.setter
                def p(self, v): raise AttributeError('no')
            """
        ),
        (
            dedent(
                """
                assert A.s(3)==3 and A.c()==1 and A.n==1 and A().p==7
                A.n=5
                assert A.c()==6
                try:
                    A().p=3
                except AttributeError: pass
                else: assert 0
                assert not hasattr(A(),'zz') and hasattr(A,'s')
                """
            ),
        ),
    ),
    Solution(
        "abstract classes",
        dedent(
            """
            from abc import ABC, abstractmethod
            class S(ABC):
                @abstractmethod
                def area(self): ...
            class Q(S):
                def __init__(s,a): s.a=a
                def area(s): return s.a**2
            """
        ),
        (
            dedent(
                """
                assert issubclass(Q,S) and isinstance(Q(2),S) and Q(2).area()==4
                try:
                    S()
                except TypeError: pass
                else: assert 0
                """
            ),
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
        "exceptions of a library",
        dedent(
            """
            import json
            def p(s): return json.loads(s)
            """
        ),
        (
            dedent(
                """
                import json
                try:
                    p('{')
                except json.JSONDecodeError: pass
                else: assert 0
                assert p('[1, 2.5, null]')==[1,2.5,None]
                """
            ),
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
        "files of both",
        dedent(
            """
            def lines(p):
                with open(p) as f: return len(f.readlines())
            def w(p):
                open(p,'w').write('x')
            """
        ),
        (
            "open('/tmp/a.txt','w').write('1\\n2\\n')\nassert lines('/tmp/a.txt')==2\nw('/tmp/b.txt')\nassert open('/tmp/b.txt').read()=='x'",
        ),
    ),
    Solution(
        "iterators of its own",
        dedent(
            """
            class It:
                def __init__(s,n): s.n=n
                def __iter__(s): return s
                def __next__(s):
                    if not s.n: raise StopIteration
                    s.n-=1
                    return s.n
            class Seq:
                def __getitem__(s,i):
                    if i>2: raise IndexError
                    return i
            """
        ),
        (
            dedent(
                """
                assert list(It(3))==[2,1,0]
                assert list(Seq())==[0,1,2]
                assert sum(It(4))==6
                """
            ),
        ),
    ),
    Solution(
        "items of its own",
        dedent(
            """
            class L:
                def __init__(s): s.d={}
                def __contains__(s,k): return k in s.d
                def __setitem__(s,k,v): s.d[k]=v
                def __getitem__(s,k): return s.d[k]
                def __delitem__(s,k): del s.d[k]
            """
        ),
        (
            dedent(
                """
                l=L()
                l['a']=1
                assert 'a' in l and l['a']==1
                del l['a']
                assert 'a' not in l
                """
            ),
        ),
    ),
    Solution(
        "dates, decimals, fractions",
        dedent(
            """
            from datetime import datetime, date, timedelta
            from decimal import Decimal
            from fractions import Fraction
            def f(d): return d+timedelta(days=1)
            def g(): return Decimal('1.10'), Fraction(1,3)
            """
        ),
        (
            dedent(
                """
                from datetime import date, datetime
                from decimal import Decimal
                from fractions import Fraction
                assert f(date(2020,1,1))==date(2020,1,2)
                assert g()==(Decimal('1.1'),Fraction(1,3))
                """
            ),
        ),
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
        "closures",
        dedent(
            """
            def make():
                n=0
                def c():
                    nonlocal n
                    n+=1
                    return n
                return c
            """
        ),
        (
            dedent(
                """
                c=make()
                assert c()==1 and c()==2
                d=make()
                assert d()==1 and callable(d)
                """
            ),
        ),
    ),
    Solution(
        "all kinds of parameters",
        "def f(a,/,b=2,*args,c,**kw): return (a,b,args,c,kw)",
        (
            dedent(
                """
                assert f(1,c=3,z=4)==(1,2,(),3,{'z':4})
                assert f.__name__=='f'
                """
            ),
        ),
    ),
    Solution(
        "lists in lists, changed",
        dedent(
            """
            def f(m):
                for r in m: r.reverse()
                m.append([0])
            """
        ),
        (
            dedent(
                """
                m=[[1,2],[3]]
                row=m[0]
                f(m)
                assert m==[[2,1],[3],[0]] and row==[2,1] and row is m[0]
                """
            ),
        ),
    ),
    Solution(
        "odd characters",
        "def f(): return '\\ud800', 'é\\n\\0'",
        ("assert f()==('\\ud800','é\\n\\0')",),
    ),
    Solution(
        "deep nesting",
        dedent(
            """
            def f(n):
                x=[]
                for _ in range(n): x=[x]
                return x
            """
        ),
        (
            dedent(
                """
                x=f(1000)
                d=0
                while x: x=x[0]; d+=1
                assert d==1000
                """
            ),
        ),
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
        "asynchronous generators",
        dedent(
            """
            class A:
                async def __aenter__(s): return 1
                async def __aexit__(s,*a): return False
            async def ag():
                yield 1
                yield 2
            """
        ),
        (
            dedent(
                """
                import asyncio
                async def m():
                    async with A() as x: assert x==1
                    return [v async for v in ag()]
                assert asyncio.run(m())==[1,2]
                """
            ),
        ),
    ),
    Solution(
        "what belongs to the tests is used as it is meant",
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
]
