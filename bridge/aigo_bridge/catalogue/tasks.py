"""Errors in tasks and templates: AB140 to AB153, AB201 to AB209."""

from __future__ import annotations

from aigo_bridge.catalogue.entry import CatalogueEntry, Example, edited
from aigo_bridge.codes import Code

_MEAN = "- {type: mean, field: is_correct, name: Accuracy}"
_TRUTH = 'ground_truth: "{{ sample.capital }}"'
_STRING = f"- type: string_equals\n      {_TRUTH}\n      metrics:\n        {_MEAN}"
_RUN = "run task.yaml --model scripted/answers.jsonl"
_QUESTION = "{{ sample.country }}?"
_SNIPPET = "- type: python\n      compute_scores_snippet: |\n        "
_ACTION = "  actions:\n    - {{key: r, action: exclude_from_metrics, filter: {{expression: {}, op: {}, value: {}}}}}\n  scorers:\n"

ENTRIES = (
    CatalogueEntry(
        Code.UNKNOWN_SCORE,
        "A score does not exist",
        "A metric, an aggregator or a rule refers to a score that the scorers of the task do not produce.",
        "Use one of the score names in the hint.",
        edited("field: is_correct", "field: correct"),
    ),
    CatalogueEntry(
        Code.NO_ANSWER_TO_SCORE,
        "A scorer needs a single answer",
        "The task does not have a solver, or the solver returns a group of answers and the scorer needs one.",
        "Add a solver, set `value` of the scorer, or use a scorer for groups of answers.",
        edited(
            "  solver:\n    type: single_turn_solver\n    input_builder:\n      type: chat_completion\n"
            '      input_messages:\n        - role: user\n          content: "What is the capital of'
            ' {{ sample.country }}? Answer with its name only."\n',
            "",
        ),
    ),
    CatalogueEntry(
        Code.NEVER_EQUAL,
        "A comparison can never be true",
        "For example, a numeric score is compared with a text, or a label with a text that the scorer never returns.",
        "Write numbers without quotes, and labels exactly as declared.",
        edited("  scorers:\n", _ACTION.format('"{{ scores.string_equals.is_correct }}"', "equals", "'yes'")),
    ),
    CatalogueEntry(
        Code.CONSTANT_EXPRESSION,
        "An expression contains no template",
        "Without `{{ … }}` the expression has the same value for every sample, so the rule matches all samples or none.",
        "Write the expression in `{{ … }}`, for example `{{ sample.country }}`.",
        edited("  scorers:\n", _ACTION.format("sample.country", "equals", "Norway")),
    ),
    CatalogueEntry(
        Code.LABELS_OVERLAP,
        "The labels of a judge overlap",
        "A label is listed as both correct and incorrect, or one of the two lists is empty.",
        "Put each label into exactly one list, and at least one label into each list.",
        edited(
            _STRING,
            "- type: model_as_a_judge_classifier\n      model_key: openai$gpt-4-1-nano\n"
            '      system_prompt: ""\n      user_prompt: "Is {{ solver_output.output }} right?"\n'
            "      correct_labels: [good]\n      incorrect_labels: [good, bad]",
        ),
    ),
    CatalogueEntry(
        Code.WRONG_CONVERSATION,
        "A conversation cannot work as declared",
        "The model is never called, a loop never ends, or an end condition is in a place where it is ignored.",
        "Follow the hint: add `generate` to call the model, or `terminate_if` to end a loop.",
        edited(
            "    type: single_turn_solver\n    input_builder:\n      type: chat_completion\n      input_messages:\n",
            "    type: multi_turn_solver\n    message_builders:\n      - type: messages\n        messages:\n",
        ),
    ),
    CatalogueEntry(
        Code.WRONG_CHOICES,
        "The choices of a multiple-choice question are not valid",
        "Answers are matched by a single letter or by likelihoods, and some of these choices can never match.",
        "Use single letters, or set `method: loglikelihood` with one continuation for each choice.",
        edited(_STRING, f"- type: string_equals_mcqa\n      {_TRUTH}\n      choices: [Oslo, Lima]"),
    ),
    CatalogueEntry(
        Code.WRONG_SCORE_RANGE,
        "The minimum score is not below the maximum",
        "A judge gives scores from `score_min` to `score_max`, so `score_min` must be smaller.",
        "Swap the two values, or correct one of them.",
        edited(
            _STRING,
            "- type: model_as_a_judge_scorer\n      model_key: openai$gpt-4-1-nano\n"
            '      user_prompt: "How good is {{ solver_output.output }}?"\n'
            "      score_min: 5\n      score_max: 1",
        ),
    ),
    CatalogueEntry(
        Code.WRONG_PRICE,
        "A price table is not valid",
        "Each model name maps to prices per million tokens. Prices are numbers of at least 0.",
        "Correct the entry in the file that you passed with `--prices`.",
        Example(
            "explain task.yaml --model scripted/answers.jsonl --cost --prices prices.yaml",
            files={"prices.yaml": "currency: USD\nmodels:\n  scripted/*: {input: cheap, output: 2}\n"},
        ),
    ),
    CatalogueEntry(
        Code.NOT_PYTHON,
        "A snippet is not valid Python",
        "The snippet has a syntax error. No part of it was executed.",
        "Correct the line in the message.",
        edited(_STRING, _SNIPPET + "def compute_scores(sample, solver_output)\n            return []"),
    ),
    CatalogueEntry(
        Code.MISSING_FUNCTION,
        "A snippet does not define the required function",
        "Each kind of snippet must define one function: `compute_scores`, `solve`, `compute_metrics`, "
        "`postprocess` or `synthesize`.",
        "Define the function at the top level of the snippet.",
        edited(_STRING, _SNIPPET + "def score(sample, solver_output):\n            return []"),
    ),
    CatalogueEntry(
        Code.WRONG_SIGNATURE,
        "A snippet function has the wrong parameters",
        "The call would fail for every sample.",
        "Change the parameters as the message says.",
        edited(_STRING, _SNIPPET + "def compute_scores(answer):\n            return {}"),
    ),
    CatalogueEntry(
        Code.UNKNOWN_IMPORT,
        "A snippet imports a name that is not available",
        "Snippets can import the AI GO types. Other modules of the platform are not part of aigo-bridge.",
        "Import the name that the hint suggests, or remove the import.",
        edited(
            _STRING,
            _SNIPPET + "from latticeflow.go.types import Nothing\n"
            "        def compute_scores(sample, solver_output):\n            return {}",
        ),
    ),
    CatalogueEntry(
        Code.TEMPLATE_SYNTAX,
        "A template has a Jinja syntax error",
        "For example, a bracket is not closed, the end tag of a block is missing, or the template includes another template.",
        "Correct the line in the message.",
        edited(_QUESTION, "{{ sample.country }?"),
    ),
    CatalogueEntry(
        Code.UNKNOWN_NAME,
        "A template uses an unknown name",
        "The available names depend on the place. Before the answer, only `sample` exists; after it, "
        "`solver_output` is also available.",
        "Use one of the names in the hint. Write columns as `{{ sample.COLUMN }}`.",
        edited(_QUESTION, "{{ country }}?"),
    ),
    CatalogueEntry(
        Code.UNKNOWN_COLUMN,
        "The dataset does not have this column",
        "A template, a parameter or a scorer refers to a column that is missing in all rows.",
        "Use one of the columns in the hint, or another dataset.",
        edited(_QUESTION, "{{ sample.contry }}?", command="explain task.yaml"),
    ),
    CatalogueEntry(
        Code.UNKNOWN_PLACEHOLDER,
        "`<< config.x >>` does not match a parameter",
        "Placeholders insert task parameters. In model files they insert secrets.",
        "Correct the name, or declare the parameter in `config_spec`.",
        edited(_QUESTION, "<< config.country >>?"),
    ),
    CatalogueEntry(
        Code.TEMPLATE_TOO_COSTLY,
        "A template exceeds a limit",
        "Templates can come from untrusted tasks, so their length, nesting, time and memory are limited.",
        "Simplify the template, or move long computations into a snippet.",
        edited(_QUESTION, "{{ (" * 300 + "1" + ") }}" * 300),
    ),
    CatalogueEntry(
        Code.TEMPLATE_FAILED,
        "A template failed for a sample",
        "The syntax is valid, but rendering fails with the values of this row. For example, the template "
        "adds a number to a text or divides by zero.",
        "Handle such rows in the template, for example with `{% if %}` or the `default` filter.",
        edited(_QUESTION, "{{ sample.country + 1 }}?", command=_RUN),
    ),
    CatalogueEntry(
        Code.EMPTY_CELLS,
        "A column has empty cells",
        "The task reads this column. The prompts or scores of the affected samples will be incomplete or may fail.",
        "Fill in the cells, exclude the rows with a filter, or set a default in the template.",
        Example(
            "explain task.yaml",
            files={
                "capitals.jsonl": '{"country": "Norway", "capital": "Oslo"}\n{"country": "Peru", "capital": null}\n'
            },
        ),
    ),
    CatalogueEntry(
        Code.WHOLE_COLLECTION,
        "A rule compares a whole collection",
        "A complete row, mapping of scores or output never equals a single value.",
        "Compare one field, as in the hint.",
        edited("  scorers:\n", _ACTION.format('"{{ sample }}"', "equals", "Norway")),
    ),
)
