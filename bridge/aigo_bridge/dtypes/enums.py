"""The closed sets of values. Plain enums: a member is not equal to its text."""

from __future__ import annotations

from enum import Enum


class ActionRuleAction(Enum):
    """What an action rule does to the samples that its filter selects."""

    exclude_from_metrics = "exclude_from_metrics"


class CachePolicy(Enum):
    """How a run uses results computed earlier."""

    reuse = "reuse"
    """Take a stored result when there is one; parts of a result count too."""
    update = "update"
    """Compute anew and store the result."""
    no_cache = "no-cache"
    """Compute anew and store nothing."""


class EvaluatedEntityType(Enum):
    """What a benchmark task evaluates."""

    dataset = "dataset"
    model = "model"


class ExecutionStatus(Enum):
    """Where a dataset generation stands."""

    not_started = "not_started"
    pending = "pending"
    cancelled = "cancelled"
    finished = "finished"


class FilterComparisonOp(Enum):
    """How an expression is compared with one value."""

    equals = "equals"
    not_equals = "not_equals"
    greater_than = "greater_than"
    less_than = "less_than"
    greater_or_equal = "greater_or_equal"
    less_or_equal = "less_or_equal"


class FilterMembershipOp(Enum):
    """Whether an expression has to be one of several values, or none of them."""

    in_ = "in"
    not_in = "not_in"


class FilterUnaryOp(Enum):
    """What is asked of an expression on its own."""

    exists = "exists"
    not_exists = "not_exists"
    is_true = "is_true"
    is_false = "is_false"


class FunctionCallOutputStatusEnum(Enum):
    """State of a tool's answer; tools hand back finished answers, so `completed` in practice."""

    in_progress = "in_progress"
    completed = "completed"
    incomplete = "incomplete"


class FunctionCallStatus(Enum):
    """State of a tool call."""

    in_progress = "in_progress"
    completed = "completed"
    incomplete = "incomplete"


class ImageDetail(Enum):
    """Resolution in which a model is to look at an image."""

    low = "low"
    high = "high"
    auto = "auto"


class IntegrationModelProviderId(Enum):
    """The model providers that AI GO knows by name."""

    anthropic = "anthropic"
    fireworks = "fireworks"
    gemini = "gemini"
    latticeflow = "latticeflow"
    novita = "novita"
    openai = "openai"
    sambanova = "sambanova"
    together = "together"


class MLTask(Enum):
    """What a model does: which kind of input it takes and of output it gives."""

    chat_completion = "chat_completion"
    embeddings = "embeddings"
    custom = "custom"


class MessageRole(Enum):
    """Who wrote a message."""

    user = "user"
    assistant = "assistant"
    system = "system"
    developer = "developer"


class MessageStatus(Enum):
    """State of a message."""

    in_progress = "in_progress"
    completed = "completed"
    incomplete = "incomplete"


class ResultStatus(Enum):
    """How a dataset generation ended."""

    succeeded = "succeeded"
    failed = "failed"


class ScalarDtype(Enum):
    """Type of a list's elements or of a dictionary's values."""

    string = "string"
    integer = "integer"
    float = "float"
    boolean = "boolean"


class ScorerPurpose(Enum):
    """Whether a scorer measures the model or checks the quality of the evaluation itself."""

    score = "score"
    qa = "qa"


class StringKind(Enum):
    """What a text parameter holds."""

    freeform = "freeform"
    python = "python"
    jinja = "jinja"


class Subsampling(Enum):
    """Which samples are taken when fewer than all are evaluated."""

    head = "head"
    """The first ones."""
    random = "random"
    """A random choice with a fixed seed."""


class TaskProvider(Enum):
    """Who wrote a task."""

    latticeflow = "latticeflow"
    user = "user"


class TaskResultDataStatus(Enum):
    """State of a task result on the platform; a written log has `success` or `failure` instead."""

    pending = "pending"
    cancelled = "cancelled"
    success = "success"
    failed = "failed"


class TaskResultErrorStage(Enum):
    """The step of a task in which an error happened."""

    configuration = "configuration"
    dataset = "dataset"
    solver = "solver"
    score = "score"
    metric = "metric"
    action = "action"


class TrustChainVerification(Enum):
    """Whether the certificate of a server has to be vouched for by a trusted authority."""

    verify_trust_chain = "verify_trust_chain"
    accept_untrusted = "accept_untrusted"
    """Any certificate will do: the connection is open to interception."""
