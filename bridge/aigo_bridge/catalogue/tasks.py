"""What a task says that cannot be meant, and its templates: AB140 to AB153, AB201 to AB209."""

from __future__ import annotations

from aigo_bridge.catalogue.entry import Entry, Example, edited
from aigo_bridge.codes import Code

_MEAN = "- {type: mean, field: is_correct, name: Accuracy}"
_TRUTH = 'ground_truth: "{{ sample.capital }}"'
_STRING = f"- type: string_equals\n      {_TRUTH}\n      metrics:\n        {_MEAN}"
_RUN = "run task.yaml --model scripted/answers.jsonl"
_QUESTION = "{{ sample.country }}?"
_SNIPPET = "- type: python\n      compute_scores_snippet: |\n        "
_ACTION = "  actions:\n    - {{key: r, action: exclude_from_metrics, filter: {{expression: {}, op: {}, value: {}}}}}\n  scorers:\n"

ENTRIES = (
    Entry(
        Code.UNKNOWN_SCORE,
        "A score is named that no scorer gives",
        "A metric, an aggregator or a rule reads a score by its name; the task's scorers give others.",
        "Take one of the names in the hint.",
        edited("field: is_correct", "field: correct"),
    ),
    Entry(
        Code.NO_ANSWER_TO_SCORE,
        "A scorer has no single answer to look at",
        "There is no solver, or it gives a group of answers, and the scorer compares one.",
        "Add a solver, give the scorer a `value`, or take a scorer that sees groups.",
        edited(
            "  solver:\n    type: single_turn_solver\n    input_builder:\n      type: chat_completion\n"
            '      input_messages:\n        - role: user\n          content: "What is the capital of'
            ' {{ sample.country }}? Answer with its name only."\n',
            "",
        ),
    ),
    Entry(
        Code.NEVER_EQUAL,
        "Two things are compared that are never equal",
        "A score is a number and the constant a text, or the constant is none of the scorer's labels.",
        "Write the constant as the score is: numbers without quotes, labels as they are declared.",
        edited("  scorers:\n", _ACTION.format('"{{ scores.string_equals.is_correct }}"', "equals", "'yes'")),
    ),
    Entry(
        Code.CONSTANT_EXPRESSION,
        "An expression is plain text",
        "Without `{{ … }}` it is the same for every sample, so the rule takes all of them or none.",
        "Write the expression in `{{ … }}`.",
        edited("  scorers:\n", _ACTION.format("sample.country", "equals", "Norway")),
    ),
    Entry(
        Code.LABELS_OVERLAP,
        "Labels of a judge say two things",
        "A label counts as correct and as incorrect, or one of the lists is empty, so that every label counts alike.",
        "Put every label into one list.",
        edited(
            _STRING,
            "- type: model_as_a_judge_classifier\n      model_key: openai$gpt-4-1-nano\n"
            '      system_prompt: ""\n      user_prompt: "Is {{ solver_output.output }} right?"\n'
            "      correct_labels: [good]\n      incorrect_labels: [good, bad]",
        ),
    ),
    Entry(
        Code.WRONG_CONVERSATION,
        "A conversation is put together in a way that cannot work",
        "The model is never asked, a loop has no end, or an end stands where nothing ends.",
        "Do as the hint says: `generate` where the model is to answer, `terminate_if` on the builder.",
        edited(
            "    type: single_turn_solver\n    input_builder:\n      type: chat_completion\n      input_messages:\n",
            "    type: multi_turn_solver\n    message_builders:\n      - type: messages\n        messages:\n",
        ),
    ),
    Entry(
        Code.WRONG_CHOICES,
        "The choices of a multiple choice cannot be chosen",
        "They are compared by their first letter, or by likelihoods, and some of them never can be.",
        "Write single letters, or `method: loglikelihood` with one continuation for each choice.",
        edited(_STRING, f"- type: string_equals_mcqa\n      {_TRUTH}\n      choices: [Oslo, Lima]"),
    ),
    Entry(
        Code.WRONG_SCORE_RANGE,
        "The least score is not below the greatest",
        "A judge's scores lie between `score_min` and `score_max`.",
        "Exchange them, or correct one.",
        edited(
            _STRING,
            "- type: model_as_a_judge_scorer\n      model_key: openai$gpt-4-1-nano\n"
            '      user_prompt: "How good is {{ solver_output.output }}?"\n'
            "      score_min: 5\n      score_max: 1",
        ),
    ),
    Entry(
        Code.WRONG_PRICE,
        "A table of prices cannot be used",
        "Prices are numbers from 0, in money for a million tokens, under the names of models.",
        "Mend the entry; `aigo-bridge run --help` names the option for the table.",
        Example(
            "explain task.yaml --model scripted/answers.jsonl --cost --prices prices.yaml",
            files={"prices.yaml": "scripted/answers.jsonl: {input: cheap, output: 2}\n"},
        ),
    ),
    Entry(
        Code.NOT_PYTHON,
        "A snippet is not Python",
        "Its text cannot be parsed; nothing of it was run.",
        "Mend the line that the message names.",
        edited(_STRING, _SNIPPET + "def compute_scores(sample, solver_output)\n            return []"),
    ),
    Entry(
        Code.MISSING_FUNCTION,
        "A snippet does not define the function that is called",
        "Each kind of snippet has one: `compute_scores`, `solve`, `compute_metrics`, `postprocess`, `synthesize`.",
        "Define it at the top level of the snippet.",
        edited(_STRING, _SNIPPET + "def score(sample, solver_output):\n            return []"),
    ),
    Entry(
        Code.WRONG_SIGNATURE,
        "A snippet's function has other parameters than it is called with",
        "The call would fail for every sample.",
        "Write the parameters that the message names.",
        edited(_STRING, _SNIPPET + "def compute_scores(answer):\n            return {}"),
    ),
    Entry(
        Code.UNKNOWN_IMPORT,
        "A snippet imports what the platform's modules do not have here",
        "The types of AI GO can be imported; the rest of the platform is not part of aigo-bridge.",
        "Import the name that the hint offers, or do without.",
        edited(
            _STRING,
            _SNIPPET + "from latticeflow.go.types import Nothing\n"
            "        def compute_scores(sample, solver_output):\n            return {}",
        ),
    ),
    Entry(
        Code.TEMPLATE_SYNTAX,
        "A template is not Jinja",
        "A bracket is not closed, a tag has no end, or another template is asked for.",
        "Mend the line that the message names.",
        edited(_QUESTION, "{{ sample.country }?"),
    ),
    Entry(
        Code.UNKNOWN_NAME,
        "A template uses a name that is not there",
        "Which names there are depends on the place: before the answer only `sample`, behind it `solver_output`, too.",
        "Write one of the names in the hint; columns are `{{ sample.COLUMN }}`.",
        edited(_QUESTION, "{{ country }}?"),
    ),
    Entry(
        Code.UNKNOWN_COLUMN,
        "The data set has no such column",
        "A template, a parameter or a scorer names a column that no row has.",
        "Take one of the columns in the hint, or another data set.",
        edited(_QUESTION, "{{ sample.contry }}?", command="explain task.yaml"),
    ),
    Entry(
        Code.UNKNOWN_PLACEHOLDER,
        "`<< config.x >>` names no parameter",
        "Placeholders stand for the task's parameters, and in models for secrets.",
        "Declare the parameter in `config_spec`, or correct the name.",
        edited(_QUESTION, "<< config.country >>?"),
    ),
    Entry(
        Code.TEMPLATE_TOO_COSTLY,
        "A template asks for too much",
        "Templates come from strangers, so their length, depth, time and memory have limits.",
        "Make it simpler; what takes long belongs into a snippet.",
        edited(_QUESTION, "{{ (" * 300 + "1" + ") }}" * 300),
    ),
    Entry(
        Code.TEMPLATE_FAILED,
        "A template failed with the values of a sample",
        "It is right as a template, and for this row it divides by zero, adds text to a number, gives no list where choices are needed or the like.",
        "Say in the template what is to become of such rows.",
        edited(_QUESTION, "{{ sample.country + 1 }}?", command=_RUN),
    ),
    Entry(
        Code.EMPTY_CELLS,
        "A column that the task reads is empty in some samples",
        "These samples get a prompt or a comparison with a hole in it, which may fail when they are scored.",
        "Fill the cells, leave the rows out by a filter, or say in the template what stands for a missing value.",
        Example(
            "explain task.yaml",
            files={
                "capitals.jsonl": '{"country": "Norway", "capital": "Oslo"}\n{"country": "Peru", "capital": null}\n'
            },
        ),
    ),
    Entry(
        Code.WHOLE_COLLECTION,
        "A rule compares a whole collection",
        "The row, the scores or the output as a whole equal no single value.",
        "Name the part that is meant, as the hint does.",
        edited("  scorers:\n", _ACTION.format('"{{ sample }}"', "equals", "Norway")),
    ),
)
