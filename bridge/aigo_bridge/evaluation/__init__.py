"""Evaluations: run files and assessment plans, from YAML to plans, results and verdicts.

```text
run.yaml ──▶ RunFile ──▶ Evaluation (one entry per specification, each with its plans) ──▶ one engine run
                                                                                              │
                      evaluation.json, exit code ◀── policies ◀── <key>.tasklog.json ◀── native logs
```
"""
