"""Hostile texts that cause damage if they are used as more than text."""

from __future__ import annotations

ALERT = "alert(document.domain)"

MARKUP = (
    f"<script>{ALERT}</script>",
    f"</script><script>{ALERT}</script>",
    f"</SCRIPT ><script>{ALERT}</script>",
    f"--></script><script>{ALERT}</script>",
    f"<!--<script>{ALERT}//-->",
    f"<img src=x onerror={ALERT}>",
    f'"><img src=x onerror="{ALERT}">',
    f"'><svg onload='{ALERT}'>",
    f"<svg><script>{ALERT}</script></svg>",
    f"<svg><animate onbegin={ALERT} attributeName=x dur=1s>",
    f"<svg><a xlink:href='javascript:{ALERT}'><text y=20>x</text></a></svg>",
    f"<math><mtext></mtext><script>{ALERT}</script></math>",
    f"<body onload={ALERT}>",
    f"<details open ontoggle={ALERT}>",
    f"<video><source onerror={ALERT}></video>",
    f"<iframe srcdoc='<script>parent.{ALERT}</script>'></iframe>",
    f"<iframe src=javascript:{ALERT}></iframe>",
    f"<object data='data:text/html,<script>{ALERT}</script>'></object>",
    f"<embed src='data:text/html,<script>{ALERT}</script>'>",
    f"<form action=javascript:{ALERT}><button>x</button></form>",
    f"<input autofocus onfocus={ALERT}>",
    f"<select autofocus onfocus={ALERT}>",
    f"<marquee onstart={ALERT}>x</marquee>",
    f"<noscript><p title='</noscript><img src=x onerror={ALERT}>'>",
    f"<textarea></textarea><img src=x onerror={ALERT}>",
    f"<template><img src=x onerror={ALERT}></template>",
    "<base href='http://evil.example/'>",
    "<meta http-equiv=refresh content='0;url=http://evil.example/'>",
    "<link rel=stylesheet href='http://evil.example/a.css'>",
    "<style>@import 'http://evil.example/a.css'; *{display:none}</style>",
    "<p style='background:url(http://evil.example/a.png)'>x</p>",
    "<img src='http://evil.example/a.png'>",
    f"<a href='javascript:{ALERT}'>x</a>",
    f"<x contenteditable onblur={ALERT}>",
)
LINKS = (
    f"javascript:{ALERT}",
    f"[x](javascript:{ALERT})",
    f"![x](x' onerror='{ALERT})",
    f"[x]: javascript:{ALERT}",
    "![x](http://evil.example/a.png)",
    f"data:text/html,<script>{ALERT}</script>",
    "http://evil.example/",
    "file:///etc/passwd",
)
TEMPLATES = ("{{constructor.constructor('alert(1)')()}}", "${alert(1)}", "#{7*7}", "<%= 7*7 %>", "{{7*7}}")
NAMES = ("__proto__", "constructor", "toString", "hasOwnProperty", "innerHTML", "dangerouslySetInnerHTML")
SIGNS = (
    "\u202egnp.exe\u202c",
    "\u2066a\u2069\u200bb",
    "\x1b[31mred\x1b]0;title\x07",
    "\x00\x01\x7f",
    "\ud800 alone",
    "a\r\nb\x0bc\x0c",
    "\U000e0041\U000e0042",
)
CELLS = ("=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(A1)", '"; DROP TABLE samples; --')

HOSTILE = (*MARKUP, *LINKS, *TEMPLATES, *NAMES, *SIGNS, *CELLS)

_EVIL = "http://evil.example/a.png"
RICH = (
    f"# <img src=x onerror={ALERT}>\n\n- <script>{ALERT}</script>\n- **<iframe src=javascript:{ALERT}>**",
    f"| a | b |\n|---|---|\n| <img src={_EVIL}> | [x](javascript:{ALERT}) |",
    f"```html\n</code></pre><script>{ALERT}</script>\n```",
    f'```"><script>{ALERT}</script>\nx = 1\n```',
    f"```python\nprint('<img src={_EVIL}>')\n```",
    f"[x](data:text/html;base64,PHNjcmlwdD4=) <javascript:{ALERT}> <{_EVIL}>",
    f"[a]: {_EVIL} 'title'\n\n![a] ![x][a] [x][a]",
    f"![x]({_EVIL}) ![x](data:image/svg+xml,<svg%20onload={ALERT}>)",
    f'[<img src={_EVIL}>]({_EVIL} "onclick={ALERT}")',
    f"$\\href{{javascript:{ALERT}}}{{x}}$ $\\url{{{_EVIL}}}$",
    f"$\\includegraphics{{{_EVIL}}}$ $$\\includegraphics[width=9999px]{{{_EVIL}}}$$",
    f"$\\htmlData{{onclick={ALERT}}}{{x}}$ $\\htmlStyle{{background:url({_EVIL})}}{{x}}$ $\\class{{a}}{{b}}$ $\\id{{app}}{{b}}$",
    f"$\\color{{red;background:url({_EVIL})}} x$ $\\textcolor{{url({_EVIL})}}{{x}}$",
    f"$\\text{{<script>{ALERT}</script>}}$ $\\unicode{{x202E}}$",
    "\\[ \\rule{99999em}{99999em} \\kern{-9999em} x \\]",
    "$$\\def\\a{\\a\\a}\\a$$ $$\\frac{\\frac{\\frac{x$$",
    ">" * 2000 + " x",
    "[" * 2000 + "]" * 2000,
    "*a **b " * 500,
    "- " * 500 + "x",
    "<!-- hidden --> <div style='position:fixed;inset:0;background:red'>x</div>",
    "&lt;script&gt; &#x202E; &nbsp;",
)
"""Texts that a renderer of Markdown, code, maths and images could take for more than text."""
