"""Tasks that pass `validate` are planned and start; `validate` reports planning errors at the same position."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, assume, given, settings
from tests.property.mutated_tasks import Project, projects
from typer.testing import CliRunner

from aigo_bridge.cli import app
from aigo_bridge.engine.protocol import contradictions, likelihood_gaps
from aigo_bridge.errors import DatasetError, Issue, SpecError, TemplateError, UsageError
from aigo_bridge.evaluation.task import plan
from aigo_bridge.evaluation.validation import validate
from aigo_bridge.plan.plan import PlanOrigin, TaskPlan
from aigo_bridge.reading import kind_of

EXAMPLES = int(os.environ.get("AIGO_FUZZ_EXAMPLES", "50"))
RUNS = max(5, EXAMPLES // 25)

many = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def planned(task: Path) -> TaskPlan | list[Issue]:
    """Return the plan or the errors in the files; `UsageError` means wrong usage."""
    try:
        return plan(PlanOrigin(task=str(task)))
    except (SpecError, DatasetError, TemplateError) as error:
        return list(error.issues)


def place(issue: Issue) -> tuple[object, ...]:
    return issue.message, issue.file, issue.line, issue.column, issue.hint


@many
@given(projects())
def test_planning_and_validation_agree(project: Project) -> None:
    with tempfile.TemporaryDirectory() as name:
        task = project.write(Path(name).resolve())
        (report,) = validate([task])
        if kind_of(task) != "task":
            return  # not recognizable as a task
        try:
            made = planned(task)
        except UsageError:
            return  # the option for the dataset is missing
        said = {place(issue) for issue in report.issues if issue.severity == "error"}
        noted = {place(issue) for issue in report.issues}
        if isinstance(made, TaskPlan):
            assert report.is_valid(strict=False) or contradictions(made), (project.changes, said)
            return
        wrong = [issue for issue in made if issue.severity == "error"]
        assert wrong
        for issue in wrong:
            # A value supplied by an option is not an error in the file.
            assert place(issue) in (said if issue.option is None else noted) or issue.option == "--config", (
                project.changes,
                issue,
                report.issues,
            )


@settings(many, max_examples=RUNS)
@given(projects(most=1))
def test_valid_tasks_start(project: Project) -> None:
    with tempfile.TemporaryDirectory() as name:
        task = project.write(Path(name).resolve())
        (report,) = validate([task])
        assume(report.is_valid(strict=False))
        try:
            made = planned(task)
        except UsageError:
            return
        assume(isinstance(made, TaskPlan))
        assert isinstance(made, TaskPlan)
        assume(not likelihood_gaps(made))  # unsupported on this engine
        model = f"scripted/{name}/model.jsonl"
        others = [word for key in made.model_keys for word in ("--model-map", f"{key}={model}")]
        done = CliRunner().invoke(app, ["run", str(task), "--model", model, "--out", f"{name}/out", *others])
        assert done.exit_code in (0, 1), (project.changes, done.stderr)
        assert done.exception is None or isinstance(done.exception, SystemExit)
