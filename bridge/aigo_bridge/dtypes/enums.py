"""Enumerations. Their members are not equal to their texts."""

from enum import Enum


class ActionRuleAction(Enum):
    """Action of a rule on the samples that its filter selects."""

    exclude_from_metrics = "exclude_from_metrics"


class CachePolicy(Enum):
    """Use of stored results by a run."""

    reuse = "reuse"
    """Use a stored result or parts of it, if available."""
    update = "update"
    """Compute again and store the result."""
    no_cache = "no-cache"
    """Compute again without storing the result."""


class EvaluatedEntityType(Enum):
    """Entity that a benchmark task evaluates."""

    dataset = "dataset"
    model = "model"


class ExecutionStatus(Enum):
    """Status of a dataset generation."""

    not_started = "not_started"
    pending = "pending"
    cancelled = "cancelled"
    finished = "finished"


class FilterComparisonOp(Enum):
    """Comparison of an expression with one value."""

    equals = "equals"
    not_equals = "not_equals"
    greater_than = "greater_than"
    less_than = "less_than"
    greater_or_equal = "greater_or_equal"
    less_or_equal = "less_or_equal"


class FilterMembershipOp(Enum):
    """Test whether an expression is one of several values."""

    in_ = "in"
    not_in = "not_in"


class FilterUnaryOp(Enum):
    """Test of an expression without another value."""

    exists = "exists"
    not_exists = "not_exists"
    is_true = "is_true"
    is_false = "is_false"


class FunctionCallOutputStatusEnum(Enum):
    """Status of a tool result. Results are finished when they are returned, so it is `completed` in
    practice.
    """

    in_progress = "in_progress"
    completed = "completed"
    incomplete = "incomplete"


class FunctionCallStatus(Enum):
    """Status of a tool call."""

    in_progress = "in_progress"
    completed = "completed"
    incomplete = "incomplete"


class ImageDetail(Enum):
    """Resolution at which a model processes an image."""

    low = "low"
    high = "high"
    auto = "auto"


class IntegrationModelProviderId(Enum):
    """Model providers that AI GO supports."""

    anthropic = "anthropic"
    fireworks = "fireworks"
    gemini = "gemini"
    latticeflow = "latticeflow"
    novita = "novita"
    openai = "openai"
    sambanova = "sambanova"
    together = "together"


class MLTask(Enum):
    """Kind of machine learning task, which determines the input and output of a model."""

    chat_completion = "chat_completion"
    embeddings = "embeddings"
    custom = "custom"


class MessageRole(Enum):
    """Author of a message."""

    user = "user"
    assistant = "assistant"
    system = "system"
    developer = "developer"


class MessageStatus(Enum):
    """Status of a message."""

    in_progress = "in_progress"
    completed = "completed"
    incomplete = "incomplete"


class ResultStatus(Enum):
    """Final status of a dataset generation."""

    succeeded = "succeeded"
    failed = "failed"


class ScalarDtype(Enum):
    """Type of list elements or dictionary values."""

    string = "string"
    integer = "integer"
    float = "float"
    boolean = "boolean"


class ScorerPurpose(Enum):
    """Purpose of a scorer: measuring the model, or checking the quality of the evaluation."""

    score = "score"
    qa = "qa"


class StringKind(Enum):
    """Content of a text parameter."""

    freeform = "freeform"
    python = "python"
    jinja = "jinja"


class Subsampling(Enum):
    """Selection of samples if not all of them are evaluated."""

    head = "head"
    """First samples of the dataset."""
    random = "random"
    """Random selection with a fixed seed."""


class TaskProvider(Enum):
    """Author of a task."""

    latticeflow = "latticeflow"
    user = "user"


class TaskResultDataStatus(Enum):
    """Status of a task result on the platform. A written log has `success` or `failure` instead."""

    pending = "pending"
    cancelled = "cancelled"
    success = "success"
    failed = "failed"


class TaskResultErrorStage(Enum):
    """Step of a task in which an error occurred."""

    configuration = "configuration"
    dataset = "dataset"
    solver = "solver"
    score = "score"
    metric = "metric"
    action = "action"


class TrustChainVerification(Enum):
    """Whether a trusted authority must have signed a server certificate."""

    verify_trust_chain = "verify_trust_chain"
    accept_untrusted = "accept_untrusted"
    """Accept any certificate. The connection can be intercepted."""
