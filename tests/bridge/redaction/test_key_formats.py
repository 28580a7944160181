"""Texts with keys that the import redacts and harmless texts that it keeps; docs/guides/import-logs.md contains the figures."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import string
import uuid
from collections.abc import Callable, Mapping
from itertools import pairwise

import pytest

from aigo_bridge.redaction.rules import formats, redaction

_random = random.Random(14)  # examples, not real keys
LETTERS, LOWER, HEX = (
    string.ascii_letters + string.digits,
    string.ascii_lowercase + string.digits,
    "0123456789abcdef",
)
UPPER = string.ascii_uppercase + string.digits


def some(number: int, letters: str = LETTERS) -> str:
    """Return random letters and digits; generated here so that no secret scanner reports this file."""
    text = "".join(_random.choices(letters, k=number - 2))
    return f"{text[:3]}7{text[3:]}q" if "q" in letters else f"{text[:1]}7{text[1:]}{letters[-1]}"


def jwt(*parts: Mapping[str, object], sign: int = 43) -> str:
    coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*coded, some(sign) if sign else ""])


def block(kind: str, lines: int = 6, head: str = "") -> str:
    body = "\n".join(some(64) for _ in range(lines))
    return f"-----BEGIN {kind}-----\n{head}{body}\n-----END {kind}-----"


HS, RS = {"alg": "HS256", "typ": "JWT"}, {"typ": "JWT", "alg": "RS256", "kid": "a1"}
CLAIMS = {"sub": "1234567890", "name": "Somebody", "iat": 1516239022}

BARE = {
    "openai": "sk-" + some(48), "openai project": "sk-proj-" + some(74) + "T3BlbkFJ" + some(74),
    "openai service": "sk-svcacct-" + some(60), "openai admin": "sk-admin-" + some(60),
    "anthropic": "sk-ant-api03-" + some(93) + "AA", "anthropic admin": "sk-ant-admin01-" + some(93) + "AA",
    "openrouter": "sk-or-v1-" + some(64, HEX), "deepseek": "sk-" + some(32, HEX),
    "groq": "gsk_" + some(52), "xai": "xai-" + some(80), "perplexity": "pplx-" + some(48), "nvidia": "nvapi-" + some(64),
    "replicate": "r8_" + some(37), "fireworks": "fw_" + some(24), "cerebras": "csk-" + some(48, LOWER), "tavily": "tvly-" + some(32),
    "langsmith": "lsv2_pt_" + some(32, HEX) + "_" + some(10, HEX), "langfuse": "sk-lf-" + str(uuid.UUID(int=_random.getrandbits(128))),
    "pinecone": "pcsk_" + some(60), "hugging face": "hf_" + some(34), "hugging face organization": "api_org_" + some(34),
    "aws id": "AKIA" + some(16, UPPER)[:15] + "Q", "aws session id": "ASIA" + some(16, UPPER)[:15] + "Q",
    "aws bedrock id": "ABIA" + some(16, UPPER)[:15] + "Q", "aws bedrock": "ABSK" + some(130),
    "google": "AIza" + some(35), "google oauth": "ya29." + some(120), "google oauth short": "ya29." + some(30),
    "google client": "GOCSPX-" + some(28), "google refresh": "1//0" + some(60),
    "github": "ghp_" + some(36), "github oauth": "gho_" + some(36), "github user": "ghu_" + some(36), "github app": "ghs_" + some(36),
    "github refresh": "ghr_" + some(36), "github fine-grained": "github_pat_" + some(22) + "_" + some(59),
    "gitlab": "glpat-" + some(20), "gitlab deploy": "gldt-" + some(20), "gitlab runner": "glrt-" + some(20), "gitlab job": "glcbt-a1_" + some(20),
    "gitlab trigger": "glptt-" + some(40, HEX), "gitlab feed": "glft-" + some(20),
    "slack bot": "xoxb-123456789012-1234567890123-" + some(24), "slack user": "xoxp-1234567890-1234567890-1234567890-" + some(32),
    "slack app": "xapp-1-A" + some(10, UPPER) + "-1234567890123-" + some(64, HEX), "slack config": "xoxe.xoxp-1-" + some(150),
    "slack refresh": "xoxe-1-" + some(146), "slack session": "xoxc-" + some(60), "slack cookie": "xoxd-" + some(60), "slack old": "xoxs-12345-12345-12345-" + some(20, HEX),
    "slack webhook": "https://hooks.slack.com/services/T" + some(10, UPPER) + "/B" + some(10, UPPER) + "/" + some(24),
    "stripe": "sk_live_" + some(24), "stripe test": "sk_test_" + some(24), "stripe restricted": "rk_live_" + some(24), "stripe webhook": "whsec_" + some(32),
    "databricks": "dapi" + some(32, HEX), "digitalocean": "dop_v1_" + some(64, HEX), "docker": "dckr_pat_" + some(27), "npm": "npm_" + some(36),
    "pypi": "pypi-AgEIcHlwaS5vcmc" + some(100), "sendgrid": "SG." + some(22) + "." + some(43), "mailgun": "key-" + some(32, HEX),
    "twilio": "SK" + some(32, HEX), "telegram": "123456789:AA" + some(33),
    "atlassian": "ATATT3" + some(180), "bitbucket": "ATBB" + some(32), "figma": "figd_" + some(40), "new relic": "NRAK-" + some(27, UPPER),
    "vault": "hvs." + some(95), "vault batch": "hvb." + some(150), "fly": "fo1_" + some(43), "linear": "lin_api_" + some(40),
    "notion": "ntn_" + "12345678901" + some(35), "postman": "PMAK-" + some(24, HEX) + "-" + some(34, HEX), "shopify": "shpat_" + some(32, HEX),
    "sentry": "sntryu_" + some(64, HEX), "planetscale": "pscale_tkn_" + some(43), "pulumi": "pul-" + some(40, HEX), "prefect": "pnu_" + some(36),
    "rubygems": "rubygems_" + some(48, HEX), "sendinblue": "xkeysib-" + some(64, HEX) + "-" + some(16), "doppler": "dp.pt." + some(43),
    "dynatrace": "dt0c01." + some(24, UPPER) + "." + some(64, UPPER), "age": "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" + "QPZRY9X8GF2TVDW0S3JN54KHCE",
    "heroku": "HRKU-AA" + some(58), "artifactory": "AKCp" + some(69), "1password": "ops_eyJ" + some(260), "readme": "rdme_" + some(70, LOWER),
    "jwt": jwt(HS, CLAIMS), "jwt, other order": jwt(RS, CLAIMS, sign=342), "jwt, key id first": jwt({"kid": "a", "alg": "ES256"}, CLAIMS, sign=86),
    "jwt, not signed": jwt({"alg": "none"}, CLAIMS, sign=0), "jwt, encrypted": jwt({"alg": "dir", "enc": "A256GCM"}, sign=0) + "." + some(16) + "." + some(60) + "." + some(22),
    "rsa": block("RSA PRIVATE KEY"), "pkcs8": block("PRIVATE KEY"), "ec": block("EC PRIVATE KEY", 3), "openssh": block("OPENSSH PRIVATE KEY"),
    "encrypted": block("ENCRYPTED PRIVATE KEY"), "rsa with headers": block("RSA PRIVATE KEY", head="Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,A1B2\n\n"),
    "pgp": block("PGP PRIVATE KEY BLOCK", head="Version: GnuPG v2 (x)\nComment: me@x\n\n"), "cut off": block("PRIVATE KEY").partition("-----END")[0],
}  # fmt: skip
"""Keys that are known by themselves."""

PLACED: dict[str, Callable[[str], str]] = {
    "OPENAI_KEY=": lambda key: f"export OPENAI_KEY={key}", "MYSQL_PWD=": lambda key: f"MYSQL_PWD={key[:10]} mysql -u root",
    "quoted variable": lambda key: f'MISTRAL_API_KEY="{key}"', "AWS_SECRET_ACCESS_KEY=": lambda key: f"AWS_SECRET_ACCESS_KEY={key}",
    "PGPASSWORD=": lambda key: f"PGPASSWORD={key[:12]}", "COHERE_TOKEN=": lambda key: f"COHERE_TOKEN={key}", "docker -e": lambda key: f"docker run -e DB_PASS={key[:14]} x",
    "aws file": lambda key: f"aws_secret_access_key = {key}", "aws json": lambda key: json.dumps({"SecretAccessKey": key}),
    "python": lambda key: f'client = Client(api_key="{key}")', "python, single quotes": lambda key: f"openai.api_key = '{key}'",
    "yaml": lambda key: f"db:\n  password: {key[:16]}\n", "json": lambda key: json.dumps({"client_secret": key}),
    "ini": lambda key: f"auth_token={key}", "toml": lambda key: f'access_token = "{key}"', "ruby": lambda key: f":api_key => '{key}'",
    "x-api-key": lambda key: f"x-api-key: {key}", "api-key, json": lambda key: json.dumps({"headers": {"api-key": key}}),
    "bearer": lambda key: f"Authorization: Bearer {key}", "bearer, json": lambda key: json.dumps({"Authorization": f"Bearer {key}"}),
    "bearer alone": lambda key: f"curl -H 'bearer {key}'", "token": lambda key: f"authorization: token {key}",
    "basic": lambda key: f"Authorization: Basic {base64.b64encode(f'me:{key}'.encode()).decode()}",
    "basic, json": lambda key: json.dumps({"authorization": "Basic " + base64.b64encode(f"u:{key}".encode()).decode()}),
    "address": lambda key: f"https://user:{key[:14]}@git.example.org/x.git", "postgres": lambda key: f"postgresql+psycopg://app:{key[:9]}@db:5432/x",
    "redis": lambda key: f"redis://:{key}@127.0.0.1:6379/0", "mongodb": lambda key: f"mongodb+srv://u:{key[:12]}@c0.example.net",
    "cookie": lambda key: f"Cookie: session={key}; theme=dark", "set-cookie": lambda key: f"Set-Cookie: sid={key}; HttpOnly",
    "cookie, json": lambda key: json.dumps({"cookie": f"sessionid={key}"}), "query": lambda key: f"GET /v1?api_key={key}&x=1",
    "azure storage": lambda key: f"AccountName=x;AccountKey={key}{key}==;EndpointSuffix=y", "shared access": lambda key: f"https://x.example/c?sv=2024&sig={key}%3D",
    "refresh token": lambda key: json.dumps({"refresh_token": key}), "passphrase": lambda key: f"passphrase: {key[:18]}",
    "json in json": lambda key: json.dumps(json.dumps({"api_key": key})),
}  # fmt: skip
"""Places where any key stands."""


def words(number: int) -> str:
    return " ".join(
        _random.choice(["the", "model", "answers", "a", "question", "token", "of", "key", "bearer"])
        for _ in range(number)
    )


HARMLESS = [
    *(hashlib.sha256(str(n).encode()).hexdigest() for n in range(15)),
    *(hashlib.md5(str(n).encode(), usedforsecurity=False).hexdigest() for n in range(10)),
    *(hashlib.sha1(str(n).encode(), usedforsecurity=False).hexdigest() for n in range(15)),
    *(f"commit {hashlib.sha1(str(n).encode(), usedforsecurity=False).hexdigest()}" for n in range(5)),
    *(str(uuid.UUID(int=_random.getrandbits(128))) for _ in range(15)),
    *(f"data:image/png;base64,{base64.b64encode(_random.randbytes(3000)).decode()}" for _ in range(10)),
    *(base64.b64encode(json.dumps({"n": n, "text": words(5)}).encode()).decode() for n in range(10)),
    *(str(_random.getrandbits(200)) for _ in range(10)),
    *(words(12) for _ in range(20)),
    *(f"msg_{some(22)}" for _ in range(5)), *(f"call_{some(24)}" for _ in range(5)), *(f"chatcmpl-{some(29)}" for _ in range(5)),
    *(f"toolu_{some(24)}" for _ in range(3)), *(f"resp_{some(48, HEX)}" for _ in range(3)), *(f"req_{some(24)}" for _ in range(3)),
    *(f"sha256:{some(64, HEX)}" for _ in range(3)), *(f"etag: W/\"{some(32, HEX)}\"" for _ in range(3)),
    *(f"https://example.org/{some(8)}/{some(12)}?page={n}&v={some(6)}" for n in range(8)),
    *(json.dumps({"token": word, "logprob": -0.5, "bytes": [97], "top_logprobs": []}) for word in ("Hello", " world", "12345678", "\u00e9", "=", "key", "a1b2")),
    *(json.dumps({"input_tokens": n, "output_tokens": 12345678 + n, "total_tokens": 100000000 + n}) for n in range(5)),
    "gpt-4.1-nano-2025-04-14", "claude-3-5-sonnet-20241022", "meta-llama/Llama-3.1-8B-Instruct", "openai/gpt-4o-mini-2024-07-18", "mistral-large-2411",
    "the bearer of good news", "a token of my appreciation", "bearer authentication is explained below", "Basic understanding of mathematics101 is needed",
    "the secret is patience", "secret: nobody knows", "password: ********", "password: <your password>", "api_key: ${OPENAI_API_KEY}", "api_key=$KEY",
    'api_key = os.environ["OPENAI_API_KEY"]', "api_key=settings.openai_key2", "OPENAI_API_KEY=your-key-here", "OPENAI_API_KEY=sk-...", "token = tokenizer.encode(text2)",
    "key: value", "key: 42", "name: x\nversion: 1.2.3\nauthor: me\n", "primary_key: id", "foreign_key=user_id2", "sort_key: created_at", "metric_key=mean_score_1",
    "max_tokens=1024", "max_tokens: 4096", "num_tokens=12345678", "pad_token: <|endoftext|>", "eos_token = '</s>'", "bos_token: <s>", "stop_token=128009",
    "token_count: 12345678", "password_length = 12", "def password(length: int = 16) -> str:", "if password == confirm_password2:", "passwords must have 8 characters and 1 digit",
    "https://example.com:8080/path@version2", "git@github.com:openai/evals.git", "ssh://git@github.com/x/y1.git", "mailto:someone1@example.com", "http://user@host1/path",
    "https://user:password@example.com", "postgres://{user}:{password}@{host}/db1", "redis://localhost:6379/0", "npm install @scope/package@1.2.3",
    "cookie: chocolate chip", "Cookie policy: we use cookies", "the cookie=jar metaphor", "-----BEGIN PUBLIC KEY-----\n" + some(64) + "\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\n" + some(64) + "\n-----END CERTIFICATE-----", "ssh-rsa AAAAB3NzaC1yc2E" + some(60) + " me@host", "a PRIVATE KEY is needed",
    "task-" + some(30, LOWER), "risk-assessment-of-large-models-2024", "desk-" + some(24, LOWER), "ask-me-anything-about-something-else1", "eyJ is how base64 of JSON begins",
    "eyJhbGciOiJIUzI1NiJ9", "eyJ.abc.def", "eyes.eyebrows.eyelashes", "AKIA is a prefix", "AIza is another", "ghp_ and gho_ are prefixes", "hf_hub_download(repo_id, filename1)",
    "sk-learn", "sk-SK", "xox", "sk_buff *skb = alloc_skb(len1);", "SG.1", "key-value-store-12345", "fw_version=12", "api-version: 2024-06-01", "dapi-documentation-2024",
    "\\frac{a_1}{b_2} + \\sqrt{x^2 + y^2}", "x = 3.14159265358979323846264338327950288", "E=mc^2 where m=1.6726219e-27", "|A| = \\sum_{i=1}^{n} a_i", "for i in range(10): print(i)",
    "SELECT * FROM users WHERE token IS NOT NULL", "const key = Object.keys(data)[0];", "def f(key: str, token: str = 'abc') -> None: ...", "assert data['secret'] is None",
    '{"type": "function", "function": {"name": "get_secret", "parameters": {}}}', '{"key": "accuracy", "value": 0.5}', '{"api_key": null, "secret": ""}', '{"password": "string"}',
    "the password is 'swordfish'", "secret=true", "token: null", "pwd", "cd $(pwd)/src1", "PWD=/home/somebody/project1", "OLDPWD=/tmp/x1", "auth: none", "author: A. Writer2",
    "authorization: required", "Authorization header is missing", "WWW-Authenticate: Basic realm=\"x1\"", "bearer token required", "Bearer <token>", "Bearer $TOKEN1", "Basic Programming101",
    "csrf_token()", "reset_password_token_expires_at", "PASSWORD_HASHERS=['x']", "SECRET_KEY_BASE", "HF_TOKEN", "keyboard=qwerty12", "monkey=banana123", "turkey: 350g1234", "hotkey: ctrl+alt+f12",
]  # fmt: skip
"""Texts that look like keys, or speak of them, and hold none."""


def placed() -> dict[str, tuple[str, str]]:
    """Return a mapping from name to the text and the key in it."""
    found = {name: (key, key) for name, key in BARE.items()}
    for name, place in PLACED.items():
        key = some(32)
        text = place(key)
        coded = re.search(r"Basic ([A-Za-z0-9+/=]+)", text)
        kept = (
            coded[1]
            if coded
            else key
            if key in text
            else next(key[:n] for n in range(31, 7, -1) if key[:n] in text)
        )
        found[name] = (text, kept)
    return found


FORMS = placed()


def taken(document: bytes) -> tuple[bytes, dict[str, int]]:
    found = redaction(environment={})
    return found.json(document), dict(found.found)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("around", ["", "it is {} there", "log:\n{}\nend", "é{}\tü", "({})"])
def test_key_is_redacted_and_the_surrounding_text_is_kept(name: str, around: str) -> None:
    text, key = FORMS[name]
    whole = around.replace("{}", text) if around else text

    documents: list[tuple[str, Callable[[bytes], str]]] = [
        (json.dumps({"t": whole, "n": 1}), lambda done: json.loads(done)["t"]),
        (
            json.dumps({"t": json.dumps([whole])}, ensure_ascii=False),
            lambda done: json.loads(json.loads(done)["t"])[0],
        ),
    ]
    for document, read in documents:
        done, counts = taken(document.encode())

        inner = read(done)
        assert sum(counts.values()) == inner.count("[redacted: ") == 1
        before, _, behind = inner.partition("[redacted: ")
        after = behind.partition("]")[2]
        assert whole.startswith(before)
        assert whole.endswith(after)
        middle = whole[len(before) : len(whole) - len(after)]
        # The surrounding text is part of a cookie, a URL or an encoding.
        assert middle == key or (
            (key.strip() in middle or middle in key) and abs(len(middle) - len(key)) <= 40
        )


@pytest.mark.parametrize("name", [name for name in BARE if "\n" not in BARE[name]])
def test_key_with_escaped_letters_is_redacted(name: str) -> None:
    """A JSON parser restores the key from its escapes."""
    key = BARE[name]
    spelled = "".join(f"\\u{ord(char):04x}" if at % 3 == 0 else char for at, char in enumerate(key))

    done, counts = taken(f'{{"t": "x {spelled} y"}}'.encode())

    text = json.loads(done)["t"]
    assert text.startswith("x ")
    assert text.endswith(" y")
    assert key[6:20] not in text
    assert counts


def test_harmless_texts_are_not_redacted() -> None:
    """Also checks all texts in one document: no match across two texts."""
    wrong = [text for text in HARMLESS if taken(json.dumps(text).encode())[1]]

    assert len(FORMS) == 138  # both figures are in the docs
    assert len(HARMLESS) == 274
    assert wrong == [], "\n".join(wrong)
    together = json.dumps(HARMLESS).encode()
    assert taken(together)[0] is together


@pytest.mark.parametrize("name", formats())
def test_patterns_take_linear_time_on_long_texts(name: str) -> None:
    """With quadratic time, a text of many key prefixes would take hours."""
    found = formats()[name]
    start = (
        re.split(r"[\[({|\\?*+.^$]", found.hint.replace("\\-", "-").replace("\\.", "."))[0]
        or "password=Bearer cookie: a1=://x:"
    )
    pattern = re.compile(found.pattern.encode())
    for text in (
        start * (100_000 // len(start)),
        (start + "a1" * 40) * 1_000,
        start + "A1b2" * 25_000,
        (start + " \\n") * 10_000,
    ):
        pattern.sub(b"", text.encode())


def test_redacted_keys_are_counted_by_kind() -> None:
    keys = [*(BARE["groq"] for _ in range(3)), BARE["xai"], FORMS["cookie"][0]]

    done, counts = taken(json.dumps(keys).encode())

    assert counts == {"groq key": 3, "xai key": 1, "cookie": 1}
    assert [text.count("[redacted") for text in json.loads(done)] == [1] * 5


def test_kinds_of_keys_are_distinguished() -> None:
    """No two kinds match the same key, so the counts by kind are exact."""
    for one, other in pairwise(sorted(BARE)):
        assert taken(json.dumps(BARE[one]).encode())[1] != {} != taken(json.dumps(BARE[other]).encode())[1]
