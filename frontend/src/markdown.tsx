/**
 * Untrusted Markdown, code and math as elements of the page. A text is split into tokens, and each kind of token that is
 * listed here becomes one element. HTML stays text, addresses are not links, and no content is loaded. The code never
 * builds a string of HTML, so that the page can forbid all of them (`trusted-types 'none'`).
 */

import { common, createLowlight } from "lowlight";
import { Marked, type Token, type Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import temml from "temml";
import { LongText, Text, useRaw, Wide } from "./text";

const LONGEST = 200_000;
const DEEPEST = 24;
const IMAGE = /^data:image\/(?:png|jpeg|gif|webp|avif|bmp);base64,[A-Za-z0-9+/=\s]*$/;

export function Image({ url, alt = "image of the log" }: { url: string; alt?: string }) {
  if (IMAGE.test(url)) return <img src={url} alt={alt} loading="lazy" />;
  return <span class="note">image, not loaded: <Text>{`${alt === "image of the log" ? "" : `${alt} `}${url.slice(0, 300)}`}</Text></span>;
}

interface MathToken { type: "math"; raw: string; tex: string; display: boolean }

const math = (pattern: RegExp, start: RegExp, name: string, level: "block" | "inline", display: boolean) => ({
  name, level,
  start: (text: string) => { const at = text.search(start); return at < 0 ? undefined : at; },
  tokenizer(text: string) {
    const found = pattern.exec(text);
    return found ? { type: name, raw: found[0], tex: found[1], display } : undefined;
  },
});

const markdown = new Marked({ gfm: true, extensions: undefined });
markdown.use({
  extensions: [
    math(/^\$\$([^$]{1,2000}?)\$\$(?:\n|$)/, /\$\$/, "mathBlock", "block", true),
    math(/^\\\[([\s\S]{1,2000}?)\\\]/, /\\\[/, "mathBracket", "block", true),
    math(/^\$\$([^$]{1,2000}?)\$\$/, /\$\$/, "mathDisplay", "inline", true),
    math(/^\\\(([^\n]{1,1000}?)\\\)/, /\\\(/, "mathParen", "inline", false),
    // As in Pandoc: no space after the first or before the last `$`, and no digit after it.
    math(/^\$(?![\s$])((?:\\.|[^$\\\n]){1,500}?)(?<!\s)\$(?!\d)/, /\$/, "mathDollar", "inline", false),
  ],
});

const lowlight = createLowlight(common);

interface HighlightNode { type: string; value?: string; properties?: { className?: string[] }; children?: HighlightNode[] }

function Highlighted({ node }: { node: HighlightNode }): ComponentChildren {
  if (node.type === "text") return <Text>{node.value ?? ""}</Text>;
  const children = node.children?.map((child) => <Highlighted node={child} />);
  const kind = node.properties?.className?.filter((name) => /^hljs-[a-z_-]+$/.test(name)).join(" ");
  return kind ? <span class={kind}>{children}</span> : <>{children}</>;
}

/** Code in the colours of its language, or plain for an unknown language. */
export function Code({ text, language }: { text: string; language?: string }) {
  const name = language?.trim().split(/\s/)[0].toLowerCase() ?? "";
  const render = useMemo(() => (part: string) => {
    if (!name || part.length > 30_000 || !lowlight.registered(name)) return <Text>{part}</Text>;
    try {
      return <Highlighted node={lowlight.highlight(name, part) as HighlightNode} />;
    } catch {
      return <Text>{part}</Text>;
    }
  }, [name]);
  return (
    <figure class="listing">{name && <figcaption><Text>{language!.slice(0, 80)}</Text></figcaption>}
      <div class="code" tabIndex={0}><LongText text={text} render={render} /></div></figure>
  );
}

/** TeX as MathML; invalid TeX as plain text. */
function Maths({ tex, raw, display }: { tex: string; raw: string; display: boolean }) {
  const box = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    try {
      const made = document.createElement("span");
      temml.render(tex, made, { displayMode: display, throwOnError: true, trust: false, strict: false, annotate: false, maxExpand: 200, maxSize: [20, 20] } as never);
      // Only MathML, without links.
      for (const element of made.querySelectorAll("*"))
        if (element.namespaceURI !== "http://www.w3.org/1998/Math/MathML" || element.hasAttribute("href") || element.hasAttribute("src")) throw new Error("not maths");
      box.current!.replaceChildren(...made.childNodes);
    } catch { /* the text stays */ }
  }, [tex, display]);
  return <span class={display ? "math display" : "math"} ref={box} title={raw}><Text>{raw}</Text></span>;
}

/** An inactive link: its text and its address. */
function Address({ label, address }: { label: ComponentChildren; address: string }) {
  return <span class="address">{label} <small>(<Text>{address}</Text>)</small></span>;
}

function inline(tokens: Token[] | undefined, depth: number): ComponentChildren {
  return (tokens ?? []).map((token) => inlineToken(token, depth));
}

function inlineToken(token: Token, depth: number): ComponentChildren {
  if (depth > DEEPEST) return <Text>{token.raw}</Text>;
  if (token.type.startsWith("math")) {
    const { tex, raw, display } = token as unknown as MathToken;
    return <Maths tex={tex} raw={raw} display={display} />;
  }
  const inner = () => inline((token as { tokens?: Token[] }).tokens, depth + 1);
  switch (token.type) {
    case "strong": return <strong>{inner()}</strong>;
    case "em": return <em>{inner()}</em>;
    case "del": return <s>{inner()}</s>;
    case "codespan": return <code><Text>{(token as Tokens.Codespan).text}</Text></code>;
    case "br": return <br />;
    case "link": {
      const { href, text, raw } = token as Tokens.Link;
      return raw === href || text === href ? <span class="address"><Text>{raw}</Text></span> : <Address label={inner()} address={raw.includes("](") ? raw.slice(raw.lastIndexOf("](") + 2).replace(/\)$/, "") : href} />;
    }
    case "image": return <Image url={(token as Tokens.Image).href} alt={(token as Tokens.Image).text || undefined} />;
    case "escape": return <Text>{(token as Tokens.Escape).text}</Text>;
    case "text": return (token as Tokens.Text).tokens ? inner() : <Text>{(token as Tokens.Text).raw}</Text>;
    default: return <Text>{token.raw}</Text>;
  }
}

function blocks(tokens: Token[], depth = 0): ComponentChildren {
  return tokens.map((token) => blockToken(token, depth));
}

function blockToken(token: Token, depth: number): ComponentChildren {
  if (depth > DEEPEST) return <Text>{token.raw}</Text>;
  if (token.type.startsWith("math")) return <p>{inlineToken(token, depth)}</p>;
  switch (token.type) {
    case "space": return null;
    // Headings of a text are not headings of the page.
    case "heading": return <p class={`heading h${(token as Tokens.Heading).depth}`}>{inline((token as Tokens.Heading).tokens, depth)}</p>;
    case "paragraph": return <p>{inline((token as Tokens.Paragraph).tokens, depth)}</p>;
    case "text": return (token as Tokens.Text).tokens ? <>{inline((token as Tokens.Text).tokens, depth)}</> : <Text>{token.raw}</Text>;
    case "code": return <Code text={(token as Tokens.Code).text} language={(token as Tokens.Code).lang} />;
    case "blockquote": return <blockquote>{blocks((token as Tokens.Blockquote).tokens, depth + 1)}</blockquote>;
    case "hr": return <hr />;
    case "list": {
      const list = token as Tokens.List;
      const items = list.items.map((item) => <li>{item.task && (item.checked ? "☑ " : "☐ ")}{blocks(item.tokens, depth + 1)}</li>);
      return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>;
    }
    case "table": {
      const table = token as Tokens.Table;
      return (
        <Wide><table class="of-text"><thead><tr>{table.header.map((cell) => <th scope="col">{inline(cell.tokens, depth)}</th>)}</tr></thead>
          <tbody>{table.rows.map((row) => <tr>{row.map((cell) => <td>{inline(cell.tokens, depth)}</td>)}</tr>)}</tbody></table></Wide>
      );
    }
    case "checkbox": return null;
    // HTML, link definitions and all other tokens are shown as text, so that no content is hidden.
    default: return <div class="long"><Text>{token.raw}</Text></div>;
  }
}

function rendered(text: string): ComponentChildren {
  if (text.length > LONGEST) return <div class="long"><Text>{text}</Text></div>;
  try {
    return blocks(markdown.lexer(text));
  } catch {
    return <div class="long"><Text>{text}</Text></div>;
  }
}

const PLAIN = /^[^\n*_`#<>\[\]$\\|~]*$/;

/** Text as Markdown or raw. The key `r` switches between them. */
export function Markdown({ text }: { text: string }) {
  const raw = useRaw();
  return raw || PLAIN.test(text) ? <LongText text={text} /> : <LongText text={text} render={rendered} />;
}
