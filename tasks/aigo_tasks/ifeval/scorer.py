"""IFEval's verifiable instructions, checked strictly and loosely.

Source: Zhou et al. (2023) and their code, google-research/instruction_following_eval. *Strict* looks at the answer as it is; *loose* is satisfied when one of eight variants
satisfies it (first line, last line or both removed; with and without asterisks). An answer that is empty follows nothing.

Departures: sentences and words in capitals are counted by patterns instead of NLTK's models. The instructions about language and case need the package langdetect, as in
the original; it draws at random there, and from a fixed seed here. Where the original takes a random argument for a missing one (0, a letter that is none), the row fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

Args = dict[str, Any]


def compare(count: int, relation: str | None, limit: int) -> bool:
    if relation == "less than":
        return count < limit
    if relation == "at least":
        return count >= limit
    raise ValueError(f"relation {relation!r} is neither 'less than' nor 'at least'")


def occurs(text: str, keyword: str) -> int:
    return len(re.findall(keyword, text, re.IGNORECASE))


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.!?])[\"')\]]*\s+", text.strip()) if part.strip()]


def paragraphs(text: str, pattern: str) -> list[str] | None:
    """Non-empty paragraphs; an empty one inside (not at an end) makes the count invalid."""
    parts = re.split(pattern, text)
    kept = [part for part in parts if part.strip()]
    inner = parts[1:-1]
    return None if any(not part.strip() for part in inner) else kept


def number_paragraphs(text: str, args: Args) -> bool:
    parts = paragraphs(text, r"\s?\*\*\*\s?")
    return parts is not None and len(parts) == args["num_paragraphs"]


def nth_paragraph_first_word(text: str, args: Args) -> bool:
    parts = re.split(r"\n\n", text)
    count = sum(bool(part.strip()) for part in parts)
    if not 0 < args["nth_paragraph"] <= count:
        return False
    paragraph = parts[args["nth_paragraph"] - 1].strip()
    first = re.split(r"[.,?!'\"]", paragraph.split()[0].lstrip("'").lstrip('"') if paragraph else "")[0]
    return count == args["num_paragraphs"] and first.lower() == args["first_word"].lower()


def bullets(text: str, args: Args) -> bool:
    stars = re.findall(r"^\s*\*[^*].*$", text, re.MULTILINE)
    dashes = re.findall(r"^\s*-.*$", text, re.MULTILINE)
    return len(stars) + len(dashes) == args["num_bullets"]


def highlights(text: str, args: Args) -> bool:
    single = [part for part in re.findall(r"\*[^\n*]*\*", text) if part.strip("*").strip()]
    double = [part for part in re.findall(r"\*\*[^\n*]*\*\*", text) if part.removeprefix("**").removesuffix("**").strip()]
    return len(single) + len(double) >= args["num_highlights"]


def sections(text: str, args: Args) -> bool:
    return len(re.split(r"\s?" + args["section_spliter"].strip() + r"\s?\d+\s?", text)) - 1 >= args["num_sections"]


def is_json(text: str, args: Args) -> bool:
    bare = text.strip()
    for fence in ("```json", "```Json", "```JSON", "```"):
        bare = bare.removeprefix(fence)
    try:
        json.loads(bare.removesuffix("```").strip())
    except ValueError:
        return False
    return True


def postscript(text: str, args: Args) -> bool:
    marker = args["postscript_marker"].strip()
    pattern = {"P.P.S": r"\s*p\.\s?p\.\s?s.*$", "P.S.": r"\s*p\.\s?s\..*$"}.get(marker, r"\s*" + marker.lower() + r".*$")
    return bool(re.findall(pattern, text.lower(), re.MULTILINE))


def two_responses(text: str, args: Args) -> bool:
    parts = paragraphs(text, r"\*\*\*\*\*\*")
    return parts is not None and len(parts) == 2 and parts[0].strip() != parts[1].strip()


def constrained(text: str, args: Args) -> bool:
    return any(option in text.strip() for option in ("My answer is yes.", "My answer is no.", "My answer is maybe."))


def letter_frequency(text: str, args: Args) -> bool:
    letter = args["letter"].strip().lower()
    if not re.fullmatch("[a-z]", letter):
        raise ValueError(f"the row asks for the letter {args['letter']!r}; the original takes a random one")
    return compare(text.lower().count(letter), args["let_relation"], args["let_frequency"])


def capital_words(text: str) -> int:
    """Words in capitals; one with a hyphen is one, N'T and 'S count for themselves."""
    pieces = re.sub(r"(?i)(?=n't\b|'(?:s|m|d|ll|re|ve)\b)", " ", text).split()
    return sum(word.isupper() for word in pieces)


def detected(text: str) -> str | None:
    """The language of a text; `None`: nothing in it tells one, which counts as followed."""
    import langdetect  # not part of this project: install it for rows with these instructions

    langdetect.DetectorFactory.seed = 0
    try:
        return str(langdetect.detect(text))
    except langdetect.LangDetectException:
        return None


def language(text: str, args: Args) -> bool:
    return detected(text) in (args["language"], None)


def in_english(is_case: bool, text: str) -> bool:
    return is_case and detected(text) in ("en", None)


CHECKS: dict[str, Callable[[str, Args], bool]] = {
    "keywords:existence": lambda text, args: all(occurs(text, keyword) for keyword in args["keywords"]),
    "keywords:frequency": lambda text, args: compare(occurs(text, args["keyword"].strip()), args["relation"], args["frequency"]),
    "keywords:forbidden_words": lambda text, args: not any(
        occurs(text, r"\b" + word + r"\b") for word in args["forbidden_words"]
    ),
    "keywords:letter_frequency": letter_frequency,
    "language:response_language": language,
    "length_constraints:number_sentences": lambda text, args: compare(
        len(sentences(text)), args["relation"], args["num_sentences"]
    ),
    "length_constraints:number_paragraphs": number_paragraphs,
    "length_constraints:number_words": lambda text, args: compare(len(words(text)), args["relation"], args["num_words"]),
    "length_constraints:nth_paragraph_first_word": nth_paragraph_first_word,
    "detectable_content:number_placeholders": lambda text, args: (
        len(re.findall(r"\[.*?\]", text)) >= args["num_placeholders"]
    ),
    "detectable_content:postscript": postscript,
    "detectable_format:number_bullet_lists": bullets,
    "detectable_format:constrained_response": constrained,
    "detectable_format:number_highlighted_sections": highlights,
    "detectable_format:multiple_sections": sections,
    "detectable_format:json_format": is_json,
    "detectable_format:title": lambda text, args: any(
        title.lstrip("<").rstrip(">").strip() for title in re.findall(r"<<[^\n]+>>", text)
    ),
    "combination:two_responses": two_responses,
    "combination:repeat_prompt": lambda text, args: (
        text.strip().lower().startswith(args["prompt_to_repeat"].strip().lower())
    ),
    "startend:end_checker": lambda text, args: (
        text.strip().strip('"').lower().endswith(args["end_phrase"].strip().lower())
    ),
    "startend:quotation": lambda text, args: (
        len(text.strip()) > 1 and text.strip().startswith('"') and text.strip().endswith('"')
    ),
    "change_case:capital_word_frequency": lambda text, args: compare(
        capital_words(text), args["capital_relation"], args["capital_frequency"]
    ),
    "change_case:english_capital": lambda text, args: in_english(text.isupper(), text),
    "change_case:english_lowercase": lambda text, args: in_english(text.islower(), text),
    "punctuation:no_comma": lambda text, args: "," not in text,
}


def variants(text: str) -> list[str]:
    lines = text.split("\n")
    cut = [text, "\n".join(lines[1:]).strip(), "\n".join(lines[:-1]).strip(), "\n".join(lines[1:-1]).strip()]
    return [*cut, *(each.replace("*", "") for each in cut)]


def follows(name: str, text: str, args: Args) -> bool:
    return bool(text.strip()) and CHECKS[name](text, args)


def compute_scores(sample: dict[str, Any], solver_output: Any) -> dict[str, Any]:
    answer = solver_output.output.choices[0].message.content
    names = sample["instruction_id_list"]
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        raise ValueError(f"there is no check for {', '.join(unknown)}")
    # Rows of the hub have every argument of every instruction, most of them null.
    given = [{key: value for key, value in (args or {}).items() if value} for args in sample["kwargs"]]
    strict = [follows(name, answer, args) for name, args in zip(names, given, strict=True)]
    loose = [
        any(follows(name, each, args) for each in variants(answer)) for name, args in zip(names, given, strict=True)
    ]
    return {
        "scores": {
            "prompt_level_strict": all(strict),
            "prompt_level_loose": all(loose),
            "num_instructions": len(names),
            "num_followed_strict": sum(strict),
            "num_followed_loose": sum(loose),
        },
        "metadata": {
            "instructions": [
                {"instruction": name, "strict": first, "loose": second}
                for name, first, second in zip(names, strict, loose, strict=True)
            ]
        },
    }
