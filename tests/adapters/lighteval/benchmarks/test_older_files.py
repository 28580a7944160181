"""Syntax of lighteval before 0.11: task names are accepted, files are refused with the new syntax for each line."""

from pathlib import Path

import pytest
from tests.support.commands import Run

from aigo_bridge.errors import UsageError
from aigo_lighteval.benchmarks.older_files import deprecated_syntax
from aigo_lighteval.benchmarks.tasks import from_file, listing_of, select

pytestmark = pytest.mark.engine

OLD = """\
from lighteval.metrics.metrics import Metrics
from lighteval.metrics.utils.metric_utils import MetricCategory, MetricUseCase, SampleLevelMetric
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc, RequestType

def words(predictions, formatted_doc, **kwargs):
    return len(predictions[0].split())

METRIC = SampleLevelMetric(
    metric_name="words", higher_is_better=True, category=MetricCategory.GENERATIVE,
    use_case=MetricUseCase.NONE,
    sample_level_fn=words,
    corpus_level_fn=sum,
)

def prompt(line, task_name=None):
    return Doc(query=line["q"], choices=[line["a"]], gold_index=0, num_asked_few_shots=0)

TASKS_TABLE = [LightevalTaskConfig(
    name="mine", prompt_function=prompt, hf_repo="r", hf_subset="default",
    suite=["community"],
    metric=[Metrics.exact_match, METRIC, Metrics.loglikelihood_acc_norm_nospace],
    trust_dataset=True, evaluation_splits=["test"],
)]
"""
NEW = """\
from lighteval.metrics.metrics import Metrics
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc

try:
    from lighteval.metrics.utils.metric_utils import MetricCategory
except ImportError:
    MetricCategory = None

def prompt(line, task_name=None):
    return Doc(query=line["q"], choices=[line["a"]], gold_index=0)

TASKS_TABLE = [
    LightevalTaskConfig(name=name, prompt_function=prompt, hf_repo="r", hf_subset="default",
        metrics=[Metrics.exact_match], evaluation_splits=["test"], hf_avail_splits=["test"])
    for name in ("own:one", "own:two")
]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(NEW)
    return path


def test_old_file_is_refused_with_the_new_syntax_of_each_line(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_text(OLD)
    with pytest.raises(
        UsageError, match=r"was written for lighteval before 0\.11, installed is 0\."
    ) as error:
        from_file(path)
    text = str(error.value)
    for line, words in (
        (2, "does not have MetricCategory: use SamplingMethod"),
        (4, "does not have RequestType: use SamplingMethod"),
        (11, "SampleLevelMetric does not have the argument use_case: remove it"),
        (
            12,
            "sample_level_fn of SampleLevelMetric is a function: derive a class from SampleLevelComputation",
        ),
        (17, "Doc does not have the argument num_asked_few_shots: remove it"),
        (
            21,
            "LightevalTaskConfig does not have the argument suite: remove it, and name the task NAME or NAME|SHOTS",
        ),
        (22, "LightevalTaskConfig does not have the argument metric: write metrics=[…]"),
        (22, "Metrics does not have loglikelihood_acc_norm_nospace: "),
        (23, "LightevalTaskConfig does not have the argument trust_dataset: remove it"),
    ):
        assert any(f"line {line}: " in found and words in found for found in text.splitlines()), (line, words)


def test_file_that_only_looks_for_old_names_is_loaded(file: Path) -> None:
    assert list(from_file(file).configs) == ["own:one", "own:two"]
    assert [part.line for part in deprecated_syntax(file)] == [6]


def test_metric_function_is_refused_before_the_run(tmp_path: Path) -> None:
    path = tmp_path / "functions.py"
    metric = "SampleLevelMetric('w', True, SamplingMethod.GENERATIVE, sample_level_fn=lambda **_: 1, corpus_level_fn=sum)"
    text = NEW.replace("[Metrics.exact_match]", f"[{metric}]").replace(
        "import Doc", "import Doc, SamplingMethod"
    )
    path.write_text(text.replace("import MetricCategory", "import SampleLevelMetric"))
    with pytest.raises(UsageError, match="sample_level_fn of SampleLevelMetric is a function"):
        from_file(path)


@pytest.mark.parametrize(
    ("name", "task", "shots", "new"),
    [
        ("own:one", "own:one", 0, None),
        ("own:one|3", "own:one", 3, None),
        ("community|own:one|3", "own:one", 3, "own:one|3"),
        ("community|own:one|3|0", "own:one", 3, "own:one|3"),
        ("community|own:one|0|1", "own:one", 0, "own:one|0"),
        ("own:one|3|0", "own:one", 3, "own:one|3"),
        ("community|own:one", "own:one", 0, "own:one"),
    ],
)
def test_old_names_of_unchanged_meaning_are_accepted_with_a_note(
    name: str, task: str, shots: int, new: str | None, file: Path
) -> None:
    (selected,) = select(name, custom_tasks=file)
    assert (selected.config.name, selected.shots) == (task, shots)
    if new is None:
        assert selected.notes == ()
    else:
        (note,) = selected.notes
        assert note.endswith(f"write {new!r}")


@pytest.mark.parametrize("name", ["community|own:one|3|1", "own:one|3|1"])
def test_truncation_of_examples_is_refused(name: str, file: Path) -> None:
    with pytest.raises(UsageError, match=r"write 'own:one\|3' with a number of examples that fits"):
        select(name, custom_tasks=file)


def test_tasks_of_a_file_are_listed_as_run_takes_them(file: Path, aigo: Run) -> None:
    done = aigo("list", f"lighteval:{file}", "--json")
    assert done.code == 0, done.err
    names = [row["name"] for row in done.json]
    assert names == [f"lighteval:{file}@own:one", f"lighteval:{file}@own:two"]
    assert [name.rpartition("@")[2] for name in names] == [
        selected.config.name for name in names for selected in select(name.removeprefix("lighteval:"))
    ]
    assert aigo("list", f"lighteval:{file}@own:three").code == 2
    assert [benchmark.name for benchmark in listing_of("gsm8k").benchmarks] == ["gsm8k"]


def test_convert_takes_names_of_files_as_run_does(file: Path, aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "test.jsonl").write_text('{"q": "1+1", "a": "2"}\n')
    for number, name in enumerate((f"{file}@own:one", f"{file}@community|own:one|0|0", f"{file}|own:two|0")):
        done = aigo("convert", f"lighteval:{name}", "--data-dir", "data", "--out", f"out{number}")
        assert done.code == 0, (name, done.err)
        assert ("note: " in done.err) == (number == 1)
